/* Categories, jobs and what jobs depend on: rows to structs and back. Refusals (a name that is
 * taken, a category in use) are found before anything is written: a statement that fails would take
 * the whole transaction along. Whoever changes the catalog holds its lock, so that what was found
 * stays true. Writer's thread only. */
#include "store/postgres/pg_catalog.h"

#include "core/spec/spec.h"

#define PRIORITY_BYTES 24

int pg_catalog_lock(struct store *base, struct err *err)
{
    return pg_send(pg_of(base), PGSQL_catalog_lock, err);
}

int pg_catalog_version(struct store *base, int64_t *version, struct err *err)
{
    PGresult *result;

    *version = 0;
    TRY(pg_ask(pg_of(base), PGSQL_catalog_version, &result, err));
    if (PQntuples(result) > 0)
        *version = get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

static struct str text_or(struct str text, struct str otherwise)
{
    return text.data ? text : otherwise;
}

static void put_namespace(struct pg_params *params, struct str namespace_name)
{
    param_text(params, text_or(namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
}

/* The word of a level where there is one, else the number. */
static void put_priority(struct pg_params *params, int64_t priority)
{
    const char *word = priority_level(priority);
    char number[PRIORITY_BYTES];

    snprintf(number, sizeof number, "%lld", (long long)priority);
    param_text(params, str_of(word ? word : number));
}

/* ---- categories ---- */

int pg_categories_load(struct store *base, struct arena *arena, struct category **categories,
                       uint32_t *count, struct err *err)
{
    struct pg_catalog_rows taken;
    int rc = pg_rows_ask(pg_of(base), PGSQL_categories_all, pg_category_row, sizeof **categories,
                         arena, &taken, err);

    *categories = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_category_put(struct store *base, const struct category *category, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    int rc;

    param_uuid(params, &category->id);
    put_namespace(params, category->namespace_name);
    param_text(params, category->name);
    rc = pg_any_ask(store, PGSQL_category_named, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "there is a category " STR_FMT " already",
                       STR_ARG(category->name));
    if (rc < 0)
        return rc;
    param_uuid(params, &category->id);
    put_namespace(params, category->namespace_name);
    param_text(params, category->name);
    param_text(params, category->description);
    put_priority(params, category->default_priority);
    param_int(params, category->default_timeout_s);
    param_int(params, category->default_max_retries);
    param_text(params, text_or(category->configuration, STR("{}")));
    param_bool(params, category->is_active);
    param_time(params, category->created_at_us);
    param_time(params, category->updated_at_us);
    return pg_send(store, PGSQL_category_put, err);
}

/* Deleted jobs do not hold it: they forget it. */
int pg_category_delete(struct store *base, const struct uuid *id, struct err *err)
{
    struct pg_store *store = pg_of(base);
    int rc;

    param_uuid(&store->conn.params, id);
    rc = pg_any_ask(store, PGSQL_category_used, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "jobs use this category; give them another one first");
    if (rc < 0)
        return rc;
    param_uuid(&store->conn.params, id);
    TRY(pg_send(store, PGSQL_category_forget, err));
    return pg_remove(base, PGSQL_category_delete, id, "category", err);
}

/* ---- jobs ---- */

/* jobs[] is filled through a list of plain pointers: an array of one kind of pointer is none of
 * another. */
int pg_jobs_load(struct store *base, const struct uuid *ids, uint32_t count, bool hold,
                 struct arena *arena, struct job **jobs, struct err *err)
{
    struct pg_store *store = pg_of(base);
    void **found = arena_alloc_array(arena, count ? count : 1, sizeof *found);

    if (!found)
        return err_set(err, ERR_MEMORY, "out of memory for jobs; try again");
    TRY(pg_rows_by_id(store, hold ? PGSQL_jobs_hold : PGSQL_jobs_by_id, ids, count, pg_job_row,
                      sizeof **jobs, arena, found, err));
    for (uint32_t i = 0; i < count; i++)
        jobs[i] = found[i];
    return 0;
}

static void put_int_if(struct pg_params *params, bool has, int64_t value)
{
    if (has)
        param_int(params, value);
    else
        param_int_null(params);
}

int pg_job_put(struct store *base, const struct job *job, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, &job->id);
    put_namespace(params, job->namespace_name);
    param_text(params, job->name);
    param_text(params, job->description);
    param_uuid(params, &job->category_id);
    param_text(params, job->task_type);
    param_text(params, job->queue);
    param_text(params, job->target_service);
    param_text(params, job->target_method);
    param_text(params, job->payload);
    if (job->has_priority)
        put_priority(params, job->priority);
    else
        param_text(params, STR_NONE);
    put_int_if(params, job->has_max_retries, job->max_retries);
    put_int_if(params, job->has_timeout, job->timeout_s);
    param_int(params, job->max_concurrent);
    param_text(params, job->callback_url);
    param_bool(params, job->is_active);
    param_text(params, job->created_by);
    param_time(params, job->created_at_us);
    param_time(params, job->updated_at_us);
    param_time(params, job->deleted_at_us);
    return pg_send(store, PGSQL_job_put, err);
}

int pg_job_ended(struct store *base, const struct job *job, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, &job->id);
    param_uuid(params, &job->last_task_id);
    param_text(params, job->last_status ? str_of(status_word(job->last_status)) : STR_NONE);
    param_time(params, job->last_ended_at_us);
    return pg_send(store, PGSQL_job_ended, err);
}

int pg_job_delete(struct store *base, const struct uuid *id, int64_t now_us, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    int rc;

    param_uuid(params, id);
    rc = pg_any_ask(store, PGSQL_job_is_template, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "a recurring pattern makes its tasks from this job; "
                       "delete the pattern first");
    if (rc < 0)
        return rc;
    param_uuid(params, id);
    param_time(params, now_us);
    rc = pg_any_ask(store, PGSQL_job_delete, err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such job");
    if (rc < 0)
        return rc;
    param_uuid(params, id);
    TRY(pg_send(store, PGSQL_job_deletes_schedules, err));
    param_uuid(params, id);
    return pg_send(store, PGSQL_job_deletes_dependencies, err);
}

/* ---- what jobs depend on ---- */

int pg_job_dependencies_load(struct store *base, struct arena *arena,
                             struct job_dependency **dependencies, uint32_t *count,
                             struct err *err)
{
    struct pg_catalog_rows taken;
    int rc = pg_rows_ask(pg_of(base), PGSQL_job_dependencies_all, pg_job_dependency_row,
                         sizeof **dependencies, arena, &taken, err);

    *dependencies = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_job_dependency_put(struct store *base, const struct job_dependency *dependency,
                          struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct str kind = str_of(dependency_word(dependency->kind));
    int rc;

    param_uuid(params, &dependency->id);
    param_uuid(params, &dependency->job_id);
    param_uuid(params, &dependency->depends_on_job_id);
    param_text(params, kind);
    rc = pg_any_ask(store, PGSQL_job_dependency_same, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "the job depends on that one in this way already");
    if (rc < 0)
        return rc;
    param_uuid(params, &dependency->id);
    put_namespace(params, dependency->namespace_name);
    param_uuid(params, &dependency->job_id);
    param_uuid(params, &dependency->depends_on_job_id);
    param_text(params, kind);
    param_text(params, text_or(dependency->config, STR("{}")));
    param_time(params, dependency->created_at_us);
    return pg_send(store, PGSQL_job_dependency_put, err);
}

int pg_job_dependency_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return pg_remove(base, PGSQL_job_dependency_delete, id, "dependency", err);
}
