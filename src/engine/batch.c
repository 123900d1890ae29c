/* One transaction under way. Tasks are loaded once, changed in memory as the requests of the batch
 * say, and written once when it is flushed: a task that is started and completed in one batch costs
 * one update. */
#include "core/service/service_url.h"
#include "engine/batch.h"

#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/figures/measured.h"
#include "engine/figures/spans.h"
#include "engine/inbox.h"
#include "engine/intake/intake.h"
#include "engine/limits/limits.h"
#include "engine/logs/log_heads.h"
#include "engine/plans/runs.h"
#include "store/recovery_store.h"

#include <stdarg.h>
#include <stdio.h>

#define CLOCKS_DIFFER_US_MAX CLOCK_SECOND_US /* else one of them is wrong, and is not followed */

void batch_begin(struct batch *batch, struct engine *engine, int64_t now_us)
{
    const struct settings *configured = atomic_load(&engine->configured);

    batch->engine = engine;
    batch->store = engine->store;
    if (engine->settings != configured) {
        engine->settings = configured;
        limits_configured(engine);
    }
    batch->now_us = now_us;
    batch->wall_us =
        engine->store->shared ? now_us : clock_wall_us(); /* one clock for all (F-C3) */
    batch->number++;
    log_heads_begin(batch);
}

void batch_catch_up(struct batch *batch, int64_t other_us)
{
    struct engine *engine = batch->engine;
    int64_t now_us = engine_clock_us(engine);

    if (other_us > now_us && other_us - now_us < CLOCKS_DIFFER_US_MAX)
        now_us = engine->last_now_us = other_us;
    if (now_us > batch->now_us)
        batch->now_us = batch->wall_us = now_us;
}

void batch_reset(struct batch *batch)
{
    struct arena arena = batch->arena;
    struct map tasks = batch->tasks;
    struct map jobs = batch->plans.jobs;
    struct engine *engine = batch->engine;
    uint64_t number = batch->number;

    for (struct queue_state *state = batch->limits.hot; state; state = state->next_hot)
        state->hot = state->has_older = false;
    for (struct queue_state *state = batch->news.heated; state; state = state->next_heated)
        state->heated = false;
    map_deinit(&tasks);
    map_deinit(&jobs);
    map_deinit(&batch->logs.checked.by_id);
    map_deinit(&batch->logs.checked.bases);
    arena_reset(&arena);
    *batch = (struct batch){.engine = engine,
                            .store = engine->store,
                            .arena = arena,
                            .tasks = tasks,
                            .plans.jobs = jobs,
                            .number = number};
}

void batch_deinit(struct batch *batch)
{
    map_deinit(&batch->tasks);
    map_deinit(&batch->plans.jobs);
    map_deinit(&batch->logs.checked.by_id);
    map_deinit(&batch->logs.checked.bases);
    arena_deinit(&batch->arena);
}

bool batch_grow(struct batch *batch, void *items, uint32_t *cap, uint32_t count, size_t item_bytes)
{
    uint32_t grown = *cap ? *cap * 2 : 32;
    void *old;
    void *fresh;

    if (count < *cap)
        return true;
    fresh = arena_alloc_array(&batch->arena, grown, item_bytes);
    if (!fresh)
        return false;
    memcpy(&old, items, sizeof old);
    if (count)
        memcpy(fresh, old, count * item_bytes);
    memcpy(items, &fresh, sizeof fresh);
    *cap = grown;
    return true;
}

int batch_adopt(struct batch *batch, struct task *task, struct err *err)
{
    if (map_put(&batch->tasks, uuid_bytes(&task->id), task) < 0)
        return err_no_memory(err);
    return task->lease.outcome_token < 0 ? intake_settle(batch, task, err) : 0;
}

int batch_task(struct batch *batch, const struct uuid *id, struct task **task, struct err *err)
{
    *task = map_get(&batch->tasks, uuid_bytes(id));
    if (*task)
        return 0;
    TRY(batch->store->verbs->tasks_load(batch->store, id, 1, LOAD_SPEC, &batch->arena, task, err));
    if (!*task && batch->store->intake)
        return intake_find(batch, id, task, err);
    return *task ? batch_adopt(batch, *task, err) : 0;
}

int batch_recall(struct batch *batch, const struct uuid *ids, const int64_t *lease_tokens,
                 uint32_t count, struct err *err)
{
    struct task **tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *tasks));

    TRY(batch->store->verbs->held_recall(batch->store, ids, lease_tokens, count, &batch->arena,
                                         tasks, err));
    for (uint32_t i = 0; i < count; i++)
        if (tasks[i] && !map_get(&batch->tasks, uuid_bytes(&tasks[i]->id)))
            TRY(batch_adopt(batch, tasks[i], err));
    return 0;
}

int batch_prefetch(struct batch *batch, const struct uuid *ids, uint32_t count, struct err *err)
{
    struct uuid *missing;
    struct task **tasks;
    uint32_t missing_count = 0;

    if (!batch->store->shared || count < 2)
        return 0;
    missing = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *missing));
    tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *tasks));
    for (uint32_t i = 0; i < count; i++)
        if (!map_get(&batch->tasks, uuid_bytes(&ids[i])))
            missing[missing_count++] = ids[i];
    if (missing_count == 0)
        return 0;
    TRY(batch->store->verbs->tasks_load(batch->store, missing, missing_count, LOAD_SPEC,
                                        &batch->arena, tasks, err));
    for (uint32_t i = 0; i < missing_count; i++)
        if (tasks[i] && !map_get(&batch->tasks, uuid_bytes(&tasks[i]->id)))
            TRY(batch_adopt(batch, tasks[i], err));
    return 0;
}

int batch_owe(struct batch *batch, struct task *task, struct err *err)
{
    if (task->mark != TASK_CLEAN)
        return 0;
    TRY_MEMORY(BATCH_GROW(batch, batch->owed));
    task->mark = TASK_DIRTY;
    batch->owed.items[batch->owed.count++] = task;
    return 0;
}

static int note(struct batch *batch, const struct task *task, struct err *err)
{
    if (!batch->engine->config.on_notes)
        return 0;
    TRY_MEMORY(BATCH_GROW(batch, batch->notes));
    batch->notes.items[batch->notes.count++] = (struct task_note){
        task->id, task->status, task->spec.queue, task->spec.type, task->progress, task->version,
        task->spec.user_id};
    return 0;
}

int batch_touch(struct batch *batch, struct task *task, struct err *err)
{
    task->version++;
    task->updated_at_us = batch->now_us;
    return batch_owe(batch, task, err) < 0 ? -(int)err->code : note(batch, task, err);
}

int batch_add(struct batch *batch, struct task *task, struct err *err)
{
    task->mark = TASK_FRESH;
    TRY_MEMORY(BATCH_GROW(batch, batch->owed));
    batch->owed.items[batch->owed.count++] = task;
    return batch_adopt(batch, task, err);
}

/* Only what a caller asked for is by that caller; what follows from it is not. */
static struct str principal_of(const struct batch *batch, enum actor actor)
{
    if (actor == ACTOR_ACCESS)
        return STR(EVENT_BY_ACCESS);
    return actor == ACTOR_API || actor == ACTOR_USER ? batch->audit.asker : STR_NONE;
}

int batch_event(struct batch *batch, struct task *task, enum actor actor, struct str detail,
                struct err *err)
{
    TRY_MEMORY(BATCH_GROW(batch, batch->events));
    batch->events.items[batch->events.count++] =
        (struct task_event){.id = uuid7_new(&batch->engine->ids, batch->now_us),
                            .task_key = task->key,
                            .seq = ++task->event_seq,
                            .status = task->status,
                            .state = task->state,
                            .detail = detail,
                            .actor = actor == ACTOR_ACCESS ? ACTOR_LEADER : actor,
                            .principal = principal_of(batch, actor),
                            .created_at_us = batch->now_us};
    return 0;
}

static void make_hot(struct batch *batch, struct queue_state *state)
{
    if (!state || state->hot)
        return;
    state->hot = true;
    state->next_hot = batch->limits.hot;
    batch->limits.hot = state;
}

void batch_heat_here(struct batch *batch, struct queue_state *state)
{
    make_hot(batch, state);
    if (state)
        state->has_older = true;
}

/* It got a task that was not ready before. */
static void heat_new(struct batch *batch, struct queue_state *state)
{
    make_hot(batch, state);
    if (!batch->store->shared || !state || state->heated)
        return;
    state->heated = true;
    state->next_heated = batch->news.heated;
    batch->news.heated = state;
}

void batch_heat(struct batch *batch, struct queue_state *state)
{
    heat_new(batch, state);
    batch_heat_here(batch, state);
}

void batch_heat_freed(struct batch *batch, const struct task *task)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);

    if (state && limits_any(state))
        batch_heat(batch, state);
}

/* The execution that completes tells of it, as it does of the claim and of the start. */
static int tell_end(struct batch *batch, struct task *task, struct err *err)
{
    struct execution *execution = batch_execution(batch, task, err);

    if (!execution)
        return -(int)err->code;
    execution->end_seq = ++task->event_seq;
    return 0;
}

int batch_move(struct batch *batch, struct task *task, enum status to, enum move move,
               const char *state, enum actor actor, struct str detail, struct err *err)
{
    bool was_open = task->status != STATUS_NONE && !status_ended(task->status);

    ASSERT(status_allows(task->status, to, move));
    if (was_open == status_ended(to))
        TRY(token_tasks_note(batch, task->spec.origin.principal, was_open ? -1 : 1, err));
    task->previous_status = task->status;
    task->status = to;
    task->state = str_of(state);
    if (to != STATUS_PENDING)
        task->parked = false;
    if (to == STATUS_PENDING) {
        task->order_key = limits_order_key(batch->engine, task, batch->now_us);
        heat_new(batch, limits_queue(batch->engine, task->spec.queue));
        if (str_starts(task->spec.type, STR(SERVICE_TYPE_PREFIX)))
            atomic_store(&batch->engine->main->leases.calls_wait, true);
    }
    batch->news.delayed |= to == STATUS_DELAYED;
    if (to == STATUS_DELAYED)
        chore_soon(batch->engine, CHORE_DUE, batch->now_us); /* checked again after this batch */
    if (status_ended(to)) {
        task->completed_at_us = batch->now_us;
        TRY_MEMORY(BATCH_GROW(batch, batch->ended));
        batch->ended.items[batch->ended.count++] = task;
        batch->plans.runs_ended |= !uuid_is_nil(&task->spec.origin.job_id);
    }
    measured_move(batch, task, move);
    TRY(batch_touch(batch, task, err));
    if (move == MOVE_CLAIM || move == MOVE_START) /* told by the execution */
        return 0;
    if (move == MOVE_ENQUEUE && task->opening_told) { /* told by the task */
        task->event_seq = 1;
        return 0;
    }
    if (to == STATUS_COMPLETED && task->lease.execution_key)
        return tell_end(batch, task, err);
    return batch_event(batch, task, actor, detail, err);
}

int batch_log(struct batch *batch, const struct log_entry *entry, struct err *err)
{
    TRY_MEMORY(BATCH_GROW(batch, batch->logs.lines));
    batch->logs.lines.items[batch->logs.lines.count++] = *entry;
    return 0;
}

int batch_execution_new(struct batch *batch, struct task *task,
                        const struct execution *execution, struct err *err)
{
    TRY_MEMORY(BATCH_GROW(batch, batch->executions));
    batch->executions.items[batch->executions.count++] = *execution;
    task->execution_slot = (int32_t)batch->executions.count;
    return 0;
}

struct execution *batch_execution(struct batch *batch, struct task *task, struct err *err)
{
    struct execution *execution;

    if (task->execution_slot > 0)
        return &batch->executions.items[task->execution_slot - 1];
    if (task->execution_slot < 0)
        return &batch->changed.items[-task->execution_slot - 1];
    if (!BATCH_GROW(batch, batch->changed)) {
        err_no_memory(err);
        return NULL;
    }
    if (batch_owe(batch, task, err) < 0) /* the slot is given up when the task is written */
        return NULL;
    execution = &batch->changed.items[batch->changed.count++];
    task->execution_slot = -(int32_t)batch->changed.count;
    *execution = (struct execution){.key = task->lease.execution_key,
                                    .id = task->lease.execution_id,
                                    .task_key = task->key,
                                    .status = task->lease.started_at_us ? EXECUTION_RUNNING
                                                                        : EXECUTION_PENDING,
                                    .started_at_us = task->lease.started_at_us};
    return execution;
}

int batch_tell_attempt(struct batch *batch, struct task *task, enum callback_event event,
                       struct err *err)
{
    if (!task->spec.callback.url.data || !callback_events_have(task->spec.callback.events, event))
        return 0;
    TRY_MEMORY(BATCH_GROW(batch, batch->ends.told));
    batch->ends.told.items[batch->ends.told.count++] =
        (struct told_attempt){task, event, task->counts.attempts};
    return 0;
}

int batch_execution_end(struct batch *batch, struct task *task, enum execution_status status,
                        struct str result, struct str error_data, struct err *err)
{
    struct execution *execution;

    if (task->lease.execution_key == 0)
        return 0;
    execution = batch_execution(batch, task, err);
    if (!execution)
        return -(int)err->code;
    execution->status = status;
    if (status == EXECUTION_COMPLETED)
        execution->completed_at_us = batch->now_us;
    else
        execution->failed_at_us = batch->now_us;
    if (task->lease.started_at_us)
        execution->duration_ms = (batch->now_us - task->lease.started_at_us) / CLOCK_MS_US;
    execution->result_data = result;
    execution->error_data = error_data;
    measured_execution(batch, task, status);
    spans_ended(batch, task, status);
    if (status == EXECUTION_FAILED)
        return batch_tell_attempt(batch, task, CALLBACK_FAILED, err);
    if (status == EXECUTION_TIMEOUT)
        return batch_tell_attempt(batch, task, CALLBACK_TIMEOUT, err);
    return 0;
}

struct str batch_text(struct batch *batch, const char *format, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0)
        return STR_NONE;
    return arena_str(&batch->arena,
                     str_span(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1));
}

/* New ones to the front, each kind in its order; how many there are. */
static uint32_t put_fresh_first(struct batch *batch, struct task **sorted)
{
    uint32_t fresh = 0, at = 0;

    for (uint32_t i = 0; i < batch->owed.count; i++)
        if (batch->owed.items[i]->mark == TASK_FRESH)
            sorted[fresh++] = batch->owed.items[i];
    at = fresh;
    for (uint32_t i = 0; i < batch->owed.count; i++)
        if (batch->owed.items[i]->mark != TASK_FRESH)
            sorted[at++] = batch->owed.items[i];
    return fresh;
}

/* It is in the line now: what comes later in this batch must not overtake it. */
static void note_written(struct batch *batch, const struct task *task)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);

    if (state && state->hot)
        state->has_older = true;
}

static int write_tasks(struct batch *batch, struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    uint32_t count = batch->owed.count, fresh;
    struct task **tasks;
    int8_t *by;

    if (count == 0)
        return 0;
    tasks = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *tasks));
    by = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *by));
    fresh = put_fresh_first(batch, tasks);
    for (uint32_t i = 0; i < count; i++)
        by[i] = (int8_t)((int)tasks[i]->lease.held - (int)tasks[i]->row.held);
    if (fresh > 0)
        TRY(verbs->tasks_insert(batch->store, tasks, fresh, err));
    if (count > fresh)
        TRY(verbs->tasks_save(batch->store, tasks + fresh, count - fresh, err));
    for (uint32_t i = 0; i < count; i++) {
        tasks[i]->mark = TASK_CLEAN;
        tasks[i]->execution_slot = 0;
        if (by[i] != 0)
            limits_note(batch, tasks[i], by[i]);
        if (tasks[i]->status == STATUS_PENDING)
            note_written(batch, tasks[i]);
    }
    batch->owed.count = 0;
    return 0;
}

int batch_flush(struct batch *batch, struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    struct store *store = batch->store;

    if (batch->arena.failed) /* what is owed may lack a part */
        return err_no_memory(err);
    if (batch->owed.count || batch->events.count || batch->executions.count ||
        batch->changed.count || batch->logs.lines.count)
        batch->wrote = true;
    TRY(write_tasks(batch, err));
    if (batch->events.count)
        TRY(verbs->events_insert(store, batch->events.items, batch->events.count, err));
    if (batch->executions.count)
        TRY(verbs->executions_insert(store, batch->executions.items, batch->executions.count, err));
    if (batch->changed.count)
        TRY(verbs->executions_save(store, batch->changed.items, batch->changed.count, err));
    if (batch->logs.lines.count) {
        TRY(log_heads_ready(batch, err));
        TRY(verbs->logs_insert(store, batch->logs.lines.items, batch->logs.lines.count, err));
        log_heads_note(batch);
    }
    if (batch->recoveries.made.count)
        TRY(verbs->recovery->put(store, batch->recoveries.made.items, batch->recoveries.made.count,
                                 err));
    batch->wrote |= batch->recoveries.made.count > 0;
    batch->recoveries.made.count = 0;
    if (batch->plans.runs.count || batch->plans.jobs_ended)
        TRY(jobs_flush(batch, err));
    batch->events.count = batch->executions.count = batch->changed.count = batch->logs.lines.count =
        0;
    return 0;
}
