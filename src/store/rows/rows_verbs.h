/* The verbs that are the same for every store. Each is named once, in a list; its prototype, whose
 * parameters are those of the seam, and its entry in a store's table of verbs come from there. */
#ifndef STORE_ROWS_ROWS_VERBS_H
#define STORE_ROWS_ROWS_VERBS_H

#include "store/audit_store.h"
#include "store/measure_store.h"
#include "store/namespace_store.h"
#include "store/token_store.h"
#include "store/rows/rows_catalog.h"
#include "store/rows/rows_recovery.h"
#include "store/rows/rows_registry.h"
#include "store/rows/rows_waiting.h"

extern const struct audit_verbs rows_audit_verbs;     /* rows_audit.c */
extern const struct token_verbs rows_token_verbs;     /* rows_tokens.c */
extern const struct intake_verbs rows_intake_verbs;   /* rows_intake.c */
extern const struct measure_verbs rows_measure_verbs; /* rows_measures.c */

/* Of struct store_verbs, by file: recovery, uniques, waiting, relatives, executions, measures,
 * outbox, registry. */
#define ROWS_STORE_LIST(X)                                                                         \
    X(checkpoint_newest) X(checkpoint_invalidate) X(read_checkpoints) X(uniques_look)              \
    X(uniques_drop) X(parked_find) X(parked_keys) X(due_find) X(dependencies_insert)               \
    X(dependents_find) X(dependents_decide) X(dependencies_undecide) X(outputs_find)               \
    X(result_drop) X(read_dependencies) X(read_dependents) X(read_outputs) X(read_result)          \
    X(read_events) X(execution_load) X(read_executions) X(counts_load) X(outbox_due)               \
    X(outbox_count) X(outbox_prune) X(outbox_save) X(workers_load) X(worker_put) X(worker_delete)  \
    X(queues_load) X(queue_put) X(queue_delete) X(info_get) X(info_put)

/* Those of stores that several nodes share: registry, waiting. */
#define ROWS_SHARED_LIST(X)                                                                        \
    X(worker_load) X(worker_renew) X(queue_make) X(limits_lock) X(limits_count) X(limits_hold)     \
    X(key_held) X(bucket_load) X(bucket_save)

#define ROWS_PROTOTYPE(verb) __typeof__(*((struct store_verbs *)NULL)->verb) rows_##verb;
ROWS_STORE_LIST(ROWS_PROTOTYPE)
ROWS_SHARED_LIST(ROWS_PROTOTYPE)
#undef ROWS_PROTOTYPE

#define ROWS_ENTRY(verb) .verb = rows_##verb,
#define ROWS_STORE_VERBS                                                                           \
    ROWS_STORE_LIST(ROWS_ENTRY)                                                                    \
    .audit = &rows_audit_verbs,                                                                    \
    .recovery = &rows_recovery_verbs,                                                              \
    .measures = &rows_measure_verbs,                                                               \
    .tokens = &rows_token_verbs
#define ROWS_SHARED_VERBS ROWS_SHARED_LIST(ROWS_ENTRY)

#endif
