#include "store/sqlite/sqlite_sql.h"

#include "base/buf.h"
#include "base/embedded.h"
#include "store/rows/rows.h"
#include "store/sqlite/sqlite_int.h"

#include <errno.h>

#define STATEMENT_BYTES_MAX 16384 /* the longest hand-written statement is 3 kB */

static const char *const names[SQL_COUNT] = {
#define X(name) #name,
    ROWS_COMMON_STATEMENTS(X) SQLITE_STATEMENTS(X)
#undef X
};

/* ---- tokens ---- */

/* What is read of a task, with the aliases s, x, p and o. Specs and states have the same keys. */
static void write_state(struct buf *out)
{
    sqlite_write_names(out, "s.", task_states, TASK_STATES_NEAR);
    buf_text(out, ", s.details, ");
    sqlite_write_names(out, "x.", SQLITE_DETAILS);
}

static void write_spec(struct buf *out, bool lean)
{
    for (uint32_t i = 2; i < TASK_SPECS_NEAR; i++)
        if (!(task_specs[i].flags & FIELD_UNREAD))
            buf_format(out, "%s%s, ",
                       lean && task_specs[i].flags & FIELD_LONG ? "NULL AS " : "p.",
                       task_specs[i].name);
    buf_text(out, "p.options, ");
    sqlite_write_names(out, "o.", SQLITE_OPTIONS);
}

static void write_full(struct buf *out)
{
    write_spec(out, false);
}

static void write_lean(struct buf *out)
{
    write_spec(out, true);
}

/* " (task, lane, ...) VALUES (?1, ?2, ...)"; `last` points to the other table, or is NULL. */
static void write_insert(struct buf *out, const char *first, const struct field *fields,
                         uint32_t count, const char *last)
{
    uint32_t parameters = count + (first != NULL) + (last != NULL);

    buf_format(out, "(%s%s", first ? first : "", first ? ", " : "");
    sqlite_write_names(out, "", fields, count);
    buf_format(out, "%s%s) VALUES (?1", last ? ", " : "", last ? last : "");
    for (uint32_t i = 2; i <= parameters; i++)
        buf_format(out, ", ?%u", i);
    buf_byte(out, ')');
}

static void write_state_insert(struct buf *out)
{
    write_insert(out, NULL, task_states, TASK_STATES_NEAR, "details");
}

static void write_spec_insert(struct buf *out)
{
    write_insert(out, NULL, task_specs, TASK_SPECS_NEAR, "options");
}

static void write_options_insert(struct buf *out)
{
    write_insert(out, "task", SQLITE_OPTIONS, NULL);
}

static void write_details_insert(struct buf *out)
{
    write_insert(out, "task", SQLITE_DETAILS, NULL);
}

/* The parameters are those of the insert, then the version that must be stored. */
static void write_state_update(struct buf *out)
{
    for (uint32_t i = 3; i < TASK_STATES_NEAR; i++) /* after task, lane and id, which stay */
        buf_format(out, "%s = ?%u, ", task_states[i].name, i + 1);
    buf_format(out, "details = ?%d WHERE task = ?1 AND version = ?%d", TASK_STATES_NEAR + 1,
               TASK_STATES_NEAR + 2);
}

/* Tokens that are not of tasks belong to the row layer. */
static void write_token(struct buf *out, struct str token)
{
    static const struct {
        const char *name;
        const char *text;
        void (*write)(struct buf *out);
    } tokens[] = {{"state", NULL, write_state},
                  {"spec", NULL, write_full},
                  {"lean", NULL, write_lean}, /* the payload is NULL */
                  {"state_insert", NULL, write_state_insert},
                  {"state_update", NULL, write_state_update},
                  {"spec_insert", NULL, write_spec_insert},
                  {"options_insert", NULL, write_options_insert},
                  {"details_insert", NULL, write_details_insert},
                  {"details", sqlite_details_join, NULL},
                  {"joins", sqlite_spec_joins, NULL}};

    for (size_t t = 0; t < sizeof tokens / sizeof tokens[0]; t++) {
        if (!str_is(token, tokens[t].name))
            continue;
        if (tokens[t].write)
            tokens[t].write(out);
        else
            buf_text(out, tokens[t].text);
        return;
    }
    ASSERT(rows_write_token(out, token, '?'));
}

/* ---- statements ---- */

sqlite3_stmt *sql_prepare(struct sqlite_sql *sql, struct str text, struct err *err)
{
    struct buf full = BUF_INIT(STATEMENT_BYTES_MAX);
    sqlite3_stmt *stmt = NULL;

    classes_forget(&sql->classes);
    rows_expand(&full, text, write_token);
    if (full.failed ||
        sqlite3_prepare_v3(sql->db, full.data, (int)full.len, SQLITE_PREPARE_PERSISTENT, &stmt,
                           NULL) != SQLITE_OK)
        sql_fail(sql->db, "prepare", err);
    buf_deinit(&full);
    return stmt;
}

struct str sql_text(struct sqlite_sql *sql, enum sqlite_statement list)
{
    ASSERT(list < ROWS_LISTS_COUNT);
    if (!sql->lists[list].data)
        sql->lists[list] = embedded_statement("store/sqlite/sql/", names[list]);
    ASSERT(sql->lists[list].data);
    return sql->lists[list];
}

/* Statements of sql/logs.sql verify what they read by hashes and codes, those of sql/verify.sql
 * report everything that is wrong. */
static bool judges(const char *name)
{
    static const char *const beginnings[] = {"verify_", "walk_", "chain_", "head_", "heads_",
                                             "log_", "anchor"};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

sqlite3_stmt *sql_get(struct sqlite_sql *sql, enum sqlite_statement name, struct err *err)
{
    sqlite3_stmt *stmt = sql->stmts[name];

    if (!stmt) {
        struct str text = embedded_statement("store/sqlite/sql/", names[name]);

        ASSERT(text.data);
        stmt = sql_prepare(sql, text, err);
        if (stmt && classes_add(&sql->classes, stmt, judges(names[name]), err) < 0) {
            sqlite3_finalize(stmt);
            stmt = NULL;
        }
        sql->stmts[name] = stmt;
    } else {
        sqlite3_reset(stmt);
    }
    return stmt;
}

/* The system's error number is that of the last I/O error, however long ago. A failed sync is final
 * whatever its reason (F-D3). */
static bool is_full(sqlite3 *db, int rc)
{
    int number = sqlite3_system_errno(db);

    if ((rc & 0xFF) != SQLITE_IOERR && (rc & 0xFF) != SQLITE_CANTOPEN)
        return false;
    return rc != SQLITE_IOERR_FSYNC && rc != SQLITE_IOERR_DIR_FSYNC &&
           (number == EROFS || number == ENOSPC || number == EDQUOT);
}

int sql_fail(sqlite3 *db, const char *what, struct err *err)
{
    int rc = sqlite3_extended_errcode(db);
    const char *text = sqlite3_errmsg(db);

    if (is_full(db, rc))
        rc = SQLITE_FULL;
    if (rc == SQLITE_IOERR_READ || rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_CORRUPT)
        return err_set(err, ERR_STORAGE_READ, "a page of the store cannot be read (%s: %s); run "
                       "'perdura verify', restore a backup if it stays so", what, text);
    switch (rc & 0xFF) {
    case SQLITE_NOTADB:
        return err_set(err, ERR_STORAGE, "the file is not an SQLite database, so no Perdura store "
                       "either; choose another path");
    case SQLITE_FULL:
    case SQLITE_READONLY:
        return err_set(err, ERR_STORAGE_FULL, "the store cannot be written (%s: %s); free space or "
                       "make it writable, the server then continues by itself", what, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, ERR_UNAVAILABLE, "the store is locked by another program (%s: %s); "
                       "try again", what, text);
    case SQLITE_NOMEM:
        return err_set(err, ERR_MEMORY, "out of memory (%s); try again", what);
    case SQLITE_CONSTRAINT:
        return err_set(err, ERR_INTERNAL, "a rule of the store refused it (%s: %s)", what, text);
    case SQLITE_INTERRUPT:
        return err_set(err, ERR_UNAVAILABLE, "the query took too long; narrow its filters");
    default:
        return err_set(err, ERR_STORAGE, "the store failed (%s: %s, code %d)", what, text, rc);
    }
}

int sql_step(struct sqlite_sql *sql, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW) {
        rc = classes_check(&sql->classes, stmt, err);
        if (rc == 0)
            return 1;
    } else {
        rc = rc == SQLITE_DONE ? 0 : sql_fail(sql->db, sqlite3_sql(stmt), err);
    }
    sqlite3_reset(stmt);
    return rc;
}

int sql_run(struct sqlite_sql *sql, sqlite3_stmt *stmt, int64_t *changes, struct err *err)
{
    int rc;

    do {
        rc = sql_step(sql, stmt, err);
    } while (rc > 0);
    if (rc == 0 && changes)
        *changes = sqlite3_changes64(sql->db);
    return rc;
}

void sql_close(struct sqlite_sql *sql)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(sql->stmts[i]);
        sql->stmts[i] = NULL;
    }
    classes_deinit(&sql->classes);
    if (sql->db)
        sqlite3_close(sql->db);
    sql->db = NULL;
}
