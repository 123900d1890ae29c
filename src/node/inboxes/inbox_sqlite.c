/* An inbox in an SQLite file, which other programs write to. The folder of the file is watched, so
 * that a write to the file or its WAL is seen, and another file that takes its place. Reads are
 * one short transaction and marks another; neither lasts as long as a commit of ours. */
#include "node/inboxes/inbox_source.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
#define BUSY_STEP_MS 10
#define EVENTS_BYTES 8192

#define CREATED "substr(CAST(created_at AS TEXT), 1, " INBOX_TIME_BYTES ")"
#define WAITS "taken_at IS NULL AND error IS NULL"

struct sqlite_inbox {
    struct inbox_source base;
    sqlite3 *db;
    char path[PATH_MAX];
    char folder[PATH_MAX];
    const char *file; /* the name in it */
    struct stat opened;
};

static struct sqlite_inbox *sqlite_of(struct inbox_source *source)
{
    return (struct sqlite_inbox *)(void *)source;
}

static int fail(const struct sqlite_inbox *inbox, struct err *err)
{
    const char *table = inbox->base.table;
    const char *text = inbox->db ? sqlite3_errmsg(inbox->db) : "no memory";
    int code = inbox->db ? sqlite3_errcode(inbox->db) : SQLITE_NOMEM;

    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return err_set(err, ERR_UNAVAILABLE, "another program has locked %s for %d seconds; it is "
                       "tried again", inbox->path, BUSY_MS / 1000);
    if (strncmp(text, "no such table", 13) == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no table %s in %s; 'perdura inbox sql --for "
                       "sqlite' prints the statements that make it", table, inbox->path);
    if (strncmp(text, "no such column", 14) == 0)
        return err_set(err, ERR_INVALID, "the table %s is no inbox: %s; compare it with 'perdura "
                       "inbox sql --for sqlite'", table, text);
    if (code == SQLITE_READONLY)
        return err_set(err, ERR_FORBIDDEN, "the file %s cannot be written (%s), so that rows "
                       "cannot be marked; give the server's user the right to", inbox->path, text);
    return err_set(err, ERR_UNAVAILABLE, "SQLite says of %s: %s", inbox->path, text);
}

static int run(struct sqlite_inbox *inbox, const char *text, struct err *err)
{
    return sqlite3_exec(inbox->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(inbox, err);
}

static int prepare(struct sqlite_inbox *inbox, sqlite3_stmt **statement, struct err *err,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

static int prepare(struct sqlite_inbox *inbox, sqlite3_stmt **statement, struct err *err,
                   const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sqlite3_prepare_v2(inbox->db, text, -1, statement, NULL) == SQLITE_OK
               ? 0 : fail(inbox, err);
}

/* ---- the file ---- */

static void sqlite_close(struct inbox_source *source)
{
    struct sqlite_inbox *inbox = sqlite_of(source);

    sqlite3_close(inbox->db);
    inbox->db = NULL;
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

/* Before it is opened, so that no change is missed. */
static int watch(struct sqlite_inbox *inbox, struct err *err)
{
    inbox->base.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inbox->base.fd < 0 ||
        inotify_add_watch(inbox->base.fd, inbox->folder,
                          IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM) < 0)
        return err_set(err, ERR_IO, "the folder %.300s cannot be watched: %s", inbox->folder,
                       strerror(errno));
    return 0;
}

/* A stop does not wait for a lock. */
static int on_busy(void *ctx, int tries)
{
    struct pollfd stop = {.fd = ((struct sqlite_inbox *)ctx)->base.stop, .events = POLLIN};

    return tries < BUSY_MS / BUSY_STEP_MS && poll(&stop, 1, BUSY_STEP_MS) == 0;
}

static int open_file(struct sqlite_inbox *inbox, struct err *err)
{
    if (stat(inbox->path, &inbox->opened) < 0)
        return err_set(err, ERR_NOT_FOUND, "the file %.300s cannot be opened: %s", inbox->path,
                       strerror(errno));
    if (sqlite3_open_v2(inbox->path, &inbox->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return fail(inbox, err);
    sqlite3_busy_handler(inbox->db, on_busy, inbox);
    sqlite3_db_config(inbox->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (sqlite3_db_readonly(inbox->db, "main") == 1)
        return err_set(err, ERR_FORBIDDEN, "the file %.200s cannot be written, so that rows cannot "
                       "be marked; give the server's user the right to", inbox->path);
    return 0;
}

static int sqlite_connect(struct inbox_source *source, struct err *err)
{
    struct sqlite_inbox *inbox = sqlite_of(source);
    sqlite3_stmt *statement = NULL;
    int rc;

    TRY(watch(inbox, err));
    TRY(open_file(inbox, err));
    rc = prepare(inbox, &statement, err, "SELECT i.id, i.type, i.payload, i.options, "
                 "i.created_at, i.taken_at, i.task_id, i.error FROM %s i LIMIT 0", source->table);
    sqlite3_finalize(statement);
    return rc;
}

static int check_file(struct sqlite_inbox *inbox, struct err *err)
{
    struct stat now;

    if (stat(inbox->path, &now) == 0 && now.st_ino == inbox->opened.st_ino &&
        now.st_dev == inbox->opened.st_dev)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "the file %.300s was replaced or removed; it is opened "
                   "again", inbox->path);
}

/* ---- a look ---- */

static int step_sizes(struct sqlite_inbox *inbox, sqlite3_stmt *statement, struct arena *arena,
                      struct inbox_size **sizes, uint32_t *count, struct err *err)
{
    int step = SQLITE_ROW;

    *count = 0;
    *sizes = TRY_MEMORY(arena_alloc_array(arena, INBOX_ROWS_MAX, sizeof **sizes));
    while (*count < INBOX_ROWS_MAX && (step = sqlite3_step(statement)) == SQLITE_ROW)
        (*sizes)[(*count)++] = (struct inbox_size){
            sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
            sqlite3_column_int64(statement, 2), sqlite3_column_int64(statement, 3)};
    return step == SQLITE_ROW || step == SQLITE_DONE ? 0 : fail(inbox, err);
}

static int sqlite_sizes(struct inbox_source *source, struct arena *arena,
                        struct inbox_size **sizes, uint32_t *count, struct err *err)
{
    struct sqlite_inbox *inbox = sqlite_of(source);
    sqlite3_stmt *statement = NULL;
    int rc;

    TRY(check_file(inbox, err));
    TRY(run(inbox, "BEGIN", err));
    rc = prepare(inbox, &statement, err, "SELECT id, length(CAST(type AS BLOB)), "
                 "length(CAST(payload AS BLOB)), length(CAST(options AS BLOB)) FROM %s WHERE "
                 WAITS " ORDER BY id LIMIT %d", source->table, INBOX_ROWS_MAX);
    if (rc == 0)
        rc = step_sizes(inbox, statement, arena, sizes, count, err);
    sqlite3_finalize(statement);
    return rc;
}

static struct str cell(sqlite3_stmt *statement, int column, struct arena *arena)
{
    const char *text = sqlite3_column_type(statement, column) == SQLITE_NULL
                           ? NULL
                           : (const char *)sqlite3_column_text(statement, column);

    return text ? arena_str(arena, str_span(text, (size_t)sqlite3_column_bytes(statement, column)))
                : STR_NONE;
}

static int read_row(struct sqlite_inbox *inbox, sqlite3_stmt *statement, struct arena *arena,
                    struct inbox_row *row, struct err *err)
{
    int step;

    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, row->id);
    sqlite3_bind_int(statement, 2, row->too_large);
    step = sqlite3_step(statement);
    if (step != SQLITE_ROW)
        return fail(inbox, err);
    row->created_at = cell(statement, 0, arena);
    row->type = cell(statement, 1, arena);
    row->payload = cell(statement, 2, arena);
    row->options = cell(statement, 3, arena);
    return arena->failed ? err_no_memory(err) : 0;
}

static int sqlite_read(struct inbox_source *source, struct arena *arena, struct inbox_row *rows,
                       uint32_t count, struct err *err)
{
    struct sqlite_inbox *inbox = sqlite_of(source);
    sqlite3_stmt *statement = NULL;
    int rc = prepare(inbox, &statement, err, "SELECT " CREATED ", iif(?2, NULL, type), "
                     "iif(?2, NULL, payload), iif(?2, NULL, options) FROM %s WHERE id = ?1",
                     source->table);

    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = read_row(inbox, statement, arena, &rows[i], err);
    sqlite3_finalize(statement);
    return rc < 0 ? rc : run(inbox, "COMMIT", err);
}

static int sqlite_rest(struct inbox_source *source, struct err *err)
{
    return run(sqlite_of(source), "COMMIT", err);
}

/* ---- marks ---- */

static void bind_text(sqlite3_stmt *statement, int at, struct str text)
{
    sqlite3_bind_text(statement, at, text.data, (int)text.len, SQLITE_TRANSIENT);
}

enum { MARK_TAKEN, MARK_DAMAGED, MARK_LEFT, MARK_COUNT };

static int step_row(sqlite3_stmt *statement, const struct inbox_row *row, bool again)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&row->task_id, id);
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, row->id);
    sqlite3_bind_int(statement, 2, again);
    bind_text(statement, 3, row->created_at);
    if (sqlite3_bind_parameter_count(statement) > 3)
        bind_text(statement, 4, row->verdict == INBOX_TAKEN ? str_of(id) : row->error);
    return sqlite3_step(statement);
}

/* A trigger may keep a mark out without an error: such a row would be read again. */
static int mark_row(struct sqlite_inbox *inbox, sqlite3_stmt *const *statements,
                    const struct inbox_row *row, bool again, struct err *err)
{
    int which = row->verdict == INBOX_TAKEN ? MARK_TAKEN : MARK_DAMAGED;

    if (step_row(statements[which], row, again) != SQLITE_DONE)
        return fail(inbox, err);
    if (sqlite3_changes(inbox->db) > 0)
        return 0;
    switch (step_row(statements[MARK_LEFT], row, again)) {
    case SQLITE_DONE:
        return 0; /* removed, or marked before */
    case SQLITE_ROW:
        return err_set(err, ERR_FORBIDDEN, "rows of %s in %s cannot be marked: a trigger keeps "
                       "them as they are", inbox->base.table, inbox->path);
    default:
        return fail(inbox, err);
    }
}

#define THIS_ROW " WHERE id = ?1 AND taken_at IS NULL AND (NOT ?2 OR " CREATED " IS ?3)"

static int mark_all(struct sqlite_inbox *inbox, const struct inbox_row *rows, uint32_t count,
                    bool again, struct err *err)
{
    const char *table = inbox->base.table;
    sqlite3_stmt *statements[MARK_COUNT] = {NULL};
    int rc = str_is(inbox->base.rule->after, "delete")
                 ? prepare(inbox, &statements[MARK_TAKEN], err, "DELETE FROM %s" THIS_ROW, table)
                 : prepare(inbox, &statements[MARK_TAKEN], err, "UPDATE %s SET task_id = ?4, "
                           "taken_at = strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now')" THIS_ROW,
                           table);

    if (rc == 0)
        rc = prepare(inbox, &statements[MARK_DAMAGED], err, "UPDATE %s SET error = ?4" THIS_ROW,
                     table);
    if (rc == 0)
        rc = prepare(inbox, &statements[MARK_LEFT], err, "SELECT 1 FROM %s" THIS_ROW
                     " AND error IS NULL", table);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (rows[i].verdict != INBOX_WAITS)
            rc = mark_row(inbox, statements, &rows[i], again, err);
    for (int i = 0; i < MARK_COUNT; i++)
        sqlite3_finalize(statements[i]);
    return rc;
}

static int sqlite_mark(struct inbox_source *source, const struct inbox_row *rows, uint32_t count,
                       bool again, struct err *err)
{
    struct sqlite_inbox *inbox = sqlite_of(source);

    TRY(check_file(inbox, err)); /* else the marks would be in a file without readers */
    TRY(run(inbox, "BEGIN IMMEDIATE", err));
    TRY(mark_all(inbox, rows, count, again, err));
    return run(inbox, "COMMIT", err);
}

/* ---- changes ---- */

/* The file, its WAL or its journal. */
static bool is_ours(const struct sqlite_inbox *inbox, const struct inotify_event *event)
{
    size_t len = strlen(inbox->file);
    const char *rest = event->name + len;

    if (event->mask & (IN_Q_OVERFLOW | IN_IGNORED))
        return true;
    return event->len && strncmp(event->name, inbox->file, len) == 0 &&
           (*rest == '\0' || strcmp(rest, "-wal") == 0 || strcmp(rest, "-journal") == 0);
}

static int sqlite_changed(struct inbox_source *source, bool *changed, struct err *err)
{
    _Alignas(struct inotify_event) char space[EVENTS_BYTES];
    ssize_t got;

    (void)err;
    *changed = false;
    while ((got = read(source->fd, space, sizeof space)) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(space + at);

            *changed |= is_ours(sqlite_of(source), event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    return 0;
}

static void sqlite_free(struct inbox_source *source)
{
    sqlite_close(source);
    free(source);
}

struct inbox_source *inbox_sqlite_new(const struct inbox_rule *rule, int stop, struct err *err)
{
    static const struct inbox_source_verbs verbs = {
        .connect = sqlite_connect, .sizes = sqlite_sizes, .read = sqlite_read, .mark = sqlite_mark,
        .rest = sqlite_rest, .changed = sqlite_changed, .close = sqlite_close,
        .free = sqlite_free};
    struct sqlite_inbox *inbox = err_calloc(sizeof *inbox, err);
    const struct str scheme = STR("sqlite:");
    struct str path = rule->store;
    char *slash;

    if (!inbox)
        return NULL;
    if (str_starts(path, scheme))
        path = str_span(path.data + scheme.len, path.len - scheme.len);
    snprintf(inbox->path, sizeof inbox->path, STR_FMT, STR_ARG(path));
    snprintf(inbox->folder, sizeof inbox->folder, "%s", inbox->path);
    slash = strrchr(inbox->folder, '/');
    inbox->file = slash ? strrchr(inbox->path, '/') + 1 : inbox->path;
    if (slash)
        slash[slash == inbox->folder] = '\0'; /* "/" stays */
    else
        snprintf(inbox->folder, sizeof inbox->folder, ".");
    inbox->base = (struct inbox_source){.verbs = &verbs, .fd = -1, .stop = stop, .rule = rule};
    return &inbox->base;
}
