/* What other nodes on a shared store do: this node looks for their work when they send a hint, and
 * polls besides, because a hint may get lost; it takes over queues they made or changed. Nothing
 * here is needed for correctness, only for speed. */
#include "engine/nodes.h"

#include "base/thread.h"
#include "core/bounds.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/limits/limits.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/tasks/claim.h"
#include "engine/tasks/wake.h"
#include "core/hint_words.h"

#define HINT_BYTES_MAX 4096
#define SEPARATOR '\x1f'
#define POLL_US (500 * CLOCK_MS_US) /* while claims wait, work without a hint is found this late */

static const struct str due_word = {"", 0};      /* tasks were put off: a time comes */
#define ALIVE '\x05' /* before a worker's id, from one writer to another */

/* Is it the last hint? A busy queue sends the same one again and again. */
static bool told_last(const struct buf *hints, struct str name)
{
    size_t at = hints->len - name.len - 1;

    return hints->len > name.len && hints->data[hints->len - 1] == SEPARATOR &&
           (at == 0 || hints->data[at - 1] == SEPARATOR) &&
           memcmp(hints->data + at, name.data, name.len) == 0;
}

/* Work in a queue concerns only waiting claims; a claim that starts to wait finds the hint. */
static void hint(struct engine *engine, struct str name)
{
    bool work = name.len > 0 && (unsigned char)name.data[0] > ' ';

    if (str_eq(name, ended_word) && atomic_load(&engine->waiting.waits_count) == 0)
        return;
    LOCKED(&engine->inbox.mutex);
    engine->nodes.hinted |= !work;
    if (!name.data || engine->nodes.hints.len + name.len + 1 > HINT_BYTES_MAX) {
        engine->nodes.hint_all = true;
    } else if (!told_last(&engine->nodes.hints, name)) {
        buf_str(&engine->nodes.hints, name);
        buf_byte(&engine->nodes.hints, SEPARATOR);
    }
    if (nodes_hinted(engine))
        pthread_cond_signal(&engine->inbox.arrived);
}

/* To the other writers of its node: every hint it gets, or what may concern them. */
static void hint_others(struct engine *engine, struct str name)
{
    struct engine *first = engine->main;

    for (uint32_t i = 0; i < atomic_load(&first->writers.count); i++)
        if (first->writers.all[i] != engine)
            hint(first->writers.all[i], name);
}

/* Any thread. Claims wait, and times are looked at, only in the first. */
void engine_hint(void *ctx, struct str name)
{
    struct engine *engine = ctx;

    hint(engine, name);
    if (!name.data || str_eq(name, ended_word) || str_eq(name, rules_word) ||
        str_eq(name, catalog_word))
        hint_others(engine, name);
}

void nodes_tell_alive(struct engine *engine, struct str worker_id)
{
    char text[BOUND_NAME_BYTES + 1];

    if (worker_id.len >= sizeof text)
        return;
    text[0] = ALIVE;
    memcpy(text + 1, worker_id.data, worker_id.len);
    hint(engine, str_span(text, worker_id.len + 1));
}

bool nodes_hinted(const struct engine *engine)
{
    return engine->nodes.hinted || ((engine->nodes.hint_all || engine->nodes.hints.len > 0) &&
                                    atomic_load(&engine->waiting.claims_count) > 0);
}

void nodes_forget_hints(struct engine *engine)
{
    LOCKED(&engine->inbox.mutex);

    engine->nodes.hint_all = engine->nodes.hinted = false;
    buf_reset(&engine->nodes.hints);
}

static int renew_worker(struct batch *batch, struct str id, struct err *err)
{
    struct worker_state *worker;

    if (workers_find(batch, id, &worker, err) < 0) /* it may have registered at another node */
        return -(int)err->code;
    return worker ? workers_renew(batch, worker, err) : 0;
}

/* It was changed: what is planned may come earlier now, and claims may have other categories. */
static void look_at_catalog(struct batch *batch)
{
    struct engine *engine = batch->engine;

    catalog_doubt(engine);
    if (!is_main(engine) || !catalog_here(engine))
        return;
    chore_soon(engine, CHORE_FIRE, 0);
    claim_heat_categories(batch);
}

/* The leader processes them, or the thread that asks validators there. */
static void look_at_recoveries(struct engine *engine)
{
    chore_soon(engine, CHORE_RECOVERY, 0);
    if (is_main(engine) && engine->config.on_recovery)
        engine->config.on_recovery(engine->config.ctx);
}

static int follow_hint(struct batch *batch, struct str name, struct err *err)
{
    struct engine *engine = batch->engine;
    struct queue_state *state = limits_queue(engine, name);

    if (name.len && name.data[0] == ALIVE)
        return renew_worker(batch, str_span(name.data + 1, name.len - 1), err);
    if (str_eq(name, ended_word))
        engine->nodes.look_at_waits = true;
    else if (str_eq(name, due_word))
        chore_soon(engine, CHORE_DUE, 0);
    else if (str_eq(name, rules_word))
        engine->nodes.reload_queues = true;
    else if (str_eq(name, catalog_word))
        look_at_catalog(batch);
    else if (str_eq(name, recovery_word))
        look_at_recoveries(engine);
    else if (str_eq(name, access_word))
        chore_soon(engine, CHORE_ACCESS, 0);
    else if (str_eq(name, intake_word))
        chore_soon(engine, CHORE_INTAKE, 0);
    else if (state)
        batch_heat_here(batch, state);
    else
        engine->nodes.reload_queues = true;
    return 0;
}

static void heat_all(struct batch *batch)
{
    struct queue_state *state;
    uint32_t cursor = 0;

    while ((state = map_next(&batch->engine->limits.queues, &cursor)) != NULL)
        batch_heat_here(batch, state);
}

static int take_hints(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    const char *at, *end;
    struct str text;
    bool all;

    pthread_mutex_lock(&engine->inbox.mutex);
    text = arena_str(&batch->arena, buf_view(&engine->nodes.hints));
    all = engine->nodes.hint_all || !text.data;
    engine->nodes.hint_all = engine->nodes.hinted = false;
    buf_reset(&engine->nodes.hints);
    pthread_mutex_unlock(&engine->inbox.mutex);
    if (all) {
        engine->nodes.look_at_waits = engine->nodes.reload_queues = true;
        chore_soon(engine, CHORE_DUE, 0);
        look_at_catalog(batch);
        look_at_recoveries(engine);
        chore_soon(engine, CHORE_ACCESS, 0);
        chore_soon(engine, CHORE_INTAKE, 0);
        heat_all(batch);
        return 0;
    }
    for (at = text.data; at < text.data + text.len; at = end + 1) {
        end = memchr(at, SEPARATOR, (size_t)(text.data + text.len - at));
        TRY(follow_hint(batch, str_span(at, (size_t)(end - at)), err));
    }
    return 0;
}

/* The leader must not miss what was planned on another node; others look when they need it. The
 * version is firing's own: the first reader refreshes what memory knows of the catalog. */
static int poll_catalog(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    int64_t version;

    catalog_doubt(engine);
    if (!is_main(engine) || !engine->nodes.leads || !catalog_here(engine))
        return 0;
    TRY(catalog_version(batch, &version, err));
    if (version != engine->plans.fired_version)
        chore_soon(engine, CHORE_FIRE, 0);
    engine->plans.fired_version = version;
    return 0;
}

int nodes_follow(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;

    if (!batch->store->shared)
        return 0;
    TRY(take_hints(batch, err));
    if (engine->nodes.next_poll_us <= batch->now_us) {
        engine->nodes.next_poll_us = batch->now_us + POLL_US;
        engine->nodes.look_at_waits = engine->nodes.reload_queues = true;
        chore_soon(engine, CHORE_DUE, 0);
        chore_soon(engine, CHORE_INTAKE, 0);
        TRY(poll_catalog(batch, err));
        if (engine->waiting.claims_first)
            heat_all(batch);
    }
    if (engine->nodes.look_at_waits && map_count(&engine->waiting.waits) > 0)
        TRY(waits_look(batch, err));
    engine->nodes.look_at_waits = false;
    if (!engine->nodes.reload_queues)
        return 0;
    engine->nodes.reload_queues = false;
    TRY(namespaces_follow(batch, err));
    return limits_follow(batch, err);
}

/* After a commit: queues that got something ready, and whether something was put off. */
void nodes_tell(struct engine *engine, const struct batch *batch) /* and other writers */
{
    const struct store_verbs *verbs = engine->store->verbs;

    if (!engine->store->shared)
        return;
    for (const struct queue_state *state = batch->news.heated; state; state = state->next_heated) {
        verbs->tell(engine->store, state->row.rule.name);
        if (!is_main(engine))
            hint(engine->main, state->row.rule.name);
    }
    if (batch->news.workers_gone)
        atomic_fetch_add(&engine->main->writers.gone, 1);
    if (batch->news.queues_changed) {
        verbs->tell(engine->store, rules_word);
        hint_others(engine, rules_word);
    }
    if (batch->news.catalog_changed) {
        verbs->tell(engine->store, catalog_word);
        hint_others(engine, catalog_word);
    }
    if (batch->news.tokens_changed)
        verbs->tell(engine->store, access_word);
    if (batch->recoveries.wait) {
        verbs->tell(engine->store, recovery_word);
        if (!is_main(engine))
            hint(engine->main, recovery_word);
    }
    if (batch->news.delayed) {
        verbs->tell(engine->store, due_word);
        if (!is_main(engine))
            hint(engine->main, due_word);
    }
    if (batch->ended.count > 0) {
        verbs->tell(engine->store, ended_word);
        hint_others(engine, ended_word);
    }
}
