#include "store/sqlite/sqlite_sql.h"

#include "base/buf.h"
#include "base/embedded.h"
#include "store/sqlite/sqlite_int.h"

#include <errno.h>

#define STATEMENT_BYTES_MAX 16384 /* the longest hand-written statement is 3 kB */

static const char *const names[SQL_COUNT] = {
#define X(name) #name,
    SQLITE_STATEMENTS(X)
#undef X
};

static void expand(struct buf *out, struct str text)
{
    static const struct {
        struct str token;
        const char *columns;
    } tokens[] = {{{"@state@", 7}, sqlite_state_columns},
                  {{"@spec@", 6}, sqlite_spec_columns},
                  {{"@lean@", 6}, sqlite_lean_columns},
                  {{"@details@", 9}, sqlite_details_join},
                  {{"@joins@", 7}, sqlite_spec_joins},
                  {{"@execution@", 11}, sqlite_execution_columns},
                  {{"@recovery@", 10}, sqlite_recovery_columns},
                  {{"@category@", 10}, sqlite_category_columns},
                  {{"@job@", 5}, sqlite_job_columns},
                  {{"@schedule@", 10}, sqlite_schedule_columns},
                  {{"@recurring@", 11}, sqlite_recurring_columns},
                  {{"@job_dependency@", 16}, sqlite_job_dependency_columns}};

    for (size_t i = 0; i < text.len;) {
        size_t skip = 0;

        for (size_t t = 0; text.data[i] == '@' && t < sizeof tokens / sizeof tokens[0]; t++) {
            if (!str_starts(str_span(text.data + i, text.len - i), tokens[t].token))
                continue;
            buf_text(out, tokens[t].columns);
            skip = tokens[t].token.len;
        }
        if (skip == 0)
            buf_byte(out, text.data[i]);
        i += skip ? skip : 1;
    }
}

sqlite3_stmt *sql_prepare(struct sqlite_sql *sql, struct str text, struct err *err)
{
    struct buf full = BUF_INIT(STATEMENT_BYTES_MAX);
    sqlite3_stmt *stmt = NULL;

    expand(&full, text);
    if (full.failed ||
        sqlite3_prepare_v3(sql->db, full.data, (int)full.len, SQLITE_PREPARE_PERSISTENT, &stmt,
                           NULL) != SQLITE_OK)
        sql_fail(sql->db, "prepare", err);
    buf_deinit(&full);
    return stmt;
}

sqlite3_stmt *sql_get(struct sqlite_sql *sql, enum sqlite_statement name, struct err *err)
{
    sqlite3_stmt *stmt = sql->stmts[name];

    if (!stmt) {
        struct str text = embedded_statement("store/sqlite/sql/", names[name]);

        ASSERT(text.data);
        stmt = sql_prepare(sql, text, err);
        sql->stmts[name] = stmt;
    } else {
        sqlite3_reset(stmt);
    }
    return stmt;
}

/* The system's error number is that of the last I/O error, however long ago; and a failed sync is
 * final whatever its reason (F-D3). */
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

    if (rc == SQLITE_ROW)
        return 1;
    if (rc != SQLITE_DONE)
        rc = sql_fail(sql->db, sqlite3_sql(stmt), err);
    else
        rc = 0;
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
    if (sql->db)
        sqlite3_close(sql->db);
    sql->db = NULL;
}
