/* The recovery queue (B4): users and the sweep make entries, the engine judges them (B6), and the
 * leader applies them by priority. If a type has a validator, that is asked before its task is put
 * back: outside of any transaction, by a thread that takes entries here and reports the answer
 * (recovery_work); it holds the entry as long as its lease. Runs on the thread that has the
 * turn. */
#include "engine/leases/recoveries.h"

#include "base/fault.h"
#include "core/bounds.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/leases/lose.h"
#include "engine/leases/recovery_entries.h"
#include "engine/leases/recovery_int.h"
#include "engine/tasks/reopen.h"

#define ENTRY_LEASE_US (60 * CLOCK_SECOND_US) /* a validator has 10 s */

static const struct recovery_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->recovery;
}

bool recovery_validates(const struct engine *engine, struct str type)
{
    return engine->config.validates && engine->config.validates(engine->config.ctx, type);
}

/* ---- entries ---- */

/* ---- what the sweep lost ---- */

/* ---- putting a task back ---- */

/* orphaned, partial or silent -> recovering -> pending; dead_letter where silent too often. One
 * that its worker still holds is put off. */
static int put_back(struct batch *batch, struct task *task, struct recovery_entry *entry,
                    struct err *err)
{
    bool clean = entry->method == RECOVERY_RESTART_CLEAN;

    if (status_held(task->status))
        TRY(lose_held(batch, task, err));
    if (task->lease.held)
        return entry_put_off(batch, task, entry, err);
    if (task->status == STATUS_DEAD_LETTER) {
        entry_end(batch, entry, RECOVERY_FAILED, STR("attempts_exhausted: it was lost too often"));
        return 0;
    }
    entry_note(batch, task, entry,
               task->fault.last.data && task->status == STATUS_ORPHANED ? task->fault.last
                                                                        : STR("partial"));
    FAULT_POINT("recovery.put_back");
    TRY(reopen_put_back(batch, task, clean, err));
    batch->engine->figures.stats.totals[TOTAL_RECOVERED]++;
    entry_end(batch, entry, RECOVERY_COMPLETED, STR_NONE);
    if (entry->max_attempts == 0)
        entry->result = entry_lost_json(batch, task, task->fault.last);
    return 0;
}

static int apply_entry(struct batch *batch, struct task *task, struct recovery_entry *entry,
                       const struct findings *found, enum recovery_reason reason, struct str said,
                       struct err *err)
{
    struct str why = batch_text(batch, STR_FMT ": %s",
                                STR_ARG(said.data ? said : str_of(recovery_reason_word(reason))),
                                recovery_reason_text(reason));

    entry->result = recovery_verdict(task, found, reason, said, &batch->arena);
    switch (recovery_decide(entry, reason)) {
    case RECOVERY_STEP_ACT:
        return put_back(batch, task, entry, err);
    case RECOVERY_STEP_DONE:
        entry_end(batch, entry, RECOVERY_COMPLETED,
                  entry->method == RECOVERY_VALIDATE_ONLY && reason != RECOVERY_VALID ? why
                                                                                      : STR_NONE);
        return 0;
    case RECOVERY_STEP_LATER:
        entry->status = RECOVERY_PENDING;
        entry->processing_started_us = 0;
        entry->error_message = why;
        entry->scheduled_for_us = batch->now_us + recovery_delay_ms(entry->attempts) * CLOCK_MS_US;
        return 0;
    case RECOVERY_STEP_GIVE_UP:
        entry_end(batch, entry, RECOVERY_FAILED, why);
    }
    return 0;
}

/* ---- requests ---- */

static int no_such_task(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return err_set(err, ERR_NOT_FOUND, "there is no task %s", text);
}

int recovery_now(struct batch *batch, struct task *task, struct control_request *request)
{
    enum recovery_method method = request->method;
    struct err *err = &request->base.err;
    struct recovery_entry entry = entry_new(batch, task, method);
    enum recovery_reason reason;
    struct findings found;

    TRY(recovery_gather(batch, task, method, &found, err));
    reason = recovery_judge(&found.facts, method);
    if (reason != RECOVERY_VALID && method != RECOVERY_VALIDATE_ONLY)
        return err_set(err, reason >= RECOVERY_KEY_TAKEN ? ERR_CONFLICT : ERR_TRANSITION,
                       "a task that is %s cannot be recovered: %s (%s)", status_word(task->status),
                       recovery_reason_text(reason), recovery_reason_word(reason));
    if (reason == RECOVERY_VALID && recovery_validates(batch->engine, task->spec.type))
        return entry_add(batch, &entry, err);
    if (method == RECOVERY_VALIDATE_ONLY) {
        request->verdict = recovery_verdict(task, &found, reason, STR_NONE, request->base.arena);
        TRY_MEMORY(request->verdict.data);
    }
    entry.attempts = 1;
    entry.processing_started_us = batch->now_us;
    TRY(apply_entry(batch, task, &entry, &found, reason, STR_NONE, err));
    return entry_add(batch, &entry, err);
}

static int put_request(struct batch *batch, struct task *task, struct recovery_request *request)
{
    struct recovery_entry *entry = &request->entry;
    struct recovery_entry made = entry_new(batch, task, request->method);

    if (request->has_priority)
        made.priority = request->priority;
    if (request->scheduled_for_us)
        made.scheduled_for_us = request->scheduled_for_us;
    *entry = made;
    entry->namespace_name = STR_NONE; /* the task's text does not outlive the batch */
    return entry_add(batch, &made, &request->base.err);
}

static int validate_request(struct batch *batch, struct task *task,
                            struct recovery_request *request)
{
    struct findings found;
    struct arena *arena = request->base.arena;

    TRY(recovery_gather(batch, task, request->method, &found, &request->base.err));
    request->reason = recovery_judge(&found.facts, request->method);
    request->verdict = recovery_verdict(task, &found, request->reason, STR_NONE, arena);
    request->type = arena_str(arena, task->spec.type);
    request->validates = recovery_validates(batch->engine, task->spec.type);
    return request->verdict.data && request->type.data ? 0 : err_no_memory(&request->base.err);
}

int recovery_apply(struct batch *batch, struct request *base)
{
    struct recovery_request *request = (struct recovery_request *)base;
    struct err *err = &request->base.err;
    struct task *task;

    TRY(batch_task(batch, &request->task_id, &task, err));
    if (!task || namespace_hides(base, task->spec.namespace_name) ||
        rights_hide(base, task->spec.user_id))
        return no_such_task(&request->task_id, err);
    if (request->op != RECOVERY_OP_PUT)
        return validate_request(batch, task, request);
    TRY(rights_change(base, task->spec.user_id, "this task", err));
    TRY(put_request(batch, task, request));
    return trail_note_id(batch, base, "task.recover", "task", &request->task_id, STR_NONE, err);
}

/* ---- working it off ---- */

static void give_out(struct recovery_work_request *request, const struct recovery_entry *entry,
                     const struct task *task)
{
    struct recovery_work *work = &request->works[request->works_count++];

    *work = (struct recovery_work){.entry_id = entry->id,
                                   .attempts = entry->attempts,
                                   .task_id = task->id,
                                   .type = arena_str(request->base.arena, task->spec.type)};
}

/* A task that the sweep lost starts over if no checkpoint is intact, as it would without a
 * validator. */
static int gather_for(struct batch *batch, const struct task *task,
                      const struct recovery_entry *entry, struct findings *found, struct err *err)
{
    int rc = recovery_gather(batch, task, entry->method, found, err);

    found->facts.damaged &= entry->max_attempts != 0;
    return rc;
}

/* One entry that is due: decided at once, or given to the thread that asks the validator of its
 * type. */
static int take_up(struct batch *batch, struct recovery_entry *entry,
                   struct recovery_work_request *request, struct err *err)
{
    enum recovery_reason reason;
    struct findings found;
    struct task *task;

    TRY(batch_task(batch, &entry->task_id, &task, err));
    if (!task) { /* put there while another node removed the task: it goes as others went with it */
        batch->wrote = true;
        return verbs_of(batch)->remove(batch->store, &entry->id, err);
    }
    if (entry->status == RECOVERY_PROCESSING && !recovery_tries_left(entry)) {
        entry_end(batch, entry, RECOVERY_FAILED, STR("its validator did not answer"));
        return entry_save(batch, entry, err);
    }
    entry->status = RECOVERY_PROCESSING;
    entry->processing_started_us = batch->now_us;
    entry->attempts = task_count_up(entry->attempts);
    FAULT_POINT("recovery.take_up");
    if (task->lease.held && task->status == STATUS_ORPHANED &&
        entry->method != RECOVERY_VALIDATE_ONLY)
        return entry_put_off(batch, task, entry, err) < 0 ? -(int)err->code
                                                          : entry_save(batch, entry, err);
    TRY(gather_for(batch, task, entry, &found, err));
    reason = recovery_judge(&found.facts, entry->method);
    if (request && reason == RECOVERY_VALID && recovery_validates(batch->engine, task->spec.type))
        give_out(request, entry, task);
    else if (apply_entry(batch, task, entry, &found, reason, STR_NONE, err) < 0)
        return -(int)err->code;
    return entry_save(batch, entry, err);
}

/* Whether it can be written is known at once where it must be known which one is at fault; a store
 * that answers late is asked for the entry, which says so. */
static int take_up_alone(struct batch *batch, struct recovery_entry *entry,
                         struct recovery_work_request *request, struct err *err)
{
    struct recovery_entry *seen;

    TRY(take_up(batch, entry, request, err));
    if (batch->store->shared && !batch->engine->chores[CHORE_RECOVERY].fails && !request)
        return 0; /* the next look is careful, if need be */
    TRY(batch_flush(batch, err));
    return batch->store->shared
               ? verbs_of(batch)->load(batch->store, &entry->id, &batch->arena, &seen, err) : 0;
}

static int work_off(struct batch *batch, struct recovery_work_request *request, int64_t *next_us,
                    struct err *err)
{
    struct recovery_entry *entries;
    uint32_t count;

    TRY(batch_flush(batch, err));
    TRY(recovery_faults_tell(batch, err));
    TRY(verbs_of(batch)->due(batch->store, batch->now_us, ENTRY_LEASE_US, BOUND_RECOVERY_STEP,
                             &batch->arena, &entries, &count, next_us, err));
    TRY_MEMORY(!batch->arena.failed);
    for (uint32_t i = 0; i < count; i++) {
        if (request && request->works_count == request->limit) {
            *next_us = batch->now_us;
            return 0;
        }
        if (recovery_fault_holds(batch, &entries[i], next_us))
            continue;
        if (take_up_alone(batch, &entries[i], request, err) < 0) {
            recovery_fault_note(batch, &entries[i], err);
            return -(int)err->code;
        }
        recovery_fault_forget(batch->engine, &entries[i].id);
        if (entries[i].status == RECOVERY_PENDING && entries[i].scheduled_for_us < *next_us)
            *next_us = entries[i].scheduled_for_us;
    }
    if (count == BOUND_RECOVERY_STEP)
        *next_us = batch->now_us;
    return 0;
}

int recovery_run(struct batch *batch, int64_t *next_us, struct err *err)
{
    *next_us = INT64_MAX;
    return recovery_validates(batch->engine, STR_NONE) ? 0 : work_off(batch, NULL, next_us, err);
}

/* What a validator said of one entry; nothing when the entry is no longer in its hands. */
static int settle_result(struct batch *batch, const struct recovery_result *result,
                         struct err *err)
{
    struct recovery_entry *entry;
    enum recovery_reason reason;
    struct findings found;
    struct task *task;

    TRY(verbs_of(batch)->load(batch->store, &result->entry_id, &batch->arena, &entry, err));
    if (!entry || entry->status != RECOVERY_PROCESSING || entry->attempts != result->attempts)
        return 0;
    TRY(batch_task(batch, &entry->task_id, &task, err));
    TRY(gather_for(batch, task, entry, &found, err));
    reason = recovery_judge(&found.facts, entry->method);
    if (reason == RECOVERY_VALID && !result->answered) {
        reason = RECOVERY_UNANSWERED;
    } else if (reason == RECOVERY_VALID && !result->valid) {
        reason = RECOVERY_REFUSED;
        if (str_is(result->reason, recovery_reason_word(RECOVERY_ALREADY_COMPLETED)) &&
            entry->method != RECOVERY_VALIDATE_ONLY) {
            reason = RECOVERY_ALREADY_COMPLETED;
            TRY(reopen_found_done(batch, task, err));
        }
    }
    TRY(apply_entry(batch, task, entry, &found, reason,
                    reason == RECOVERY_REFUSED || !result->answered ? result->reason : STR_NONE,
                    err));
    return entry_save(batch, entry, err);
}

int recovery_work(struct batch *batch, struct request *base)
{
    struct recovery_work_request *request = (struct recovery_work_request *)base;
    struct err *err = &request->base.err;
    int64_t look_us = batch->now_us + batch->engine->settings->lease_ms * CLOCK_MS_US / 6;
    int rc;

    request->works_count = 0;
    request->next_at_us = INT64_MAX;
    for (uint32_t i = 0; i < request->results_count; i++)
        TRY(settle_result(batch, &request->results[i], err));
    if (request->limit == 0)
        return 0;
    if (batch->store->shared && !batch->store->verbs->leads(batch->store)) {
        request->next_at_us = look_us;
        return 0;
    }
    if (batch->store->shared)
        TRY(batch->store->verbs->lead_guard(batch->store, err));
    request->works = TRY_MEMORY(arena_alloc_array(request->base.arena, request->limit,
                                                  sizeof *request->works));
    rc = work_off(batch, request, &request->next_at_us, err);
    if (batch->store->shared && request->next_at_us > look_us)
        request->next_at_us = look_us; /* what other nodes put there; what they tell may get lost */
    return rc;
}
