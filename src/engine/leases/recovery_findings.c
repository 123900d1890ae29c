/* The facts that a recovery is judged by (core/task/recovery.h): intact checkpoints, live workers
 * that have the handler, keys; and the verdict as users see it. Nothing is changed. Runs on the
 * thread that has the turn. */
#include "core/bounds.h"
#include "core/render.h"
#include "core/task/checkpoint.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/recovery_int.h"
#include "engine/leases/workers.h"
#include "engine/tasks/reopen.h"
#include "engine/tasks/reports.h"

#define DETAIL_BYTES_MAX 8192

/* The one before; 0 = there is none. It may be large, and many are looked at in one commit: only
 * what the verdict mentions stays. */
static int look_at_one(struct batch *batch, const struct task *task, int64_t *before_seq,
                       struct findings *found, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct checkpoint *row;

    TRY(batch->store->verbs->recovery->checkpoint_before(batch->store, &task->id, *before_seq,
                                                         &arena, &row, err));
    if (!row)
        return 0;
    TRY_MEMORY(!arena.failed);
    *before_seq = row->seq;
    if (checkpoint_intact(&task->id, row))
        found->checkpoint = checkpoint_short(row, &batch->arena);
    else
        found->damaged++;
    return 1;
}

/* The newest checkpoint that is whole; nothing is marked, only looked at. */
static int look_at_checkpoints(struct batch *batch, const struct task *task,
                               struct findings *found, struct err *err)
{
    int64_t before_seq = 0;

    for (uint32_t i = 0; i <= BOUND_CHECKPOINTS_KEPT; i++) {
        int rc = look_at_one(batch, task, &before_seq, found, err);

        if (rc < 0 || found->checkpoint.data)
            return rc;
        if (rc == 0)
            break;
    }
    found->facts.damaged = found->damaged > 0 || task->resume.checkpoint.data;
    return 0;
}

static bool names_queue(const struct worker_state *worker, struct str queue)
{
    for (uint32_t i = 0; i < worker->queues_count; i++)
        if (str_eq(worker->queues[i], queue))
            return true;
    return false;
}

/* Only where every live worker of the queue says what it runs, and none runs this. */
static bool handler_is_gone(const struct batch *batch, const struct task *task)
{
    struct worker_state *worker;
    uint32_t cursor = 0;
    bool any = false;

    while ((worker = map_next(&batch->engine->leases.workers, &cursor)) != NULL) {
        if (worker->row.lease_until_us < batch->now_us || !names_queue(worker, task->spec.queue))
            continue;
        if (settings_types_cover(worker->types, worker->types_count, task->spec.type))
            return false;
        any = true;
    }
    return any;
}

int recovery_gather(struct batch *batch, const struct task *task, enum recovery_method method,
                    struct findings *found, struct err *err)
{
    *found = (struct findings){.facts.found = task != NULL};
    if (!task)
        return 0;
    found->facts.status = task->status;
    found->facts.stalled = recovery_is_stalled(task, RECOVERY_STALL_AFTER_MS, batch->now_us);
    found->facts.poisoned =
        task->counts.crashes > 0 && task->counts.crashes >= task->spec.max_crashes;
    found->facts.handler_gone = handler_is_gone(batch, task);
    TRY(reopen_key_taken(batch, task, &found->facts.key_taken, err));
    return method == RECOVERY_RESTART_CLEAN ? 0 : look_at_checkpoints(batch, task, found, err);
}

static void write_detail(struct buf *out, const struct task *task, const struct findings *found)
{
    if (!task) {
        buf_text(out, "{}");
        return;
    }
    buf_byte(out, '{');
    render_uuid(out, "task_id", &task->id);
    render_text(out, "status", str_of(status_word(task->status)));
    render_bool(out, "stalled", found->facts.stalled);
    render_json(out, "checkpoint", found->checkpoint);
    render_int(out, "checkpoints_damaged", found->damaged);
    render_int(out, "crash_count", task->counts.crashes);
    render_int(out, "max_crashes", task->spec.max_crashes);
    buf_byte(out, '}');
}

struct str recovery_verdict(const struct task *task, const struct findings *found,
                            enum recovery_reason reason, struct str said, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(DETAIL_BYTES_MAX);

    buf_format(&text, "{\"valid\":%s,\"reason\":", reason == RECOVERY_VALID ? "true" : "false");
    if (reason == RECOVERY_VALID)
        buf_text(&text, "null");
    else
        json_write_string(&text, said.data ? said : str_of(recovery_reason_word(reason)));
    buf_text(&text, ",\"detail\":");
    write_detail(&text, task, found);
    buf_byte(&text, '}');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}
