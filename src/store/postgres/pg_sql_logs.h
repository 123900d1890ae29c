/* Names of the statements in sql/logs.sql. */
#ifndef STORE_POSTGRES_PG_SQL_LOGS_H
#define STORE_POSTGRES_PG_SQL_LOGS_H

#define PG_LOG_STATEMENTS(X)                                                                    \
    X(logs_last) X(logs_insert) X(heads_take) X(anchor_lock) X(anchor_last) X(anchor_insert)    \
    X(anchors_after) X(heads_alive) X(heads_stand) X(anchors_trim) X(walk_heads) X(walk_lines)  \
    X(logs_lasts) X(logs_any) X(heads_put) X(heads_open) X(heads_forget) X(logs_chains)           \
    X(logs_emptied)                                                                             \
    X(logs_of_level) X(logs_empty) X(log_runs) X(logs_cut) X(chain_notes_lock)     \
    X(chain_notes) X(chain_lines)

#endif
