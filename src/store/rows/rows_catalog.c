/* Categories, jobs and job dependencies, once for every store. Refusals (a name is taken, a
 * category is in use) are found before any write, because a failed statement may fail the whole
 * transaction. The caller holds the catalog's lock, so what was found stays true. Writer's thread
 * only. */
#include "store/rows/rows_catalog.h"

#include "core/plan/catalog_fields.h"

int rows_catalog_lock(struct store *store, struct err *err)
{
    return rows_run(rows_of(store), ROWS_PLAIN(ROWS_catalog_lock), NULL, err);
}

int rows_catalog_version(struct store *store, int64_t *version, struct err *err)
{
    *version = 0;
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_catalog_version), version, 1, err);
}

static struct str namespace_or(struct str namespace_name)
{
    return namespace_name.data ? namespace_name : STR(TASK_DEFAULT_NAMESPACE);
}

/* ---- categories ---- */

int rows_categories_load(struct store *store, struct arena *arena, struct category **categories,
                         uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_PLAIN(ROWS_categories_all), &category_table, arena,
                     ROWS_INTO(categories), count, err);
}

int rows_category_put(struct store *store, const struct category *category, struct err *err)
{
    int rc = rows_any(rows_of(store),
                      ROWS_QUERY(ROWS_category_named, value_uuid(&category->id),
                                 value_text(namespace_or(category->namespace_name)),
                                 value_text(category->name)),
                      err);

    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "there is a category " STR_FMT " already",
                       STR_ARG(category->name));
    if (rc < 0)
        return rc;
    return rows_save(rows_of(store), ROWS_category_put, &category_table, category, err);
}

/* Deleted jobs do not count: they lose their category. */
int rows_category_delete(struct store *store, const struct uuid *id, struct err *err)
{
    struct rows *rows = rows_of(store);
    int rc = rows_any(rows, ROWS_QUERY(ROWS_category_used, value_uuid(id)), err);

    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "jobs use this category; give them another one first");
    if (rc < 0)
        return rc;
    TRY(rows_run(rows, ROWS_QUERY(ROWS_category_forget, value_uuid(id)), NULL, err));
    return rows_change(rows, ROWS_QUERY(ROWS_category_delete, value_uuid(id)), "category", err);
}

/* ---- jobs ---- */

/* A store with one writer needs no lock. */
int rows_jobs_load(struct store *store, const struct uuid *ids, uint32_t count, bool hold,
                   struct arena *arena, struct job **jobs, struct err *err)
{
    return rows_by_id(rows_of(store), hold && store->shared ? ROWS_jobs_hold : ROWS_jobs_by_id,
                      ids, count, &job_table, arena, ROWS_INTO(jobs), err);
}

int rows_job_put(struct store *store, const struct job *job, struct err *err)
{
    return rows_save(rows_of(store), ROWS_job_put, &job_put_table, job, err);
}

int rows_job_ended(struct store *store, const struct job *job, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_job_ended, value_uuid(&job->id),
                               value_uuid(&job->last_task_id),
                               value_word(job->last_status ? status_word(job->last_status) : NULL),
                               value_time(job->last_ended_at_us)),
                    NULL, err);
}

int rows_job_delete(struct store *store, const struct uuid *id, int64_t now_us, struct err *err)
{
    struct rows *rows = rows_of(store);
    int rc = rows_any(rows, ROWS_QUERY(ROWS_job_is_template, value_uuid(id)), err);

    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "a recurring pattern makes its tasks from this job; "
                       "delete the pattern first");
    if (rc < 0)
        return rc;
    TRY(rows_change(rows, ROWS_QUERY(ROWS_job_delete, value_uuid(id), value_time(now_us)), "job",
                    err));
    TRY(rows_run(rows, ROWS_QUERY(ROWS_job_deletes_schedules, value_uuid(id)), NULL, err));
    return rows_run(rows, ROWS_QUERY(ROWS_job_deletes_dependencies, value_uuid(id)), NULL, err);
}

/* ---- what jobs depend on ---- */

/* Its config's mode and time were checked at the request; hand-written nonsense is a gate that any
 * end opens. */
static void read_configs(struct job_dependency *dependencies, uint32_t count)
{
    struct err ignored = {0};

    for (uint32_t i = 0; i < count; i++)
        job_dependency_read(&dependencies[i], &ignored);
}

int rows_job_dependencies_load(struct store *store, struct arena *arena,
                               struct job_dependency **dependencies, uint32_t *count,
                               struct err *err)
{
    TRY(rows_take(rows_of(store), ROWS_PLAIN(ROWS_job_dependencies_all), &job_dependency_table,
                  arena, ROWS_INTO(dependencies), count, err));
    read_configs(*dependencies, *count);
    return 0;
}

int rows_job_dependency_put(struct store *store, const struct job_dependency *dependency,
                            struct err *err)
{
    int rc = rows_any(rows_of(store),
                      ROWS_QUERY(ROWS_job_dependency_same, value_uuid(&dependency->id),
                                 value_uuid(&dependency->job_id),
                                 value_uuid(&dependency->depends_on_job_id),
                                 value_word(dependency_word(dependency->kind))),
                      err);

    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "the job depends on that one in this way already");
    if (rc < 0)
        return rc;
    return rows_save(rows_of(store), ROWS_job_dependency_put, &job_dependency_table, dependency,
                     err);
}

int rows_job_dependency_delete(struct store *store, const struct uuid *id, struct err *err)
{
    return rows_change(rows_of(store), ROWS_QUERY(ROWS_job_dependency_delete, value_uuid(id)),
                       "dependency", err);
}

int rows_read_job_dependencies(struct store_reader *reader, const struct catalog_filter *filter,
                               struct arena *arena, struct job_dependency **dependencies,
                               uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader),
                  ROWS_QUERY(ROWS_list_job_dependencies, ROWS_FILTER(filter, STR_NONE)),
                  &job_dependency_table, arena, ROWS_INTO(dependencies), count, err));
    read_configs(*dependencies, *count);
    return 0;
}
