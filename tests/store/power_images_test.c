/* The power goes at every sync of a load on the queue (F-D13): enqueued batches, claims, reports,
 * children, cancels, deletions, retention with its archive, checkpoints, the first migration and
 * every start. The load runs once and its writes are written down; then the disks that a cut could
 * have left at each sync are made and opened, each by the real store: it opens, verify finds
 * nothing, every acknowledged word is there, nothing is there in part. Every 16th is started with
 * its queue too. Without arguments a sample; the campaign prints one JSON line:
 *
 *     power_images_test --images N --seed S */
#include "disk_trace.h"
#include "workload.h"

#include "base/hash.h"

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

#define ROUNDS 36
#define REOPEN_EVERY 9
#define LARGE_BYTES 530000 /* two units of four: the log reaches the length of a checkpoint */
#define SEEN_SLOTS (1u << 18)
#define TRIES_PER_IMAGE 4

struct run {
    struct workload w;
    struct vfs_shim shim;
    struct disk_trace trace;
    char image[SHIM_PATH_BYTES];
    uint64_t *seen; /* fingerprints of images, open addressing */
    unsigned seed;
    int64_t images, points, started, longest_us;
};

/* Stands in for the C library's: the ballast of thousands of stores need not be real. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return ftruncate(fd, offset + len) < 0 ? errno : 0;
}

static int64_t position(void *ctx)
{
    return ((struct run *)ctx)->trace.count;
}

static bool is_new(struct run *run, uint64_t print)
{
    uint32_t at = (uint32_t)(print % SEEN_SLOTS);

    for (uint32_t i = 0; i < SEEN_SLOTS; i++, at = (at + 1) % SEEN_SLOTS) {
        if (run->seen[at] == print)
            return false;
        if (run->seen[at] == 0) {
            run->seen[at] = print;
            return true;
        }
    }
    return false;
}

static void record(struct run *run, uint32_t rounds)
{
    struct workload *w = &run->w;

    vfs_shim_install(&run->shim);
    run->shim.no_promises = run->seed % 4 == 3;
    vfs_shim_arm(&run->shim, 0); /* nothing waits for the real disk */
    disk_trace_init(&run->trace);
    run->shim.watch = disk_trace_watch;
    run->shim.watch_ctx = &run->trace;
    workload_init(w, run->seed);
    w->position = position;
    w->ctx = run;
    w->large_bytes = LARGE_BYTES;
    for (uint32_t turn = 0; turn < rounds; turn++) {
        if (turn % REOPEN_EVERY == 0) {
            workload_close(w);
            if (!workload_open(w))
                abort();
        }
        if (!workload_round(w, turn) || w->refused)
            abort(); /* nothing fails yet */
    }
    workload_close(w);
    vfs_shim_remove(&run->shim);
    snprintf(run->image, sizeof run->image, "%s/image.db", w->folder);
    run->seen = calloc(SEEN_SLOTS, sizeof *run->seen);
}

static void start_queue(struct run *run, struct store *store)
{
    struct engine_config config = {.settings = &run->w.settings};
    struct engine *engine = NULL;
    int64_t findings = 0;

    if (engine_open(&engine, store, &config, &run->w.err) < 0) {
        workload_find(&run->w, "the queue does not start: %s", run->w.err.text);
        return;
    }
    engine_close(engine);
    run->started++;
    if (store->verbs->verify(store, NULL, NULL, &findings, &run->w.err) < 0 || findings > 0)
        workload_find(&run->w, "after the start verify finds %lld", (long long)findings);
}

static void open_image(struct run *run, unsigned seed)
{
    struct store_options options = {.allow_network_fs = true};
    struct workload *w = &run->w;
    struct store *store = NULL;
    int64_t began_us = clock_boot_us(), took_us;

    if (store_open(&store, str_of(run->image), &options, &w->err) < 0) {
        workload_find(w, "the store does not open: %s", w->err.text);
    } else {
        took_us = clock_boot_us() - began_us;
        run->longest_us = took_us > run->longest_us ? took_us : run->longest_us;
        if (workload_check_open(w, store, run->trace.at) && run->images % 16 == 0)
            start_queue(run, store);
        store->verbs->close(store);
    }
    run->images++;
    if (w->finding[0] && !strstr(w->finding, "[image"))
        snprintf(w->finding + strlen(w->finding), sizeof w->finding - strlen(w->finding),
                 " [image %u at event %u, seed %u]", seed, run->trace.at, run->seed);
}

static void open_images(struct run *run, int64_t images)
{
    struct disk_trace *trace = &run->trace;
    int64_t syncs = 0, done = 0;

    for (uint32_t i = 0; i < trace->count; i++)
        syncs += trace->events[i].change == SHIM_SYNCED;
    for (int64_t point = 0; disk_trace_next(trace) && !run->w.finding[0]; point++) {
        int64_t wanted = images * (point + 1) / (syncs + 1) - done;

        run->points++;
        for (unsigned seed = 0; wanted > 0 && seed < TRIES_PER_IMAGE * wanted + 2 &&
                                !run->w.finding[0]; seed++) {
            unsigned own = seed < 2 ? seed : run->seed * 1000003u + (unsigned)point * 977u + seed;

            if (!is_new(run, disk_trace_image(trace, run->image, own)))
                continue;
            open_image(run, own);
            wanted--;
            done++;
        }
    }
}

static void end(struct run *run)
{
    free(run->seen);
    disk_trace_deinit(&run->trace);
    workload_deinit(&run->w);
    free(run);
}

static int campaign(int64_t images, unsigned seed)
{
    struct run *run = calloc(1, sizeof *run);
    int64_t began_us = clock_boot_us();
    bool bad;

    run->seed = seed;
    record(run, ROUNDS);
    open_images(run, images);
    bad = run->w.finding[0] != '\0';
    printf("{\"seed\":%u,\"images\":%lld,\"sync_points\":%lld,\"started\":%lld,"
           "\"acknowledged\":%u,\"longest_open_us\":%lld,\"seconds\":%.1f,\"finding\":\"%s\"}\n",
           seed, (long long)run->images, (long long)run->points, (long long)run->started,
           run->w.acknowledged, (long long)run->longest_us,
           (double)(clock_boot_us() - began_us) / 1e6, run->w.finding);
    end(run);
    return bad ? 1 : 0;
}

static void a_cut_at_any_sync_loses_no_acknowledged_word(void **state)
{
    struct run *run = calloc(1, sizeof *run);

    (void)state;
    run->seed = 1;
    record(run, ROUNDS / 2);
    open_images(run, 300);
    if (run->w.finding[0])
        fail_msg("%s", run->w.finding);
    assert_true(run->images > 200);
    assert_true(run->points > 50);
    end(run);
}

/* The proof that the check can fail: a promise that was never made good is found. */
static void a_word_that_is_not_on_the_disk_is_missed(void **state)
{
    struct run *run = calloc(1, sizeof *run);
    struct promise *promise;

    (void)state;
    run->seed = 2;
    record(run, 3);
    promise = &run->w.promises[run->w.count++];
    *promise = (struct promise){.unit = 9999, .payload_bytes = 5, .asked = 0, .stored = 0,
                                .end_asked = NEVER, .ended = NEVER, .remove_asked = NEVER,
                                .removed = NEVER};
    while (disk_trace_next(&run->trace))
        continue;
    disk_trace_image(&run->trace, run->image, 1);
    assert_false(workload_check(&run->w, run->image, run->trace.at));
    assert_non_null(strstr(run->w.finding, "it is not there"));
    end(run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_that_is_not_on_the_disk_is_missed),
        cmocka_unit_test(a_cut_at_any_sync_loses_no_acknowledged_word),
    };
    int64_t images = 0;
    unsigned seed = 1;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--images") == 0)
            images = strtoll(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (unsigned)strtoul(argv[i + 1], NULL, 10);
    }
    return images ? campaign(images, seed)
                  : cmocka_run_group_tests_name("power_images", tests, NULL, NULL);
}
