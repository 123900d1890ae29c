/* The measures of the queue as metrics: how long tasks wait and run and how long an enqueue takes,
 * per queue; what became of them, per queue, type, target and outcome; all since the start and of
 * this node. Loop thread. */
#include "server/figures/metrics_int.h"

#include <stdlib.h>

static struct str name_or_other(struct str name)
{
    return name.data ? name : STR("other");
}

/* The others are there only when something was counted there. */
static bool is_empty(const struct measured_queue *queue)
{
    for (int what = 0; what < MEASURE_COUNTS; what++)
        if (queue->counts[what])
            return false;
    return true;
}

static void write_counter(struct buf *out, const struct measured *measured, const char *name,
                          const char *help, enum measure_count what)
{
    metrics_head(out, name, "counter", help);
    for (uint32_t i = 0; i < measured->queues_count; i++)
        if (i > 0 || !is_empty(&measured->queues[i]))
            metrics_sample(out, name, METRICS_QUEUE(name_or_other(measured->queues[i].name)),
                           measured->queues[i].counts[what]);
}

static void write_span(struct buf *out, const struct measured *measured, const char *name,
                       const char *help, enum measure_span span)
{
    metrics_head(out, name, "histogram", help);
    for (uint32_t i = 0; i < measured->queues_count; i++)
        if (i > 0 || !is_empty(&measured->queues[i]))
            metrics_histogram(out, name, METRICS_QUEUE(name_or_other(measured->queues[i].name)),
                              &measured->queues[i].spans[span]);
}

static void write_targets(struct buf *out, const struct measured *measured)
{
    metrics_head(out, "target_run_seconds", "histogram",
                 "How long attempts ran, by who does the work: worker, process or service.");
    for (int target = 0; target < TARGET_COUNT; target++) {
        const struct metrics_label labels[] = {
            {"target", str_of(measure_target_word((enum measure_target)target))},
            {NULL, STR_NONE}};

        metrics_histogram(out, "target_run_seconds", labels, &measured->targets[target]);
    }
}

/* These are always shown, so that a rate begins at 0; the rare ones once they happened. */
static bool is_usual(enum measure_count what)
{
    return what == MEASURE_COMPLETED || what == MEASURE_FAILED || what == MEASURE_DEAD_LETTER ||
           what == MEASURE_RETRIED;
}

static bool has_any(const struct measured_lane *lane)
{
    for (int what = 0; what < MEASURE_COUNTS; what++)
        if (lane->counts[what])
            return true;
    return false;
}

static void write_outcomes(struct buf *out, const struct measured_lanes *lanes)
{
    metrics_head(out, "task_outcomes_total", "counter",
                 "What became of attempts and tasks, by queue, type, target and outcome.");
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct measured_lane *lane = &lanes->lanes[i];

        if (!lane->type.data && !has_any(lane))
            continue;
        for (int what = MEASURE_OUTCOMES_FIRST; what < MEASURE_COUNTS; what++) {
            const struct metrics_label labels[] = {
                {"queue", name_or_other(lane->queue)},
                {"type", name_or_other(lane->type)},
                {"target", str_of(measure_target_word(lane->target))},
                {"outcome", str_of(measure_count_word((enum measure_count)what))},
                {NULL, STR_NONE}};

            if (lane->counts[what] || is_usual((enum measure_count)what))
                metrics_sample(out, "task_outcomes_total", labels, lane->counts[what]);
        }
    }
}

/* Without what the caller may not see; the others are of all namespaces together. */
static void keep_shown(const struct api_call *call, struct measured *measured,
                       struct measured_lanes *lanes)
{
    uint32_t queues = 1, kept = 0;

    for (uint32_t i = 1; i < measured->queues_count; i++)
        if (metrics_shows(call, measured->queues[i].name))
            measured->queues[queues++] = measured->queues[i];
    measured->queues_count = measured->queues_count ? queues : 0;
    for (uint32_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i].queue.data ? metrics_shows(call, lanes->lanes[i].queue)
                                       : metrics_of_all(call))
            lanes->lanes[kept++] = lanes->lanes[i];
    lanes->count = kept;
    if (metrics_of_all(call))
        return;
    measured->queues[0] = (struct measured_queue){0};
    memset(measured->targets, 0, sizeof measured->targets);
}

void metrics_write_measures(struct api_call *call)
{
    struct measured *measured = calloc(1, sizeof *measured);
    struct measured_lanes *lanes = calloc(1, sizeof *lanes);
    struct buf *out = &call->out;

    if (measured && lanes) { /* without memory the rest is shown all the same */
        engine_measure(call->server->engine, measured);
        engine_measure_lanes(call->server->engine, lanes);
        keep_shown(call, measured, lanes);
        write_counter(out, measured, "queue_enqueued_total", "Tasks enqueued, by queue.",
                      MEASURE_ENQUEUED);
        write_counter(out, measured, "queue_started_total", "Attempts started, by queue.",
                      MEASURE_STARTED);
        write_counter(out, measured, "queue_timeouts_total",
                      "Attempts ended at their timeout, by queue.", MEASURE_TIMED_OUT);
        write_span(out, measured, "task_wait_seconds", "From ready to started.", MEASURE_WAIT);
        write_span(out, measured, "task_run_seconds", "From started to ended, of every attempt.",
                   MEASURE_RUN);
        write_span(out, measured, "enqueue_seconds",
                   "From the arrival of an enqueue until it was durable.", MEASURE_COMMIT);
        write_targets(out, measured);
        write_outcomes(out, lanes);
    }
    free(measured);
    free(lanes);
}
