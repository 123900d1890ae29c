/* One lock for all of them: a look costs some ten nanoseconds, and tokens change rarely. */
#include "engine/access/makers.h"

#include "base/json.h"
#include "base/map.h"
#include "base/thread.h"
#include "core/access/principal.h"
#include "core/callback_allow.h"
#include "core/queue_name.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/limits/limits.h"
#include "engine/limits/token_tasks.h"
#include "engine/tasks/control.h"
#include "store/token_store.h"

#include <pthread.h>
#include <stdlib.h>

#define KEY_OF_TOKEN "token:"

struct maker {
    struct token_row row;
    struct principal principal;
    struct arena arena;
};

struct makers {
    pthread_mutex_t mutex;
    struct map by_id; /* struct maker */
};

/* What one needs to have made a task or a plan. */
static const scope_set making = SCOPE_BIT(SCOPE_TASKS_ENQUEUE) | SCOPE_BIT(SCOPE_TASKS_CONTROL) |
                                SCOPE_BIT(SCOPE_PLANS_WRITE) | SCOPE_BIT(SCOPE_PLANS_RUN) |
                                SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_ADMIN);

static void maker_free(struct maker *maker)
{
    if (maker)
        arena_deinit(&maker->arena);
    free(maker);
}

static void forget(struct makers *makers)
{
    uint32_t cursor = 0;
    struct maker *maker;

    while ((maker = map_next(&makers->by_id, &cursor)) != NULL)
        maker_free(maker);
    map_deinit(&makers->by_id);
    makers->by_id = MAP_INIT;
}

struct makers *makers_new(struct err *err)
{
    struct makers *makers = err_calloc(sizeof *makers, err);

    if (makers)
        pthread_mutex_init(&makers->mutex, NULL);
    return makers;
}

void makers_free(struct makers *makers)
{
    if (!makers)
        return;
    forget(makers);
    pthread_mutex_destroy(&makers->mutex);
    free(makers);
}

static int put(struct makers *makers, const struct token_row *token, struct err *err)
{
    struct maker *maker = TRY_MEMORY(calloc(1, sizeof *maker));
    struct maker *old;

    if (!token_copy(token, &maker->arena, &maker->row))
        err_no_memory(err);
    else if (token_principal(&maker->row, &maker->arena, &maker->principal, err) == 0) {
        old = map_get(&makers->by_id, token->id);
        if (map_put(&makers->by_id, maker->row.id, maker) == 0) {
            maker_free(old);
            return 0;
        }
        err_no_memory(err);
    }
    maker_free(maker);
    return -(int)err->code;
}

int makers_put(struct engine *engine, const struct token_row *tokens, uint32_t count,
               struct err *err)
{
    struct makers *makers = engine->main->access.makers;

    LOCKED(&makers->mutex);
    for (uint32_t i = 0; i < count; i++)
        TRY(put(makers, &tokens[i], err));
    return 0;
}

int makers_load(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct token_row *tokens;
    uint32_t count;

    if (!is_main(engine) || engine->config.makers_elsewhere)
        return 0;
    TRY(engine->store->verbs->tokens->changed(engine->store, 0, &arena, &tokens, &count, err));
    TRY_MEMORY(!arena.failed);
    pthread_mutex_lock(&engine->access.makers->mutex);
    forget(engine->access.makers);
    pthread_mutex_unlock(&engine->access.makers->mutex);
    return makers_put(engine, tokens, count, err);
}

/* ---- whether they still have the right ---- */

/* NULL = it does. The lock is held. */
static const char *lost(const struct makers *makers, struct str id, const struct maker **maker)
{
    *maker = map_get(&makers->by_id, id);
    if (!*maker)
        return "is not there any more";
    if ((*maker)->row.revoked_at_us)
        return "was revoked";
    return (*maker)->principal.scopes & making ? NULL : "may not enqueue any more";
}

static bool is_of_token(struct str key, struct str *id)
{
    struct str head = STR(KEY_OF_TOKEN);

    if (!key.data || !str_starts(key, head))
        return false;
    *id = str_span(key.data + head.len, key.len - head.len);
    return true;
}

/* Another node may have made the token just now. A token that is nowhere stays unknown. */
static int look_up(struct batch *batch, struct str key, struct err *err)
{
    struct makers *makers = batch->engine->main->access.makers;
    struct token_row *token;
    struct str id;
    bool known;

    if (!batch->store->shared || !is_of_token(key, &id))
        return 0;
    pthread_mutex_lock(&makers->mutex);
    known = map_get(&makers->by_id, id) != NULL;
    pthread_mutex_unlock(&makers->mutex);
    if (known)
        return 0;
    TRY(batch->store->verbs->tokens->load(batch->store, id, &batch->arena, &token, err));
    return token ? makers_put(batch->engine, token, 1, err) : 0;
}

int makers_count_tasks(struct batch *batch, struct str key, struct str *id, bool *counts,
                       struct err *err)
{
    struct makers *makers = batch->engine->main->access.makers;
    const struct maker *maker;

    *counts = false;
    if (!is_of_token(key, id))
        return 0;
    TRY(look_up(batch, key, err));
    LOCKED(&makers->mutex);
    maker = map_get(&makers->by_id, *id);
    *counts = maker && maker->row.max_tasks;
    return 0;
}

bool makers_lost(struct engine *engine, struct str key, struct arena *arena, struct str *why)
{
    struct makers *makers = engine->main->access.makers;
    const struct maker *maker;
    const char *words;
    struct str id;

    if (!is_of_token(key, &id))
        return false;
    LOCKED(&makers->mutex);
    words = lost(makers, id, &maker);
    if (words)
        *why = arena_format(arena, "the token '" STR_FMT "' %s",
                            STR_ARG(str_cut(maker ? maker->row.name : id, 100)), words);
    return words != NULL;
}

static bool holds_or_cancels(const struct engine *engine)
{
    return !str_is(engine->settings->access.revoked_tasks, "run");
}

static int check_reach(const struct engine *engine, const struct maker *maker,
                       const struct task_input *input, struct str category, struct err *err)
{
    const struct principal *principal = &maker->principal;

    TRY(principal_check_user(principal, "user_id", input->spec.user_id, err));
    if (input->spec.callback.url.data)
        TRY(callback_check_right(engine->settings, principal, err));
    return principal_check_work(principal, input->spec.queue, input->spec.type, category, err);
}

int makers_check(struct batch *batch, struct str key, const struct task_input *input,
                 struct str category, struct err *err)
{
    const struct engine *engine = batch->engine;
    struct makers *makers = engine->main->access.makers;
    const struct maker *maker;
    const char *words;
    struct str id;

    if (!is_of_token(key, &id))
        return 0;
    TRY(look_up(batch, key, err));
    LOCKED(&makers->mutex);
    words = lost(makers, id, &maker);
    if (words && holds_or_cancels(engine))
        return err_set(err, ERR_FORBIDDEN, "access revoked: the token '" STR_FMT "' that made this "
                       "%s; change it with another credential, and it runs with the rights of "
                       "that one", STR_ARG(str_cut(maker ? maker->row.name : id, 100)), words);
    if (!maker)
        return 0;
    return check_reach(engine, maker, input, category, err);
}

/* ---- tasks ---- */

int makers_check_child(struct batch *batch, const struct task *parent,
                       const struct task_input *input, struct err *err)
{
    const struct engine *engine = batch->engine;
    struct makers *makers = engine->main->access.makers;
    const struct maker *maker;
    struct str id;

    if (!is_of_token(parent->spec.origin.principal, &id))
        return 0;
    TRY(look_up(batch, parent->spec.origin.principal, err));
    LOCKED(&makers->mutex);
    maker = map_get(&makers->by_id, id);
    if (!maker)
        return 0;
    return check_reach(engine, maker, input, input->category, err);
}

int makers_admit(struct batch *batch, struct task *task, enum claim_move *move, struct err *err)
{
    struct str why = STR_NONE, state, detail;
    BUF_AUTO struct buf text = BUF_INIT(1024);

    *move = CLAIM_TAKE;
    if (!holds_or_cancels(batch->engine))
        return 0;
    TRY(look_up(batch, task->spec.origin.principal, err));
    if (!makers_lost(batch->engine, task->spec.origin.principal, &batch->arena, &why))
        return 0;
    *move = CLAIM_PUT_OFF;
    limits_take_back(batch, task);
    TRY(batch_adopt(batch, task, err));
    state = batch_text(batch, "Access revoked: " STR_FMT, STR_ARG(why));
    buf_text(&text, "{\"reason\":");
    json_write_string(&text, state);
    buf_byte(&text, '}');
    detail = arena_str(&batch->arena, buf_view(&text));
    TRY_MEMORY(why.data && state.data && detail.data && !text.failed);
    if (str_is(batch->engine->settings->access.revoked_tasks, "cancel"))
        return control_cancel(batch, task, ACTOR_ACCESS, state.data, detail, err);
    return batch_move(batch, task, STATUS_PAUSED, MOVE_PAUSE, state.data, ACTOR_ACCESS, detail,
                      err);
}

int makers_vouch(struct batch *batch, const struct request *request, struct task *task,
                 struct err *err)
{
    struct str key = request_maker(request);
    struct str why;

    TRY(look_up(batch, task->spec.origin.principal, err));
    if (!makers_lost(batch->engine, task->spec.origin.principal, &batch->arena, &why))
        return 0;
    if (request->caller && request->caller->principal)
        TRY(principal_check_take(request->caller->principal, task->spec.origin.principal,
                                 "this task", err));
    if (!status_ended(task->status)) {
        TRY(token_tasks_note(batch, task->spec.origin.principal, -1, err));
        TRY(token_tasks_note(batch, key, 1, err));
    }
    task->spec.origin.principal = key;
    batch->wrote = true;
    return batch->store->verbs->tokens->adopt(batch->store, task->key, key, err);
}
