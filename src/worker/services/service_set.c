/* What a configuration says of services: lines, and which types of tasks go to which. */
#include <stdlib.h>

#include "worker/services/service_int.h"

void service_set_free(struct service_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i < set->lines_count; i++) {
        struct service_line *line = &set->lines[i];

        if (line->probe && line->probe->easy)
            curl_multi_remove_handle(line->multi, line->probe->easy);
        probe_free(line->probe);
        grpc_line_free(line->grpc);
        if (line->multi)
            curl_multi_cleanup(line->multi);
    }
    arena_deinit(&set->arena);
    free(set);
}

static struct service_line *find_line(struct service_set *set, struct str name)
{
    for (uint32_t i = 0; set && i < set->lines_count; i++)
        if (str_eq(set->lines[i].rule->name, name))
            return &set->lines[i];
    return NULL;
}

/* A job's target in its type, else the first exact match, else the longest matching prefix. */
struct service_line *service_set_find(struct service_set *set, struct str type,
                                      struct str *method)
{
    const struct service_route *best = NULL;
    struct str name;

    if (service_type_parse(type, &name, method))
        return find_line(set, name);
    for (uint32_t i = 0; i < set->routes_count; i++) {
        const struct service_route *route = &set->routes[i];

        if (settings_type_matches(route->type, type) &&
            (!best || str_eq(route->type, type) ||
             (!str_eq(best->type, type) && route->type.len > best->type.len)))
            best = route;
    }
    *method = best ? best->method : STR_NONE;
    return best ? best->line : NULL;
}

static int fill_routes(struct service_set *set, const struct settings *settings, struct err *err)
{
    set->routes = TRY_MEMORY(arena_alloc_array(&set->arena, settings->handlers_count + 1,
                                               sizeof *set->routes));
    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        if (rule->service.data)
            set->routes[set->routes_count++] = (struct service_route){
                rule->type, rule->method, find_line(set, rule->service)};
    }
    return 0;
}

/* "service:NAME/" and all methods, then the types of handlers. */
static int fill_types(struct service_set *set, struct err *err)
{
    struct str *all = TRY_MEMORY(arena_alloc_array(
        &set->arena, set->lines_count + set->routes_count + 1, sizeof *all));

    set->types = all;
    for (uint32_t i = 0; i < set->lines_count; i++) {
        struct service_line *line = &set->lines[i];

        line->types = all + set->types_count;
        all[set->types_count++] = service_type(line->rule->name, STR("*"), &set->arena);
        for (uint32_t r = 0; r < set->routes_count; r++)
            if (set->routes[r].line == line)
                all[set->types_count++] = set->routes[r].type;
        line->types_count = (uint32_t)(all + set->types_count - line->types);
    }
    if (set->types_count > BOUND_CLAIM_TYPES)
        return err_set(err, ERR_INVALID, "a worker has at most %d services and handlers of them",
                       BOUND_CLAIM_TYPES);
    return set->arena.failed ? err_no_memory(err) : 0;
}

static struct service_known *known_of(struct service_pool *pool, struct str name)
{
    struct service_known *known = pool->known;

    while (known && !str_is(name, known->name))
        known = known->next;
    if (known)
        return known;
    known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    memcpy(known->name, name.data, name.len);
    known->next = pool->known;
    pool->known = known;
    return known;
}

/* What is known of a service outlives a change of its rules. */
static void take_over(struct service_line *line, const struct service_line *before)
{
    if (!before)
        return;
    if (!service_has_health(line->rule))
        line->probe_due_us = INT64_MAX; /* it was looked at */
    line->breaker = before->breaker;
    line->breaker.probing = false;
    line->not_before_us = before->not_before_us;
    line->heard_us = before->heard_us;
    line->told_us = before->told_us;
    line->bucket = before->bucket;
}

static int fill(struct service_set *set, struct service_pool *pool,
                const struct settings *settings, struct err *err)
{
    set->lines = TRY_MEMORY(arena_alloc_array(&set->arena, settings->pool.services_count + 1,
                                              sizeof *set->lines));
    for (uint32_t i = 0; i < settings->pool.services_count; i++) {
        struct service_line *line = &set->lines[set->lines_count];

        *line = (struct service_line){.pool = pool, .rule = &settings->pool.services[i],
                                      .timer_us = INT64_MAX};
        take_over(line, find_line(set->older, line->rule->name));
        line->known = TRY_MEMORY(known_of(pool, line->rule->name));
        line->figures = &line->known->figures;
        line->multi = TRY_MEMORY(curl_multi_init());
        set->lines_count++;
        TRY(service_poll_attach(line, err));
        if (service_url_is_grpc(line->rule->url))
            TRY(grpc_line_open(line, err));
    }
    TRY(fill_routes(set, settings, err));
    return fill_types(set, err);
}

struct service_set *service_set_new(struct service_pool *pool, const struct settings *settings,
                                    struct err *err)
{
    struct service_set *set = err_calloc(sizeof *set, err);

    if (!set)
        return NULL;
    set->arena = ARENA_INIT(0);
    set->older = pool->set;
    if (fill(set, pool, settings, err) == 0)
        return set;
    service_set_free(set);
    return NULL;
}
