/* Guests of a service's line. Takes the pool's lock. */
#include "worker/services/service_guest.h"

#include "base/clock.h"
#include "base/thread.h"
#include "worker/services/service_int.h"

#define FULL_WAIT_US (50 * CLOCK_MS_US) /* the end of another call is not announced */

static struct service_line *find(struct service_pool *pool, struct str service)
{
    for (uint32_t i = 0; i < pool->set->lines_count; i++)
        if (str_eq(pool->set->lines[i].rule->name, service))
            return &pool->set->lines[i];
    return NULL;
}

bool service_guest_enter(struct service_pool *pool, struct str service,
                         struct service_guest *guest, int64_t *again_us, bool *down)
{
    int64_t now_us = clock_boot_us(), opens_us;
    struct service_line *line;
    bool give_back;

    *guest = (struct service_guest){.began_us = now_us};
    LOCKED(&pool->lock);
    line = find(pool, service);
    if (!line)
        return true;
    if (line_room(line, now_us) > 0 && line_begin(line, now_us, &give_back)) {
        line->held++;
        guest->line = line;
        return true;
    }
    opens_us = line_opens_us(line, now_us);
    *again_us = opens_us == INT64_MAX ? now_us + FULL_WAIT_US : opens_us;
    *down = breaker_is_open(&line->breaker);
    return false;
}

static void count(struct service_line *line, const struct service_guest *guest,
                  const struct service_guest_end *end)
{
    struct service_figures *figures = line->figures;
    int64_t now_us = clock_wall_us();

    service_figures_add(figures, end->method, end->result, clock_boot_us() - guest->began_us,
                        now_us);
    figures->succeeded = !end->verdict.is_down;
    figures->failed = end->verdict.is_down;
    if (!end->error)
        return;
    snprintf(figures->last_error, sizeof figures->last_error, "%s", end->error);
    figures->last_error_us = now_us;
}

/* The worker, if what it may claim has changed. */
static struct worker *leave(struct service_line *line, const struct service_guest *guest,
                            const struct service_guest_end *end, bool *news)
{
    int64_t now_us = clock_boot_us();
    bool was_open, was_full;

    LOCKED(&line->pool->lock);
    was_open = breaker_is_open(&line->breaker);
    was_full = line_room(line, now_us) == 0;
    line->held--;
    line_end(line, end->is_unknown ? NULL : &end->verdict, now_us);
    if (!end->is_unknown)
        count(line, guest, end);
    if (end->wait_ms > 0)
        line_wait(line, end->wait_ms, now_us);
    *news = end->wait_ms > 0 || was_open != breaker_is_open(&line->breaker);
    return *news || was_full ? line->pool->worker : NULL;
}

void service_guest_leave(struct service_guest *guest, const struct service_guest_end *end)
{
    struct worker *worker;
    bool news;

    if (!guest->line)
        return;
    worker = leave(guest->line, guest, end, &news);
    guest->line = NULL;
    if (worker)
        worker_dispatch_room(worker);
    if (worker && news)
        worker_dispatch_beat(worker);
}
