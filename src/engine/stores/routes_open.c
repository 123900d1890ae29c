/* Opening and closing a queue of several parts: which stores the settings name, where queues of
 * tasks are, one queue per part. Before and after the parts' threads, never beside them. */
#include "base/hash.h"
#include "core/task/worker_id.h"
#include "core/queue_name.h"
#include "engine/access/makers.h"
#include "engine/engine_state.h"
#include "engine/stores/routes_front.h"
#include "engine/stores/routes_int.h"
#include "engine/writers.h"

#include <stdlib.h>
#include <unistd.h>

static uint32_t store_of(const struct settings *settings, struct str queue,
                         const struct str *stores, uint32_t count)
{
    for (uint32_t i = 0; i < settings->queues_count; i++)
        for (uint32_t s = 0; str_eq(settings->queues[i].name, queue) && s < count; s++)
            if (str_eq(settings->queues[i].store, stores[s]))
                return s;
    return 0;
}

int routes_stores(const struct settings *settings, struct str stores[ROUTES_MAX], uint32_t *count,
                  struct err *err)
{
    stores[0] = settings->store;
    *count = 1;
    for (uint32_t i = 0; i < settings->queues_count; i++) {
        struct str store = settings->queues[i].store;
        uint32_t at = 0;

        if (str_empty(store))
            continue;
        while (at < *count && !str_eq(stores[at], store))
            at++;
        if (at == ROUTES_MAX)
            return err_set(err, ERR_INVALID, "the queues name more than %d stores", ROUTES_MAX);
        stores[at] = store;
        *count = at == *count ? at + 1 : *count;
    }
    for (uint32_t i = 0; i < settings->queues_count; i++) {
        const struct queue_rule *rule = &settings->queues[i];

        if (!str_empty(rule->dead_letter_queue) &&
            store_of(settings, rule->dead_letter_queue, stores, *count) !=
                store_of(settings, rule->name, stores, *count))
            return err_set(err, ERR_INVALID, "the queue '" STR_FMT "' and its dead_letter_queue '"
                           STR_FMT "' must live in the same store", STR_ARG(rule->name),
                           STR_ARG(rule->dead_letter_queue));
    }
    return 0;
}

/* ---- what the parts tell ---- */

static void on_notes(void *ctx, const struct task_note *notes, uint32_t count)
{
    const struct part *part = ctx;

    part->given.on_notes(part->given.ctx, notes, count);
}

static void on_spans(void *ctx, const struct span *spans, uint32_t count)
{
    const struct part *part = ctx;

    part->given.on_spans(part->given.ctx, spans, count);
}

static void on_outbox(void *ctx)
{
    const struct part *part = ctx;

    part->given.on_outbox(part->given.ctx);
}

/* The first store is the node's own: without it the node ends. With another only its queues do,
 * until the next start recovers it. */
static void on_fatal(void *ctx, const struct err *reason)
{
    struct part *part = ctx;

    if (part->index == 0 && part->given.on_fatal) {
        part->given.on_fatal(part->given.ctx, reason);
        return;
    }
    atomic_store(&part->failed, true);
    LOG(part->given.log, LOG_ERROR, "store.routed_failed", KC("store", part->where),
        KC("reason", reason->text));
}

static bool part_lives_here(void *ctx, struct str queue)
{
    const struct part *part = ctx;

    return routes_owner(part->routes, queue) == part->index;
}

/* ---- opening ---- */

static int place_add(struct routes *routes, struct str queue, uint32_t owner, uint32_t mask,
                     struct err *err)
{
    struct place *place;

    queue = queue_name_plain(queue);
    place = map_get(&routes->places, queue);
    if (place) {
        place->mask |= mask;
        return 0;
    }
    place = TRY_MEMORY(calloc(1, sizeof *place + queue.len + 1));
    place->owner = owner;
    place->mask = mask | 1u << owner;
    memcpy(place->name, queue.data, queue.len);
    if (map_put(&routes->places, str_span(place->name, queue.len), place) == 0)
        return 0;
    free(place);
    return err_no_memory(err);
}

static int place_configured(struct routes *routes, const struct route_part *parts, uint32_t count,
                            struct err *err)
{
    const struct settings *settings = parts[0].config.settings;

    for (uint32_t i = 0; i < settings->queues_count; i++)
        for (uint32_t p = 1; p < count; p++)
            if (str_eq(settings->queues[i].store, parts[p].where))
                TRY(place_add(routes, settings->queues[i].name, p, 0, err));
    return 0;
}

/* Queues a store has tasks of from before they were routed elsewhere: they are worked off there.
 * Nothing writes to it yet. */
static int place_found(struct routes *routes, struct store *store, uint32_t part, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct lane_count *lanes;
    uint32_t count;
    int rc = store->verbs->begin(store, err);

    if (rc == 0)
        rc = store->verbs->counts_load(store, &arena, &lanes, &count, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (lanes[i].tasks > 0 && routes_owner(routes, lanes[i].queue) != part)
            rc = place_add(routes, lanes[i].queue, routes_owner(routes, lanes[i].queue),
                           1u << part, err);
    store->verbs->rollback(store);
    return rc;
}

const struct settings *routes_part_settings(struct part *part, const struct settings *settings,
                                            struct err *err)
{
    struct settings *own = arena_alloc(&part->arena, sizeof *own);

    if (own)
        *own = *settings;
    if (own && part->index && own->retention.archive.data)
        own->retention.archive = arena_format(&part->arena, STR_FMT "-%u",
                                              STR_ARG(own->retention.archive), part->index + 1);
    if (part->arena.failed)
        err_no_memory(err);
    return part->arena.failed ? NULL : own;
}

static int open_part(struct routes *routes, const struct route_part *given, struct err *err)
{
    struct part *part = &routes->parts[routes->count];
    struct engine_config config = given->config;

    *part = (struct part){.routes = routes, .index = routes->count, .given = given->config};
    store_shown(given->where, part->where, sizeof part->where);
    config.settings = routes_part_settings(part, given->config.settings, err);
    if (!config.settings)
        return -(int)err->code;
    config.node_id = routes->node_id;
    config.lives_here = part_lives_here;
    config.measure_names = routes->names;
    config.makers = routes->makers;
    config.makers_elsewhere = part->index > 0;
    config.on_notes = given->config.on_notes ? on_notes : NULL;
    config.on_spans = given->config.on_spans ? on_spans : NULL;
    config.on_outbox = given->config.on_outbox ? on_outbox : NULL;
    config.on_fatal = on_fatal;
    config.ctx = part;
    TRY(engine_open(&part->engine, given->store, &config, err));
    routes->count++;
    return 0;
}

static void name_node(struct routes *routes)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char hostname[64] = "";

    gethostname(hostname, sizeof hostname - 1);
    snprintf(routes->node_id, sizeof routes->node_id, STR_FMT,
             STR_ARG(worker_id_new(str_of(hostname), getpid(), &arena)));
}

static void routes_free(struct routes *routes)
{
    if (!routes)
        return;
    free((void *)routes->hints);
    measure_names_free(routes->names);
    makers_free(routes->makers);
    free(routes);
}

static struct routes *routes_new(struct err *err)
{
    struct routes *routes = calloc(1, sizeof *routes);

    if (!routes)
        return NULL;
    routes->hints = calloc(ROUTES_HINTS, sizeof *routes->hints);
    routes->names = measure_names_new();
    routes->makers = makers_new(err);
    if (routes->hints && routes->names && routes->makers)
        return routes;
    routes_free(routes);
    return NULL;
}

int routes_open(struct engine **out, const struct route_part *parts, uint32_t count,
                struct err *err)
{
    struct engine *front = calloc(1, sizeof *front);
    struct routes *routes = routes_new(err);
    int rc = 0;

    ASSERT(count >= 2 && count <= ROUTES_MAX);
    if (!front || !routes) {
        free(front);
        routes_free(routes);
        return err_no_memory(err);
    }
    front->routes = routes;
    front->settings = parts[0].config.settings;
    atomic_store(&front->configured, front->settings);
    front->store = parts[0].store;
    front->config.zones = parts[0].config.zones;
    pthread_mutex_init(&routes->mutex, NULL);
    hash_random(&routes->seed, sizeof routes->seed);
    name_node(routes);
    rc = redact_new(&front->redact, front->settings->logs.redact,
                    front->settings->logs.redact_count, err);
    if (rc == 0)
        rc = place_configured(routes, parts, count, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        rc = place_found(routes, parts[i].store, i, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) /* which ask for places from now on */
        rc = open_part(routes, &parts[i], err);
    if (rc < 0) {
        routes_close(front);
        return rc;
    }
    *out = front;
    return 0;
}

/* First all threads end: until then answers of one part may lead to requests to another. */
void routes_close(struct engine *front)
{
    struct routes *routes = front->routes;
    uint32_t cursor = 0;
    struct place *place;

    for (uint32_t i = 0; i < routes->count; i++) {
        writers_end(routes->parts[i].engine);
        engine_end_thread(routes->parts[i].engine);
    }
    for (uint32_t i = 0; i < routes->count; i++)
        engine_close(routes->parts[i].engine);
    for (uint32_t i = 0; i < ROUTES_MAX; i++)
        arena_deinit(&routes->parts[i].arena);
    while ((place = map_next(&routes->places, &cursor)) != NULL)
        free(place);
    map_deinit(&routes->places);
    pthread_mutex_destroy(&routes->mutex);
    routes_free(routes);
    redact_free(front->redact);
    free(front);
}
