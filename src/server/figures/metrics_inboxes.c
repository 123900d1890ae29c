/* The part of GET /metrics about inboxes. */
#include "server/figures/metrics_int.h"
#include "server/server_int.h"

#include "core/inbox/inbox_view.h"

#define NAMED(view) \
    ((const struct metrics_label[]){{"inbox", str_of((view)->name)}, {NULL, STR_NONE}})

void metrics_write_inboxes(struct api_call *call)
{
    const struct inbox_views *inboxes = call->server->shown.inboxes;
    uint32_t cap = inboxes ? inboxes->count(inboxes->ctx) : 0, count = 0;
    struct inbox_view *views = arena_alloc_array(call->arena, cap + 1, sizeof *views);
    struct buf *out = &call->out;

    while (views && count < cap && inboxes->read(inboxes->ctx, count, &views[count]))
        count++;
    if (!count)
        return;
    metrics_head(out, "inbox_connected", "gauge", "1 while the table of the inbox is read here.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "inbox_connected", NAMED(&views[i]), views[i].connected);
    metrics_head(out, "inbox_lag_seconds", "gauge",
                 "Age of the oldest row that waited at the last look.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample_decimal(out, "inbox_lag_seconds", NAMED(&views[i]),
                               (double)views[i].lag_ms / 1000);
    metrics_head(out, "inbox_rows_taken_total", "counter", "Rows that became tasks.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "inbox_rows_taken_total", NAMED(&views[i]), views[i].taken);
    metrics_head(out, "inbox_rows_damaged_total", "counter", "Rows that cannot be tasks.");
    for (uint32_t i = 0; i < count; i++)
        metrics_sample(out, "inbox_rows_damaged_total", NAMED(&views[i]), views[i].damaged);
}
