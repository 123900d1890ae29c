/* GET /metrics: the Prometheus text format. Label sets are bounded, so that no client can make the
 * series grow without end (D14): names of queues and types beyond a number are counted together as
 * "other", and routes are patterns. What was measured per queue is in metrics_measures.c. Loop
 * thread. */
#include "server/api.h"
#include "core/queue_name.h"
#include "server/door/door.h"
#include "server/figures/metrics_int.h"
#include "server/stream.h"
#include "store/sealed/sealed.h"

#include "outbound/span_export.h"

#include <dirent.h>
#include <unistd.h>

#define METRICS_QUEUES_MAX 1000
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

bool metrics_of_all(const struct api_call *call)
{
    return !call->principal || principal_is_global(call->principal);
}

/* Open metrics name no namespace: what is in another one than `default` is one of the others. */
bool metrics_shows(const struct api_call *call, struct str queue)
{
    return (call->principal && principal_is_global(call->principal)) ||
           queue_name_in(queue, call_namespace(call));
}

static void write_counts(struct buf *out, struct str queue, const int64_t counts[STATUS_COUNT])
{
    for (int i = STATUS_NONE + 1; i < STATUS_COUNT; i++) {
        const struct metrics_label labels[] = {
            {"queue", queue}, {"status", str_of(status_word((enum status)i))}, {NULL, STR_NONE}};

        metrics_sample(out, "tasks", labels, counts[i]);
    }
}

/* A queue of that name is one of the others: no sample may be there twice. */
static bool is_shown(const struct api_call *call, const struct stats_request *request, uint32_t at)
{
    struct str queue = request->queues[at].row.rule.name;

    return metrics_shows(call, queue) && at < METRICS_QUEUES_MAX && !str_is(queue, "other");
}

static void write_tasks(struct api_call *call, const struct stats_request *request)
{
    struct buf *out = &call->out;
    int64_t other[STATUS_COUNT] = {0};
    bool others = false;

    metrics_head(out, "tasks", "gauge", "Tasks by queue and status.");
    for (uint32_t i = 0; i < request->queues_count; i++) {
        if (is_shown(call, request, i)) {
            write_counts(out, request->queues[i].row.rule.name, request->queues[i].counts);
            continue;
        }
        others = true;
        for (int status = 0; status < STATUS_COUNT; status++)
            other[status] += request->queues[i].counts[status];
    }
    if (others)
        write_counts(out, STR("other"), other);
}

/* How long something has waited in each queue. */
static void write_waits(struct api_call *call, const struct stats_request *request,
                        const struct map *waits, int64_t now_us, const char *name,
                        const char *help)
{
    struct buf *out = &call->out;

    metrics_head(out, name, "gauge", help);
    for (uint32_t i = 0; i < request->queues_count; i++) {
        struct str queue = request->queues[i].row.rule.name;
        const struct queue_wait *wait = map_get(waits, queue);
        int64_t us = wait && wait->since_us < now_us ? now_us - wait->since_us : 0;

        if (is_shown(call, request, i))
            metrics_sample_decimal(out, name, METRICS_QUEUE(queue), (double)us / 1e6);
    }
}

static void write_queues(struct api_call *call, const struct stats_look *look, int64_t now_us)
{
    struct buf *out = &call->out;
    const struct stats_request *request = &look->request;
    MAP_AUTO struct map waits = MAP_INIT;
    MAP_AUTO struct map unclaimed = MAP_INIT;

    metrics_head(out, "queue_paused", "gauge", "1 for queues that hand out nothing.");
    for (uint32_t i = 0; i < request->queues_count; i++)
        if (is_shown(call, request, i))
            metrics_sample(out, "queue_paused", METRICS_QUEUE(request->queues[i].row.rule.name),
                           request->queues[i].row.paused_at_us != 0);
    metrics_head(out, "queue_served", "gauge", "1 for queues a live worker registered for.");
    for (uint32_t i = 0; i < request->queues_count; i++)
        if (is_shown(call, request, i))
            metrics_sample(out, "queue_served", METRICS_QUEUE(request->queues[i].row.rule.name),
                           request->queues[i].served);
    if (!look->whole)
        return;
    stats_look_map_waits(look, &waits);
    write_waits(call, request, &waits, now_us, "queue_oldest_wait_seconds",
                "How long the first in line has been ready; 0 when none waits.");
    stats_look_map_unclaimed(look, &unclaimed);
    write_waits(call, request, &unclaimed, now_us, "queue_unclaimed_seconds",
                "How long a task has been ready whose type or category no live worker of the "
                "queue takes.");
}

static void write_counters(struct buf *out, const struct engine_stats *stats)
{
    static const struct {
        enum engine_total total;
        const char *name, *help;
    } counters[] = {
        {TOTAL_ENQUEUED, "tasks_enqueued_total", "Tasks enqueued."},
        {TOTAL_CLAIMED, "tasks_claimed_total", "Tasks handed to workers."},
        {TOTAL_COMPLETED, "tasks_completed_total", "Tasks completed."},
        {TOTAL_FAILED, "tasks_failed_total", "Tasks ended as failed or dead_letter."},
        {TOTAL_RETRIED, "tasks_retried_total", "Failed attempts that run again."},
        {TOTAL_CANCELLED, "tasks_cancelled_total", "Tasks cancelled."},
        {TOTAL_PRUNED, "tasks_pruned_total", "Ended tasks removed by retention."},
        {TOTAL_DUPLICATES, "duplicates_total", "Enqueues that met an existing task."},
        {TOTAL_LOST_LEASES, "leases_lost_total", "Leases that were not renewed in time."},
        {TOTAL_RECOVERED, "tasks_recovered_total",
         "Lost, silent or partial tasks that were put back."},
        {TOTAL_STALE_HEARTBEATS, "stale_heartbeats_total", "Heartbeats for leases no longer held."},
        {TOTAL_TIMEOUTS, "timeouts_total", "Attempts ended at their timeout."},
        {TOTAL_FIRED, "schedules_fired_total", "Runs made by schedules and recurring patterns."},
        {TOTAL_MISSED, "schedules_missed_total",
         "Instants too late for their misfire policy (100 per outage)."},
        {TOTAL_SKIPPED, "schedules_skipped_total",
         "Instants left out as an earlier run had not ended."},
        {TOTAL_WEBHOOKS_DELIVERED, "webhooks_delivered_total", "Webhooks their receiver took."},
        {TOTAL_WEBHOOKS_FAILED, "webhooks_failed_total",
         "Calls of webhooks that failed and are tried again."},
        {TOTAL_WEBHOOKS_GIVEN_UP, "webhooks_given_up_total", "Webhooks that expired."},
        {TOTAL_COMMITS, "commits_total", "Transactions committed."},
        {TOTAL_COMMIT_REQUESTS, "commit_requests_total", "Requests over all commits."},
        {TOTAL_READ_ERRORS, "read_errors_total", "Disk errors while reading the store."},
        {TOTAL_BATCH_RETRIES, "batch_retries_total", "Batches tried again request by request."},
    };

    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        metrics_one(out, counters[i].name, "counter", counters[i].help,
                    stats->totals[counters[i].total]);
    metrics_one_decimal(out, "commit_seconds_total", "counter", "Time spent in commits.",
                        (double)stats->totals[TOTAL_COMMIT_US] / 1e6);
    metrics_head(out, "stale_reports_total", "counter",
                 "Reports refused for a lease no longer held.");
    for (int op = 0; op < REPORT_OP_COUNT; op++) {
        const struct metrics_label labels[] = {
            {"op", str_of(report_op_word((enum report_op)op))}, {NULL, STR_NONE}};

        metrics_sample(out, "stale_reports_total", labels, stats->stale_reports[op]);
    }
}

static void write_requests(struct buf *out, const struct server *server)
{
    metrics_head(out, "http_requests_total", "counter",
                 "Requests answered, by route and status class.");
    for (uint32_t i = 0; i <= ROUTES_MAX; i++) {
        bool known = i < routes_count();

        for (int class = 1; class < CALL_STATUS_CLASSES; class++) {
            if (server->replies[i][class] == 0)
                continue;
            buf_format(out, "perdura_http_requests_total{method=\"%s\",route=\"%s\","
                       "status=\"%dxx\"} %lld\n",
                       known ? router_method_word(routes[i].method) : "",
                       known ? routes[i].pattern : "none", class,
                       (long long)server->replies[i][class]);
        }
    }
}

static int64_t memory_bytes(void)
{
    char line[128] = "";
    char *second;
    int64_t resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (!file)
        return 0;
    if (fgets(line, sizeof line, file) && (second = strchr(line, ' ')) != NULL)
        resident = strtoll(second, NULL, 10);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static int64_t open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = -3; /* ".", ".." and the folder itself */

    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void write_process(struct buf *out, const struct server *server,
                          const struct engine_stats *stats)
{
    metrics_head(out, "build_info", "gauge", "Version and store, always 1.");
    buf_format(out, "perdura_build_info{version=\"%s\",store=\"%s\"} 1\n", PERDURA_VERSION,
               server->store->kind);
    metrics_one(out, "process_resident_memory_bytes", "gauge", "Resident memory.", memory_bytes());
    metrics_one(out, "process_open_fds", "gauge", "Open file descriptors.", open_fds());
    metrics_one_decimal(out, "uptime_seconds", "gauge", "Time since the server started.",
                        (double)(clock_boot_us() - server->started_boot_us) / 1e6);
    metrics_one(out, "http_connections", "gauge", "Open connections.",
                http_server_connections(server->http));
    metrics_one(out, "http_strangers", "gauge", "Connections that have not shown a right token.",
                http_server_strangers(server->http));
    metrics_one(out, "wrong_tokens_total", "counter", "Requests with a wrong token.",
                server->door->guard.wrong_total);
    metrics_one(out, "long_polls", "gauge", "Requests that wait: claims and waits.",
                server->waiting_count);
    metrics_one(out, "waiting_claims", "gauge", "Claims that wait for tasks.",
                stats->waiting_claims);
    metrics_one(out, "waiting_waits", "gauge", "Waits for the end of a task.",
                stats->waiting_waits);
    metrics_one(out, "stream_readers", "gauge", "Readers of /v1/stream.",
                stream_readers(server->stream));
    metrics_one(out, "workers", "gauge", "Live workers.", stats->workers);
    metrics_one(out, "webhooks_pending", "gauge", "Webhooks not delivered yet.",
                stats->webhooks_pending);
    metrics_one(out, "store_log_pages", "gauge", "Pages of the store's log not yet in its file.",
                stats->log_pages);
    metrics_one(out, "storage_full", "gauge", "1 while the store has no space.",
                stats->storage_full);
    metrics_one(out, "log_regression", "gauge",
                "1 when the store was older than its log anchor at the start.",
                stats->log_regression);
    metrics_one(out, "leader", "gauge", "1 on the node that leads.", stats->leads);
    metrics_one(out, "no_leader", "gauge", "1 while this node knows of none that leads.",
                stats->no_leader);
    metrics_one_decimal(out, "clock_behind_seconds", "gauge",
                        "How far the wall clock was set back behind the engine's.",
                        (double)stats->clock_behind_us / 1e6);
    if (stats->stores) {
        metrics_one(out, "stores", "gauge", "Stores queues are routed to, and the main one.",
                    stats->stores);
        metrics_one(out, "stores_down", "gauge", "Of them, those that do not answer.",
                    stats->stores_down);
    }
}

static void write_jwts(struct buf *out, const struct server *server)
{
    struct door_jwt_counts counts;
    double age_s;

    if (!door_jwt_is_on(server->door->jwt))
        return;
    door_jwt_counts(server->door->jwt, &counts);
    age_s = counts.keys.loaded_us ? (double)(clock_boot_us() - counts.keys.loaded_us) / 1e6 : -1;
    metrics_one(out, "jwks_keys", "gauge", "Public keys of the JWT issuer that are in force.",
                counts.keys.keys);
    metrics_one_decimal(out, "jwks_age_seconds", "gauge", "Time since these keys were last read or "
                        "fetched; -1 = never.", age_s);
    metrics_one(out, "jwks_fetches_total", "counter", "Tries to read or fetch them.",
                counts.keys.fetches);
    metrics_one(out, "jwks_failures_total", "counter", "Of these, those that failed.",
                counts.keys.failures);
    metrics_one(out, "jwts_verified_total", "counter", "JWTs whose signature was right.",
                counts.verified);
    metrics_one(out, "jwts_known", "gauge", "JWTs that need not be verified again.", counts.known);
}

static void write_damaged(struct buf *out, const struct server *server)
{
    struct keyring *keyring = sealed_keyring(server->store);

    if (keyring)
        metrics_one(out, "encrypted_texts_damaged_total", "counter",
                    "Encrypted texts that did not open: they were changed or moved.",
                    keyring_counted(keyring, OPENED_DAMAGED));
}

static void write_spans(struct buf *out, const struct server *server)
{
    struct span_export_counts counts;

    if (!server->shown.spans)
        return;
    span_export_counts(server->shown.spans, &counts);
    metrics_one(out, "spans_exported_total", "counter", "Spans an OTLP receiver took.",
                counts.exported);
    metrics_one(out, "spans_dropped_total", "counter", "Spans lost: the buffer was full, or the "
                                                       "receiver did not take them.",
                counts.dropped);
    metrics_one(out, "spans_export_failures_total", "counter",
                "Requests to the receiver that failed.", counts.failed);
}

/* Counted no further than a page. */
static void write_looked(struct buf *out, const struct stats_look *look)
{
    if (!look->whole)
        return;
    metrics_one(out, "schedules_in_error", "gauge",
                "Active schedules and patterns that have stopped with an error (at most 100 each).",
                look->schedules_in_error);
    metrics_one(out, "recoveries_pending", "gauge",
                "Entries of the recovery queue that wait (100 at most).",
                look->recoveries_pending);
}

static int counted(struct api_call *call)
{
    struct stats_look *look = call->ctx;
    struct stats_request *request = &look->request;

    request->stats.totals[TOTAL_READ_ERRORS] += call->server->read_errors;
    if (!metrics_of_all(call)) { /* what its queues did, and nothing of the server */
        write_tasks(call, request);
        write_queues(call, look, engine_now_us(call->server->engine));
        metrics_write_measures(call);
        return call_reply_text(call, 200, METRICS_TYPE);
    }
    write_process(&call->out, call->server, &request->stats);
    write_tasks(call, request);
    write_queues(call, look, engine_now_us(call->server->engine));
    write_looked(&call->out, look);
    write_counters(&call->out, &request->stats);
    metrics_write_measures(call);
    write_requests(&call->out, call->server);
    write_jwts(&call->out, call->server);
    write_damaged(&call->out, call->server);
    write_spans(&call->out, call->server);
    metrics_write_services(call);
    metrics_write_inboxes(call);
    metrics_write_agents(call);
    metrics_write_brokers(call);
    return call_reply_text(call, 200, METRICS_TYPE);
}

int api_metrics(struct api_call *call)
{
    return stats_look(call, metrics_of_all(call), counted);
}
