/* Checks the store against itself: SQLite's own checks, then ours (each a statement of
 * sql/verify.sql that returns one line per finding), then the hashes of the checkpoints. Only
 * reads; works on a store in use and on one opened only to look. */
#include "core/task/checkpoint.h"
#include "core/task/recovery_fields.h"
#include "base/hash.h"
#include "core/seal/envelope.h"
#include "store/sqlite/sqlite_cursor.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_read.h"
#include "store/check_store.h"

#define LINES_MAX 100 /* per check: a hundred findings are enough to act on */
#define LINE_BYTES 512
#define CHECKPOINT_ARENA_BYTES (16 * 1024 * 1024) /* three parts of 1 MiB, with room */

struct verify {
    struct sqlite_sql *sql;
    void (*tell)(void *ctx, const char *line);
    void *ctx;
    int64_t findings;
    int64_t findings_before; /* when the current check began */
};

static const enum sqlite_statement checks[] = {
    SQL_verify_counts,      SQL_verify_token_counts, SQL_verify_states,     SQL_verify_specs,
    SQL_verify_parts,       SQL_verify_held,       SQL_verify_executions,
    SQL_verify_event_order, SQL_verify_event_ends, SQL_verify_open_dependencies,
    SQL_verify_open_children, SQL_verify_orphans, SQL_verify_runs,
    SQL_verify_uniques,     SQL_verify_sums};

/* False when the check has reported enough. */
static bool tell(void *ctx, const char *line)
{
    struct verify *verify = ctx;

    if (verify->findings - verify->findings_before == LINES_MAX) {
        verify->tell(verify->ctx, "there are more findings of the kind above");
        return false;
    }
    verify->findings++;
    verify->tell(verify->ctx, line);
    return true;
}

static void uuid_text(sqlite3_context *context, int count, sqlite3_value **values)
{
    char text[UUID_TEXT_BYTES];
    struct uuid id;

    (void)count;
    if (sqlite3_value_bytes(values[0]) != 16) {
        sqlite3_result_text(context, "(no id)", -1, SQLITE_STATIC);
        return;
    }
    memcpy(id.bytes, sqlite3_value_blob(values[0]), 16);
    uuid_format(&id, text);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void text_sum(sqlite3_context *context, int count, sqlite3_value **values)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    bool is_text = sqlite3_value_type(values[0]) == SQLITE_TEXT;
    struct str text = str_span((const char *)sqlite3_value_blob(values[0]),
                               (size_t)sqlite3_value_bytes(values[0]));

    (void)count;
    if (!is_text && !envelope_is_packed(text)) { /* damage */
        sqlite3_result_int64(context, -1);
        return;
    }
    if (!is_text)
        text = envelope_keep(text, &arena);
    if (text.data || sqlite3_value_bytes(values[0]) == 0)
        sqlite3_result_int64(context, hash_sum31(text.data ? text : STR("")));
    else
        sqlite3_result_error_nomem(context);
}

/* A finding per row. `describe` writes it; false: the row says that all is well. */
static int tell_rows(struct verify *verify, sqlite3_stmt *stmt,
                     bool (*describe)(sqlite3_stmt *stmt, char *line), struct err *err)
{
    char line[LINE_BYTES];
    int rc;

    verify->findings_before = verify->findings;
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(verify->sql, stmt, err)) > 0)
        if (describe(stmt, line) && !tell(verify, line))
            break;
    return rc < 0 ? rc : 0;
}

static bool describe_integrity(sqlite3_stmt *stmt, char *line)
{
    const char *text = (const char *)sqlite3_column_text(stmt, 0);

    snprintf(line, LINE_BYTES, "integrity_check: %s", text ? text : "no answer");
    return !text || strcmp(text, "ok") != 0;
}

/* integrity_check returns one line 'ok' or the findings; a page that cannot be read is a
 * finding. */
static int check_integrity(struct verify *verify, struct str pragma, struct err *err)
{
    sqlite3_stmt *stmt = sql_prepare(verify->sql, pragma, err);
    int rc = tell_rows(verify, stmt, describe_integrity, err);

    sqlite3_finalize(stmt);
    return rc;
}

static bool describe_foreign_key(sqlite3_stmt *stmt, char *line)
{
    snprintf(line, LINE_BYTES, "%s: row %lld refers to a row of %s that is not there",
             (const char *)sqlite3_column_text(stmt, 0),
             (long long)sqlite3_column_int64(stmt, 1),
             (const char *)sqlite3_column_text(stmt, 2));
    return true;
}

static int check_foreign_keys(struct verify *verify, struct err *err)
{
    sqlite3_stmt *stmt = sql_prepare(verify->sql, STR("PRAGMA foreign_key_check"), err);
    int rc = tell_rows(verify, stmt, describe_foreign_key, err);

    sqlite3_finalize(stmt);
    return rc;
}

static bool describe_text(sqlite3_stmt *stmt, char *line)
{
    const char *text = (const char *)sqlite3_column_text(stmt, 0);

    snprintf(line, LINE_BYTES, "%s", text ? text : "a row without an id");
    return true;
}

static int run_check(struct verify *verify, enum sqlite_statement name, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(verify->sql, name, err);
    int rc = tell_rows(verify, stmt, describe_text, err);

    sqlite3_reset(stmt); /* NULL is fine */
    return rc;
}

static int check_checkpoints(struct verify *verify, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(verify->sql, SQL_verify_checkpoints, err);
    struct rows rows = {.driver = &sqlite_rows_driver};
    const struct rows_cursor cursor = {.rows = &rows, .handle = stmt};
    struct arena arena = ARENA_INIT(CHECKPOINT_ARENA_BYTES);
    int rc;

    verify->findings_before = verify->findings;
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(verify->sql, stmt, err)) > 0) {
        struct checkpoint checkpoint = {.seq = 0};
        struct uuid task_id = column_uuid(stmt, 11);
        char id[UUID_TEXT_BYTES];
        char line[LINE_BYTES];

        arena_reset(&arena);
        rc = rows_read(&cursor, 0, &checkpoint_table, &arena, &checkpoint, err);
        if (rc < 0) /* not the checkpoint's fault */
            break;
        if (checkpoint_intact(&task_id, &checkpoint))
            continue;
        uuid_format(&task_id, id);
        snprintf(line, sizeof line, "task_checkpoints: checkpoint %lld of task %s is damaged: its "
                 "hash is another one", (long long)checkpoint.seq, id);
        if (!tell(verify, line))
            break;
    }
    sqlite3_reset(stmt);
    arena_deinit(&arena);
    return rc < 0 ? rc : 0;
}

static int run_all(struct verify *verify, struct err *err)
{
    int rc = check_integrity(verify, STR("PRAGMA integrity_check(100)"), err);

    if (rc == 0)
        rc = check_foreign_keys(verify, err);
    for (size_t i = 0; rc == 0 && i < sizeof checks / sizeof checks[0]; i++)
        rc = run_check(verify, checks[i], err);
    if (rc == 0)
        rc = check_checkpoints(verify, err);
    verify->findings_before = verify->findings;
    return rc == 0 ? sqlite_verify_classes(verify->sql, tell, verify, err) : rc;
}

static int add_functions(sqlite3 *db, struct err *err)
{
    if (sqlite3_create_function(db, "uuid_text", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                uuid_text, NULL, NULL) ||
        sqlite3_create_function(db, "text_sum", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                text_sum, NULL, NULL))
        return sql_fail(db, "sqlite3_create_function", err);
    return 0;
}

/* The tables that hold log lines and the audit trail. An index that disagrees with its table, a
 * value of another class or a missing row would show readers other lines than the walk. */
int sqlite_verify_logs(struct store *base, void (*tell_line)(void *ctx, const char *line),
                       void *ctx, struct err *err)
{
    static const char *const tables[] = {"execution_logs", "log_heads", "log_anchors",
                                         "store_info", "execution_rows", "task_states",
                                         "task_specs", "lanes", "audit_log"};
    struct verify verify = {.sql = &sqlite_of(base)->sql, .tell = tell_line, .ctx = ctx};
    char text[64];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(text, sizeof text, "PRAGMA integrity_check(%s)", tables[i]);
        rc = check_integrity(&verify, str_of(text), err);
    }
    if (rc == 0)
        rc = add_functions(verify.sql->db, err);
    if (rc == 0)
        rc = run_check(&verify, SQL_verify_log_classes, err);
    return rc == 0 ? run_check(&verify, SQL_verify_log_owners, err) : rc;
}

/* Runs in one snapshot, unless called within a transaction. */
int sqlite_verify(struct store *base, void (*tell_line)(void *ctx, const char *line), void *ctx,
                  int64_t *findings, struct err *err)
{
    struct verify verify = {.sql = &sqlite_of(base)->sql, .tell = tell_line, .ctx = ctx};
    sqlite3 *db = verify.sql->db;
    bool own = sqlite3_get_autocommit(db) != 0;
    int rc;

    TRY(add_functions(db, err));
    if (own && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL))
        return sql_fail(db, "BEGIN", err);
    rc = run_all(&verify, err);
    if (own)
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    *findings = verify.findings;
    return rc;
}

static void count_only(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static int read_check(struct store_reader *reader, uint32_t number, int64_t *findings,
                      struct err *err)
{
    struct verify verify = {.sql = &reader->sql, .tell = count_only};
    int rc;

    *findings = -1;
    if (number >= sizeof checks / sizeof checks[0])
        return 0;
    TRY(add_functions(reader->sql.db, err));
    reader_begin(reader);
    rc = reader_end(reader, run_check(&verify, checks[number], err));
    *findings = verify.findings;
    return rc;
}

const struct check_verbs sqlite_check_verbs = {.inspect = sqlite_inspect,
                                               .read_check = read_check};
