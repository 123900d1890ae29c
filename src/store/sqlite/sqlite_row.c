/* Converts rows to structs and back, once for every statement that reads or writes them. The
 * columns of tasks come from core/task/task_fields.h, in its order. */
#include "store/sqlite/sqlite_int.h"

#include "base/hash.h"
#include "core/seal/envelope.h"

/* A NULL row key matches nothing: these two cost nothing where they are absent. */
const char sqlite_details_join[] = "LEFT JOIN task_details x ON x.task = s.details";
const char sqlite_spec_joins[] = "JOIN task_specs p ON p.task = s.task "
                                 "LEFT JOIN task_details x ON x.task = s.details "
                                 "LEFT JOIN task_options o ON o.task = p.options";

void bind_str(sqlite3_stmt *stmt, int at, struct str text)
{
    if (text.data)
        sqlite3_bind_text(stmt, at, text.data, (int)text.len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, at);
}

/* Encrypted ones as bytes: a third less to write and to read. */
void bind_body(sqlite3_stmt *stmt, int at, struct str text)
{
    uint8_t *packed = envelope_like(text) ? sqlite3_malloc64(text.len) : NULL;
    size_t len;

    if (packed && envelope_pack(text, packed, &len)) {
        sqlite3_bind_blob64(stmt, at, packed, len, sqlite3_free);
        return;
    }
    sqlite3_free(packed);
    bind_str(stmt, at, text);
}

/* ---- for SQL ---- */

/* An encrypted text as it is read, from either form; anything else stays. */
static void sealed_text(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct str bytes = str_span(sqlite3_value_blob(values[0]),
                                (size_t)sqlite3_value_bytes(values[0]));
    char *text;

    (void)count;
    if (sqlite3_value_type(values[0]) != SQLITE_BLOB || !envelope_is_packed(bytes)) {
        sqlite3_result_value(context, values[0]);
        return;
    }
    text = sqlite3_malloc64(envelope_unpacked_len(bytes));
    if (!text) {
        sqlite3_result_error_nomem(context);
        return;
    }
    envelope_unpack(bytes, text);
    sqlite3_result_text64(context, text, envelope_unpacked_len(bytes), sqlite3_free, SQLITE_UTF8);
}

/* The other way. */
static void sealed_bytes(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct str text = str_span((const char *)sqlite3_value_text(values[0]),
                               (size_t)sqlite3_value_bytes(values[0]));
    uint8_t *packed = envelope_like(text) ? sqlite3_malloc64(text.len) : NULL;
    size_t len;

    (void)count;
    if (packed && envelope_pack(text, packed, &len)) {
        sqlite3_result_blob64(context, packed, len, sqlite3_free);
        return;
    }
    sqlite3_free(packed);
    sqlite3_result_value(context, values[0]);
}

void sqlite_add_bodies(sqlite3 *db)
{
    sqlite3_create_function(db, "sealed_text", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                            sealed_text, NULL, NULL);
    sqlite3_create_function(db, "sealed_bytes", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                            sealed_bytes, NULL, NULL);
}

/* ---- values ---- */

void bind_sum(sqlite3_stmt *stmt, int at, struct str text)
{
    if (text.data)
        sqlite3_bind_int64(stmt, at, hash_sum31(text));
    else
        sqlite3_bind_null(stmt, at);
}

void bind_uuid(sqlite3_stmt *stmt, int at, const struct uuid *id)
{
    if (uuid_is_nil(id))
        sqlite3_bind_null(stmt, at);
    else
        sqlite3_bind_blob(stmt, at, id->bytes, 16, SQLITE_STATIC);
}

void bind_int(sqlite3_stmt *stmt, int at, int64_t value)
{
    sqlite3_bind_int64(stmt, at, value);
}

void bind_int_or_null(sqlite3_stmt *stmt, int at, int64_t value)
{
    if (value == 0)
        sqlite3_bind_null(stmt, at);
    else
        sqlite3_bind_int64(stmt, at, value);
}

/* SQLite copies a text before it returns it: without memory a text reads as absent (F-D16). */
struct str column_view(sqlite3_stmt *stmt, int at)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);

    return text ? str_span(text, (size_t)sqlite3_column_bytes(stmt, at)) : STR_NONE;
}

struct str column_str(sqlite3_stmt *stmt, int at, struct arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(stmt, at);

    if (!text) {
        arena->failed |= sqlite3_column_type(stmt, at) != SQLITE_NULL;
        return STR_NONE;
    }
    return envelope_keep(str_span(text, (size_t)sqlite3_column_bytes(stmt, at)), arena);
}

struct uuid column_uuid(sqlite3_stmt *stmt, int at)
{
    struct uuid id = {{0}};

    if (sqlite3_column_bytes(stmt, at) == 16)
        memcpy(id.bytes, sqlite3_column_blob(stmt, at), 16);
    return id;
}

int64_t column_int(sqlite3_stmt *stmt, int at, int64_t when_null)
{
    return sqlite3_column_type(stmt, at) == SQLITE_NULL ? when_null
                                                        : sqlite3_column_int64(stmt, at);
}

int64_t sqlite_key_of(const struct uuid *id)
{
    return uuid7_key(id);
}

/* ---- fields ---- */

static inline void bind_unless(sqlite3_stmt *stmt, int at, int64_t value, bool null)
{
    if (null)
        sqlite3_bind_null(stmt, at);
    else
        sqlite3_bind_int64(stmt, at, value);
}

/* Every kind: binds parameter at++ of stmt. The compiler knows the kind from the field's row. */
#define BIND_INT(value, flags, empty, words)                                                       \
    bind_unless(stmt, at++, value,                                                                 \
                ((flags) & FIELD_FILLED) == FIELD_EMPTY && (value) == (empty));
#define BIND_BOOL BIND_INT
#define BIND_TIME(value, flags, empty, words)                                                      \
    bind_unless(stmt, at++, value, !((flags) & FIELD_ALWAYS) && (value) == 0);
#define BIND_UUID(value, flags, empty, words) bind_uuid(stmt, at++, &(value));
#define BIND_TEXT(value, flags, empty, words)                                                      \
    bind_str(stmt, at++, (flags) & FIELD_ALWAYS && !(value).data ? STR("") : (value));
#define BIND_BODY(value, flags, empty, words) bind_body(stmt, at++, value);
#define BIND_WORD(value, flags, empty, words)                                                      \
    bind_str(stmt, at++,                                                                           \
             (value) == (empty) ? STR_NONE : str_of(words##_word(value)));
#define TASK_FIELD_BIND(name, path, kind, flags, empty, words, show, ask)                          \
    BIND_##kind(task->path, flags, empty, words)

/* Every kind: is it different from what NULL stands for? */
#define HAS_INT(value, empty) || (value) != (empty)
#define HAS_BOOL HAS_INT
#define HAS_TIME HAS_INT
#define HAS_WORD HAS_INT
#define HAS_UUID(value, empty) || !uuid_is_nil(&(value))
#define HAS_TEXT(value, empty) || (value).data
#define TASK_FIELD_HAS(name, path, kind, flags, empty, words, show, ask)                           \
    HAS_##kind(task->path, empty)

/* Every kind: reads column at++ of stmt. */
#define READ_INT(to, empty, words)                                                                 \
    to = (empty) ? column_int(stmt, at, empty) : sqlite3_column_int64(stmt, at);
#define READ_BOOL(to, empty, words)                                                                \
    to = ((empty) ? column_int(stmt, at, empty) : sqlite3_column_int64(stmt, at)) != 0;
#define READ_TIME(to, empty, words) to = sqlite3_column_int64(stmt, at);
#define READ_UUID(to, empty, words) to = column_uuid(stmt, at);
#define READ_TEXT(to, empty, words) to = column_str(stmt, at, arena);
#define READ_BODY READ_TEXT
#define READ_WORD(to, empty, words)                                                                \
    to = (empty);                                                                                  \
    words##_parse(column_word(stmt, at, arena), &to);
#define TASK_FIELD_READ(name, path, kind, flags, empty, words, show, ask)                          \
    if (!((flags) & FIELD_UNREAD)) {                                                               \
        READ_##kind(task->path, empty, words) at++;                                                \
    }

/* Valid until the next step. STR_NONE is not one of our words. */
static struct str column_word(sqlite3_stmt *stmt, int at, struct arena *arena)
{
    const char *word = (const char *)sqlite3_column_text(stmt, at);

    if (!word)
        arena->failed |= sqlite3_column_type(stmt, at) != SQLITE_NULL;
    return str_of(word);
}

int sqlite_bind_state(sqlite3_stmt *stmt, const struct task *task)
{
    int at = 1;

    bind_int(stmt, at++, task->key);
    bind_int(stmt, at++, task->row.lane);
    TASK_FIELDS_ONLY(NOT, NOT, BIND, NOT, NOT, NOT)
    return at;
}

void sqlite_bind_details(sqlite3_stmt *stmt, const struct task *task)
{
    int at = 1;

    bind_int(stmt, at++, task->key);
    TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, BIND, NOT)
}

int sqlite_bind_spec(sqlite3_stmt *stmt, const struct task *task)
{
    int at = 1;

    bind_int(stmt, at++, task->key);
    bind_int(stmt, at++, task->row.lane);
    TASK_FIELDS_ONLY(BIND, NOT, NOT, NOT, NOT, NOT)
    return at;
}

void sqlite_bind_options(sqlite3_stmt *stmt, const struct task *task)
{
    int at = 1;

    bind_int(stmt, at++, task->key);
    TASK_FIELDS_ONLY(NOT, BIND, NOT, NOT, NOT, NOT)
}

bool sqlite_has_details(const struct task *task)
{
    return false TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, HAS, NOT);
}

bool sqlite_has_options(const struct task *task)
{
    return false TASK_FIELDS_ONLY(NOT, HAS, NOT, NOT, NOT, NOT);
}

void sqlite_write_names(struct buf *out, const char *before, const struct field *fields,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        buf_format(out, "%s%s%s", i ? ", " : "", before, fields[i].name);
}

/* ---- tasks ---- */

static void details_from_row(sqlite3_stmt *stmt, int at, struct arena *arena, struct task *task)
{
    TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, READ, NOT)
}

void sqlite_state_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task,
                           int64_t *lane)
{
    int at = first;

    task->key = sqlite3_column_int64(stmt, at++);
    *lane = task->row.lane = sqlite3_column_int64(stmt, at++);
    TASK_FIELDS_ONLY(NOT, NOT, READ, NOT, NOT, NOT)
    task->parked = sqlite3_column_type(stmt, at++) != SQLITE_NULL;
    task->row.details = sqlite3_column_type(stmt, at++) != SQLITE_NULL;
    if (task->row.details) /* the task was zeroed */
        details_from_row(stmt, at, arena, task);
    task->row.status = task->status;
    task->row.order_key = task->order_key;
    task->row.parked = task->parked;
    task->row.version = task->version;
    task->row.held = task->lease.held;
}

static void options_from_row(sqlite3_stmt *stmt, int at, struct arena *arena, struct task *task)
{
    TASK_FIELDS_ONLY(NOT, READ, NOT, NOT, NOT, NOT)
}

/* The spec of a task without a row in task_options; the caller zeroed the task. */
#define DEFAULT_INT(to, empty) to = (empty);
#define DEFAULT_BOOL DEFAULT_INT
#define DEFAULT_WORD DEFAULT_INT
#define DEFAULT_TIME(to, empty)
#define DEFAULT_UUID(to, empty)
#define DEFAULT_TEXT(to, empty)
#define TASK_FIELD_DEFAULT(name, path, kind, flags, empty, words, show, ask)                       \
    DEFAULT_##kind(task->path, empty)

static void options_default(struct task *task)
{
    TASK_FIELDS_ONLY(NOT, DEFAULT, NOT, NOT, NOT, NOT)
}

void sqlite_spec_from_row(sqlite3_stmt *stmt, int first, struct arena *arena, struct task *task)
{
    int at = first;

    TASK_FIELDS_ONLY(READ, NOT, NOT, NOT, NOT, NOT)
    if (sqlite3_column_type(stmt, at++) != SQLITE_NULL)
        options_from_row(stmt, at, arena, task);
    else
        options_default(task);
    task->has_spec = true;
}
