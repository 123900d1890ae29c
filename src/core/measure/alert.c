/* One function per kind of alert; each says in a sentence what is wrong and what to do about it. */
#include "core/measure/alert.h"

#include "base/clock.h"
#include "core/queue_name.h"
#include "core/render.h"

#include <stdarg.h>
#include <stdio.h>

struct alerts {
    const struct alert_facts *facts;
    struct buf *out;
    uint32_t count;
};

/* n, of: the numbers of the sentence, for clients with their own words; -1 = none. */
__attribute__((format(printf, 7, 8)))
static void add(struct alerts *alerts, const char *code, const char *severity,
                const struct alert_queue *queue, double n, double of, const char *format, ...)
{
    struct buf *out = alerts->out;
    char text[400];
    va_list args;

    if (alerts->count == ALERTS_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_text(out, alerts->count++ ? ",{" : "{");
    render_text(out, "code", str_of(code));
    render_text(out, "severity", str_of(severity));
    render_text(out, "text", str_of(text));
    if (queue && queue->name.data)
        render_text(out, "queue", queue_name_plain(queue->name));
    if (n >= 0)
        buf_format(out, ",\"n\":%.0f", n);
    if (of >= 0)
        buf_format(out, ",\"of\":%.0f", of);
    buf_byte(out, '}');
}

static void look_at_server(struct alerts *alerts)
{
    const struct alert_facts *facts = alerts->facts;

    if (facts->storage_full)
        add(alerts, "store_full", "critical", NULL, -1, -1,
            "The store is full: the server accepts nothing new. Free some space; the server then "
            "continues by itself.");
    if (facts->no_leader)
        add(alerts, "no_leader", "critical", NULL, -1, -1,
            "No node is the leader: leases, schedules and retention are not processed. Check the "
            "nodes' logs and the database.");
    if (facts->stores_down)
        add(alerts, "store_down", "critical", NULL, (double)facts->stores_down, -1,
            "%lld of the stores that queues are routed to do not answer.",
            (long long)facts->stores_down);
    if (facts->log_regression)
        add(alerts, "log_regression", "critical", NULL, -1, -1,
            "The store is older than its log anchor, or its logs were forged. Run perdura "
            "verify.");
    if (facts->read_errors)
        add(alerts, "read_errors", "critical", NULL, (double)facts->read_errors, -1,
            "%lld reads of the store failed with a disk error. Make a backup and check the disk.",
            (long long)facts->read_errors);
}

static void look_at_plans(struct alerts *alerts)
{
    const struct alert_facts *facts = alerts->facts;

    if (facts->unread)
        add(alerts, "figures_missing", "warning", NULL, -1, -1,
            "The store could not be read just now, or too many clients are reading it: executions, "
            "waits without a worker and schedules in error may be missing here. Ask again.");
    if (facts->clock_behind_us >= ALERT_CLOCK_US)
        add(alerts, "clock_back", "warning", NULL,
            (double)(facts->clock_behind_us / CLOCK_SECOND_US), -1,
            "The clock of this machine went back by %lld s: scheduled times come later. Check its "
            "time service.",
            (long long)(facts->clock_behind_us / CLOCK_SECOND_US));
    if (facts->schedules_in_error)
        add(alerts, "schedules_in_error", "warning", NULL, facts->schedules_in_error, -1,
            "%u schedules or recurring patterns have stopped with an error: perdura schedule list "
            "--with-error shows them.", facts->schedules_in_error);
}

static void look_at_waits(struct alerts *alerts, const struct alert_queue *queue)
{
    int64_t after_us = alerts->facts->unclaimed_after_us;

    if (!queue->paused && queue->served && queue->unclaimed_us >= after_us &&
        queue->unclaimed_category.data)
        add(alerts, "unclaimed", "critical", queue,
            (double)(queue->unclaimed_us / (60 * CLOCK_SECOND_US)), -1,
            "Tasks of type " STR_FMT " have been due for %lld min and no live worker of the queue "
            "takes category \"" STR_FMT "\". Start one that does.",
            STR_ARG(str_cut(queue->unclaimed_type, 200)),
            (long long)(queue->unclaimed_us / (60 * CLOCK_SECOND_US)),
            STR_ARG(str_cut(queue->unclaimed_category, 200)));
    else if (!queue->paused && queue->served && queue->unclaimed_us >= after_us &&
             queue->unclaimed_type.data)
        add(alerts, "unclaimed", "critical", queue,
            (double)(queue->unclaimed_us / (60 * CLOCK_SECOND_US)), -1,
            "Tasks of type " STR_FMT " have been due for %lld min and no live worker of the queue "
            "has a handler for it. Start one that has.",
            STR_ARG(str_cut(queue->unclaimed_type, 200)),
            (long long)(queue->unclaimed_us / (60 * CLOCK_SECOND_US)));
    if (queue->served || queue->paused || queue->waits_us < after_us)
        return;
    add(alerts, "no_worker", "critical", queue,
        (double)(queue->waits_us / (60 * CLOCK_SECOND_US)), -1,
        "Tasks have been due for %lld min and no live worker serves the queue. Start one.",
        (long long)(queue->waits_us / (60 * CLOCK_SECOND_US)));
}

static void look_at_ends(struct alerts *alerts, const struct alert_queue *queue)
{
    const char *where = queue->name.data ? "" : " in queues without figures of their own";
    double ends = queue->completed + queue->failed;
    double new_dead = queue->dead_now - queue->dead_before; /* since they were fewest */

    if (ends >= ALERT_ENDS_MIN && queue->failed > ends / 2)
        add(alerts, "failure_rate", "warning", queue, queue->failed, ends,
            "%.0f of %.0f tasks that ended in the last 5 minutes%s failed.", queue->failed, ends,
            where);
    if (queue->dead_before >= 0 && new_dead > 0)
        add(alerts, "dead_letters", "warning", queue, new_dead, -1,
            "%.0f new dead letter%s%s in the last hour: perdura task list --status dead_letter "
            "shows %s.", new_dead, new_dead > 1 ? "s" : "", where, new_dead > 1 ? "them" : "it");
}

void alerts_render(const struct alert_facts *facts, struct buf *out)
{
    struct alerts alerts = {facts, out, 0};

    buf_byte(out, '[');
    look_at_server(&alerts);
    for (uint32_t i = 0; i < facts->queues_count; i++)
        look_at_waits(&alerts, &facts->queues[i]);
    look_at_plans(&alerts);
    for (uint32_t i = 0; i < facts->queues_count; i++)
        look_at_ends(&alerts, &facts->queues[i]);
    buf_byte(out, ']');
}
