/* The log is cut at every byte of its last 50 frames (F-D5). Whatever is left, SQLite opens it,
 * integrity_check is content, and the state is that of a whole number of commits: exactly those
 * whose last frame is there. At the ends of frames, one byte around them and at some bytes between,
 * the real store opens it too and verify finds nothing. Without arguments a sample; the campaign
 * takes the bytes from FROM to TO (0 = the end) of the part that is cut, and prints a JSON line:
 *
 *     wal_cut_test --from N --to N */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 32
#define FRAME_BYTES (24 + 4096)
#define FRAMES_CUT 50
#define COMMITS 24
#define STORE_EVERY 997 /* bytes between the cuts that the whole store opens */
#define FILE_BYTES_MAX (8 * 1024 * 1024)

struct image {
    unsigned char *data;
    size_t len;
};

struct cutting {
    struct conformance c; /* first: its helpers are used */
    char folder[64];
    char copy[WHERE_BYTES];
    struct image db, wal;
    int64_t signatures[COMMITS + 1]; /* the state after so many commits of the log */
    size_t ends[COMMITS + 1];        /* where the log ended then */
    int64_t cuts, opened;
    char finding[300];
};

/* Stands in for the C library's: the ballast of thousands of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

static const char *path_of(const char *path, const char *suffix, char *out)
{
    snprintf(out, WHERE_BYTES + 8, "%s%s", path, suffix);
    return out;
}

static struct image read_image(const char *path)
{
    struct image image = {malloc(FILE_BYTES_MAX), 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, image.data, FILE_BYTES_MAX) : -1;

    if (fd >= 0)
        close(fd);
    assert_true(len >= 0 && len < FILE_BYTES_MAX);
    image.len = (size_t)len;
    return image;
}

static void write_image(const char *path, const struct image *image, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, image->data, len) == (ssize_t)len);
    close(fd);
}

/* A number that every commit of the workload changes; -1 = it cannot be read. */
static int64_t signature(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = -1;

    if (sqlite3_prepare_v2(db, "SELECT count(*) * 100000 + sum(version) FROM task_states", -1,
                           &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

static int64_t signature_beside(const char *path)
{
    sqlite3 *db = NULL;
    int64_t number;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    number = signature(db);
    sqlite3_close(db);
    return number;
}

/* One commit: a new task and one that is changed. */
static void commit_one(struct cutting *cutting, struct task **older)
{
    struct conformance *c = &cutting->c;
    struct task *task;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    if (*older) {
        (*older)->version++;
        (*older)->progress = (*older)->version % 100;
        save_task(c, *older);
    }
    store_commit(c);
    *older = load_task(c, &task->id, LOAD_ALL);
}

/* A store with a log that holds only commits whose states and ends are known. */
static void record(struct cutting *cutting)
{
    struct conformance *c = &cutting->c;
    struct task *older = NULL;
    char name[WHERE_BYTES + 8];
    struct stat info;

    strcpy(cutting->folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/perdura-wal-XXXXXX"
                                                          : "/tmp/perdura-wal-XXXXXX");
    assert_non_null(mkdtemp(cutting->folder));
    snprintf(c->where, sizeof c->where, "%s/p.db", cutting->folder);
    snprintf(cutting->copy, sizeof cutting->copy, "%s/copy.db", cutting->folder);
    store_open_again(c);
    commit_one(cutting, &older);
    store_reopen(c); /* everything so far is in the file, the log is empty */
    older = load_task(c, &older->id, LOAD_ALL);
    cutting->signatures[0] = signature_beside(c->where);
    cutting->ends[0] = 0;
    for (int i = 1; i <= COMMITS; i++) {
        commit_one(cutting, &older);
        cutting->signatures[i] = signature_beside(c->where);
        assert_int_not_equal(cutting->signatures[i], cutting->signatures[i - 1]);
        assert_int_equal(stat(path_of(c->where, "-wal", name), &info), 0);
        cutting->ends[i] = (size_t)info.st_size;
    }
    cutting->db = read_image(c->where);
    cutting->wal = read_image(path_of(c->where, "-wal", name));
    assert_true(cutting->wal.len > HEADER_BYTES + (size_t)FRAMES_CUT * FRAME_BYTES);
    store_close(c);
}

static void end(struct cutting *cutting)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock", "-ballast", "-journal"};
    char name[WHERE_BYTES + 8];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        unlink(path_of(cutting->c.where, suffixes[i], name));
        unlink(path_of(cutting->copy, suffixes[i], name));
    }
    rmdir(cutting->folder);
    free(cutting->db.data);
    free(cutting->wal.data);
    arena_deinit(&cutting->c.arena);
    free(cutting);
}

/* SQLite may pad a commit with copies of its last frame: so the true end of a commit is found in
 * the log itself, by the mark that its last frame carries. */
static int commits_within(const struct cutting *cutting, size_t len)
{
    int commits = 0;
    size_t from = 0;

    for (int i = 1; i <= COMMITS; i++) {
        bool whole = false;

        for (size_t at = HEADER_BYTES + (from > HEADER_BYTES ? from - HEADER_BYTES : 0);
             at + FRAME_BYTES <= cutting->ends[i]; at += FRAME_BYTES) {
            const unsigned char *mark = cutting->wal.data + at + 4;

            if ((mark[0] | mark[1] | mark[2] | mark[3]) && at + FRAME_BYTES <= len)
                whole = true;
        }
        if (!whole)
            break;
        commits = i;
        from = cutting->ends[i];
    }
    return commits;
}

static bool integrity_is_ok(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK &&
              sqlite3_step(stmt) == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;

    sqlite3_finalize(stmt);
    return ok;
}

static void find(struct cutting *cutting, size_t len, const char *what)
{
    if (!cutting->finding[0])
        snprintf(cutting->finding, sizeof cutting->finding, "cut to %zu bytes: %s", len, what);
}

/* SQLite alone, on the same file again and again: the log only gets shorter. */
static void look(struct cutting *cutting, size_t len, bool closely)
{
    char name[WHERE_BYTES + 8];
    sqlite3 *db = NULL;

    unlink(path_of(cutting->copy, "-shm", name));
    if (truncate(path_of(cutting->copy, "-wal", name), (off_t)len) < 0 ||
        sqlite3_open_v2(cutting->copy, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        find(cutting, len, "it does not open");
    } else {
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (signature(db) != cutting->signatures[commits_within(cutting, len)])
            find(cutting, len, "not the state of the commits that are whole");
        if (closely && !integrity_is_ok(db))
            find(cutting, len, "integrity_check is not content");
    }
    sqlite3_close(db);
    cutting->cuts++;
}

/* The store itself, on fresh copies. */
static void open_store(struct cutting *cutting, size_t len)
{
    struct conformance *c = &cutting->c;
    char name[WHERE_BYTES + 8];
    char where[WHERE_BYTES];

    memcpy(where, c->where, sizeof where);
    write_image(where, &cutting->db, cutting->db.len);
    write_image(path_of(where, "-wal", name), &cutting->wal, len);
    unlink(path_of(where, "-shm", name));
    store_open_again(c);
    if (verify_findings(c) != 0)
        find(cutting, len, "verify finds something");
    if (signature_beside(where) != cutting->signatures[commits_within(cutting, len)])
        find(cutting, len, "the store shows another state");
    store_close(c);
    arena_reset(&c->arena);
    cutting->opened++;
}

static bool at_edge(size_t len)
{
    size_t within = (len - HEADER_BYTES) % FRAME_BYTES;

    return len <= HEADER_BYTES || within <= 1 || within == FRAME_BYTES - 1;
}

/* Bytes are counted from the first that is cut; to 0 = all. */
static void cut(struct cutting *cutting, size_t from, size_t to, size_t step)
{
    size_t first = cutting->wal.len - (size_t)FRAMES_CUT * FRAME_BYTES;
    size_t last = to && first + to < cutting->wal.len ? first + to : cutting->wal.len;
    char name[WHERE_BYTES + 8];

    write_image(cutting->copy, &cutting->db, cutting->db.len);
    write_image(path_of(cutting->copy, "-wal", name), &cutting->wal, cutting->wal.len);
    for (size_t len = last; len >= first + from && !cutting->finding[0]; len--) {
        if (len % step != 0 && !at_edge(len))
            continue;
        look(cutting, len, at_edge(len));
        if (at_edge(len) || len % STORE_EVERY == 0)
            open_store(cutting, len);
    }
}

static int campaign(size_t from, size_t to)
{
    struct cutting *cutting = calloc(1, sizeof *cutting);
    bool bad;

    record(cutting);
    cut(cutting, from, to, 1);
    bad = cutting->finding[0] != '\0';
    printf("{\"from\":%zu,\"to\":%zu,\"bytes\":%zu,\"cuts\":%lld,\"opened\":%lld,"
           "\"finding\":\"%s\"}\n", from, to, (size_t)FRAMES_CUT * FRAME_BYTES,
           (long long)cutting->cuts, (long long)cutting->opened, cutting->finding);
    end(cutting);
    return bad ? 1 : 0;
}

static void a_cut_log_holds_a_whole_number_of_commits(void **state)
{
    struct cutting *cutting = calloc(1, sizeof *cutting);

    (void)state;
    record(cutting);
    assert_int_equal(commits_within(cutting, cutting->wal.len), COMMITS);
    assert_true(commits_within(cutting, cutting->wal.len - 2 * FRAME_BYTES) < COMMITS);
    cut(cutting, 0, 0, 331);
    if (cutting->finding[0])
        fail_msg("%s", cutting->finding);
    assert_true(cutting->opened >= FRAMES_CUT);
    end(cutting);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_log_holds_a_whole_number_of_commits),
    };
    size_t from = 0, to = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--from") == 0)
            from = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--to") == 0)
            to = strtoull(argv[i + 1], NULL, 10);
    }
    return argc > 1 ? campaign(from, to)
                    : cmocka_run_group_tests_name("wal_cut", tests, NULL, NULL);
}
