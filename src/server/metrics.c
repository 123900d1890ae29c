/* GET /metrics: the Prometheus text format. Label sets are bounded, so that no client can make the
 * series grow without end: names of queues beyond a number are counted together as "other", types
 * of tasks are not shown at all, and routes are patterns. Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

#include "dispatch/span_export.h"

#include <dirent.h>
#include <unistd.h>

#define METRICS_QUEUES_MAX 1000
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_format(out, "# HELP perdura_%s %s\n# TYPE perdura_%s %s\n", name, help, name, type);
}

static void write_one(struct buf *out, const char *name, const char *type, const char *help,
                      int64_t value)
{
    head(out, name, type, help);
    buf_format(out, "perdura_%s %lld\n", name, (long long)value);
}

/* In label values the format escapes backslash, quote and line feed. */
static void write_label(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '\\' || c == '"')
            buf_byte(out, '\\');
        if (c == '\n')
            buf_text(out, "\\n");
        else
            buf_byte(out, c);
    }
}

static void write_counts(struct buf *out, struct str queue, const int64_t counts[STATUS_COUNT])
{
    for (int i = STATUS_NONE + 1; i < STATUS_COUNT; i++) {
        buf_text(out, "perdura_tasks{queue=\"");
        write_label(out, queue);
        buf_format(out, "\",status=\"%s\"} %lld\n", status_word((enum status)i),
                   (long long)counts[i]);
    }
}

static void write_tasks(struct buf *out, const struct stats_request *request)
{
    int64_t other[STATUS_COUNT] = {0};
    uint32_t count = request->queues_count;

    head(out, "tasks", "gauge", "Tasks by queue and status.");
    for (uint32_t i = 0; i < count && i < METRICS_QUEUES_MAX; i++)
        write_counts(out, request->queues[i].row.rule.name, request->queues[i].counts);
    for (uint32_t i = METRICS_QUEUES_MAX; i < count; i++)
        for (int status = 0; status < STATUS_COUNT; status++)
            other[status] += request->queues[i].counts[status];
    if (count > METRICS_QUEUES_MAX)
        write_counts(out, STR("other"), other);
    head(out, "queue_paused", "gauge", "1 for queues that hand out nothing.");
    for (uint32_t i = 0; i < count && i < METRICS_QUEUES_MAX; i++) {
        buf_text(out, "perdura_queue_paused{queue=\"");
        write_label(out, request->queues[i].row.rule.name);
        buf_format(out, "\"} %d\n", request->queues[i].row.paused_at_us != 0);
    }
}

static void write_counters(struct buf *out, const struct queue_stats *stats)
{
    const struct {
        const char *name, *help;
        int64_t value;
    } counters[] = {
        {"tasks_enqueued_total", "Tasks enqueued.", stats->enqueued_total},
        {"tasks_claimed_total", "Tasks handed to workers.", stats->claimed_total},
        {"tasks_completed_total", "Tasks completed.", stats->completed_total},
        {"tasks_failed_total", "Tasks ended as failed or dead_letter.", stats->failed_total},
        {"tasks_retried_total", "Failed attempts that run again.", stats->retried_total},
        {"tasks_cancelled_total", "Tasks cancelled.", stats->cancelled_total},
        {"tasks_pruned_total", "Ended tasks removed by retention.", stats->pruned_total},
        {"duplicates_total", "Enqueues that met an existing task.", stats->duplicates_total},
        {"leases_lost_total", "Leases that were not renewed in time.", stats->lost_leases_total},
        {"tasks_recovered_total", "Lost, silent or partial tasks that were put back.",
         stats->recovered_total},
        {"stale_heartbeats_total", "Heartbeats for leases no longer held.",
         stats->stale_heartbeats_total},
        {"timeouts_total", "Attempts ended at their timeout.", stats->timeouts_total},
        {"schedules_fired_total", "Runs made by schedules and recurring patterns.",
         stats->fired_total},
        {"schedules_missed_total", "Instants too late for their misfire policy (100 per outage).",
         stats->missed_total},
        {"schedules_skipped_total", "Instants left out as an earlier run had not ended.",
         stats->skipped_total},
        {"commits_total", "Transactions committed.", stats->commits_total},
        {"commit_requests_total", "Requests over all commits.", stats->commit_requests_total},
        {"read_errors_total", "Disk errors while reading the store.", stats->read_errors_total},
        {"batch_retries_total", "Batches tried again request by request.",
         stats->batch_retries_total},
    };

    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        write_one(out, counters[i].name, "counter", counters[i].help, counters[i].value);
    head(out, "commit_seconds_total", "counter", "Time spent in commits.");
    buf_format(out, "perdura_commit_seconds_total %.6f\n", (double)stats->commit_us_total / 1e6);
    head(out, "stale_reports_total", "counter", "Reports refused for a lease no longer held.");
    for (int op = 0; op < REPORT_OP_COUNT; op++)
        buf_format(out, "perdura_stale_reports_total{op=\"%s\"} %lld\n",
                   report_op_word((enum report_op)op), (long long)stats->stale_reports_total[op]);
}

static void write_requests(struct buf *out, const struct server *server)
{
    head(out, "http_requests_total", "counter", "Requests answered, by route and status class.");
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
                          const struct queue_stats *stats)
{
    head(out, "build_info", "gauge", "Version and store, always 1.");
    buf_format(out, "perdura_build_info{version=\"%s\",store=\"%s\"} 1\n", PERDURA_VERSION,
               server->store->kind);
    write_one(out, "process_resident_memory_bytes", "gauge", "Resident memory.", memory_bytes());
    write_one(out, "process_open_fds", "gauge", "Open file descriptors.", open_fds());
    head(out, "uptime_seconds", "gauge", "Time since the server started.");
    buf_format(out, "perdura_uptime_seconds %.3f\n",
               (double)(clock_boot_us() - server->started_boot_us) / 1e6);
    write_one(out, "http_connections", "gauge", "Open connections.",
              http_server_connections(server->http));
    write_one(out, "long_polls", "gauge", "Requests that wait: claims and waits.",
              server->waiting_count);
    write_one(out, "waiting_claims", "gauge", "Claims that wait for tasks.",
              stats->waiting_claims);
    write_one(out, "waiting_waits", "gauge", "Waits for the end of a task.", stats->waiting_waits);
    write_one(out, "stream_readers", "gauge", "Readers of /v1/stream.",
              stream_readers(server->stream));
    write_one(out, "workers", "gauge", "Live workers.", stats->workers);
    write_one(out, "webhooks_pending", "gauge", "Webhooks not delivered yet.",
              stats->webhooks_pending);
    write_one(out, "store_log_pages", "gauge", "Pages of the store's log not yet in its file.",
              stats->log_pages);
    write_one(out, "storage_full", "gauge", "1 while the store has no space.",
              stats->storage_full);
    if (stats->stores) {
        write_one(out, "stores", "gauge", "Stores queues are routed to, and the main one.",
                  stats->stores);
        write_one(out, "stores_down", "gauge", "Of them, those that do not answer.",
                  stats->stores_down);
    }
}

static void write_spans(struct buf *out, const struct server *server)
{
    struct span_export_counts counts;

    if (!server->spans)
        return;
    span_export_counts(server->spans, &counts);
    write_one(out, "spans_exported_total", "counter", "Spans an OTLP receiver took.",
              counts.exported);
    write_one(out, "spans_dropped_total", "counter", "Spans lost: no room, or nobody took them.",
              counts.dropped);
    write_one(out, "spans_export_failures_total", "counter",
              "Requests to the receiver that failed.", counts.failed);
}

static void counted(struct api_call *call)
{
    struct stats_request *request = call->ctx;

    request->stats.read_errors_total += call->server->read_errors;
    write_process(&call->out, call->server, &request->stats);
    write_tasks(&call->out, request);
    write_counters(&call->out, &request->stats);
    write_requests(&call->out, call->server);
    write_spans(&call->out, call->server);
    call_reply_text(call, 200, METRICS_TYPE);
}

void api_metrics(struct api_call *call)
{
    struct stats_request *request = arena_alloc(call->arena, sizeof *request);

    if (!request) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
        return;
    }
    call->ctx = request;
    call_submit(call, &request->base, REQUEST_STATS, counted);
}
