/* Measures libperdura the way a program uses it: handlers on the library's threads, or a consumer's
 * own loop; on a store in this process or on a server. Prints one line of JSON.
 *
 *   lib_load drain WHERE [--tasks N] [--concurrency N] [--batch N]   a worker with a no-op handler
 *   lib_load consume WHERE [--tasks N] [--concurrency N] [--batch N]   N threads, each a consumer
 *                                                    that claims and reports in a loop
 *   lib_load enqueue WHERE [--tasks N] [--concurrency N] [--batch N]   N threads that enqueue
 *   lib_load latency WHERE [--tasks N] [--rate N]    enqueue -> handler entered, one process
 *   lib_load listen WHERE [--tasks N]                the handler's half of it
 *   lib_load offer WHERE [--tasks N] [--rate N] [--batch N]   the enqueueing half: for `listen`,
 *                                                    or a process handler that looks at the clock
 *
 * WHERE is a file, http://HOST:PORT or postgres://...; there every process is a node (programs are
 * clients of a server there: this one opens the engine itself, to measure it without one). With
 * `--filled 1` a drain finds its tasks there and makes none. With `--type T` tasks are of that type,
 * and consumers claim no other; `--category C` does the same with a category. Without --concurrency and --batch the library's defaults hold. Times
 * are of CLOCK_MONOTONIC, taken before the enqueue call and at the handler's first line; begin and
 * end are printed, so that several processes can be measured together. A drain counts until the
 * worker has stopped: everything is reported and durable. */
#include "lib/lib_int.h"

#include <perdura.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"
_Static_assert(sizeof PAYLOAD - 1 == 107, "the payload is 107 bytes, as for the peers");
#define ENQUEUE_BATCH 1000
#define TASKS_MAX 10000000
#define WAIT_SECONDS 300 /* without a single task run */
#define PARTS 10         /* of a long run: the first and the last are compared */
#define THREADS_MAX 1024
#define PROBE_EVERY 1000 /* tasks whose end is looked at afterwards */

struct options {
    const char *mode;
    const char *where;
    unsigned tasks;
    unsigned concurrency;
    unsigned batch;
    unsigned rate;
    unsigned filled;
    const char *type;
    const char *category;
};

struct bench {
    struct pd *pd;
    const struct options *options;
    atomic_uint ran;
    atomic_uint asked;
    int64_t *samples_ns;
    char (*probes)[PD_ID_BYTES];
    unsigned probes_count;
    double cpu_us; /* used before the run that is measured */
    pthread_mutex_t lock;
    pthread_cond_t all_ran;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(struct bench *bench, const char *what)
{
    fprintf(stderr, "lib_load: %s: %s\n", what, bench->pd ? pd_error(bench->pd) : "");
    exit(1);
}

static const char *type_of(const struct bench *bench)
{
    return bench->options->type ? bench->options->type : "bench";
}

static void check(struct bench *bench, int rc, const char *what)
{
    if (rc < 0)
        die(bench, what);
}

/* ---- filling ---- */

static void fill(struct bench *bench)
{
    static struct pd_task_spec specs[ENQUEUE_BATCH];
    static struct pd_enqueued enqueued[ENQUEUE_BATCH];
    unsigned tasks = bench->options->tasks;

    for (unsigned i = 0; i < ENQUEUE_BATCH; i++)
        specs[i] = (struct pd_task_spec){.size = sizeof(struct pd_task_spec),
                                         .type = type_of(bench), .payload = PAYLOAD,
                                         .queue = "default",
                                         .category = bench->options->category};
    for (unsigned done = 0; done < tasks;) {
        unsigned count = tasks - done < ENQUEUE_BATCH ? tasks - done : ENQUEUE_BATCH;

        check(bench, pd_enqueue_batch(bench->pd, specs, count, enqueued), "enqueue");
        memcpy(bench->probes[bench->probes_count++], enqueued[count - 1].id, PD_ID_BYTES);
        done += count;
    }
}

static void look_at_probes(struct bench *bench)
{
    for (unsigned i = 0; i < bench->probes_count; i++) {
        struct pd_result result = PD_RESULT_INIT;

        check(bench, pd_get(bench->pd, bench->probes[i], &result), "get");
        if (result.status != PD_STATUS_COMPLETED)
            die(bench, "a task of the drain is not completed");
        pd_result_free(&result);
    }
}

static long status_kib(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static double cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void print_drain(const struct bench *bench, int64_t began_ns, int64_t ended_ns)
{
    unsigned tasks = bench->options->tasks;

    printf("{\"mode\":\"%s\",\"tasks\":%u,\"concurrency\":%u,\"batch\":%u,\"began_ns\":%lld,"
           "\"ended_ns\":%lld,\"per_second\":%.0f,\"worker_mib\":%.1f,"
           "\"cpu_us_per_task\":%.2f}\n",
           bench->options->mode, tasks, bench->options->concurrency, bench->options->batch,
           (long long)began_ns, (long long)ended_ns, tasks * 1e9 / (double)(ended_ns - began_ns),
           (double)status_kib("VmRSS") / 1024, (cpu_us() - bench->cpu_us) / tasks);
    fflush(stdout);
}

static void run_threads(struct bench *bench, void *(*run)(void *), unsigned count)
{
    pthread_t threads[THREADS_MAX];

    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, bench) != 0)
            die(bench, "cannot start a thread");
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- workers ---- */

static void count_run(struct bench *bench)
{
    if (atomic_fetch_add(&bench->ran, 1) + 1 < bench->options->tasks)
        return;
    pthread_mutex_lock(&bench->lock);
    pthread_cond_signal(&bench->all_ran);
    pthread_mutex_unlock(&bench->lock);
}

static int nothing(struct pd_task *task, void *ctx)
{
    pd_task_set_result(task, "{\"ok\":true}");
    count_run(ctx);
    return PD_DONE;
}

static int clocked(struct pd_task *task, void *ctx)
{
    int64_t entered_ns = now_ns();
    struct bench *bench = ctx;
    const char *sent = strstr(pd_task_payload(task), "\"ns\":");
    unsigned i = atomic_load(&bench->ran);

    pthread_mutex_lock(&bench->lock);
    i = atomic_load(&bench->ran);
    if (sent && i < bench->options->tasks)
        bench->samples_ns[i] = entered_ns - strtoll(sent + 5, NULL, 10);
    pthread_mutex_unlock(&bench->lock);
    count_run(bench);
    return PD_DONE;
}

static struct pd_worker *start_worker(struct bench *bench, const char *type, pd_handler *handler)
{
    struct pd_worker_options options = {.size = sizeof(struct pd_worker_options),
                                        .concurrency = bench->options->concurrency,
                                        .batch = bench->options->batch,
                                        .categories = &bench->options->category,
                                        .categories_count = bench->options->category ? 1 : 0};
    struct pd_worker *worker;

    check(bench, pd_worker_new(bench->pd, &options, &worker), "worker");
    check(bench, pd_worker_handle(worker, type, handler, bench), "handler");
    check(bench, pd_worker_start(worker), "start");
    return worker;
}

static void wait_for_all(struct bench *bench)
{
    unsigned seen = UINT_MAX;

    pthread_mutex_lock(&bench->lock);
    while (atomic_load(&bench->ran) < bench->options->tasks) {
        struct timespec at;

        if (seen == atomic_load(&bench->ran))
            die(bench, "not all tasks ran in time");
        seen = atomic_load(&bench->ran);
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += WAIT_SECONDS;
        while (atomic_load(&bench->ran) < bench->options->tasks &&
               pthread_cond_timedwait(&bench->all_ran, &bench->lock, &at) == 0)
            continue;
    }
    pthread_mutex_unlock(&bench->lock);
}

static void drain(struct bench *bench)
{
    struct pd_worker *worker;
    int64_t began_ns, ended_ns;

    if (!bench->options->filled)
        fill(bench);
    bench->cpu_us = cpu_us();
    began_ns = now_ns();
    worker = start_worker(bench, type_of(bench), nothing);
    wait_for_all(bench);
    check(bench, pd_worker_stop(worker, 10000), "stop");
    ended_ns = now_ns();
    pd_worker_free(worker);
    look_at_probes(bench);
    print_drain(bench, began_ns, ended_ns);
}

/* ---- consumers ---- */

static void report_all(struct bench *bench, struct pd_consumer *consumer,
                       const struct pd_claims *claims, struct pd_report *reports)
{
    for (size_t i = 0; i < claims->count; i++)
        reports[i] = (struct pd_report){.size = sizeof(struct pd_report),
                                        .task_id = claims->tasks[i]->id,
                                        .lease_token = claims->tasks[i]->lease_token,
                                        .op = PD_OP_COMPLETE,
                                        .json = "{\"ok\":true}"};
    check(bench, pd_report(consumer, reports, claims->count), "report");
    for (size_t i = 0; i < claims->count; i++)
        if (reports[i].rc < 0)
            die(bench, "a report was refused");
}

/* Asks for no more than is left for all of them, so that exactly the wanted number is run. */
static void *consume_thread(void *ctx)
{
    struct bench *bench = ctx;
    unsigned batch = bench->options->batch ? bench->options->batch : 100;
    unsigned tasks = bench->options->tasks, first;
    struct pd_report *reports = calloc(batch, sizeof *reports);
    struct pd_worker_options options = {.size = sizeof(struct pd_worker_options),
                                        .types = &bench->options->type,
                                        .types_count = bench->options->type ? 1 : 0,
                                        .categories = &bench->options->category,
                                        .categories_count = bench->options->category ? 1 : 0};
    struct pd_consumer *consumer;

    check(bench, pd_consumer_open(bench->pd, &options, &consumer), "consumer");
    while (reports && (first = atomic_fetch_add(&bench->asked, batch)) < tasks) {
        unsigned wanted = tasks - first < batch ? tasks - first : batch;
        unsigned done = 0;

        while (done < wanted) {
            struct pd_claims *claims;

            check(bench, pd_claim(consumer, wanted - done, 1000, &claims), "claim");
            if (claims->count > 0)
                report_all(bench, consumer, claims, reports);
            done += (unsigned)claims->count;
            pd_claims_free(claims);
        }
        atomic_fetch_add(&bench->ran, done);
    }
    pd_consumer_close(consumer);
    free(reports);
    return NULL;
}

static void consume(struct bench *bench)
{
    unsigned count = bench->options->concurrency ? bench->options->concurrency : 1;
    int64_t began_ns;

    if (!bench->options->filled)
        fill(bench);
    bench->cpu_us = cpu_us();
    began_ns = now_ns();
    run_threads(bench, consume_thread, count);
    print_drain(bench, began_ns, now_ns());
    look_at_probes(bench);
}

/* ---- enqueue ---- */

static void *enqueue_thread(void *ctx)
{
    struct bench *bench = ctx;
    const struct pd_task_spec one = {.size = sizeof(struct pd_task_spec),
                                     .type = type_of(bench), .payload = PAYLOAD,
                                         .queue = "default",
                                         .category = bench->options->category};
    unsigned batch = bench->options->batch ? bench->options->batch : 1;
    struct pd_task_spec *specs = calloc(batch, sizeof *specs);

    for (unsigned i = 0; specs && i < batch; i++)
        specs[i] = one;
    while (specs && atomic_fetch_add(&bench->asked, batch) < bench->options->tasks) {
        int64_t sent_ns = now_ns();

        check(bench, pd_enqueue_batch(bench->pd, specs, batch, NULL), "enqueue");
        bench->samples_ns[atomic_fetch_add(&bench->ran, batch) / batch] = now_ns() - sent_ns;
    }
    free(specs);
    return NULL;
}

static int compare_int64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

static void enqueue(struct bench *bench)
{
    unsigned batch = bench->options->batch ? bench->options->batch : 1;
    unsigned count = bench->options->concurrency ? bench->options->concurrency : 1;
    int64_t began_ns = now_ns(), ended_ns;
    unsigned samples;

    run_threads(bench, enqueue_thread, count);
    ended_ns = now_ns();
    samples = bench->ran / batch;
    qsort(bench->samples_ns, samples, sizeof *bench->samples_ns, compare_int64);
    printf("{\"mode\":\"enqueue\",\"threads\":%u,\"batch\":%u,\"done\":%u,\"began_ns\":%lld,"
           "\"ended_ns\":%lld,\"per_second\":%.0f,\"p50_us\":%lld,\"p99_us\":%lld}\n",
           count, batch, bench->ran, (long long)began_ns, (long long)ended_ns,
           bench->ran * 1e9 / (double)(ended_ns - began_ns),
           (long long)bench->samples_ns[samples / 2] / 1000,
           (long long)bench->samples_ns[samples * 99UL / 100] / 1000);
}

/* ---- latency ---- */

/* Steadily, whatever the last one took; a late one is not made up for by a burst. The rate counts
 * tasks, also where a call has several. */
static void offer(struct bench *bench)
{
    unsigned batch = bench->options->batch ? bench->options->batch : 1;
    int64_t step_ns = INT64_C(1000000000) * batch / bench->options->rate;
    int64_t next_ns = now_ns() + step_ns;
    struct pd_task_spec *specs = calloc(batch, sizeof *specs);
    char payload[160];

    for (unsigned i = 0; specs && i < batch; i++)
        specs[i] = (struct pd_task_spec){.size = sizeof(struct pd_task_spec),
                                         .type = "clock", .payload = payload,
                                         .queue = "default",
                                         .category = bench->options->category};
    for (unsigned done = 0; specs && done < bench->options->tasks; done += batch) {
        unsigned left = bench->options->tasks - done;
        struct timespec at = {.tv_sec = next_ns / 1000000000, .tv_nsec = next_ns % 1000000000};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
            continue;
        snprintf(payload, sizeof payload, "{\"ns\":%lld,\"body\":\"%076d\"}",
                 (long long)now_ns(), 0);
        check(bench, pd_enqueue_batch(bench->pd, specs, left < batch ? left : batch, NULL),
              "enqueue");
        next_ns += step_ns;
        if (next_ns < now_ns())
            next_ns = now_ns() + step_ns;
    }
    free(specs);
}

/* Sorts the samples it is about: parts before the whole. */
static void print_latency(const struct bench *bench, const char *name, unsigned first,
                          unsigned count)
{
    int64_t *samples = bench->samples_ns + first;

    qsort(samples, count, sizeof *samples, compare_int64);
    printf(",\"%sp50_ms\":%.3f,\"%sp99_ms\":%.3f,\"%smax_ms\":%.3f", name,
           (double)samples[count / 2] / 1e6, name, (double)samples[count * 99UL / 100] / 1e6, name,
           (double)samples[count - 1] / 1e6);
}

static void latency(struct bench *bench, bool with_offer)
{
    struct pd_worker *worker = start_worker(bench, "clock", clocked);
    unsigned count = bench->options->tasks, part;

    printf("{\"mode\":\"listening\"}\n");
    fflush(stdout);
    if (with_offer)
        offer(bench);
    wait_for_all(bench);
    check(bench, pd_worker_stop(worker, 10000), "stop");
    pd_worker_free(worker);
    part = count < PARTS ? count : count / PARTS;
    printf("{\"mode\":\"latency\",\"tasks\":%u,\"rate\":%u", count, bench->options->rate);
    print_latency(bench, "first_", 0, part);
    print_latency(bench, "last_", count - part, part);
    print_latency(bench, "", 0, count);
    printf("}\n");
}

/* ---- main ---- */

static unsigned number(const char *text, unsigned max)
{
    char *end = NULL;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;

    if (!text || *end || value < 1 || value > max) {
        fprintf(stderr, "lib_load: '%s' is not a number from 1 to %u\n", text ? text : "", max);
        exit(2);
    }
    return (unsigned)value;
}

static void read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.tasks = 1000, .rate = 100};
    if (argc < 3) {
        fprintf(stderr, "usage: lib_load drain|consume|enqueue|latency|listen|offer WHERE "
                        "[--tasks N] [--concurrency N] [--batch N] [--rate N] [--type T] "
                        "[--category C]\n");
        exit(2);
    }
    options->mode = argv[1];
    options->where = argv[2];
    for (int i = 3; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--tasks") == 0)
            options->tasks = number(value, TASKS_MAX);
        else if (strcmp(argv[i], "--concurrency") == 0)
            options->concurrency = number(value, THREADS_MAX);
        else if (strcmp(argv[i], "--batch") == 0)
            options->batch = number(value, PD_BATCH_MAX);
        else if (strcmp(argv[i], "--filled") == 0)
            options->filled = number(value, 1);
        else if (strcmp(argv[i], "--type") == 0)
            options->type = value;
        else if (strcmp(argv[i], "--category") == 0)
            options->category = value;
        else
            options->rate = number(value, 1000000);
    }
}

/* What pd_open does, but for its refusal of databases. */
static void open_database(struct bench *bench)
{
    struct pd_options defaults = PD_OPTIONS_INIT;
    struct err err = {0};

    bench->pd = calloc(1, sizeof *bench->pd);
    if (!bench->pd)
        die(bench, "out of memory");
    pthread_mutex_init(&bench->pd->lock, NULL);
    bench->pd->verbs = &lib_local_verbs;
    if (lib_local_verbs.open(bench->pd, bench->options->where, &defaults, &err) < 0)
        die(bench, err.text);
}

int main(int argc, char **argv)
{
    struct options options;
    struct bench bench = {.lock = PTHREAD_MUTEX_INITIALIZER, .all_ran = PTHREAD_COND_INITIALIZER};

    read_options(argc, argv, &options);
    bench.options = &options;
    bench.samples_ns = calloc(options.tasks + THREADS_MAX, sizeof *bench.samples_ns);
    bench.probes = calloc(options.tasks / PROBE_EVERY + 2, sizeof *bench.probes);
    if (!bench.samples_ns || !bench.probes)
        die(&bench, "out of memory");
    if (strncmp(options.where, "postgres", 8) == 0)
        open_database(&bench);
    else
        check(&bench, pd_open(options.where, NULL, &bench.pd), "open");
    if (strcmp(options.mode, "drain") == 0)
        drain(&bench);
    else if (strcmp(options.mode, "consume") == 0)
        consume(&bench);
    else if (strcmp(options.mode, "latency") == 0)
        latency(&bench, true);
    else if (strcmp(options.mode, "listen") == 0)
        latency(&bench, false);
    else if (strcmp(options.mode, "enqueue") == 0)
        enqueue(&bench);
    else if (strcmp(options.mode, "offer") == 0)
        offer(&bench);
    else
        die(&bench, "there is no such mode");
    pd_close(bench.pd);
    free(bench.samples_ns);
    free(bench.probes);
    return 0;
}
