/* Open runs of jobs, what they wait for (rows_runs.c), and executions (rows_executions.c), on
 * rows. */
#ifndef STORE_ROWS_ROWS_RUNS_H
#define STORE_ROWS_ROWS_RUNS_H

#include "store/catalog_store.h"
#include "store/rows/rows.h"

int rows_runs_insert(struct store *, const struct job_run *, uint32_t, struct err *);
int rows_run_save(struct store *, const struct job_run *, struct err *);
int rows_run_delete(struct store *, const struct uuid *, struct err *);
int rows_runs_find(struct store *, const struct uuid *, const struct uuid *, const struct uuid *,
                   uint32_t, struct arena *, struct job_run **, uint32_t *, struct err *);
int rows_runs_count(struct store *, const struct uuid *, const struct uuid *, uint32_t,
                    uint32_t *, uint32_t *, struct err *);
int rows_runs_waiting(struct store *, const struct uuid *, const struct uuid *,
                      const struct job_run *, uint32_t, struct arena *, struct job_run **,
                      uint32_t *, struct err *);
int rows_runs_waiting_jobs(struct store *, const struct uuid *, uint32_t, struct arena *,
                           struct uuid **, uint32_t *, struct err *);
int rows_waits_insert(struct store *, const struct job_wait *, uint32_t, struct err *);
int rows_waits_find(struct store *, const struct uuid *, const struct job_wait *, uint32_t,
                    struct arena *, struct job_wait **, uint32_t *, struct err *);
int rows_waits_delete(struct store *, const struct job_wait *, uint32_t, uint32_t *,
                      struct err *);
int rows_waits_drop(struct store *, const struct uuid *, uint32_t *, struct err *);
int rows_waits_end(struct store *, const struct uuid *, const bool *, const struct uuid *,
                   struct err *);
int rows_waits_end_of_job(struct store *, const struct uuid *, struct err *);
int rows_waits_over(struct store *, uint32_t, struct arena *, struct job_wait **, uint32_t *,
                    struct err *);
int rows_delayed_scan(struct store *, struct str, const struct delayed *, uint32_t,
                      struct arena *, struct delayed **, uint32_t *, struct err *);

int rows_execution_load(struct store *, int64_t, struct arena *, struct execution **,
                        struct err *);
int rows_read_executions(struct store_reader *, const struct uuid *, int64_t, uint32_t,
                         struct arena *, struct execution **, uint32_t *, struct err *);
int rows_read_execution(struct store_reader *, const struct uuid *, struct arena *,
                        struct execution **, struct err *);
int rows_read_execution_list(struct store_reader *, const struct execution_filter *,
                             struct arena *, struct execution **, uint32_t *, struct err *);
int rows_read_job_stats(struct store_reader *, const struct uuid *, int64_t, struct job_stats *,
                        struct err *);

#endif
