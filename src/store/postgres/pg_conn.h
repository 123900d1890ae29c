/* One connection to PostgreSQL. Statements are sent ahead in a pipeline and their results read only
 * where the caller needs them, so a batch of writes and its commit cost one round trip. After a
 * failed call the caller may only call conn_rollback. One thread at a time.
 *
 * The server prepares a statement when it is first used. Behind a pooler that switches connections
 * after every transaction (`pooler: transaction`) no statement is prepared. */
#ifndef STORE_POSTGRES_PG_CONN_H
#define STORE_POSTGRES_PG_CONN_H

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "store/postgres/pg_params.h"

#define PG_SENT_MAX 200 /* statements in flight before their results are read */

/* Detects a silent network within ten seconds (F-E7). These come before the address, which may
 * override them. */
#define PG_NETWORK_NAMES "connect_timeout", "tcp_user_timeout", "keepalives_idle",                 \
    "keepalives_interval", "keepalives_count"
#define PG_NETWORK_VALUES "3", "5000", "2", "1", "3"
#define PG_FIRST_TRIES 5

struct pg_statement {
    const char *what; /* for messages */
    const char *text; /* outlives the connection, which knows it by this pointer */
};

struct pg_conn {
    PGconn *pg;
    const struct log *log;
    bool pooler;
    bool in_tx;
    bool failed;            /* the transaction is lost: the next call must be a rollback */
    bool commit_sent;       /* the commit was sent and not answered: its outcome is unknown */
    bool lost;              /* the connection is gone */
    bool conflict;          /* another transaction changed the row first */
    bool timed_out;         /* the last failure was a timeout of a statement or of connecting */
    unsigned names;         /* number of names given to prepared statements */
    struct map prepared;    /* by the text's pointer: struct prepared */
    const char *sent[PG_SENT_MAX];
    uint32_t sent_count;
    uint32_t syncs; /* syncs sent whose end has not been read */
    struct pg_params params;
};

int conn_open(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
              struct err *err);
/* The same at a start, while no client waits for an answer: retries where the database was too slow
 * to accept the connection, as a busy one is. */
int conn_open_first(struct pg_conn *conn, const char *where, bool pooler, const struct log *log,
                    struct err *err);
bool conn_took_too_long(const PGconn *pg);
void conn_close(struct pg_conn *conn);
/* Keeps the database's notices from appearing between the lines of our log. */
void conn_quiet(PGconn *pg);

/* Sends without waiting. The statement must return no rows that matter. Uses up conn->params. */
int conn_send(struct pg_conn *conn, const struct pg_statement *statement, struct err *err);
/* Sends and waits; the caller clears *result. */
int conn_query(struct pg_conn *conn, const struct pg_statement *statement, PGresult **result,
               struct err *err);
int conn_settle(struct pg_conn *conn, struct err *err); /* waits for everything sent */
/* Several statements as plain text, for migrations and settings. Not in a pipeline. */
int conn_text(struct pg_conn *conn, const char *text, struct err *err);

int conn_begin(struct pg_conn *conn, struct err *err);
/* Ends the pipeline: 0 = durable. If the answer is lost, conn->commit_sent stays true. */
int conn_commit(struct pg_conn *conn, struct err *err);
void conn_rollback(struct pg_conn *conn);

/* Turns a failure into an error for the caller, by SQLSTATE. */
int conn_fail(struct pg_conn *conn, const PGresult *result, const char *what, struct err *err);

#endif
