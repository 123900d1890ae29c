#include "server/figures/services_heard.h"

#include <stdlib.h>

#include "base/clock.h"
#include "core/bounds.h"
#include "core/queue_name.h"

#define HEARD_MAX 256          /* services */
#define NAMESPACE_HEARD_MAX 64 /* ... of one namespace */
#define CALLERS_MAX 1024       /* of a service */
#define KEPT_US (24 * 3600 * CLOCK_SECOND_US)
#define MS_US CLOCK_MS_US

/* A worker that calls the service. */
struct caller_heard {
    struct caller_heard *next;
    int64_t heard_us; /* boot time */
    int64_t serial;
    const char *status;
    int64_t in_flight, concurrency;
    int64_t down_since_us, next_try_us, wait_until_us; /* wall clock */
    char worker[];
};

struct service_heard {
    struct service_heard *next;
    struct caller_heard *callers;
    uint32_t callers_count;
    int64_t heard_us;
    struct service_figures figures;
    char *url; /* NULL = unknown */
    char namespace_name[NAMESPACE_BYTES_MAX + 1];
    char name[BOUND_SERVICE_BYTES + 1];
};

static void drop_callers(struct service_heard *service, int64_t before_us)
{
    struct caller_heard **link = &service->callers;

    while (*link) {
        struct caller_heard *caller = *link;

        if (caller->heard_us >= before_us) {
            link = &caller->next;
            continue;
        }
        *link = caller->next;
        service->callers_count--;
        free(caller);
    }
}

static void drop(struct services_heard *heard, struct service_heard **link)
{
    struct service_heard *service = *link;

    *link = service->next;
    heard->count--;
    drop_callers(service, INT64_MAX);
    free(service->url);
    free(service);
}

/* The list has the one heard of last at its head, so the last one that fits is the oldest. */
static struct service_heard **oldest(struct services_heard *heard, struct str within,
                                     uint32_t *count)
{
    struct service_heard **found = NULL;

    *count = 0;
    for (struct service_heard **link = &heard->first; *link; link = &(*link)->next)
        if (!within.data || str_is(within, (*link)->namespace_name)) {
            found = link;
            ++*count;
        }
    return found;
}

/* With a place for one more; one that workers still call keeps its own. */
static bool make_room(struct services_heard *heard, struct str within, int64_t now_us,
                      int64_t lease_us)
{
    uint32_t count;
    struct service_heard **link = oldest(heard, within, &count);

    if (count < NAMESPACE_HEARD_MAX && heard->count < HEARD_MAX)
        return true;
    if (count < NAMESPACE_HEARD_MAX)
        link = oldest(heard, STR_NONE, &count);
    if (!link || (*link)->heard_us >= now_us - lease_us)
        return false;
    drop(heard, link);
    return true;
}

/* It goes to the head of the list. NULL = there is no room. */
static struct service_heard *find(struct services_heard *heard, struct str within, struct str name,
                                  int64_t now_us, int64_t lease_us)
{
    struct service_heard **link = &heard->first, *service;

    while (*link && !(str_is(within, (*link)->namespace_name) && str_is(name, (*link)->name)))
        link = &(*link)->next;
    service = *link;
    if (service) {
        *link = service->next;
    } else {
        if (within.len > NAMESPACE_BYTES_MAX || name.len > BOUND_SERVICE_BYTES ||
            !make_room(heard, within, now_us, lease_us))
            return NULL;
        service = calloc(1, sizeof *service);
        if (!service)
            return NULL;
        memcpy(service->namespace_name, within.data, within.len);
        memcpy(service->name, name.data, name.len);
        heard->count++;
    }
    service->next = heard->first;
    heard->first = service;
    service->heard_us = now_us;
    return service;
}

static struct caller_heard *find_caller(struct service_heard *service, struct str worker)
{
    struct caller_heard *caller = service->callers;

    while (caller && !str_is(worker, caller->worker))
        caller = caller->next;
    if (caller || service->callers_count == CALLERS_MAX)
        return caller;
    caller = calloc(1, sizeof *caller + worker.len + 1);
    if (!caller)
        return NULL;
    memcpy(caller->worker, worker.data, worker.len);
    caller->serial = -1;
    caller->next = service->callers;
    service->callers = caller;
    service->callers_count++;
    return caller;
}

static void put(struct service_heard *service, struct caller_heard *caller,
                const struct service_told *told, int64_t serial)
{
    int64_t wall_us = clock_wall_us();
    bool again = caller->serial == serial;
    bool same = service->url && str_is(told->url, service->url);

    if (told->url.len && !same) {
        free(service->url);
        service->url = strndup(told->url.data, told->url.len);
    }
    caller->heard_us = service->heard_us;
    caller->serial = serial;
    caller->status = told->status;
    caller->in_flight = told->in_flight;
    caller->concurrency = told->concurrency;
    caller->down_since_us = told->is_down ? wall_us - told->down_ms * MS_US : 0;
    caller->next_try_us = told->is_down ? wall_us + told->next_try_ms * MS_US : 0;
    caller->wait_until_us = told->wait_ms > 0 ? wall_us + told->wait_ms * MS_US : 0;
    if (!again)
        service_told_count(told, wall_us, &service->figures);
}

void services_heard_put(struct services_heard *heard, struct str namespace_name, struct str worker,
                        const struct services_told *told, int64_t lease_us)
{
    int64_t now_us = clock_boot_us();
    uint32_t count;
    struct service_heard **link;

    for (uint32_t i = 0; i < told->count; i++) {
        struct service_heard *service = find(heard, namespace_name, told->list[i].name, now_us,
                                             lease_us);
        struct caller_heard *caller;

        if (!service)
            continue;
        drop_callers(service, now_us - lease_us);
        caller = find_caller(service, worker);
        if (caller)
            put(service, caller, &told->list[i], told->serial);
    }
    link = oldest(heard, STR_NONE, &count);
    if (link && (*link)->heard_us < now_us - KEPT_US)
        drop(heard, link);
}

uint32_t services_heard_count(const struct services_heard *heard)
{
    return heard->count;
}

bool services_heard_next(const struct services_heard *heard, const struct service_heard **at,
                         int64_t lease_us, struct str *namespace_name, struct service_view *view)
{
    const struct service_heard *service = *at ? (*at)->next : heard->first;
    int64_t now_us = clock_boot_us();

    if (!service)
        return false;
    *at = service;
    *namespace_name = str_of(service->namespace_name);
    *view = (struct service_view){.name = str_of(service->name),
                                  .url = service->url ? str_of(service->url) : STR(""),
                                  .status = "unknown",
                                  .figures = service->figures};
    for (const struct caller_heard *caller = service->callers; caller; caller = caller->next) {
        struct service_view one = {.status = caller->status,
                                   .down_since_us = caller->down_since_us,
                                   .next_try_us = caller->next_try_us,
                                   .wait_until_us = caller->wait_until_us,
                                   .in_flight = caller->in_flight,
                                   .concurrency = caller->concurrency};

        if (caller->heard_us >= now_us - lease_us)
            service_view_merge(view, &one);
    }
    return true;
}

void services_heard_deinit(struct services_heard *heard)
{
    while (heard->first)
        drop(heard, &heard->first);
}
