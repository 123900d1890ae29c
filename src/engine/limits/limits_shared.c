/* Limits on a store with several nodes: the database counts what runs, and a node that takes tasks
 * of a queue with limits holds the queue's row meanwhile, so that two nodes never admit the same
 * last slot. Queues without limits know nothing of this. What is read holds for one batch. */
#include "core/bounds.h"
#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"

#include <stdlib.h>

#define NAME_BYTES_MAX (2 * BOUND_NAME_BYTES + BOUND_KEY_BYTES + 4) /* without a namespace */

bool limits_any(const struct queue_state *state)
{
    const struct queue_rule *rule = &state->row.rule;

    return rule->concurrency > 0 || rule->rate.count > 0 || rule->key_concurrency > 0 ||
           rule->key_rate.count > 0 || rule->type_limits_count > 0;
}

/* "queue", "queue / type", "queue / key" under one roof; the kind keeps them apart. */
static struct str bucket_name(const struct limit *limit, char kind, char *out)
{
    struct str queue = queue_name_plain(limit->state->row.rule.name);
    size_t len = queue.len;

    memcpy(out, queue.data, len);
    out[len++] = '\x1f';
    out[len++] = kind;
    if (limit->name.len)
        memcpy(out + len, limit->name.data, limit->name.len);
    return str_span(out, len + limit->name.len);
}

/* Takes what the last one took as past: tasks start in the order in which the row was held. */
static int load_bucket(struct batch *batch, struct limit *limit, const struct rate_rule *rate,
                       char kind, struct err *err)
{
    char name[NAME_BYTES_MAX];

    limit->kind = kind;
    limit->seen_in = batch->number;
    limit->next_used = batch->limits.buckets; /* written before the commit */
    batch->limits.buckets = limit;
    limit->rated = rate->count > 0;
    if (!limit->rated)
        return 0;
    TRY(batch->store->verbs->bucket_load(batch->store,
                                         queue_name_namespace(limit->state->row.rule.name),
                                         bucket_name(limit, kind, name), &limit->bucket, err));
    batch_catch_up(batch, limit->bucket.updated_us);
    return 0;
}

static int64_t held_of(const struct held_count *counts, uint32_t count, struct str type)
{
    int64_t held = 0;

    for (uint32_t i = 0; i < count; i++)
        if (!type.data || str_eq(counts[i].type, type))
            held += counts[i].held;
    return held;
}

static void want(const struct batch *batch, struct queue_state *state)
{
    if (state && limits_any(state))
        state->wanted_in = batch->number;
}

static void want_asked(const struct batch *batch, const struct claim_request *claim)
{
    const struct worker_state *worker = workers_get(batch->engine, claim->worker_id);
    const struct str *asked = claim->queues_count ? claim->queues : worker ? worker->queues : NULL;
    uint32_t count = claim->queues_count ? claim->queues_count : worker ? worker->queues_count : 0;

    for (uint32_t i = 0; i < count; i++)
        want(batch, limits_queue(batch->engine, asked[i]));
}

/* The queues whose figures this batch may need. */
static void want_all(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct heap_node *next = heap_peek(&engine->limits.wakes);
    struct queue_state *state;
    uint32_t cursor = 0;

    for (uint32_t i = 0; i < batch->limits.freed.count; i++)
        want(batch, batch->limits.freed.items[i].state);
    for (state = batch->limits.hot; state; state = state->next_hot)
        want(batch, state);
    for (const struct request *at = batch->list; at; at = at->next)
        if (at->kind == REQUEST_CLAIM && !at->waiting)
            want_asked(batch, (const struct claim_request *)at);
    while (((next && next->key <= batch->now_us) || engine->limits.unpark_some) &&
           (state = map_next(&engine->limits.queues, &cursor)) != NULL)
        want(batch, state); /* rare: any of them */
}

/* A writer that needs several rows takes them all at once, in the order of their names: otherwise
 * one that frees slots and one that takes them would wait for each other. */
static int hold_in_order(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    struct str *names =
        arena_alloc_array(&batch->arena, map_count(&engine->limits.queues) + 1, sizeof *names);
    struct queue_state *state;
    uint32_t cursor = 0, count = 0;

    TRY_MEMORY(names);
    batch->limits.held = true;
    want_all(batch);
    while ((state = map_next(&engine->limits.queues, &cursor)) != NULL)
        if (state->wanted_in == batch->number)
            names[count++] = state->row.rule.name;
    if (count < 2)
        return 0;
    return batch->store->verbs->limits_hold(batch->store, names, count, err);
}

/* The queue's row is held from here to the end of the transaction. */
int limits_look(struct batch *batch, struct queue_state *state, struct err *err)
{
    const struct queue_rule *rule = &state->row.rule;
    struct held_count *counts;
    uint32_t count;

    if (!batch->store->shared || state->whole.seen_in == batch->number || !limits_any(state))
        return 0;
    if (batch_flush(batch, err) < 0 || (!batch->limits.held && hold_in_order(batch, err) < 0) ||
        batch->store->verbs->limits_lock(batch->store, rule->name, &batch->arena, &counts, &count,
                                         err) < 0)
        return -(int)err->code;
    batch_catch_up(batch, 0); /* it may have waited for the row */
    state->whole.running = held_of(counts, count, STR_NONE);
    TRY(load_bucket(batch, &state->whole, &rule->rate, 'q', err));
    for (uint32_t i = 0; i < rule->type_limits_count; i++) {
        struct limit *limit = TRY_MEMORY(limits_type(state, rule->type_limits[i].type));

        limit->running = held_of(counts, count, rule->type_limits[i].type);
        TRY(load_bucket(batch, limit, &rule->type_limits[i].rate, 't', err));
    }
    return 0;
}

int limits_look_key(struct batch *batch, struct limit *limit, struct err *err)
{
    const struct queue_rule *rule = &limit->state->row.rule;

    if (!batch->store->shared || limit->seen_in == batch->number)
        return 0;
    TRY(batch->store->verbs->key_held(batch->store, rule->name, limit->name, &limit->running, err));
    return load_bucket(batch, limit, &rule->key_rate, 'k', err);
}

int limits_save(struct batch *batch, struct err *err)
{
    struct limit *next;

    for (struct limit *limit = batch->limits.buckets; limit; limit = next) {
        char name[NAME_BYTES_MAX];

        next = limit->next_used;
        if (limit->rated)
            TRY(batch->store->verbs->bucket_save(
                batch->store, queue_name_namespace(limit->state->row.rule.name),
                bucket_name(limit, limit->kind, name), &limit->bucket, err));
        if (limit->kind == 'k' && !heap_contains(&limit->wake)) { /* all of it is in the table */
            map_remove(&limit->state->keys, limit->name);
            free(limit);
        }
    }
    batch->limits.buckets = NULL;
    return 0;
}

/* What workers hold of the queue, or of one type of it: also what was cancelled and has not been
 * stopped yet, since that has its slot still. */
static int count_held(struct batch *batch, const struct queue_state *state, struct str type,
                      int64_t *running, struct err *err)
{
    struct held_count *counts;
    uint32_t count;

    TRY(batch->store->verbs->limits_count(batch->store, state->row.rule.name, &batch->arena,
                                          &counts, &count, err));
    *running = held_of(counts, count, type);
    return 0;
}

static int peek_shared(struct batch *batch, struct queue_state *state, const struct limit *limit,
                       const struct rate_rule *rate, int64_t *running, struct bucket *bucket,
                       struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    char name[NAME_BYTES_MAX];
    int rc = limit->kind == 'k' ? verbs->key_held(batch->store, state->row.rule.name, limit->name,
                                                  running, err)
                                : count_held(batch, state, limit->name, running, err);

    if (rc < 0 || rate->count == 0)
        return rc;
    return verbs->bucket_load(batch->store, queue_name_namespace(state->row.rule.name),
                              bucket_name(limit, limit->kind, name), bucket, err);
}

int limits_peek(struct batch *batch, struct queue_state *state, char kind, struct str name,
                const struct rate_rule *rate, int64_t *running, struct bucket *bucket,
                struct err *err)
{
    struct limit asked = {.name = name, .state = state, .kind = kind};
    const struct limit *limit = kind == 'q'   ? &state->whole
                                : kind == 't' ? map_get(&state->types, name)
                                              : map_get(&state->keys, name);

    *running = 0;
    *bucket = (struct bucket){0};
    if (batch->store->shared)
        return peek_shared(batch, state, &asked, rate, running, bucket, err);
    if (limit) {
        *running = limit->running;
        *bucket = limit->bucket;
    }
    return 0;
}
