/* Executions on rows (rows_executions.c). */
#ifndef STORE_ROWS_ROWS_EXECUTIONS_H
#define STORE_ROWS_ROWS_EXECUTIONS_H

#include "store/catalog_store.h"
#include "store/rows/rows.h"

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
