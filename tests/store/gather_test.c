/* The log's writes, gathered (F-D2, F-D5): one write per commit, nothing on the way that the next
 * read, size or sync does not see, and a write that fails is reported and forgotten. */
#include "vfs_shim.h"

#include "store/sqlite/sqlite_gather.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096

struct place {
    struct vfs_shim shim;
    struct gather gather;
    char folder[64];
    char db_path[88]; /* the log gets the rights of the file it belongs to */
    char path[96];
    sqlite3_file *file;
};

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;

    assert_non_null(place);
    strcpy(place->folder, "/tmp/perdura-gather-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->db_path, sizeof place->db_path, "%s/p.db", place->folder);
    snprintf(place->path, sizeof place->path, "%s-wal", place->db_path);
    close(open(place->db_path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    vfs_shim_install(&place->shim);
    assert_int_equal(gather_install(&place->gather), SQLITE_OK);
    place->file = calloc(1, (size_t)place->gather.vfs.szOsFile);
    assert_int_equal(place->gather.vfs.xOpen(&place->gather.vfs, place->path, place->file, flags,
                                             NULL), SQLITE_OK);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    place->file->pMethods->xClose(place->file);
    gather_remove(&place->gather);
    vfs_shim_remove(&place->shim);
    unlink(place->path);
    unlink(place->db_path);
    rmdir(place->folder);
    free(place->file);
    free(place);
    return 0;
}

static int put(struct place *place, char letter, int len, sqlite3_int64 offset)
{
    char bytes[PAGE];

    memset(bytes, letter, sizeof bytes);
    return place->file->pMethods->xWrite(place->file, bytes, len, offset);
}

static int sync_file(struct place *place)
{
    return place->file->pMethods->xSync(place->file, SQLITE_SYNC_NORMAL);
}

static char letter_at(struct place *place, sqlite3_int64 offset)
{
    char letter = 0;

    assert_int_equal(place->file->pMethods->xRead(place->file, &letter, 1, offset), SQLITE_OK);
    return letter;
}

static void a_commit_is_one_write_and_one_sync(void **state)
{
    struct place *place = *state;

    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(place, 'h', 24, i * (24 + PAGE)), SQLITE_OK);
        assert_int_equal(put(place, (char)('a' + i), PAGE, i * (24 + PAGE) + 24), SQLITE_OK);
    }
    assert_int_equal(vfs_shim_count(&place->shim, SHIM_WRITE), 0);
    assert_int_equal(sync_file(place), SQLITE_OK);
    assert_int_equal(vfs_shim_count(&place->shim, SHIM_WRITE), 1);
    assert_int_equal(vfs_shim_count(&place->shim, SHIM_SYNC), 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(letter_at(place, i * (24 + PAGE) + 23), 'h');
        assert_int_equal(letter_at(place, i * (24 + PAGE) + 24), 'a' + i);
    }
}

static void a_read_and_a_size_see_what_was_written(void **state)
{
    struct place *place = *state;
    sqlite3_int64 size = 0;

    assert_int_equal(put(place, 'a', 100, 0), SQLITE_OK);
    assert_int_equal(letter_at(place, 99), 'a');
    assert_int_equal(put(place, 'b', 100, 100), SQLITE_OK);
    assert_int_equal(place->file->pMethods->xFileSize(place->file, &size), SQLITE_OK);
    assert_int_equal(size, 200);
    assert_int_equal(put(place, 'c', 100, 200), SQLITE_OK);
    assert_int_equal(place->file->pMethods->xTruncate(place->file, 250), SQLITE_OK);
    assert_int_equal(place->file->pMethods->xFileSize(place->file, &size), SQLITE_OK);
    assert_int_equal(size, 250);
}

static void writes_elsewhere_keep_their_order(void **state)
{
    struct place *place = *state;

    assert_int_equal(put(place, 'a', 100, 0), SQLITE_OK);
    assert_int_equal(put(place, 'b', 50, 25), SQLITE_OK); /* over the first, not behind it */
    assert_int_equal(put(place, 'c', 10, 0), SQLITE_OK);
    assert_int_equal(sync_file(place), SQLITE_OK);
    assert_int_equal(letter_at(place, 0), 'c');
    assert_int_equal(letter_at(place, 10), 'a');
    assert_int_equal(letter_at(place, 25), 'b');
    assert_int_equal(letter_at(place, 75), 'a');
}

static void a_long_commit_is_written_in_parts_and_whole(void **state)
{
    struct place *place = *state;

    for (int i = 0; i < 100; i++)
        assert_int_equal(put(place, (char)('A' + i % 26), PAGE, (sqlite3_int64)i * PAGE),
                         SQLITE_OK);
    assert_in_range(vfs_shim_count(&place->shim, SHIM_WRITE), 1, 4);
    assert_int_equal(sync_file(place), SQLITE_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(letter_at(place, (sqlite3_int64)i * PAGE + 1), 'A' + i % 26);
}

/* F-D2: SQLite believes that the bytes are there, so nothing goes well until it takes them back. */
static void a_write_that_fails_is_told_until_the_rollback_and_not_tried_later(void **state)
{
    struct place *place = *state;
    sqlite3_int64 size = -1;
    char letter;

    vfs_shim_fail(&place->shim, SHIM_WRITE, "-wal", 0, 1, SQLITE_FULL);
    assert_int_equal(put(place, 'a', 100, 0), SQLITE_OK);
    assert_int_equal(place->file->pMethods->xRead(place->file, &letter, 1, 0), SQLITE_FULL);
    assert_int_equal(put(place, 'a', 100, 100), SQLITE_FULL);
    assert_int_equal(sync_file(place), SQLITE_FULL);
    assert_int_equal(vfs_shim_count(&place->shim, SHIM_SYNC), 0);
    gather_drop(&place->gather);
    assert_int_equal(place->file->pMethods->xFileSize(place->file, &size), SQLITE_OK);
    assert_int_equal(size, 0);
    assert_int_equal(put(place, 'b', 100, 0), SQLITE_OK);
    assert_int_equal(sync_file(place), SQLITE_OK);
    assert_int_equal(letter_at(place, 0), 'b');
}

/* Another process may have written there since: what was rolled back is never written. */
static void what_was_rolled_back_never_reaches_the_file(void **state)
{
    struct place *place = *state;
    sqlite3_int64 size = -1;

    assert_int_equal(put(place, 'a', PAGE, 0), SQLITE_OK);
    gather_drop(&place->gather);
    assert_int_equal(sync_file(place), SQLITE_OK);
    assert_int_equal(vfs_shim_count(&place->shim, SHIM_WRITE), 0);
    assert_int_equal(place->file->pMethods->xFileSize(place->file, &size), SQLITE_OK);
    assert_int_equal(size, 0);
}

static void a_log_that_cannot_be_opened_is_refused_without_a_leak(void **state)
{
    struct place *place = *state;
    sqlite3_file *file = calloc(1, (size_t)place->gather.vfs.szOsFile);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;

    assert_int_equal(place->gather.vfs.xOpen(&place->gather.vfs, "/tmp/no/such/folder/x-wal", file,
                                             flags, NULL) & 0xFF, SQLITE_IOERR);
    assert_null(file->pMethods);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_commit_is_one_write_and_one_sync, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_and_a_size_see_what_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_elsewhere_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_commit_is_written_in_parts_and_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_write_that_fails_is_told_until_the_rollback_and_not_tried_later, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_rolled_back_never_reaches_the_file, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_log_that_cannot_be_opened_is_refused_without_a_leak,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
