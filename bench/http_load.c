/* Measures a running server over HTTP, the way a good client would use it. Prints one line of JSON.
 * Every reply is checked: a refused task, a stale report or a missing element ends the program.
 *
 *   http_load HOST:PORT MODE [--connections N] [--batch N] [--tasks N] [--ca FILE] [--token T]
 *             [--namespace N] [--payload-bytes N]
 *
 *   nothing   GET /healthz, the route that does nothing: what HTTP itself costs
 *   enqueue   durable enqueue, --batch tasks per request
 *   drain     claim --batch, then report start and complete with a result; until nothing is left
 *   life      enqueue all, then drain all: the whole audited life
 *   park      parks one long-poll claim per connection, all of one worker, says so, waits for stdin
 *             to end; for measuring what a waiting claim costs the server
 *   park-workers   the same with a worker of its own per connection
 *
 * One thread. */
#include "load_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 107 bytes of payload, as for the peers. */
#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"
_Static_assert(sizeof PAYLOAD - 1 == 107, "the payload is 107 bytes, as for the peers");
#define ONE_TASK "{\"type\":\"bench\",\"payload\":" PAYLOAD "}"
#define LONG_TASK_HEAD "{\"type\":\"bench\",\"payload\":\""
#define LONG_TASK_TAIL "\"}"
#define PAYLOAD_MAX 65536
#define BATCH_MAX 10000
#define CLAIM_MAX 1000
#define PARK_WAIT_MS 60000

struct options {
    const char *address;
    const char *mode;
    uint32_t connections;
    uint32_t batch;
    uint32_t tasks;
    uint32_t payload_bytes; /* 0: the usual ones */
    const char *ca;         /* of a server that speaks TLS; NULL = clear text */
    const char *token;
    const char *namespace_name;
};

struct run {
    bool one_worker;
    struct load load;
    const struct options *options;
    uint32_t asked; /* tasks or requests sent off */
    uint32_t done;  /* acknowledged */
};

static uint32_t count_of(const char *body, size_t body_len, const char *needle)
{
    size_t len = strlen(needle);
    const char *end = body + body_len;
    uint32_t count = 0;

    while ((body = memmem(body, (size_t)(end - body), needle, len))) {
        body += len;
        count++;
    }
    return count;
}

static void expect(int status, int wanted, const char *body, size_t body_len)
{
    if (status != wanted)
        load_die("status %d instead of %d: %.*s", status, wanted,
                 body_len < 300 ? (int)body_len : 300, body);
}

/* ---- nothing ---- */

static bool nothing_next(void *ctx, struct load_connection *connection)
{
    struct run *run = ctx;

    if (run->asked >= run->options->tasks)
        return false;
    run->asked++;
    if (!connection->out.len)
        load_request(&run->load, connection, "GET", "/healthz", NULL, 0);
    return true;
}

static void nothing_answered(void *ctx, struct load_connection *connection, int status,
                             const char *body, size_t body_len)
{
    struct run *run = ctx;

    (void)connection;
    expect(status, 200, body, body_len);
    run->done++;
}

/* ---- enqueue ---- */

static void add_task(const struct run *run, struct load_bytes *body)
{
    if (!run->options->payload_bytes) {
        load_bytes_text(body, ONE_TASK);
        return;
    }
    load_bytes_text(body, LONG_TASK_HEAD);
    for (uint32_t i = 2; i < run->options->payload_bytes; i++) /* two are its quotes */
        load_bytes_add(body, &"abcdefghijklmnopqrstuvwxyz "[i % 27], 1);
    load_bytes_text(body, LONG_TASK_TAIL);
}

/* All requests but the last are the same bytes, made once per connection. */
static bool enqueue_next(void *ctx, struct load_connection *connection)
{
    struct run *run = ctx;
    uint32_t left = run->options->tasks - run->asked;
    uint32_t count = left < run->options->batch ? left : run->options->batch;

    if (left == 0)
        return false;
    run->asked += count;
    if (connection->step == (int)count)
        return true;
    connection->step = (int)count;
    connection->body.len = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (run->options->batch > 1)
            load_bytes_text(&connection->body, i ? "," : "[");
        add_task(run, &connection->body);
    }
    if (run->options->batch > 1)
        load_bytes_text(&connection->body, "]");
    load_request(&run->load, connection, "POST", "/v1/tasks", connection->body.data,
                 connection->body.len);
    return true;
}

static void enqueue_answered(void *ctx, struct load_connection *connection, int status,
                             const char *body, size_t body_len)
{
    struct run *run = ctx;

    expect(status, 201, body, body_len);
    if (count_of(body, body_len, "{\"id\":\"") != (uint32_t)connection->step)
        load_die("not %d tasks in the reply: %.300s", connection->step, body);
    run->done += (uint32_t)connection->step;
}

/* ---- workers ---- */

static bool register_next(void *ctx, struct load_connection *connection)
{
    struct run *run = ctx;
    char body[128];
    int len = snprintf(body, sizeof body,
                       "{\"id\":\"bench-%u\",\"pool_size\":1,\"queues\":[\"default\"]}",
                       run->one_worker ? 0 : connection->index);

    if (connection->step == -1) /* it has registered */
        return false;
    load_request(&run->load, connection, "POST", "/v1/workers", body, (size_t)len);
    connection->step = -1;
    return true;
}

static void register_answered(void *ctx, struct load_connection *connection, int status,
                              const char *body, size_t body_len)
{
    (void)ctx;
    (void)connection;
    expect(status, 201, body, body_len);
}

static void register_all(struct run *run)
{
    load_run(&run->load, &(struct load_job){run, register_next, register_answered});
    for (uint32_t i = 0; i < run->load.count; i++)
        run->load.connections[i].step = 0;
}

/* ---- drain: a connection claims when its body is empty, else it reports what is there ---- */

enum drain_step { DRAIN_CLAIM, DRAIN_CLAIMING, DRAIN_REPORT, DRAIN_REPORTING, DRAIN_OVER };

static void post_worker(struct run *run, struct load_connection *connection, const char *verb,
                        const char *body, size_t body_len)
{
    char path[64];

    snprintf(path, sizeof path, "/v1/workers/bench-%u:%s",
             run->one_worker ? 0 : connection->index, verb);
    load_request(&run->load, connection, "POST", path, body, body_len);
}

static bool drain_next(void *ctx, struct load_connection *connection)
{
    struct run *run = ctx;
    char body[64];
    int len;

    switch (connection->step) {
    case DRAIN_CLAIM:
        len = snprintf(body, sizeof body, "{\"max\":%u}", run->options->batch);
        post_worker(run, connection, "claim", body, (size_t)len);
        connection->step = DRAIN_CLAIMING;
        return true;
    case DRAIN_REPORT:
        post_worker(run, connection, "report", connection->body.data, connection->body.len);
        connection->step = DRAIN_REPORTING;
        return true;
    default:
        return false;
    }
}

/* Turns the claimed tasks into the report that ends them; returns how many. */
static uint32_t write_report(struct load_connection *connection, const char *body, size_t body_len)
{
    static const char id_key[] = "{\"id\":\"", token_key[] = "\"lease_token\":";
    const char *end = body + body_len;
    uint32_t count = 0;

    connection->body.len = 0;
    while ((body = memmem(body, (size_t)(end - body), id_key, sizeof id_key - 1))) {
        const char *id = body + sizeof id_key - 1;
        const char *token = memmem(id, (size_t)(end - id), token_key, sizeof token_key - 1);
        long lease;

        if (!token)
            load_die("a claimed task without a lease: %.300s", body);
        lease = strtol(token + sizeof token_key - 1, NULL, 10);
        load_bytes_format(&connection->body,
                          "%s{\"task_id\":\"%.36s\",\"lease_token\":%ld,\"op\":\"start\"},"
                          "{\"task_id\":\"%.36s\",\"lease_token\":%ld,\"op\":\"complete\","
                          "\"result\":{\"ok\":true}}",
                          count ? "," : "[", id, lease, id, lease);
        body = token;
        count++;
    }
    load_bytes_text(&connection->body, "]");
    return count;
}

static void drain_answered(void *ctx, struct load_connection *connection, int status,
                           const char *body, size_t body_len)
{
    struct run *run = ctx;
    uint32_t ok;

    expect(status, 200, body, body_len);
    if (connection->step == DRAIN_CLAIMING) {
        connection->step = write_report(connection, body, body_len) ? DRAIN_REPORT : DRAIN_OVER;
        return;
    }
    ok = count_of(body, body_len, "\"ok\":true");
    if (ok == 0 || ok % 2 || count_of(body, body_len, "\"ok\":false"))
        load_die("a report was refused: %.300s", body);
    run->done += ok / 2;
    connection->step = DRAIN_CLAIM;
}

/* ---- park ---- */

static bool park_next(void *ctx, struct load_connection *connection)
{
    struct run *run = ctx;
    char body[64];
    int len = snprintf(body, sizeof body, "{\"max\":1,\"wait_ms\":%d}", PARK_WAIT_MS);

    post_worker(run, connection, "claim", body, (size_t)len);
    return true;
}

static void wait_for_end_of_stdin(void)
{
    char byte;

    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
}

static void park(struct run *run)
{
    register_all(run);
    load_send_only(&run->load, &(struct load_job){run, park_next, NULL});
    printf("{\"mode\":\"parked\",\"connections\":%u}\n", run->load.count);
    fflush(stdout);
    wait_for_end_of_stdin();
}

/* ---- main ---- */

static void print(struct run *run, const char *mode, int64_t duration_us)
{
    struct load_latency latency = load_latency(&run->load);

    printf("{\"mode\":\"%s\",\"connections\":%u,\"batch\":%u,\"done\":%u,\"duration_us\":%lld,"
           "\"per_second\":%.0f,\"p50_us\":%lld,\"p99_us\":%lld}\n",
           mode, run->options->connections, run->options->batch, run->done,
           (long long)duration_us, run->done * 1e6 / (double)duration_us,
           (long long)latency.p50_us, (long long)latency.p99_us);
    fflush(stdout);
}

static void measure(struct run *run)
{
    const char *mode = run->options->mode;
    const struct load_job nothing = {run, nothing_next, nothing_answered};
    const struct load_job enqueue = {run, enqueue_next, enqueue_answered};
    const struct load_job drain = {run, drain_next, drain_answered};
    int64_t enqueue_us = 0;

    if (strcmp(mode, "nothing") == 0) {
        int64_t duration_us = load_run(&run->load, &nothing);

        print(run, mode, duration_us);
        return;
    }
    if (strncmp(mode, "park", 4) == 0) {
        run->one_worker = strcmp(mode, "park") == 0;
        park(run);
        return;
    }
    if (strcmp(mode, "enqueue") == 0 || strcmp(mode, "life") == 0) {
        enqueue_us = load_run(&run->load, &enqueue);
        print(run, "enqueue", enqueue_us);
    }
    if (strcmp(mode, "drain") == 0 || strcmp(mode, "life") == 0) {
        int64_t drain_us;

        for (uint32_t i = 0; i < run->load.count; i++)
            run->load.connections[i].step = 0;
        register_all(run);
        run->done = 0;
        drain_us = load_run(&run->load, &drain);
        print(run, "drain", drain_us);
        if (strcmp(mode, "life") == 0 && run->done != run->options->tasks)
            load_die("%u tasks were enqueued and %u completed", run->options->tasks, run->done);
        if (strcmp(mode, "life") == 0)
            print(run, "life", enqueue_us + drain_us);
    }
}

static uint32_t number(const char *text, uint32_t max)
{
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;

    if (!text || *end || value < 1 || value > max)
        load_die("'%s' is not a number from 1 to %u", text ? text : "", max);
    return (uint32_t)value;
}

static void read_options(int argc, char **argv, struct options *options)
{
    *options = (struct options){.connections = 1, .batch = 1, .tasks = 1000};
    if (argc < 3)
        load_die("usage: http_load HOST:PORT nothing|enqueue|drain|life|park|park-workers "
                 "[--connections N] [--batch N] [--tasks N] [--payload-bytes N] [--ca FILE] "
                 "[--token T] [--namespace N]");
    options->address = argv[1];
    options->mode = argv[2];
    for (int i = 3; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--connections") == 0)
            options->connections = number(value, LOAD_CONNECTIONS_MAX);
        else if (strcmp(argv[i], "--batch") == 0)
            options->batch = number(value, BATCH_MAX);
        else if (strcmp(argv[i], "--tasks") == 0)
            options->tasks = number(value, 100000000);
        else if (strcmp(argv[i], "--payload-bytes") == 0)
            options->payload_bytes = number(value, PAYLOAD_MAX);
        else if (strcmp(argv[i], "--ca") == 0 && value)
            options->ca = value;
        else if (strcmp(argv[i], "--token") == 0 && value)
            options->token = value;
        else if (strcmp(argv[i], "--namespace") == 0 && value)
            options->namespace_name = value;
        else
            load_die("there is no option %s", argv[i]);
    }
    if (options->batch > CLAIM_MAX && strcmp(options->mode, "enqueue") != 0)
        load_die("a claim takes at most %d tasks", CLAIM_MAX);
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"nothing", "enqueue", "drain",
                                        "life",    "park",    "park-workers"};
    struct options options;
    struct run run = {0};
    bool known = false;

    read_options(argc, argv, &options);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        known = known || strcmp(options.mode, modes[i]) == 0;
    if (!known)
        load_die("there is no mode '%s'", options.mode);
    run.options = &options;
    load_open(&run.load, options.address, options.ca, options.connections);
    run.load.token = options.token;
    run.load.namespace_name = options.namespace_name;
    measure(&run);
    load_close(&run.load);
    return 0;
}
