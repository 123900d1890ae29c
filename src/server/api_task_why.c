/* GET /v1/tasks/{id}/why: one sentence that says why a task does not run. The queue gathers what
 * decides it; who paused a task is looked up in its events. Loop thread, but for read_pauser. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"

static int write_why(struct api_call *call, const struct why_facts *facts)
{
    struct why why;

    if (why_decide(facts, call->arena, &why, &call->err) < 0)
        return -(int)call->err.code;
    buf_byte(&call->out, '{');
    render_text(&call->out, "reason", str_of(why_word(why.reason)));
    buf_byte(&call->out, ',');
    render_text(&call->out, "text", why.text);
    buf_byte(&call->out, ',');
    render_json(&call->out, "detail", why.detail);
    buf_byte(&call->out, '}');
    return 0;
}

static struct str member_of(const struct task_event *event, const char *key)
{
    return event->detail.data ? json_get(event->detail, str_of(key)) : STR_NONE;
}

/* Of the newest pause: who, when and why. A task that ran was asked to pause first (an event says
 * so), and then given back by its worker: it was paused by whoever asked. */
static void find_pauser(const struct task_event *events, uint32_t count, struct arena *arena,
                        struct why_facts *facts)
{
    const struct task_event *by = NULL;
    struct str reason;

    for (uint32_t i = 0; i < count && !by; i++)
        if (events[i].status == STATUS_PAUSED)
            by = &events[i];
    if (!by)
        return;
    facts->paused_at_us = by->created_at_us;
    facts->paused_by = by->actor;
    reason = member_of(by, "reason");
    if (by->actor == ACTOR_USER || by->actor == ACTOR_API) {
        if (reason.data)
            facts->pause_reason = arena_str(arena, json_string(reason, arena));
        return;
    }
    for (; by < events + count; by++) {
        struct str asked = member_of(by, "pause_requested");

        if (asked.data && json_kind(asked) == JSON_TRUE) {
            facts->paused_by = by->actor;
            return;
        }
    }
}

static int read_pauser(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct why_request *request = call->ctx;
    struct task_event *events = NULL;
    uint32_t count = 0;

    if (call->server->store->verbs->read_events(reader, &call->task_id, 0, BOUND_EVENTS_LIST,
                                                scratch, &events, &count, &call->err) < 0)
        return -(int)call->err.code;
    find_pauser(events, count, call->arena, &request->facts);
    return write_why(call, &request->facts);
}

static void explained(struct api_call *call)
{
    struct why_request *request = call->ctx;

    if (request->facts.task->status == STATUS_PAUSED)
        call_read(call, read_pauser);
    else if (write_why(call, &request->facts) < 0)
        call_fail(call);
    else
        call_reply(call, 200);
}

void api_task_why(struct api_call *call)
{
    struct why_request *request = arena_alloc(call->arena, sizeof *request);
    int rc = call_task_id(call);

    if (rc == 0 && !request)
        rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    if (rc < 0) {
        call_fail(call);
        return;
    }
    call->ctx = request;
    request->task_id = call->task_id;
    call_submit(call, &request->base, REQUEST_WHY, explained);
}
