#include "engine/limits/user_limits.h"

#include "engine/batch.h"
#include "engine/engine_state.h"

#include <stdlib.h>

struct user_limit {
    struct user_limit *next_used;
    struct bucket bucket;
    uint64_t loaded_in; /* the batch, on a shared store */
    struct str namespace_name;
    struct str name;    /* among the buckets of queues, whose names do not begin like this */
    char key[];         /* the namespace, a separator, the name */
};

#define SEPARATOR '\x1c'

void user_limits_forget(struct engine *engine)
{
    struct user_limits *limits = &engine->limits.users;
    struct user_limit *limit;
    uint32_t cursor = 0;

    while ((limit = map_next(&limits->by_user, &cursor)) != NULL)
        free(limit);
    map_deinit(&limits->by_user);
    *limits = (struct user_limits){.by_user = MAP_INIT};
}

/* Those that are as if they had never been used. */
static void clear(struct batch *batch)
{
    struct user_limits *limits = &batch->engine->limits.users;
    const struct rate_rule *rule = &batch->engine->settings->access.user_tasks;
    struct user_limit *limit;
    uint32_t cursor = 0;

    while ((limit = map_next(&limits->by_user, &cursor)) != NULL) {
        if (limit->loaded_in == batch->number ||
            bucket_full_us(&limit->bucket, rule) > batch->now_us)
            continue;
        map_remove(&limits->by_user, str_span(limit->key, limit->namespace_name.len +
                                                              limit->name.len));
        free(limit);
    }
}

static int find(struct batch *batch, struct str namespace_name, struct str user,
                struct user_limit **found, struct err *err)
{
    struct user_limits *limits = &batch->engine->limits.users;
    size_t len = namespace_name.len + 1 + user.len;
    char *key = TRY_MEMORY(arena_alloc(&batch->arena, len));
    struct user_limit *limit;

    memcpy(key, namespace_name.data, namespace_name.len);
    key[namespace_name.len] = SEPARATOR;
    memcpy(key + namespace_name.len + 1, user.data, user.len);
    *found = map_get(&limits->by_user, str_span(key, len));
    if (*found)
        return 0;
    if (map_count(&limits->by_user) >= USER_LIMITS_KEPT)
        clear(batch);
    limit = TRY_MEMORY(calloc(1, sizeof *limit + len));
    memcpy(limit->key, key, len);
    limit->namespace_name = str_span(limit->key, namespace_name.len);
    limit->name = str_span(limit->key + namespace_name.len, 1 + user.len);
    if (map_put(&limits->by_user, str_span(limit->key, len), limit) < 0) {
        free(limit);
        return err_no_memory(err);
    }
    *found = limit;
    return 0;
}

static int use(struct batch *batch, struct user_limit *limit, struct err *err)
{
    if (limit->loaded_in == batch->number)
        return 0;
    if (batch->store->shared)
        TRY(batch->store->verbs->bucket_load(batch->store, limit->namespace_name, limit->name,
                                             &limit->bucket, err));
    limit->loaded_in = batch->number;
    limit->next_used = batch->engine->limits.users.used;
    batch->engine->limits.users.used = limit;
    return 0;
}

/* How many tasks of which users; the tasks of one request are mostly of one. */
static int count_users(struct batch *batch, const struct request *request,
                       const struct task_input *inputs, uint32_t count, struct user_taken *taken,
                       uint32_t *taken_count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct str user = request->caller->principal ? request->caller->principal->user_id
                                                     : STR_NONE;
        struct user_limit *limit;
        uint32_t at = 0;

        if (!user.data)
            user = inputs[i].spec.user_id;
        if (!user.data)
            continue;
        TRY(find(batch, request->caller->namespace_name, user, &limit, err));
        while (at < *taken_count && taken[at].limit != limit)
            at++;
        if (at == *taken_count)
            taken[(*taken_count)++] = (struct user_taken){.limit = limit};
        taken[at].count++;
    }
    return 0;
}

/* `left`: the bucket as far as it went. */
static int refuse(const struct batch *batch, struct request *request,
                  const struct user_taken *taken, const struct bucket *left)
{
    const struct rate_rule *rule = &batch->engine->settings->access.user_tasks;
    int64_t most = rule->burst > 0 ? rule->burst : rule->count;
    int64_t wait_us = bucket_next_us(left, rule, batch->now_us) - batch->now_us;

    if (taken->count > most)
        return err_set(&request->err, ERR_INVALID, "%lld tasks at once are more than "
                       "access.user_limits ever lets a user enqueue (%lld)",
                       (long long)taken->count, (long long)most);
    request->retry_after_s = (wait_us + CLOCK_SECOND_US - 1) / CLOCK_SECOND_US;
    if (request->retry_after_s < 1)
        request->retry_after_s = 1;
    return err_set(&request->err, ERR_RATE, "a user may enqueue %lld tasks in %lld ms here "
                   "(access.user_limits); try again in %lld s", (long long)rule->count,
                   (long long)rule->per_ms, (long long)request->retry_after_s);
}

static int take_all(struct batch *batch, struct request *request, struct user_taken *taken)
{
    const struct rate_rule *rule = &batch->engine->settings->access.user_tasks;
    struct bucket after;

    TRY(use(batch, taken->limit, &request->err));
    after = taken->before = taken->limit->bucket;
    for (int64_t i = 0; i < taken->count; i++)
        if (!bucket_take(&after, rule, batch->now_us))
            return refuse(batch, request, taken, &after);
    taken->limit->bucket = after;
    return 0;
}

int user_limits_take(struct batch *batch, struct request *request,
                     const struct task_input *inputs, uint32_t count, struct user_taken **out,
                     uint32_t *out_count)
{
    struct err *err = &request->err;
    struct user_taken *taken;

    *out = NULL;
    *out_count = 0;
    if (!batch->engine->settings->access.user_tasks.count || !request->caller)
        return 0;
    taken = TRY_MEMORY(arena_alloc_array(&batch->arena, count, sizeof *taken));
    TRY(count_users(batch, request, inputs, count, taken, out_count, err));
    *out = taken;
    for (uint32_t i = 0; i < *out_count; i++)
        if (take_all(batch, request, &taken[i]) < 0) {
            user_limits_give_back(taken, i);
            return -(int)err->code;
        }
    return 0;
}

void user_limits_give_back(struct user_taken *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        taken[i].limit->bucket = taken[i].before;
}

int user_limits_save(struct batch *batch, struct err *err)
{
    struct user_limits *limits = &batch->engine->limits.users;

    for (struct user_limit *at = limits->used; at && batch->store->shared; at = at->next_used)
        TRY(batch->store->verbs->bucket_save(batch->store, at->namespace_name, at->name,
                                             &at->bucket, err));
    limits->used = NULL;
    return 0;
}
