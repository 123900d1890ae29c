/* /v1/queues: list, show, change, pause, resume. What a limit does is decided in queue/; here it is
 * only read from JSON (parse_queue.c) and written as JSON, where no limit is null. Loop thread.
 * Queues come into being on first use, also by a change of their limits. */
#include "server/api.h"
#include "server/page.h"

#include "base/json.h"
#include "core/bounds.h"
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
    bool has_pool = settings->workers != 0 && settings_has_commands(settings);
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
    render_text(out, "name", view->row.rule.name);
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

static void listed(struct api_call *call)
{
    const struct queues_call *list = call->ctx;
    uint32_t count = list->request.count;
    struct page_entry *entries = arena_alloc_array(call->arena, count + 1, sizeof *entries);

    if (!entries) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct queue_view *view = &list->request.queues[i];

        entries[i] = (struct page_entry){view->row.created_at_us, view->row.rule.name, view};
    }
    page_write(call, &list->page, entries, count, write_queue);
    call_reply(call, 200);
}

void api_queues_list(struct api_call *call)
{
    struct queues_call *list = arena_alloc(call->arena, sizeof *list);

    if (!list)
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (!list || page_parse(call, &list->page) < 0) {
        call_fail(call);
        return;
    }
    call->ctx = list;
    call_submit(call, &list->request.base, REQUEST_QUEUES, listed);
}

static void got(struct api_call *call)
{
    const struct queues_request *request = call->ctx;

    if (request->count == 0) {
        err_set(&call->err, ERR_NOT_FOUND,
                "there is no queue of this name yet; its first task creates it");
        call_fail(call);
        return;
    }
    write_queue(call, &request->queues[0]);
    call_reply(call, 200);
}

void api_queue_get(struct api_call *call)
{
    struct queues_request *request = arena_alloc(call->arena, sizeof *request);

    if (!request) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
        return;
    }
    call->ctx = request;
    request->name = call->name;
    call_submit(call, &request->base, REQUEST_QUEUES, got);
}

static void patched(struct api_call *call)
{
    const struct queue_patch_request *request = call->ctx;

    write_queue(call, &request->view);
    call_reply(call, 200);
}

static void removed(struct api_call *call)
{
    call_reply_empty(call);
}

enum change { CHANGE_PATCH, CHANGE_PAUSE, CHANGE_RESUME, CHANGE_REMOVE };

static void change(struct api_call *call, enum change what)
{
    struct queue_patch_request *request = arena_alloc(call->arena, sizeof *request);
    struct str object;
    int rc = call_object(call, &object);

    if (rc == 0 && !request)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc == 0)
        rc = body_check_name("name", call->name, BOUND_NAME_BYTES, &call->err);
    if (rc == 0)
        rc = what == CHANGE_PATCH ? parse_queue_patch(object, call->arena, request, &call->err)
                                  : body_parse(object, NULL, 0, &call->err);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    request->name = call->name;
    request->pause = what == CHANGE_PAUSE;
    request->resume = what == CHANGE_RESUME;
    request->remove = what == CHANGE_REMOVE;
    call->ctx = request;
    call_submit(call, &request->base, REQUEST_QUEUE_PATCH,
                what == CHANGE_REMOVE ? removed : patched);
}

void api_queue_patch(struct api_call *call)
{
    change(call, CHANGE_PATCH);
}

void api_queue_delete(struct api_call *call)
{
    change(call, CHANGE_REMOVE);
}

void api_queue_pause(struct api_call *call)
{
    change(call, CHANGE_PAUSE);
}

void api_queue_resume(struct api_call *call)
{
    change(call, CHANGE_RESUME);
}
