/* Rows of the catalog to structs, once for every statement that reads them, and how statements that
 * give such rows are run. The order of the columns here and in the lists below is one and the same.
 * Any thread, with a connection of its own. */
#include "store/sqlite/sqlite_catalog.h"

#include "core/spec/spec.h"

const char sqlite_category_columns[] =
    "c.id, c.namespace, c.name, c.description, c.default_priority, c.default_timeout, "
    "c.default_max_retries, c.configuration, c.is_active, c.created_at, c.updated_at";

const char sqlite_job_columns[] =
    "j.id, j.namespace, j.name, j.description, j.category_id, j.task_type, j.queue, "
    "j.target_service, j.target_method, j.payload, j.priority, j.max_retries, j.timeout_seconds, "
    "j.max_concurrent, j.callback_url, j.is_active, j.created_by, j.created_at, j.updated_at, "
    "j.deleted_at, j.last_task_id, j.last_status, j.last_ended_at";

const char sqlite_schedule_columns[] =
    "h.id, h.namespace, h.job_id, h.schedule_type, h.cron_expression, h.interval_seconds, "
    "h.scheduled_at, h.timezone, h.starts_at, h.ends_at, h.is_active, h.misfire, "
    "h.misfire_grace_ms, h.misfire_cap, h.overlap, h.dst, h.jitter_ms, h.callback_url, "
    "h.next_fire_at, h.last_fire_at, h.error, h.created_at, h.updated_at";

const char sqlite_recurring_columns[] =
    "r.id, r.namespace, r.name, r.pattern_type, r.pattern_config, r.template_job_id, "
    "r.last_generated, r.next_generation, r.is_active, r.error, r.created_at, r.updated_at";

const char sqlite_job_dependency_columns[] =
    "d.id, d.namespace, d.job_id, d.depends_on_job_id, d.dependency_type, d.dependency_config, "
    "d.created_at";

void sqlite_category_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct category *category = to;

    category->id = column_uuid(stmt, 0);
    category->namespace_name = column_str(stmt, 1, arena);
    category->name = column_str(stmt, 2, arena);
    category->description = column_str(stmt, 3, arena);
    priority_parse(column_view(stmt, 4), &category->default_priority);
    category->default_timeout_s = sqlite3_column_int64(stmt, 5);
    category->default_max_retries = sqlite3_column_int64(stmt, 6);
    category->configuration = column_str(stmt, 7, arena);
    category->is_active = sqlite3_column_int64(stmt, 8) != 0;
    category->created_at_us = sqlite3_column_int64(stmt, 9);
    category->updated_at_us = sqlite3_column_int64(stmt, 10);
}

void sqlite_job_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct job *job = to;

    job->id = column_uuid(stmt, 0);
    job->namespace_name = column_str(stmt, 1, arena);
    job->name = column_str(stmt, 2, arena);
    job->description = column_str(stmt, 3, arena);
    job->category_id = column_uuid(stmt, 4);
    job->task_type = column_str(stmt, 5, arena);
    job->queue = column_str(stmt, 6, arena);
    job->target_service = column_str(stmt, 7, arena);
    job->target_method = column_str(stmt, 8, arena);
    job->payload = column_str(stmt, 9, arena);
    job->has_priority = priority_parse(column_view(stmt, 10), &job->priority);
    job->has_max_retries = sqlite3_column_type(stmt, 11) != SQLITE_NULL;
    job->max_retries = sqlite3_column_int64(stmt, 11);
    job->has_timeout = sqlite3_column_type(stmt, 12) != SQLITE_NULL;
    job->timeout_s = sqlite3_column_int64(stmt, 12);
    job->max_concurrent = sqlite3_column_int64(stmt, 13);
    job->callback_url = column_str(stmt, 14, arena);
    job->is_active = sqlite3_column_int64(stmt, 15) != 0;
    job->created_by = column_str(stmt, 16, arena);
    job->created_at_us = sqlite3_column_int64(stmt, 17);
    job->updated_at_us = sqlite3_column_int64(stmt, 18);
    job->deleted_at_us = sqlite3_column_int64(stmt, 19);
    job->last_task_id = column_uuid(stmt, 20);
    status_parse(column_view(stmt, 21), &job->last_status);
    job->last_ended_at_us = sqlite3_column_int64(stmt, 22);
}

void sqlite_schedule_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct schedule *schedule = to;

    schedule->id = column_uuid(stmt, 0);
    schedule->namespace_name = column_str(stmt, 1, arena);
    schedule->job_id = column_uuid(stmt, 2);
    schedule_type_parse(column_view(stmt, 3), &schedule->type);
    schedule->cron_expression = column_str(stmt, 4, arena);
    schedule->interval_s = sqlite3_column_int64(stmt, 5);
    schedule->scheduled_at_us = sqlite3_column_int64(stmt, 6);
    schedule->timezone = column_str(stmt, 7, arena);
    schedule->starts_at_us = sqlite3_column_int64(stmt, 8);
    schedule->ends_at_us = sqlite3_column_int64(stmt, 9);
    schedule->is_active = sqlite3_column_int64(stmt, 10) != 0;
    misfire_parse(column_view(stmt, 11), &schedule->misfire);
    schedule->misfire_grace_ms = sqlite3_column_int64(stmt, 12);
    schedule->misfire_cap = sqlite3_column_int64(stmt, 13);
    overlap_parse(column_view(stmt, 14), &schedule->overlap);
    dst_policy_parse(column_view(stmt, 15), &schedule->dst);
    schedule->jitter_ms = sqlite3_column_int64(stmt, 16);
    schedule->callback_url = column_str(stmt, 17, arena);
    schedule->next_fire_at_us = sqlite3_column_int64(stmt, 18);
    schedule->last_fire_at_us = sqlite3_column_int64(stmt, 19);
    schedule->error = column_str(stmt, 20, arena);
    schedule->created_at_us = sqlite3_column_int64(stmt, 21);
    schedule->updated_at_us = sqlite3_column_int64(stmt, 22);
}

void sqlite_recurring_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct recurring *recurring = to;

    recurring->id = column_uuid(stmt, 0);
    recurring->namespace_name = column_str(stmt, 1, arena);
    recurring->name = column_str(stmt, 2, arena);
    recurrence_type_parse(column_view(stmt, 3), &recurring->type);
    recurring->pattern_config = column_str(stmt, 4, arena);
    recurring->template_job_id = column_uuid(stmt, 5);
    recurring->last_generated_us = sqlite3_column_int64(stmt, 6);
    recurring->next_generation_us = sqlite3_column_int64(stmt, 7);
    recurring->is_active = sqlite3_column_int64(stmt, 8) != 0;
    recurring->error = column_str(stmt, 9, arena);
    recurring->created_at_us = sqlite3_column_int64(stmt, 10);
    recurring->updated_at_us = sqlite3_column_int64(stmt, 11);
}

/* What its config says of mode and time was checked when it was taken; hand-written nonsense is a
 * gate for any end. */
void sqlite_job_dependency_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct job_dependency *dependency = to;
    struct err ignored = {0};

    dependency->id = column_uuid(stmt, 0);
    dependency->namespace_name = column_str(stmt, 1, arena);
    dependency->job_id = column_uuid(stmt, 2);
    dependency->depends_on_job_id = column_uuid(stmt, 3);
    dependency_parse(column_view(stmt, 4), &dependency->kind);
    dependency->config = column_str(stmt, 5, arena);
    dependency->created_at_us = sqlite3_column_int64(stmt, 6);
    job_dependency_read(dependency, &ignored);
}

void sqlite_job_run_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct job_run *run = to;

    (void)arena;
    run->task_id = column_uuid(stmt, 0);
    run->job_id = column_uuid(stmt, 1);
    run->schedule_id = column_uuid(stmt, 2);
    run->recurring_job_id = column_uuid(stmt, 3);
    run->waits_slot = sqlite3_column_int64(stmt, 4) != 0;
    run->created_at_us = sqlite3_column_int64(stmt, 5);
}

void sqlite_job_wait_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    struct job_wait *wait = to;

    (void)arena;
    wait->task_id = column_uuid(stmt, 0);
    wait->depends_on_job_id = column_uuid(stmt, 1);
    dependency_parse(column_view(stmt, 2), &wait->kind);
}

static int memory_failed(sqlite3_stmt *stmt, struct err *err)
{
    sqlite3_reset(stmt);
    return err_set(err, ERR_MEMORY, "out of memory for the catalog; try again");
}

int sqlite_rows_take(struct sqlite_sql *sql, sqlite3_stmt *stmt, catalog_row *row, size_t bytes,
                     struct arena *arena, struct catalog_rows *taken, struct err *err)
{
    uint32_t cap = 0;
    int rc;

    *taken = (struct catalog_rows){NULL, 0};
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        if (taken->count == cap) {
            uint32_t wanted = cap ? 2 * cap : 16;
            void *larger = arena_alloc_array(arena, wanted, bytes);

            if (!larger)
                return memory_failed(stmt, err);
            if (cap)
                memcpy(larger, taken->rows, cap * bytes);
            taken->rows = larger;
            cap = wanted;
        }
        row(stmt, arena, (char *)taken->rows + taken->count++ * bytes);
    }
    return rc == 0 && arena->failed ? memory_failed(stmt, err) : rc;
}

int sqlite_row_take(struct sqlite_sql *sql, sqlite3_stmt *stmt, catalog_row *row, size_t bytes,
                    struct arena *arena, void **taken, struct err *err)
{
    int rc = stmt ? sql_step(sql, stmt, err) : -(int)err->code;

    *taken = NULL;
    if (rc <= 0)
        return rc;
    *taken = arena_alloc(arena, bytes);
    if (*taken)
        row(stmt, arena, *taken);
    if (arena->failed)
        return memory_failed(stmt, err);
    sqlite3_reset(stmt);
    return 0;
}

int sqlite_remove(struct store *base, enum sqlite_statement name, const struct uuid *id,
                  const char *what, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, name, err);
    int64_t changes = 0;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    TRY(sql_run(sql, stmt, &changes, err));
    return changes ? 0 : err_set(err, ERR_NOT_FOUND, "there is no such %s", what);
}
