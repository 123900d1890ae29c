/* The migrations of the SQLite store: each is there whole or not at all, a store from the future is
 * refused, and the plain SQL for a person does the same (A11, F-A15). */
#include "store/migrate.h"
#include "store/sqlite/sqlite_int.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SQL_BYTES_MAX (1024 * 1024)

struct place {
    char folder[64];
    char path[96];
};

static int make_place(void **state)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    snprintf(place->folder, sizeof place->folder, "/tmp/perdura-migrate-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->path, sizeof place->path, "%s/p.db", place->folder);
    *state = place;
    return 0;
}

static void remove_file(const struct place *place)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock", "-journal"};
    char name[128];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", place->path, ends[i]);
        unlink(name);
    }
}

static int remove_place(void **state)
{
    struct place *place = *state;

    remove_file(place);
    rmdir(place->folder);
    free(place);
    return 0;
}

static sqlite3 *open_db(const struct place *place)
{
    struct err err = {0};
    sqlite3 *db = NULL;

    assert_int_equal(sqlite_db_open(place->path, true, NULL, &db, &err), 0);
    return db;
}

static int64_t ask(sqlite3 *db, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number;

    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

static int64_t objects_count(sqlite3 *db)
{
    return ask(db, "SELECT count(*) FROM sqlite_master WHERE name <> 'schema_migrations' "
                   "AND name NOT LIKE 'sqlite_%'");
}

static void a11_migrating_twice_changes_nothing(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t applied = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    assert_true(applied >= 1);
    assert_int_equal(ask(db, "SELECT count(*) FROM schema_migrations WHERE length(checksum) = 64 "
                             "AND executed_at > 0"), applied);
    assert_int_equal(migrate_check(&sqlite_migrations, db, &err), 0);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    assert_int_equal(applied, 0);
    sqlite3_close(db);
}

static void a11_down_leaves_nothing_and_up_works_again(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t applied = 0;
    uint32_t undone = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    assert_int_equal(migrate_down(&sqlite_migrations, db, 1, &undone, &err), 0);
    assert_int_equal(undone, 1);
    assert_int_equal(migrate_down(&sqlite_migrations, db, 1000, &undone, &err), 0);
    assert_int_equal(undone, applied - 1);
    assert_int_equal(objects_count(db), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM schema_migrations"), 0);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 1, &applied, &err), 0);
    assert_int_equal(applied, 1);
    assert_true(objects_count(db) > 0);
    sqlite3_close(db);
}

static void f_a15_a_store_from_the_future_is_refused_in_one_line(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t applied = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    sqlite3_exec(db, "INSERT INTO schema_migrations VALUES ('9997', 'later', 1, 'x')", NULL, NULL,
                 NULL);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), -ERR_CONFLICT);
    assert_non_null(strstr(err.text, "the store has schema version 9997, this program knows up"));
    assert_non_null(strstr(err.text, "use a newer perdura"));
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(migrate_down(&sqlite_migrations, db, 1, &applied, &err), -ERR_CONFLICT);
    assert_int_equal(migrate_check(&sqlite_migrations, db, &err), -ERR_CONFLICT);
    sqlite3_close(db);
}

static void a11_a_migration_with_another_content_is_refused(void **state)
{
    sqlite3 *db = open_db(*state);
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct err err = {0};
    uint32_t applied = 0;
    uint32_t count = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    sqlite3_exec(db, "UPDATE schema_migrations SET checksum = 'x' WHERE id = '0001'", NULL, NULL,
                 NULL);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), -ERR_CONFLICT);
    assert_non_null(strstr(err.text, "0001"));
    assert_int_equal(migrate_rows(&sqlite_migrations, db, &arena, &rows, &count, &err), 0);
    assert_true(rows[0].differs);
    arena_deinit(&arena);
    sqlite3_close(db);
}

static int exit_at(unsigned kind, void *ctx, void *stmt, void *text)
{
    int *left = ctx;

    (void)kind;
    (void)stmt;
    (void)text;
    if (--*left == 0)
        _exit(9);
    return 0;
}

/* Runs the migration in a process that ends before its n-th statement. True when it got through. */
static bool migrate_until(const struct place *place, int n)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct err err = {0};
        uint32_t applied;
        sqlite3 *db = NULL;

        if (sqlite_db_open(place->path, true, NULL, &db, &err) < 0)
            _exit(1);
        sqlite3_trace_v2(db, SQLITE_TRACE_STMT, exit_at, &n);
        _exit(migrate_up(&sqlite_migrations, db, 0, &applied, &err) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 1);
    return WEXITSTATUS(status) == 0;
}

#define VERSIONS_MAX 100

/* How many objects there are after each migration; [0] is none. The number of migrations. */
static uint32_t count_versions(const struct place *place, int64_t *objects)
{
    struct err err = {0};
    sqlite3 *db = open_db(place);
    uint32_t versions = 0;
    uint32_t applied = 1;

    objects[0] = 0;
    while (applied == 1) {
        assert_true(versions + 1 < VERSIONS_MAX);
        assert_int_equal(migrate_up(&sqlite_migrations, db, 1, &applied, &err), 0);
        if (applied == 1)
            objects[++versions] = objects_count(db);
    }
    sqlite3_close(db);
    return versions;
}

/* The version that is there after the process ended; then the next start continues from it. */
static uint32_t look_and_finish(const struct place *place, const int64_t *objects,
                                uint32_t versions)
{
    struct err err = {0};
    uint32_t applied = 0;
    sqlite3 *db = open_db(place);
    int64_t left = objects_count(db);
    uint32_t version;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    assert_true(applied <= versions);
    version = versions - applied;
    assert_int_equal(left, objects[version]);
    assert_int_equal(objects_count(db), objects[versions]);
    sqlite3_close(db);
    return version;
}

static void f_a15_an_end_at_any_statement_leaves_the_old_or_the_new_version(void **state)
{
    const struct place *place = *state;
    int64_t objects[VERSIONS_MAX];
    uint32_t seen[VERSIONS_MAX] = {0};
    uint32_t versions = count_versions(place, objects);
    bool through = false;

    assert_true(versions > 0);
    for (int n = 1; n < 1000 && !through; n++) {
        remove_file(place);
        through = migrate_until(place, n);
        seen[look_and_finish(place, objects, versions)]++;
    }
    assert_true(through);
    for (uint32_t i = 0; i < versions; i++) /* every object is made by a statement of its own */
        assert_true(seen[i] > objects[i + 1] - objects[i]);
}

static void run(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

/* Tasks of a job: one waits, one runs, one is done. */
static void given_runs(sqlite3 *db)
{
    run(db, "INSERT INTO jobs (id, name, category_id, created_at, updated_at) SELECT x'0a', 'j', id, "
            "1, 1 FROM job_categories WHERE name = 'reports'");
    run(db, "INSERT INTO lanes (lane, queue, type) VALUES (1, 'q', 't')");
    run(db, "INSERT INTO task_specs (task, lane, created_at, options) VALUES (1, 1, 5, 1), "
            "(2, 1, 6, 2), (3, 1, 7, 3)");
    run(db, "INSERT INTO task_options (task, job_id) VALUES (1, x'0a'), (2, x'0a'), (3, x'0a')");
    run(db, "INSERT INTO task_states (task, id, lane, status, updated_at, order_key) VALUES "
            "(1, x'00000000000070008000000000000001', 1, 'blocked', 5, 0), "
            "(2, x'00000000000070008000000000000002', 1, 'running', 6, 0), "
            "(3, x'00000000000070008000000000000003', 1, 'completed', 7, 0)");
    run(db, "INSERT INTO job_runs (task_id, job_id, created_at) SELECT id, x'0a', updated_at "
            "FROM task_states WHERE task < 3");
}

static void d15_open_runs_and_used_categories_survive_the_way_back_and_forth(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t done = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 2, &done, &err), 0);
    given_runs(db);
    run(db, "UPDATE job_categories SET default_timeout = 7, updated_at = updated_at + 1 "
            "WHERE name = 'cleanup'");
    assert_int_equal(migrate_down(&sqlite_migrations, db, 1, &done, &err), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM job_categories"), 2); /* used, or changed */
    assert_int_equal(ask(db, "SELECT count(*) FROM task_states"), 3);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 1, &done, &err), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM job_runs r JOIN task_states s ON s.id = r.task_id "
                             "WHERE s.task < 3 AND r.job_id = x'0a' AND r.created_at = 4 + s.task"),
                     2);
    assert_int_equal(ask(db, "SELECT count(*) FROM job_runs"), 2);
    assert_int_equal(ask(db, "SELECT count(*) FROM job_categories"), 7);
    assert_int_equal(ask(db, "SELECT default_timeout FROM job_categories WHERE name = 'cleanup'"),
                     7);
    sqlite3_close(db);
}

static void d15_the_way_back_is_refused_while_runs_wait_for_jobs(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t done = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 2, &done, &err), 0);
    given_runs(db);
    run(db, "INSERT INTO job_waits (task_id, depends_on_job_id, dependency_type) "
            "SELECT id, x'0b', 'success' FROM task_states WHERE task = 1");
    assert_true(migrate_down(&sqlite_migrations, db, 1, &done, &err) < 0);
    assert_non_null(strstr(err.text, "runs wait for other jobs"));
    assert_int_equal(done, 0);
    run(db, "DELETE FROM job_waits");
    run(db, "UPDATE job_runs SET waits_slot = 1 WHERE created_at = 5");
    assert_true(migrate_down(&sqlite_migrations, db, 1, &done, &err) < 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM job_categories"), 7);
    run(db, "UPDATE job_runs SET waits_slot = 0");
    assert_int_equal(migrate_down(&sqlite_migrations, db, 1, &done, &err), 0);
    sqlite3_close(db);
}

static void d1_changes_by_hand_move_updated_at(void **state)
{
    sqlite3 *db = open_db(*state);
    struct err err = {0};
    uint32_t done = 0;

    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &done, &err), 0);
    given_runs(db);
    run(db, "UPDATE jobs SET name = 'other'");
    assert_true(ask(db, "SELECT updated_at FROM jobs") > 1000000);
    run(db, "UPDATE jobs SET description = 'told', updated_at = 77");
    assert_int_equal(ask(db, "SELECT updated_at FROM jobs"), 77);
    run(db, "UPDATE jobs SET last_ended_at = 5"); /* of its runs, not of the job */
    assert_int_equal(ask(db, "SELECT updated_at FROM jobs"), 77);
    run(db, "UPDATE job_categories SET is_active = 0, created_at = 1");
    assert_int_equal(ask(db, "SELECT count(*) FROM job_categories WHERE updated_at = created_at"),
                     0);
    sqlite3_close(db);
}

static void a11_plain_sql_applied_by_hand_counts_as_applied(void **state)
{
    sqlite3 *db = open_db(*state);
    struct buf text = BUF_INIT(SQL_BYTES_MAX);
    struct err err = {0};
    uint32_t applied = 1;

    assert_int_equal(store_migration_sql(STR("p.db"), &text, &err), 0);
    buf_byte(&text, '\0');
    assert_int_equal(sqlite3_exec(db, text.data, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(migrate_up(&sqlite_migrations, db, 0, &applied, &err), 0);
    assert_int_equal(applied, 0);
    buf_deinit(&text);
    sqlite3_close(db);
}

static void a11_the_list_of_a_missing_store_makes_no_file(void **state)
{
    const struct place *place = *state;
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct err err = {0};
    uint32_t count = 0;

    assert_int_equal(store_migrations(str_of(place->path), &arena, &rows, &count, &err), 0);
    assert_true(count >= 1);
    assert_true(str_is(rows[0].id, "0001"));
    assert_int_equal(rows[0].executed_at_us, 0);
    assert_int_not_equal(access(place->path, F_OK), 0);
    arena_deinit(&arena);
}

static void a11_the_command_migrates_a_closed_store_up_and_down(void **state)
{
    const struct place *place = *state;
    struct arena arena = ARENA_INIT(0);
    struct migration_row *rows;
    struct err err = {0};
    uint32_t count = 0;
    uint32_t done = 0;
    char where[128];

    snprintf(where, sizeof where, "sqlite:%s", place->path);
    assert_int_equal(store_migrate_up(str_of(where), 0, &done, &err), 0);
    assert_int_equal(store_migrations(str_of(where), &arena, &rows, &count, &err), 0);
    assert_int_equal(done, count);
    assert_true(rows[count - 1].executed_at_us > 0);
    assert_false(rows[count - 1].differs);
    assert_int_equal(store_migrate_down(str_of(where), 0, &done, &err), 0);
    assert_int_equal(done, 1);
    arena_deinit(&arena);
}

static void a_place_that_is_no_file_is_refused_without_showing_it(void **state)
{
    struct store_options options = {0};
    struct store *store = NULL;
    struct err err = {0};

    (void)state;
    assert_int_equal(store_open(&store, STR("postgres://u:secret@127.0.0.1:1/d"), &options, &err),
                     -ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "database"));
    assert_null(strstr(err.text, "secret"));
    assert_int_equal(store_open(&store, STR("mysql://h/d"), &options, &err), -ERR_USAGE);
    assert_int_equal(store_open(&store, STR("sqlite:"), &options, &err), -ERR_USAGE);
    assert_int_equal(store_open(&store, STR(""), &options, &err), -ERR_USAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a11_migrating_twice_changes_nothing),
        TEST(a11_down_leaves_nothing_and_up_works_again),
        TEST(f_a15_a_store_from_the_future_is_refused_in_one_line),
        TEST(a11_a_migration_with_another_content_is_refused),
        TEST(f_a15_an_end_at_any_statement_leaves_the_old_or_the_new_version),
        TEST(d15_open_runs_and_used_categories_survive_the_way_back_and_forth),
        TEST(d15_the_way_back_is_refused_while_runs_wait_for_jobs),
        TEST(d1_changes_by_hand_move_updated_at),
        TEST(a11_plain_sql_applied_by_hand_counts_as_applied),
        TEST(a11_the_list_of_a_missing_store_makes_no_file),
        TEST(a11_the_command_migrates_a_closed_store_up_and_down),
        TEST(a_place_that_is_no_file_is_refused_without_showing_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
