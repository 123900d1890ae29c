/* Retention: ended tasks older than their window are archived and removed, events, executions and
 * logs have windows of their own. A small chunk per commit, so that no request waits long. */
#include "engine/history/retention.h"

#include "base/fault.h"
#include "core/bounds.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/history/archive.h"
#include "engine/limits/queue_rules.h"
#include "engine/logs/log_ages.h"
#include "engine/logs/log_heads.h"
#include "engine/plans/categories.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"
#include "store/recovery_store.h"

#define EVERY_US (60 * CLOCK_SECOND_US)
#define AGAIN_US (20 * CLOCK_MS_US) /* between chunks, so that requests go first */
#define REMOVE_STEP 200 /* about 5 ms of one commit */
#define FIRES_KEPT_US (INT64_C(30) * 24 * 3600 * CLOCK_SECOND_US) /* nothing plans so far back */
#define PURGE_PAGE 20   /* read with their payloads, 1 MiB each at most */

static const enum status ended_statuses[] = {STATUS_COMPLETED, STATUS_FAILED, STATUS_DEAD_LETTER,
                                             STATUS_CANCELLED, STATUS_PARTIAL};

static int64_t window_ms(struct engine *engine, const struct task *task)
{
    const struct handler_rule *rule = settings_handler(engine->settings, task->spec.type);
    const struct namespace_state *within =
        map_get(&engine->limits.namespaces.by_name, task->spec.namespace_name);
    int64_t own_ms = !within                            ? NAMESPACE_AS_SETTINGS
                     : task->status == STATUS_COMPLETED ? within->row.completed_ms
                                                        : within->row.failed_ms;

    if (rule && rule->retention_ms >= 0)
        return rule->retention_ms;
    if (own_ms != NAMESPACE_AS_SETTINGS)
        return own_ms;
    return task->status == STATUS_COMPLETED ? engine->settings->retention.completed_ms
                                            : engine->settings->retention.failed_ms;
}

/* A task that depends on it has not ended. */
static int is_awaited(struct batch *batch, const struct task *task, bool *awaited, struct err *err)
{
    struct uuid after = {{0}};
    struct dependent *dependents;
    uint32_t count;

    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);

        TRY(batch->store->verbs->dependents_find(batch->store, &task->id, &after,
                                                 BOUND_DEPENDENTS_STEP, &page, &dependents, &count,
                                                 err));
        for (uint32_t i = 0; i < count && !*awaited; i++) {
            struct task *dependent;

            TRY(batch_task(batch, &dependents[i].task_id, &dependent, err));
            *awaited = dependent && !status_ended(dependent->status);
            after = dependents[i].task_id;
        }
    } while (!*awaited && count == BOUND_DEPENDENTS_STEP);
    return 0;
}

/* Another task may still need its outcome: a parent that waits, a dependent that has not run. */
static int is_needed(struct batch *batch, const struct task *task, bool *needed, struct err *err)
{
    struct task *relative = NULL;

    *needed = true;
    if (!uuid_is_nil(&task->spec.origin.parent_id))
        TRY(batch_task(batch, &task->spec.origin.parent_id, &relative, err));
    if (task->lease.held || (relative && !status_ended(relative->status)))
        return 0;
    *needed = false;
    return task_has_dependents(batch, task) ? is_awaited(batch, task, needed, err) : 0;
}

int retention_remove(struct batch *batch, struct task **tasks, uint32_t count, struct err *err)
{
    batch->wrote = true;
    for (uint32_t i = 0; i < count; i++)
        map_remove(&batch->tasks, uuid_bytes(&tasks[i]->id));
    FAULT_POINT("retention.remove");
    TRY(log_ages_refuse(batch, tasks, count, err));
    return batch->store->verbs->tasks_delete(batch->store, tasks, count, err);
}

static int archive_and_remove(struct batch *batch, struct task **tasks, int64_t *keep_ms,
                              uint32_t count, struct err *err)
{
    struct engine *engine = batch->engine;
    struct str folder = engine->settings->retention.archive;

    if (count > 0)
        TRY(log_ages_keep(batch, tasks, keep_ms, &count, err));
    if (count == 0)
        return 0;
    if (folder.data) {
        if (!engine->history.reader)
            engine->history.reader = engine->store->verbs->reader_open(engine->store, err);
        if (!engine->history.reader ||
            archive_write(engine->store, engine->history.reader, folder, tasks, count,
                          batch->wall_us, &engine->history.archive_checked, err) < 0)
            return -(int)err->code;
    }
    FAULT_POINT("retention.archived");
    engine->figures.stats.totals[TOTAL_PRUNED] += count;
    return retention_remove(batch, tasks, count, err);
}

/* The shortest window any task of the status can have; 0 = all are kept for ever. */
static int64_t shortest_window_ms(const struct engine *engine, enum status status)
{
    const struct settings *settings = engine->settings;
    const struct namespace_state *within;
    uint32_t cursor = 0;
    int64_t shortest = status == STATUS_COMPLETED ? settings->retention.completed_ms
                                                  : settings->retention.failed_ms;

    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        int64_t own = settings->handlers[i].retention_ms;

        if (own > 0 && (shortest <= 0 || own < shortest))
            shortest = own;
    }
    while ((within = map_next(&engine->limits.namespaces.by_name, &cursor)) != NULL) {
        int64_t own = status == STATUS_COMPLETED ? within->row.completed_ms
                                                 : within->row.failed_ms;

        if (own > 0 && (shortest <= 0 || own < shortest))
            shortest = own;
    }
    return shortest;
}

/* One chunk of one status, by key; tasks are looked at in the order they were made, and none made
 * after the shortest window can be due. */
static int prune_status(struct batch *batch, enum status status, bool *more, struct err *err)
{
    struct engine *engine = batch->engine;
    struct task **tasks = arena_alloc_array(&batch->arena, REMOVE_STEP, sizeof *tasks);
    struct task **due = arena_alloc_array(&batch->arena, REMOVE_STEP, sizeof *due);
    int64_t due_ms[REMOVE_STEP];
    int64_t shortest_us = shortest_window_ms(engine, status) * CLOCK_MS_US;
    uint32_t count, due_count = 0;
    bool young = false;

    if (shortest_us <= 0)
        return 0;
    TRY_MEMORY(tasks && due);
    TRY(batch->store->verbs->status_find(batch->store, status, engine->history.prune_cursor[status],
                                         REMOVE_STEP, &batch->arena, tasks, &count, err));
    for (uint32_t i = 0; i < count && !young; i++) {
        int64_t keep_ms = window_ms(engine, tasks[i]);
        bool needed;

        young = tasks[i]->spec.created_at_us + shortest_us > batch->now_us;
        if (young)
            break;
        engine->history.prune_cursor[status] = tasks[i]->key;
        if (keep_ms <= 0 ||
            tasks[i]->completed_at_us + keep_ms * CLOCK_MS_US > batch->now_us)
            continue;
        TRY(is_needed(batch, tasks[i], &needed, err));
        if (!needed) {
            due_ms[due_count] = keep_ms;
            due[due_count++] = tasks[i];
        }
    }
    if (count < REMOVE_STEP || young)
        engine->history.prune_cursor[status] = 0;
    else
        *more = true;
    return archive_and_remove(batch, due, due_ms, due_count, err);
}

static int64_t before(int64_t now_us, int64_t window)
{
    return window > 0 ? now_us - window * CLOCK_MS_US : INT64_MIN;
}

static int prune_fires(struct batch *batch, bool *more, struct err *err)
{
    uint32_t removed = 0;

    TRY(batch->store->verbs->catalog->fires_prune(batch->store, batch->wall_us - FIRES_KEPT_US,
                                                  REMOVE_STEP, &removed, err));
    batch->wrote |= removed > 0;
    *more |= removed >= REMOVE_STEP;
    return 0;
}

/* Those of tasks that are kept, too: they tell of executions, and go with them. */
static int prune_recoveries(struct batch *batch, bool *more, struct err *err)
{
    int64_t kept_ms = batch->engine->settings->retention.executions_ms;
    uint32_t removed = 0;

    if (kept_ms <= 0)
        return 0;
    TRY(batch->store->verbs->recovery->prune(batch->store, before(batch->now_us, kept_ms),
                                             REMOVE_STEP, &removed, err));
    batch->wrote |= removed > 0;
    *more |= removed >= REMOVE_STEP;
    return 0;
}

static int prune_trail(struct batch *batch, bool *more, struct err *err)
{
    int64_t kept_ms = batch->engine->settings->retention.audit_ms;
    bool again;

    if (kept_ms <= 0)
        return 0;
    TRY(trail_prune(batch, before(log_now_us(batch), kept_ms), kept_ms, &again, err));
    *more |= again;
    return 0;
}

static int remove_chunk(struct batch *batch, bool *more, struct err *err)
{
    const struct retention_rule *rule = &batch->engine->settings->retention;
    uint32_t removed = 0;

    *more = false;
    TRY(batch_flush(batch, err));
    TRY(log_ages_ready(batch, err));
    log_heads_reason(batch, CUT_RETENTION);
    for (size_t i = 0; i < sizeof ended_statuses / sizeof ended_statuses[0]; i++)
        TRY(prune_status(batch, ended_statuses[i], more, err));
    batch->store->cuts->window_ms = rule->logs_ms;
    TRY(batch->store->verbs->history_prune(batch->store, before(batch->now_us, rule->events_ms),
                                           before(batch->now_us, rule->executions_ms),
                                           before(log_now_us(batch), rule->logs_ms), REMOVE_STEP,
                                           &batch->engine->history.rows_cursor, &removed, err));
    if (removed)
        batch->wrote = true;
    *more |= batch->engine->history.rows_cursor != 0;
    TRY(log_retention_run(batch, more, err));
    TRY(prune_trail(batch, more, err));
    log_heads_reason(batch, CUT_DELETE);
    FAULT_POINT("retention.history");
    log_heads_trim(batch, before(log_now_us(batch), rule->logs_ms));
    TRY(batch->store->verbs->outbox_prune(batch->store, before(batch->now_us, rule->failed_ms),
                                          REMOVE_STEP, &removed, err));
    if (removed)
        batch->wrote = true;
    *more |= removed == REMOVE_STEP;
    TRY(prune_recoveries(batch, more, err));
    TRY(queues_remove_idle(batch, err));
    return catalog_here(batch->engine) ? prune_fires(batch, more, err) : 0;
}

int retention_run(struct batch *batch, int64_t *next_us, struct err *err)
{
    bool more;

    TRY(remove_chunk(batch, &more, err));
    *next_us = batch->now_us + (more ? AGAIN_US : EVERY_US);
    return 0;
}

/* Removes those of a page that may go; the reader shows them as they were before this batch. */
static int purge_page(struct batch *batch, const struct task *found, uint32_t count,
                      uint32_t *removed, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        TRY(batch_task(batch, &found[i].id, &task, err));
        if (!task || !status_ended(task->status) || task->lease.held)
            continue;
        TRY(batch_flush(batch, err));
        TRY(retention_remove(batch, &task, 1, err));
        ++*removed;
    }
    return 0;
}

static int purge_status(struct batch *batch, struct purge_request *request, enum status status,
                        struct err *err)
{
    struct engine *engine = batch->engine;
    struct task_filter filter = {.namespace_name = namespace_of(&request->base),
                                 .status = status,
                                 .user_id = request->user_id,
                                 .limit = PURGE_PAGE};
    uint32_t count;

    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);
        struct task *found;

        TRY(engine->store->verbs->read_tasks(engine->history.reader, &filter, &page, &found, &count,
                                             err));
        if (count > 0) {
            filter.before_key = found[count - 1].key;
            TRY(purge_page(batch, found, count, &request->removed, err));
        }
    } while (count == PURGE_PAGE && request->removed < REMOVE_STEP);
    return 0;
}

/* B8: all ended tasks of a user, a chunk per call. */
int control_purge(struct batch *batch, struct request *base)
{
    struct purge_request *request = (struct purge_request *)base;
    struct engine *engine = batch->engine;
    struct err *err = &request->base.err;

    request->removed = 0;
    if (rights_hide(base, request->user_id))
        return 0; /* as of a user without tasks */
    if (!engine->history.reader)
        engine->history.reader = engine->store->verbs->reader_open(engine->store, err);
    if (!engine->history.reader || batch_settle(batch, err) < 0)
        return -(int)err->code;
    log_heads_reason(batch, CUT_PURGE);
    for (size_t i = 0; i < sizeof ended_statuses / sizeof ended_statuses[0]; i++)
        if (request->removed < REMOVE_STEP)
            TRY(purge_status(batch, request, ended_statuses[i], err));
    log_heads_reason(batch, CUT_DELETE);
    if (request->removed == 0)
        return 0;
    return trail_note(batch, base, "task.purge", "user", request->user_id,
                      batch_text(batch, "{\"removed\":%u}", request->removed), err);
}
