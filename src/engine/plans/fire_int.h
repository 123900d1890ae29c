/* Shared by the files of firing (fire.c, fire_due.c): what is due, and what is decided about it. */
#ifndef ENGINE_PLANS_FIRE_INT_H
#define ENGINE_PLANS_FIRE_INT_H

#include "engine/plans/planned.h"

/* What fires. */
struct owner {
    struct planned of;
    struct due due;
    uint32_t open;    /* runs of a schedule that lets no two of them overlap */
    uint32_t skipped; /* instants that an open run left out */
};

struct firing {
    struct batch *batch;
    enum plan_kind kind;
    struct owner *owners;
    struct plan_step *steps;
    uint32_t count;   /* that are due ... */
    uint32_t loaded;  /* ... whose jobs are here ... */
    uint32_t ready;   /* ... and taken on in this commit, the first ones */
    uint32_t group;   /* so many jobs are loaded together next */
    uint32_t tasks;   /* they make ... */
    size_t bytes;     /* ... of this size */
    int64_t next_us;  /* of all others, wall time; INT64_MAX = none */
    struct err *err;
};

int fire_due_read(struct firing *firing, uint32_t limit);
int fire_due_plan(struct firing *firing);
/* Moves ready plans to their next instant; leaves out those that another node moved first. */
int fire_due_take(struct firing *firing);
/* Runs of a schedule that have not ended. */
int fire_open_runs(struct batch *batch, const struct uuid *schedule_id, struct job_run **runs,
                   uint32_t *count, struct err *err);

#endif
