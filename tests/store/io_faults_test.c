/* The n-th operation on the disk fails, for n = 1, 2, 3 ... until the workload meets no fault any
 * more (F-D2, F-D3, F-D4): reads, writes, syncs and truncations, of the log and of the file, by an
 * error or for want of space. Every request is answered with success, with an error, or by the stop
 * of the queue; what was acknowledged is there afterwards, what was refused is not, and the store
 * keeps working. Without arguments a sample; with --campaign every n, one JSON line per kind of
 * fault:
 *
 *     io_faults_test --campaign [--seed S] [--kind NAME] [--step N] */
#include "vfs_shim.h"
#include "workload.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 9
#define LARGE 1040000 /* four of them: the log reaches the length at which it is checkpointed */
#define RUNS_MAX 100000

struct kind {
    const char *name;
    enum shim_op op;
    const char *suffix;
    int code;
    int64_t times;
    uint32_t large_bytes; /* payloads that make the log long enough for a checkpoint; 0 = small */
};

static const struct kind kinds[] = {
    {"read of the file", SHIM_READ, ".db", SQLITE_IOERR_READ, 1, 0},
    {"read of the log", SHIM_READ, "-wal", SQLITE_IOERR_READ, 1, LARGE},
    {"write of the log", SHIM_WRITE, "-wal", SQLITE_IOERR_WRITE, 1, 0},
    {"write of the log without space", SHIM_WRITE, "-wal", SQLITE_FULL, 3, 0},
    {"write in a checkpoint", SHIM_WRITE, ".db", SQLITE_IOERR_WRITE, 1, LARGE},
    {"write in a checkpoint without space", SHIM_WRITE, ".db", SQLITE_FULL, 3, LARGE},
    {"sync of the log", SHIM_SYNC, "-wal", SQLITE_IOERR_FSYNC, 1, 0},
    {"sync of the file", SHIM_SYNC, ".db", SQLITE_IOERR_FSYNC, 1, LARGE},
    {"truncation", SHIM_TRUNCATE, "", SQLITE_IOERR_TRUNCATE, 1, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct tally {
    int64_t runs, refused, stopped, not_opened, acknowledged;
    char finding[500];
};

/* Stands in for the C library's: the ballast of thousands of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

static void load(struct workload *w, struct tally *tally)
{
    bool opened;

    if (workload_life(w, ROUNDS, ROUNDS / 2, &opened))
        return;
    tally->stopped += opened;
    tally->not_opened += !opened;
}

static void then_kept(struct workload *w, const struct kind *kind, int64_t n, struct tally *tally)
{
    if (workload_check(w, w->path, NEVER - 1) && !workload_open(w))
        workload_find(w, "it does not start again: %s", w->err.text);
    if (!w->finding[0] && !workload_round(w, ROUNDS))
        workload_find(w, "it does not continue: %s", w->err.text);
    workload_close(w);
    if (!w->finding[0])
        workload_check(w, w->path, NEVER - 1);
    if (w->finding[0] && !tally->finding[0])
        snprintf(tally->finding, sizeof tally->finding, "%s, n = %lld, seed %u: %s", kind->name,
                 (long long)n, w->seed, w->finding);
}

/* One life with the n-th operation failing; false when it never came to it. */
static bool run_once(const struct kind *kind, int64_t n, unsigned seed, struct tally *tally)
{
    struct workload *w = calloc(1, sizeof *w);
    struct vfs_shim shim;
    bool fired;

    vfs_shim_install(&shim);
    vfs_shim_arm(&shim, 0); /* nothing waits for the real disk */
    vfs_shim_fail(&shim, kind->op, kind->suffix, n - 1, kind->times, kind->code);
    workload_init(w, seed);
    w->large_bytes = kind->large_bytes;
    load(w, tally);
    workload_close(w);
    fired = shim.faults[kind->op].times < kind->times;
    vfs_shim_fail(&shim, kind->op, "", 0, 0, 0);
    then_kept(w, kind, n, tally);
    tally->runs += fired;
    tally->refused += w->refused;
    tally->acknowledged += w->acknowledged;
    workload_deinit(w);
    vfs_shim_remove(&shim);
    free(w);
    return fired;
}

/* step 1: every n; otherwise the first ones and then a sample. */
static void run_kind(const struct kind *kind, unsigned seed, int64_t step, struct tally *tally)
{
    memset(tally, 0, sizeof *tally);
    for (int64_t n = 1; n < RUNS_MAX && !tally->finding[0]; n += n < 4 ? 1 : step)
        if (!run_once(kind, n, seed, tally))
            break;
}

static int campaign(unsigned seed, const char *only, int64_t step)
{
    struct tally tally;
    int bad = 0;

    for (size_t i = 0; i < KINDS; i++) {
        if (only && strcmp(only, kinds[i].name) != 0)
            continue;
        run_kind(&kinds[i], seed, step, &tally);
        bad += tally.finding[0] != '\0';
        printf("{\"kind\":\"%s\",\"seed\":%u,\"runs\":%lld,\"refused\":%lld,\"stopped\":%lld,"
               "\"not_opened\":%lld,\"acknowledged\":%lld,\"finding\":\"%s\"}\n", kinds[i].name,
               seed, (long long)tally.runs, (long long)tally.refused, (long long)tally.stopped,
               (long long)tally.not_opened, (long long)tally.acknowledged, tally.finding);
        fflush(stdout);
    }
    return bad ? 1 : 0;
}

static void no_fault_of_the_disk_costs_an_acknowledged_word(void **state)
{
    static const int64_t steps[KINDS] = {40, 250, 150, 150, 250, 250, 9, 2, 2};
    struct tally tally;

    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        run_kind(&kinds[i], 1, steps[i], &tally);
        if (tally.finding[0])
            fail_msg("%s", tally.finding);
        assert_true(tally.runs > 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_fault_of_the_disk_costs_an_acknowledged_word),
    };
    unsigned seed = 1;
    const char *only = NULL;
    bool all = false;
    int64_t step = 1;

    for (int i = 1; i < argc; i++) {
        all = all || strcmp(argv[i], "--campaign") == 0;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--kind") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--step") == 0 && i + 1 < argc)
            step = strtoll(argv[++i], NULL, 10);
    }
    return all ? campaign(seed, only, step > 0 ? step : 1)
               : cmocka_run_group_tests_name("io_faults", tests, NULL, NULL);
}
