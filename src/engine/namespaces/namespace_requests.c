/* Namespaces as users list, make, change and remove them. A removal only marks the namespace:
 * namespace_purge.c does the rest. */
#include "core/bounds.h"
#include "core/plan/catalog.h"
#include "engine/access/token_changes.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/chores.h"
#include "engine/engine_state.h"
#include "engine/logs/log_namespaces.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "store/catalog_store.h"
#include "store/difference.h"
#include "store/namespace_store.h"

/* What a namespace holds, by status. */
static int count_tasks(struct batch *batch, struct str name, int64_t counts[STATUS_COUNT],
                       struct err *err)
{
    struct lane_count *lanes;
    uint32_t count;

    memset(counts, 0, STATUS_COUNT * sizeof *counts);
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->counts_load(batch->store, &batch->arena, &lanes, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(lanes[i].namespace_name, name))
            counts[lanes[i].status] += lanes[i].tasks;
    return 0;
}

static int make_view(struct batch *batch, const struct namespace_row *row, struct arena *arena,
                     struct namespace_view *view, struct err *err)
{
    int64_t counts[STATUS_COUNT];

    *view = (struct namespace_view){.row = *row};
    view->row.name = arena_str(arena, row->name);
    view->row.description = arena_str(arena, row->description);
    if (!row->deleting_at_us)
        return arena->failed ? err_no_memory(err) : 0;
    TRY(count_tasks(batch, row->name, counts, err));
    for (int i = 0; i < STATUS_COUNT; i++)
        view->left += counts[i];
    return arena->failed ? err_no_memory(err) : 0;
}

static int show(struct batch *batch, struct namespace_request *request,
                const struct namespace_row *row)
{
    struct err *err = &request->base.err;

    request->views = TRY_MEMORY(arena_alloc(request->base.arena, sizeof *request->views));
    request->count = 1;
    return make_view(batch, row, request->base.arena, request->views, err);
}

/* In the namespace itself, so that those who belong to it see it; before or after is NULL where
 * there was none, or where it is to go. */
static int note(struct batch *batch, const struct namespace_request *request, const char *action,
                const struct namespace_row *before, const struct namespace_row *after,
                struct err *err)
{
    return trail_note_in(batch, &request->base, request->row.name, action, "namespace",
                         request->row.name,
                         store_difference(&namespace_table, before, after, &batch->arena), err);
}

static int no_such(struct namespace_request *request)
{
    return err_set(&request->base.err, ERR_NOT_FOUND, "there is no namespace '" STR_FMT "'",
                   STR_ARG(request->row.name));
}

static int list(struct batch *batch, struct namespace_request *request)
{
    struct namespaces *known = &batch->engine->limits.namespaces;
    struct err *err = &request->base.err;
    struct namespace_state *state;
    uint32_t cursor = 0;

    if (batch->store->shared)
        TRY(namespaces_follow(batch, err));
    request->count = 0;
    request->views = TRY_MEMORY(arena_alloc_array(request->base.arena, map_count(&known->by_name),
                                                  sizeof *request->views));
    while ((state = map_next(&known->by_name, &cursor)) != NULL)
        if (!request->row.name.data || str_eq(request->row.name, state->row.name))
            TRY(make_view(batch, &state->row, request->base.arena,
                          &request->views[request->count++], err));
    return request->row.name.data && request->count == 0 ? no_such(request) : 0;
}

static int put_categories(struct batch *batch, struct str name, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    uint32_t count;
    const struct category *first = categories_first(&count);

    if (!catalog_here(batch->engine))
        return 0;
    TRY(verbs->lock(batch->store, err));
    for (uint32_t i = 0; i < count; i++) {
        struct category category = first[i];

        category.id = uuid7_new(&batch->engine->ids, batch->now_us);
        category.namespace_name = name;
        category.created_at_us = category.updated_at_us = batch->now_us;
        TRY(verbs->category_put(batch->store, &category, err));
    }
    catalog_forget(batch->engine);
    batch->news.catalog_changed = true;
    return 0;
}

static int keep(struct batch *batch, const struct namespace_row *row, struct err *err)
{
    TRY(namespaces_put(batch, row, err));
    return log_namespace_put(batch, row, err);
}

static int create(struct batch *batch, struct namespace_request *request)
{
    struct err *err = &request->base.err;
    struct namespace_state *state;
    struct namespace_row row;

    TRY(namespaces_find(batch, request->row.name, &state, err));
    if (state && state->row.deleting_at_us)
        return err_set_field(err, ERR_CONFLICT, "name", "the namespace '" STR_FMT "' is being "
                             "deleted; try again when it is gone", STR_ARG(state->row.name));
    if (state && !request->known_ok)
        return err_set_field(err, ERR_CONFLICT, "name", "there is a namespace '" STR_FMT
                             "' already", STR_ARG(state->row.name));
    if (map_count(&batch->engine->limits.namespaces.by_name) >= BOUND_NAMESPACES)
        return err_set(err, ERR_INVALID, "there are %d namespaces already", BOUND_NAMESPACES);
    namespace_init(&row, request->row.name);
    namespace_take(&row, &request->row, request->set);
    row.created_at_us = row.updated_at_us = batch->now_us;
    TRY(keep(batch, &row, err));
    if (!state)
        TRY(put_categories(batch, row.name, err));
    TRY(note(batch, request, "namespace.create", NULL, &row, err));
    return show(batch, request, &row);
}

static int find(struct batch *batch, struct namespace_request *request,
                struct namespace_row *row)
{
    struct namespace_state *state;

    if (batch->store->shared)
        TRY(namespaces_follow(batch, &request->base.err));
    TRY(namespaces_find(batch, request->row.name, &state, &request->base.err));
    if (!state)
        return no_such(request);
    *row = state->row;
    row->name = arena_str(request->base.arena, row->name);
    row->description = arena_str(request->base.arena, row->description);
    row->updated_at_us = batch->now_us > row->updated_at_us ? batch->now_us
                                                            : row->updated_at_us + 1;
    return request->base.arena->failed ? err_no_memory(&request->base.err) : 0;
}

static int update(struct batch *batch, struct namespace_request *request)
{
    struct namespace_row row, before;

    TRY(find(batch, request, &row));
    before = row;
    namespace_take(&row, &request->row, request->set);
    TRY(keep(batch, &row, &request->base.err));
    TRY(note(batch, request, "namespace.update", &before, &row, &request->base.err));
    return show(batch, request, &row);
}

/* "3 pending, 1 running": what has not ended. */
static bool name_open(const int64_t counts[STATUS_COUNT], int64_t plans, struct buf *out)
{
    for (enum status i = 0; i < STATUS_COUNT; i++)
        if (counts[i] > 0 && !status_ended(i))
            buf_format(out, "%s%lld %s", out->len ? ", " : "", (long long)counts[i],
                       status_word(i));
    if (plans > 0)
        buf_format(out, "%s%lld schedules and recurring patterns", out->len ? ", " : "",
                   (long long)plans);
    return out->len > 0;
}

static int delete(struct batch *batch, struct namespace_request *request)
{
    BUF_AUTO struct buf open = BUF_INIT(1024);
    struct err *err = &request->base.err;
    struct namespace_row row;
    int64_t counts[STATUS_COUNT], plans;
    bool there;

    if (str_is(request->row.name, TASK_DEFAULT_NAMESPACE))
        return err_set(err, ERR_CONFLICT, "the namespace '" TASK_DEFAULT_NAMESPACE
                       "' cannot be deleted");
    TRY(find(batch, request, &row));
    if (row.deleting_at_us)
        return show(batch, request, &row);
    if (batch->store->shared) /* nothing comes into it until this commits */
        TRY(batch->store->namespaces->hold(batch->store, row.name, true, &there, err));
    TRY(count_tasks(batch, row.name, counts, err));
    TRY(batch->store->namespaces->plans(batch->store, row.name, &plans, err));
    if (!request->purge && name_open(counts, plans, &open))
        return err_set(err, ERR_CONFLICT, "the namespace '" STR_FMT "' still has " STR_FMT
                       "; end and remove them first, or delete it with all of them (purge)",
                       STR_ARG(row.name), STR_ARG(buf_view(&open)));
    row.deleting_at_us = batch->now_us;
    TRY(keep(batch, &row, err));
    TRY(tokens_end_of(batch, &request->base, row.name, err));
    TRY(note(batch, request, request->purge ? "namespace.purge" : "namespace.delete", &row, NULL,
             err));
    chore_soon(batch->engine, CHORE_NAMESPACES, 0);
    return show(batch, request, &row);
}

int namespace_apply(struct batch *batch, struct request *base)
{
    struct namespace_request *request = (struct namespace_request *)base;

    switch (request->op) {
    case NAMESPACE_LIST:
        return list(batch, request);
    case NAMESPACE_CREATE:
        return create(batch, request);
    case NAMESPACE_UPDATE:
        return update(batch, request);
    case NAMESPACE_DELETE:
        break;
    }
    return delete(batch, request);
}
