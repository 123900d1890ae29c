/* Prepared statements of one connection, found by name in the embedded .sql files, and the meaning
 * of their failures. Each statement name is declared here once; its text is in
 * sql/NAME-OF-TABLE.sql. */
#ifndef STORE_SQLITE_SQLITE_SQL_H
#define STORE_SQLITE_SQLITE_SQL_H

#include "base/err.h"
#include "base/str.h"
#include "store/rows/rows_statements.h"
#include "store/sqlite/sqlite_classes.h"

#include <sqlite3.h>

#define SQLITE_STATEMENTS(X)                                                                   \
    X(tx_begin) X(tx_commit) X(tx_rollback) X(tx_data_version)                                 \
    X(state_insert) X(spec_insert) X(state_update) X(options_insert) X(details_put)            \
    X(details_delete) X(data_put) X(data_delete)                                               \
    X(task_state) X(task_lean) X(task_full) X(task_data) X(task_deletes_state)                 \
    X(task_deletes_spec)                                                                       \
    X(task_tag_insert) X(task_deletes_options) X(task_deletes_tags) X(task_deletes_events)     \
    X(task_deletes_executions) X(task_deletes_checkpoints) X(task_deletes_dependencies)        \
    X(task_deletes_recovery)                                                                   \
    X(unique_insert) X(unique_owner)                                                           \
    X(lane_insert) X(lane_find) X(lanes_all) X(count_add) X(counts_all)                        \
    X(ready_head) X(pending_orders) X(order_update)                                            \
    X(held_all) X(held_by_worker) X(settled_by_status)                                         \
    X(any_dependency)                                                                          \
    X(event_insert) X(execution_insert) X(execution_update)                                    \
    X(result_put)                                                                              \
    X(checkpoint_insert) X(checkpoint_seqs)                                                    \
    X(checkpoint_thin) X(log_insert) X(log_last) X(head_note) X(heads_first) X(heads_forget)   \
    X(anchor_last) X(anchor_insert) X(anchors_after) X(walk_heads) X(walk_owner) X(walk_lines) \
    X(heads_taken) X(chain_notes) X(chain_lines)                                                 \
    X(log_executions) X(log_any) X(log_chains) X(log_emptied) X(heads_open)                    \
    X(head_alive) X(anchors_trim) X(log_of_level) X(log_empty) X(log_run) X(log_cut)           \
    X(prune_candidates) X(prune_events) X(prune_opening) X(prune_execution_next)               \
    X(prune_keeps_claim)                                                                       \
    X(prune_keeps_start) X(prune_keeps_end) X(prune_executions) X(prune_log_next)              \
    X(prune_logs)                                                                              \
    X(last_time) X(last_keys)                                                                  \
    X(read_task) X(read_task_id)                                                               \
    X(read_logs) X(read_execution_logs) X(list_counts) X(list_probe)                           \
    X(verify_counts) X(verify_token_counts) X(verify_states) X(verify_specs) X(verify_parts)     \
    X(verify_held)                                                                             \
    X(verify_executions)                                                                       \
    X(verify_event_order) X(verify_event_ends) X(verify_open_dependencies)                     \
    X(verify_open_children) X(verify_orphans) X(verify_uniques) X(verify_sums)                 \
    X(verify_log_classes) X(verify_log_owners)                                                 \
    X(verify_checkpoints) X(verify_runs)

/* The row layer's come first, as in enum rows_statement. */
enum sqlite_statement {
#define X(name) SQL_##name,
    ROWS_COMMON_STATEMENTS(X) SQLITE_STATEMENTS(X)
#undef X
        SQL_COUNT
};

struct sqlite_sql {
    sqlite3 *db;
    sqlite3_stmt *stmts[SQL_COUNT];
    struct str lists[ROWS_LISTS_COUNT]; /* texts of lists, which are prepared for every call */
    struct sqlite_classes classes;
    uint64_t schema_sum; /* of the schema this connection uses; 0 = none yet */
};

/* The statement, reset and with no bindings left; prepared on first use. NULL on failure. */
sqlite3_stmt *sql_get(struct sqlite_sql *sql, enum sqlite_statement name, struct err *err);

/* The text of a list. */
struct str sql_text(struct sqlite_sql *sql, enum sqlite_statement list);

/* Runs a statement that returns no rows and resets it. *changes may be NULL. */
int sql_run(struct sqlite_sql *sql, sqlite3_stmt *stmt, int64_t *changes, struct err *err);

/* Next row: 1, end: 0 (reset), or a negative error (reset). */
int sql_step(struct sqlite_sql *sql, sqlite3_stmt *stmt, struct err *err);

/* Prepares text built at run time (lists with filters); the caller finalizes it. */
sqlite3_stmt *sql_prepare(struct sqlite_sql *sql, struct str text, struct err *err);

/* What an SQLite result code means to us (data-model, 'When the store fails'). */
int sql_fail(sqlite3 *db, const char *what, struct err *err);

void sql_close(struct sqlite_sql *sql);

#endif
