/* The catalog on rows: jobs and schedules, what was planned and fired, open runs. */
#ifndef STORE_ROWS_ROWS_CATALOG_H
#define STORE_ROWS_ROWS_CATALOG_H

#include "store/catalog_store.h"
#include "store/rows/rows.h"

/* The common first parameters of all lists of the catalog: $1 to $7. */
#define ROWS_FILTER(filter, words)                                                                 \
    value_text((filter)->namespace_name), value_text(words), value_uuid(&(filter)->job_id),        \
        value_uuid(&(filter)->category_id),                                                        \
        value_int_if((filter)->active >= 0, (filter)->active), value_uuid(&(filter)->before_id),   \
        value_int(rows_limit((filter)->limit))

/* The verbs of struct catalog_verbs that are the same for every store; NAMED ones have a function
 * of another name. By file: rows_catalog.c, rows_plans.c, rows_runs.c, rows_read_catalog.c,
 * rows_executions.c. */
#define ROWS_CATALOG_LIST(X, NAMED)                                                                \
    NAMED(lock, catalog_lock) NAMED(version, catalog_version)                                      \
    NAMED(dependencies_load, job_dependencies_load) NAMED(dependency_put, job_dependency_put)      \
    NAMED(dependency_delete, job_dependency_delete)                                                \
    NAMED(read_dependencies, read_job_dependencies) X(categories_load) X(category_put)             \
    X(category_delete) X(jobs_load) X(job_put) X(job_ended) X(job_delete) X(schedules_load)        \
    X(schedule_put) X(schedule_delete) X(schedules_due) X(schedules_step) X(schedules_scan)        \
    X(recurring_load) X(recurring_put) X(recurring_delete) X(recurring_due) X(recurring_step)      \
    X(recurring_scan) X(fires_insert) X(fires_prune) X(runs_insert) X(run_save) X(run_delete)      \
    X(runs_find) X(runs_count) X(runs_waiting) X(runs_waiting_jobs) X(waits_insert) X(waits_find)  \
    X(waits_delete) X(waits_drop) X(waits_end) X(waits_end_of_job) X(waits_over) X(delayed_scan)   \
    X(read_categories) X(read_jobs) X(read_schedules) X(read_recurring) X(read_category)           \
    X(read_job) X(read_schedule) X(read_recurring_one) X(read_next_fires) X(read_execution_list)   \
    X(read_execution) X(read_job_stats)

#define ROWS_PROTOTYPE(verb, name) __typeof__(*((struct catalog_verbs *)NULL)->verb) rows_##name;
#define ROWS_PROTOTYPE_SAME(verb) ROWS_PROTOTYPE(verb, verb)
ROWS_CATALOG_LIST(ROWS_PROTOTYPE_SAME, ROWS_PROTOTYPE)
#undef ROWS_PROTOTYPE

/* All of these, in a struct catalog_verbs. */
#define ROWS_CATALOG_ENTRY(verb, name) .verb = rows_##name,
#define ROWS_CATALOG_SAME(verb) ROWS_CATALOG_ENTRY(verb, verb)
#define ROWS_CATALOG_VERBS ROWS_CATALOG_LIST(ROWS_CATALOG_SAME, ROWS_CATALOG_ENTRY)

#endif
