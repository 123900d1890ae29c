/* The power goes at the syncs of a fixed workload, the first migration and the checkpoints
 * included (F-D13). What was written since the last sync is lost, kept, or torn and reordered, as
 * the seed says. After each cut the store opens, holds every task that was acknowledged, no
 * transaction in part, and verify finds nothing. */
#include "conformance.h"
#include "vfs_shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 180
#define CUTS_MAX 220
#define LARGE_BYTES (180 * 1024) /* some: the log reaches the length at which it is checkpointed */

struct promise { /* what the store acknowledged of a task */
    struct uuid id;
    int64_t version;
};

struct cut {
    struct conformance c; /* first: its helpers are used */
    struct vfs_shim shim;
    char folder[64];
    struct promise promises[STEPS];
    uint32_t count;
    uint32_t touched;      /* the older task of the transaction under way */
    struct promise asked;  /* its new one, not acknowledged yet */
    bool under_way;
};

static char large[LARGE_BYTES];

/* Stands in for the C library's: the ballast of hundreds of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

/* One transaction: a new task, and an older one changed. False when the power is gone. */
static bool step(struct cut *cut, int turn, unsigned *seed)
{
    struct conformance *c = &cut->c;
    const struct store_verbs *verbs = c->verbs;
    struct task *task, *older = NULL;

    if (verbs->begin(c->store, &c->err) < 0)
        return false;
    cut->under_way = true;
    task = given_task(c, "q", turn % 2 ? "t" : "u");
    if (turn >= 60 && turn < 115 && turn % 2 == 0)
        task->spec.payload = str_span(large, sizeof large - (size_t)(rand_r(seed) % 4096));
    cut->asked = (struct promise){task->id, 0};
    if (verbs->tasks_insert(c->store, &task, 1, &c->err) < 0)
        return false;
    cut->touched = cut->count ? (uint32_t)rand_r(seed) % cut->count : 0;
    if (cut->count > 0) {
        if (verbs->tasks_load(c->store, &cut->promises[cut->touched].id, 1, LOAD_SPEC, &c->arena,
                              &older, &c->err) < 0)
            return false;
        assert_non_null(older);
        older->status = older->version % 2 ? STATUS_PENDING : STATUS_COMPLETED;
        older->version++;
        if (verbs->tasks_save(c->store, &older, 1, &c->err) < 0)
            return false;
    }
    if (verbs->commit(c->store, &c->err) < 0)
        return false;
    cut->under_way = false;
    if (older)
        cut->promises[cut->touched].version = older->version;
    cut->promises[cut->count++] = cut->asked;
    verbs->idle(c->store);
    return true;
}

/* Opens, fills, reopens twice; false when the power went. */
static bool run_workload(struct cut *cut)
{
    struct store_options options = {.allow_network_fs = true};
    struct conformance *c = &cut->c;
    unsigned seed = 7;

    for (int turn = 0; turn < STEPS; turn++) {
        if (turn % 60 == 0) {
            store_close(c);
            if (store_open(&c->store, str_of(c->where), &options, &c->err) < 0) {
                c->store = NULL;
                return false;
            }
            c->verbs = c->store->verbs;
        }
        if (!step(cut, turn, &seed))
            return false;
    }
    return true;
}

static void begin(struct cut *cut)
{
    memset(cut, 0, sizeof *cut);
    memset(large, '1', sizeof large);
    strcpy(cut->folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/perdura-power-XXXXXX"
                                                      : "/tmp/perdura-power-XXXXXX");
    assert_non_null(mkdtemp(cut->folder));
    snprintf(cut->c.where, sizeof cut->c.where, "%s/p.db", cut->folder);
    vfs_shim_install(&cut->shim);
}

static void end(struct cut *cut)
{
    static const char *const names[] = {"p.db", "p.db-wal", "p.db-shm", "p.db-lock",
                                        "p.db-ballast"};
    char name[WHERE_BYTES];

    store_close(&cut->c);
    vfs_shim_remove(&cut->shim);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", cut->folder, names[i]);
        unlink(name);
    }
    rmdir(cut->folder);
    arena_deinit(&cut->c.arena);
}

/* Every acknowledged task is there as it was acknowledged; the transaction under way is there as a
 * whole or not at all. */
static void then_kept(struct cut *cut)
{
    struct conformance *c = &cut->c;
    struct task *found = cut->under_way ? read_task(c, &cut->asked.id) : NULL;
    int64_t all = 0;

    for (uint32_t i = 0; i < cut->count; i++) {
        struct task *task = read_task(c, &cut->promises[i].id);

        assert_non_null(task);
        assert_int_equal(task->version,
                         cut->promises[i].version + (found && i == cut->touched));
    }
    for (int status = STATUS_BLOCKED; status < STATUS_COUNT; status++)
        all += count_of(c, "q", "t", (enum status)status) +
               count_of(c, "q", "u", (enum status)status);
    assert_int_equal(all, cut->count + (found != NULL));
    assert_int_equal(verify_findings(c), 0);
}

static void cut_once(int64_t at_sync, unsigned seed)
{
    struct cut *cut = malloc(sizeof *cut);
    struct task *task;

    begin(cut);
    cut->shim.no_promises = seed % 4 == 3;
    vfs_shim_arm(&cut->shim, at_sync);
    assert_false(run_workload(cut));
    assert_true(cut->shim.cut);
    if (cut->c.store && cut->under_way)
        cut->c.verbs->rollback(cut->c.store);
    store_close(&cut->c);
    vfs_shim_power_back(&cut->shim, seed);
    vfs_shim_arm(&cut->shim, 0); /* nothing waits for the real disk */
    store_open_again(&cut->c);
    then_kept(cut);
    store_begin(&cut->c); /* and it still works */
    task = given_ready(&cut->c, "q", "t", 1);
    store_commit(&cut->c);
    store_reopen(&cut->c);
    assert_non_null(read_task(&cut->c, &task->id));
    end(cut);
    free(cut);
}

static int64_t count_syncs(void)
{
    struct cut *cut = malloc(sizeof *cut);
    int64_t syncs;

    begin(cut);
    vfs_shim_arm(&cut->shim, 0);
    assert_true(run_workload(cut));
    store_close(&cut->c);
    syncs = vfs_shim_count(&cut->shim, SHIM_SYNC);
    end(cut);
    free(cut);
    return syncs;
}

/* Sync points of the workload proper; the last ones belong to the close. */
static int64_t cuts(void)
{
    int64_t syncs = count_syncs() - 4;

    assert_true(syncs > 180);
    return syncs < CUTS_MAX ? syncs : CUTS_MAX;
}

static void no_acknowledged_task_is_lost_when_all_unsynced_writes_are(void **state)
{
    (void)state;
    for (int64_t at = 1, last = cuts(); at <= last; at++)
        cut_once(at, 0);
}

static void no_acknowledged_task_is_lost_when_unsynced_writes_are_torn_and_reordered(void **state)
{
    (void)state;
    for (int64_t at = 1, last = cuts(); at <= last; at += 2)
        cut_once(at, 1000 + (unsigned)at);
}

static void no_acknowledged_task_is_lost_when_unsynced_writes_survive(void **state)
{
    (void)state;
    for (int64_t at = 1, last = cuts(); at <= last; at += 10)
        cut_once(at, 1);
}

/* The proof that the shim really loses something: a store that does not sync is not what it was. */
static void an_unsynced_store_loses_its_tasks(void **state)
{
    struct cut *cut = malloc(sizeof *cut);
    sqlite3 *db = NULL;

    (void)state;
    begin(cut);
    vfs_shim_arm(&cut->shim, 0);
    assert_int_equal(sqlite3_open(cut->c.where, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
                                      "CREATE TABLE t (a); INSERT INTO t VALUES (1)", NULL, NULL,
                                  NULL), SQLITE_OK);
    cut->shim.cut = true;
    sqlite3_close(db);
    vfs_shim_power_back(&cut->shim, 0);
    assert_int_equal(sqlite3_open(cut->c.where, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT * FROM t", NULL, NULL, NULL), SQLITE_ERROR);
    sqlite3_close(db);
    end(cut);
    free(cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unsynced_store_loses_its_tasks),
        cmocka_unit_test(no_acknowledged_task_is_lost_when_all_unsynced_writes_are),
        cmocka_unit_test(no_acknowledged_task_is_lost_when_unsynced_writes_are_torn_and_reordered),
        cmocka_unit_test(no_acknowledged_task_is_lost_when_unsynced_writes_survive),
    };

    return cmocka_run_group_tests_name("power_cut", tests, NULL, NULL);
}
