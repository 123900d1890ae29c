/* Categories, jobs and what jobs depend on: rows to structs and back. Refusals (a name that is
 * taken, a category in use) are found before anything is written, so that the transaction goes on.
 * Writer's thread only. */
#include "store/sqlite/sqlite_catalog.h"

#include "core/spec/spec.h"

#define PRIORITY_BYTES 24

/* Nobody else writes to the file: only the version has to move. */
int sqlite_catalog_lock(struct store *base, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_catalog_lock, err);

    return stmt ? sql_run(sql, stmt, NULL, err) : -(int)err->code;
}

int sqlite_catalog_version(struct store *base, int64_t *version, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_catalog_version, err);
    int rc = stmt ? sql_step(sql, stmt, err) : -(int)err->code;

    *version = 0;
    if (rc <= 0)
        return rc;
    *version = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return 0;
}

static struct str text_or(struct str text, struct str otherwise)
{
    return text.data ? text : otherwise;
}

static void bind_namespace(sqlite3_stmt *stmt, int at, struct str namespace_name)
{
    bind_str(stmt, at, text_or(namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
}

/* The word of a level where there is one, else the number; out has room for PRIORITY_BYTES. */
static struct str priority_text(int64_t priority, char *out)
{
    const char *word = priority_level(priority);

    if (word)
        return str_of(word);
    snprintf(out, PRIORITY_BYTES, "%lld", (long long)priority);
    return str_of(out);
}

/* Runs a statement that gives a row when something stands against what is wanted: 1 then. */
static int is_there(struct sqlite_sql *sql, sqlite3_stmt *stmt, struct err *err)
{
    int rc = sql_step(sql, stmt, err);

    if (rc > 0)
        sqlite3_reset(stmt);
    return rc;
}

int sqlite_categories_load(struct store *base, struct arena *arena, struct category **categories,
                           uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    struct catalog_rows taken;
    int rc = sqlite_rows_take(sql, sql_get(sql, SQL_categories_all, err), sqlite_category_row,
                              sizeof **categories, arena, &taken, err);

    *categories = taken.rows;
    *count = taken.count;
    return rc;
}

static int category_name_taken(struct sqlite_sql *sql, const struct category *category,
                               struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_category_named, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &category->id);
    bind_namespace(stmt, 2, category->namespace_name);
    bind_str(stmt, 3, category->name);
    rc = is_there(sql, stmt, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "there is a category " STR_FMT " already",
                       STR_ARG(category->name));
    return rc;
}

int sqlite_category_put(struct store *base, const struct category *category, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    char number[PRIORITY_BYTES];
    sqlite3_stmt *stmt;

    TRY(category_name_taken(sql, category, err));
    stmt = sql_get(sql, SQL_category_put, err);
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &category->id);
    bind_namespace(stmt, 2, category->namespace_name);
    bind_str(stmt, 3, category->name);
    bind_str(stmt, 4, category->description);
    bind_str(stmt, 5, priority_text(category->default_priority, number));
    bind_int(stmt, 6, category->default_timeout_s);
    bind_int(stmt, 7, category->default_max_retries);
    bind_str(stmt, 8, text_or(category->configuration, STR("{}")));
    bind_int(stmt, 9, category->is_active);
    bind_int(stmt, 10, category->created_at_us);
    bind_int(stmt, 11, category->updated_at_us);
    return sql_run(sql, stmt, NULL, err);
}

/* Deleted jobs do not hold it: they forget it. */
int sqlite_category_delete(struct store *base, const struct uuid *id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_category_used, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    rc = is_there(sql, stmt, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "jobs use this category; give them another one first");
    if (rc < 0)
        return rc;
    stmt = sql_get(sql, SQL_category_forget, err);
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    TRY(sql_run(sql, stmt, NULL, err));
    return sqlite_remove(base, SQL_category_delete, id, "category", err);
}

/* hold: a transaction of ours is the only one. */
int sqlite_jobs_load(struct store *base, const struct uuid *ids, uint32_t count, bool hold,
                     struct arena *arena, struct job **jobs, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    (void)hold;
    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_job_by_id, err);
        void *row;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &ids[i]);
        TRY(sqlite_row_take(sql, stmt, sqlite_job_row, sizeof **jobs, arena, &row, err));
        jobs[i] = row;
    }
    return 0;
}

static void bind_int_if(sqlite3_stmt *stmt, int at, bool has, int64_t value)
{
    if (has)
        bind_int(stmt, at, value);
    else
        sqlite3_bind_null(stmt, at);
}

int sqlite_job_put(struct store *base, const struct job *job, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_job_put, err);
    char number[PRIORITY_BYTES];

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &job->id);
    bind_namespace(stmt, 2, job->namespace_name);
    bind_str(stmt, 3, job->name);
    bind_str(stmt, 4, job->description);
    bind_uuid(stmt, 5, &job->category_id);
    bind_str(stmt, 6, job->task_type);
    bind_str(stmt, 7, job->queue);
    bind_str(stmt, 8, job->target_service);
    bind_str(stmt, 9, job->target_method);
    bind_str(stmt, 10, job->payload);
    bind_str(stmt, 11, job->has_priority ? priority_text(job->priority, number) : STR_NONE);
    bind_int_if(stmt, 12, job->has_max_retries, job->max_retries);
    bind_int_if(stmt, 13, job->has_timeout, job->timeout_s);
    bind_int(stmt, 14, job->max_concurrent);
    bind_str(stmt, 15, job->callback_url);
    bind_int(stmt, 16, job->is_active);
    bind_str(stmt, 17, job->created_by);
    bind_int(stmt, 18, job->created_at_us);
    bind_int(stmt, 19, job->updated_at_us);
    bind_int_or_null(stmt, 20, job->deleted_at_us);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_job_ended(struct store *base, const struct job *job, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_job_ended, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &job->id);
    bind_uuid(stmt, 2, &job->last_task_id);
    bind_str(stmt, 3, job->last_status ? str_of(status_word(job->last_status)) : STR_NONE);
    bind_int_or_null(stmt, 4, job->last_ended_at_us);
    return sql_run(sql, stmt, NULL, err);
}

static int run_with_id(struct sqlite_sql *sql, enum sqlite_statement name, const struct uuid *id,
                       struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, name, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_job_delete(struct store *base, const struct uuid *id, int64_t now_us, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_job_is_template, err);
    int64_t changes = 0;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    rc = is_there(sql, stmt, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "a recurring pattern makes its tasks from this job; "
                       "delete the pattern first");
    stmt = rc == 0 ? sql_get(sql, SQL_job_delete, err) : NULL;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    bind_int(stmt, 2, now_us);
    TRY(sql_run(sql, stmt, &changes, err));
    if (changes == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such job");
    TRY(run_with_id(sql, SQL_job_deletes_schedules, id, err));
    return run_with_id(sql, SQL_job_deletes_dependencies, id, err);
}

int sqlite_job_dependencies_load(struct store *base, struct arena *arena,
                                 struct job_dependency **dependencies, uint32_t *count,
                                 struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    struct catalog_rows taken;
    int rc = sqlite_rows_take(sql, sql_get(sql, SQL_job_dependencies_all, err),
                              sqlite_job_dependency_row, sizeof **dependencies, arena, &taken,
                              err);

    *dependencies = taken.rows;
    *count = taken.count;
    return rc;
}

static int same_dependency(struct sqlite_sql *sql, const struct job_dependency *dependency,
                           struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_job_dependency_same, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &dependency->id);
    bind_uuid(stmt, 2, &dependency->job_id);
    bind_uuid(stmt, 3, &dependency->depends_on_job_id);
    bind_str(stmt, 4, str_of(dependency_word(dependency->kind)));
    rc = is_there(sql, stmt, err);
    if (rc > 0)
        return err_set(err, ERR_CONFLICT, "the job depends on that one in this way already");
    return rc;
}

int sqlite_job_dependency_put(struct store *base, const struct job_dependency *dependency,
                              struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt;

    TRY(same_dependency(sql, dependency, err));
    stmt = sql_get(sql, SQL_job_dependency_put, err);
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &dependency->id);
    bind_namespace(stmt, 2, dependency->namespace_name);
    bind_uuid(stmt, 3, &dependency->job_id);
    bind_uuid(stmt, 4, &dependency->depends_on_job_id);
    bind_str(stmt, 5, str_of(dependency_word(dependency->kind)));
    bind_str(stmt, 6, text_or(dependency->config, STR("{}")));
    bind_int(stmt, 7, dependency->created_at_us);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_job_dependency_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return sqlite_remove(base, SQL_job_dependency_delete, id, "dependency", err);
}
