/* GET /v1/tasks/{id}/why: one sentence that says why a task does not run. The queue gathers what
 * decides it; who paused a task is looked up in its events, what became of a lost one in the
 * recovery queue. Loop thread, but for the read_ functions. */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"
#include "store/recovery_store.h"

#define RECOVERIES_LOOKED_AT 20 /* of one task, the newest; most of them are questions only */

/* Errors are what handlers said. */
static int hide_errors(struct api_call *call, struct why_facts *facts)
{
    struct task *task = arena_copy(call->arena, facts->task, sizeof *facts->task);

    if (!task)
        return call_no_memory(call);
    task->fault = (struct task_fault){0};
    facts->task = task;
    facts->recovery.error = STR_NONE;
    return 0;
}

static int write_why(struct api_call *call, struct why_facts *facts)
{
    bool redacted = call_redacts(call, facts->task);
    struct why why;

    if (redacted)
        TRY(hide_errors(call, facts));
    TRY(why_decide(facts, call->arena, &why, &call->err));
    buf_byte(&call->out, '{');
    render_text(&call->out, "reason", str_of(why_word(why.reason)));
    render_text(&call->out, "text", why.text);
    render_json(&call->out, "detail", why.detail);
    if (redacted)
        render_bool(&call->out, "redacted", true);
    buf_byte(&call->out, '}');
    return 0;
}

static struct str member_of(const struct task_event *event, const char *key)
{
    return event->detail.data ? json_get(event->detail, str_of(key)) : STR_NONE;
}

/* Of the newest pause: who, when and why. A task that ran was asked to pause first (an event says
 * so), and then given back by its worker: the one who asked paused it. */
static void find_pauser(const struct task_event *events, uint32_t count, struct arena *arena,
                        struct why_facts *facts)
{
    const struct task_event *by = NULL;
    struct str reason;

    for (uint32_t i = 0; i < count && !by; i++)
        if (events[i].status == STATUS_PAUSED && /* what came after it changed something else */
            (i + 1 == count || events[i + 1].status != STATUS_PAUSED))
            by = &events[i];
    if (!by)
        return;
    facts->pause.at_us = by->created_at_us;
    facts->pause.by = by->actor;
    reason = member_of(by, "reason");
    if (by->actor == ACTOR_USER || by->actor == ACTOR_API || by->actor == ACTOR_ACCESS) {
        if (reason.data)
            facts->pause.reason = arena_str(arena, json_string(reason, arena));
        return;
    }
    for (; by < events + count; by++) {
        struct str asked = member_of(by, "pause_requested");

        if (asked.data && json_kind(asked) == JSON_TRUE) {
            facts->pause.by = by->actor;
            return;
        }
    }
}

static int read_pauser(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct why_request *request = call->ctx;
    struct task_event *events = NULL;
    uint32_t count = 0;

    TRY(call->server->store->verbs->read_events(reader, &call->task_id, 0, BOUND_EVENTS_LIST,
                                                scratch, &events, &count, &call->err));
    find_pauser(events, count, call->arena, &request->facts);
    return write_why(call, &request->facts);
}

/* The newest entry about this loss that was to bring the task back says what comes next. */
static void find_recovery(const struct recovery_entry *entries, uint32_t count,
                          struct arena *arena, struct why_facts *facts)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct recovery_entry *entry = &entries[i];

        if (entry->method == RECOVERY_VALIDATE_ONLY)
            continue;
        if (entry->created_at_us < facts->task->lease.claimed_at_us)
            return;
        facts->recovery.refused = entry->status == RECOVERY_FAILED;
        facts->recovery.waits =
            entry->status == RECOVERY_PENDING || entry->status == RECOVERY_PROCESSING;
        facts->recovery.at_us = entry->scheduled_for_us;
        if (entry->error_message.data)
            facts->recovery.error = arena_str(arena, entry->error_message);
        return;
    }
}

static int read_recovery(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct why_request *request = call->ctx;
    struct recovery_filter filter = {.status = -1, .method = -1, .task_id = call->task_id,
                                     .limit = RECOVERIES_LOOKED_AT};
    struct recovery_entry *entries = NULL;
    uint32_t count = 0;

    TRY(call->server->store->verbs->recovery->read_entries(reader, &filter, scratch, &entries,
                                                           &count, &call->err));
    find_recovery(entries, count, call->arena, &request->facts);
    return write_why(call, &request->facts);
}

static int explained(struct api_call *call)
{
    struct why_request *request = call->ctx;

    if (request->facts.task->status == STATUS_PAUSED)
        return call_read(call, read_pauser);
    if (request->facts.task->status == STATUS_ORPHANED)
        return call_read(call, read_recovery);
    TRY(write_why(call, &request->facts));
    return call_reply(call, 200);
}

static int ask(struct api_call *call)
{
    struct why_request *request = call->ctx;

    return call_submit(call, &request->base, REQUEST_WHY, explained);
}

int api_task_why(struct api_call *call)
{
    struct why_request *request = CALL_NEW(call, sizeof *request);

    TRY(call_task_id(call));
    request->task_id = call->task_id;
    return call_look_first(call, ask);
}
