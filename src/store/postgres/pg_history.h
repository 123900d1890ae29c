/* The verbs of the PostgreSQL store on what tasks leave behind, by file. */
#ifndef STORE_POSTGRES_PG_HISTORY_H
#define STORE_POSTGRES_PG_HISTORY_H

#include "store/postgres/pg_int.h"

/* pg_history.c: what a task leaves behind */
int pg_events_insert(struct store *, const struct task_event *, uint32_t, struct err *);
int pg_executions_insert(struct store *, const struct execution *, uint32_t, struct err *);
int pg_executions_save(struct store *, const struct execution *, uint32_t, struct err *);
int pg_result_put(struct store *, const struct uuid *, struct str, int64_t, struct err *);
int pg_checkpoint_insert(struct store *, const struct uuid *, struct checkpoint *,
                         struct err *);
/* pg_results.c */
int results_flush(struct pg_store *store, struct err *err); /* before any read of results */
void results_forget(struct pg_store *store);
/* pg_prune.c */
int pg_history_prune(struct store *, int64_t, int64_t, int64_t, uint32_t, int64_t *,
                     uint32_t *, struct err *);
/* pg_keys.c */
int pg_outbox_insert(struct store *, const struct outbox_message *, uint32_t, struct err *);

#endif
