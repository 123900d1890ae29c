/* Bounds of a namespace: how many tasks wait, how many come per time, how large their payloads are,
 * how many plans there are. Namespaces without bounds cost nothing here. On a shared store the rate
 * is counted by the store: the row is held alone while tokens are taken, and all of them are
 * written before the commit. Runs that schedules make are counted but never refused. */
#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/namespaces/namespaces.h"
#include "store/namespace_store.h"

#define BUCKET_NAME "\x1d" /* among the buckets of queues, whose names have no such byte */

static const struct namespace_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->namespaces;
}

static int check_payloads(const struct namespace_row *row, const struct task_input *inputs,
                          uint32_t count, struct err *err)
{
    for (uint32_t i = 0; row->payload_bytes_limit > 0 && i < count; i++)
        if ((int64_t)inputs[i].spec.payload.len > row->payload_bytes_limit)
            return err_set_field(err, ERR_TOO_LARGE, "payload",
                                 "\"payload\" has %zu bytes; the namespace '" STR_FMT "' allows "
                                 "%lld", inputs[i].spec.payload.len, STR_ARG(row->name),
                                 (long long)row->payload_bytes_limit);
    return 0;
}

static int check_waiting(struct batch *batch, struct namespace_state *state, uint32_t count,
                         struct err *err)
{
    const struct namespace_row *row = &state->row;

    if (row->waiting_limit <= 0)
        return 0;
    if (state->counted_in != batch->number) {
        TRY(batch_flush(batch, err));
        TRY(verbs_of(batch)->waiting(batch->store, row->name, &state->waiting, err));
        state->counted_in = batch->number;
    }
    if (state->waiting + count <= row->waiting_limit) {
        state->waiting += count;
        return 0;
    }
    return err_set(err, ERR_RATE, "%lld tasks wait in the namespace '" STR_FMT "', and at most "
                   "%lld may; try again when some have ended", (long long)state->waiting,
                   STR_ARG(row->name), (long long)row->waiting_limit);
}

static int hold_bucket(struct batch *batch, struct namespace_state *state, struct err *err)
{
    bool there;

    if (!batch->store->shared)
        return 0;
    for (struct namespace_state *at = batch->limits.namespaces; at; at = at->next_used)
        if (at == state)
            return 0;
    TRY(verbs_of(batch)->hold(batch->store, state->row.name, true, &there, err));
    TRY(batch->store->verbs->bucket_load(batch->store, state->row.name, STR(BUCKET_NAME),
                                         &state->bucket, err));
    batch_catch_up(batch, state->bucket.updated_us);
    state->next_used = batch->limits.namespaces;
    batch->limits.namespaces = state;
    return 0;
}

/* All of its tokens or none. */
static int take_tokens(struct batch *batch, struct namespace_state *state, uint32_t count,
                       struct err *err)
{
    const struct rate_rule *rate = &state->row.enqueue_rate;
    int64_t most = rate->burst > 0 ? rate->burst : rate->count;
    struct bucket after;

    if (rate->count <= 0)
        return 0;
    if (count > most)
        return err_set(err, ERR_INVALID, "%u tasks at once are more than the enqueue_rate of the "
                       "namespace '" STR_FMT "' ever allows (%lld)", count,
                       STR_ARG(state->row.name), (long long)most);
    TRY(hold_bucket(batch, state, err));
    after = state->before = state->bucket;
    for (uint32_t i = 0; i < count; i++)
        if (!bucket_take(&after, rate, batch->now_us)) {
            int64_t next_us = bucket_next_us(&after, rate, batch->now_us);

            return err_set(err, ERR_RATE, "the enqueue_rate of the namespace '" STR_FMT "' is used "
                           "up; try again in %lld ms", STR_ARG(state->row.name),
                           (long long)((next_us - batch->now_us) / CLOCK_MS_US + 1));
        }
    state->bucket = after;
    return 0;
}

/* All of them are in the namespace of the first. */
int namespace_admit(struct batch *batch, const struct task_input *inputs, uint32_t count,
                    struct err *err)
{
    struct namespace_state *state =
        map_get(&batch->engine->limits.namespaces.by_name, inputs[0].spec.namespace_name);

    if (!state)
        return 0;
    TRY(check_payloads(&state->row, inputs, count, err));
    TRY(check_waiting(batch, state, count, err));
    if (take_tokens(batch, state, count, err) == 0)
        return 0;
    if (state->row.waiting_limit > 0)
        state->waiting -= count;
    return -(int)err->code;
}

void namespace_give_back(struct batch *batch, const struct task_input *inputs, uint32_t count)
{
    struct namespace_state *state =
        map_get(&batch->engine->limits.namespaces.by_name, inputs[0].spec.namespace_name);

    if (state && state->row.waiting_limit > 0)
        state->waiting -= count;
    if (state && state->row.enqueue_rate.count > 0)
        state->bucket = state->before;
}

bool namespace_encrypts(const struct batch *batch, struct str name)
{
    const struct namespace_state *state = map_get(&batch->engine->limits.namespaces.by_name, name);

    return state && state->row.encrypt_all;
}

int namespace_admit_plan(struct batch *batch, struct str name, struct err *err)
{
    struct namespace_state *state = map_get(&batch->engine->limits.namespaces.by_name, name);
    int64_t plans;

    if (!state || state->row.schedules_limit <= 0)
        return 0;
    TRY(verbs_of(batch)->plans(batch->store, name, &plans, err));
    if (plans < state->row.schedules_limit)
        return 0;
    return err_set(err, ERR_INVALID, "the namespace '" STR_FMT "' has %lld schedules and recurring "
                   "patterns, and at most %lld are allowed; remove some of them", STR_ARG(name),
                   (long long)plans, (long long)state->row.schedules_limit);
}

int namespaces_save(struct batch *batch, struct err *err)
{
    for (struct namespace_state *at = batch->limits.namespaces; at; at = at->next_used)
        TRY(batch->store->verbs->bucket_save(batch->store, at->row.name, STR(BUCKET_NAME),
                                             &at->bucket, err));
    batch->limits.namespaces = NULL;
    return 0;
}
