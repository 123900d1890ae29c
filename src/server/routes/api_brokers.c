/* Queues of brokers that this node consumes, with its figures; those of the namespace that their
 * tasks are in, or all to those who may see all. Loop thread. */
#include "server/routes/api_services.h"

#include "server/page.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/broker/broker_rules.h"
#include "core/render.h"

static bool is_shown(const struct api_call *call, const struct broker_view *view)
{
    return principal_is_global(call->principal) ||
           str_eq(view->namespace_name, call_namespace(call));
}

static void write_broker(struct api_call *call, const void *item)
{
    const struct broker_view *view = item;
    struct buf *out = &call->out;

    buf_byte(out, '{');
    render_text(out, "broker", view->broker);
    render_text(out, "queue", view->queue);
    render_text(out, "place", view->place);
    render_text(out, "status", view->connected ? STR("connected") : STR("away"));
    render_text(out, "type", view->type);
    render_text(out, "namespace", view->namespace_name);
    render_int(out, "messages", view->messages);
    render_int(out, "tasks", view->tasks);
    render_int(out, "duplicates", view->duplicates);
    render_int(out, "refused", view->refused);
    render_int(out, "put_off", view->put_off);
    render_int(out, "failures", view->failures);
    render_int(out, "held", view->held);
    render_text(out, "last_error", view->last_error[0] ? str_of(view->last_error) : STR_NONE);
    render_time(out, "last_error_at", view->last_error_us);
    buf_byte(out, '}');
}

struct shown {
    struct broker_view view;
    struct str name; /* broker and queue, for the cursor */
};

static struct page_entry entry_of(const void *ctx, uint32_t i)
{
    const struct shown *shown = (const struct shown *)ctx + i;

    return (struct page_entry){0, shown->name, &shown->view};
}

int api_brokers(struct api_call *call)
{
    const struct broker_views *brokers = call->server->shown.brokers;
    uint32_t cap = brokers ? brokers->count(brokers->ctx) : 0, count = 0;
    struct shown *shown = arena_alloc_array(call->arena, cap + 1, sizeof *shown);
    struct page page = {0};

    TRY(page_parse(call, &page));
    if (!shown)
        return call_no_memory(call);
    for (uint32_t i = 0; i < cap; i++) {
        struct shown *at = &shown[count];

        brokers->read(brokers->ctx, i, &at->view);
        if (!is_shown(call, &at->view))
            continue;
        at->name = arena_format(call->arena, STR_FMT "/" STR_FMT, STR_ARG(at->view.broker),
                                STR_ARG(at->view.queue));
        count++;
    }
    if (call->arena->failed)
        return call_no_memory(call);
    call->ctx = shown;
    return page_reply(call, &page, count, entry_of, write_broker);
}
