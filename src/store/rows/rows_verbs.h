/* The verbs that are the same for every store: put into its struct store_verbs. */
#ifndef STORE_ROWS_ROWS_VERBS_H
#define STORE_ROWS_ROWS_VERBS_H

#include "store/audit_store.h"
#include "store/measure_store.h"
#include "store/namespace_store.h"
#include "store/token_store.h"
#include "store/rows/rows_catalog.h"
#include "store/rows/rows_recovery.h"
#include "store/rows/rows_registry.h"
#include "store/rows/rows_relatives.h"
#include "store/rows/rows_waiting.h"

extern const struct audit_verbs rows_audit_verbs; /* rows_audit.c */
extern const struct token_verbs rows_token_verbs; /* rows_tokens.c */
/* rows_measures.c */
extern const struct measure_verbs rows_measure_verbs;
int rows_counts_load(struct store *, struct arena *, struct lane_count **, uint32_t *,
                     struct err *);

#define ROWS_STORE_VERBS                                                                           \
    .checkpoint_newest = rows_checkpoint_newest,                                                   \
    .checkpoint_invalidate = rows_checkpoint_invalidate,                                           \
    .read_checkpoints = rows_read_checkpoints,                                                     \
    .uniques_look = rows_uniques_look,                                                             \
    .uniques_drop = rows_uniques_drop,                                                             \
    .parked_find = rows_parked_find,                                                               \
    .parked_keys = rows_parked_keys,                                                               \
    .due_find = rows_due_find,                                                                     \
    .dependencies_insert = rows_dependencies_insert,                                               \
    .dependents_find = rows_dependents_find,                                                       \
    .dependents_decide = rows_dependents_decide,                                                   \
    .dependencies_undecide = rows_dependencies_undecide,                                           \
    .outputs_find = rows_outputs_find,                                                             \
    .result_drop = rows_result_drop,                                                               \
    .read_dependencies = rows_read_dependencies,                                                   \
    .read_dependents = rows_read_dependents,                                                       \
    .read_outputs = rows_read_outputs,                                                             \
    .read_result = rows_read_result,                                                               \
    .read_events = rows_read_events,                                                               \
    .execution_load = rows_execution_load,                                                         \
    .read_executions = rows_read_executions,                                                       \
    .counts_load = rows_counts_load,                                                               \
    .outbox_due = rows_outbox_due,                                                                 \
    .outbox_count = rows_outbox_count,                                                             \
    .outbox_prune = rows_outbox_prune,                                                             \
    .outbox_save = rows_outbox_save,                                                               \
    .workers_load = rows_workers_load,                                                             \
    .worker_put = rows_worker_put,                                                                 \
    .worker_delete = rows_worker_delete,                                                           \
    .queues_load = rows_queues_load,                                                               \
    .queue_put = rows_queue_put,                                                                   \
    .queue_delete = rows_queue_delete,                                                             \
    .info_get = rows_info_get,                                                                     \
    .info_put = rows_info_put,                                                                     \
    .audit = &rows_audit_verbs,                                                                   \
    .recovery = &rows_recovery_verbs,                                                              \
    .measures = &rows_measure_verbs,                                                               \
    .tokens = &rows_token_verbs

/* And those of stores that several nodes share. */
#define ROWS_SHARED_VERBS                                                                          \
    .worker_load = rows_worker_load,                                                               \
    .worker_renew = rows_worker_renew,                                                             \
    .queue_make = rows_queue_make,                                                                 \
    .limits_lock = rows_limits_lock,                                                               \
    .limits_count = rows_limits_count,                                                             \
    .limits_hold = rows_limits_hold,                                                               \
    .key_held = rows_key_held,                                                                     \
    .bucket_load = rows_bucket_load,                                                               \
    .bucket_save = rows_bucket_save

#endif
