/* One connection to PostgreSQL: statements sent ahead in a pipeline, their results looked at where
 * somebody needs them, so that a batch of writes and its commit are one round trip. After a failed
 * call nothing but conn_rollback may follow. One thread at a time.
 *
 * A statement is prepared by the server when it is first used; behind a pooler that gives every
 * transaction another server connection none is (`pooler: transaction`). */
#ifndef STORE_POSTGRES_PG_CONN_H
#define STORE_POSTGRES_PG_CONN_H

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "store/postgres/pg_params.h"

#define PG_SENT_MAX 200 /* statements under way before their results are looked at */

/* A network that falls silent is noticed within ten seconds (F-E7). They come before the address,
 * which may say otherwise. */
#define PG_NETWORK_NAMES "connect_timeout", "tcp_user_timeout", "keepalives_idle",                 \
    "keepalives_interval", "keepalives_count"
#define PG_NETWORK_VALUES "3", "5000", "2", "1", "3"
#define PG_FIRST_TRIES 5

struct pg_statement {
    const char *what; /* for messages */
    const char *text; /* lives as long as the connection: it is known by this pointer */
};

struct pg_conn {
    PGconn *pg;
    const struct log *log;
    bool pooler;
    bool in_tx;
    bool failed;            /* the transaction is lost: only a rollback may follow */
    bool commit_sent;       /* and its answer did not come: nobody knows yet */
    bool lost;              /* the connection is gone */
    bool conflict;          /* it failed because another was faster */
    bool timed_out;         /* the last failure: the statement, or connecting, took too long */
    unsigned names;         /* given to prepared statements */
    struct map prepared;    /* by the text's pointer: struct prepared */
    const char *sent[PG_SENT_MAX];
    uint32_t sent_count;
    uint32_t syncs; /* sent, their end not read */
    struct pg_params params;
};

int conn_open(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
              struct err *err);
/* The same at a start, when nobody waits for an answer yet: tried again where the database took too
 * long to take the connection, as one that is just busy does. */
int conn_open_first(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
                    struct err *err);
bool conn_took_too_long(const PGconn *pg);
void conn_close(struct pg_conn *conn);
/* The database's own words would stand between the lines of our log. */
void conn_quiet(PGconn *pg);

/* Sends and goes on; the statement must give no rows that matter. Takes conn->params. */
int conn_send(struct pg_conn *conn, const struct pg_statement *statement, struct err *err);
/* Sends and waits; *result is the caller's to clear. */
int conn_query(struct pg_conn *conn, const struct pg_statement *statement, PGresult **result,
               struct err *err);
int conn_settle(struct pg_conn *conn, struct err *err); /* waits for all that was sent */
/* Several statements as plain text, for migrations and settings. Not in a pipeline. */
int conn_text(struct pg_conn *conn, const char *text, struct err *err);

int conn_begin(struct pg_conn *conn, struct err *err);
/* The end of the pipeline: 0 = durable. When the answer is lost, conn->commit_sent stays true. */
int conn_commit(struct pg_conn *conn, struct err *err);
void conn_rollback(struct pg_conn *conn);

/* What a failure means for whoever asked; by SQLSTATE. */
int conn_fail(struct pg_conn *conn, const PGresult *result, const char *what, struct err *err);

#endif
