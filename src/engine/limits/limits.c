/* Queues and their limits: concurrency and rate per queue, per type, per key. A task whose key is
 * at its limit is parked (limits_parked.c). */
#include "engine/limits/limits.h"

#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/task/order.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/limits/queue_rules.h"

#include <stdlib.h>

#define HELD_PAGE 2000  /* tasks counted together */

static void limits_free(struct map *map, struct heap *wakes)
{
    uint32_t cursor = 0;
    struct limit *limit;

    while ((limit = map_next(map, &cursor)) != NULL) {
        heap_remove(wakes, &limit->wake);
        free(limit);
    }
    map_deinit(map);
}

void limits_drop(struct engine *engine, struct queue_state *state)
{
    map_remove(&engine->limits.queues, state->row.rule.name);
    limits_free(&state->types, &engine->limits.wakes);
    limits_free(&state->keys, &engine->limits.wakes);
    state->next_dropped = engine->limits.dropped;
    engine->limits.dropped = state;
}

void limits_bury(struct engine *engine)
{
    struct queue_state *state;

    while ((state = engine->limits.dropped) != NULL) {
        engine->limits.dropped = state->next_dropped;
        arena_deinit(&state->arena);
        free(state);
    }
}

void limits_deinit(struct engine *engine)
{
    uint32_t cursor = 0;
    struct queue_state *state;

    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL) {
        limits_free(&state->types, &engine->limits.wakes);
        limits_free(&state->keys, &engine->limits.wakes);
        arena_deinit(&state->arena);
        free(state);
    }
    map_deinit(&engine->limits.queues);
    heap_deinit(&engine->limits.wakes);
    engine->limits.wakes = HEAP_INIT;
    limits_bury(engine);
}

struct queue_state *limits_queue(struct engine *engine, struct str name)
{
    return map_get(&engine->limits.queues, name);
}

static struct limit *limit_of(struct map *map, struct queue_state *state, struct str name)
{
    struct limit *limit = map_get(map, name);
    char *text;

    if (limit)
        return limit;
    limit = calloc(1, sizeof *limit + name.len);
    if (!limit)
        return NULL;
    text = (char *)(limit + 1);
    memcpy(text, name.data, name.len);
    limit->name = str_span(text, name.len);
    limit->wake = HEAP_NODE_INIT;
    limit->state = state;
    if (map_put(map, limit->name, limit) == 0)
        return limit;
    free(limit);
    return NULL;
}

/* Copies a row's texts so that they live with the state. */
static int copy_row(struct queue_state *state, const struct queue_row *row, struct err *err)
{
    struct arena fresh = ARENA_INIT(0);
    struct queue_row copy = *row;
    struct type_limit *types = arena_alloc_array(&fresh, row->rule.type_limits_count,
                                                 sizeof *types);

    copy.rule.name = arena_str(&fresh, row->rule.name);
    copy.rule.dead_letter_queue = arena_str(&fresh, row->rule.dead_letter_queue);
    copy.rule.store = arena_str(&fresh, row->rule.store);
    if (!types || !copy.rule.name.data) {
        arena_deinit(&fresh);
        return err_no_memory(err);
    }
    for (uint32_t i = 0; i < row->rule.type_limits_count; i++) {
        types[i] = row->rule.type_limits[i];
        types[i].type = arena_str(&fresh, types[i].type);
    }
    copy.rule.type_limits = types;
    arena_deinit(&state->arena);
    state->arena = fresh;
    state->row = copy;
    return 0;
}

bool limits_keys(const struct queue_state *state)
{
    return state->row.rule.key_concurrency > 0 || state->row.rule.key_rate.count > 0;
}

static struct queue_state *state_new(struct engine *engine, const struct queue_row *row,
                                     struct err *err)
{
    struct queue_state *state = err_calloc(sizeof *state, err);

    if (!state)
        return NULL;
    state->whole.wake = HEAP_NODE_INIT;
    state->whole.state = state;
    if (copy_row(state, row, err) < 0) {
        free(state);
        return NULL;
    }
    if (map_put(&engine->limits.queues, state->row.rule.name, state) < 0) {
        arena_deinit(&state->arena);
        free(state);
        err_no_memory(err);
        return NULL;
    }
    state->unpark_all = limits_keys(state);
    return state;
}

const struct type_limit *limits_type_rule(const struct queue_state *state, struct str type)
{
    for (uint32_t i = 0; i < state->row.rule.type_limits_count; i++)
        if (str_eq(state->row.rule.type_limits[i].type, type))
            return &state->row.rule.type_limits[i];
    return NULL;
}

static int count_held(struct engine *engine, const struct task *task, int64_t by)
{
    struct queue_state *state = limits_queue(engine, task->spec.queue);
    struct limit *limit;

    if (!state)
        return 0;
    state->whole.running += by;
    if (limits_type_rule(state, task->spec.type)) {
        limit = limit_of(&state->types, state, task->spec.type);
        if (!limit)
            return -(int)ERR_MEMORY;
        limit->running += by;
    }
    if (limits_keys(state) && task->spec.limit_key.data) {
        limit = limit_of(&state->keys, state, task->spec.limit_key);
        if (!limit)
            return -(int)ERR_MEMORY;
        limit->running += by;
    }
    return 0;
}

static void nothing_runs(struct map *limits)
{
    uint32_t cursor = 0;
    struct limit *limit;

    while ((limit = map_next(limits, &cursor)) != NULL)
        limit->running = 0;
}

/* Counts what runs again, from the store: at the start, after a failed batch, for new rules. */
int limits_count_all(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct task *tasks[HELD_PAGE];
    int64_t after = 0;
    uint32_t count = 0;
    uint32_t cursor = 0;
    struct queue_state *state;

    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL) {
        state->whole.running = 0;
        nothing_runs(&state->types); /* buckets and wake-ups stay as they are */
        nothing_runs(&state->keys);
        if (!limits_keys(state))
            limits_free(&state->keys, &engine->limits.wakes);
    }
    do {
        TRY(engine->store->verbs->held_find(engine->store, STR_NONE, after, HELD_PAGE, &arena,
                                            tasks, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            after = tasks[i]->key;
            TRY_MEMORY(count_held(engine, tasks[i], 1) == 0);
        }
        arena_reset(&arena);
    } while (count == HELD_PAGE);
    return 0;
}

/* What only the configuration knows of a queue. */
static void add_configured(const struct engine *engine, struct queue_rule *rule)
{
    rule->dead_letter_queue = rule->store = STR_NONE;
    rule->stall_after_ms = 0;
    for (uint32_t i = 0; i < engine->settings->queues_count; i++) {
        const struct queue_rule *configured = &engine->settings->queues[i];

        if (!str_eq(configured->name, rule->name))
            continue;
        rule->dead_letter_queue = configured->dead_letter_queue;
        rule->stall_after_ms = configured->stall_after_ms;
        rule->store = configured->store;
    }
}

void limits_configured(struct engine *engine)
{
    uint32_t cursor = 0;
    struct queue_state *state;

    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL)
        add_configured(engine, &state->row.rule); /* texts live as long as the queue */
}

int limits_load(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct queue_row *rows;
    uint32_t count;
    int rc = engine->store->verbs->queues_load(engine->store, &arena, &rows, &count, err);

    if (rc == 0 && arena.failed)
        rc = err_no_memory(err);
    limits_deinit(engine);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        add_configured(engine, &rows[i].rule);
        if (!state_new(engine, &rows[i], err))
            rc = -(int)err->code;
    }
    return rc < 0 || engine->store->shared ? rc : limits_count_all(engine, err);
}

int limits_replace_row(struct engine *engine, struct queue_state *state,
                       const struct queue_row *row, struct err *err)
{
    map_remove(&engine->limits.queues, state->row.rule.name); /* the name's bytes move */
    TRY_MEMORY(copy_row(state, row, err) == 0 &&
               map_put(&engine->limits.queues, state->row.rule.name, state) == 0);
    return 0;
}

static int follow_row(struct batch *batch, struct queue_row *row, struct err *err)
{
    struct engine *engine = batch->engine;
    struct queue_state *state = limits_queue(engine, row->rule.name);

    add_configured(engine, &row->rule);
    if (state)
        state->followed = engine->limits.followed;
    if (!state) {
        state = state_new(engine, row, err);
        if (state)
            state->followed = engine->limits.followed;
        batch_heat_here(batch, state); /* it came with a task, and a claim may wait for it */
        return state ? 0 : -(int)err->code;
    }
    if (state->row.updated_at_us == row->updated_at_us)
        return 0;
    TRY(limits_replace_row(engine, state, row, err));
    if (engine->nodes.leads) /* the node that changed it does the same, but may be gone */
        state->unpark_all = engine->limits.unpark_some = true;
    batch_heat_here(batch, state);
    return 0;
}

int limits_follow(struct batch *batch, struct err *err)
{
    struct queue_row *rows;
    uint32_t count;

    TRY(batch->store->verbs->queues_load(batch->store, &batch->arena, &rows, &count, err));
    batch->engine->limits.followed++;
    for (uint32_t i = 0; i < count; i++)
        TRY(follow_row(batch, &rows[i], err));
    return queues_follow_gone(batch, err);
}

int limits_follow_one(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err)
{
    struct queue_row *rows;
    uint32_t count;

    TRY(batch->store->verbs->queues_load(batch->store, &batch->arena, &rows, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(rows[i].rule.name, name))
            TRY(follow_row(batch, &rows[i], err));
    *state = limits_queue(batch->engine, name);
    return *state ? 0 : err_set(err, ERR_UNAVAILABLE, "a queue was not made; try again");
}

/* Each namespace may have as many; they are only counted one by one where all of them together are
 * so many. */
static uint32_t count_queues(const struct batch *batch, struct str name)
{
    struct map *queues = &batch->engine->limits.queues;
    struct str namespace_name = queue_name_namespace(name);
    struct queue_state *state;
    uint32_t cursor = 0, count = 0;

    while ((state = map_next(queues, &cursor)) != NULL)
        count += queue_name_in(state->row.rule.name, namespace_name);
    return count;
}

int limits_queue_room(const struct batch *batch, struct str name, uint32_t more, struct err *err)
{
    uint32_t count = map_count(&batch->engine->limits.queues);

    if (count + more > BOUND_QUEUES)
        count = count_queues(batch, name);
    if (count + more <= BOUND_QUEUES)
        return 0;
    return err_set_field(err, ERR_INVALID, "queue",
                         "there are %u queues already, and at most %d are allowed; use one of "
                         "them, with limit_key for finer parts", count, BOUND_QUEUES);
}

int limits_queue_make(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err)
{
    struct queue_row row = {.rule = {.name = name},
                            .created_at_us = batch->now_us,
                            .updated_at_us = batch->now_us};

    *state = limits_queue(batch->engine, name);
    if (*state)
        return 0;
    TRY(limits_queue_room(batch, name, 1, err));
    batch->wrote = true;
    add_configured(batch->engine, &row.rule);
    if (batch->store->shared)
        return batch->store->verbs->queue_make(batch->store, &row, err) < 0
                   ? -(int)err->code : limits_follow_one(batch, name, state, err);
    TRY(batch->store->verbs->queue_put(batch->store, &row, err));
    *state = state_new(batch->engine, &row, err);
    return *state ? 0 : -(int)err->code;
}

void limits_retry_at(struct engine *engine, int64_t when_us)
{
    chore_soon(engine, CHORE_RATES, when_us);
}

struct limit *limits_type(struct queue_state *state, struct str type)
{
    return limit_of(&state->types, state, type);
}

bool limits_open(struct batch *batch, struct queue_state *state)
{
    const struct queue_rule *rule = &state->row.rule;
    int64_t when_us;

    if (batch->failed.code != ERR_NONE || limits_look(batch, state, &batch->failed) < 0)
        return false;

    if (state->row.paused_at_us != 0)
        return false;
    if (rule->concurrency > 0 && state->whole.running >= rule->concurrency)
        return false;
    when_us = bucket_next_us(&state->whole.bucket, &rule->rate, batch->now_us);
    if (when_us <= batch->now_us)
        return true;
    limits_retry_at(batch->engine, when_us);
    return false;
}

/* Wakes the key's parked tasks then, or earlier if that was planned. */
int limits_wake_at(struct engine *engine, struct limit *limit, int64_t when_us)
{
    if (heap_contains(&limit->wake)) {
        if (when_us < limit->wake.key)
            heap_update(&engine->limits.wakes, &limit->wake, when_us);
    } else {
        limit->wake.key = when_us;
        if (heap_push(&engine->limits.wakes, &limit->wake) < 0)
            return -(int)ERR_MEMORY;
    }
    limits_retry_at(engine, limit->wake.key);
    return 0;
}

/* The key's limits, last because they park. Takes the key's token. */
static enum admit admit_key(struct batch *batch, struct queue_state *state, struct str key)
{
    const struct queue_rule *rule = &state->row.rule;
    struct limit *limit = limit_of(&state->keys, state, key);

    if (!limit || limits_look_key(batch, limit, &batch->failed) < 0)
        return ADMIT_STOP_QUEUE;
    if (rule->key_concurrency > 0 && limit->running >= rule->key_concurrency)
        return ADMIT_PARK;
    if (!bucket_take(&limit->bucket, &rule->key_rate, batch->now_us)) {
        int64_t when_us = bucket_next_us(&limit->bucket, &rule->key_rate, batch->now_us);

        return limits_wake_at(batch->engine, limit, when_us) < 0 ? ADMIT_STOP_QUEUE : ADMIT_PARK;
    }
    limit->running++;
    return ADMIT_TAKE;
}

enum admit limits_admit(void *ctx, struct str queue, struct str type, struct str limit_key,
                        const struct uuid *category_id)
{
    struct batch *batch = ctx;
    struct queue_state *state = limits_queue(batch->engine, queue);
    const struct type_limit *typed = state ? limits_type_rule(state, type) : NULL;
    struct limit *limit = typed ? limit_of(&state->types, state, type) : NULL;
    int64_t now_us = batch->now_us;

    (void)category_id;
    if (!state || (typed && !limit))
        return ADMIT_STOP_QUEUE;
    if (state->row.rule.concurrency > 0 && state->whole.running >= state->row.rule.concurrency)
        return ADMIT_STOP_QUEUE;
    if (typed && typed->concurrency > 0 && limit->running >= typed->concurrency)
        return ADMIT_SKIP_TYPE;
    if (!bucket_take(&state->whole.bucket, &state->row.rule.rate, now_us)) {
        limits_retry_at(batch->engine,
                 bucket_next_us(&state->whole.bucket, &state->row.rule.rate, now_us));
        return ADMIT_STOP_QUEUE;
    }
    if (typed && !bucket_take(&limit->bucket, &typed->rate, now_us)) {
        bucket_give_back(&state->whole.bucket, &state->row.rule.rate);
        limits_retry_at(batch->engine, bucket_next_us(&limit->bucket, &typed->rate, now_us));
        return ADMIT_SKIP_TYPE;
    }
    if (limits_keys(state) && limit_key.data) {
        enum admit answer = admit_key(batch, state, limit_key);

        if (answer != ADMIT_TAKE) {
            bucket_give_back(&state->whole.bucket, &state->row.rule.rate);
            if (typed)
                bucket_give_back(&limit->bucket, &typed->rate);
            return answer;
        }
    }
    state->whole.running++;
    if (limit)
        limit->running++;
    return ADMIT_TAKE;
}

void limits_take_back(struct batch *batch, const struct task *task)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);
    const struct type_limit *typed = state ? limits_type_rule(state, task->spec.type) : NULL;
    struct limit *limit;

    if (!state)
        return;
    state->whole.running--;
    bucket_give_back(&state->whole.bucket, &state->row.rule.rate);
    limit = typed ? map_get(&state->types, task->spec.type) : NULL;
    if (limit) {
        limit->running--;
        bucket_give_back(&limit->bucket, &typed->rate);
    }
    limit = limits_keys(state) && task->spec.limit_key.data
                ? map_get(&state->keys, task->spec.limit_key) : NULL;
    if (limit) {
        limit->running--;
        bucket_give_back(&limit->bucket, &state->row.rule.key_rate);
    }
}

/* Slots taken were counted when they were admitted. */
void limits_note(struct batch *batch, const struct task *task, int64_t by)
{
    struct queue_state *state = limits_queue(batch->engine, task->spec.queue);

    if (by > 0 || !state)
        return;
    if (!batch->store->shared) /* else the database counts */
        count_held(batch->engine, task, by);
    if (!limits_keys(state) || !task->spec.limit_key.data ||
        !BATCH_GROW(batch, batch->limits.freed))
        return;
    batch->limits.freed.items[batch->limits.freed.count++] =
        (struct freed_key){state, task->spec.limit_key};
}

int64_t limits_order_key(struct engine *engine, const struct task *task, int64_t eligible_us)
{
    struct queue_state *state = limits_queue(engine, task->spec.queue);

    return order_key(task->priority, eligible_us,
                     state ? state->row.rule.priority_order : ORDER_HIGH_FIRST,
                     state ? state->row.rule.ageing_ms : 0);
}

int64_t limits_eligible_us(struct engine *engine, const struct task *task)
{
    struct queue_state *state = limits_queue(engine, task->spec.queue);

    return order_eligible_us(task->order_key, task->priority,
                             state ? state->row.rule.priority_order : ORDER_HIGH_FIRST,
                             state ? state->row.rule.ageing_ms : 0);
}

int limits_retry(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct queue_state *state;
    uint32_t cursor = 0;

    (void)err;
    *next_us = INT64_MAX;
    while ((state = map_next(&batch->engine->limits.queues, &cursor)) != NULL)
        batch_heat_here(batch, state);
    return 0;
}
