/* GET /v1/tasks/{id}?at=TIME: the task as it was then, rebuilt from its events (core/replay). Runs
 * on a reader's thread. */

#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "core/task/replay.h"

#define EVENTS_PAGE 500 /* details of 16 KiB each fit into what a read may hold */

/* Oldest first: the numbers of a task's events have no gaps, so pages are found from the front. */
static int replay_page(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                       int64_t before_seq, int64_t at_us, struct replay *replay, bool *more)
{
    struct task_event *events = NULL;
    uint32_t count = 0;

    TRY(call->server->store->verbs->read_events(reader, &call->task_id, before_seq, EVENTS_PAGE,
                                                scratch, &events, &count, &call->err));
    for (uint32_t i = count; i > 0 && *more; i--) {
        *more = events[i - 1].created_at_us <= at_us;
        if (*more && events[i - 1].seq > replay->seq)
            replay_event(replay, &events[i - 1], scratch);
    }
    replay_keep(replay, call->arena);
    arena_reset(scratch);
    return call->arena->failed ? call_no_memory(call) : 0;
}

static int refuse_time(struct api_call *call, const struct task *task, int64_t at_us)
{
    if (at_us < task->spec.created_at_us)
        return err_set_field(&call->err, ERR_NOT_FOUND, "at", "the task did not exist yet at this "
                             "time");
    return err_set_field(&call->err, ERR_NOT_FOUND, "at", "the events of the task up to this time "
                         "were removed; see retention.events");
}

int api_read_past(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    int64_t at_us = *(const int64_t *)call->ctx;
    struct replay replay = REPLAY_INIT;
    struct task *task = NULL;
    bool more = true;

    TRY(call->server->store->verbs->read_task(reader, &call->task_id, call->arena, &task,
                                              &call->err));
    TRY(call_check_task(call, task));
    for (int64_t from = 0; more && from < task->event_seq; from += EVENTS_PAGE)
        TRY(replay_page(call, reader, scratch, from + EVENTS_PAGE + 1, at_us, &replay, &more));
    if (replay.events_count == 0 || !replay.whole)
        return refuse_time(call, task, at_us);
    replay_render(&call->out, &replay, task, at_us, call_redacts(call, task));
    return 0;
}
