/* API tokens: every change is decided here, against the rights of the caller, and told after its
 * commit to the server, whose door looks tokens up in memory. Other nodes on a shared store get a
 * hint, and look at the store's generation twice a second besides. */
#include "engine/access/token_changes.h"

#include "core/bounds.h"
#include "engine/access/makers.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "store/difference.h"
#include "store/token_store.h"

#define LOOK_US (500 * CLOCK_MS_US)

static const struct token_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->tokens;
}

static const struct principal *asker(const struct access_request *request)
{
    return request->base.caller ? request->base.caller->principal : NULL;
}

/* One limited to a namespace or a user sees the tokens of that one only. */
static bool sees(const struct principal *principal, const struct token_row *token)
{
    return !principal || (principal_enters(principal, token->namespace_name) &&
                          (!principal->user_id.data ||
                           (token->user_id.data && str_eq(token->user_id, principal->user_id))));
}

static int find(struct batch *batch, struct access_request *request, struct token_row **token)
{
    struct err *err = &request->base.err;

    *token = NULL;
    TRY(verbs_of(batch)->load(batch->store, request->token.id, request->base.arena, token, err));
    if (*token && sees(asker(request), *token))
        return 0;
    return err_set(err, ERR_NOT_FOUND, "there is no token with this id; `perdura token list` "
                                       "shows those you may see");
}

/* Read with the token where a client sees it. */
static int count_open(struct batch *batch, struct token_row *token, struct err *err)
{
    if (!token->max_tasks)
        return 0;
    return verbs_of(batch)->open_tasks(batch->store, token->id, &token->open_tasks, err);
}

/* Stores a change and owes it to those who follow. */
static int change(struct batch *batch, struct token_row *token, struct err *err)
{
    TRY(verbs_of(batch)->generation_next(batch->store, &token->generation, err));
    TRY(verbs_of(batch)->put(batch->store, token, err));
    batch->wrote = batch->news.tokens_changed = true;
    TRY(makers_put(batch->engine, token, 1, err)); /* what is claimed in this batch asks them */
    TRY_MEMORY(BATCH_GROW(batch, batch->news.tokens));
    TRY_MEMORY(token_copy(token, &batch->arena,
                          &batch->news.tokens.items[batch->news.tokens.count]));
    batch->news.tokens.count++;
    return 0;
}

/* ---- making one ---- */

/* Without a credential everything is allowed only as long as there is no token. What such a caller
 * makes must be able to make more: its own rights end here. */
static int check_first(struct batch *batch, struct access_request *request)
{
    struct err *err = &request->base.err;
    struct token_row *tokens;
    uint32_t count;

    TRY(verbs_of(batch)->changed(batch->store, 0, &batch->arena, &tokens, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (!tokens[i].revoked_at_us)
            return err_set(err, ERR_UNAUTHORIZED, "there is a token by now, so every request needs "
                           "one; send it as 'Authorization: Bearer TOKEN'");
    request->closes = true;
    if (scopes_allow(request->made.scopes, SCOPE_ACCESS_WRITE))
        return 0;
    return err_set_field(err, ERR_INVALID, "scopes", "the first token must have access:write or "
                         "admin: as soon as it exists every request needs a token, and you would "
                         "be locked out; make one with the role admin first, or start the server "
                         "with PERDURA_TOKEN");
}

static int check_end(const struct batch *batch, struct access_request *request)
{
    int64_t end_us = request->made.expires_at_us;

    if (!end_us || end_us > batch->wall_us)
        return 0;
    return err_set_field(&request->base.err, ERR_INVALID, "expires_at",
                         "'expires_at' has passed already; give a later time");
}

static struct str label_of(const struct principal *principal, struct arena *arena)
{
    BUF_AUTO struct buf label = BUF_INIT(1024);

    if (!principal)
        return STR("program");
    principal_write_label(&label, principal);
    return arena_str(arena, buf_view(&label));
}

static int create(struct batch *batch, struct access_request *request)
{
    const struct principal *principal = asker(request);
    struct token_row *token = &request->token;
    struct err *err = &request->base.err;
    struct token_row *taken;
    int64_t count = 0;

    request->closes = false;
    TRY(check_end(batch, request));
    if (principal && principal->kind == PRINCIPAL_LOCAL)
        TRY(check_first(batch, request));
    if (principal)
        TRY(principal_check_grant(principal, &request->made, err));
    TRY(verbs_of(batch)->count(batch->store, &count, err));
    if (count >= BOUND_TOKENS)
        return err_set(err, ERR_CONFLICT, "there are %d tokens already", BOUND_TOKENS);
    TRY(verbs_of(batch)->load(batch->store, token->id, &batch->arena, &taken, err));
    if (taken)
        return err_set(err, ERR_CONFLICT, "there is a token with this id already; try again");
    TRY(token_keep_rights(token, &request->made, request->base.arena, err));
    token->namespace_name = request->made.namespace_name;
    token->user_id = request->made.user_id;
    token->expires_at_us = request->made.expires_at_us;
    token->created_at_us = batch->wall_us;
    token->created_by = label_of(principal, request->base.arena);
    token->created_by_id = principal ? principal->id : STR_NONE;
    TRY_MEMORY(token->created_by.data);
    return change(batch, token, err);
}

/* ---- changing one ---- */

static int end_token(struct batch *batch, struct token_row *token, struct err *err)
{
    if (token->revoked_at_us)
        return 0;
    token->revoked_at_us = batch->wall_us;
    token->former_hash = STR_NONE;
    token->former_until_us = 0;
    return change(batch, token, err);
}

static int revoke(struct batch *batch, struct access_request *request)
{
    struct token_row *token;

    TRY(find(batch, request, &token));
    request->token = *token;
    return end_token(batch, &request->token, &request->base.err);
}

int tokens_end_of(struct batch *batch, const struct request *request, struct str namespace_name,
                  struct err *err)
{
    struct token_row *tokens;
    uint32_t count;

    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->changed(batch->store, 0, &batch->arena, &tokens, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        if (!str_eq(tokens[i].namespace_name, namespace_name) || tokens[i].revoked_at_us)
            continue;
        TRY(end_token(batch, &tokens[i], err));
        TRY(trail_note_in(batch, request, namespace_name, "token.revoke", "token", tokens[i].id,
                          STR_NONE, err));
    }
    return 0;
}

/* With the new text one reads what the token has made. Its maker had its text before. */
static int check_reading(const struct principal *asker, const struct principal *made,
                         const struct token_row *token, struct err *err)
{
    bool is_own = asker->id.data && (str_eq(asker->id, token->id) ||
                                     (token->created_by_id.data &&
                                      str_eq(asker->id, token->created_by_id)));

    if (is_own || !principal_allows(made, SCOPE_TASKS_ENQUEUE) ||
        principal_allows(asker, SCOPE_PAYLOADS_READ))
        return 0;
    return err_set(err, ERR_FORBIDDEN, "who has this token reads the tasks it has made, with all "
                   "they hold: rotating one that you have not made needs the scope payloads:read; "
                   "revoke it and make another, or ask an administrator");
}

/* The new text is worth what the old one was: it is for callers that could make such a token. */
static int check_rotation(const struct batch *batch, struct access_request *request,
                          const struct token_row *token)
{
    struct err *err = &request->base.err;
    enum token_status status = token_status(token, batch->wall_us);
    struct principal principal;

    if (status != TOKEN_LIVE)
        return err_set(err, ERR_CONFLICT, "the token is %s and cannot be rotated; make a new one",
                       token_status_word(status));
    TRY(token_principal(token, request->base.arena, &principal, err));
    if (!asker(request))
        return 0;
    TRY(principal_check_grant(asker(request), &principal, err));
    return check_reading(asker(request), &principal, token, err);
}

static int rotate(struct batch *batch, struct access_request *request)
{
    struct str hash = request->token.hash;
    struct token_row *token;

    TRY(find(batch, request, &token));
    TRY(check_rotation(batch, request, token));
    token->former_hash = request->overlap_ms > 0 ? token->hash : STR_NONE;
    token->former_until_us =
        request->overlap_ms > 0 ? batch->wall_us + request->overlap_ms * CLOCK_MS_US : 0;
    token->hash = hash;
    request->token = *token;
    TRY(count_open(batch, &request->token, &request->base.err));
    return change(batch, &request->token, &request->base.err);
}

/* ---- looking ---- */

static int list(struct batch *batch, struct access_request *request)
{
    uint32_t kept = 0;

    TRY(verbs_of(batch)->changed(batch->store, 0, request->base.arena, &request->tokens,
                                 &request->count, &request->base.err));
    for (uint32_t i = 0; i < request->count; i++)
        if (sees(asker(request), &request->tokens[i]))
            request->tokens[kept++] = request->tokens[i];
    request->count = kept;
    for (uint32_t i = 0; i < kept; i++)
        TRY(count_open(batch, &request->tokens[i], &request->base.err));
    return 0;
}

static int get(struct batch *batch, struct access_request *request)
{
    struct token_row *token;

    TRY(find(batch, request, &token));
    request->token = *token;
    return count_open(batch, &request->token, &request->base.err);
}

static int used(struct batch *batch, struct access_request *request)
{
    batch->wrote = true;
    return verbs_of(batch)->used(batch->store, request->uses, request->count, &request->base.err);
}

/* Buckets of tokens stand among those of queues and users, whose names do not begin like this. */
#define RATE_NAME "\x1dtoken "

/* Nodes let requests through by buckets of their own and tell afterwards: a look at the store with
 * every request would cost more than the requests. */
static int share_rates(struct batch *batch, struct access_request *request)
{
    struct str within = STR(TASK_DEFAULT_NAMESPACE);
    struct err *err = &request->base.err;

    for (uint32_t i = 0; i < request->count; i++) {
        struct token_taken *taken = &request->taken[i];
        struct str name = batch_text(batch, RATE_NAME STR_FMT, STR_ARG(taken->id));
        struct bucket bucket;

        TRY_MEMORY(name.data);
        TRY(batch->store->verbs->bucket_load(batch->store, within, name, &bucket, err));
        bucket_owe(&bucket, &taken->rate, taken->count, batch->now_us - taken->for_us,
                   batch->now_us);
        taken->wait_us = bucket_next_us(&bucket, &taken->rate, batch->now_us) - batch->now_us;
        TRY(batch->store->verbs->bucket_save(batch->store, within, name, &bucket, err));
    }
    batch->wrote = true;
    return 0;
}

/* The listener gets changes that commit from now on; those before are in the answer. */
static int follow(struct batch *batch, struct access_request *request)
{
    struct engine *engine = batch->engine;

    TRY(verbs_of(batch)->changed(batch->store, 0, request->base.arena, &request->tokens,
                                 &request->count, &request->base.err));
    engine->access.tell = request->tell;
    engine->access.ctx = request->tell_ctx;
    if (request->count)
        engine->access.generation = request->tokens[request->count - 1].generation;
    chore_soon(engine, CHORE_ACCESS, batch->now_us);
    return 0;
}

/* For the audit trail, which does not record who looked. */
static int note(struct batch *batch, struct access_request *request)
{
    static const char *const actions[] = {[ACCESS_CREATE] = "token.create",
                                          [ACCESS_REVOKE] = "token.revoke",
                                          [ACCESS_ROTATE] = "token.rotate",
                                          [ACCESS_FOLLOW] = NULL};
    struct str change = STR_NONE;

    if (!actions[request->op] || !request->base.caller)
        return 0;
    if (request->op == ACCESS_CREATE)
        change = store_difference(&token_table, NULL, &request->token, &batch->arena);
    return trail_note_in(batch, &request->base, request->token.namespace_name,
                         actions[request->op], "token", request->token.id, change,
                         &request->base.err);
}

int access_apply(struct batch *batch, struct request *base)
{
    static int (*const by_op[])(struct batch *batch, struct access_request *request) = {
        [ACCESS_CREATE] = create, [ACCESS_LIST] = list,     [ACCESS_GET] = get,
        [ACCESS_REVOKE] = revoke, [ACCESS_ROTATE] = rotate, [ACCESS_USED] = used,
        [ACCESS_RATES] = share_rates, [ACCESS_FOLLOW] = follow};
    struct access_request *request = (struct access_request *)base;

    TRY(by_op[request->op](batch, request));
    return note(batch, request);
}

/* ---- other nodes ---- */

int access_look(struct batch *batch, int64_t *next_us, struct err *err)
{
    struct engine *engine = batch->engine;
    struct token_row *tokens;
    int64_t generation;
    uint32_t count;

    *next_us = INT64_MAX;
    if (!batch->store->shared)
        return 0;
    *next_us = batch->now_us + LOOK_US;
    TRY(verbs_of(batch)->generation(batch->store, &generation, err));
    if (generation == engine->access.generation)
        return 0;
    TRY(verbs_of(batch)->changed(batch->store, engine->access.generation, &batch->arena, &tokens,
                                 &count, err));
    TRY(makers_put(engine, tokens, count, err));
    for (uint32_t i = 0; i < count; i++) {
        TRY_MEMORY(BATCH_GROW(batch, batch->news.tokens));
        batch->news.tokens.items[batch->news.tokens.count++] = tokens[i];
        batch->news.tokens_seen = tokens[i].generation;
    }
    return 0;
}

void access_committed(struct engine *engine, const struct batch *batch)
{
    if (batch->news.tokens_seen > engine->access.generation)
        engine->access.generation = batch->news.tokens_seen;
    if (batch->news.tokens.count && engine->access.tell)
        engine->access.tell(engine->access.ctx, batch->news.tokens.items,
                            batch->news.tokens.count);
}
