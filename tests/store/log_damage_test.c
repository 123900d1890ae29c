/* What the store does with a log that it finds (F-D6): damage in front of acknowledged commits is
 * refused, whichever program opens the file, and the log stays as it is; what a healthy log may
 * hold beside its commits (frames of an earlier generation, frames of a rollback) is not taken for
 * damage. */
#include "conformance.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 32
#define FRAME_BYTES (24 + 4096)
#define FILE_BYTES_MAX (8 * 1024 * 1024)
#define COMMITS 12

struct damage {
    struct conformance c; /* first: its helpers are used */
    char folder[64];
    char copy[WHERE_BYTES];
};

static const char *path_of(const char *path, const char *suffix, char *out)
{
    snprintf(out, WHERE_BYTES + 8, "%s%s", path, suffix);
    return out;
}

static void copy_file(const char *from, const char *to)
{
    unsigned char *data = malloc(FILE_BYTES_MAX);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t len = read(in, data, FILE_BYTES_MAX);

    assert_true(len > 0 && len < FILE_BYTES_MAX && write(out, data, (size_t)len) == len);
    close(in);
    close(out);
    free(data);
}

/* As a kill would leave it: the file and its log, nothing else. */
static void take_copy(struct damage *d)
{
    char from[WHERE_BYTES + 8], to[WHERE_BYTES + 8];

    unlink(path_of(d->copy, "-shm", to));
    copy_file(d->c.where, d->copy);
    copy_file(path_of(d->c.where, "-wal", from), path_of(d->copy, "-wal", to));
}

static void flip(const char *path, off_t at)
{
    char name[WHERE_BYTES + 8];
    unsigned char byte;
    int fd = open(path_of(path, "-wal", name), O_RDWR | O_CLOEXEC);

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static off_t log_bytes(const char *path)
{
    char name[WHERE_BYTES + 8];
    struct stat info;

    return stat(path_of(path, "-wal", name), &info) == 0 ? info.st_size : -1;
}

static int open_copy(struct damage *d, bool look)
{
    struct store_options options = {.allow_network_fs = true, .no_lock = look, .no_migrate = look};
    struct store *store = NULL;
    struct err err = {0};

    if (store_open(&store, str_of(d->copy), &options, &err) < 0)
        return -(int)err.code;
    store->verbs->close(store);
    return 0;
}

/* The smallest commit there is: the same page, again and again. */
static void commit_one_page(struct damage *d, int number)
{
    struct conformance *c = &d->c;

    store_begin(c);
    OK(c, c->verbs->info_put(c->store, "number", text_of(c, "%d", number), &c->err));
    store_commit(c);
}

static int setup(void **state)
{
    struct damage *d = calloc(1, sizeof *d);

    strcpy(d->folder, "/tmp/perdura-log-XXXXXX");
    assert_non_null(mkdtemp(d->folder));
    snprintf(d->c.where, sizeof d->c.where, "%s/p.db", d->folder);
    snprintf(d->copy, sizeof d->copy, "%s/copy.db", d->folder);
    store_open_again(&d->c);
    commit_one_page(d, 0);
    store_reopen(&d->c); /* the log is empty */
    for (int i = 1; i <= COMMITS; i++)
        commit_one_page(d, i);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock", "-ballast"};
    struct damage *d = *state;
    char name[WHERE_BYTES + 8];

    store_close(&d->c);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        unlink(path_of(d->c.where, suffixes[i], name));
        unlink(path_of(d->copy, suffixes[i], name));
    }
    rmdir(d->folder);
    arena_deinit(&d->c.arena);
    free(d);
    return 0;
}

static void damage_before_commits_of_one_page_is_refused(void **state)
{
    struct damage *d = *state;

    take_copy(d);
    assert_true(log_bytes(d->copy) >= HEADER_BYTES + COMMITS * FRAME_BYTES);
    flip(d->copy, HEADER_BYTES + FRAME_BYTES + 100);
    assert_int_equal(open_copy(d, false), -ERR_IO);
}

static void a_damaged_header_is_refused(void **state)
{
    static const off_t places[] = {0, 3, 4, 9, 14, 17, 22, 25, 31};
    struct damage *d = *state;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        take_copy(d);
        flip(d->copy, places[i]);
        assert_int_equal(open_copy(d, false), -ERR_IO);
    }
}

static void a_look_at_a_damaged_log_is_refused_and_changes_nothing(void **state)
{
    struct damage *d = *state;
    struct migration_row *rows;
    struct err err = {0};
    uint32_t count;
    off_t bytes;

    take_copy(d);
    flip(d->copy, HEADER_BYTES + FRAME_BYTES + 100);
    bytes = log_bytes(d->copy);
    assert_int_equal(open_copy(d, true), -ERR_IO);
    assert_true(store_migrations(str_of(d->copy), &d->c.arena, &rows, &count, &err) < 0);
    assert_true(store_migrate_up(str_of(d->copy), 0, &count, &err) < 0);
    assert_int_equal(log_bytes(d->copy), bytes);
    assert_int_equal(open_copy(d, false), -ERR_IO);
}

static void a_look_at_a_healthy_log_leaves_it_to_its_owner(void **state)
{
    struct damage *d = *state;
    off_t bytes;

    take_copy(d);
    bytes = log_bytes(d->copy);
    assert_int_equal(open_copy(d, true), 0);
    assert_int_equal(log_bytes(d->copy), bytes);
    assert_int_equal(open_copy(d, false), 0);
}

/* A log that is written at the moment may look damaged to another process. */
static void the_log_of_a_store_in_use_is_not_judged(void **state)
{
    struct store_options look = {.allow_network_fs = true, .no_lock = true, .no_migrate = true};
    struct damage *d = *state;
    struct store *store = NULL;

    flip(d->c.where, HEADER_BYTES + FRAME_BYTES + 17); /* of its sum, which is never read again */
    OK(&d->c, store_open(&store, str_of(d->c.where), &look, &d->c.err));
    store->verbs->close(store);
    flip(d->c.where, HEADER_BYTES + FRAME_BYTES + 17);
}

static sqlite3 *open_by_hand(struct damage *d)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(d->c.where, &db), SQLITE_OK);
    return db;
}

static void run_by_hand(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

static void frames_of_an_earlier_generation_are_no_damage(void **state)
{
    struct damage *d = *state;
    off_t bytes = log_bytes(d->c.where);
    sqlite3 *db = open_by_hand(d);

    run_by_hand(db, "PRAGMA wal_checkpoint(RESTART)");
    sqlite3_close(db);
    commit_one_page(d, COMMITS + 1);
    commit_one_page(d, COMMITS + 2);
    assert_int_equal(log_bytes(d->c.where), bytes); /* written over, not longer */
    take_copy(d);
    assert_int_equal(open_copy(d, false), 0);
}

/* Pages that did not fit the cache are in the log before the commit that never comes. */
static void frames_of_a_rollback_are_no_damage(void **state)
{
    struct damage *d = *state;
    sqlite3 *db = open_by_hand(d);
    off_t bytes;

    run_by_hand(db, "PRAGMA cache_size = 2; BEGIN IMMEDIATE; CREATE TABLE big (x BLOB);"
                    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
                    "INSERT INTO big SELECT randomblob(4000) FROM n; ROLLBACK");
    bytes = log_bytes(d->c.where);
    assert_true(bytes > HEADER_BYTES + (COMMITS + 20) * FRAME_BYTES);
    sqlite3_close(db);
    commit_one_page(d, COMMITS + 1);
    assert_int_equal(log_bytes(d->c.where), bytes);
    take_copy(d);
    assert_int_equal(open_copy(d, false), 0);
}

#define LOG_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(damage_before_commits_of_one_page_is_refused),
        LOG_TEST(a_damaged_header_is_refused),
        LOG_TEST(a_look_at_a_damaged_log_is_refused_and_changes_nothing),
        LOG_TEST(a_look_at_a_healthy_log_leaves_it_to_its_owner),
        LOG_TEST(the_log_of_a_store_in_use_is_not_judged),
        LOG_TEST(frames_of_an_earlier_generation_are_no_damage),
        LOG_TEST(frames_of_a_rollback_are_no_damage),
    };

    return cmocka_run_group_tests_name("log_damage", tests, NULL, NULL);
}
