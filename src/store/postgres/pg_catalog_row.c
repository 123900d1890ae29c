/* Rows of the catalog to structs, once for every statement that gives them, and how such statements
 * are asked. The order of the columns here and in the lists below is one and the same. Any thread,
 * with a connection of its own. */
#include "store/postgres/pg_catalog.h"

#include "core/spec/spec.h"

const char pg_category_columns[] =
    "c.id, c.namespace, c.name, c.description, c.default_priority, c.default_timeout::bigint, "
    "c.default_max_retries::bigint, c.configuration::text, c.is_active, c.created_at, "
    "c.updated_at";

const char pg_job_columns[] =
    "j.id, j.namespace, j.name, j.description, j.category_id, j.task_type, j.queue, "
    "j.target_service, j.target_method, j.payload, j.priority, j.max_retries::bigint, "
    "j.timeout_seconds::bigint, j.max_concurrent, j.callback_url, j.is_active, j.created_by, "
    "j.created_at, j.updated_at, j.deleted_at, j.last_task_id, j.last_status, j.last_ended_at";

const char pg_schedule_columns[] =
    "h.id, h.namespace, h.job_id, h.schedule_type, h.cron_expression, h.interval_seconds, "
    "h.scheduled_at, h.timezone, h.starts_at, h.ends_at, h.is_active, h.misfire, "
    "h.misfire_grace_ms, h.misfire_cap, h.overlap, h.dst, h.jitter_ms, h.callback_url, "
    "h.next_fire_at, h.last_fire_at, h.error, h.created_at, h.updated_at";

const char pg_recurring_columns[] =
    "r.id, r.namespace, r.name, r.pattern_type, r.pattern_config::text, r.template_job_id, "
    "r.last_generated, r.next_generation, r.is_active, r.error, r.created_at, r.updated_at";

const char pg_job_dependency_columns[] =
    "d.id, d.namespace, d.job_id, d.depends_on_job_id, d.dependency_type, "
    "d.dependency_config::text, d.created_at";

void pg_category_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct category *category = to;

    category->id = get_uuid(result, row, first);
    category->namespace_name = get_text(result, row, first + 1, arena);
    category->name = get_text(result, row, first + 2, arena);
    category->description = get_text(result, row, first + 3, arena);
    priority_parse(view_text(result, row, first + 4), &category->default_priority);
    category->default_timeout_s = get_int(result, row, first + 5, 0);
    category->default_max_retries = get_int(result, row, first + 6, 0);
    category->configuration = get_text(result, row, first + 7, arena);
    category->is_active = get_bool(result, row, first + 8);
    category->created_at_us = get_time(result, row, first + 9);
    category->updated_at_us = get_time(result, row, first + 10);
}

void pg_job_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct job *job = to;

    job->id = get_uuid(result, row, first);
    job->namespace_name = get_text(result, row, first + 1, arena);
    job->name = get_text(result, row, first + 2, arena);
    job->description = get_text(result, row, first + 3, arena);
    job->category_id = get_uuid(result, row, first + 4);
    job->task_type = get_text(result, row, first + 5, arena);
    job->queue = get_text(result, row, first + 6, arena);
    job->target_service = get_text(result, row, first + 7, arena);
    job->target_method = get_text(result, row, first + 8, arena);
    job->payload = get_text(result, row, first + 9, arena);
    job->has_priority = priority_parse(view_text(result, row, first + 10), &job->priority);
    job->has_max_retries = !PQgetisnull(result, row, first + 11);
    job->max_retries = get_int(result, row, first + 11, 0);
    job->has_timeout = !PQgetisnull(result, row, first + 12);
    job->timeout_s = get_int(result, row, first + 12, 0);
    job->max_concurrent = get_int(result, row, first + 13, 0);
    job->callback_url = get_text(result, row, first + 14, arena);
    job->is_active = get_bool(result, row, first + 15);
    job->created_by = get_text(result, row, first + 16, arena);
    job->created_at_us = get_time(result, row, first + 17);
    job->updated_at_us = get_time(result, row, first + 18);
    job->deleted_at_us = get_time(result, row, first + 19);
    job->last_task_id = get_uuid(result, row, first + 20);
    status_parse(view_text(result, row, first + 21), &job->last_status);
    job->last_ended_at_us = get_time(result, row, first + 22);
}

void pg_schedule_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct schedule *schedule = to;

    schedule->id = get_uuid(result, row, first);
    schedule->namespace_name = get_text(result, row, first + 1, arena);
    schedule->job_id = get_uuid(result, row, first + 2);
    schedule_type_parse(view_text(result, row, first + 3), &schedule->type);
    schedule->cron_expression = get_text(result, row, first + 4, arena);
    schedule->interval_s = get_int(result, row, first + 5, 0);
    schedule->scheduled_at_us = get_time(result, row, first + 6);
    schedule->timezone = get_text(result, row, first + 7, arena);
    schedule->starts_at_us = get_time(result, row, first + 8);
    schedule->ends_at_us = get_time(result, row, first + 9);
    schedule->is_active = get_bool(result, row, first + 10);
    misfire_parse(view_text(result, row, first + 11), &schedule->misfire);
    schedule->misfire_grace_ms = get_int(result, row, first + 12, 0);
    schedule->misfire_cap = get_int(result, row, first + 13, 0);
    overlap_parse(view_text(result, row, first + 14), &schedule->overlap);
    dst_policy_parse(view_text(result, row, first + 15), &schedule->dst);
    schedule->jitter_ms = get_int(result, row, first + 16, 0);
    schedule->callback_url = get_text(result, row, first + 17, arena);
    schedule->next_fire_at_us = get_time(result, row, first + 18);
    schedule->last_fire_at_us = get_time(result, row, first + 19);
    schedule->error = get_text(result, row, first + 20, arena);
    schedule->created_at_us = get_time(result, row, first + 21);
    schedule->updated_at_us = get_time(result, row, first + 22);
}

void pg_recurring_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct recurring *recurring = to;

    recurring->id = get_uuid(result, row, first);
    recurring->namespace_name = get_text(result, row, first + 1, arena);
    recurring->name = get_text(result, row, first + 2, arena);
    recurrence_type_parse(view_text(result, row, first + 3), &recurring->type);
    recurring->pattern_config = get_text(result, row, first + 4, arena);
    recurring->template_job_id = get_uuid(result, row, first + 5);
    recurring->last_generated_us = get_time(result, row, first + 6);
    recurring->next_generation_us = get_time(result, row, first + 7);
    recurring->is_active = get_bool(result, row, first + 8);
    recurring->error = get_text(result, row, first + 9, arena);
    recurring->created_at_us = get_time(result, row, first + 10);
    recurring->updated_at_us = get_time(result, row, first + 11);
}

/* What its config says of mode and time was checked when it was taken; hand-written nonsense is a
 * gate for any end. */
void pg_job_dependency_row(const PGresult *result, int row, int first, struct arena *arena,
                           void *to)
{
    struct job_dependency *dependency = to;
    struct err ignored = {0};

    dependency->id = get_uuid(result, row, first);
    dependency->namespace_name = get_text(result, row, first + 1, arena);
    dependency->job_id = get_uuid(result, row, first + 2);
    dependency->depends_on_job_id = get_uuid(result, row, first + 3);
    dependency_parse(view_text(result, row, first + 4), &dependency->kind);
    dependency->config = get_text(result, row, first + 5, arena);
    dependency->created_at_us = get_time(result, row, first + 6);
    job_dependency_read(dependency, &ignored);
}

void pg_job_run_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct job_run *run = to;

    (void)arena;
    run->task_id = get_uuid(result, row, first);
    run->job_id = get_uuid(result, row, first + 1);
    run->schedule_id = get_uuid(result, row, first + 2);
    run->recurring_job_id = get_uuid(result, row, first + 3);
    run->waits_slot = get_bool(result, row, first + 4);
    run->created_at_us = get_time(result, row, first + 5);
}

void pg_job_wait_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct job_wait *wait = to;

    (void)arena;
    wait->task_id = get_uuid(result, row, first);
    wait->depends_on_job_id = get_uuid(result, row, first + 1);
    dependency_parse(view_text(result, row, first + 2), &wait->kind);
}

/* ---- asking ---- */

static int memory_failed(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for the catalog; try again");
}

int pg_rows_ask(struct pg_store *store, enum pg_sql_name name, pg_catalog_row *row, size_t bytes,
                struct arena *arena, struct pg_catalog_rows *taken, struct err *err)
{
    PGresult *result;

    *taken = (struct pg_catalog_rows){NULL, 0};
    TRY(pg_ask(store, name, &result, err));
    taken->rows = arena_alloc_array(arena, (size_t)PQntuples(result) + 1, bytes);
    for (int i = 0; taken->rows && i < PQntuples(result); i++)
        row(result, i, 0, arena, (char *)taken->rows + taken->count++ * bytes);
    PQclear(result);
    return arena->failed ? memory_failed(err) : 0;
}

int pg_any_ask(struct pg_store *store, enum pg_sql_name name, struct err *err)
{
    PGresult *result;
    int any;

    TRY(pg_ask(store, name, &result, err));
    any = PQntuples(result) > 0;
    PQclear(result);
    return any;
}

int pg_rows_by_id(struct pg_store *store, enum pg_sql_name name, const struct uuid *ids,
                  uint32_t count, pg_catalog_row *row, size_t bytes, struct arena *arena,
                  void **found, struct err *err)
{
    PGresult *result;

    if (count == 0)
        return 0;
    memset(found, 0, count * sizeof *found);
    put_uuids(&store->conn.params, ids, sizeof *ids, count);
    TRY(pg_ask(store, name, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        int64_t at = get_int(result, i, 0, 0) - 1;
        void *one = at >= 0 && at < count ? arena_alloc(arena, bytes) : NULL;

        if (!one)
            continue;
        row(result, i, 1, arena, one);
        found[at] = one;
    }
    PQclear(result);
    return arena->failed ? memory_failed(err) : 0;
}

int pg_remove(struct store *base, enum pg_sql_name name, const struct uuid *id, const char *what,
              struct err *err)
{
    struct pg_store *store = pg_of(base);
    int rc;

    param_uuid(&store->conn.params, id);
    rc = pg_any_ask(store, name, err);
    if (rc == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such %s", what);
    return rc < 0 ? rc : 0;
}

void put_uuids(struct pg_params *params, const struct uuid *first, size_t bytes, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, (const struct uuid *)(const void *)((const char *)first + i * bytes));
    array_end(params);
}

void put_times(struct pg_params *params, const int64_t *first, size_t bytes, uint32_t count)
{
    array_begin(params, PG_OID_TIME);
    for (uint32_t i = 0; i < count; i++)
        array_time(params, *(const int64_t *)(const void *)((const char *)first + i * bytes));
    array_end(params);
}
