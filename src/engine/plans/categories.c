/* The catalog as memory knows it: categories, what jobs wait for each other, and of schedules what
 * their runs need. Read when it is needed for the first time and again after a change: our own, one
 * another node tells of, or one found by the version when a decision must not miss it (an end that
 * starts another job). What was handed out holds until the batch ends. */
#include "engine/plans/categories.h"

#include "core/queue_name.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/catalog_store.h"

#include <stdlib.h>

#define SCHEDULES_KNOWN_MAX 10000 /* about 1 MiB; then they are read again */

bool catalog_here(const struct engine *engine)
{
    return engine->config.zones != NULL;
}

void catalog_doubt(struct engine *engine)
{
    engine->plans.catalog.doubted = true;
}

void catalog_forget(struct engine *engine)
{
    engine->plans.catalog.known = false;
}

/* What this batch may still look at lives as long as the batch. */
static void cache_clear(struct catalog_cache *cache, struct arena *keeper)
{
    map_deinit(&cache->names);
    map_deinit(&cache->ids);
    map_deinit(&cache->schedules);
    if (keeper)
        arena_adopt(keeper, &cache->arena);
    else
        arena_deinit(&cache->arena);
    *cache = (struct catalog_cache){.known = false};
}

void catalog_deinit(struct engine *engine)
{
    cache_clear(&engine->plans.catalog, NULL);
}

/* What cannot be read in its configuration is off: it was checked when it was taken. */
static int add_category(struct batch *batch, struct category_state *state, struct err *err)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    struct err why = {0};
    struct str full;

    TRY(category_rules_read(state->row.configuration, &cache->arena, &state->rules, err));
    if (window_parse(state->rules.allowed_windows, &state->windows, &why) < 0) {
        state->windows.count = 0;
        LOG(batch->engine->log, LOG_WARN, "category.windows_unreadable", KC("reason", why.text));
    }
    full = queue_name_full(state->row.namespace_name, state->row.name, &cache->arena);
    TRY_MEMORY(full.data && map_put(&cache->names, full, state) == 0 &&
               map_put(&cache->ids, uuid_bytes(&state->row.id), state) == 0);
    return 0;
}

static int by_job(const void *a, const void *b)
{
    const struct job_dependency *left = a, *right = b;

    return memcmp(left->job_id.bytes, right->job_id.bytes, sizeof left->job_id.bytes);
}

static int by_parent(const void *a, const void *b)
{
    const struct job_dependency *const *left = a, *const *right = b;

    return memcmp((*left)->depends_on_job_id.bytes, (*right)->depends_on_job_id.bytes,
                  sizeof (*left)->depends_on_job_id.bytes);
}

static int sort_edges(struct catalog_cache *cache, struct err *err)
{
    cache->parents = TRY_MEMORY(arena_alloc_array(&cache->arena, cache->edges_count,
                                                  sizeof *cache->parents));
    if (cache->edges_count == 0)
        return 0;
    qsort(cache->edges, cache->edges_count, sizeof *cache->edges, by_job);
    for (uint32_t i = 0; i < cache->edges_count; i++)
        cache->parents[i] = &cache->edges[i];
    qsort(cache->parents, cache->edges_count, sizeof *cache->parents, by_parent);
    return 0;
}

/* The place of the first edge that is not before the id. */
static uint32_t first_edge(const struct catalog_cache *cache, bool parents, const struct uuid *id)
{
    uint32_t low = 0, high = cache->edges_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct uuid *at = parents ? &cache->parents[middle]->depends_on_job_id
                                        : &cache->edges[middle].job_id;

        if (memcmp(at->bytes, id->bytes, sizeof at->bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct job_dependency *edges_of(struct batch *batch, const struct uuid *job_id, uint32_t *count)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    uint32_t first = first_edge(cache, false, job_id);

    *count = 0;
    while (first + *count < cache->edges_count &&
           uuid_eq(&cache->edges[first + *count].job_id, job_id))
        ++*count;
    return *count ? cache->edges + first : NULL;
}

struct job_dependency **edges_on(struct batch *batch, const struct uuid *job_id, uint32_t *count)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    uint32_t first = first_edge(cache, true, job_id);

    *count = 0;
    while (first + *count < cache->edges_count &&
           uuid_eq(&cache->parents[first + *count]->depends_on_job_id, job_id))
        ++*count;
    return *count ? cache->parents + first : NULL;
}

static int read_catalog(struct batch *batch, struct err *err)
{
    const struct catalog_verbs *verbs = batch->store->verbs->catalog;
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    struct category_state *states;
    struct category *rows;
    uint32_t count;

    cache_clear(cache, &batch->arena);
    if (batch->store->shared)
        TRY(verbs->version(batch->store, &cache->version, err));
    TRY(verbs->categories_load(batch->store, &cache->arena, &rows, &count, err));
    TRY(verbs->dependencies_load(batch->store, &cache->arena, &cache->edges, &cache->edges_count,
                                 err));
    states = arena_alloc_array(&cache->arena, count, sizeof *states);
    TRY_MEMORY(states && !cache->arena.failed);
    TRY(sort_edges(cache, err));
    for (uint32_t i = 0; i < count; i++) {
        states[i].row = rows[i];
        TRY(add_category(batch, &states[i], err));
    }
    cache->known = true;
    cache->looked_in = batch->number;
    return 0;
}

int catalog_version(struct batch *batch, int64_t *version, struct err *err)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;

    TRY(batch->store->verbs->catalog->version(batch->store, version, err));
    if (*version != cache->version)
        cache->known = false;
    cache->doubted = false;
    cache->looked_in = batch->number;
    return 0;
}

int catalog_look(struct batch *batch, struct err *err)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    int64_t version;

    if (cache->known && batch->store->shared && cache->looked_in != batch->number)
        TRY(catalog_version(batch, &version, err));
    return cache->known ? 0 : read_catalog(batch, err);
}

/* For what may be a moment behind other nodes. */
static int ensure(struct batch *batch, struct err *err)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;

    if (!cache->known || (cache->doubted && batch->store->shared))
        return catalog_look(batch, err);
    return 0;
}

/* Categories have full names, as queues do. */
static int known(struct batch *batch, struct str namespace_name, struct str name,
                 struct category_state **state, struct err *err)
{
    name = queue_name_full(namespace_name, name, &batch->arena);
    TRY_MEMORY(name.data);
    *state = map_get(&batch->engine->plans.catalog.names, name);
    return 0;
}

int categories_known(struct batch *batch, struct str namespace_name, struct str name,
                     struct category_state **state, struct err *err)
{
    *state = NULL;
    if (!catalog_here(batch->engine))
        return 0;
    TRY(ensure(batch, err));
    return known(batch, namespace_name, name, state, err);
}

int categories_find(struct batch *batch, struct str namespace_name, struct str name,
                    struct category_state **state, struct err *err)
{
    TRY(categories_known(batch, namespace_name, name, state, err));
    if (*state || !catalog_here(batch->engine) || !batch->store->shared)
        return 0;
    TRY(catalog_look(batch, err)); /* another node may have made it just now */
    return known(batch, namespace_name, name, state, err);
}

int categories_get(struct batch *batch, const struct uuid *id, struct category_state **state,
                   struct err *err)
{
    *state = NULL;
    if (!catalog_here(batch->engine))
        return 0;
    TRY(ensure(batch, err));
    *state = map_get(&batch->engine->plans.catalog.ids, uuid_bytes(id));
    if (*state || !batch->store->shared)
        return 0;
    TRY(catalog_look(batch, err)); /* as in categories_find; at most once in a batch */
    *state = map_get(&batch->engine->plans.catalog.ids, uuid_bytes(id));
    return 0;
}

int category_of_job(struct batch *batch, const struct job *job, struct category_state **state,
                    struct err *err)
{
    bool general = uuid_is_nil(&job->category_id);

    TRY(general ? categories_find(batch, job->namespace_name, STR(CATEGORY_GENERAL), state, err)
                : categories_get(batch, &job->category_id, state, err));
    if (!*state)
        return err_set_field(err, ERR_INVALID, "category", "the category of job '" STR_FMT
                             "' is not there; give it another one", STR_ARG(job->name));
    return 0;
}

int schedules_know(struct batch *batch, const struct uuid *id, struct schedule_known **known,
                   struct err *err)
{
    struct catalog_cache *cache = &batch->engine->plans.catalog;
    ARENA_AUTO struct arena page = ARENA_INIT(0);
    struct schedule *schedule = NULL;
    int rc;

    TRY(ensure(batch, err));
    *known = map_get(&cache->schedules, uuid_bytes(id));
    if (*known)
        return 0;
    if (map_count(&cache->schedules) >= SCHEDULES_KNOWN_MAX)
        TRY(read_catalog(batch, err));
    rc = batch->store->verbs->catalog->schedules_load(batch->store, id, 1, &page, &schedule, err);
    *known = rc == 0 ? arena_alloc(&cache->arena, sizeof **known) : NULL;
    if (*known) {
        (*known)->id = *id;
        (*known)->timezone = schedule ? arena_str(&cache->arena, schedule->timezone) : STR_NONE;
        (*known)->overlap = schedule ? schedule->overlap : OVERLAP_ALLOW;
    }
    if (rc == 0 && (!*known || cache->arena.failed || page.failed ||
                    map_put(&cache->schedules, uuid_bytes(&(*known)->id), *known) < 0))
        rc = err_no_memory(err);
    return rc;
}
