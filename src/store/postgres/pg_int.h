/* The inside of the PostgreSQL store; no file outside this folder includes it. One connection
 * writes, on the writer's thread; readers have their own connections. Other nodes write to the same
 * tables, so anything that was read may have changed. A task is therefore written only if its row
 * is still the one that was read (`rev`); otherwise the whole transaction fails and is retried. */
#ifndef STORE_POSTGRES_PG_INT_H
#define STORE_POSTGRES_PG_INT_H

#include "store/postgres/pg_conn.h"
#include "store/postgres/pg_lanes.h"
#include "store/postgres/pg_rows.h"
#include "store/postgres/pg_sql.h"
#include "store/rows/rows.h"
#include "store/store.h"

/* How long a block is used before asking whether another node took a later one. Keys of all nodes
 * grow with time to within this long. */
#define PG_KEY_AGE_US INT64_C(1000000)

/* Did the last transaction commit, and on which database? (pg_timeline.c) */
struct pg_commits {
    char writer[64];       /* this connection among writer_marks */
    int64_t mark;          /* of its last transaction */
    bool unsettled;        /* the outcome of that transaction is not known yet ... */
    bool unknown;          /* ... and rollback is ending it now */
    bool renewed;          /* the connection is new: see timeline_follow */
    int64_t connect_at_us; /* no retry before this; by CLOCK_BOOTTIME */
    int64_t connect_pause_us;
    char timeline[16]; /* of the database at the last check */
};

struct pg_store {
    struct store base;
    struct rows rows;
    struct pg_conn conn;   /* the writing one */
    struct pg_sql sql;     /* texts of its statements; readers share them */
    struct pg_texts texts; /* statements made of columns */
    const struct log *log;
    char *where;           /* as the database library wants it; see pg_place.c */
    char schema[64];
    bool pooler;
    bool any_schema;       /* accept a schema that others changed */
    bool rows_policy_lacks; /* of sql_role, at the last check with `shares` */
    bool shares;           /* while it opens: missing policies of sql_role are made, not refused */
    char sql_role[64];     /* of access.sql_role; empty = none is named */
    int64_t schema_at_us;  /* time of the next check, by CLOCK_BOOTTIME */
    struct pg_lanes lanes;
    int64_t outbox_next, outbox_end; /* of a block of keys */
    struct arena arena;    /* of the transaction under way: snapshots of rows */
    uint64_t transactions; /* so far */
    struct gathered_result *results; /* not written yet, in arena */
    struct map result_ids;
    struct numbered_checkpoints *numbered; /* of a transaction; NULL before the first */
    struct pg_keeper *keeper; /* NULL before watch_start */
    struct pg_store *first;   /* NULL in the first writer; its keeper serves all */
    struct pg_held *held;     /* of the first; see pg_held.c */
    struct pg_keyring *keyring; /* of the first; see pg_keys.c */
    struct noted *noted;      /* noted for it by the open transaction */
    struct pg_months *months; /* NULL before the first pass of retention */
    struct pg_copy_texts *copy; /* NULL unless a copy is made */
    struct pg_commits commits;
};

struct store_reader {
    struct rows rows; /* comes first: rows_of_reader */
    struct pg_store *store;
    struct pg_conn conn;
};

static inline struct pg_store *pg_of(struct store *store)
{
    return (struct pg_store *)store;
}

/* A statement of sql/ by name, on the writing connection; parameters are in conn.params. */
int pg_send(struct pg_store *store, enum pg_sql_name name, struct err *err);
int pg_query(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err);
/* The same, in its own transaction when none is open. */
int pg_ask(struct pg_store *store, enum pg_sql_name name, PGresult **result, struct err *err);

/* A snapshot of all that follows; pg_verify.c. */
int pg_begin_snapshot(struct pg_store *store, struct err *err);

/* pg_logs.c */
int pg_logs_insert(struct store *, struct log_entry *, uint32_t, struct err *);
struct log_last;
/* execution_id and the eleven columns of logs_last; texts are good as long as the result. */
struct log_line;
struct log_note;
struct log_range;
struct log_walk;
#define PG_CHUNK_ROWS 2000
#define PG_CHUNK_BYTES (16 * 1024 * 1024)
/* Eight columns from `from` on; texts are good as long as the result. */
void pg_note_from_row(const PGresult *result, int row, int from, const struct uuid *id,
                      struct log_note *note);
struct anchor_row;
/* Its text is in the arena if one is given, else good as long as the result. */
void pg_anchor_from_row(const PGresult *result, int row, struct arena *arena,
                        struct anchor_row *anchor);
/* pg_log_chains.c */
int pg_logs_walk(struct store *, const struct log_walk *, struct err *);
int pg_chains_read(struct store *, const struct log_range *, uint32_t, int64_t,
                   const struct log_walk *, struct err *);
/* pg_logs.c */
struct log_last pg_last_from_row(const PGresult *result, int row);
/* Runs a delete that gives execution_id, highest seq, its chain_hash, count and newest logged_at of
 * what it removed, and notes the cuts. *removed (may be NULL): how many lines. */
int pg_logs_delete(struct pg_store *store, enum pg_sql_name name, int64_t *removed,
                   struct err *err);
extern const struct log_verbs pg_log_verbs;
/* pg_verify.c */
int pg_verify_logs(struct store *, void (*)(void *, const char *), void *, struct err *);
/* pg_log_retention.c */
struct log_note;
struct log_part;
struct log_range;
struct log_run;
int pg_lines_empty(struct store *, enum log_severity, const struct log_range *, uint32_t,
                   int64_t *, struct err *);
int pg_log_runs_find(struct store *, const struct log_range *, uint32_t, struct arena *,
                     struct log_run *, struct err *);
int pg_chains_next(struct store *, const struct uuid *, uint32_t, struct log_range *, uint32_t *,
                   struct err *);
int pg_emptied_find(struct store *, struct arena *, struct log_part **, uint32_t *, struct err *);
int pg_heads_forget(struct store *, const struct log_note *, uint32_t, struct err *);
int pg_lasts_find(struct store *, struct task *const *, uint32_t, struct arena *,
                  struct log_last **, uint32_t **, uint32_t *, struct err *);
int pg_lines_cut(struct store *, const struct log_range *, uint32_t, int64_t *, struct err *);

#endif
