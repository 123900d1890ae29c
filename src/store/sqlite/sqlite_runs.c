/* Open runs of jobs (limits per job, overlap) and what they wait for (gates), and the table of all
 * verbs of the catalog. Writer's thread only. */
#include "store/sqlite/sqlite_catalog.h"

int sqlite_runs_insert(struct store *base, const struct job_run *runs, uint32_t count,
                       struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_run_put, err);

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &runs[i].task_id);
        bind_uuid(stmt, 2, &runs[i].job_id);
        bind_uuid(stmt, 3, &runs[i].schedule_id);
        bind_uuid(stmt, 4, &runs[i].recurring_job_id);
        bind_int(stmt, 5, runs[i].waits_slot);
        bind_int(stmt, 6, runs[i].created_at_us);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

int sqlite_run_save(struct store *base, const struct job_run *run, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_run_save, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &run->task_id);
    bind_int(stmt, 2, run->waits_slot);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_run_delete(struct store *base, const struct uuid *task_id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_run_delete, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_runs_find(struct store *base, const struct uuid *job_id, const struct uuid *schedule_id,
                     const struct uuid *recurring_job_id, uint32_t limit, struct arena *arena,
                     struct job_run **runs, uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    const struct uuid *id = !uuid_is_nil(job_id)        ? job_id
                            : !uuid_is_nil(schedule_id) ? schedule_id
                                                        : recurring_job_id;
    sqlite3_stmt *stmt = sql_get(sql, id == job_id        ? SQL_runs_of_job
                                      : id == schedule_id ? SQL_runs_of_schedule
                                                          : SQL_runs_of_recurring, err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    bind_int(stmt, 2, limit);
    rc = sqlite_rows_take(sql, stmt, sqlite_job_run_row, sizeof **runs, arena, &taken, err);
    *runs = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_waits_insert(struct store *base, const struct job_wait *waits, uint32_t count,
                        struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_wait_put, err);

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &waits[i].task_id);
        bind_uuid(stmt, 2, &waits[i].depends_on_job_id);
        bind_str(stmt, 3, str_of(dependency_word(waits[i].kind)));
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

int sqlite_waits_find(struct store *base, const struct uuid *depends_on_job_id,
                      const struct job_wait *after, uint32_t limit, struct arena *arena,
                      struct job_wait **waits, uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_waits_of_job, err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, depends_on_job_id);
    bind_uuid(stmt, 2, after ? &after->task_id : &(struct uuid){{0}});
    bind_str(stmt, 3, after ? str_of(dependency_word(after->kind)) : STR_NONE);
    bind_int(stmt, 4, limit);
    rc = sqlite_rows_take(sql, stmt, sqlite_job_wait_row, sizeof **waits, arena, &taken, err);
    *waits = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_waits_delete(struct store *base, const struct job_wait *waits, uint32_t count,
                        uint32_t *removed, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    int64_t total = 0;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_wait_delete, err);
        int64_t changes = 0;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &waits[i].task_id);
        bind_uuid(stmt, 2, &waits[i].depends_on_job_id);
        bind_str(stmt, 3, str_of(dependency_word(waits[i].kind)));
        TRY(sql_run(sql, stmt, &changes, err));
        total += changes;
    }
    if (removed)
        *removed = (uint32_t)total;
    return 0;
}

int sqlite_waits_drop(struct store *base, const struct uuid *task_id, uint32_t *removed,
                      struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_waits_drop, err);
    int64_t changes = 0;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, task_id);
    TRY(sql_run(sql, stmt, &changes, err));
    if (removed)
        *removed = (uint32_t)changes;
    return 0;
}

/* ---- those that wait for a slot, those that need not wait any more ---- */

int sqlite_runs_count(struct store *base, const struct uuid *job_id,
                      const struct uuid *schedule_id, uint32_t limit, uint32_t *going,
                      uint32_t *waiting, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    bool of_job = !uuid_is_nil(job_id);
    sqlite3_stmt *stmt = sql_get(sql, of_job ? SQL_runs_count_job : SQL_runs_count_schedule, err);
    int rc;

    *going = *waiting = 0;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, of_job ? job_id : schedule_id);
    bind_int(stmt, 2, limit);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *going = (uint32_t)sqlite3_column_int64(stmt, 0);
    *waiting = (uint32_t)sqlite3_column_int64(stmt, 1);
    sqlite3_reset(stmt);
    return 0;
}

int sqlite_runs_waiting(struct store *base, const struct uuid *job_id,
                        const struct uuid *schedule_id, const struct job_run *after,
                        uint32_t limit, struct arena *arena, struct job_run **runs,
                        uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    bool of_job = !uuid_is_nil(job_id);
    sqlite3_stmt *stmt = sql_get(sql, of_job ? SQL_runs_waiting : SQL_runs_waiting_of_schedule,
                                 err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, of_job ? job_id : schedule_id);
    bind_int(stmt, 2, after ? after->created_at_us : INT64_MIN);
    bind_uuid(stmt, 3, after ? &after->task_id : &(struct uuid){{0}});
    bind_int(stmt, 4, limit);
    rc = sqlite_rows_take(sql, stmt, sqlite_job_run_row, sizeof **runs, arena, &taken, err);
    *runs = taken.rows;
    *count = taken.count;
    return rc;
}

static void id_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    (void)arena;
    *(struct uuid *)to = column_uuid(stmt, 0);
}

int sqlite_runs_waiting_jobs(struct store *base, const struct uuid *after, uint32_t limit,
                             struct arena *arena, struct uuid **ids, uint32_t *count,
                             struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_runs_waiting_jobs, err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, after);
    bind_int(stmt, 2, limit);
    rc = sqlite_rows_take(sql, stmt, id_row, sizeof **ids, arena, &taken, err);
    *ids = taken.rows;
    *count = taken.count;
    return rc;
}

int sqlite_waits_end(struct store *base, const struct uuid *depends_on_job_id, const bool *kinds,
                     const struct uuid *of_job_id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_waits_end, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, depends_on_job_id);
    for (int i = 0; i < DEPENDENCY_COUNT; i++)
        bind_str(stmt, 2 + i, kinds[i] ? str_of(dependency_word((enum dependency)i)) : STR_NONE);
    bind_uuid(stmt, 2 + DEPENDENCY_COUNT, of_job_id);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_waits_end_of_job(struct store *base, const struct uuid *job_id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_waits_end_of_job, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, job_id);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_waits_over(struct store *base, uint32_t limit, struct arena *arena,
                      struct job_wait **waits, uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_waits_over, err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, limit);
    rc = sqlite_rows_take(sql, stmt, sqlite_job_wait_row, sizeof **waits, arena, &taken, err);
    *waits = taken.rows;
    *count = taken.count;
    return rc;
}

static void delayed_row(sqlite3_stmt *stmt, struct arena *arena, void *to)
{
    (void)arena;
    *(struct delayed *)to = (struct delayed){.id = column_uuid(stmt, 0),
                                             .at_us = sqlite3_column_int64(stmt, 1),
                                             .key = sqlite3_column_int64(stmt, 2),
                                             .has_state = sqlite3_column_int64(stmt, 3) != 0};
}

int sqlite_delayed_scan(struct store *base, struct str state, const struct delayed *after,
                        uint32_t limit, struct arena *arena, struct delayed **delayed,
                        uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_delayed_scan, err);
    struct catalog_rows taken;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, after ? after->at_us : INT64_MIN);
    bind_int(stmt, 2, after ? after->key : 0);
    bind_int(stmt, 3, limit);
    bind_str(stmt, 4, state);
    rc = sqlite_rows_take(sql, stmt, delayed_row, sizeof **delayed, arena, &taken, err);
    *delayed = taken.rows;
    *count = taken.count;
    return rc;
}

const struct catalog_verbs sqlite_catalog_verbs = {
    .lock = sqlite_catalog_lock,
    .version = sqlite_catalog_version,
    .categories_load = sqlite_categories_load,
    .category_put = sqlite_category_put,
    .category_delete = sqlite_category_delete,
    .jobs_load = sqlite_jobs_load,
    .job_put = sqlite_job_put,
    .job_ended = sqlite_job_ended,
    .job_delete = sqlite_job_delete,
    .schedules_load = sqlite_schedules_load,
    .schedule_put = sqlite_schedule_put,
    .schedule_delete = sqlite_schedule_delete,
    .schedules_due = sqlite_schedules_due,
    .schedules_step = sqlite_schedules_step,
    .schedules_scan = sqlite_schedules_scan,
    .recurring_load = sqlite_recurring_load,
    .recurring_put = sqlite_recurring_put,
    .recurring_delete = sqlite_recurring_delete,
    .recurring_due = sqlite_recurring_due,
    .recurring_step = sqlite_recurring_step,
    .recurring_scan = sqlite_recurring_scan,
    .fires_insert = sqlite_fires_insert,
    .fires_prune = sqlite_fires_prune,
    .dependencies_load = sqlite_job_dependencies_load,
    .dependency_put = sqlite_job_dependency_put,
    .dependency_delete = sqlite_job_dependency_delete,
    .runs_insert = sqlite_runs_insert,
    .run_save = sqlite_run_save,
    .run_delete = sqlite_run_delete,
    .runs_find = sqlite_runs_find,
    .runs_count = sqlite_runs_count,
    .runs_waiting = sqlite_runs_waiting,
    .runs_waiting_jobs = sqlite_runs_waiting_jobs,
    .waits_insert = sqlite_waits_insert,
    .waits_find = sqlite_waits_find,
    .waits_delete = sqlite_waits_delete,
    .waits_drop = sqlite_waits_drop,
    .waits_end = sqlite_waits_end,
    .waits_end_of_job = sqlite_waits_end_of_job,
    .waits_over = sqlite_waits_over,
    .delayed_scan = sqlite_delayed_scan,
    .read_categories = sqlite_read_categories,
    .read_jobs = sqlite_read_jobs,
    .read_schedules = sqlite_read_schedules,
    .read_recurring = sqlite_read_recurring,
    .read_dependencies = sqlite_read_job_dependencies,
    .read_category = sqlite_read_category,
    .read_job = sqlite_read_job,
    .read_schedule = sqlite_read_schedule,
    .read_recurring_one = sqlite_read_recurring_one,
    .read_execution_list = sqlite_read_execution_list,
    .read_execution = sqlite_read_execution,
    .read_execution_logs = sqlite_read_execution_logs,
    .read_job_stats = sqlite_read_job_stats,
    .read_next_fires = sqlite_read_next_fires,
};
