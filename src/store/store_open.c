/* Chooses the store by the form of its place and hands over to it. The only file that names the
 * kinds of stores. Any thread. */
#include "store/migrate.h"
#include "store/postgres/pg_store.h"
#include "store/sealed/sealed.h"
#include "store/sqlite/sqlite_store.h"
#include "store/intake_store.h"
#include "store/store_copy.h"

#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum kind { KIND_SQLITE, KIND_POSTGRES, KIND_UNKNOWN };

/* *path is the file of an SQLite store. */
static enum kind kind_of(struct str where, struct str *path)
{
    const struct str sqlite = STR("sqlite:");

    *path = where;
    if (str_starts(where, STR("postgres://")) || str_starts(where, STR("postgresql://")))
        return KIND_POSTGRES;
    if (str_starts(where, sqlite)) {
        *path = str_span(where.data + sqlite.len, where.len - sqlite.len);
        return path->len ? KIND_SQLITE : KIND_UNKNOWN;
    }
    if (where.len == 0 || memmem(where.data, where.len, "://", 3) ||
        str_starts(where, STR("postgres:")) || str_starts(where, STR("postgresql:")) ||
        memmem(where.data, where.len, "password=", 9)) /* mistyped: would show a password */
        return KIND_UNKNOWN;
    return KIND_SQLITE;
}

/* The message never shows `where`: it may hold a password. */
static int refuse(struct err *err)
{
    return err_set(err, ERR_USAGE, "the store is neither a path, sqlite:PATH nor postgres://…; "
                   "give the path of an SQLite file or the URL of a database");
}

/* A text that is no place of a store is not shown: it may be a mistyped URL. */
void store_shown(struct str where, char *out, size_t cap)
{
    struct str path;

    switch (kind_of(where, &path)) {
    case KIND_SQLITE:
        snprintf(out, cap, STR_FMT, STR_ARG(where));
        return;
    case KIND_POSTGRES:
        pg_shown(where, out, cap);
        return;
    default:
        snprintf(out, cap, "%s", "…");
    }
}

bool store_has_roles(struct str where)
{
    struct str path;

    return kind_of(where, &path) == KIND_POSTGRES;
}

bool store_wants_password(struct str where)
{
    struct str path;

    return kind_of(where, &path) == KIND_POSTGRES && !pg_has_password(where);
}

/* A database may be there; whether it is, only a connection says. */
bool store_is_there(struct str where)
{
    char text[PATH_MAX];
    struct str path;

    switch (kind_of(where, &path)) {
    case KIND_SQLITE:
        snprintf(text, sizeof text, STR_FMT, STR_ARG(path));
        return access(text, F_OK) == 0;
    case KIND_POSTGRES:
        return true;
    default:
        return false;
    }
}

void store_own_process(void)
{
    sqlite_store_own_process();
}

int store_moved(struct store *store, struct arena *arena, struct str *moved, struct err *err)
{
    int rc = store->verbs->info_get(store, MOVED_FACT, arena, moved, err);

    if (rc == 0 && str_empty(*moved))
        *moved = STR_NONE;
    return rc;
}

int store_require_taken_in(struct store *store, bool hold, struct err *err)
{
    int64_t rows = 0;

    if (!store->intake)
        return 0;
    if ((hold && store->intake->hold(store, err) < 0) ||
        store->intake->count(store, &rows, err) < 0)
        return !hold || err->code != ERR_UNAVAILABLE ? -(int)err->code :
               err_set(err, ERR_UNAVAILABLE, "programs that enqueue or report with SQL are in a "
                       "transaction; end it, then repeat the command");
    if (rows == 0)
        return 0;
    return err_set(err, ERR_CONFLICT, "%lld tasks were enqueued or reported with SQL and no node "
                   "has taken that in; start 'perdura serve' on the source for a moment, then "
                   "copy again", (long long)rows);
}

static int put_moved(struct store *store, struct str value, bool again, struct err *err)
{
    const struct store_verbs *verbs = store->verbs;

    if (verbs->begin(store, err) < 0 || (!again && store_require_taken_in(store, true, err) < 0) ||
        verbs->info_put(store, MOVED_FACT, value, err) < 0 ||
        (again && verbs->info_put(store, "restored", STR("1"), err) < 0) ||
        verbs->commit(store, err) < 0) {
        verbs->rollback(store);
        return -(int)err->code;
    }
    return 0;
}

int store_mark_moved(struct store *store, struct str where, int64_t now_us, struct err *err)
{
    char text[PATH_MAX + 64], shown[PATH_MAX];
    char *whole = NULL;

    clock_format(now_us, text);
    store_shown(where, shown, sizeof shown);
    if (!strstr(shown, "://"))
        whole = realpath(strncmp(shown, "sqlite:", 7) == 0 ? shown + 7 : shown, NULL);
    snprintf(text + strlen(text), sizeof text - strlen(text), " %s", whole ? whole : shown);
    free(whole);
    return put_moved(store, str_of(text), false, err);
}

static int clear_moved(struct store *store, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct str moved;
    int rc = store_moved(store, &arena, &moved, err);

    if (rc == 0 && moved.data)
        rc = put_moved(store, STR(""), true, err);
    arena_deinit(&arena);
    return rc;
}

static int open_any(struct store **store, struct str where, const struct store_options *options,
                    struct err *err)
{
    struct str path;

    switch (kind_of(where, &path)) {
    case KIND_SQLITE:
        return sqlite_store_open(store, path, options, err);
    case KIND_POSTGRES:
        return pg_store_open(store, where, options, err);
    default:
        return refuse(err);
    }
}

int store_open(struct store **store, struct str where, const struct store_options *options,
               struct err *err)
{
    int rc;

    *store = NULL;
    rc = open_any(store, where, options, err);
    /* Served again on purpose, the store is like a restored backup: leases and tokens given out
     * since then are void here. */
    if (rc == 0 && options->serves && options->again)
        rc = clear_moved(*store, err);
    if (rc == 0 && options->serves)
        rc = sealed_install(*store, options->keyring, err);
    if (rc < 0 && *store) {
        (*store)->verbs->close(*store);
        *store = NULL;
    }
    return rc;
}

/* *place is in the form the driver wants. NULL when there is no such store. */
static const struct migrate_driver *driver_of(struct str where, struct str *place)
{
    struct str path;
    enum kind kind = kind_of(where, &path);

    *place = kind == KIND_SQLITE ? path : where;
    return kind == KIND_SQLITE ? &sqlite_migrations : kind == KIND_POSTGRES ? &pg_migrations : NULL;
}

static int migrate(struct str where, struct migrate_order *order, struct err *err)
{
    struct str place;
    const struct migrate_driver *driver = driver_of(where, &place);

    return driver ? driver->at(place, order, err) : refuse(err);
}

int store_migrations(struct str where, struct arena *arena, struct migration_row **rows,
                     uint32_t *count, struct err *err)
{
    struct migrate_order order = {.way = MIGRATE_LOOK, .arena = arena};
    int rc = migrate(where, &order, err);

    *rows = order.rows;
    *count = order.count;
    return rc;
}

int store_migrate_up(struct str where, uint32_t steps, uint32_t *applied, struct err *err)
{
    struct migrate_order order = {.way = MIGRATE_UP, .steps = steps};
    int rc = migrate(where, &order, err);

    *applied = order.done;
    return rc;
}

int store_migrate_down(struct str where, uint32_t steps, uint32_t *undone, struct err *err)
{
    struct migrate_order order = {.way = MIGRATE_DOWN, .steps = steps};
    int rc = migrate(where, &order, err);

    *undone = order.done;
    return rc;
}

int store_migration_sql(struct str where, struct buf *out, struct err *err)
{
    struct str place;
    const struct migrate_driver *driver = driver_of(where, &place);

    return driver ? migrate_sql(driver, place, out, err) : refuse(err);
}

/* ---- whether it may be opened for this use: by its own marks, before anything is changed ---- */

static int refuse_moved(struct str moved, struct err *err)
{
    const char *space = memchr(moved.data, ' ', moved.len);
    struct str time = str_span(moved.data, space ? (size_t)(space - moved.data) : 0);

    return err_set(err, ERR_CONFLICT, "the store was moved to %s by 'perdura copy' (" STR_FMT
                   "); serve that one. To run all that is in here a second time, start it once "
                   "with 'perdura serve --again'", space ? space + 1 : moved.data, STR_ARG(time));
}

static int decide(struct str copy, struct str moved, const struct store_options *options,
                  struct err *err)
{
    if (options->copies)
        return options->resumes && !copy.data
                   ? err_set(err, ERR_NOT_FOUND, "the store holds no copy to resume") : 0;
    if (copy_is_unfinished(copy)) /* else tasks would run twice: here and at the source */
        return err_set(err, ERR_CONFLICT, "the store holds an unfinished copy; run the same "
                       "'perdura copy' again until it says that both stores are equal");
    return options->serves && !options->again && moved.data ? refuse_moved(moved, err) : 0;
}

int store_admit(struct store *store, bool has_facts, const struct store_options *options,
                struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct str copy = STR_NONE, moved = STR_NONE;
    int rc = 0;

    if (has_facts)
        rc = store->verbs->info_get(store, COPY_FACT, &arena, &copy, err);
    if (has_facts && rc == 0)
        rc = store_moved(store, &arena, &moved, err);
    if (rc == 0)
        rc = decide(copy, moved, options, err);
    arena_deinit(&arena);
    return rc;
}
