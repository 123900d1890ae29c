/* GET /v1/stats: what the queue counts, as JSON, for people and the dashboard; the same figures for
 * Prometheus are in metrics.c. And the list of target services, of which this server calls none.
 * Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/measure/alert.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/render.h"
#include "server/page.h"
#include "server/figures/sampler.h"
#include "server/figures/stats_look.h"
#include "server/stream.h"

#include <stdlib.h>

#define RATE_SECONDS 300
#define DEAD_SECONDS 3600
#define LANES_MAX 10000 /* queue, type and status: what a page can still show */

static void write_totals(struct buf *out, const struct engine_stats *stats)
{
    const struct {
        const char *name;
        int64_t value;
    } totals[] = {
        {"enqueued", stats->totals[TOTAL_ENQUEUED]},
        {"claimed", stats->totals[TOTAL_CLAIMED]},
        {"completed", stats->totals[TOTAL_COMPLETED]},
        {"failed", stats->totals[TOTAL_FAILED]},
        {"retried", stats->totals[TOTAL_RETRIED]},
        {"cancelled", stats->totals[TOTAL_CANCELLED]},
        {"duplicates", stats->totals[TOTAL_DUPLICATES]},
        {"lost_leases", stats->totals[TOTAL_LOST_LEASES]},
        {"recovered", stats->totals[TOTAL_RECOVERED]},
        {"stale_heartbeats", stats->totals[TOTAL_STALE_HEARTBEATS]},
        {"timeouts", stats->totals[TOTAL_TIMEOUTS]},
        {"commits", stats->totals[TOTAL_COMMITS]},
        {"commit_requests", stats->totals[TOTAL_COMMIT_REQUESTS]},
        {"commit_us", stats->totals[TOTAL_COMMIT_US]},
        {"batch_retries", stats->totals[TOTAL_BATCH_RETRIES]},
        {"read_errors", stats->totals[TOTAL_READ_ERRORS]},
        {"pruned", stats->totals[TOTAL_PRUNED]},
    };

    json_write_key(out, "totals");
    buf_byte(out, '{');
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++)
        render_int(out, totals[i].name, totals[i].value);
    json_write_key(out, "stale_reports");
    buf_byte(out, '{');
    for (int op = 0; op < REPORT_OP_COUNT; op++) {
        render_int(out, report_op_word((enum report_op)op), stats->stale_reports[op]);
    }
    buf_text(out, "}}");
}

static void write_now(struct api_call *call, const struct engine_stats *stats)
{
    struct buf *out = &call->out;

    render_text(out, "version", STR(PERDURA_VERSION));
    render_text(out, "store", str_of(call->server->store->kind));
    render_bool(out, "storage_full", stats->storage_full);
    render_bool(out, "log_regression", stats->log_regression);
    render_time(out, "started_at", stats->started_at_us);
    render_int(out, "uptime_ms", (clock_boot_us() - call->server->started_boot_us) / CLOCK_MS_US);
    render_int(out, "workers", stats->workers);
    render_int(out, "waiting_claims", stats->waiting_claims);
    render_int(out, "waiting_waits", stats->waiting_waits);
    render_int(out, "stream_readers", stream_readers(call->server->stream));
    render_int(out, "connections", http_server_connections(call->server->http));
    render_int(out, "webhooks_pending", stats->webhooks_pending);
    if (stats->stores) {
        render_int(out, "stores", stats->stores);
        render_int(out, "stores_down", stats->stores_down);
    }
}

static void write_queues(struct buf *out, const struct stats_request *request)
{
    uint32_t count = request->queues_count < BOUND_LIST_LIMIT ? request->queues_count
                                                              : BOUND_LIST_LIMIT;

    json_write_key(out, "queues");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_text(out, i ? ",{" : "{");
        render_text(out, "name", queue_name_plain(request->queues[i].row.rule.name));
        render_bool(out, "paused", request->queues[i].row.paused_at_us != 0);
        api_write_counts(out, request->queues[i].counts);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

/* True when there are more than are written. */
static bool write_lanes(struct buf *out, const struct stats_request *request)
{
    uint32_t written = 0;
    uint32_t i = 0;

    json_write_key(out, "lanes");
    buf_byte(out, '[');
    for (; i < request->lanes_count && written < LANES_MAX; i++) {
        const struct lane_count *lane = &request->lanes[i];

        if (lane->tasks == 0)
            continue;
        buf_text(out, written++ ? ",{" : "{");
        render_text(out, "queue", queue_name_plain(lane->queue));
        render_text(out, "type", lane->type);
        render_text(out, "status", str_of(status_word(lane->status)));
        render_int(out, "tasks", lane->tasks);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
    return i < request->lanes_count;
}

/* ---- alerts ---- */

static void add_figures(const struct history *history, uint32_t at, struct alert_queue *queue)
{
    queue->completed = history_sum(history, at, HISTORY_COMPLETED, RATE_SECONDS);
    queue->failed = history_sum(history, at, HISTORY_FAILED, RATE_SECONDS);
    queue->dead_before = history_least(history, at, HISTORY_DEAD, DEAD_SECONDS);
}

/* What has no figures of its own is judged together with the others of that kind. One that is new
 * gets them with the next step. */
static void add_history(const struct history *history, struct alert_queue *queue,
                        struct alert_queue *others)
{
    for (uint32_t i = HISTORY_OTHERS + 1; i < history_queues(history); i++) {
        if (!str_eq(history_queue(history, i), queue->name))
            continue;
        add_figures(history, i, queue);
        return;
    }
    queue->dead_before = -1;
    if (history_queues(history) > HISTORY_QUEUES_MAX || measure_is_other(queue->name))
        others->dead_now += queue->dead_now;
}

static void write_alerts(struct api_call *call, const struct stats_look *stats)
{
    const struct stats_request *request = &stats->request;
    int64_t now_us = engine_now_us(call->server->engine);
    const struct history *history = sampler_history(call->server->sampler);
    struct map waits = MAP_INIT, unclaimed = MAP_INIT;
    struct alert_queue others = {.served = true};
    struct alert_queue *queues = arena_alloc_array(call->arena, request->queues_count + 1,
                                                   sizeof *queues);
    struct alert_facts facts = {.queues = queues,
                                .queues_count = queues ? request->queues_count : 0,
                                .unclaimed_after_us =
                                    call->server->settings->unclaimed.after_ms * CLOCK_MS_US,
                                .no_leader = request->stats.no_leader,
                                .clock_behind_us = request->stats.clock_behind_us,
                                .storage_full = request->stats.storage_full,
                                .stores_down = request->stats.stores_down,
                                .log_regression = request->stats.log_regression,
                                .read_errors = request->stats.totals[TOTAL_READ_ERRORS],
                                .schedules_in_error = stats->schedules_in_error,
                                .unread = !stats->whole};

    stats_look_map_waits(stats, &waits);
    stats_look_map_unclaimed(stats, &unclaimed);
    for (uint32_t i = 0; i < facts.queues_count; i++) {
        const struct queue_view *view = &request->queues[i];
        const struct queue_wait *wait = map_get(&waits, view->row.rule.name);

        queues[i].name = view->row.rule.name; /* shown as the plain one below */
        queues[i].served = view->served;
        queues[i].paused = view->row.paused_at_us != 0;
        queues[i].dead_now = (double)view->counts[STATUS_DEAD_LETTER];
        if (wait && view->counts[STATUS_PENDING])
            queues[i].waits_us = now_us - wait->since_us;
        wait = map_get(&unclaimed, view->row.rule.name);
        if (wait && view->counts[STATUS_PENDING]) {
            queues[i].unclaimed_us = now_us - wait->since_us;
            queues[i].unclaimed_type = wait->type;
            queues[i].unclaimed_category = stats_look_category(stats, view, wait);
        }
        add_history(history, &queues[i], &others);
    }
    map_deinit(&waits);
    map_deinit(&unclaimed);
    add_figures(history, HISTORY_OTHERS, &others);
    if (queues)
        queues[facts.queues_count++] = others;
    json_write_key(&call->out, "alerts");
    alerts_render(&facts, &call->out);
}

/* Where there are other namespaces, the sums over all of them are not this one's: what its queues
 * did is added up instead, as far as they are measured one by one. */
static void narrow_totals(struct api_call *call, struct engine_stats *stats)
{
    static const struct {
        enum engine_total total;
        enum measure_count what, also;
    } sums[] = {{TOTAL_ENQUEUED, MEASURE_ENQUEUED, MEASURE_COUNTS},
                {TOTAL_CLAIMED, MEASURE_STARTED, MEASURE_COUNTS},
                {TOTAL_COMPLETED, MEASURE_COMPLETED, MEASURE_COUNTS},
                {TOTAL_FAILED, MEASURE_FAILED, MEASURE_DEAD_LETTER},
                {TOTAL_RETRIED, MEASURE_RETRIED, MEASURE_COUNTS},
                {TOTAL_CANCELLED, MEASURE_CANCELLED, MEASURE_COUNTS},
                {TOTAL_LOST_LEASES, MEASURE_LOST, MEASURE_COUNTS},
                {TOTAL_TIMEOUTS, MEASURE_TIMED_OUT, MEASURE_COUNTS}};
    struct measured *measured = calloc(1, sizeof *measured);

    memset(stats->totals, 0, sizeof stats->totals);
    memset(stats->stale_reports, 0, sizeof stats->stale_reports);
    stats->waiting_claims = stats->waiting_waits = stats->webhooks_pending = 0;
    if (!measured)
        return;
    engine_measure(call->server->engine, measured);
    for (uint32_t i = 1; i < measured->queues_count; i++)
        for (size_t s = 0; s < sizeof sums / sizeof sums[0]; s++) {
            const struct measured_queue *queue = &measured->queues[i];

            if (!queue_name_in(queue->name, call_namespace(call)))
                continue;
            stats->totals[sums[s].total] += queue->counts[sums[s].what];
            if (sums[s].also != MEASURE_COUNTS)
                stats->totals[sums[s].total] += queue->counts[sums[s].also];
        }
    free(measured);
}

static int counted(struct api_call *call)
{
    struct stats_look *stats = call->ctx;
    struct stats_request *request = &stats->request;
    struct buf *out = &call->out;
    bool cut;

    if (engine_namespaces(call->server->engine) > 1)
        narrow_totals(call, &request->stats);
    request->stats.totals[TOTAL_READ_ERRORS] += call->server->read_errors;
    buf_byte(out, '{');
    write_now(call, &request->stats);
    api_write_counts(out, request->stats.counts);
    write_totals(out, &request->stats);
    write_queues(out, request);
    cut = write_lanes(out, request) || request->queues_count > BOUND_LIST_LIMIT;
    render_bool(out, "cut", cut);
    json_write_key(out, "executions");
    if (stats->hours_known)
        execution_hours_render(stats->hours, stats->hours_count,
                               engine_now_us(call->server->engine), stats->categories,
                               stats->categories_count, out);
    else
        buf_text(out, "[]"); /* not known, which is not the same as none */
    write_alerts(call, stats);
    buf_byte(out, '}');
    return call_reply(call, 200);
}

int api_stats(struct api_call *call)
{
    return stats_look(call, false, counted);
}
