/* The statements of the row layer, by name. Each store has all of them in its .sql files, with the
 * same parameters and the same columns; those at the end only stores have that several nodes
 * share. */
#ifndef STORE_ROWS_ROWS_STATEMENTS_H
#define STORE_ROWS_ROWS_STATEMENTS_H

#define ROWS_RECOVERY_STATEMENTS(X)                                                                \
    X(recovery_put) X(recovery_save) X(recovery_by_id) X(recovery_due) X(recovery_next)            \
    X(recovery_remove) X(recovery_prune) X(recovery_candidates) X(checkpoint_before)               \
    X(checkpoint_invalidate) X(checkpoints_retire) X(read_checkpoints)

#define ROWS_MEASURE_STATEMENTS(X)                                                                 \
    X(hours_put) X(hours_prune) X(hours_sums) X(waits_longest) X(counts_by_queue) X(counts_named)

/* Lists for people: any of their filters may be NULL. */
#define ROWS_LIST_STATEMENTS(X) X(list_recoveries)

#define ROWS_COMMON_STATEMENTS(X)                                                                  \
    ROWS_LIST_STATEMENTS(X) ROWS_RECOVERY_STATEMENTS(X) ROWS_MEASURE_STATEMENTS(X)

#define ROWS_SHARED_STATEMENTS(X)

#define ROWS_STATEMENTS(X) ROWS_COMMON_STATEMENTS(X) ROWS_SHARED_STATEMENTS(X)

#define ROWS_ONE(name) +1
#define ROWS_LISTS_COUNT (0 ROWS_LIST_STATEMENTS(ROWS_ONE))
#define ROWS_COMMON_COUNT (0 ROWS_COMMON_STATEMENTS(ROWS_ONE))

enum rows_statement {
#define X(name) ROWS_##name,
    ROWS_STATEMENTS(X)
#undef X
};

#endif
