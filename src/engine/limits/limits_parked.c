/* Parked tasks: a task whose key is at its limit leaves the ready line until a slot or a token of
 * its key is free, so that no claim ever walks over it twice. Here they come back. Belongs to the
 * thread that has the turn (inbox.c). */
#include "engine/limits/limits.h"

#include "engine/batch.h"
#include "engine/engine_state.h"

#include <stdlib.h>

#define UNPARK_STEP 100 /* tasks of one key brought back at a time where only a rate limits it */

/* Nothing of the key runs or waits. Its bucket is kept until it would be full again, so that keys
 * without end take memory only while they are in use. */
static int forget_key(struct batch *batch, struct queue_state *state, struct limit *limit,
                      struct err *err)
{
    int64_t full_us = bucket_full_us(&limit->bucket, &state->row.rule.key_rate);

    if (full_us > batch->now_us)
        return limits_wake_at(batch->engine, limit, full_us) < 0 ? err_no_memory(err) : 0;
    if (batch->store->shared && limit->seen_in == batch->number)
        return 0; /* its bucket is still to be written; the next look forgets it */
    heap_remove(&batch->engine->limits.wakes, &limit->wake);
    map_remove(&state->keys, limit->name);
    free(limit);
    return 0;
}

static int unpark_key(struct batch *batch, struct queue_state *state, struct str key,
                      struct err *err)
{
    const struct queue_rule *rule = &state->row.rule;
    struct limit *limit = map_get(&state->keys, key);
    int64_t slots = UNPARK_STEP, running = 0;
    struct uuid *ids;
    uint32_t count;

    /* With the queue's row held: another node that is just parking a task of the key because of
     * what this batch lets go either sees it go or is seen. */
    if (limits_look(batch, state, err) < 0 || (limit && limits_look_key(batch, limit, err) < 0))
        return -(int)err->code;
    if (limit)
        running = limit->running;
    else if (rule->key_concurrency > 1 && batch->store->shared &&
             batch->store->verbs->key_held(batch->store, rule->name, key, &running, err) < 0)
        return -(int)err->code;
    if (rule->key_concurrency > 0)
        slots = rule->key_concurrency - running;
    if (slots <= 0)
        return 0;
    if (slots > UNPARK_STEP)
        slots = UNPARK_STEP;
    TRY(batch->store->verbs->parked_find(batch->store, rule->name, key, (uint32_t)slots,
                                         &batch->arena, &ids, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        struct task *task;

        TRY(batch_task(batch, &ids[i], &task, err));
        if (!task || !task->parked)
            continue;
        task->parked = false; /* nothing a user can see: the version stays */
        TRY(batch_owe(batch, task, err));
    }
    if (count > 0) {
        batch_heat(batch, state);
        return 0;
    }
    return limit && limit->running == 0 ? forget_key(batch, state, limit, err) : 0;
}

/* After the start or new rules: every key of the queue gets its chance once. */
static int unpark_queue(struct batch *batch, struct queue_state *state, struct err *err)
{
    struct str prefix = batch_text(batch, STR_FMT "\x1f", STR_ARG(state->row.rule.name));
    struct str after = prefix;
    struct str *keys;
    uint32_t count;
    bool any = false, others = false;

    do {
        TRY(batch->store->verbs->parked_keys(batch->store, after, 100, &batch->arena, &keys, &count,
                                             err));
        for (uint32_t i = 0; i < count; i++) {
            others = !str_starts(keys[i], prefix); /* of the queues behind it */
            if (others)
                break;
            any = true;
            after = keys[i];
            TRY(unpark_key(batch, state,
                           str_span(keys[i].data + prefix.len, keys[i].len - prefix.len), err));
        }
    } while (count == 100 && !others);
    state->unpark_all = any && !limits_keys(state); /* a step per key: more may be left */
    return 0;
}

int limits_unpark(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct heap_node *node;
    uint32_t cursor = 0;
    struct queue_state *state;

    for (uint32_t i = 0; i < batch->limits.freed.count; i++)
        TRY(unpark_key(batch, batch->limits.freed.items[i].state, batch->limits.freed.items[i].key,
                       err));
    batch->limits.freed.count = 0;
    while ((node = heap_peek(&engine->limits.wakes)) != NULL && node->key <= batch->now_us) {
        struct limit *limit = HEAP_ENTRY(node, struct limit, wake);

        heap_remove(&engine->limits.wakes, node);
        TRY(unpark_key(batch, limit->state, arena_str(&batch->arena, limit->name), err));
    }
    if (node)
        limits_retry_at(engine, node->key);
    if (!engine->limits.unpark_some || !is_main(engine)) /* one writer of the node is enough */
        return 0;
    engine->limits.unpark_some = false;
    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL) {
        if (!state->unpark_all)
            continue;
        TRY(batch_flush(batch, err));
        TRY(unpark_queue(batch, state, err));
        engine->limits.unpark_some |= state->unpark_all;
        if (state->unpark_all)
            limits_retry_at(engine, batch->now_us + CLOCK_MS_US);
    }
    return 0;
}
