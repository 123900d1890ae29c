/* Inside of the queue: what people plan with, as its batches need it. Like queue_int.h, which
 * includes it, nobody else does, and all of it belongs to whoever has the turn. */
#ifndef ENGINE_PLANS_PLANNING_INT_H
#define ENGINE_PLANS_PLANNING_INT_H

#include "base/clock.h"
#include "base/map.h"
#include "calendar/window.h"
#include "calendar/zones.h"
#include "core/plan/catalog.h"

struct batch;
struct engine;
struct catalog_request;
struct claim_request;
struct job_run_request;

/* A category as tasks meet it. */
struct category_state {
    struct category row;
    struct category_rules rules;
    struct window_set windows; /* count 0: always open */
};

/* What runs of a schedule need to know of it later. */
struct schedule_known {
    struct uuid id;
    struct str timezone; /* absent: it is gone */
    enum overlap overlap;
};

/* The part of the catalog that is kept in memory; all of it is in the arena. */
struct catalog_cache {
    struct arena arena;
    struct map names;     /* struct category_state, so the next */
    struct map ids;
    struct map schedules; /* struct schedule_known, as far as it was asked for */
    struct job_dependency *edges;    /* by who depends ... */
    struct job_dependency **parents; /* ... and the same by whom they depend on */
    uint32_t edges_count;
    int64_t version;
    uint64_t looked_in;   /* the batch that made sure that it is the newest */
    bool known;
    bool doubted;         /* shared stores: somebody may have changed it */
};

/* A job that a batch has to do with. */
struct batch_job {
    struct job *job;
    bool held;  /* nobody else changes it or decides about its runs until the commit */
    bool ended; /* its last_... are to be written */
    bool queues_up; /* a schedule of it fires whose runs wait for each other */
};

/* categories.c */
/* Is anything planned here at all? */
bool catalog_here(const struct engine *engine);
/* As the store has it now, at the latest since this batch began. */
int catalog_look(struct batch *batch, struct err *err);
void catalog_doubt(struct engine *engine);  /* it may have changed */
void catalog_forget(struct engine *engine); /* it did */
void catalog_deinit(struct engine *engine);
/* Shared stores: which one it is now; what memory knows of another one is forgotten. */
int catalog_version(struct batch *batch, int64_t *version, struct err *err);
/* What the job waits for or is started by, and who waits for it or is started by it: so many from
 * here on. */
struct job_dependency *edges_of(struct batch *batch, const struct uuid *job_id, uint32_t *count);
struct job_dependency **edges_on(struct batch *batch, const struct uuid *job_id, uint32_t *count);
/* NULL = there is none. They hold until the batch ends. */
int categories_find(struct batch *batch, struct str name, struct category_state **state,
                    struct err *err);
int categories_get(struct batch *batch, const struct uuid *id, struct category_state **state,
                   struct err *err);
int category_of_job(struct batch *batch, const struct job *job, struct category_state **state,
                    struct err *err);
int schedules_know(struct batch *batch, const struct uuid *id, struct schedule_known **known,
                   struct err *err);

/* windows.c */
/* Of a task of a category: when its window opens; 0 = one is open, or there are none. */
int windows_look(struct batch *batch, const struct task *task, int64_t *opens_us,
                 struct err *err);
/* A task of a category becomes pending: while its window is closed it is delayed instead. */
int windows_hold(struct batch *batch, struct task *task, enum status *to, const char **state,
                 struct err *err);
/* A delayed task is due: true when its window is closed, and it waits on. */
int windows_wait_on(struct batch *batch, struct task *task, bool *waits, struct err *err);
/* May the claim have it? Otherwise it was put off, or given back because of its batch_size. */
enum claim_move { CLAIM_TAKE, CLAIM_PUT_OFF, CLAIM_GIVE_BACK };
int windows_admit(struct batch *batch, const struct claim_request *request, struct task *task,
                  enum claim_move *move, struct err *err);
/* Must the line see it, because its category counts what one claim gets? */
bool windows_count(struct batch *batch, const struct task *task);
#define WINDOWS_STATE "Waits for its window"
/* After windows were changed those put off by them are looked at again, a page at a time. */
void windows_begin(struct engine *engine);
int windows_follow(struct batch *batch, bool *more, struct err *err);

/* runs.c */
#define RUNS_PAGE 1000 /* open runs of one job looked at together */
struct run_wish {
    struct job *job;                 /* of this batch: jobs_get */
    const struct schedule *schedule; /* NULL = none */
    struct uuid recurring_job_id;
    int64_t instant_us;              /* when it starts, wall time; 0 = at once */
    int64_t key;                     /* of its task; 0 = not made yet */
    struct uuid id;
    struct str payload;              /* absent = the job's */
    struct str data;                 /* what its handler finds in data; absent = nothing */
    enum actor actor;
    struct str correlation_id;       /* of what it goes on with, so below; absent = none */
    struct str traceparent, tracestate;
    struct str detail;               /* of the first event */
    struct str state;                /* while it waits for other runs; absent = it does not */
};
/* Loads those that the batch does not have; with hold nobody else has them until the commit. */
int jobs_load(struct batch *batch, const struct uuid *ids, uint32_t count, bool hold,
              struct err *err);
struct batch_job *jobs_get(struct batch *batch, const struct uuid *id); /* NULL = not loaded */
int jobs_flush(struct batch *batch, struct err *err); /* runs and ends owed to the store */
/* 1 when runs of it may be made: it and its category are active. */
int job_is_active(struct batch *batch, const struct job *job, struct err *err);
bool ids_add(struct batch *batch, struct uuid **ids, uint32_t *count, uint32_t *cap,
             const struct uuid *id); /* to an array of the batch; false = no memory */
/* The row that decides about its runs is held where one has to wait for another. */
int runs_hold(struct batch *batch, const struct uuid *job_ids, uint32_t count, struct err *err);
uint32_t runs_limit(const struct job *job); /* max_concurrent, where there is one */
int run_check(struct batch *batch, const struct run_wish *wish, struct err *err); /* refusals */
int run_make(struct batch *batch, struct run_wish *wish, struct arena *arena, struct task **task,
             struct err *err);
int job_run_apply(struct batch *batch, struct job_run_request *request);

/* run_ends.c */
int runs_prepare(struct batch *batch, struct err *err); /* before ends are told */
int run_ended(struct batch *batch, const struct task *task, struct err *err);
int run_ends_late(struct batch *batch, struct err *err); /* only of a seeded bug */
int run_reopened(struct batch *batch, struct task *task, struct err *err);

/* run_releases.c: who waits goes on. What is more than one commit should hold is left to the
 * leader's sweep, which also finds what was missed. Runs of a deleted job are cancelled. */
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

/* catalog_change.c, catalog_times.c */
int catalog_apply(struct batch *batch, struct catalog_request *request);
int catalog_schedule(struct batch *batch, struct catalog_request *request);
int catalog_recurring(struct batch *batch, struct catalog_request *request);
int catalog_no_such(struct err *err, const char *what, const struct uuid *id);
int catalog_job(struct batch *batch, const struct uuid *id, struct batch_job **found,
                struct err *err);

/* catalog_triggers.c: whether an end starts too much, with this dependency (new or changed) of this
 * job, or with this job as it is to be. */
int triggers_check(struct batch *batch, const struct job_dependency *dependency,
                   const struct job *job, struct err *err);
int triggers_check_job(struct batch *batch, const struct job *job, struct err *err);

/* A plan goes on behind now and behind what it fired last; if that lies ahead the clock did, and
 * was set right since: what fired is known one by one, so nothing fires twice. */
#define PLAN_AHEAD_MAX_US (60 * CLOCK_SECOND_US)
static inline int64_t plan_goes_on_us(int64_t now_us, int64_t last_us)
{
    return last_us > now_us && last_us <= now_us + PLAN_AHEAD_MAX_US ? last_us : now_us;
}

/* fire.c */
int fire_run(struct batch *batch, int64_t *next_us, struct err *err);
void fire_look_again(struct batch *batch); /* after a while: clocks and zones may have changed */
void zones_begin(struct engine *engine);   /* all plans are looked at again */
/* fire_pass.c: what came while the job, or all jobs of the category, were not active has passed. */
int fire_pass(struct batch *batch, const struct uuid *job_id, const struct uuid *category_id,
              struct err *err);
/* zone_changes.c: a page; *more says whether there is more, *next_us may become earlier. */
int zones_follow(struct batch *batch, bool *more, int64_t *next_us, struct err *err);

#endif
