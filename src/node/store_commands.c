/* The commands that open a store themselves: migrate, backup, and doctor's look at it; verify is in
 * verify.c. */
#include "base/clock.h"
#include "node/doctor/doctor_tokens.h"
#include "node/doctor/doctor_encryption.h"
#include "node/node.h"
#include "node/migration_losses.h"
#include "engine/logs/anchor_file.h"
#include "engine/stores/routes.h"
#include "store/check_store.h"
#include "store/intake_store.h"
#include "store/catalog_store.h"
#include "store/log_store.h"
#include "store/token_store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOSSES_BYTES_MAX 4096
#define LOSSES_SHOWN 360

void node_store_shown(struct str where, char *out, size_t cap)
{
    store_shown(where, out, cap);
}

bool node_store_wants_password(struct str where)
{
    return store_wants_password(where);
}

static int64_t number_of(struct str id)
{
    int64_t number = 0;

    str_to_int64(id, &number);
    return number;
}

static bool was_applied(const struct migrate_report *before, uint32_t at)
{
    return before && at < before->migrations_count && before->migrations[at].applied;
}

/* `before` (may be NULL) is the list before this run. */
static int list_migrations(struct str where, const struct migrate_report *before,
                           struct arena *arena, struct migrate_report *report, struct err *err)
{
    struct migration_row *rows;
    struct migration *migrations;
    uint32_t count;

    TRY(store_migrations(where, arena, &rows, &count, err));
    migrations = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *migrations));
    for (uint32_t i = 0; i < count; i++)
        migrations[i] = (struct migration){.number = number_of(rows[i].id),
                                           .name = rows[i].description,
                                           .applied = rows[i].executed_at_us != 0,
                                           .changed_now = was_applied(before, i) !=
                                                          (rows[i].executed_at_us != 0),
                                           .checksum_differs = rows[i].differs,
                                           .applied_at_us = rows[i].executed_at_us,
                                           .gives_up = migration_loss_of(rows[i].description).what};
    report->migrations = migrations;
    report->migrations_count = count;
    return 0;
}

/* Steps between the state now and the target; 0 when there is nothing to do. */
static uint32_t steps_to(const struct migrate_report *report, int64_t target, bool up)
{
    uint32_t steps = 0;

    for (uint32_t i = 0; i < report->migrations_count; i++) {
        const struct migration *one = &report->migrations[i];

        if (up ? !one->applied && (target < 0 || one->number <= target)
               : one->applied && one->number > target)
            steps++;
    }
    return steps;
}

/* Are the last steps undone without a loss of data? The error names all that goes. */
static int check_losses(const struct migrate_report *report, uint32_t steps, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(LOSSES_BYTES_MAX);
    int rc = 0;

    for (uint32_t i = report->migrations_count; i-- > 0 && steps > 0;) {
        const struct migration *one = &report->migrations[i];
        struct migration_loss loss = migration_loss_of(one->name);

        steps -= one->applied;
        if (one->applied && loss.is_data)
            buf_format(&text, "%s%04lld " STR_FMT " (" STR_FMT ")", text.len ? ", " : "",
                       (long long)one->number, STR_ARG(one->name), STR_ARG(loss.what));
    }
    buf_byte(&text, '\0');
    if (text.len > 1)
        rc = err_set(err, ERR_CONFLICT, "data would be lost with %.*s%s; make a backup first, then "
                     "add --lose-data", LOSSES_SHOWN, text.data,
                     text.len > LOSSES_SHOWN ? " …" : "");
    return rc;
}

/* Of a newer program, or changed since: migrating is refused, also when nothing is pending. */
static bool any_differs(const struct migrate_report *report)
{
    for (uint32_t i = 0; i < report->migrations_count; i++)
        if (report->migrations[i].checksum_differs)
            return true;
    return false;
}

/* Policies and rights of the role for SQL from outside, which may have been made since. */
static int share(const struct settings *settings, struct err *err)
{
    struct store_options options = {.no_migrate = true,
                                    .only_reads = true,
                                    .copies = true,
                                    .any_schema = settings->allow_changed_schema,
                                    .sql_role = settings->access.sql_role,
                                    .shares = true};
    struct store *store;

    TRY(store_open(&store, settings->store, &options, err));
    store->verbs->close(store);
    return 0;
}

static int grant(const struct settings *settings, const struct migrate_request *request,
                 struct err *err)
{
    struct store_options options = {.no_migrate = true,
                                    .only_reads = true,
                                    .any_schema = settings->allow_changed_schema};
    struct store *store;
    int rc;

    if (!store_has_roles(settings->store))
        return err_set(err, ERR_INVALID, "a SQLite file has no roles; enqueueing with SQL needs "
                       "PostgreSQL");
    TRY(store_open(&store, settings->store, &options, err));
    rc = store->intake->grant(store, request->role, request->only, err);
    store->verbs->close(store);
    return rc;
}

int node_migrate(const struct settings *settings, const struct migrate_request *request,
                 struct arena *arena, struct migrate_report *report, struct err *err)
{
    BUF_AUTO struct buf sql = BUF_INIT(4 * 1024 * 1024);
    struct migration *one;
    uint32_t steps, done;
    struct migrate_report before = {0};

    *report = (struct migrate_report){0};
    if (request->action == MIGRATE_SQL) {
        int rc = store_migration_sql(settings->store, &sql, err);

        one = arena_alloc(arena, sizeof *one);
        if (rc == 0 && one) {
            one->sql = arena_str(arena, buf_view(&sql));
            report->migrations = one;
            report->migrations_count = 1;
        }
        return rc;
    }
    if (request->action == MIGRATE_GRANT)
        return grant(settings, request, err);
    TRY(list_migrations(settings->store, NULL, arena, &before, err));
    if (request->action == MIGRATE_UP) {
        steps = steps_to(&before, request->target, true);
        if (steps > 0 || any_differs(&before))
            TRY(store_migrate_up(settings->store, steps, &done, err));
        if (request->target < 0 && store_has_roles(settings->store))
            TRY(share(settings, err));
    }
    if (request->action == MIGRATE_DOWN) {
        steps = request->target < 0 ? 1 : steps_to(&before, request->target, false);
        if (!request->lose_data)
            TRY(check_losses(&before, steps, err));
        if (steps > 0)
            TRY(store_migrate_down(settings->store, steps, &done, err));
    }
    return list_migrations(settings->store, &before, arena, report, err);
}

int node_backup(const struct settings *settings, struct str file, int64_t *bytes, struct err *err)
{
    struct store_options options = {.no_migrate = true, .allow_network_fs = true, .no_lock = true,
                                    .any_schema = true, /* a copy to look at, too */
                                    .only_reads = true};
    char *path = strndup(file.data, file.len);
    struct store_reader *reader = NULL;
    struct store *store = NULL;
    struct stat info;
    int rc = path ? store_open(&store, settings->store, &options, err) : -(int)ERR_MEMORY;

    if (rc == 0) {
        reader = store->verbs->reader_open(store, err);
        rc = reader ? store->verbs->backup(reader, path, NULL, NULL, err) : -(int)err->code;
    }
    if (rc == 0 && stat(path, &info) == 0)
        *bytes = info.st_size;
    if (reader)
        store->verbs->reader_close(reader);
    if (store)
        store->verbs->close(store);
    free(path);
    return rc;
}

struct checks {
    struct arena *arena;
    struct doctor_check *list;
    uint32_t count;
};

#define CHECKS_MAX (16 * ROUTES_MAX)

static void add(struct checks *checks, enum doctor_verdict verdict, const char *name,
                struct str detail, const char *fix)
{
    if (checks->count < CHECKS_MAX)
        checks->list[checks->count++] =
            (struct doctor_check){.verdict = verdict, .name = str_of(name), .detail = detail,
                                  .fix = str_of(fix)};
}

static void check_space(struct checks *checks, struct str where)
{
    struct statvfs info;
    char *path = arena_cstr(checks->arena, where);
    char *slash = path ? strrchr(path, '/') : NULL;
    int64_t free_mib;

    if (slash)
        *(slash == path ? slash + 1 : slash) = '\0';
    if (!path || statvfs(slash ? path : ".", &info) < 0)
        return;
    free_mib = (int64_t)(info.f_bavail * info.f_frsize / (1024 * 1024));
    add(checks, free_mib < 256 ? DOCTOR_WARNING : DOCTOR_OK, "free space",
        arena_format(checks->arena, "%lld MiB free beside the store", (long long)free_mib),
        free_mib < 256 ? "free some space: a full disk refuses new tasks" : NULL);
}

static void check_sqlite(struct checks *checks)
{
    bool fixed = sqlite3_libversion_number() >= 3051003;

    add(checks, DOCTOR_OK, "sqlite",
        arena_format(checks->arena, "version %s%s", sqlite3_libversion(),
                     fixed ? "" : " (its WAL race between two writers cannot happen here: one "
                                  "connection writes and checkpoints)"), NULL);
}

static void tell_nothing(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static void check_content(struct checks *checks, struct store *store)
{
    struct err err = {0};
    int64_t findings = 0;

    if (store->verbs->verify(store, tell_nothing, NULL, &findings, &err) < 0)
        add(checks, DOCTOR_FAILURE, "integrity", arena_str(checks->arena, str_of(err.text)),
            store->shared ? "look at what the database says; the role may lack rights"
                          : "restore a backup");
    else
        add(checks, findings ? DOCTOR_FAILURE : DOCTOR_OK, "integrity",
            arena_format(checks->arena, "%lld findings", (long long)findings),
            findings ? "run 'perdura verify' to see them" : NULL);
}

/* The key of the oldest record there is, where that is not the store's. */
static bool has_older_key(struct store *store, struct str key,
                          char older[2 * SIGN_PUBLIC_BYTES + 1])
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    struct anchor anchor;
    struct err err = {0};
    uint32_t count = 0;
    bool has = store->verbs->logs->anchors_read(store, 0, 1, &arena, &rows, &count, &err) == 0 &&
               count > 0 && anchor_parse(rows[0].record, &anchor) && anchor.is_signed;

    if (has)
        hash_hex(anchor.key, sizeof anchor.key, older);
    return has && !str_is(key, older);
}

static void check_signing(struct checks *checks, struct store *store,
                          const struct settings *settings)
{
    char older[2 * SIGN_PUBLIC_BYTES + 1];
    struct err err = {0};
    struct str key;

    if (store->verbs->info_get(store, "log_public_key", checks->arena, &key, &err) < 0)
        add(checks, DOCTOR_FAILURE, "logs", arena_str(checks->arena, str_of(err.text)), NULL);
    else if (store->shared && !settings->logs.key.data)
        add(checks, DOCTOR_WARNING, "logs", STR("records about logs are not signed"),
            "set log_key to a file that all nodes have, or leave it if you need no proof");
    else if (key.data && has_older_key(store, key, older))
        add(checks, DOCTOR_WARNING, "logs",
            arena_format(checks->arena, "the key was replaced: older records are signed by %s, "
                         "newer ones by " STR_FMT, older, STR_ARG(key)),
            arena_format(checks->arena, "if both keys are yours, verify with both: perdura verify "
                         "--logs --public-key %s," STR_FMT, older, STR_ARG(key)).data);
    else
        add(checks, DOCTOR_OK, "logs", key.data
            ? arena_format(checks->arena, "records are signed, public key " STR_FMT, STR_ARG(key))
            : STR("nothing was logged yet; the key is made with the first record"), NULL);
}

static bool has_records(struct store *store)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    struct err err = {0};
    uint32_t count = 0;
    int rc = store->verbs->logs->anchors_read(store, 0, 1, &arena, &rows, &count, &err);

    return rc == 0 && count > 0;
}

/* The server does not start without it (F-J7). */
static bool anchor_has_folder(struct checks *checks, const struct settings *settings)
{
    char *path =
        settings->logs.anchor.data ? arena_cstr(checks->arena, settings->logs.anchor) : NULL;
    struct err err = {0};

    if (!path || anchor_file_check_folder(path, &err) == 0)
        return true;
    add(checks, DOCTOR_FAILURE, "anchor", arena_str(checks->arena, str_of(err.text)),
        "the server does not start without that folder");
    return false;
}

static void check_encryption(struct checks *checks, struct store *store,
                             const struct settings *settings)
{
    struct doctor_check check = doctor_encryption(store, settings, checks->arena);

    add(checks, check.verdict, "encryption", check.detail,
        check.fix.data ? arena_cstr(checks->arena, check.fix) : NULL);
}

/* F-J7 */
static void check_anchor(struct checks *checks, struct store *store,
                         const struct settings *settings)
{
    char *path =
        settings->logs.anchor.data ? arena_cstr(checks->arena, settings->logs.anchor) : NULL;
    struct anchor_file_end end;
    struct err err = {0};
    bool ahead = false;

    if (!path)
        return;
    if (anchor_file_end(path, &end, &err) < 0 || log_anchor_compare(store, &end, &ahead, &err) < 0)
        add(checks, DOCTOR_FAILURE, "anchor", arena_str(checks->arena, str_of(err.text)),
            "check log_anchor, and that this user may read and write it");
    else if (ahead)
        add(checks, DOCTOR_WARNING, "anchor",
            arena_format(checks->arena, "the anchor file is ahead of the store (record %lld): the "
                         "store was set back", (long long)end.serial),
            "run 'perdura verify --logs'; if you restored a backup, begin a new anchor file");
    else if (end.serial == 0 && has_records(store))
        add(checks, DOCTOR_WARNING, "anchor", STR("the store has records about logs and the anchor "
                                                  "file has none"),
            "it was removed, unless log_anchor is new; the server fills it when it starts");
    else
        add(checks, DOCTOR_OK, "anchor",
            arena_format(checks->arena, "the store has all %lld records of it",
                         (long long)end.serial), NULL);
}

static void add_told(void *ctx, enum store_health health, const char *name, struct str detail,
                     const char *fix)
{
    struct checks *checks = ctx;

    add(checks, health == STORE_WELL   ? DOCTOR_OK
                : health == STORE_POOR ? DOCTOR_WARNING
                                       : DOCTOR_FAILURE, name, arena_str(checks->arena, detail),
        fix);
}

/* A worker for a category that is not there waits for it, which may be what is wanted. */
static void check_categories(struct checks *checks, struct store *store,
                             const struct settings *settings)
{
    struct err err = {0};
    struct store_reader *reader = settings->pool.categories_count
                                      ? store->verbs->reader_open(store, &err) : NULL;

    for (uint32_t i = 0; reader && i < settings->pool.categories_count; i++) {
        struct catalog_filter filter = {.active = -1, .limit = 1,
                                        .name = settings->pool.categories[i]};
        struct category *found;
        uint32_t count;

        if (store->verbs->catalog->read_categories(reader, &filter, checks->arena, &found, &count,
                                                   &err) == 0 && count == 0)
            add(checks, DOCTOR_WARNING, "categories",
                arena_format(checks->arena, "worker.categories names '" STR_FMT "', which the "
                             "store does not have", STR_ARG(settings->pool.categories[i])),
                "make it with 'perdura category create', or correct the name");
    }
    if (reader)
        store->verbs->reader_close(reader);
}

static void check_moved(struct checks *checks, struct store *store)
{
    struct err err = {0};
    struct str moved;

    if (store_moved(store, checks->arena, &moved, &err) == 0 && moved.data)
        add(checks, DOCTOR_FAILURE, "moved",
            arena_format(checks->arena, "'perdura copy' has moved it (" STR_FMT ")",
                         STR_ARG(moved)),
            "serve that store, or start this one once with 'perdura serve --again'");
}

static void check_tokens(struct checks *checks, struct store *store)
{
    struct doctor_check found[DOCTOR_TOKENS_MAX];
    struct store_reader *reader;
    struct token_row *tokens;
    struct err err = {0};
    uint32_t count = 0;

    reader = store->verbs->reader_open(store, &err);
    if (!reader || store->verbs->tokens->read_all(reader, checks->arena, &tokens, &count,
                                                  &err) < 0) {
        add(checks, DOCTOR_FAILURE, "tokens", arena_str(checks->arena, str_of(err.text)), NULL);
    } else {
        count = doctor_tokens(tokens, count, clock_wall_us(), checks->arena, found);
        for (uint32_t i = 0; i < count && checks->count < CHECKS_MAX; i++)
            checks->list[checks->count++] = found[i];
    }
    if (reader)
        store->verbs->reader_close(reader);
}

/* One store: can it be opened, what it stands on, is its content whole. */
static void check_store(struct checks *checks, struct str where, bool is_main,
                        const struct settings *settings)
{
    bool has_anchor = is_main && anchor_has_folder(checks, settings);
    struct store_options options = {.no_migrate = true, .no_lock = true,
                                    .allow_network_fs = settings->allow_network_fs,
                                    .any_schema = settings->allow_changed_schema,
                                    .sql_role = settings->access.sql_role};
    struct str path = where;
    struct store *store;
    struct err err = {0};
    char shown[512];
    bool is_file;
    char *name;

    if (str_starts(path, STR("sqlite:")))
        path = str_span(path.data + 7, path.len - 7);
    store_shown(path, shown, sizeof shown);
    name = arena_cstr(checks->arena, str_of(shown));
    is_file = str_is(path, shown) && !strstr(shown, "://");
    if (is_file)
        check_space(checks, path);
    if (name && is_file && access(name, F_OK) < 0) {
        add(checks, DOCTOR_OK, "store", arena_format(checks->arena, "'%s' is not there yet; "
            "'perdura serve' makes it", name), NULL);
    } else if (store_open(&store, where, &options, &err) < 0) {
        add(checks, DOCTOR_FAILURE, "store", arena_str(checks->arena, str_of(err.text)),
            strcmp(err.field, "schema") == 0
                ? "look who did it, then run 'perdura verify'; allow_changed_schema serves it"
                : "run 'perdura migrate up', or check the path and its rights");
    } else {
        add(checks, DOCTOR_OK, "store", arena_format(checks->arena, "'%s' opens, its schema is "
                                                     "current", name), NULL);
        check_moved(checks, store);
        if (is_main)
            check_categories(checks, store, settings);
        if (store->verbs->checks &&
            store->verbs->checks->inspect(store, add_told, checks, &err) < 0)
            add(checks, DOCTOR_FAILURE, "database", arena_str(checks->arena, str_of(err.text)),
                NULL);
        check_content(checks, store);
        check_signing(checks, store, settings);
        if (is_main)
            check_tokens(checks, store);
        check_encryption(checks, store, settings);
        if (has_anchor)
            check_anchor(checks, store, settings);
        store->verbs->close(store);
    }
}

static void check_routes(struct checks *checks, const struct settings *settings,
                         const struct str *stores, uint32_t count)
{
    uint32_t queues = 0;

    for (uint32_t i = 0; i < settings->queues_count; i++)
        for (uint32_t s = 1; s < count; s++)
            queues += str_eq(settings->queues[i].store, stores[s]);
    if (count > 1)
        add(checks, DOCTOR_OK, "routes",
            arena_format(checks->arena, "%u of the queues live in %u further stores, looked at "
                         "below", queues, count - 1), NULL);
}

int node_doctor_store(const struct settings *settings, struct arena *arena,
                      struct doctor_check **list, uint32_t *count, struct err *err)
{
    struct checks checks = {.arena = arena};
    struct str stores[ROUTES_MAX];
    uint32_t stores_count = 1;

    checks.list = TRY_MEMORY(arena_alloc_array(arena, CHECKS_MAX, sizeof *checks.list));
    check_sqlite(&checks);
    if (routes_stores(settings, stores, &stores_count, err) < 0) {
        add(&checks, DOCTOR_FAILURE, "routes", arena_str(arena, str_of(err->text)),
            "correct 'queues:' in perdura.yaml");
        err->code = ERR_NONE;
        stores_count = 1;
    }
    check_routes(&checks, settings, stores, stores_count);
    for (uint32_t i = 0; i < stores_count; i++)
        check_store(&checks, stores[i], i == 0, settings);
    *list = checks.list;
    *count = checks.count;
    return 0;
}
