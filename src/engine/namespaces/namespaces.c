/* Namespaces as memory knows them: all rows, read at the start and followed as queues are. On a
 * shared store a change of another node may come late, so whatever makes something in a namespace
 * asks the store whether it is still there and holds its row until the commit; `default` is always
 * there. */
#include "engine/namespaces/namespaces.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/stores/routes.h"
#include "store/namespace_store.h"

#include <stdlib.h>

static const struct namespace_verbs *verbs_of(const struct engine *engine)
{
    return engine->store->namespaces;
}

static void state_free(struct namespace_state *state)
{
    arena_deinit(&state->arena);
    free(state);
}

void namespaces_deinit(struct engine *engine)
{
    struct namespace_state *state;
    uint32_t cursor = 0;

    while ((state = map_next(&engine->limits.namespaces.by_name, &cursor)) != NULL)
        state_free(state);
    map_deinit(&engine->limits.namespaces.by_name);
    engine->limits.namespaces.any_deleting = false;
}

static int copy_row(struct namespace_state *state, const struct namespace_row *row,
                    struct err *err)
{
    struct arena fresh = ARENA_INIT(0);
    struct namespace_row copy = *row;

    copy.name = arena_str(&fresh, row->name);
    copy.description = arena_str(&fresh, row->description);
    if (fresh.failed) {
        arena_deinit(&fresh);
        return err_no_memory(err);
    }
    arena_deinit(&state->arena);
    state->arena = fresh;
    state->row = copy;
    return 0;
}

/* Takes the row over as it is now. */
static int know(struct engine *engine, const struct namespace_row *row, struct err *err)
{
    struct namespaces *known = &engine->limits.namespaces;
    struct namespace_state *state = map_get(&known->by_name, row->name);

    if (!state) {
        state = TRY_MEMORY(calloc(1, sizeof *state));
        if (copy_row(state, row, err) < 0 ||
            map_put(&known->by_name, state->row.name, state) < 0) {
            state_free(state);
            return err_no_memory(err);
        }
    } else if (state->row.updated_at_us != row->updated_at_us ||
               state->row.removed != row->removed) {
        map_remove(&known->by_name, state->row.name); /* the name's bytes move */
        if (copy_row(state, row, err) < 0 ||
            map_put(&known->by_name, state->row.name, state) < 0) {
            state_free(state);
            return err_no_memory(err);
        }
    }
    state->followed = known->follows;
    if (row->deleting_at_us && !known->any_deleting) {
        known->any_deleting = true;
        chore_soon(engine, CHORE_NAMESPACES, 0);
    }
    return 0;
}

/* Rows that are gone were removed by a purge. */
static void forget_gone(struct engine *engine)
{
    struct namespace_state *state;
    uint32_t cursor = 0;

    if (engine->batch.limits.namespaces) /* some are in use until this commits */
        return;
    while ((state = map_next(&engine->limits.namespaces.by_name, &cursor)) != NULL) {
        if (state->followed == engine->limits.namespaces.follows)
            continue;
        map_remove(&engine->limits.namespaces.by_name, state->row.name);
        state_free(state);
    }
}

static int read_all(struct engine *engine, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct namespace_row *rows;
    uint32_t count;

    TRY(verbs_of(engine)->load(engine->store, &arena, &rows, &count, err));
    TRY_MEMORY(!arena.failed);
    engine->limits.namespaces.follows++;
    engine->limits.namespaces.any_deleting = false;
    for (uint32_t i = 0; i < count; i++)
        TRY(know(engine, &rows[i], err));
    forget_gone(engine);
    atomic_store(&engine->limits.namespaces.count, map_count(&engine->limits.namespaces.by_name));
    return 0;
}

uint32_t engine_namespaces(struct engine *engine)
{
    struct engine *first = engine->routes ? routes_part(engine, 0) : engine;

    return atomic_load(&first->limits.namespaces.count);
}

int namespaces_load(struct engine *engine, struct err *err)
{
    namespaces_deinit(engine);
    return read_all(engine, err);
}

int namespaces_follow(struct batch *batch, struct err *err)
{
    return read_all(batch->engine, err);
}

int namespaces_find(struct batch *batch, struct str name, struct namespace_state **state,
                    struct err *err)
{
    *state = map_get(&batch->engine->limits.namespaces.by_name, name);
    if (*state || !batch->store->shared)
        return 0;
    TRY(read_all(batch->engine, err));
    *state = map_get(&batch->engine->limits.namespaces.by_name, name);
    return 0;
}

static int no_such(struct str name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "there is no namespace '" STR_FMT "'; make it first, with "
                   "'perdura namespace create " STR_FMT "' or POST /v1/namespaces", STR_ARG(name),
                   STR_ARG(name));
}

static int is_going(struct str name, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "the namespace '" STR_FMT "' is being deleted with all that "
                   "is in it", STR_ARG(name));
}

int namespaces_enter(struct batch *batch, const struct request *request, struct err *err)
{
    return namespaces_enter_named(batch, namespace_of(request), err);
}

int namespaces_enter_named(struct batch *batch, struct str name, struct err *err)
{
    struct namespace_state *state;
    bool there;

    if (!name.data || str_is(name, TASK_DEFAULT_NAMESPACE))
        return 0;
    TRY(namespaces_find(batch, name, &state, err));
    if (!state)
        return no_such(name, err);
    if (state->row.deleting_at_us)
        return is_going(name, err);
    if (!batch->store->shared || state->held_in == batch->number)
        return 0;
    TRY(verbs_of(batch->engine)->hold(batch->store, name, false, &there, err));
    if (!there) {
        batch->engine->nodes.reload_queues = true;
        return is_going(name, err);
    }
    state->held_in = batch->number;
    return 0;
}

int namespaces_put(struct batch *batch, const struct namespace_row *row, struct err *err)
{
    batch->wrote = batch->news.queues_changed = true;
    TRY(verbs_of(batch->engine)->put(batch->store, row, err));
    TRY(know(batch->engine, row, err));
    atomic_store(&batch->engine->limits.namespaces.count,
                 map_count(&batch->engine->limits.namespaces.by_name));
    return 0;
}

void namespaces_drop(struct batch *batch, struct namespace_state *state)
{
    batch->news.queues_changed = true;
    map_remove(&batch->engine->limits.namespaces.by_name, state->row.name);
    state_free(state);
}
