/* Names of the statements in sql/recovery.sql. */
#ifndef STORE_POSTGRES_PG_SQL_RECOVERY_H
#define STORE_POSTGRES_PG_SQL_RECOVERY_H

#define PG_RECOVERY_STATEMENTS(X)                                                               \
    X(recovery_put) X(recovery_save) X(recovery_by_id) X(recovery_due) X(recovery_next)         \
    X(recovery_remove) X(recovery_prune) X(checkpoint_before) X(checkpoints_retire)             \
    X(list_recoveries) X(list_candidates)

#endif
