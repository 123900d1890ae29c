/* Inside of the PostgreSQL store: what its files about jobs, schedules and the like share. */
#ifndef STORE_POSTGRES_PG_CATALOG_H
#define STORE_POSTGRES_PG_CATALOG_H

#include "store/catalog_store.h"
#include "store/postgres/pg_int.h"

/* A row of a result whose columns begin at `first` becomes *to, which is zeroed. */
typedef void pg_catalog_row(const PGresult *result, int row, int first, struct arena *arena,
                            void *to);

/* pg_catalog_row.c: the columns, as @category@ and so on in .sql files, and what reads them */
extern const char pg_category_columns[];
extern const char pg_job_columns[];
extern const char pg_schedule_columns[];
extern const char pg_recurring_columns[];
extern const char pg_job_dependency_columns[];
pg_catalog_row pg_category_row;
pg_catalog_row pg_job_row;
pg_catalog_row pg_schedule_row;
pg_catalog_row pg_recurring_row;
pg_catalog_row pg_job_dependency_row;
pg_catalog_row pg_job_run_row;
pg_catalog_row pg_job_wait_row;

struct pg_catalog_rows {
    void *rows; /* an array in the arena */
    uint32_t count;
};
/* Asks for rows, each `bytes` large; parameters are in conn.params. */
int pg_rows_ask(struct pg_store *store, enum pg_sql_name name, pg_catalog_row *row, size_t bytes,
                struct arena *arena, struct pg_catalog_rows *taken, struct err *err);
/* Asks whether there is any row: 1 or 0. */
int pg_any_ask(struct pg_store *store, enum pg_sql_name name, struct err *err);
/* Asks for rows by ids, as {place among the ids, columns}: found[i] is that of ids[i], or NULL. */
int pg_rows_by_id(struct pg_store *store, enum pg_sql_name name, const struct uuid *ids,
                  uint32_t count, pg_catalog_row *row, size_t bytes, struct arena *arena,
                  void **found, struct err *err);
/* Runs what removes one row by its id: -ERR_NOT_FOUND naming `what` when there was none. */
int pg_remove(struct store *store, enum pg_sql_name name, const struct uuid *id, const char *what,
              struct err *err);
/* One value per row of an array of structs, `bytes` apart, as an array parameter. */
void put_uuids(struct pg_params *params, const struct uuid *first, size_t bytes, uint32_t count);
void put_times(struct pg_params *params, const int64_t *first, size_t bytes, uint32_t count);

/* pg_catalog.c: lock, categories, jobs, dependencies */
int pg_catalog_lock(struct store *, struct err *);
int pg_catalog_version(struct store *, int64_t *, struct err *);
int pg_categories_load(struct store *, struct arena *, struct category **, uint32_t *,
                       struct err *);
int pg_category_put(struct store *, const struct category *, struct err *);
int pg_category_delete(struct store *, const struct uuid *, struct err *);
int pg_jobs_load(struct store *, const struct uuid *, uint32_t, bool, struct arena *,
                 struct job **, struct err *);
int pg_job_put(struct store *, const struct job *, struct err *);
int pg_job_ended(struct store *, const struct job *, struct err *);
int pg_job_delete(struct store *, const struct uuid *, int64_t, struct err *);
int pg_job_dependencies_load(struct store *, struct arena *, struct job_dependency **, uint32_t *,
                             struct err *);
int pg_job_dependency_put(struct store *, const struct job_dependency *, struct err *);
int pg_job_dependency_delete(struct store *, const struct uuid *, struct err *);
/* pg_plans.c: schedules, recurring patterns, and what they fired */
int pg_schedules_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                      struct schedule **, struct err *);
int pg_schedule_put(struct store *, const struct schedule *, struct err *);
int pg_schedule_delete(struct store *, const struct uuid *, struct err *);
int pg_schedules_due(struct store *, int64_t, uint32_t, struct arena *, struct schedule **,
                     uint32_t *, int64_t *, struct err *);
int pg_schedules_step(struct store *, struct plan_step *, uint32_t, struct err *);
int pg_schedules_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                      struct schedule **, uint32_t *, struct err *);
int pg_recurring_load(struct store *, const struct uuid *, uint32_t, struct arena *,
                      struct recurring **, struct err *);
int pg_recurring_put(struct store *, const struct recurring *, struct err *);
int pg_recurring_delete(struct store *, const struct uuid *, struct err *);
int pg_recurring_due(struct store *, int64_t, uint32_t, struct arena *, struct recurring **,
                     uint32_t *, int64_t *, struct err *);
int pg_recurring_step(struct store *, struct plan_step *, uint32_t, struct err *);
int pg_recurring_scan(struct store *, const struct uuid *, uint32_t, struct arena *,
                      struct recurring **, uint32_t *, struct err *);
int pg_fires_insert(struct store *, bool, struct fire *, uint32_t, struct err *);
int pg_fires_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);
/* pg_runs.c: open runs of jobs, what they wait for, and the table of all verbs */
extern const struct catalog_verbs pg_catalog_verbs;
int pg_runs_insert(struct store *, const struct job_run *, uint32_t, struct err *);
int pg_run_save(struct store *, const struct job_run *, struct err *);
int pg_run_delete(struct store *, const struct uuid *, struct err *);
int pg_runs_find(struct store *, const struct uuid *, const struct uuid *, const struct uuid *,
                 uint32_t, struct arena *, struct job_run **, uint32_t *, struct err *);
int pg_waits_insert(struct store *, const struct job_wait *, uint32_t, struct err *);
int pg_runs_count(struct store *, const struct uuid *, const struct uuid *, uint32_t, uint32_t *,
                  uint32_t *, struct err *);
int pg_runs_waiting(struct store *, const struct uuid *, const struct uuid *,
                    const struct job_run *, uint32_t, struct arena *, struct job_run **,
                    uint32_t *, struct err *);
int pg_runs_waiting_jobs(struct store *, const struct uuid *, uint32_t, struct arena *,
                         struct uuid **, uint32_t *, struct err *);
int pg_waits_end(struct store *, const struct uuid *, const bool *, const struct uuid *,
                 struct err *);
int pg_waits_end_of_job(struct store *, const struct uuid *, struct err *);
int pg_waits_over(struct store *, uint32_t, struct arena *, struct job_wait **, uint32_t *,
                  struct err *);
int pg_delayed_scan(struct store *, struct str, const struct delayed *, uint32_t, struct arena *,
                    struct delayed **, uint32_t *, struct err *);
int pg_waits_find(struct store *, const struct uuid *, const struct job_wait *, uint32_t,
                  struct arena *, struct job_wait **, uint32_t *, struct err *);
int pg_waits_delete(struct store *, const struct job_wait *, uint32_t, uint32_t *, struct err *);
int pg_waits_drop(struct store *, const struct uuid *, uint32_t *, struct err *);
/* pg_read_catalog.c, pg_read_runs.c: the reading verbs */
int pg_read_categories(struct store_reader *, const struct catalog_filter *, struct arena *,
                       struct category **, uint32_t *, struct err *);
int pg_read_jobs(struct store_reader *, const struct catalog_filter *, struct arena *,
                 struct job **, uint32_t *, struct err *);
int pg_read_schedules(struct store_reader *, const struct catalog_filter *, struct arena *,
                      struct schedule **, uint32_t *, struct err *);
int pg_read_recurring(struct store_reader *, const struct catalog_filter *, struct arena *,
                      struct recurring **, uint32_t *, struct err *);
int pg_read_job_dependencies(struct store_reader *, const struct catalog_filter *, struct arena *,
                             struct job_dependency **, uint32_t *, struct err *);
int pg_read_category(struct store_reader *, const struct uuid *, struct arena *,
                     struct category **, struct err *);
int pg_read_job(struct store_reader *, const struct uuid *, struct arena *, struct job **,
                struct err *);
int pg_read_schedule(struct store_reader *, const struct uuid *, struct arena *,
                     struct schedule **, struct err *);
int pg_read_recurring_one(struct store_reader *, const struct uuid *, struct arena *,
                          struct recurring **, struct err *);
int pg_read_next_fires(struct store_reader *, const struct uuid *, uint32_t, int64_t *,
                       struct err *);
int pg_read_execution_list(struct store_reader *, const struct execution_filter *, struct arena *,
                           struct execution **, uint32_t *, struct err *);
int pg_read_execution(struct store_reader *, const struct uuid *, struct arena *,
                      struct execution **, struct err *);
int pg_read_execution_logs(struct store_reader *, const struct uuid *, const struct log_filter *,
                           struct arena *, struct log_entry **, uint32_t *, struct err *);
int pg_read_job_stats(struct store_reader *, const struct uuid *, int64_t, struct job_stats *,
                      struct err *);

#endif
