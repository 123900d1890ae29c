/* /v1/queues: list, show, change, pause, resume. The engine decides what a limit does; here it is
 * only read from JSON (parse_queue.c) and written as JSON, where no limit is null. Loop thread. The
 * first use makes a queue, also a change of its limits. */
#include "server/api.h"
#include "server/page.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/render.h"
#include "server/body.h"
#include "server/parse_queue.h"

void api_write_counts(struct buf *out, const int64_t counts[STATUS_COUNT])
{
    json_write_key(out, "counts");
    buf_byte(out, '{');
    for (int i = STATUS_NONE + 1; i < STATUS_COUNT; i++) {
        render_int(out, status_word((enum status)i), counts[i]);
    }
    buf_byte(out, '}');
}

/* No limit is null. */
static void write_limit(struct buf *out, const char *key, int64_t value)
{
    if (value > 0)
        render_int(out, key, value);
    else
        render_json(out, key, STR_NONE);
}

static void write_rate(struct buf *out, const char *key, const struct rate_rule *rate)
{
    json_write_key(out, key);
    if (rate->count > 0)
        buf_format(out, "{\"count\":%lld,\"per_ms\":%lld,\"burst\":", (long long)rate->count,
                   (long long)rate->per_ms);
    if (rate->count > 0 && rate->burst > 0)
        buf_format(out, "%lld}", (long long)rate->burst);
    else
        buf_text(out, rate->count > 0 ? "null}" : "null");
}

static void write_type_limits(struct buf *out, const struct queue_rule *rule)
{
    json_write_key(out, "type_limits");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < rule->type_limits_count; i++) {
        buf_text(out, i ? ",{" : "{");
        render_text(out, "type", rule->type_limits[i].type);
        write_limit(out, "concurrency", rule->type_limits[i].concurrency);
        write_rate(out, "rate", &rule->type_limits[i].rate);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void write_rule(struct buf *out, const struct queue_rule *rule)
{
    write_limit(out, "concurrency", rule->concurrency);
    write_rate(out, "rate", &rule->rate);
    write_limit(out, "key_concurrency", rule->key_concurrency);
    write_rate(out, "key_rate", &rule->key_rate);
    write_type_limits(out, rule);
    render_text(out, "priority_order",
                rule->priority_order == ORDER_LOW_FIRST ? STR("low_first") : STR("high_first"));
    render_int(out, "ageing_ms", rule->ageing_ms);
    render_int(out, "stall_after_ms", rule->stall_after_ms);
    render_text(out, "dead_letter_queue", rule->dead_letter_queue);
}

/* What this node's configuration says of it, which is not in the store. */
static void write_configured(struct buf *out, const struct settings *settings, struct str name)
{
    bool has_pool = settings->pool.slots != 0 && settings_has_commands(settings);
    bool configured = false;

    for (uint32_t i = 0; i < settings->queues_count; i++)
        configured |= str_eq(settings->queues[i].name, name);
    render_bool(out, "configured", configured);
    render_bool(out, "serve", has_pool && settings_serves_queue(settings, name));
    render_text(out, "on_no_handler",
                settings_no_handler_fails(settings, name) ? STR("fail") : STR("wait"));
}

static void write_queue(struct api_call *call, const void *item)
{
    const struct queue_view *view = item;
    struct buf *out = &call->out;

    buf_byte(out, '{');
    render_text(out, "name", queue_name_plain(view->row.rule.name));
    render_bool(out, "paused", view->row.paused_at_us != 0);
    render_time(out, "paused_at", view->row.paused_at_us);
    write_rule(out, &view->row.rule);
    write_configured(out, call->server->settings, view->row.rule.name);
    api_write_counts(out, view->counts);
    render_time(out, "created_at", view->row.created_at_us);
    render_time(out, "updated_at", view->row.updated_at_us);
    buf_byte(out, '}');
}

struct queues_call {
    struct queues_request request;
    struct page page;
};

static struct page_entry queue_entry(const void *ctx, uint32_t i)
{
    const struct queue_view *view = &((const struct queues_call *)ctx)->request.queues[i];

    return (struct page_entry){view->row.created_at_us, queue_name_plain(view->row.rule.name),
                               view};
}

static int listed(struct api_call *call)
{
    const struct queues_call *list = call->ctx;

    return page_reply(call, &list->page, list->request.count, queue_entry, write_queue);
}

int api_queues_list(struct api_call *call)
{
    struct queues_call *list = CALL_NEW(call, sizeof *list);

    TRY(page_parse(call, &list->page));
    return call_submit(call, &list->request.base, REQUEST_QUEUES, listed);
}

static int got(struct api_call *call)
{
    const struct queues_request *request = call->ctx;

    if (request->count == 0)
        return err_set(&call->err, ERR_NOT_FOUND,
                       "there is no queue of this name yet; its first task creates it");
    write_queue(call, &request->queues[0]);
    return call_reply(call, 200);
}

int api_queue_get(struct api_call *call)
{
    struct queues_request *request = CALL_NEW(call, sizeof *request);

    request->name = call->name;
    return call_submit(call, &request->base, REQUEST_QUEUES, got);
}

static int changed(struct api_call *call)
{
    const struct queue_patch_request *request = call->ctx;

    write_queue(call, &request->view);
    return call_reply(call, 200);
}

int api_queue_change(struct api_call *call)
{
    enum queue_change what = (enum queue_change)call->route->what;
    struct queue_patch_request *request = CALL_NEW(call, sizeof *request);
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_check_name("name", call->name, BOUND_NAME_BYTES, &call->err));
    if (what == QUEUE_CHANGE)
        TRY(parse_queue_patch(object, call->arena, request, &call->err));
    else
        TRY(body_parse(object, NULL, 0, &call->err));
    request->name = call->name;
    request->pause = what == QUEUE_PAUSE;
    request->resume = what == QUEUE_RESUME;
    request->remove = what == QUEUE_REMOVE;
    return call_submit(call, &request->base, REQUEST_QUEUE_PATCH,
                       what == QUEUE_REMOVE ? call_reply_empty : changed);
}
