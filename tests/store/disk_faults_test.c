/* Disks that are full, fail, vanish or belong to another server (F-D1 to F-D4, F-D7 to F-D10), on
 * the SQLite store through a VFS that plays the disk. First the store alone, then with the queue on
 * top, as a server has it. */
#include "conformance.h"
#include "vfs_shim.h"

#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUSY_US (5 * SECOND_US) /* how long the store waits for a lock of others */
#define TRIES_MAX 1000

struct disk {
    struct conformance c; /* first: its helpers are used */
    struct vfs_shim shim;
    char folder[64];
    char ballast[WHERE_BYTES + 16];
    struct settings settings;
    struct engine *engine;
    sem_t fatal;
};

/* The disk of the test under way, for the function below. */
static struct vfs_shim *current_disk;

/* Stands in for the C library's: on a full disk there is no space to reserve either. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    bool full = false;

    if (current_disk) {
        pthread_mutex_lock(&current_disk->mutex);
        full = current_disk->ballast[0] != '\0';
        pthread_mutex_unlock(&current_disk->mutex);
    }
    if (full)
        return ENOSPC;
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

static int setup(void **state)
{
    struct disk *disk = calloc(1, sizeof *disk);

    assert_non_null(disk);
    strcpy(disk->folder, "/tmp/perdura-disk-XXXXXX");
    assert_non_null(mkdtemp(disk->folder));
    snprintf(disk->c.where, sizeof disk->c.where, "%s/p.db", disk->folder);
    snprintf(disk->ballast, sizeof disk->ballast, "%s-ballast", disk->c.where);
    disk->settings = (struct settings){.lease_ms = 30000, .leader_lease_ms = 30000,
                                       .worker_timeout_ms = -1};
    sem_init(&disk->fatal, 0, 0);
    vfs_shim_install(&disk->shim);
    current_disk = &disk->shim;
    store_open_again(&disk->c);
    *state = disk;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"p.db", "p.db-wal", "p.db-shm", "p.db-lock",
                                        "p.db-ballast", "moved"};
    struct disk *disk = *state;
    char name[WHERE_BYTES + 16];

    vfs_shim_fill_disk(&disk->shim, NULL);
    if (disk->engine)
        engine_close(disk->engine);
    store_close(&disk->c);
    current_disk = NULL;
    vfs_shim_remove(&disk->shim);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", disk->folder, names[i]);
        unlink(name);
    }
    rmdir(disk->folder);
    sem_destroy(&disk->fatal);
    arena_deinit(&disk->c.arena);
    free(disk);
    return 0;
}

/* One transaction with one task; its result. */
static int put_task(struct conformance *c, struct task **task)
{
    int rc = c->verbs->begin(c->store, &c->err);

    if (rc < 0)
        return rc;
    *task = given_task(c, "q", "t");
    rc = c->verbs->tasks_insert(c->store, task, 1, &c->err);
    if (rc == 0)
        rc = c->verbs->commit(c->store, &c->err);
    if (rc < 0)
        c->verbs->rollback(c->store);
    return rc;
}

static void then_put(struct conformance *c)
{
    struct task *task;

    OK(c, put_task(c, &task));
    assert_non_null(read_task(c, &task->id));
}

/* F-D1 */
static void a_full_disk_refuses_the_commit_and_the_store_goes_on_when_there_is_space(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct task *first, *task;

    OK(c, put_task(c, &first));
    vfs_shim_fill_disk(&disk->shim, disk->ballast);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put_task(c, &task), -ERR_STORAGE_FULL);
        assert_non_null(read_task(c, &first->id)); /* reads work */
        assert_null(read_task(c, &task->id));
        assert_int_equal(ready_in(c, "q"), 1);
    }
    vfs_shim_fill_disk(&disk->shim, NULL);
    then_put(c);
    assert_int_equal(ready_in(c, "q"), 2);
    assert_int_equal(verify_findings(c), 0);
}

/* F-D1: a transaction larger than the cache finds the disk full before its commit. */
static void a_full_disk_in_the_middle_of_a_transaction_leaves_nothing(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    size_t size = 1024 * 1024;
    char *payload = malloc(size);
    int rc = 0;

    memset(payload, '7', size);
    then_put(c);
    store_begin(c);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "-wal", 5, 1000000, SQLITE_FULL);
    for (int i = 0; i < 64 && rc == 0; i++) {
        struct task *task = given_task(c, "q", "t");

        task->spec.payload = str_span(payload, size);
        rc = c->verbs->tasks_insert(c->store, &task, 1, &c->err);
    }
    assert_int_equal(rc, -ERR_STORAGE_FULL);
    store_rollback(c);
    assert_int_equal(ready_in(c, "q"), 1);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "", 0, 0, 0);
    then_put(c);
    assert_int_equal(verify_findings(c), 0);
    free(payload);
}

/* F-D2: the log grows, nothing worse. */
static void a_full_disk_in_a_checkpoint_loses_nothing(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    size_t size = 1024 * 1024;
    char *payload = malloc(size);

    memset(payload, '7', size);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "p.db", 3, 1000000, SQLITE_FULL);
    for (int i = 0; i < 8; i++) {
        struct task *task = given_task(c, "q", "t");

        task->spec.payload = str_span(payload, size);
        store_begin(c);
        insert_task(c, task);
        store_commit(c);
        c->verbs->idle(c->store); /* checkpoints from 4 MB on */
    }
    assert_int_equal(verify_findings(c), 0);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "", 0, 0, 0);
    c->verbs->idle(c->store);
    then_put(c);
    store_reopen(c);
    assert_int_equal(ready_in(c, "q"), 9);
    assert_int_equal(verify_findings(c), 0);
    free(payload);
}

/* F-D9, while running: as a full disk. */
static void a_store_that_becomes_read_only_refuses_and_goes_on_when_it_is_writable(void **state)
{
    struct disk *disk = *state;
    struct task *task;

    then_put(&disk->c);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "-wal", 0, 1, SQLITE_READONLY);
    assert_int_equal(put_task(&disk->c, &task), -ERR_STORAGE_FULL);
    then_put(&disk->c);
}

/* F-D3: a second sync would succeed without the data, so there is none. */
static void a_failed_sync_is_final_and_reopening_recovers(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct task *kept, *unknown;

    OK(c, put_task(c, &kept));
    vfs_shim_fail(&disk->shim, SHIM_SYNC, "-wal", 0, 1, SQLITE_IOERR_FSYNC);
    assert_int_equal(put_task(c, &unknown), -ERR_STORAGE);
    assert_null(read_task(c, &unknown->id)); /* not acknowledged, not shown */
    store_reopen(c);
    assert_non_null(read_task(c, &kept->id));
    assert_int_equal(verify_findings(c), 0);
    then_put(c);
}

/* F-D3: SQLite remembers the system's number of an error in a statement, and does not ask for that
 * of a failed commit. */
static void a_failed_sync_is_final_also_after_a_full_disk(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct task *task;

    then_put(c);
    store_reopen(c); /* nothing is in a cache */
    disk->shim.fault_errno = ENOSPC;
    vfs_shim_fail(&disk->shim, SHIM_READ, "p.db", 0, 1, SQLITE_IOERR_WRITE);
    assert_int_equal(put_task(c, &task), -ERR_STORAGE_FULL);
    disk->shim.fault_errno = 0;
    vfs_shim_fail(&disk->shim, SHIM_SYNC, "-wal", 0, 1, SQLITE_IOERR_FSYNC);
    assert_int_equal(put_task(c, &task), -ERR_STORAGE);
    vfs_shim_fail(&disk->shim, SHIM_WRITE, "-wal", 0, 1, SQLITE_IOERR_WRITE);
    assert_int_equal(put_task(c, &task), -ERR_STORAGE);
}

/* F-D4 */
static void a_read_error_fails_one_request_only(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct store_reader *reader;
    struct task *task, *found;

    OK(c, put_task(c, &task));
    store_reopen(c); /* everything is in the file now, nothing in a cache */
    reader = c->verbs->reader_open(c->store, &c->err);
    assert_non_null(reader);
    vfs_shim_fail(&disk->shim, SHIM_READ, "p.db", 0, 1, SQLITE_IOERR_READ);
    assert_int_equal(c->verbs->read_task(reader, &task->id, &c->arena, &found, &c->err),
                     -ERR_STORAGE_READ);
    OK(c, c->verbs->read_task(reader, &task->id, &c->arena, &found, &c->err));
    assert_non_null(found);
    c->verbs->reader_close(reader);
    then_put(c);
}

/* F-D7 */
static void a_foreign_write_lock_is_waited_for_then_refused_then_forgotten(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct task *task;
    sqlite3 *foreign = NULL;

    then_put(c);
    assert_int_equal(sqlite3_open(c->where, &foreign), SQLITE_OK);
    assert_int_equal(sqlite3_exec(foreign, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    disk->shim.slept_us = 0;
    assert_int_equal(put_task(c, &task), -ERR_UNAVAILABLE);
    assert_true(disk->shim.slept_us >= BUSY_US * 9 / 10 && disk->shim.slept_us <= BUSY_US * 2);
    assert_int_equal(sqlite3_exec(foreign, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(foreign);
    then_put(c);
}

/* F-D8 */
static void a_second_opener_is_refused_with_the_pid_of_the_holder(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    struct store_options options = {.allow_network_fs = true};
    struct store *second = NULL;
    char pid[32];

    snprintf(pid, sizeof pid, "process %ld;", (long)getpid());
    assert_int_equal(store_open(&second, str_of(c->where), &options, &c->err), -ERR_UNAVAILABLE);
    assert_non_null(strstr(c->err.text, pid));
    then_put(c);
}

/* The child of a fork: a user who may not write in the folder opens the store there. 0 = refused
 * with one clear line. */
static int open_read_only(const char *where)
{
    struct store_options options = {.allow_network_fs = true};
    struct store *store = NULL;
    struct err err = {0};

    if (getuid() == 0 && setuid(65534) < 0)
        return 1;
    if (store_open(&store, str_of(where), &options, &err) >= 0)
        return 2;
    if (err.code != ERR_IO || !strstr(err.text, where) || strchr(err.text, '\n'))
        return 3;
    return 0;
}

/* F-D9, at the start. */
static void a_read_only_folder_is_refused_with_one_clear_line(void **state)
{
    struct disk *disk = *state;
    int status = 0;
    pid_t child;

    store_close(&disk->c);
    assert_int_equal(chmod(disk->folder, 0555), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char other[WHERE_BYTES + 16];

        snprintf(other, sizeof other, "%s/new.db", disk->folder);
        _exit(open_read_only(other));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(disk->folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* F-D10 */
static void a_deleted_or_replaced_file_is_noticed(void **state)
{
    struct disk *disk = *state;
    struct conformance *c = &disk->c;
    char moved[WHERE_BYTES];
    int fd;

    OK(c, c->verbs->check(c->store, &c->err));
    snprintf(moved, sizeof moved, "%s/moved", disk->folder);
    assert_int_equal(rename(c->where, moved), 0);
    assert_int_equal(c->verbs->check(c->store, &c->err), -ERR_STORAGE);
    assert_non_null(strstr(c->err.text, c->where));
    fd = open(c->where, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(c->verbs->check(c->store, &c->err), -ERR_STORAGE);
    assert_int_equal(rename(moved, c->where), 0);
    OK(c, c->verbs->check(c->store, &c->err));
}

static void on_fatal(void *ctx, const struct err *reason)
{
    struct disk *disk = ctx;

    assert_true(strlen(reason->text) > 0);
    sem_post(&disk->fatal);
}

static void open_queue(struct disk *disk)
{
    struct engine_config config = {.settings = &disk->settings, .on_fatal = on_fatal, .ctx = disk};

    OK(&disk->c, engine_open(&disk->engine, disk->c.store, &config, &disk->c.err));
}

static void close_queue(struct disk *disk)
{
    engine_close(disk->engine);
    disk->engine = NULL;
}

static bool fatal_comes(struct disk *disk)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    return sem_timedwait(&disk->fatal, &until) == 0;
}

/* The error code of an enqueue; *id is set where there is none. */
static enum err_code enqueue(struct disk *disk, struct uuid *id)
{
    struct arena *arena = &disk->c.arena;
    struct task_input input;
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = arena},
                                      .inputs = &input, .count = 1, .actor = ACTOR_API};

    spec_init(&input);
    input.spec.type = STR("t");
    assert_int_equal(spec_finish(&input, &disk->settings, arena, &disk->c.err), 0);
    engine_call(disk->engine, &request.base);
    if (request.base.err.code == ERR_NONE)
        *id = request.tasks[0]->id;
    return request.base.err.code;
}

/* A worker that holds the one task there is; its id and lease. */
static struct str claim_one(struct disk *disk, struct uuid *id, int64_t *lease_token)
{
    static const struct str queue = {"default", 7};
    struct register_request request = {
        .base = {.kind = REQUEST_REGISTER, .arena = &disk->c.arena},
        .worker = {.hostname = STR("h"), .queues = STR("[\"default\"]"), .pool_size = 1},
        .queues = &queue, .queues_count = 1};
    struct claim_request claim = {.base = {.kind = REQUEST_CLAIM, .arena = &disk->c.arena},
                                  .max = 1};

    engine_call(disk->engine, &request.base);
    assert_int_equal(request.base.err.code, ERR_NONE);
    claim.worker_id = request.id;
    engine_call(disk->engine, &claim.base);
    assert_int_equal(claim.base.err.code, ERR_NONE);
    assert_int_equal(claim.claimed_count, 1);
    *id = claim.claimed[0].task->id;
    *lease_token = claim.claimed[0].task->lease.token;
    return request.id;
}

static enum err_code complete(struct disk *disk, struct str worker, struct uuid id, int64_t token)
{
    struct report reports[] = {
        {.task_id = id, .lease_token = token, .seq = 1, .op = REPORT_START, .progress = -1},
        {.task_id = id, .lease_token = token, .seq = 2, .op = REPORT_COMPLETE, .progress = -1,
         .result = STR("{\"a\":1}")}};
    struct report_result results[2] = {{0}};
    struct report_request request = {.base = {.kind = REQUEST_REPORT, .arena = &disk->c.arena},
                                     .worker_id = worker, .reports = reports, .count = 2,
                                     .results = results};

    engine_prepare_reports(disk->engine, reports, 2, results, &disk->c.arena);
    engine_call(disk->engine, &request.base);
    return request.base.err.code ? request.base.err.code : results[1].code;
}

/* F-D1, with the queue: new work is refused, what runs can still end, and it recovers by itself. */
static void a_full_disk_refuses_new_work_but_lets_running_work_end(void **state)
{
    struct disk *disk = *state;
    struct uuid id, other;
    int64_t token;
    struct str worker;
    int tries = 0;

    open_queue(disk);
    assert_int_equal(enqueue(disk, &id), ERR_NONE);
    worker = claim_one(disk, &id, &token);
    vfs_shim_fill_disk(&disk->shim, disk->ballast);
    assert_int_equal(enqueue(disk, &other), ERR_STORAGE_FULL);
    assert_int_not_equal(access(disk->ballast, F_OK), 0); /* released */
    assert_int_equal(complete(disk, worker, id, token), ERR_NONE);
    assert_int_equal(read_task(&disk->c, &id)->status, STATUS_COMPLETED);
    assert_int_equal(enqueue(disk, &other), ERR_STORAGE_FULL);
    vfs_shim_fill_disk(&disk->shim, NULL);
    while (enqueue(disk, &other) == ERR_STORAGE_FULL)
        assert_true(++tries < TRIES_MAX);
    assert_non_null(read_task(&disk->c, &other));
    assert_int_equal(access(disk->ballast, F_OK), 0);
    close_queue(disk);
    assert_int_equal(verify_findings(&disk->c), 0);
}

/* F-D3, with the queue: no request gets an answer that promises anything, and the server learns of
 * it. */
static void a_failed_sync_stops_the_queue_and_acknowledges_nothing(void **state)
{
    struct disk *disk = *state;
    struct uuid kept, lost;

    open_queue(disk);
    assert_int_equal(enqueue(disk, &kept), ERR_NONE);
    vfs_shim_fail(&disk->shim, SHIM_SYNC, "-wal", 0, 1, SQLITE_IOERR_FSYNC);
    assert_int_equal(enqueue(disk, &lost), ERR_STORAGE);
    assert_true(fatal_comes(disk));
    assert_int_not_equal(enqueue(disk, &lost), ERR_NONE); /* also not afterwards */
    close_queue(disk);
    store_reopen(&disk->c);
    assert_non_null(read_task(&disk->c, &kept));
    assert_int_equal(verify_findings(&disk->c), 0);
    open_queue(disk);
    assert_int_equal(enqueue(disk, &kept), ERR_NONE);
    close_queue(disk);
}

/* F-D7, with the queue. */
static void a_foreign_lock_is_answered_with_unavailable_and_passes(void **state)
{
    struct disk *disk = *state;
    sqlite3 *foreign = NULL;
    struct uuid id;

    open_queue(disk);
    assert_int_equal(enqueue(disk, &id), ERR_NONE);
    assert_int_equal(sqlite3_open(disk->c.where, &foreign), SQLITE_OK);
    assert_int_equal(sqlite3_exec(foreign, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(enqueue(disk, &id), ERR_UNAVAILABLE);
    assert_int_equal(sqlite3_exec(foreign, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(foreign);
    assert_int_equal(enqueue(disk, &id), ERR_NONE);
    close_queue(disk);
    assert_int_equal(count_of(&disk->c, "default", "t", STATUS_PENDING), 2);
}

/* F-D10, with the queue: it stops instead of writing into a file that is gone. */
static void a_deleted_file_stops_the_queue(void **state)
{
    struct disk *disk = *state;

    disk->settings.lease_ms = 600; /* sweeps every 100 ms */
    open_queue(disk);
    assert_int_equal(unlink(disk->c.where), 0);
    assert_true(fatal_comes(disk));
    close_queue(disk);
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(a_full_disk_refuses_the_commit_and_the_store_goes_on_when_there_is_space),
        DISK_TEST(a_full_disk_in_the_middle_of_a_transaction_leaves_nothing),
        DISK_TEST(a_full_disk_in_a_checkpoint_loses_nothing),
        DISK_TEST(a_store_that_becomes_read_only_refuses_and_goes_on_when_it_is_writable),
        DISK_TEST(a_failed_sync_is_final_and_reopening_recovers),
        DISK_TEST(a_failed_sync_is_final_also_after_a_full_disk),
        DISK_TEST(a_read_error_fails_one_request_only),
        DISK_TEST(a_foreign_write_lock_is_waited_for_then_refused_then_forgotten),
        DISK_TEST(a_second_opener_is_refused_with_the_pid_of_the_holder),
        DISK_TEST(a_read_only_folder_is_refused_with_one_clear_line),
        DISK_TEST(a_deleted_or_replaced_file_is_noticed),
        DISK_TEST(a_full_disk_refuses_new_work_but_lets_running_work_end),
        DISK_TEST(a_failed_sync_stops_the_queue_and_acknowledges_nothing),
        DISK_TEST(a_foreign_lock_is_answered_with_unavailable_and_passes),
        DISK_TEST(a_deleted_file_stops_the_queue),
    };

    return cmocka_run_group_tests_name("disk_faults", tests, NULL, NULL);
}
