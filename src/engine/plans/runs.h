/* Runs of jobs: made (runs.c), ended (run_ends.c), released when they waited (run_releases.c).
 * Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_PLANS_RUNS_H
#define ENGINE_PLANS_RUNS_H

#include "core/plan/catalog.h"
#include "core/task/task.h"

struct request;
struct batch;

/* A job that a batch has to do with. */
struct batch_job {
    struct job *job;
    bool held;      /* no other node changes it or decides about its runs until the commit */
    bool ended;     /* its last_... are to be written */
    bool queues_up; /* a schedule of it fires whose runs wait for each other */
};

#define RUNS_PAGE 1000 /* open runs of one job looked at together */
struct run_wish {
    struct job *job;                 /* of this batch: jobs_get */
    const struct schedule *schedule; /* NULL = none */
    struct uuid recurring_job_id;
    int64_t instant_us; /* when it starts, wall time; 0 = at once */
    int64_t key;        /* of its task; 0 = not made yet */
    struct uuid id;
    struct str payload; /* absent = the job's */
    struct str data;    /* what its handler finds in data; absent = nothing */
    bool sealed;        /* ... of a task that is stored encrypted */
    enum actor actor;
    struct str correlation_id; /* of what it continues, here and below; absent = none */
    struct str traceparent, tracestate;
    struct str detail; /* of the first event */
    struct str state;  /* while it waits for other runs; absent = it does not */
    struct str planner;            /* who made what fires it; absent = the program */
    const struct principal *maker; /* who asked for it; NULL = a plan, or the program itself */
};

/* Loads those that the batch does not have; with hold, it locks them until the commit. */
int jobs_load(struct batch *batch, const struct uuid *ids, uint32_t count, bool hold,
              struct err *err);
struct batch_job *jobs_get(struct batch *batch, const struct uuid *id); /* NULL = not loaded */
int jobs_flush(struct batch *batch, struct err *err); /* runs and ends owed to the store */
/* 1 if the job may run: it and its category are active. */
int job_is_active(struct batch *batch, const struct job *job, struct err *err);
bool ids_add(struct batch *batch, struct uuid **ids, uint32_t *count, uint32_t *cap,
             const struct uuid *id); /* to an array of the batch; false = no memory */
/* Locks the row that decides about its runs, if runs have to wait for each other. */
int runs_hold(struct batch *batch, const struct uuid *job_ids, uint32_t count, struct err *err);
uint32_t runs_limit(const struct job *job); /* max_concurrent, where there is one */
int run_check(struct batch *batch, const struct run_wish *wish, struct err *err); /* refusals */
int run_make(struct batch *batch, struct run_wish *wish, struct arena *arena, struct task **task,
             struct err *err);
int job_run_apply(struct batch *batch, struct request *base);
int runs_prepare(struct batch *batch, struct err *err); /* before ends are settled */
int run_ended(struct batch *batch, const struct task *task, struct err *err);
int run_reopened(struct batch *batch, struct task *task, struct err *err);
/* Releases waiting runs, and cancels those of a deleted job. The leader's sweep releases what is
 * too much for one commit, and finds what was missed. */
int runs_release_slots(struct batch *batch, struct batch_job *held, struct err *err);
int runs_release_next(struct batch *batch, struct batch_job *held, const struct uuid *schedule_id,
                      struct err *err); /* of this schedule only */
int runs_release_ended(struct batch *batch, const struct uuid *job_id, enum status status,
                       struct err *err); /* a run of it ended so */
int runs_cancel_waiting(struct batch *batch, struct batch_job *deleted, struct err *err);
void runs_look_soon(struct batch *batch);
int runs_follow(struct batch *batch, bool *more, struct err *err); /* a page, of the sweep */
/* A gate that made runs wait was changed or removed; edge NULL = all of that job. */
int runs_release_waits(struct batch *batch, const struct uuid *depends_on_job_id,
                       const struct job_dependency *edge, struct err *err);

#endif
