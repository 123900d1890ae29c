/* The table of chores. Waiting (inbox.c), every pass, a reload and a take-over walk it; a new chore
 * is a row here. */
#include "engine/chores.h"

#include "base/clock.h"
#include "engine/access/token_changes.h"
#include "engine/engine_state.h"
#include "engine/history/retention.h"
#include "engine/intake/intake.h"
#include "engine/leases/recoveries.h"
#include "engine/leases/sweep.h"
#include "engine/limits/limits.h"
#include "engine/limits/windows.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire.h"

#define PAUSE_US CLOCK_SECOND_US /* after a failure */

static int sweep_chore(struct batch *batch, int64_t *next_us, struct err *err);
static bool takes_in(const struct engine *engine);

static const struct chore_row {
    const char *name;
    bool leader_only; /* where nodes share a store */
    bool apart;       /* after a failure it runs alone, so that it undoes nothing of the others */
    bool (*wanted)(const struct engine *engine); /* NULL = always */
    bool from_store;  /* when it is due only the store knows: after a reload it looks again */
    int64_t pause_us; /* after a failure that may be its own */
    int (*run)(struct batch *batch, int64_t *next_us, struct err *err);
} rows[CHORE_COUNT] = {
    [CHORE_RATES] = {"rates", .pause_us = PAUSE_US, .run = limits_retry},
    [CHORE_INTAKE] = {"intake", .apart = true, .wanted = takes_in, .from_store = true,
                      .pause_us = PAUSE_US, .run = intake_run},
    [CHORE_SWEEP] = {"sweep", .pause_us = PAUSE_US, .run = sweep_chore},
    [CHORE_DUE] = {"due", .leader_only = true, .from_store = true, .pause_us = PAUSE_US,
                   .run = sweep_due},
    [CHORE_RECOVERY] = {"recovery", .leader_only = true, .apart = true, .from_store = true,
                        .pause_us = PAUSE_US, .run = recovery_run},
    [CHORE_FIRE] = {"fire", .leader_only = true, .apart = true, .wanted = catalog_here,
                    .from_store = true, .pause_us = PAUSE_US, .run = fire_run},
    [CHORE_RETENTION] = {"retention", .leader_only = true, .pause_us = 61 * PAUSE_US,
                         .run = retention_run},
    [CHORE_ACCESS] = {"access", .pause_us = PAUSE_US, .run = access_look},
    [CHORE_NAMESPACES] = {"namespaces", .leader_only = true, .apart = true, .from_store = true,
                          .pause_us = PAUSE_US, .run = namespaces_purge},
};

/* The wall clock may have been set, and other nodes may have put off or lost something. */
static int sweep_chore(struct batch *batch, int64_t *next_us, struct err *err)
{
    chore_soon(batch->engine, CHORE_DUE, batch->now_us);
    if (batch->store->shared)
        chore_soon(batch->engine, CHORE_RECOVERY, batch->now_us);
    TRY(sweep_run(batch, next_us, err));
    fire_look_again(batch);
    return 0;
}

static bool takes_in(const struct engine *engine)
{
    return is_main(engine) && engine->store->intake;
}

void chore_soon(struct engine *engine, enum chore which, int64_t at_us)
{
    struct chore_state *state = &engine->chores[which];

    if (at_us < state->held_us)
        at_us = state->held_us;
    if (at_us < state->next_us)
        state->next_us = at_us;
}

void chores_open(struct engine *engine, int64_t now_us)
{
    for (enum chore i = 0; i < CHORE_COUNT; i++)
        engine->chores[i].next_us = rows[i].from_store ? INT64_MAX : now_us;
    engine->chores[CHORE_RATES].next_us = INT64_MAX;
}

bool chores_hurry(const struct engine *engine, int64_t now_us)
{
    return engine->chores[CHORE_INTAKE].next_us <= now_us;
}

int64_t chores_next_us(const struct engine *engine)
{
    int64_t next_us = engine->chores[CHORE_RATES].next_us;

    for (int i = 0; is_main(engine) && i < CHORE_COUNT; i++)
        if (engine->chores[i].next_us < next_us)
            next_us = engine->chores[i].next_us;
    return next_us;
}

/* Looks at once for what only the store knows, or as soon as it may be tried again. */
static void look_again(struct engine *engine, enum chore which)
{
    bool wanted = !rows[which].wanted || rows[which].wanted(engine);

    engine->chores[which].next_us = wanted ? engine->chores[which].held_us : INT64_MAX;
}

void chores_reload(struct engine *engine, int64_t now_us)
{
    for (enum chore i = 0; i < CHORE_COUNT; i++)
        if (rows[i].from_store)
            look_again(engine, i);
    engine->chores[CHORE_RATES].next_us = now_us + PAUSE_US; /* not lost, and no spinning */
    if (!is_main(engine))
        engine->chores[CHORE_FIRE].next_us = INT64_MAX;
}

/* This node leads now: nothing that came due meanwhile is missed (F-F2). */
static void take_over(struct engine *engine)
{
    LOG(engine->log, LOG_INFO, "node.takes_over", KC("node", engine->node_id));
    for (enum chore i = 0; i < CHORE_COUNT; i++)
        if (rows[i].leader_only)
            look_again(engine, i);
    engine->leases.sweep_after = 0;
    zones_begin(engine);
    windows_begin(engine);
}

static bool is_due(const struct batch *batch, enum chore which)
{
    return batch->engine->chores[which].next_us <= batch->now_us;
}

/* Which of those that never run apart are due, one bit each. Rates undo nothing and do not
 * count. */
static unsigned common_due(const struct batch *batch)
{
    unsigned due = 0;

    for (enum chore i = 0; i < CHORE_COUNT; i++)
        if (i != CHORE_RATES && !rows[i].apart && is_due(batch, i))
            due |= 1u << i;
    return due;
}

/* A chore that failed runs alone until it succeeds. */
static bool must_wait(const struct batch *batch, enum chore which, unsigned common)
{
    const struct chore_state *chores = batch->engine->chores;
    bool others = common != 0;

    if (!rows[which].apart || !chores[which].fails)
        return false;
    for (enum chore i = 0; i < CHORE_COUNT; i++)
        others |= i != which && rows[i].apart &&
                  (chores[i].ran || (is_due(batch, i) && !chores[i].fails));
    return others;
}

static int run_one(struct batch *batch, enum chore which, struct err *err)
{
    struct chore_state *state = &batch->engine->chores[which];

    state->ran = true;
    return rows[which].run(batch, &state->next_us, err);
}

int chores_run(struct batch *batch, struct err *err)
{
    struct engine *engine = batch->engine;
    const struct store_verbs *verbs = batch->store->verbs;
    bool led = engine->nodes.leads, guarded = !batch->store->shared;
    unsigned common;

    if (!is_main(engine))
        return is_due(batch, CHORE_RATES) ? run_one(batch, CHORE_RATES, err) : 0;
    engine->nodes.leads = !batch->store->shared || verbs->leads(batch->store);
    if (batch->store->shared && engine->nodes.leads && !led)
        take_over(engine);
    common = common_due(batch);
    for (enum chore i = 0; i < CHORE_COUNT; i++) {
        if (rows[i].leader_only && !engine->nodes.leads)
            engine->chores[i].next_us = INT64_MAX; /* until it leads */
        if (!is_due(batch, i) || must_wait(batch, i, common))
            continue;
        if (rows[i].leader_only && !guarded)
            TRY(verbs->lead_guard(batch->store, err));
        guarded |= rows[i].leader_only;
        TRY(run_one(batch, i, err));
    }
    return 0;
}

void chores_begin(struct engine *engine)
{
    for (enum chore i = 0; i < CHORE_COUNT; i++)
        engine->chores[i].ran = false;
}

void chores_committed(struct engine *engine)
{
    for (enum chore i = 0; i < CHORE_COUNT; i++) {
        struct chore_state *state = &engine->chores[i];

        if (state->ran && rows[i].apart) {
            state->fails = false;
            state->held_us = 0;
        }
    }
}

bool chores_hold_apart(struct engine *engine, int64_t now_us)
{
    bool any = false;

    for (enum chore i = 0; i < CHORE_COUNT; i++) {
        struct chore_state *state = &engine->chores[i];

        if (!state->ran || !rows[i].apart)
            continue;
        any = state->fails = true;
        state->next_us = state->held_us = now_us + PAUSE_US;
    }
    return any;
}

void chores_hold_all(struct engine *engine, int64_t now_us)
{
    for (enum chore i = 0; i < CHORE_COUNT; i++) {
        struct chore_state *state = &engine->chores[i];

        if (rows[i].wanted && !rows[i].wanted(engine))
            continue;
        state->next_us = now_us + rows[i].pause_us;
        if (rows[i].from_store && !rows[i].apart)
            state->held_us = state->next_us; /* also when memory is read again */
    }
}
