/* Losing a task: its worker is gone, silent or too late. The sweep, recoveries and heartbeats lose
 * tasks here and nowhere else. */
#include "engine/leases/lose.h"

#include "base/fault.h"
#include "engine/engine_state.h"
#include "engine/leases/lost_tell.h"
#include "engine/leases/recoveries.h"
#include "engine/leases/recovery_entries.h"

void task_let_go(struct task *task)
{
    task->lease.held = false;
    task->lease.unlisted = false;
    task->lease.until_us = 0;
    task->lease.pause_requested = false;
}

/* A pause that was asked for holds also when the attempt ended before its worker could release. */
int task_pause_if_asked(struct batch *batch, struct task *task, bool asked, struct err *err)
{
    if (!asked || !status_allows(task->status, STATUS_PAUSED, MOVE_PAUSE))
        return 0;
    return batch_move(batch, task, STATUS_PAUSED, MOVE_PAUSE, "Paused", ACTOR_LEADER,
                      STR("{\"reason\":\"pause_requested\"}"), err);
}

static int execution_lost(struct batch *batch, struct task *task, const char *reason,
                          struct err *err)
{
    return batch_execution_end(batch, task, EXECUTION_FAILED, STR_NONE,
                               batch_text(batch, "{\"reason\":\"%s\"}", reason), err);
}

static int bury(struct batch *batch, struct task *task, struct err *err)
{
    task->fault.error = STR("poison");
    lost_note_poison(batch, task);
    TRY(batch_move(batch, task, STATUS_RECOVERING, MOVE_RECOVER, "Recovering", ACTOR_RECOVERY,
                   STR_NONE, err));
    return batch_move(batch, task, STATUS_DEAD_LETTER, MOVE_RECOVERED, "Dead letter",
                      ACTOR_RECOVERY, STR("{\"reason\":\"poison\"}"), err);
}

int lose_task(struct batch *batch, struct task *task, const char *reason, bool to_blame,
              struct err *err)
{
    struct outcome outcome = outcome_lost(task, to_blame);
    struct str detail =
        batch_text(batch, "{\"reason\":\"%s\",\"crash_count\":%lld}", reason,
                   (long long)(outcome.counts_crash ? task_count_up(task->counts.crashes)
                                                    : task->counts.crashes));
    bool pause = task->lease.pause_requested && outcome.to != STATUS_DEAD_LETTER;

    lost_note(batch, task, reason);
    task_let_go(task);
    task->lease.pause_requested = pause; /* until it is recovered, whenever that is */
    batch_heat_freed(batch, task);
    if (outcome.counts_crash)
        task->counts.crashes = task_count_up(task->counts.crashes);
    task->fault.last = str_of(reason);
    task->fault.details = detail;
    task->waits.for_children = false;
    task->lease.outcome_token = 0;
    batch->engine->figures.stats.totals[TOTAL_LOST_LEASES]++;
    FAULT_POINT("sweep.lose");
    TRY(execution_lost(batch, task, reason, err));
    TRY(batch_move(batch, task, STATUS_ORPHANED, MOVE_LOSE, "Worker lost", ACTOR_RECOVERY, detail,
                   err));
    return outcome.to == STATUS_DEAD_LETTER ? bury(batch, task, err) : 0;
}

/* As long as a worker that hears of it needs at most to stop a handler. */
int lose_held(struct batch *batch, struct task *task, struct err *err)
{
    const struct settings *settings = batch->engine->settings;

    TRY(lose_task(batch, task, "stalled", true, err));
    if (task->status != STATUS_ORPHANED)
        return 0;
    task->lease.held = task->lease.unlisted =
        true; /* its own lease counts: no heartbeat renews it */
    task->lease.until_us = batch->now_us + (settings->lease_ms + settings->grace_ms) * CLOCK_MS_US;
    return batch_owe(batch, task, err);
}

int lose_stopped(struct batch *batch, struct task *task, struct err *err)
{
    bool pause = task->status == STATUS_ORPHANED && task->lease.pause_requested;

    task_let_go(task);
    task->lease.pause_requested = pause;
    batch_heat_freed(batch, task);
    TRY(batch_owe(batch, task, err));
    return task->status == STATUS_ORPHANED ? entry_hurry(batch, task, err) : 0;
}

/* orphaned -> recovering -> pending (or dead_letter) as events of one transaction, with the entry
 * of the recovery queue that tells of it. */
int lose_and_recover(struct batch *batch, struct task *task, const char *reason, bool to_blame,
                     struct err *err)
{
    bool pause;

    TRY(lose_task(batch, task, reason, to_blame, err));
    if (task->status == STATUS_DEAD_LETTER)
        return entry_note_lost(batch, task, reason, err);
    if (!task->spec.auto_recovery)
        return 0;
    if (recovery_validates(batch->engine, task->spec.type))
        return entry_wait(batch, task, err);
    pause = task->lease.pause_requested;
    task->lease.pause_requested = false;
    TRY(batch_move(batch, task, STATUS_RECOVERING, MOVE_RECOVER, "Recovering", ACTOR_RECOVERY,
                   STR_NONE, err));
    TRY(batch_move(batch, task, STATUS_PENDING, MOVE_RECOVERED, "Queued", ACTOR_RECOVERY, STR_NONE,
                   err));
    TRY(entry_note_lost(batch, task, reason, err));
    return task_pause_if_asked(batch, task, pause, err);
}

/* Its worker is alive: no other worker gets it before that one has stopped it (F-A19, F-I3). */
int lose_stalled(struct batch *batch, struct task *task, struct err *err)
{
    TRY(lose_held(batch, task, err));
    if (task->status == STATUS_DEAD_LETTER)
        return entry_note_lost(batch, task, "stalled", err);
    return task->spec.auto_recovery ? entry_wait(batch, task, err) : 0;
}
