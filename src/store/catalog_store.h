/* The part of the seam for the catalog (core/plan/catalog.h): verbs of every store. The rules of
 * store.h apply: write verbs run on the writer's thread between begin and commit; reading verbs
 * take a reader. Verbs that take ids fill the caller's array of pointers (NULL = there is none);
 * all else comes back as arrays in the arena. ERR_CONFLICT and ERR_NOT_FOUND are refusals: nothing
 * was changed, and the transaction continues. A caller that changes the catalog (puts or deletes
 * anything except runs and waits) takes its lock first, so that the reason of a refusal stays
 * true. */
#ifndef STORE_CATALOG_STORE_H
#define STORE_CATALOG_STORE_H

#include "core/plan/catalog.h"
#include "store/store.h"

/* Advances a schedule or recurring pattern from the instant it had. */
struct plan_step {
    struct uuid id;
    int64_t from_us;  /* the next instant it had; 0 = none */
    int64_t to_us;    /* the next one now; 0 = none */
    int64_t fired_us; /* the last one that fired; 0 = keep what is stored */
    struct str error; /* absent = none */
    bool moved;       /* out: false when another change came first */
};

struct catalog_filter {
    struct str namespace_name;
    struct str name;         /* exact; absent = any */
    struct uuid job_id;      /* schedules, dependencies (either side); nil = any */
    struct uuid category_id; /* jobs */
    bool or_no_category;     /* jobs: of this category, or of none */
    int active;              /* -1 = any, 0, 1 */
    int type;                /* schedules: enum schedule_type, -1 = any */
    bool errors_only;        /* schedules, recurring: those with an error */
    bool with_deleted;       /* jobs */
    struct str target_service; /* jobs: their own or that of their category; absent = any */
    int64_t next_before_us;  /* schedules, recurring: next instant before this; 0 = any */
    struct uuid before_id;   /* cursor: ids below this; nil = from the newest */
    uint32_t limit;
};

struct execution_filter {
    struct str namespace_name;
    struct uuid job_id; /* nil = any, also below */
    struct uuid schedule_id;
    int status;         /* enum execution_status, -1 = any */
    int64_t after_us;   /* created, 0 = any */
    int64_t before_us;
    int64_t before_key; /* cursor */
    uint32_t limit;
};

/* How runs of a job went since a time. */
struct job_stats {
    int64_t total, completed, failed, cancelled, timed_out, open;
    int64_t duration_ms_total; /* over the `duration_count` runs that have one */
    int64_t duration_count;
    int64_t duration_ms_max;
    int64_t last_started_us;
};

struct catalog_verbs {
    /* Locks the catalog against all other changes until the transaction ends (cycles, F-H11), and
     * raises catalog_version, by which other nodes notice. Never waits on a store with one
     * writer. */
    int (*lock)(struct store *store, struct err *err);
    int (*version)(struct store *store, int64_t *version, struct err *err);

    int (*categories_load)(struct store *store, struct arena *arena, struct category **categories,
                           uint32_t *count, struct err *err);
    /* ERR_CONFLICT when the name is taken. */
    int (*category_put)(struct store *store, const struct category *category, struct err *err);
    /* ERR_CONFLICT while a job uses it (deleted jobs lose it); ERR_NOT_FOUND. */
    int (*category_delete)(struct store *store, const struct uuid *id, struct err *err);

    /* hold: locks the rows until the transaction ends, in the order of ids. */
    int (*jobs_load)(struct store *store, const struct uuid *ids, uint32_t count, bool hold,
                     struct arena *arena, struct job **jobs, struct err *err);
    int (*job_put)(struct store *store, const struct job *job, struct err *err); /* not last_... */
    int (*job_ended)(struct store *store, const struct job *job, struct err *err); /* last_... */
    /* Sets deleted_at. Its schedules and dependencies go; the engine handles runs that wait for it.
     * ERR_CONFLICT while a recurring pattern uses it as a template; ERR_NOT_FOUND, also if it was
     * deleted before. */
    int (*job_delete)(struct store *store, const struct uuid *id, int64_t now_us,
                      struct err *err);

    int (*schedules_load)(struct store *store, const struct uuid *ids, uint32_t count,
                          struct arena *arena, struct schedule **schedules, struct err *err);
    int (*schedule_put)(struct store *store, const struct schedule *schedule, struct err *err);
    int (*schedule_delete)(struct store *store, const struct uuid *id, struct err *err);
    /* Active ones of existing jobs whose next instant has come, earliest first. *next_us is the
     * earliest instant not returned (INT64_MAX = none). The cost does not grow with their
     * number. */
    int (*schedules_due)(struct store *store, int64_t wall_us, uint32_t limit, struct arena *arena,
                         struct schedule **schedules, uint32_t *count, int64_t *next_us,
                         struct err *err);
    int (*schedules_step)(struct store *store, struct plan_step *steps, uint32_t count,
                          struct err *err);
    /* All of them by id, a page at a time. */
    int (*schedules_scan)(struct store *store, const struct uuid *after, uint32_t limit,
                          struct arena *arena, struct schedule **schedules, uint32_t *count,
                          struct err *err);

    int (*recurring_load)(struct store *store, const struct uuid *ids, uint32_t count,
                          struct arena *arena, struct recurring **recurring, struct err *err);
    int (*recurring_put)(struct store *store, const struct recurring *recurring, struct err *err);
    int (*recurring_delete)(struct store *store, const struct uuid *id, struct err *err);
    int (*recurring_due)(struct store *store, int64_t wall_us, uint32_t limit, struct arena *arena,
                         struct recurring **recurring, uint32_t *count, int64_t *next_us,
                         struct err *err);
    int (*recurring_step)(struct store *store, struct plan_step *steps, uint32_t count,
                          struct err *err);
    int (*recurring_scan)(struct store *store, const struct uuid *after, uint32_t limit,
                          struct arena *arena, struct recurring **recurring, uint32_t *count,
                          struct err *err);

    /* Makes each instant fire once: marks rows that existed already as taken. */
    int (*fires_insert)(struct store *store, bool of_recurring, struct fire *fires, uint32_t count,
                        struct err *err);
    int (*fires_prune)(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                       struct err *err);

    int (*dependencies_load)(struct store *store, struct arena *arena,
                             struct job_dependency **dependencies, uint32_t *count,
                             struct err *err); /* all */
    int (*dependency_put)(struct store *store, const struct job_dependency *dependency,
                          struct err *err); /* ERR_CONFLICT when it exists */
    int (*dependency_delete)(struct store *store, const struct uuid *id, struct err *err);

    /* Replaces a run that exists. */
    int (*runs_insert)(struct store *store, const struct job_run *runs, uint32_t count,
                       struct err *err);
    int (*run_save)(struct store *store, const struct job_run *run, struct err *err); /* its slot */
    int (*run_delete)(struct store *store, const struct uuid *task_id, struct err *err);
    /* Open runs of a job, of a schedule or of a recurring pattern (the other two ids nil), oldest
     * first. */
    int (*runs_find)(struct store *store, const struct uuid *job_id,
                     const struct uuid *schedule_id, const struct uuid *recurring_job_id,
                     uint32_t limit, struct arena *arena, struct job_run **runs, uint32_t *count,
                     struct err *err);
    /* For a job or a schedule (the other id nil): how many runs have a slot and how many wait for
     * one, each counted only up to the limit. */
    int (*runs_count)(struct store *store, const struct uuid *job_id,
                      const struct uuid *schedule_id, uint32_t limit, uint32_t *going,
                      uint32_t *waiting, struct err *err);
    /* Runs of a job or a schedule (the other id nil) that wait for a slot, oldest first, after
     * `after` (NULL = from the first). */
    int (*runs_waiting)(struct store *store, const struct uuid *job_id,
                        const struct uuid *schedule_id, const struct job_run *after,
                        uint32_t limit, struct arena *arena, struct job_run **runs,
                        uint32_t *count, struct err *err);
    /* Jobs with such runs, by id, after `after` (nil = from the first). */
    int (*runs_waiting_jobs)(struct store *store, const struct uuid *after, uint32_t limit,
                             struct arena *arena, struct uuid **ids, uint32_t *count,
                             struct err *err);
    int (*waits_insert)(struct store *store, const struct job_wait *waits, uint32_t count,
                        struct err *err);
    /* The open waits for this job, oldest first, after `after` (NULL = from the first). A task may
     * wait for one job in two ways (success and completion). */
    int (*waits_find)(struct store *store, const struct uuid *depends_on_job_id,
                      const struct job_wait *after, uint32_t limit, struct arena *arena,
                      struct job_wait **waits, uint32_t *count, struct err *err);
    /* Ends all waits for this job in one of these ways, or only those of runs of `of_job_id` (nil =
     * all). The engine releases their tasks later. */
    int (*waits_end)(struct store *store, const struct uuid *depends_on_job_id,
                     const bool kinds[DEPENDENCY_COUNT], const struct uuid *of_job_id,
                     struct err *err);
    int (*waits_end_of_job)(struct store *store, const struct uuid *job_id, struct err *err);
    int (*waits_over)(struct store *store, uint32_t limit, struct arena *arena,
                      struct job_wait **waits, uint32_t *count, struct err *err);
    /* Removes exactly these. *removed (NULL is cheaper) is how many existed, also below. */
    int (*waits_delete)(struct store *store, const struct job_wait *waits, uint32_t count,
                        uint32_t *removed, struct err *err);
    /* Removes all waits of the task. */
    int (*waits_drop)(struct store *store, const struct uuid *task_id, uint32_t *removed,
                      struct err *err);
    /* Tasks delayed by the wall clock, the earliest first, after `after` (NULL = from the first),
     * with a mark on those with this state. */
    int (*delayed_scan)(struct store *store, struct str state, const struct delayed *after,
                        uint32_t limit, struct arena *arena, struct delayed **delayed,
                        uint32_t *count, struct err *err);

    int (*read_categories)(struct store_reader *reader, const struct catalog_filter *filter,
                           struct arena *arena, struct category **categories, uint32_t *count,
                           struct err *err);
    int (*read_jobs)(struct store_reader *reader, const struct catalog_filter *filter,
                     struct arena *arena, struct job **jobs, uint32_t *count, struct err *err);
    int (*read_schedules)(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct schedule **schedules, uint32_t *count,
                          struct err *err);
    int (*read_recurring)(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct recurring **recurring, uint32_t *count,
                          struct err *err);
    int (*read_dependencies)(struct store_reader *reader, const struct catalog_filter *filter,
                             struct arena *arena, struct job_dependency **dependencies,
                             uint32_t *count, struct err *err);
    /* One by its id: count 0 or 1. */
    int (*read_category)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct category **category, struct err *err);
    int (*read_job)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                    struct job **job, struct err *err);
    int (*read_schedule)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct schedule **schedule, struct err *err);
    int (*read_recurring_one)(struct store_reader *reader, const struct uuid *id,
                              struct arena *arena, struct recurring **recurring, struct err *err);
    int (*read_execution_list)(struct store_reader *reader, const struct execution_filter *filter,
                               struct arena *arena, struct execution **executions, uint32_t *count,
                               struct err *err); /* newest first */
    int (*read_execution)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                          struct execution **execution, struct err *err);
    int (*read_execution_logs)(struct store_reader *reader, const struct uuid *execution_id,
                               const struct log_filter *filter, struct arena *arena,
                               struct log_entry **entries, uint32_t *count, struct err *err);
    int (*read_job_stats)(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                          struct job_stats *stats, struct err *err);
    /* The earliest next instant of each job's schedules and patterns; 0 = none. */
    int (*read_next_fires)(struct store_reader *reader, const struct uuid *job_ids, uint32_t count,
                           int64_t *next_us, struct err *err);
};

#endif
