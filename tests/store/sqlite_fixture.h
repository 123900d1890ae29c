/* A store in a folder of its own for the tests of the SQLite store's inside, and tasks to fill it
 * with. Included by test programs only; all functions are static. */
#ifndef TESTS_SQLITE_FIXTURE_H
#define TESTS_SQLITE_FIXTURE_H

#include "store/sqlite/sqlite_int.h"
#include "store/store.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "new_task.h"

#define NOW_US INT64_C(1800000000000000)

struct fixture {
    char folder[64];
    char path[96];
    struct store *store;
    struct store_reader *reader;
    struct uuid7 ids;
    struct arena arena;
    struct err err;
};

static inline void fixture_open(struct fixture *fixture)
{
    struct store_options options = {.allow_network_fs = true};

    assert_int_equal(store_open(&fixture->store, str_of(fixture->path), &options, &fixture->err),
                     0);
    fixture->reader = fixture->store->verbs->reader_open(fixture->store, &fixture->err);
    assert_non_null(fixture->reader);
}

static inline void fixture_close(struct fixture *fixture)
{
    const struct store_verbs *verbs = fixture->store ? fixture->store->verbs : NULL;

    if (!verbs)
        return;
    verbs->reader_close(fixture->reader);
    verbs->close(fixture->store);
    fixture->reader = NULL;
    fixture->store = NULL;
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const char *place = getenv("TMPDIR");

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "%s/perdura-store-XXXXXX",
             place && strlen(place) < 40 ? place : "/tmp");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/p.db", fixture->folder);
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    DIR *folder;
    struct dirent *entry;
    char name[400];

    fixture_close(fixture);
    folder = opendir(fixture->folder);
    while (folder && (entry = readdir(folder))) {
        snprintf(name, sizeof name, "%s/%s", fixture->folder, entry->d_name);
        unlink(name);
    }
    closedir(folder);
    rmdir(fixture->folder);
    arena_deinit(&fixture->arena);
    free(fixture);
    return 0;
}

static inline struct task *fixture_task(struct fixture *fixture, const char *queue,
                                        const char *type, int64_t created_us)
{
    return new_task(fixture->store, &fixture->ids, &fixture->arena, queue, type, created_us);
}

static inline void fixture_begin(struct fixture *fixture)
{
    assert_int_equal(fixture->store->verbs->begin(fixture->store, &fixture->err), 0);
}

static inline void fixture_commit(struct fixture *fixture)
{
    assert_int_equal(fixture->store->verbs->commit(fixture->store, &fixture->err), 0);
}

static inline void fixture_exec(struct fixture *fixture, const char *text)
{
    assert_int_equal(sqlite3_exec(sqlite_of(fixture->store)->sql.db, text, NULL, NULL, NULL),
                     SQLITE_OK);
}

static inline int64_t fixture_ask(struct fixture *fixture, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number;

    /* Views for people use functions that the store itself does not trust a schema with. */
    sqlite3_db_config(sqlite_of(fixture->store)->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
    assert_int_equal(sqlite3_prepare_v2(sqlite_of(fixture->store)->sql.db, text, -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_db_config(sqlite_of(fixture->store)->sql.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return number;
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif
