/* The catalog where several stores are read as one: it lives in the main one, and jobs run only
 * there. One execution with its logs is looked for in all stores by its whole id, because tasks of
 * other queues have executions too. Only reads. */
#include "store/store_parts_int.h"

#define MAIN(verb, ...)                                                                   \
    struct parts_reader *all = parts_reader_of(reader);                                   \
    const struct store *store = all->parts->stores[0];                                    \
    int rc = parts_check(all->parts, 0, err);                                             \
                                                                                          \
    return rc < 0 ? rc : store->verbs->catalog->verb(all->readers[0], __VA_ARGS__, err)

static int read_categories(struct store_reader *reader, const struct catalog_filter *filter,
                           struct arena *arena, struct category **categories, uint32_t *count,
                           struct err *err)
{
    MAIN(read_categories, filter, arena, categories, count);
}

static int read_jobs(struct store_reader *reader, const struct catalog_filter *filter,
                     struct arena *arena, struct job **jobs, uint32_t *count, struct err *err)
{
    MAIN(read_jobs, filter, arena, jobs, count);
}

static int read_schedules(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct schedule **schedules, uint32_t *count,
                          struct err *err)
{
    MAIN(read_schedules, filter, arena, schedules, count);
}

static int read_recurring(struct store_reader *reader, const struct catalog_filter *filter,
                          struct arena *arena, struct recurring **recurring, uint32_t *count,
                          struct err *err)
{
    MAIN(read_recurring, filter, arena, recurring, count);
}

static int read_dependencies(struct store_reader *reader, const struct catalog_filter *filter,
                             struct arena *arena, struct job_dependency **dependencies,
                             uint32_t *count, struct err *err)
{
    MAIN(read_dependencies, filter, arena, dependencies, count);
}

static int read_category(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct category **category, struct err *err)
{
    MAIN(read_category, id, arena, category);
}

static int read_job(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                    struct job **job, struct err *err)
{
    MAIN(read_job, id, arena, job);
}

static int read_schedule(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct schedule **schedule, struct err *err)
{
    MAIN(read_schedule, id, arena, schedule);
}

static int read_recurring_one(struct store_reader *reader, const struct uuid *id,
                              struct arena *arena, struct recurring **recurring, struct err *err)
{
    MAIN(read_recurring_one, id, arena, recurring);
}

static int read_execution_list(struct store_reader *reader, const struct execution_filter *filter,
                               struct arena *arena, struct execution **executions, uint32_t *count,
                               struct err *err)
{
    MAIN(read_execution_list, filter, arena, executions, count);
}

static int read_job_stats(struct store_reader *reader, const struct uuid *job_id, int64_t since_us,
                          struct job_stats *stats, struct err *err)
{
    MAIN(read_job_stats, job_id, since_us, stats);
}

static int read_next_fires(struct store_reader *reader, const struct uuid *job_ids, uint32_t count,
                           int64_t *next_us, struct err *err)
{
    MAIN(read_next_fires, job_ids, count, next_us);
}

/* *part is where it was found. A part that does not answer may have it, so "not found" would be
 * wrong. */
static int find_execution(struct parts_reader *all, const struct uuid *id, struct arena *arena,
                          struct execution **execution, uint32_t *part, struct err *err)
{
    struct err first = {0};

    *execution = NULL;
    for (*part = 0; *part < all->parts->base.parts; ++*part) {
        const struct store *store = all->parts->stores[*part];
        int rc = parts_check(all->parts, *part, err);

        if (rc == 0)
            rc = store->verbs->catalog->read_execution(all->readers[*part], id, arena, execution,
                                                       err);
        if (rc == 0 && *execution)
            return 0;
        if (rc < 0 && first.code == ERR_NONE)
            first = *err;
    }
    if (first.code == ERR_NONE)
        return 0;
    *err = first;
    return -(int)err->code;
}

static int read_execution(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                          struct execution **execution, struct err *err)
{
    uint32_t part;

    return find_execution(parts_reader_of(reader), id, arena, execution, &part, err);
}

static int read_execution_logs(struct store_reader *reader, const struct uuid *execution_id,
                               const struct log_filter *filter, struct arena *arena,
                               struct log_entry **entries, uint32_t *count, struct err *err)
{
    struct parts_reader *all = parts_reader_of(reader);
    struct execution *execution;
    uint32_t part;
    int rc = find_execution(all, execution_id, arena, &execution, &part, err);

    *entries = NULL;
    *count = 0;
    if (rc < 0 || !execution)
        return rc;
    return all->parts->stores[part]->verbs->catalog->read_execution_logs(
        all->readers[part], execution_id, filter, arena, entries, count, err);
}

const struct catalog_verbs parts_catalog_verbs = {
    .read_categories = read_categories,
    .read_jobs = read_jobs,
    .read_schedules = read_schedules,
    .read_recurring = read_recurring,
    .read_dependencies = read_dependencies,
    .read_category = read_category,
    .read_job = read_job,
    .read_schedule = read_schedule,
    .read_recurring_one = read_recurring_one,
    .read_execution_list = read_execution_list,
    .read_execution = read_execution,
    .read_execution_logs = read_execution_logs,
    .read_job_stats = read_job_stats,
    .read_next_fires = read_next_fires,
};
