/* Does the store agree with itself? A check of `perdura verify` at a time, on a reader's thread:
 * counts, lines of ready tasks, who holds what, executions and their tasks. One that takes longer
 * than a reader may is left out for a while, so a large store is not read all day. Loop thread, but
 * for read_check. */
#include "server/figures/consistency.h"

#include "base/clock.h"
#include "store/check_store.h"

#include <stdlib.h>

#define CHECKS_MAX 32  /* of one store */
#define REST_ROUNDS 60 /* after a check that took too long */

struct consistency {
    struct server *server;
    struct loop_timer *timer;
    struct reader_job job;
    uint32_t next;              /* the check under way, or the next one */
    int64_t findings;           /* of the check under way; -1 = there is no such */
    bool failed;
    int64_t found[CHECKS_MAX];  /* by the last run of each */
    uint32_t rests[CHECKS_MAX];
    struct consistency_figures figures;
};

static void plan(struct consistency *consistency)
{
    loop_timer_set(consistency->timer,
                   consistency->server->settings->check_every_ms * CLOCK_MS_US);
}

static void sum_up(struct consistency *consistency)
{
    int64_t before = consistency->figures.found;

    consistency->figures.found = 0;
    for (uint32_t i = 0; i < CHECKS_MAX; i++)
        consistency->figures.found += consistency->found[i];
    if (consistency->figures.found > before)
        LOG(consistency->server->log, LOG_ERROR, "store.inconsistent",
            KI("findings", consistency->figures.found),
            KC("hint", "'perdura verify' names them"));
}

static void checked(struct reader_job *job)
{
    struct consistency *consistency =
        (struct consistency *)(void *)((char *)job - offsetof(struct consistency, job));
    uint32_t at = consistency->next++;

    job->run = NULL;

    if (job->err.code != ERR_NONE || consistency->failed) {
        consistency->rests[at] = REST_ROUNDS;
        consistency->figures.given_up++;
    } else if (consistency->findings < 0) {
        consistency->next = 0;
    } else {
        consistency->found[at] = consistency->findings;
        consistency->figures.done++;
        sum_up(consistency);
    }
    if (consistency->next == CHECKS_MAX)
        consistency->next = 0;
    server_work_ended(consistency->server);
}

static void read_check(struct reader_job *job, struct store_reader *reader, struct arena *scratch)
{
    struct consistency *consistency =
        (struct consistency *)(void *)((char *)job - offsetof(struct consistency, job));
    const struct check_verbs *check = consistency->server->store->verbs->checks;
    struct err err = {0};

    (void)scratch;
    consistency->failed = check->read_check(reader, consistency->next, &consistency->findings,
                                            &err) < 0;
}

static void tick(void *ctx)
{
    struct consistency *consistency = ctx;
    struct server *server = consistency->server;

    if (server->stopping)
        return;
    plan(consistency);
    if (consistency->rests[consistency->next] > 0) {
        consistency->rests[consistency->next]--;
        consistency->next = (consistency->next + 1) % CHECKS_MAX;
        return;
    }
    if (consistency->job.run) /* it is under way */
        return;
    consistency->job = (struct reader_job){.run = read_check, .done = checked};
    server->calls_open++;
    if (readers_submit(server->readers, READERS_LONG, &consistency->job))
        return;
    consistency->job.run = NULL;
    server_work_ended(server);
}

struct consistency *consistency_open(struct server *server, struct err *err)
{
    struct consistency *consistency = err_calloc(sizeof *consistency, err);

    if (!consistency)
        return NULL;
    consistency->server = server;
    consistency->timer = loop_timer_new(server->loop, tick, consistency);
    if (!consistency->timer) {
        err_no_memory(err);
        free(consistency);
        return NULL;
    }
    if (server->store->verbs->checks && server->settings->check_every_ms > 0)
        plan(consistency);
    return consistency;
}

void consistency_free(struct consistency *consistency)
{
    if (!consistency)
        return;
    loop_timer_free(consistency->timer);
    free(consistency);
}

const struct consistency_figures *consistency_figures(const struct consistency *consistency)
{
    return &consistency->figures;
}
