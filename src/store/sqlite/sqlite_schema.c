/* Checks that the schema of the file is the one our migrations make. An attacker could put a
 * trigger on one of our tables, or replace a table with a view that shows readers something else:
 * such a store is refused (F-J5). SQLite itself relies only on the texts in sqlite_master, so these
 * are compared with those of a database in memory. Foreign tables, their indexes and views may live
 * beside ours, but no trigger, and nothing attached to our tables. Any thread, each with its own
 * connection. */
#include "base/buf.h"
#include "base/hash.h"
#include "store/migrate.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_store.h"

#include <strings.h>

#define ROWS_MAX 10000
#define TEXT_BYTES_MAX (16 * 1024 * 1024)

struct object {
    struct str type, name, table, sql;
};

struct objects {
    struct object *rows;
    uint32_t count;
};

/* ---- the two schemas ---- */

static int load(sqlite3 *db, struct arena *arena, struct objects *objects, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT type, name, tbl_name, sql FROM sqlite_master "
                                "ORDER BY name COLLATE BINARY, type COLLATE BINARY", -1, &stmt,
                                NULL);

    objects->count = 0;
    objects->rows = arena_alloc_array(arena, ROWS_MAX, sizeof *objects->rows);
    while (rc == SQLITE_OK && objects->rows && objects->count < ROWS_MAX) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        objects->rows[objects->count++] = (struct object){
            column_str(stmt, 0, arena), column_str(stmt, 1, arena), column_str(stmt, 2, arena),
            column_str(stmt, 3, arena)};
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_DONE && !arena->failed)
        rc = 0;
    else if (rc == SQLITE_OK || rc == SQLITE_DONE)
        rc = err_set(err, ERR_MEMORY, "out of memory for the schema");
    else
        rc = sql_fail(db, "sqlite_master", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int load_expected(struct arena *arena, struct objects *objects, struct err *err)
{
    struct migration migration = {.id = ""};
    sqlite3 *db = NULL;
    int rc = sqlite3_open(":memory:", &db);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, sqlite_migrations.table, NULL, NULL, NULL);
    while (rc == SQLITE_OK &&
           migration_neighbour(sqlite_migrations.folder, migration.id, 1, &migration))
        rc = sqlite3_exec(db, migration.up->data, NULL, NULL, NULL);
    rc = rc == SQLITE_OK ? load(db, arena, objects, err) : sql_fail(db, "schema in memory", err);
    sqlite3_close(db);
    return rc;
}

/* ---- what others may have beside ours ---- */

static void skip(struct str *text, size_t count)
{
    *text = str_span(text->data + count, text->len - count);
}

static bool take_word(struct str *text, const char *word)
{
    size_t len = strlen(word);

    if (text->len < len || strncasecmp(text->data, word, len) != 0)
        return false;
    skip(text, len);
    return true;
}

/* Skips spaces and comments as SQLite does. */
static void skip_spaces(struct str *text)
{
    while (text->len > 0) {
        if (memchr(" \t\n\f\r", text->data[0], 5)) {
            skip(text, 1);
        } else if (take_word(text, "--")) {
            while (text->len > 0 && text->data[0] != '\n')
                skip(text, 1);
        } else if (take_word(text, "/*")) {
            while (text->len > 0 && !take_word(text, "*/"))
                skip(text, 1);
        } else {
            return;
        }
    }
}

/* The byte that ends a name that begins with this one; 0 = a plain name. */
static char quote_end(char begin)
{
    return begin == '[' ? ']' : begin == '"' || begin == '`' || begin == '\'' ? begin : '\0';
}

/* Letters of a name, as SQLite defines them. */
static bool is_plain(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '_' || byte == '$' || (uint8_t)byte >= 0x80;
}

/* The next byte of a name; false at its end. Two quotes inside quotes are one. */
static bool take_byte(struct str *text, char end, char *byte)
{
    if (text->len == 0 || (!end && !is_plain(text->data[0])))
        return false;
    *byte = text->data[0];
    skip(text, 1);
    if (!end || *byte != end)
        return true;
    if (end == ']' || text->len == 0 || text->data[0] != end)
        return false;
    skip(text, 1);
    return true;
}

/* Skips this name, plain or quoted, and the spaces after it; false if the text has another one. */
static bool take_name(struct str *text, struct str name)
{
    char end = text->len > 0 ? quote_end(text->data[0]) : '\0', byte;
    size_t at = 0;

    skip(text, end ? 1 : 0);
    while (take_byte(text, end, &byte)) {
        if (at == name.len || strncasecmp(name.data + at, &byte, 1) != 0)
            return false;
        at++;
    }
    skip_spaces(text);
    return at > 0 && at == name.len;
}

static bool same_name(struct str a, struct str b)
{
    return a.len > 0 && a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static bool is_ours(const struct objects *expected, struct str name)
{
    for (uint32_t i = 0; i < expected->count; i++)
        if (same_name(expected->rows[i].name, name))
            return true;
    return false;
}

/* SQLite would prefer tables of these names to the functions that statements use as tables. */
static bool shadows(struct str name)
{
    return take_word(&name, "json_") || take_word(&name, "pragma_") ||
           take_word(&name, "sqlite_") || take_word(&name, "generate_series");
}

/* SQLite uses only the text: the type and names beside it may say anything. */
static bool is_harmless(const struct objects *expected, const struct object *object)
{
    struct str text = object->sql;

    if (str_starts(object->name, STR("sqlite_stat")) || str_is(object->name, "sqlite_sequence"))
        return take_word(&text, "CREATE TABLE sqlite_");
    if (!text.data) { /* the index of a key: SQLite finds it by its name */
        text = object->name;
        return take_word(&text, "sqlite_autoindex_") && str_starts(text, object->table) &&
               object->table.len < text.len && !is_ours(expected, object->table);
    }
    if (is_ours(expected, object->name) || is_ours(expected, object->table))
        return false;
    if (take_word(&text, "CREATE TABLE ") || take_word(&text, "CREATE VIEW "))
        return take_name(&text, object->name) && same_name(object->name, object->table) &&
               !shadows(object->name) && !take_word(&text, ".");
    if (!take_word(&text, "CREATE INDEX ") && !take_word(&text, "CREATE UNIQUE INDEX "))
        return false;
    if (!take_name(&text, object->name) || !take_word(&text, "ON") || text.len == 0 ||
        is_plain(text.data[0]))
        return false;
    skip_spaces(&text);
    return take_name(&text, object->table) && take_word(&text, "(");
}

/* ---- the comparison ---- */

static bool same(struct str a, struct str b)
{
    return (!a.data && !b.data) || (a.data && b.data && str_eq(a, b));
}

static int refuse(const struct object *object, const char *what, const char *then,
                  struct err *err)
{
    bool belongs = !str_eq(object->name, object->table);

    return err_set_field(err, ERR_CONFLICT, "schema", "the schema of the store is not as Perdura "
                         "made it: %.20s %.80s%s%.80s %s; %s, and look who writes to the store",
                         object->type.data ? object->type.data : "object",
                         object->name.data ? object->name.data : "",
                         belongs ? " on " : "",
                         belongs && object->table.data ? object->table.data : "", what, then);
}

static int compare(const struct objects *expected, const struct objects *found, struct err *err)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < found->count; i++) {
        const struct object *object = &found->rows[i];
        const struct object *ours = at < expected->count ? &expected->rows[at] : NULL;
        int order = !ours ? 1 : str_compare(ours->name, object->name);

        if (order < 0)
            return refuse(ours, "is missing", "restore a backup", err);
        if (order == 0) {
            if (!same(ours->type, object->type) || !same(ours->table, object->table) ||
                !same(ours->sql, object->sql))
                return refuse(object, "was changed", "restore a backup", err);
            at++;
        } else if (!is_harmless(expected, object)) {
            return refuse(object, "was added", "drop it", err);
        }
    }
    return at < expected->count ? refuse(&expected->rows[at], "is missing", "restore a backup",
                                         err)
                                : 0;
}

/* Compares the hash with that of a new store (tools/schema_lists.py), which saves most starts the
 * migrations in memory, about 10 ms. */
static bool is_as_made(const struct objects *found)
{
    const struct embedded *made = embedded_find("store/sqlite/schema.sha256");
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    char hex[HASH_HEX_BYTES + 1] = "";
    uint8_t hash[HASH_BYTES];

    for (uint32_t i = 0; i < found->count; i++) {
        const struct object *object = &found->rows[i];
        const struct str fields[] = {object->type, object->name, object->table, object->sql};

        for (size_t at = 0; at < sizeof fields / sizeof fields[0]; at++) {
            buf_str(&text, fields[at]);
            buf_byte(&text, '\0');
        }
    }
    if (!text.failed && hash_sha256(str_span(text.data, text.len), hash) == 0)
        hash_hex(hash, sizeof hash, hex);
    buf_deinit(&text);
    return made && made->len == HASH_HEX_BYTES + 1 && memcmp(made->data, hex, HASH_HEX_BYTES) == 0;
}

static int check_schema(sqlite3 *db, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct objects expected, found;
    int rc = load(db, &arena, &found, err);

    if (rc == 0 && !is_as_made(&found)) {
        rc = load_expected(&arena, &expected, err);
        if (rc == 0)
            rc = compare(&expected, &found, err);
    }
    arena_deinit(&arena);
    return rc;
}

static bool is_other(const struct objects *expected, const struct object *object)
{
    return !str_starts(object->name, STR("sqlite_")) && !str_is(object->type, "index") &&
           !is_ours(expected, object->name);
}

int sqlite_schema_others(sqlite3 *db, struct arena *arena, struct str **names, uint32_t *count,
                         struct err *err)
{
    struct objects expected, found;

    *count = 0;
    TRY(load(db, arena, &found, err));
    TRY(load_expected(arena, &expected, err));
    *names = arena_alloc_array(arena, found.count + 1, sizeof **names);
    if (!*names)
        return err_set(err, ERR_MEMORY, "out of memory for the schema");
    for (uint32_t i = 0; i < found.count; i++) {
        const struct object *object = &found.rows[i];

        if (is_other(&expected, object))
            (*names)[(*count)++] =
                str_is(object->type, "trigger")
                    ? arena_format(arena, "trigger " STR_FMT, STR_ARG(object->name)) : object->name;
    }
    return 0;
}

/* ---- while it is open ---- */

/* A sum over the whole schema and SQLite's schema version. */
static int sum_schema(sqlite3 *db, uint64_t *sum, struct err *err)
{
    struct buf text = BUF_INIT(TEXT_BYTES_MAX);
    uint8_t hash[HASH_BYTES];
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master "
                                "UNION ALL SELECT 'version', NULL, NULL, schema_version, NULL "
                                "FROM pragma_schema_version", -1, &stmt, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < 5; i++) {
            buf_str(&text, column_view(stmt, i));
            buf_byte(&text, '\0');
        }
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_DONE)
        rc = sql_fail(db, "sqlite_master", err);
    else if (text.failed || hash_sha256(str_span(text.data, text.len), hash) < 0)
        rc = err_set(err, ERR_MEMORY, "out of memory for the schema");
    else
        rc = 0;
    if (rc == 0)
        memcpy(sum, hash, sizeof *sum);
    sqlite3_finalize(stmt);
    buf_deinit(&text);
    return rc;
}

/* Accepted, and reported once: allow_changed_schema. */
static int tell_of(struct sqlite_store *store, sqlite3 *db, uint64_t sum, struct err *err)
{
    struct err why = {0};

    atomic_store(&store->schema_sum, sum);
    if (check_schema(db, &why) == 0)
        return 0;
    if (why.code != ERR_CONFLICT)
        return err_set(err, why.code, "%s", why.text);
    LOG(store->log, LOG_WARN, "store.schema_changed", KC("reason", why.text),
        KC("then", "it is let through (allow_changed_schema)"));
    return 0;
}

/* SQLite reads the schema again only if its version in the file changed, and a forger can keep the
 * version: then we would read other pages than other programs do. Not in the middle of a
 * statement. */
static int read_again(struct sqlite_sql *sql, uint64_t sum, struct err *err)
{
    sqlite3_stmt *stmt = NULL;

    if (sql->schema_sum == sum)
        return 0;
    while ((stmt = sqlite3_next_stmt(sql->db, stmt)) != NULL)
        if (sqlite3_stmt_busy(stmt))
            return 0;
    if (sqlite3_exec(sql->db, "PRAGMA writable_schema = RESET", NULL, NULL, NULL))
        return sql_fail(sql->db, "schema", err);
    sql->schema_sum = sum;
    return 0;
}

int sqlite_schema_reload(const struct sqlite_store *store, struct sqlite_sql *sql, struct err *err)
{
    return read_again(sql, atomic_load(&store->schema_sum), err);
}

int sqlite_schema_follow(struct sqlite_store *store, struct sqlite_sql *sql, struct err *err)
{
    uint64_t sum = 0;

    TRY(sum_schema(sql->db, &sum, err));
    TRY(read_again(sql, sum, err));
    if (sum == atomic_load(&store->schema_sum))
        return 0;
    if (store->any_schema)
        return tell_of(store, sql->db, sum, err);
    TRY(check_schema(sql->db, err));
    atomic_store(&store->schema_sum, sum);
    return 0;
}
