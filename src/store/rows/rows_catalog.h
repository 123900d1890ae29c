/* The catalog on rows: jobs and schedules, what was planned and fired, open runs. */
#ifndef STORE_ROWS_ROWS_CATALOG_H
#define STORE_ROWS_ROWS_CATALOG_H

#include "store/catalog_store.h"
#include "store/rows/rows.h"
#include "store/rows/rows_plans.h"
#include "store/rows/rows_runs.h"

/* The common first parameters of all lists of the catalog: $1 to $7. */
#define ROWS_FILTER(filter, words)                                                                 \
    value_text((filter)->namespace_name), value_text(words), value_uuid(&(filter)->job_id),        \
        value_uuid(&(filter)->category_id),                                                        \
        value_int_if((filter)->active >= 0, (filter)->active), value_uuid(&(filter)->before_id),   \
        value_int(rows_limit((filter)->limit))

/* rows_catalog.c: lock, categories, jobs, dependencies */
int rows_catalog_lock(struct store *, struct err *);
int rows_catalog_version(struct store *, int64_t *, struct err *);
int rows_categories_load(struct store *, struct arena *, struct category **, uint32_t *,
                         struct err *);
int rows_category_put(struct store *, const struct category *, struct err *);
int rows_category_delete(struct store *, const struct uuid *, struct err *);
int rows_jobs_load(struct store *, const struct uuid *, uint32_t, bool, struct arena *,
                   struct job **, struct err *);
int rows_job_put(struct store *, const struct job *, struct err *);
int rows_job_ended(struct store *, const struct job *, struct err *);
int rows_job_delete(struct store *, const struct uuid *, int64_t, struct err *);
int rows_job_dependencies_load(struct store *, struct arena *, struct job_dependency **,
                               uint32_t *, struct err *);
int rows_job_dependency_put(struct store *, const struct job_dependency *, struct err *);
int rows_job_dependency_delete(struct store *, const struct uuid *, struct err *);
int rows_read_job_dependencies(struct store_reader *, const struct catalog_filter *,
                               struct arena *, struct job_dependency **, uint32_t *,
                               struct err *);
/* rows_read_catalog.c: what readers ask for */
int rows_read_categories(struct store_reader *, const struct catalog_filter *, struct arena *,
                         struct category **, uint32_t *, struct err *);
int rows_read_jobs(struct store_reader *, const struct catalog_filter *, struct arena *,
                   struct job **, uint32_t *, struct err *);
int rows_read_schedules(struct store_reader *, const struct catalog_filter *, struct arena *,
                        struct schedule **, uint32_t *, struct err *);
int rows_read_recurring(struct store_reader *, const struct catalog_filter *, struct arena *,
                        struct recurring **, uint32_t *, struct err *);
int rows_read_category(struct store_reader *, const struct uuid *, struct arena *,
                       struct category **, struct err *);
int rows_read_job(struct store_reader *, const struct uuid *, struct arena *, struct job **,
                  struct err *);
int rows_read_schedule(struct store_reader *, const struct uuid *, struct arena *,
                       struct schedule **, struct err *);
int rows_read_recurring_one(struct store_reader *, const struct uuid *, struct arena *,
                            struct recurring **, struct err *);
int rows_read_next_fires(struct store_reader *, const struct uuid *, uint32_t, int64_t *,
                         struct err *);

/* All of these, in a struct catalog_verbs. */
#define ROWS_CATALOG_VERBS                                                                         \
    .lock = rows_catalog_lock,                                                                     \
    .version = rows_catalog_version,                                                               \
    .categories_load = rows_categories_load,                                                       \
    .category_put = rows_category_put,                                                             \
    .category_delete = rows_category_delete,                                                       \
    .jobs_load = rows_jobs_load,                                                                   \
    .job_put = rows_job_put,                                                                       \
    .job_ended = rows_job_ended,                                                                   \
    .job_delete = rows_job_delete,                                                                 \
    .schedules_load = rows_schedules_load,                                                         \
    .schedule_put = rows_schedule_put,                                                             \
    .schedule_delete = rows_schedule_delete,                                                       \
    .schedules_due = rows_schedules_due,                                                           \
    .schedules_step = rows_schedules_step,                                                         \
    .schedules_scan = rows_schedules_scan,                                                         \
    .recurring_load = rows_recurring_load,                                                         \
    .recurring_put = rows_recurring_put,                                                           \
    .recurring_delete = rows_recurring_delete,                                                     \
    .recurring_due = rows_recurring_due,                                                           \
    .recurring_step = rows_recurring_step,                                                         \
    .recurring_scan = rows_recurring_scan,                                                         \
    .fires_insert = rows_fires_insert,                                                             \
    .fires_prune = rows_fires_prune,                                                               \
    .dependencies_load = rows_job_dependencies_load,                                               \
    .dependency_put = rows_job_dependency_put,                                                     \
    .dependency_delete = rows_job_dependency_delete,                                               \
    .runs_insert = rows_runs_insert,                                                               \
    .run_save = rows_run_save,                                                                     \
    .run_delete = rows_run_delete,                                                                 \
    .runs_find = rows_runs_find,                                                                   \
    .runs_count = rows_runs_count,                                                                 \
    .runs_waiting = rows_runs_waiting,                                                             \
    .runs_waiting_jobs = rows_runs_waiting_jobs,                                                   \
    .waits_insert = rows_waits_insert,                                                             \
    .waits_find = rows_waits_find,                                                                 \
    .waits_delete = rows_waits_delete,                                                             \
    .waits_drop = rows_waits_drop,                                                                 \
    .waits_end = rows_waits_end,                                                                   \
    .waits_end_of_job = rows_waits_end_of_job,                                                     \
    .waits_over = rows_waits_over,                                                                 \
    .delayed_scan = rows_delayed_scan,                                                             \
    .read_categories = rows_read_categories,                                                       \
    .read_jobs = rows_read_jobs,                                                                   \
    .read_schedules = rows_read_schedules,                                                         \
    .read_recurring = rows_read_recurring,                                                         \
    .read_dependencies = rows_read_job_dependencies,                                               \
    .read_category = rows_read_category,                                                           \
    .read_job = rows_read_job,                                                                     \
    .read_schedule = rows_read_schedule,                                                           \
    .read_recurring_one = rows_read_recurring_one,                                                 \
    .read_next_fires = rows_read_next_fires,                                                       \
    .read_execution_list = rows_read_execution_list,                                               \
    .read_execution = rows_read_execution,                                                         \
    .read_job_stats = rows_read_job_stats

#endif
