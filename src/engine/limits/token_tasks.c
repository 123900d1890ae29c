#include "engine/limits/token_tasks.h"

#include "engine/access/makers.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/token_store.h"

static const struct token_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->tokens;
}

static const struct principal *limited_of(const struct request *request)
{
    const struct principal *principal = request->caller ? request->caller->principal : NULL;

    if (request->kind != REQUEST_ENQUEUE && request->kind != REQUEST_JOB_RUN)
        return NULL;
    return principal && principal->max_tasks ? principal : NULL;
}

/* The first of them that comes behind `behind` (absent = the first of all). */
static struct str next_of(const struct request *list, struct str behind)
{
    struct str next = STR_NONE;

    for (; list; list = list->next) {
        const struct principal *principal = limited_of(list);

        if (principal && (!behind.data || str_compare(principal->id, behind) > 0) &&
            (!next.data || str_compare(principal->id, next) < 0))
            next = principal->id;
    }
    return next;
}

int token_tasks_hold(struct batch *batch, const struct request *list, struct err *err)
{
    struct str id = STR_NONE;

    if (!batch->store->shared)
        return 0;
    while ((id = next_of(list, id)).data)
        TRY(verbs_of(batch)->hold(batch->store, id, err));
    return 0;
}

static int find(struct batch *batch, struct str id, struct token_open **found, struct err *err)
{
    for (uint32_t i = 0; i < batch->limits.tokens.count; i++) {
        *found = &batch->limits.tokens.items[i];
        if (str_eq((*found)->id, id))
            return 0;
    }
    TRY_MEMORY(BATCH_GROW(batch, batch->limits.tokens));
    *found = &batch->limits.tokens.items[batch->limits.tokens.count];
    **found = (struct token_open){.id = arena_str(&batch->arena, id)};
    TRY_MEMORY((*found)->id.data);
    batch->limits.tokens.count++;
    return 0;
}

int token_tasks_check(struct batch *batch, const struct principal *maker, uint32_t more,
                      struct err *err)
{
    struct token_open *token;

    if (!maker || !maker->max_tasks || more == 0)
        return 0;
    if (more > maker->max_tasks)
        return err_set(err, ERR_INVALID, "%u tasks at once are more than the token '" STR_FMT
                       "' may ever have (max_tasks: %lld)", more,
                       STR_ARG(str_cut(maker->name, 100)), (long long)maker->max_tasks);
    TRY(find(batch, maker->id, &token, err));
    if (!token->looked)
        TRY(verbs_of(batch)->open_tasks(batch->store, token->id, &token->open, err));
    token->looked = true;
    if (token->open + token->change + more <= maker->max_tasks)
        return 0;
    return err_set(err, ERR_RATE, "%lld tasks of the token '" STR_FMT "' have not ended, and at "
                   "most %lld may be there (max_tasks); try again when some have ended, or ask "
                   "someone with the scope access:write for a token with a higher limit",
                   (long long)(token->open + token->change), STR_ARG(str_cut(maker->name, 100)),
                   (long long)maker->max_tasks);
}

int token_tasks_note(struct batch *batch, struct str key, int64_t by, struct err *err)
{
    struct token_open *token;
    bool counts;
    struct str id;

    TRY(makers_count_tasks(batch, key, &id, &counts, err));
    if (!counts)
        return 0;
    TRY(find(batch, id, &token, err));
    token->change += by;
    return 0;
}

int token_tasks_save(struct batch *batch, struct err *err)
{
    struct token_count *changes;
    uint32_t count = 0;

    if (batch->limits.tokens.count == 0)
        return 0;
    changes = TRY_MEMORY(arena_alloc_array(&batch->arena, batch->limits.tokens.count,
                                           sizeof *changes));
    for (uint32_t i = 0; i < batch->limits.tokens.count; i++) {
        const struct token_open *token = &batch->limits.tokens.items[i];

        if (token->change)
            changes[count++] = (struct token_count){token->id, token->change};
    }
    batch->limits.tokens.count = 0;
    return count ? verbs_of(batch)->count_tasks(batch->store, changes, count, err) : 0;
}
