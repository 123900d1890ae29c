/* `perdura bench`: what this machine does, through the same queue the server uses. */
#include "base/clock.h"
#include "base/hash.h"
#include "node/node.h"
#include "engine/engine.h"
#include "store/sealed/keyring.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"
#define ROWS_MAX 16
#define LIVES_ONE_MAX 3000 /* whole lives in batches of one: three commits each */
#define SINGLES_MAX 2000 /* one-by-one commits measured: enough for a p99 */

struct bench {
    struct arena *arena;
    struct engine *engine;
    const struct settings *settings;
    struct str worker_id;
    struct str payload;
    bool encrypt;
    struct bench_row *rows;
    uint32_t rows_count;
    int64_t *samples_us;
    struct err *err;
};

static int compare_int64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static int call(struct bench *bench, struct request *request)
{
    int rc = engine_call(bench->engine, request);

    if (rc < 0)
        *bench->err = request->err;
    return rc;
}

static int enqueue(struct bench *bench, uint32_t count)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = &arena},
                                      .count = count,
                                      .actor = ACTOR_API};
    int rc = 0;

    request.inputs = arena_alloc_array(&arena, count, sizeof *request.inputs);
    for (uint32_t i = 0; request.inputs && rc == 0 && i < count; i++) {
        spec_init(&request.inputs[i]);
        request.inputs[i].spec.type = STR("bench");
        request.inputs[i].spec.payload = bench->payload;
        request.inputs[i].spec.seal.encrypt = bench->encrypt;
        rc = spec_finish(&request.inputs[i], bench->settings, &arena, bench->err);
    }
    if (rc == 0)
        rc = request.inputs ? call(bench, &request.base) : err_no_memory(bench->err);
    return rc;
}

/* Claims up to count and completes them, start and outcome in one report. */
static int work(struct bench *bench, uint32_t count, uint32_t *done)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct claim_request claim = {.base = {.kind = REQUEST_CLAIM, .arena = &arena},
                                  .worker_id = bench->worker_id,
                                  .max = count};
    struct report_request report = {.base = {.kind = REQUEST_REPORT, .arena = &arena},
                                    .worker_id = bench->worker_id};
    int rc = call(bench, &claim.base);

    if (rc == 0 && claim.claimed_count > 0) {
        report.count = claim.claimed_count * 2;
        report.reports = arena_alloc_array(&arena, report.count, sizeof *report.reports);
        report.results = arena_alloc_array(&arena, report.count, sizeof *report.results);
        if (!report.reports || !report.results)
            rc = err_no_memory(bench->err);
    }
    for (uint32_t i = 0; rc == 0 && i < report.count; i++) {
        const struct task *task = claim.claimed[i / 2].task;

        report.reports[i] = (struct report){.task_id = task->id,
                                            .lease_token = task->lease.token,
                                            .op = i % 2 ? REPORT_COMPLETE : REPORT_START,
                                            .result = i % 2 ? STR("{\"ok\":true}") : STR_NONE,
                                            .progress = -1,
                                            .delay_ms = -1};
    }
    if (rc == 0 && report.count)
        rc = call(bench, &report.base);
    *done = claim.claimed_count;
    return rc;
}

static void add_row(struct bench *bench, const char *name, int64_t batch, int64_t tasks,
                    int64_t duration_us, uint32_t samples)
{
    struct bench_row row = {str_of(name), batch, tasks, duration_us, -1, -1};

    if (samples) {
        qsort(bench->samples_us, samples, sizeof *bench->samples_us, compare_int64);
        row.p50_us = bench->samples_us[samples / 2];
        row.p99_us = bench->samples_us[samples * 99 / 100];
    }
    if (bench->rows_count < ROWS_MAX)
        bench->rows[bench->rows_count++] = row;
}

static int measure_singles(struct bench *bench, int64_t tasks)
{
    uint32_t count = (uint32_t)(tasks < SINGLES_MAX ? tasks : SINGLES_MAX);
    int64_t began_us = clock_boot_us();

    for (uint32_t i = 0; i < count; i++) {
        int64_t one_us = clock_boot_us();

        TRY(enqueue(bench, 1));
        bench->samples_us[i] = clock_boot_us() - one_us;
    }
    add_row(bench, "enqueue, one by one", 1, count, clock_boot_us() - began_us, count);
    return 0;
}

static int drain(struct bench *bench, uint32_t batch, int64_t *drained)
{
    uint32_t done;

    *drained = 0;
    do {
        TRY(work(bench, batch, &done));
        *drained += done;
    } while (done > 0);
    return 0;
}

/* Enqueue all, then claim, start and complete all; both in batches. */
static int measure_batch(struct bench *bench, uint32_t batch, int64_t tasks)
{
    int64_t began_us = clock_boot_us(), middle_us, ended_us, drained;

    for (int64_t left = tasks; left > 0; left -= batch)
        TRY(enqueue(bench, (uint32_t)(left < batch ? left : batch)));
    middle_us = clock_boot_us();
    TRY(drain(bench, batch > 1000 ? 1000 : batch, &drained));
    ended_us = clock_boot_us();
    add_row(bench, "enqueue, in batches", batch, tasks, middle_us - began_us, 0);
    add_row(bench, "claim, start, complete", batch, drained, ended_us - middle_us, 0);
    add_row(bench, "whole life", batch, tasks, ended_us - began_us, 0);
    return 0;
}

static int measure(struct bench *bench, const struct bench_request *request,
                   void (*step)(void *, const char *), void *step_ctx)
{
    static const uint32_t sizes[] = {1, 10, 100, 1000};
    int64_t drained;

    if (step)
        step(step_ctx, "enqueue, one by one");
    TRY(measure_singles(bench, request->tasks));
    TRY(drain(bench, 1000, &drained));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t batch = request->batch ? (uint32_t)request->batch : sizes[i];
        int64_t tasks = batch == 1 && request->tasks > LIVES_ONE_MAX ? LIVES_ONE_MAX
                                                                     : request->tasks;
        char name[64];

        snprintf(name, sizeof name, "whole life in batches of %u", batch);
        if (step)
            step(step_ctx, name);
        TRY(measure_batch(bench, batch, tasks));
        if (request->batch)
            break;
    }
    return 0;
}

static int register_worker(struct bench *bench)
{
    static const struct str queues[] = {{"default", 7}};
    struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = bench->arena},
                                       .worker = {.hostname = STR("bench"), .pool_size = 1},
                                       .queues = queues,
                                       .queues_count = 1};
    int rc = call(bench, &request.base);

    bench->worker_id = request.id;
    return rc;
}

static void remove_store(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock", "-ballast"};
    char name[4096];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* A JSON text of so many bytes that no compression makes small. */
static struct str make_payload(int64_t bytes, struct arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    char *text = bytes > 0 ? arena_alloc(arena, (size_t)bytes + 1) : NULL;

    if (bytes <= 0)
        return STR(PAYLOAD);
    if (!text)
        return STR_NONE;
    hash_random(text, (size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        text[i] = i == 0 || i == bytes - 1 ? '"' : digits[text[i] & 15];
    return str_span(text, (size_t)bytes);
}

/* NULL with ERR_NONE: it is not asked for. */
static struct keyring *make_keyring(const struct bench_request *request, struct err *err)
{
    uint8_t bytes[SEAL_KEY_BYTES] = {0};
    const struct encryption_key key = {.id = STR("bench"),
                                       .secret = str_span((char *)bytes, sizeof bytes)};
    const struct encryption_settings settings = {.keys = &key, .keys_count = 1,
                                                 .current = key.id};

    if (!request->encrypt)
        return NULL;
    hash_random(bytes, sizeof bytes);
    return keyring_new(&settings, err);
}

int node_bench(const struct settings *settings, const struct bench_request *request,
               void (*step)(void *ctx, const char *name), void *step_ctx, struct arena *arena,
               struct bench_report *report, struct err *err)
{
    struct store_options options = {0};
    struct engine_config config = {.settings = settings};
    struct bench bench = {.arena = arena, .settings = settings, .err = err};
    struct str path = request->store;
    struct keyring *keyring;
    struct store *store = NULL;
    int rc;

    bench.encrypt = request->encrypt;
    bench.payload = make_payload(request->payload_bytes, arena);
    store_own_process();
    if (!path.data)
        path = arena_format(arena, STR_FMT "/perdura-bench-%ld.db",
                            STR_ARG(request->folder.data ? request->folder : STR(".")),
                            (long)getpid());
    bench.rows = arena_alloc_array(arena, ROWS_MAX, sizeof *bench.rows);
    bench.samples_us = arena_alloc_array(arena, SINGLES_MAX, sizeof *bench.samples_us);
    TRY_MEMORY(path.data && bench.rows && bench.samples_us && bench.payload.data);
    keyring = make_keyring(request, err);
    if (request->encrypt && !keyring)
        return -(int)err->code;
    options.keyring = keyring;
    options.serves = request->encrypt;
    rc = store_open(&store, path, &options, err);
    if (rc == 0)
        rc = engine_open(&bench.engine, store, &config, err);
    if (rc == 0)
        rc = register_worker(&bench);
    if (rc == 0)
        rc = measure(&bench, request, step, step_ctx);
    if (bench.engine)
        engine_close(bench.engine);
    if (store)
        store->verbs->close(store);
    keyring_free(keyring);
    if (!request->store.data)
        remove_store(path.data);
    *report = (struct bench_report){bench.rows, bench.rows_count};
    return rc;
}
