/* The part of GET /metrics about brokers. */
#include "core/broker/broker_rules.h"
#include "server/api.h"
#include "server/figures/metrics_int.h"
#include "server/server_int.h"

static int64_t connected_of(const struct broker_view *view)
{
    return view->connected;
}

#define FIGURE(member)                                                \
    static int64_t member##_of(const struct broker_view *view)       \
    {                                                                 \
        return view->member;                                          \
    }
FIGURE(messages)
FIGURE(tasks)
FIGURE(duplicates)
FIGURE(refused)
FIGURE(put_off)
FIGURE(failures)
FIGURE(held)

static const struct {
    const char *name, *type, *help;
    int64_t (*read)(const struct broker_view *view);
} figures[] = {
    {"broker_connected", "gauge", "1 for queues of brokers that are consumed.", connected_of},
    {"broker_held", "gauge", "Messages taken and not acknowledged yet.", held_of},
    {"broker_messages_total", "counter", "Messages that came.", messages_of},
    {"broker_tasks_total", "counter", "Messages that became a task.", tasks_of},
    {"broker_duplicates_total", "counter", "Messages whose task was there.", duplicates_of},
    {"broker_refused_total", "counter", "Messages sent to the dead-letter queue.", refused_of},
    {"broker_put_off_total", "counter", "Tries that met a bound, or a store that was full or away.",
     put_off_of},
    {"broker_failures_total", "counter", "Connections that failed.", failures_of},
};

void metrics_write_brokers(struct api_call *call)
{
    const struct broker_views *brokers = call->server->shown.brokers;
    uint32_t count = brokers ? brokers->count(brokers->ctx) : 0;
    struct broker_view *views = arena_alloc_array(call->arena, count + 1, sizeof *views);

    if (!views || !count || !metrics_of_all(call))
        return;
    for (uint32_t i = 0; i < count; i++)
        brokers->read(brokers->ctx, i, &views[i]);
    for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
        metrics_head(&call->out, figures[f].name, figures[f].type, figures[f].help);
        for (uint32_t i = 0; i < count; i++) {
            const struct metrics_label labels[] = {{"broker", views[i].broker},
                                                   {"queue", views[i].queue},
                                                   {NULL, STR_NONE}};

            metrics_sample(&call->out, figures[f].name, labels, figures[f].read(&views[i]));
        }
    }
}
