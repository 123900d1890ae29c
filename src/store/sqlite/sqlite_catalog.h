/* Inside of the SQLite store: what its files about jobs, schedules and the like share. */
#ifndef STORE_SQLITE_SQLITE_CATALOG_H
#define STORE_SQLITE_SQLITE_CATALOG_H

#include "store/catalog_store.h"
#include "store/sqlite/sqlite_int.h"

/* A row whose columns begin at 0 becomes *to, which is zeroed. */
typedef void catalog_row(sqlite3_stmt *stmt, struct arena *arena, void *to);

/* sqlite_catalog_row.c */
catalog_row sqlite_category_row;
catalog_row sqlite_job_row;
catalog_row sqlite_schedule_row;
catalog_row sqlite_recurring_row;
catalog_row sqlite_job_dependency_row;
catalog_row sqlite_job_run_row;
catalog_row sqlite_job_wait_row;

struct catalog_rows {
    void *rows; /* an array in the arena */
    uint32_t count;
};
/* All rows of a statement, each `bytes` large. The statement is left reset. */
int sqlite_rows_take(struct sqlite_sql *sql, sqlite3_stmt *stmt, catalog_row *row, size_t bytes,
                     struct arena *arena, struct catalog_rows *taken, struct err *err);
/* The only row of a statement, NULL when there is none. */
int sqlite_row_take(struct sqlite_sql *sql, sqlite3_stmt *stmt, catalog_row *row, size_t bytes,
                    struct arena *arena, void **taken, struct err *err);
/* Runs what removes one row by its id: -ERR_NOT_FOUND naming `what` when there was none. */
int sqlite_remove(struct store *store, enum sqlite_statement name, const struct uuid *id,
                  const char *what, struct err *err);

/* sqlite_catalog.c: lock, categories, jobs, dependencies */
int sqlite_catalog_lock(struct store *, struct err *);
int sqlite_catalog_version(struct store *, int64_t *, struct err *);
int sqlite_categories_load(struct store *, struct arena *, struct category **, uint32_t *,
                           struct err *);
int sqlite_category_put(struct store *, const struct category *, struct err *);
int sqlite_category_delete(struct store *, const struct uuid *, struct err *);
int sqlite_jobs_load(struct store *, const struct uuid *, uint32_t, bool, struct arena *,
                     struct job **, struct err *);
int sqlite_job_put(struct store *, const struct job *, struct err *);
int sqlite_job_ended(struct store *, const struct job *, struct err *);
int sqlite_job_delete(struct store *, const struct uuid *, int64_t, struct err *);
int sqlite_job_dependencies_load(struct store *, struct arena *, struct job_dependency **,
                                 uint32_t *, struct err *);
int sqlite_job_dependency_put(struct store *, const struct job_dependency *, struct err *);
int sqlite_job_dependency_delete(struct store *, const struct uuid *, struct err *);
/* sqlite_plans.c: schedules, recurring patterns, and what they fired */
int sqlite_schedules_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                          struct schedule **, struct err *);
int sqlite_schedule_put(struct store *, const struct schedule *, struct err *);
int sqlite_schedule_delete(struct store *, const struct uuid *, struct err *);
int sqlite_schedules_due(struct store *, int64_t, uint32_t, struct arena *, struct schedule **,
                         uint32_t *, int64_t *, struct err *);
int sqlite_schedules_step(struct store *, struct plan_step *, uint32_t, struct err *);
int sqlite_schedules_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                          struct schedule **, uint32_t *, struct err *);
int sqlite_recurring_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                          struct recurring **, struct err *);
int sqlite_recurring_put(struct store *, const struct recurring *, struct err *);
int sqlite_recurring_delete(struct store *, const struct uuid *, struct err *);
int sqlite_recurring_due(struct store *, int64_t, uint32_t, struct arena *, struct recurring **,
                         uint32_t *, int64_t *, struct err *);
int sqlite_recurring_step(struct store *, struct plan_step *, uint32_t, struct err *);
int sqlite_recurring_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                          struct recurring **, uint32_t *, struct err *);
int sqlite_fires_insert(struct store *, bool, struct fire *, uint32_t, struct err *);
int sqlite_fires_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);
/* sqlite_runs.c: open runs of jobs, what they wait for, and the table of all verbs */
extern const struct catalog_verbs sqlite_catalog_verbs;
int sqlite_runs_insert(struct store *, const struct job_run *, uint32_t, struct err *);
int sqlite_run_save(struct store *, const struct job_run *, struct err *);
int sqlite_run_delete(struct store *, const struct uuid *, struct err *);
int sqlite_runs_find(struct store *, const struct uuid *, const struct uuid *,
                     const struct uuid *, uint32_t, struct arena *, struct job_run **, uint32_t *,
                     struct err *);
int sqlite_waits_insert(struct store *, const struct job_wait *, uint32_t, struct err *);
int sqlite_runs_count(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                      uint32_t *, uint32_t *, struct err *);
int sqlite_runs_waiting(struct store *, const struct uuid *, const struct uuid *,
                        const struct job_run *, uint32_t, struct arena *, struct job_run **,
                        uint32_t *, struct err *);
int sqlite_runs_waiting_jobs(struct store *, const struct uuid *, uint32_t, struct arena *,
                             struct uuid **, uint32_t *, struct err *);
int sqlite_waits_end(struct store *, const struct uuid *, const bool *, const struct uuid *,
                     struct err *);
int sqlite_waits_end_of_job(struct store *, const struct uuid *, struct err *);
int sqlite_waits_over(struct store *, uint32_t, struct arena *, struct job_wait **, uint32_t *,
                      struct err *);
int sqlite_delayed_scan(struct store *, struct str, const struct delayed *, uint32_t,
                        struct arena *, struct delayed **, uint32_t *, struct err *);
int sqlite_waits_find(struct store *, const struct uuid *, const struct job_wait *, uint32_t,
                      struct arena *, struct job_wait **, uint32_t *, struct err *);
int sqlite_waits_delete(struct store *, const struct job_wait *, uint32_t, uint32_t *,
                        struct err *);
int sqlite_waits_drop(struct store *, const struct uuid *, uint32_t *, struct err *);
/* sqlite_read_catalog.c, sqlite_read_runs.c: the reading verbs */
int sqlite_read_categories(struct store_reader *, const struct catalog_filter *, struct arena *,
                           struct category **, uint32_t *, struct err *);
int sqlite_read_jobs(struct store_reader *, const struct catalog_filter *, struct arena *,
                     struct job **, uint32_t *, struct err *);
int sqlite_read_schedules(struct store_reader *, const struct catalog_filter *, struct arena *,
                          struct schedule **, uint32_t *, struct err *);
int sqlite_read_recurring(struct store_reader *, const struct catalog_filter *, struct arena *,
                          struct recurring **, uint32_t *, struct err *);
int sqlite_read_job_dependencies(struct store_reader *, const struct catalog_filter *,
                                 struct arena *, struct job_dependency **, uint32_t *,
                                 struct err *);
int sqlite_read_category(struct store_reader *, const struct uuid *, struct arena *,
                         struct category **, struct err *);
int sqlite_read_job(struct store_reader *, const struct uuid *, struct arena *, struct job **,
                    struct err *);
int sqlite_read_schedule(struct store_reader *, const struct uuid *, struct arena *,
                         struct schedule **, struct err *);
int sqlite_read_recurring_one(struct store_reader *, const struct uuid *, struct arena *,
                              struct recurring **, struct err *);
int sqlite_read_next_fires(struct store_reader *, const struct uuid *, uint32_t, int64_t *,
                           struct err *);
int sqlite_read_execution_list(struct store_reader *, const struct execution_filter *,
                               struct arena *, struct execution **, uint32_t *, struct err *);
int sqlite_read_execution(struct store_reader *, const struct uuid *, struct arena *,
                          struct execution **, struct err *);
int sqlite_read_execution_logs(struct store_reader *, const struct uuid *,
                               const struct log_filter *, struct arena *, struct log_entry **,
                               uint32_t *, struct err *);
int sqlite_read_job_stats(struct store_reader *, const struct uuid *, int64_t,
                          struct job_stats *, struct err *);

#endif
