/* Tasks that run again after an end or a loss: what their end had settled is taken back. */
#include "engine/tasks/reopen.h"

#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "store/recovery_store.h"

static struct unique key_of(const struct task *task)
{
    bool by_key = task->spec.idempotency_key.data != NULL;

    return (struct unique){.kind = by_key ? UNIQUE_KEY : UNIQUE_HASH,
                           .namespace_name = task->spec.namespace_name,
                           .type = task->spec.type,
                           .value = by_key ? task->spec.idempotency_key : task->spec.input_hash,
                           .task_key = task->key};
}

/* Its key was free from its end on (unique_until): it runs again only if no other task has it
 * now. */
static bool lost_its_key(const struct task *task)
{
    return status_ended(task->status) && task->spec.unique_until == UNIQUE_ENDED &&
           (task->spec.idempotency_key.data || task->spec.input_hash.data);
}

int reopen_key_taken(struct batch *batch, const struct task *task, bool *taken, struct err *err)
{
    struct unique unique = key_of(task);

    *taken = false;
    if (!lost_its_key(task))
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch->store->verbs->uniques_look(batch->store, &unique, err));
    *taken = unique.task_key != 0 && unique.task_key != task->key;
    return 0;
}

int reopen_take_key(struct batch *batch, struct task *task, struct err *err)
{
    struct unique unique = key_of(task);

    if (!lost_its_key(task))
        return 0;
    batch->wrote = true;
    TRY(batch_settle(batch, err));
    TRY(batch->store->verbs->uniques_reserve(batch->store, &unique, 1, err));
    return unique.task_key == task->key
               ? 0
               : err_set(err, ERR_CONFLICT,
                         "another task has its %s since it ended; wait until that "
                         "one has ended too",
                         unique.kind == UNIQUE_KEY ? "idempotency_key" : "input_hash");
}

/* A task that has ended will run again: its relatives know of its end, its result is void. */
int reopen_end(struct batch *batch, struct task *task, struct err *err)
{
    if (!status_ended(task->status))
        return 0;
    TRY(batch_settle(batch, err));
    TRY(batch_reopen(batch, task, err));
    batch->wrote = true;
    return batch->store->verbs->result_drop(batch->store, &task->id, err);
}

/* Of a restart without its checkpoints nothing is left that it could be resumed from. */
static int forget_checkpoints(struct batch *batch, struct task *task, struct err *err)
{
    task->progress = 0;
    if (!task->resume.checkpoint.data)
        return 0;
    task->resume.checkpoint = STR_NONE;
    batch->wrote = true;
    return batch->store->verbs->recovery->checkpoints_retire(batch->store, &task->id, err);
}

static int begin_recovery(struct batch *batch, struct task *task, struct str detail,
                          struct err *err)
{
    TRY(reopen_end(batch, task, err));
    task->completed_at_us = 0;
    task->fault.error = STR_NONE;
    task->scheduled_at_us = 0;
    task->lease.outcome_token = 0;
    task->lease.pause_requested = false;
    return batch_move(batch, task, STATUS_RECOVERING, MOVE_RECOVER, "Recovering", ACTOR_RECOVERY,
                      detail, err);
}

int reopen_put_back(struct batch *batch, struct task *task, bool clean, struct err *err)
{
    bool ended = status_ended(task->status);
    bool pause = task->lease.pause_requested;

    TRY(reopen_take_key(batch, task, err));
    TRY(begin_recovery(batch, task,
                       clean ? STR("{\"method\":\"restart_clean\"}")
                             : STR("{\"method\":\"resume_checkpoint\"}"),
                       err));
    if (clean)
        TRY(forget_checkpoints(batch, task, err));
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_RECOVERED, "Queued", ACTOR_RECOVERY, STR_NONE,
                   err));
    if (ended && !uuid_is_nil(&task->spec.origin.job_id))
        TRY(run_reopened(batch, task, err));
    return task_pause_if_asked(batch, task, pause, err);
}

/* The validator of its type says that its handler had done all of it before it was lost or fell
 * silent. It does not run again: it needs neither its key nor a slot of its job, and it is not a
 * failure. */
int reopen_found_done(struct batch *batch, struct task *task, struct err *err)
{
    if (status_held(task->status))
        TRY(lose_task(batch, task, "stalled", false, err));
    if (task->lease.held) {
        task_let_go(task);
        batch_heat_freed(batch, task);
    }
    TRY(begin_recovery(batch, task, STR("{\"reason\":\"already_completed\"}"), err));
    task->progress = 100;
    task->lease.execution_key = 0; /* no execution tells of this end */
    return batch_move(batch, task, STATUS_COMPLETED, MOVE_RECOVERED, "Completed", ACTOR_RECOVERY,
                      STR("{\"reason\":\"already_completed\"}"), err);
}
