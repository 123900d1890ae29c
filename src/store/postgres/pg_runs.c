/* Open runs of jobs (limits per job, overlap) and what they wait for (gates), and the table of all
 * verbs of the catalog. Writer's thread only. */
#include "store/postgres/pg_catalog.h"

int pg_runs_insert(struct store *base, const struct job_run *runs, uint32_t count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    if (count == 0)
        return 0;
    put_uuids(params, &runs[0].task_id, sizeof *runs, count);
    put_uuids(params, &runs[0].job_id, sizeof *runs, count);
    put_uuids(params, &runs[0].schedule_id, sizeof *runs, count);
    put_uuids(params, &runs[0].recurring_job_id, sizeof *runs, count);
    array_begin(params, PG_OID_BOOL);
    for (uint32_t i = 0; i < count; i++)
        array_bool(params, runs[i].waits_slot);
    array_end(params);
    put_times(params, &runs[0].created_at_us, sizeof *runs, count);
    return pg_send(store, PGSQL_runs_insert, err);
}

int pg_run_save(struct store *base, const struct job_run *run, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, &run->task_id);
    param_bool(&store->conn.params, run->waits_slot);
    return pg_send(store, PGSQL_run_save, err);
}

int pg_run_delete(struct store *base, const struct uuid *task_id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, task_id);
    return pg_send(store, PGSQL_run_delete, err);
}

int pg_runs_find(struct store *base, const struct uuid *job_id, const struct uuid *schedule_id,
                 const struct uuid *recurring_job_id, uint32_t limit, struct arena *arena,
                 struct job_run **runs, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    enum pg_sql_name name = PGSQL_runs_of_recurring;
    const struct uuid *id = recurring_job_id;
    struct pg_catalog_rows taken;
    int rc;

    if (!uuid_is_nil(job_id)) {
        name = PGSQL_runs_of_job;
        id = job_id;
    } else if (!uuid_is_nil(schedule_id)) {
        name = PGSQL_runs_of_schedule;
        id = schedule_id;
    }
    param_uuid(&store->conn.params, id);
    param_int(&store->conn.params, limit);
    rc = pg_rows_ask(store, name, pg_job_run_row, sizeof **runs, arena, &taken, err);
    *runs = taken.rows;
    *count = taken.count;
    return rc;
}

static void put_waits(struct pg_params *params, const struct job_wait *waits, uint32_t count)
{
    put_uuids(params, &waits[0].task_id, sizeof *waits, count);
    put_uuids(params, &waits[0].depends_on_job_id, sizeof *waits, count);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, str_of(dependency_word(waits[i].kind)));
    array_end(params);
}

int pg_waits_insert(struct store *base, const struct job_wait *waits, uint32_t count,
                    struct err *err)
{
    struct pg_store *store = pg_of(base);

    if (count == 0)
        return 0;
    put_waits(&store->conn.params, waits, count);
    return pg_send(store, PGSQL_waits_insert, err);
}

int pg_waits_find(struct store *base, const struct uuid *depends_on_job_id,
                  const struct job_wait *after, uint32_t limit, struct arena *arena,
                  struct job_wait **waits, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(params, depends_on_job_id);
    param_uuid(params, after ? &after->task_id : &(struct uuid){{0}});
    param_text(params, after ? str_of(dependency_word(after->kind)) : STR_NONE);
    param_int(params, limit);
    rc = pg_rows_ask(store, PGSQL_waits_of_job, pg_job_wait_row, sizeof **waits, arena, &taken,
                     err);
    *waits = taken.rows;
    *count = taken.count;
    return rc;
}

/* Waits for the answer only where somebody wants to know. */
static int remove_counted(struct pg_store *store, enum pg_sql_name name, uint32_t *removed,
                          struct err *err)
{
    PGresult *result;

    if (!removed)
        return pg_send(store, name, err);
    *removed = 0;
    TRY(pg_query(store, name, &result, err));
    *removed = (uint32_t)get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

int pg_waits_delete(struct store *base, const struct job_wait *waits, uint32_t count,
                    uint32_t *removed, struct err *err)
{
    if (removed)
        *removed = 0;
    if (count == 0)
        return 0;
    put_waits(&pg_of(base)->conn.params, waits, count);
    return remove_counted(pg_of(base), PGSQL_waits_delete, removed, err);
}

int pg_waits_drop(struct store *base, const struct uuid *task_id, uint32_t *removed,
                  struct err *err)
{
    param_uuid(&pg_of(base)->conn.params, task_id);
    return remove_counted(pg_of(base), PGSQL_waits_drop, removed, err);
}

/* ---- those that wait for a slot, those that need not wait any more ---- */

int pg_runs_count(struct store *base, const struct uuid *job_id, const struct uuid *schedule_id,
                  uint32_t limit, uint32_t *going, uint32_t *waiting, struct err *err)
{
    struct pg_store *store = pg_of(base);
    bool of_job = !uuid_is_nil(job_id);
    PGresult *result;

    *going = *waiting = 0;
    param_uuid(&store->conn.params, of_job ? job_id : schedule_id);
    param_int(&store->conn.params, limit);
    TRY(pg_ask(store, of_job ? PGSQL_runs_count_job : PGSQL_runs_count_schedule, &result, err));
    if (PQntuples(result) > 0) {
        *going = (uint32_t)get_int(result, 0, 0, 0);
        *waiting = (uint32_t)get_int(result, 0, 1, 0);
    }
    PQclear(result);
    return 0;
}

int pg_runs_waiting(struct store *base, const struct uuid *job_id, const struct uuid *schedule_id,
                    const struct job_run *after, uint32_t limit, struct arena *arena,
                    struct job_run **runs, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    bool of_job = !uuid_is_nil(job_id);
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(params, of_job ? job_id : schedule_id);
    param_time(params, after ? after->created_at_us : 0);
    param_uuid(params, after ? &after->task_id : &(struct uuid){{0}});
    param_int(params, limit);
    rc = pg_rows_ask(store, of_job ? PGSQL_runs_waiting : PGSQL_runs_waiting_of_schedule,
                     pg_job_run_row, sizeof **runs, arena, &taken, err);
    *runs = taken.rows;
    *count = taken.count;
    return rc;
}

static void id_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    (void)arena;
    *(struct uuid *)to = get_uuid(result, row, first);
}

int pg_runs_waiting_jobs(struct store *base, const struct uuid *after, uint32_t limit,
                         struct arena *arena, struct uuid **ids, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(&store->conn.params, after);
    param_int(&store->conn.params, limit);
    rc = pg_rows_ask(store, PGSQL_runs_waiting_jobs, id_row, sizeof **ids, arena, &taken, err);
    *ids = taken.rows;
    *count = taken.count;
    return rc;
}

int pg_waits_end(struct store *base, const struct uuid *depends_on_job_id, const bool *kinds,
                 const struct uuid *of_job_id, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, depends_on_job_id);
    for (int i = 0; i < DEPENDENCY_COUNT; i++)
        param_text(params, kinds[i] ? str_of(dependency_word((enum dependency)i)) : STR_NONE);
    param_uuid(params, of_job_id);
    return pg_send(store, PGSQL_waits_end, err);
}

int pg_waits_end_of_job(struct store *base, const struct uuid *job_id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, job_id);
    return pg_send(store, PGSQL_waits_end_of_job, err);
}

int pg_waits_over(struct store *base, uint32_t limit, struct arena *arena,
                  struct job_wait **waits, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_catalog_rows taken;
    int rc;

    param_int(&store->conn.params, limit);
    rc = pg_rows_ask(store, PGSQL_waits_over, pg_job_wait_row, sizeof **waits, arena, &taken, err);
    *waits = taken.rows;
    *count = taken.count;
    return rc;
}

static void delayed_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    (void)arena;
    *(struct delayed *)to = (struct delayed){.id = get_uuid(result, row, first),
                                             .at_us = get_time(result, row, first + 1),
                                             .key = get_int(result, row, first + 2, 0),
                                             .has_state = get_bool(result, row, first + 3)};
}

int pg_delayed_scan(struct store *base, struct str state, const struct delayed *after,
                    uint32_t limit, struct arena *arena, struct delayed **delayed,
                    uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct pg_catalog_rows taken;
    int rc;

    param_time(params, after ? after->at_us : 0);
    param_int(params, after ? after->key : 0);
    param_int(params, limit);
    param_text(params, state);
    rc = pg_rows_ask(store, PGSQL_delayed_scan, delayed_row, sizeof **delayed, arena, &taken, err);
    *delayed = taken.rows;
    *count = taken.count;
    return rc;
}

const struct catalog_verbs pg_catalog_verbs = {
    .lock = pg_catalog_lock,
    .version = pg_catalog_version,
    .categories_load = pg_categories_load,
    .category_put = pg_category_put,
    .category_delete = pg_category_delete,
    .jobs_load = pg_jobs_load,
    .job_put = pg_job_put,
    .job_ended = pg_job_ended,
    .job_delete = pg_job_delete,
    .schedules_load = pg_schedules_load,
    .schedule_put = pg_schedule_put,
    .schedule_delete = pg_schedule_delete,
    .schedules_due = pg_schedules_due,
    .schedules_step = pg_schedules_step,
    .schedules_scan = pg_schedules_scan,
    .recurring_load = pg_recurring_load,
    .recurring_put = pg_recurring_put,
    .recurring_delete = pg_recurring_delete,
    .recurring_due = pg_recurring_due,
    .recurring_step = pg_recurring_step,
    .recurring_scan = pg_recurring_scan,
    .fires_insert = pg_fires_insert,
    .fires_prune = pg_fires_prune,
    .dependencies_load = pg_job_dependencies_load,
    .dependency_put = pg_job_dependency_put,
    .dependency_delete = pg_job_dependency_delete,
    .runs_insert = pg_runs_insert,
    .run_save = pg_run_save,
    .run_delete = pg_run_delete,
    .runs_find = pg_runs_find,
    .runs_count = pg_runs_count,
    .runs_waiting = pg_runs_waiting,
    .runs_waiting_jobs = pg_runs_waiting_jobs,
    .waits_insert = pg_waits_insert,
    .waits_find = pg_waits_find,
    .waits_delete = pg_waits_delete,
    .waits_drop = pg_waits_drop,
    .waits_end = pg_waits_end,
    .waits_end_of_job = pg_waits_end_of_job,
    .waits_over = pg_waits_over,
    .delayed_scan = pg_delayed_scan,
    .read_categories = pg_read_categories,
    .read_jobs = pg_read_jobs,
    .read_schedules = pg_read_schedules,
    .read_recurring = pg_read_recurring,
    .read_dependencies = pg_read_job_dependencies,
    .read_category = pg_read_category,
    .read_job = pg_read_job,
    .read_schedule = pg_read_schedule,
    .read_recurring_one = pg_read_recurring_one,
    .read_execution_list = pg_read_execution_list,
    .read_execution = pg_read_execution,
    .read_execution_logs = pg_read_execution_logs,
    .read_job_stats = pg_read_job_stats,
    .read_next_fires = pg_read_next_fires,
};
