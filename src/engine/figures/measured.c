/* Measures of the engine: what a batch does is noted while it is decided and counted after its
 * commit, so that rolled-back work does not count. How executions ended is also kept in the store,
 * per hour and category: the first writer writes the figures of all writers of its node every few
 * seconds, each time the whole figure of the hour, in rows of its own run. A crash loses what was
 * counted since. Whose turn it is, but for engine_measure. */
#include "engine/figures/measured.h"

#include "base/hash.h"
#include "core/task/order.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/inbox.h"
#include "engine/limits/limits.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/stores/routes_int.h"
#include "store/measure_store.h"

#include <stdlib.h>

#define FLUSH_US (5 * CLOCK_SECOND_US)

static enum measure_target target_of(const void *ctx, struct str type)
{
    const struct handler_rule *rule = settings_handler(ctx, type);

    if (rule && rule->command)
        return TARGET_PROCESS;
    return rule && rule->service.data ? TARGET_SERVICE : TARGET_WORKER;
}

/* Mostly several notes in a row are of one task. */
static void note(struct batch *batch, const struct task *task, enum measure_count what, int64_t us,
                 struct measure_category *category)
{
    struct engine *engine = batch->engine;
    struct measure_note *to;

    if (batch->measured.notes.count == batch->measured.notes.cap &&
        !BATCH_GROW(batch, batch->measured.notes))
        return; /* the arena says so, and the batch fails */
    if (batch->measured.task != task) {
        batch->measured.task = task;
        batch->measured.lane = measures_lane(engine->figures.measures, task->spec.queue,
                                             task->spec.type, target_of, engine->settings);
    }
    to = &batch->measured.notes.items[batch->measured.notes.count++];
    to->lane = batch->measured.lane;
    to->category = category;
    to->what = what;
    to->us = us;
}

void measured_count(struct batch *batch, const struct task *task, enum measure_count what)
{
    note(batch, task, what, -1, NULL);
}

/* When it became ready is in its place in the line, whatever the queue's rule where the priority
 * is 0. */
static int64_t waited_us(struct batch *batch, const struct task *task)
{
    const struct queue_state *state =
        task->priority ? limits_queue(batch->engine, task->spec.queue) : NULL;
    int64_t since_us = order_eligible_us(task->order_key, task->priority,
                                         state ? state->row.rule.priority_order : ORDER_HIGH_FIRST,
                                         state ? state->row.rule.ageing_ms : 0);

    return since_us < batch->now_us ? batch->now_us - since_us : 0;
}

/* However it came: from a worker, a person, the sweep, or a dependency that was not met. */
static void count_end(struct engine_stats *stats, enum status ended)
{
    stats->totals[TOTAL_COMPLETED] += ended == STATUS_COMPLETED;
    stats->totals[TOTAL_FAILED] += ended == STATUS_FAILED || ended == STATUS_DEAD_LETTER;
    stats->totals[TOTAL_CANCELLED] += ended == STATUS_CANCELLED;
}

void measured_move(struct batch *batch, const struct task *task, enum move move)
{
    static const enum measure_count ends[STATUS_COUNT] = {
        [STATUS_COMPLETED] = MEASURE_COMPLETED, [STATUS_FAILED] = MEASURE_FAILED,
        [STATUS_DEAD_LETTER] = MEASURE_DEAD_LETTER, [STATUS_PARTIAL] = MEASURE_PARTIAL,
        [STATUS_CANCELLED] = MEASURE_CANCELLED};

    if (move == MOVE_ENQUEUE)
        measured_count(batch, task, MEASURE_ENQUEUED);
    else if (move == MOVE_START)
        note(batch, task, MEASURE_STARTED, waited_us(batch, task), NULL);
    else if (move == MOVE_LOSE)
        measured_count(batch, task, MEASURE_LOST);
    else if (move == MOVE_GIVE_BACK)
        measured_count(batch, task, MEASURE_RELEASED);
    if (!status_ended(task->status))
        return;
    measured_count(batch, task, ends[task->status]);
    count_end(&batch->engine->figures.stats, task->status);
}

/* What stands for no category in a namespace other than `default`. */
static struct uuid no_category(struct str namespace_name)
{
    struct uuid id;
    uint64_t parts[2] = {hash_bytes64(namespace_name.data, namespace_name.len, 1),
                         hash_bytes64(namespace_name.data, namespace_name.len, 2)};

    memcpy(id.bytes, parts, sizeof id.bytes);
    return id;
}

/* Which namespace what was counted for a category belongs to. */
static struct str namespace_of_category(struct batch *batch, const struct uuid *id)
{
    const struct namespace_state *state;
    struct category_state *category = NULL;
    struct err err = {0};
    uint32_t cursor = 0;

    if (uuid_is_nil(id) || map_count(&batch->engine->limits.namespaces.by_name) <= 1)
        return STR(TASK_DEFAULT_NAMESPACE);
    while ((state = map_next(&batch->engine->limits.namespaces.by_name, &cursor)) != NULL) {
        struct uuid none = no_category(state->row.name);

        if (uuid_eq(&none, id))
            return state->row.name;
    }
    if (categories_get(batch, id, &category, &err) < 0 || !category)
        return STR(TASK_DEFAULT_NAMESPACE);
    return category->row.namespace_name;
}

void measured_execution(struct batch *batch, const struct task *task, enum execution_status status)
{
    const struct uuid *category_id = &task->spec.category_id;
    struct uuid none;

    if (uuid_is_nil(category_id) && !str_is(task->spec.namespace_name, TASK_DEFAULT_NAMESPACE)) {
        none = no_category(task->spec.namespace_name);
        category_id = &none;
    }
    if (status == EXECUTION_CANCELLED)
        return; /* given back or cancelled: neither a success nor a failure */
    note(batch, task, status == EXECUTION_COMPLETED ? MEASURE_COMPLETED : MEASURE_FAILED,
         task->lease.started_at_us ? batch->now_us - task->lease.started_at_us : -1,
         measures_category(batch->engine->figures.measures, category_id));
}

static void count_note(struct engine *engine, const struct measure_note *note)
{
    if (note->category) {
        measure_add_execution(note->category, note->what == MEASURE_COMPLETED, note->us);
        if (note->us >= 0)
            measure_add_run(engine->figures.measures, note->lane, note->us);
        return;
    }
    measure_add_count(note->lane, note->what);
    if (note->what == MEASURE_STARTED)
        measure_add_wait(note->lane, note->us);
}

void measured_committed(struct engine *engine, const struct batch *batch)
{
    bool executions = false;

    for (uint32_t i = 0; i < batch->measured.notes.count; i++) {
        count_note(engine, &batch->measured.notes.items[i]);
        executions |= batch->measured.notes.items[i].category != NULL;
    }
    if (executions)
        atomic_store_explicit(&engine->main->figures.hours.dirty, true, memory_order_relaxed);
    if (batch->measured.hours_written) {
        *engine->figures.hours.written = *engine->figures.hours.sending;
        engine->figures.hours.next_us = batch->now_us + FLUSH_US;
    }
}

void measured_enqueue(struct engine *engine, const struct request *request, int64_t committed_us)
{
    const struct enqueue_request *enqueue = (const struct enqueue_request *)request;

    if (request->kind != REQUEST_ENQUEUE || request->err.code != ERR_NONE || enqueue->count == 0)
        return;
    measure_add_commit(measures_queue(engine->figures.measures, enqueue->tasks[0]->spec.queue),
                       committed_us - request->came_us);
}

/* ---- per hour, in the store ---- */

int measured_open(struct engine *engine, struct err *err)
{
    struct hours_flush *hours = &engine->figures.hours;

    if (!engine->config.measure_names)
        engine->config.measure_names = engine->figures.own_names = measure_names_new();
    if (engine->config.measure_names)
        engine->figures.measures = measures_new(engine->config.measure_names);
    hours->before = calloc(1, sizeof *hours->before);
    hours->written = calloc(1, sizeof *hours->written);
    hours->sending = calloc(1, sizeof *hours->sending);
    TRY_MEMORY(engine->figures.measures && hours->before && hours->written && hours->sending);
    return 0;
}

void measured_close(struct engine *engine)
{
    measures_free(engine->figures.measures);
    measure_names_free(engine->figures.own_names);
    free(engine->figures.hours.before);
    free(engine->figures.hours.written);
    free(engine->figures.hours.sending);
}

static struct measured_category find(const struct measured_categories *in, const struct uuid *id)
{
    for (uint32_t i = 0; i < in->count; i++)
        if (uuid_eq(&in->categories[i].id, id))
            return in->categories[i];
    return (struct measured_category){.id = *id};
}

/* What is reported in the first seconds of an hour may have happened in the hour before. */
static uint32_t changed_hours(struct hours_flush *flush, struct execution_hour *hours)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < flush->sending->count; i++) {
        struct measured_category now = flush->sending->categories[i];
        struct measured_category told = find(flush->written, &now.id);
        struct measured_category before = find(flush->before, &now.id);

        if (now.successful == told.successful && now.failed == told.failed)
            continue;
        hours[count++] = (struct execution_hour){
            .hour_us = flush->hour_us,
            .category_id = now.id,
            .successful = now.successful - before.successful,
            .failed = now.failed - before.failed,
            .duration_ms = (now.duration_us - before.duration_us) / CLOCK_MS_US};
    }
    return count;
}

static int begin_hour(struct batch *batch, int64_t hour_us, struct err *err)
{
    struct engine *engine = batch->engine;
    bool leads = !engine->store->shared || engine->nodes.leads;

    *engine->figures.hours.before = *engine->figures.hours.written;
    engine->figures.hours.hour_us = hour_us;
    return leads ? batch->store->verbs->measures->hours_prune(
                       batch->store, hour_us - EXECUTION_HOURS_KEPT * EXECUTION_HOUR_US, err) : 0;
}

static int flush(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct hours_flush *hours = &engine->figures.hours;
    struct execution_hour rows[MEASURE_CATEGORIES_ALL];
    int64_t hour_us = batch->now_us / EXECUTION_HOUR_US * EXECUTION_HOUR_US;
    uint32_t count;

    *hours->sending = (struct measured_categories){0};
    for (uint32_t i = 0; i < atomic_load(&engine->writers.count); i++)
        measures_read_categories(engine->writers.all[i]->figures.measures, hours->sending);
    if (hour_us != hours->hour_us)
        TRY(begin_hour(batch, hour_us, err));
    count = changed_hours(hours, rows);
    for (uint32_t i = 0; i < count; i++)
        rows[i].namespace_name = namespace_of_category(batch, &rows[i].category_id);
    batch->measured.hours_written = true;
    batch->wrote |= count > 0;
    return batch->store->verbs->measures->hours_put(batch->store, str_of(engine->node_id), rows,
                                                    count, err);
}

int64_t measured_next_us(const struct engine *engine)
{
    return atomic_load_explicit(&engine->figures.hours.dirty, memory_order_relaxed)
               ? engine->figures.hours.next_us
               : INT64_MAX;
}

/* Counters that change from here on mark themselves again. */
int measured_flush(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;

    if (!is_main(engine) || measured_next_us(engine) > batch->now_us)
        return 0;
    engine->figures.hours.next_us = batch->now_us + FLUSH_US;
    if (batch->store->full)
        return 0;
    atomic_store_explicit(&engine->figures.hours.dirty, false, memory_order_relaxed);
    return flush(batch, err);
}

/* A batch with the figures in it failed: they are written with the next. */
void measured_undone(struct engine *engine)
{
    if (engine->batch.measured.hours_written)
        atomic_store_explicit(&engine->figures.hours.dirty, true, memory_order_relaxed);
}

int measured_stop(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    const struct store_verbs *verbs = engine->store->verbs;

    if (!atomic_load(&engine->figures.hours.dirty) || engine->store->full)
        return 0;
    batch_begin(batch, engine, engine_clock_us(engine));
    if (verbs->begin(engine->store, err) < 0 || flush(batch, err) < 0 ||
        verbs->commit(engine->store, err) < 0) {
        verbs->rollback(engine->store);
        batch_reset(batch);
        return -(int)err->code;
    }
    batch_reset(batch);
    return 0;
}

/* ---- for showing them ---- */

static void each(struct engine *engine, void (*read)(const struct measures *measures, void *sum),
                 void *sum)
{
    if (engine->routes) {
        for (uint32_t i = 0; i < engine->routes->count; i++)
            each(engine->routes->parts[i].engine, read, sum);
        return;
    }
    for (uint32_t i = 0; i < atomic_load(&engine->writers.count); i++)
        read(engine->writers.all[i]->figures.measures, sum);
}

static void read_queues(const struct measures *measures, void *sum)
{
    measures_read(measures, sum);
}

static void read_lanes(const struct measures *measures, void *sum)
{
    measures_read_lanes(measures, sum);
}

void engine_measure(struct engine *engine, struct measured *sum)
{
    each(engine, read_queues, sum);
}

void engine_measure_lanes(struct engine *engine, struct measured_lanes *sum)
{
    each(engine, read_lanes, sum);
}
