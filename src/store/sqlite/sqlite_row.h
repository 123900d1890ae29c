/* Rows of tasks and executions to structs and back, and single values (sqlite_row.c). */
#ifndef STORE_SQLITE_SQLITE_ROW_H
#define STORE_SQLITE_SQLITE_ROW_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/task/execution_fields.h"
#include "core/task/task_fields.h"

#include <sqlite3.h>

/* Absent texts, nil ids and, with _or_null, zeros are NULL. */
void bind_str(sqlite3_stmt *stmt, int at, struct str text);
/* A text that may be long, and may be encrypted; to be read with column_str. */
void bind_body(sqlite3_stmt *stmt, int at, struct str text);
void sqlite_add_bodies(sqlite3 *db); /* sealed_text() and sealed_bytes(): the same in SQL */
void bind_sum(sqlite3_stmt *stmt, int at, struct str text); /* of its bytes; NULL for none */
void bind_uuid(sqlite3_stmt *stmt, int at, const struct uuid *id);
void bind_int(sqlite3_stmt *stmt, int at, int64_t value);
void bind_int_or_null(sqlite3_stmt *stmt, int at, int64_t value);
struct str column_str(sqlite3_stmt *stmt, int at, struct arena *arena); /* STR_NONE on NULL */
struct str column_view(sqlite3_stmt *stmt, int at); /* until the next step; STR_NONE on NULL */
struct uuid column_uuid(sqlite3_stmt *stmt, int at);                    /* nil on NULL */
int64_t column_int(sqlite3_stmt *stmt, int at, int64_t when_null);

/* The parameters of inserts, as sqlite_sql.c names them; the two with a result return the place
 * behind the last one bound: `parked` and `details`, or `options`, follow. */
int sqlite_bind_state(sqlite3_stmt *stmt, const struct task *task);
int sqlite_bind_spec(sqlite3_stmt *stmt, const struct task *task);
void sqlite_bind_details(sqlite3_stmt *stmt, const struct task *task);
void sqlite_bind_options(sqlite3_stmt *stmt, const struct task *task);
bool sqlite_has_details(const struct task *task);
bool sqlite_has_options(const struct task *task);
/* "s.task, s.lane, ..." with `before` "s.". */
void sqlite_write_names(struct buf *out, const char *before, const struct field *fields,
                        uint32_t count);

/* The columns in task_options and task_details: fields and their count. */
#define SQLITE_OPTIONS task_specs + TASK_SPECS_NEAR, TASK_SPECS_OPTIONS
#define SQLITE_DETAILS task_states + TASK_STATES_NEAR, TASK_STATES_DETAILS

/* The tables that a task's columns come from, beside `task_states s`: @details@ and @joins@. */
extern const char sqlite_details_join[];
extern const char sqlite_spec_joins[];
#define TASK_FIELD_LOADED(name, path, kind, flags, empty, words, show, ask)                        \
    +!((flags) & FIELD_UNREAD)
enum {
    SQLITE_STATE_COLUMNS_COUNT = TASK_STATES_NEAR + 1 + TASK_STATES_DETAILS,
    SQLITE_SPEC_COLUMNS_COUNT = 1 TASK_FIELDS_ONLY(LOADED, LOADED, NOT, NOT, NOT, NOT),
};

/* Read a row whose columns start at `first`. namespace, queue and type come from the lane: a writer
 * resolves it in memory, a reader selects `l.namespace, l.queue, l.type` itself. */
void sqlite_state_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task,
                           int64_t *lane);
void sqlite_spec_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task);

/* The row key inside an id, and whether the id can be one of ours at all. */
int64_t sqlite_key_of(const struct uuid *id);

#endif
