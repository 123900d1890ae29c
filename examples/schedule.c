/* Work that comes back by itself: a job, a schedule, a handler. Each planned instant is run once,
 * also when the program was killed in between.
 *     cc schedule.c -o schedule $(pkg-config --cflags --libs perdura) && ./schedule [STORE|URL]
 * Kill it and start it again: the schedule is still there, and what was due meanwhile is made up
 * for (within its misfire_grace_ms all of it, after that the last instant). */
#include <perdura.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define TICKS 3

static int tick(struct pd_task *task, void *ctx)
{
    printf("tick of %s with %s\n", pd_task_type(task), pd_task_payload(task));
    fflush(stdout);
    atomic_fetch_add((atomic_int *)ctx, 1);
    return PD_DONE;
}

/* Makes job and schedule, unless an earlier run has. */
static int plan(struct pd *pd)
{
    char schedule[PD_ID_BYTES];
    int64_t times_us[3];
    size_t count = 3;
    char *job;

    if (pd_plan_get(pd, PD_PLAN_JOB, "example:tick", &job) == PD_OK) {
        pd_text_free(job);
        return PD_OK;
    }
    if (pd_job_create(pd, "{\"name\":\"example:tick\",\"payload\":{\"hello\":\"again\"}}", NULL) < 0 ||
        pd_schedule_create(pd, "example:tick", "{\"cron_expression\":\"* * * * * *\"}",
                           schedule) < 0 ||
        pd_plan_next(pd, PD_PLAN_SCHEDULE, schedule, 0, times_us, &count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        printf("will fire at %lld\n", (long long)(times_us[i] / 1000000));
    return PD_OK;
}

int main(int argc, char **argv)
{
    const struct timespec pause = {0, 100000000};
    struct pd_worker *worker = NULL;
    atomic_int ticks = 0;
    struct pd *pd;
    int rc = 1;

    if (pd_open(argc > 1 ? argv[1] : "schedule.db", NULL, &pd) < 0 || plan(pd) < 0 ||
        pd_worker_new(pd, NULL, &worker) < 0 ||
        pd_worker_handle(worker, "example:*", tick, &ticks) < 0 ||
        pd_worker_start(worker) < 0) {
        fprintf(stderr, "schedule: %s\n", pd_error(pd));
    } else {
        while (atomic_load(&ticks) < TICKS)
            nanosleep(&pause, NULL);
        rc = 0;
    }
    pd_worker_free(worker);
    pd_close(pd);
    return rc;
}
