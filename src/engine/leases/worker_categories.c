/* Workers that take the tasks of some categories only. A worker names its categories; lanes and
 * tasks have ids. The names are looked up at each claim, in memory: a category may be made after
 * the worker registered, and a name may pass from one category to another. */
#include "base/json.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/plans/categories.h"

static bool names(const struct worker_state *worker, struct str category)
{
    return settings_types_name(worker->categories, worker->categories_count, category);
}

static int find_id(struct batch *batch, struct str within, struct str name,
                   const struct uuid **id, struct err *err)
{
    struct category_state *category;

    TRY(categories_known(batch, within, name, &category, err));
    *id = category ? &category->row.id : NULL;
    return 0;
}

int workers_categories(struct batch *batch, const struct worker_state *worker, struct str within,
                       const struct uuid **ids, uint32_t *count, struct err *err)
{
    uint32_t max = worker->categories_count * worker->namespaces_count + 1;
    struct uuid *found;

    *ids = NULL;
    *count = 0;
    if (worker->categories_count == 0)
        return 0;
    found = arena_alloc_array(&batch->arena, max, sizeof *found);
    *ids = TRY_MEMORY(found);
    if (names(worker, STR(CATEGORY_GENERAL)))
        found[(*count)++] = (struct uuid){{0}};
    for (uint32_t at = 0; at < worker->namespaces_count; at++) {
        struct str own = worker->namespaces[at];

        for (uint32_t i = 0; i < worker->categories_count; i++) {
            const struct uuid *id = NULL;

            if (!within.data || str_eq(within, own))
                TRY(find_id(batch, own, worker->categories[i], &id, err));
            if (id)
                found[(*count)++] = *id;
        }
    }
    return 0;
}

/* What cannot be read now is found when the task is claimed through the line. */
bool workers_take_category(struct batch *batch, const struct worker_state *worker,
                           const struct uuid *category_id)
{
    struct category_state *category;
    struct err err = {0};

    if (worker->categories_count == 0)
        return true;
    if (uuid_is_nil(category_id))
        return names(worker, STR(CATEGORY_GENERAL));
    return categories_get(batch, category_id, &category, &err) == 0 && category &&
           names(worker, category->row.name);
}

int workers_unknown_categories(struct batch *batch, const struct worker_state *worker,
                               struct arena *arena, struct str *unknown, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(1024 * 1024);

    if (!catalog_here(batch->engine)) /* one of several stores: another one has the categories */
        return 0;
    *unknown = STR_NONE;
    for (uint32_t i = 0; i < worker->categories_count; i++) {
        const struct uuid *id;

        TRY(find_id(batch, worker->row.namespace_name, worker->categories[i], &id, err));
        if (id || str_is(worker->categories[i], CATEGORY_GENERAL))
            continue;
        buf_byte(&text, text.len ? ',' : '[');
        json_write_string(&text, worker->categories[i]);
    }
    if (text.len == 0)
        return 0;
    buf_byte(&text, ']');
    *unknown = text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
    return unknown->data ? 0 : err_no_memory(err);
}
