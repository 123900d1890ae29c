/* Reading for statistics and metrics: on a reader's thread first, also how many tasks there are of
 * each queue and type, which may be many; then the engine is asked. What could not be read is left
 * out, so that a server with a failing store still shows figures. */
#include "server/figures/stats_look.h"

#include "store/catalog_store.h"
#include "store/recovery_store.h"

static int read_names(struct api_call *call, struct store_reader *reader, struct stats_look *look)
{
    struct catalog_filter filter = {.namespace_name = look->about, .active = -1,
                                    .limit = EXECUTION_CATEGORIES_MAX};
    struct category *categories;

    TRY(call->server->store->verbs->catalog->read_categories(reader, &filter, call->arena,
                                                             &categories, &look->categories_count,
                                                             &call->err));
    look->categories = arena_alloc_array(call->arena, look->categories_count + 1,
                                         sizeof *look->categories);
    if (!look->categories)
        return call_no_memory(call);
    for (uint32_t i = 0; i < look->categories_count; i++)
        look->categories[i] = (struct execution_category){categories[i].id, categories[i].name};
    return 0;
}

static int count_errors(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                        struct stats_look *look)
{
    const struct store_verbs *verbs = call->server->store->verbs;
    struct catalog_filter filter = {.namespace_name = look->about, .active = 1, .type = -1,
                                    .errors_only = true,
                                    .limit = STATS_ERRORS_MAX};
    struct recovery_filter pending = {.namespace_name = look->about,
                                      .status = RECOVERY_PENDING, .method = -1,
                                      .limit = STATS_ERRORS_MAX};
    struct schedule *schedules;
    struct recurring *recurring;
    struct recovery_entry *entries;
    uint32_t count;

    TRY(verbs->catalog->read_schedules(reader, &filter, scratch, &schedules,
                                       &look->schedules_in_error, &call->err));
    TRY(verbs->catalog->read_recurring(reader, &filter, scratch, &recurring, &count, &call->err));
    look->schedules_in_error += count;
    return verbs->recovery->read_entries(reader, &pending, scratch, &entries,
                                         &look->recoveries_pending, &call->err);
}

/* What cannot be read here the queue reads itself. */
static void read_lanes(struct api_call *call, struct store_reader *reader, struct stats_look *look)
{
    const struct measure_verbs *verbs = call->server->store->verbs->measures;
    struct stats_request *request = &look->request;
    struct err err = {0};

    if (verbs->read_lanes && verbs->read_lanes(reader, call->arena, &request->lanes,
                                               &request->lanes_count, &err) < 0) {
        request->lanes = NULL;
        request->lanes_count = 0;
    }
}

static int read_store(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct stats_look *look = call->ctx;
    const struct measure_verbs *verbs = call->server->store->verbs->measures;
    int64_t since_us =
        engine_now_us(call->server->engine) - (EXECUTION_HOURS_SHOWN + 1) * EXECUTION_HOUR_US;

    read_lanes(call, reader, look);
    if (verbs->read_hours(reader, look->about, since_us, call->arena, &look->hours,
                          &look->hours_count, &call->err) < 0)
        look->hours_count = 0;
    else
        look->hours_known = true;
    if (!look->hours_known)
        return -(int)call->err.code;
    if (read_names(call, reader, look) < 0)
        look->categories_count = 0;
    else if (verbs->read_waits(reader, call->arena, &look->waits, &look->waits_count,
                               &call->err) < 0)
        look->waits_count = 0;
    else if (count_errors(call, reader, scratch, look) < 0)
        look->schedules_in_error = look->recoveries_pending = 0;
    else
        look->whole = true;
    return look->whole ? 0 : -(int)call->err.code;
}

struct chained {
    struct stats_look look;
    call_step *then;
};

static int ask_queue(struct api_call *call)
{
    struct chained *chained = call->ctx;

    call->err = (struct err){0};
    return call_submit(call, &chained->look.request.base, REQUEST_STATS, chained->then);
}

int stats_look(struct api_call *call, bool everything, call_step *then)
{
    struct chained *chained = CALL_NEW(call, sizeof *chained);

    call->everywhere = everything;
    chained->look.about = everything ? STR_NONE : call_namespace(call);
    chained->then = then;
    return call_try_look(call, read_store, ask_queue);
}

static void put_longest(struct map *waits, struct queue_wait *wait)
{
    const struct queue_wait *known = map_get(waits, wait->queue);

    if (!known || wait->since_us < known->since_us)
        (void)map_put(waits, wait->queue, wait); /* without memory it is left out */
}

void stats_look_map_waits(const struct stats_look *look, struct map *waits)
{
    for (uint32_t i = 0; i < look->waits_count; i++)
        put_longest(waits, &look->waits[i]);
}

/* Does a live worker of the queue take it? */
static bool is_offered(const struct queue_view *view, const struct queue_wait *wait,
                       bool in_category)
{
    if (view->types && settings_types_cover(view->types, view->types_count, wait->type))
        return true;
    for (const struct queue_offer *offer = view->offers; offer; offer = offer->next) {
        bool takes = !in_category;

        for (uint32_t i = 0; !takes && i < offer->categories_count; i++)
            takes = uuid_eq(&offer->categories[i], &wait->category_id);
        if (takes && settings_types_cover(offer->types, offer->types_count, wait->type))
            return true;
    }
    return false;
}

struct str stats_look_category(const struct stats_look *look, const struct queue_view *view,
                               const struct queue_wait *wait)
{
    if (!is_offered(view, wait, false))
        return STR_NONE;
    if (uuid_is_nil(&wait->category_id))
        return STR(CATEGORY_GENERAL);
    for (uint32_t i = 0; i < look->categories_count; i++)
        if (uuid_eq(&look->categories[i].id, &wait->category_id))
            return look->categories[i].name;
    return STR("(unknown)"); /* deleted, or beyond what is shown */
}

void stats_look_map_unclaimed(const struct stats_look *look, struct map *waits)
{
    const struct stats_request *request = &look->request;
    MAP_AUTO struct map views = MAP_INIT;

    for (uint32_t i = 0; i < request->queues_count; i++)
        (void)map_put(&views, request->queues[i].row.rule.name, &request->queues[i]);
    for (uint32_t i = 0; i < look->waits_count; i++) {
        const struct queue_view *view = map_get(&views, look->waits[i].queue);

        if (view && view->served && !view->takes_any && !is_offered(view, &look->waits[i], true))
            put_longest(waits, &look->waits[i]);
    }
}
