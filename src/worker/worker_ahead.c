/* How many tasks are claimed ahead of the slots when the configuration does not say: as many as the
 * slots finish within a moment, judged by the last ones. A slow handler gets one task at a time, so
 * that none waits here that another worker could run; quick ones share claims, commits and round
 * trips. What was claimed ahead and finds all slots busy for longer than that is given back. Only
 * for functions: a process costs more than its claim. Everything here is called with the worker's
 * lock held. */
#include "base/clock.h"
#include "worker/process/control_line.h"
#include "worker/worker_int.h"

#define AHEAD_US (20 * CLOCK_MS_US)  /* of work; far below any intended delay */
#define AHEAD_PER_SLOT_MAX 64
#define AHEAD_TASKS_MAX 1024         /* over all slots */
#define STUCK_US (200 * CLOCK_MS_US) /* waited much longer than expected */
#define STUCK_LOOK_MS 100
#define MEAN_SHARE 16                /* the last sixteen or so count */

static uint32_t ahead_max(const struct worker *worker)
{
    uint32_t per_slot = AHEAD_TASKS_MAX / worker->config.slots;

    if (per_slot > AHEAD_PER_SLOT_MAX)
        per_slot = AHEAD_PER_SLOT_MAX;
    return worker->config.slots * (per_slot ? per_slot : 1);
}

uint32_t worker_ahead_init(struct worker *worker)
{
    const struct worker_config *config = &worker->config;

    worker->ahead.adaptive = config->batch == 0 && config->functions_count > 0;
    for (uint32_t i = 0; i < config->rules_count; i++)
        if (config->rules[i].command)
            worker->ahead.adaptive = false;
    worker->ahead.run_mean_us = AHEAD_US; /* until the first has shown what they take */
    worker->ahead.capacity = config->slots * (config->batch ? config->batch : 1);
    return worker->ahead.adaptive ? ahead_max(worker) : worker->ahead.capacity;
}

static void fit_capacity(struct worker *worker)
{
    int64_t per_slot = AHEAD_US / (worker->ahead.run_mean_us > 0 ? worker->ahead.run_mean_us : 1);
    uint32_t max = ahead_max(worker);

    if (per_slot < 1)
        per_slot = 1;
    worker->ahead.capacity =
        per_slot < max / worker->config.slots ? worker->config.slots * (uint32_t)per_slot : max;
}

void worker_ahead_ran(struct worker *worker, int64_t duration_us)
{
    if (!worker->ahead.adaptive)
        return;
    worker->ahead.run_mean_us += (duration_us - worker->ahead.run_mean_us) / MEAN_SHARE;
    fit_capacity(worker);
}

/* The first of those that wait has waited longest. */
void worker_ahead_give_back(struct worker *worker)
{
    const struct report release = worker_report(REPORT_RELEASE);
    struct run *run = worker->line.first;
    int64_t now_us = clock_boot_us();

    if (!worker->ahead.adaptive || !run || now_us - run->accepted_us < STUCK_US)
        return;
    worker->ahead.run_mean_us = STUCK_US;
    fit_capacity(worker);
    while ((run = worker->line.first) && now_us - run->accepted_us >= STUCK_US &&
           reporter_add(worker->reporter, &run->task, &release, true, false)) {
        worker->line.first = run->next;
        if (!run->next)
            worker->line.last = NULL;
        run->next = NULL;
        worker->line.count--;
        if (--run->claim->users == 0)
            worker_claim_release(worker, run->claim);
    }
}

int64_t worker_ahead_look_ms(const struct worker *worker)
{
    return worker->ahead.adaptive && worker->line.first ? STUCK_LOOK_MS : INT64_MAX;
}
