/* Schedules and recurring patterns: rows to structs and back, which of them are due, how they go
 * on, and the rows that make every planned instant fire once over all nodes. Writer's thread
 * only. */
#include "store/postgres/pg_catalog.h"

/* ---- what both kinds have in common ---- */

static void put_due(struct pg_store *store, int64_t wall_us, uint32_t limit)
{
    param_time(&store->conn.params, wall_us);
    param_int(&store->conn.params, (int64_t)limit + 1); /* the first that is not given any more */
}

static void put_errors(struct pg_params *params, const struct plan_step *steps, uint32_t count)
{
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, steps[i].error);
    array_end(params);
}

static int step_all(struct pg_store *store, enum pg_sql_name name, struct plan_step *steps,
                    uint32_t count, struct err *err)
{
    struct pg_params *params = &store->conn.params;
    PGresult *result;

    if (count == 0)
        return 0;
    put_uuids(params, &steps[0].id, sizeof *steps, count);
    put_times(params, &steps[0].from_us, sizeof *steps, count);
    put_times(params, &steps[0].to_us, sizeof *steps, count);
    put_times(params, &steps[0].fired_us, sizeof *steps, count);
    put_errors(params, steps, count);
    TRY(pg_query(store, name, &result, err));
    for (uint32_t i = 0; i < count; i++)
        steps[i].moved = false;
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t at = get_int(result, row, 0, 0) - 1;

        if (at >= 0 && at < count)
            steps[at].moved = true;
    }
    PQclear(result);
    return 0;
}

static int scan(struct pg_store *store, enum pg_sql_name name, const struct uuid *after,
                uint32_t limit, pg_catalog_row *row, size_t bytes, struct arena *arena,
                struct pg_catalog_rows *taken, struct err *err)
{
    param_uuid(&store->conn.params, after ? after : &(struct uuid){{0}});
    param_int(&store->conn.params, limit);
    return pg_rows_ask(store, name, row, bytes, arena, taken, err);
}

/* ---- schedules ---- */

int pg_schedules_load(struct store *base, const struct uuid *ids, uint32_t count,
                      struct arena *arena, struct schedule **schedules, struct err *err)
{
    void **found = arena_alloc_array(arena, count ? count : 1, sizeof *found);

    if (!found)
        return err_set(err, ERR_MEMORY, "out of memory for schedules; try again");
    TRY(pg_rows_by_id(pg_of(base), PGSQL_schedules_by_id, ids, count, pg_schedule_row,
                      sizeof **schedules, arena, found, err));
    for (uint32_t i = 0; i < count; i++)
        schedules[i] = found[i];
    return 0;
}

int pg_schedule_put(struct store *base, const struct schedule *schedule, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, &schedule->id);
    param_text(params, schedule->namespace_name.data ? schedule->namespace_name
                                                     : STR(TASK_DEFAULT_NAMESPACE));
    param_uuid(params, &schedule->job_id);
    param_text(params, str_of(schedule_type_word(schedule->type)));
    param_text(params, schedule->cron_expression);
    if (schedule->interval_s)
        param_int(params, schedule->interval_s);
    else
        param_int_null(params);
    param_time(params, schedule->scheduled_at_us);
    param_text(params, schedule->timezone.data ? schedule->timezone : STR("UTC"));
    param_time(params, schedule->starts_at_us);
    param_time(params, schedule->ends_at_us);
    param_bool(params, schedule->is_active);
    param_text(params, str_of(misfire_word(schedule->misfire)));
    param_int(params, schedule->misfire_grace_ms);
    param_int(params, schedule->misfire_cap);
    param_text(params, str_of(overlap_word(schedule->overlap)));
    param_text(params, str_of(dst_policy_word(schedule->dst)));
    param_int(params, schedule->jitter_ms);
    param_text(params, schedule->callback_url);
    param_time(params, schedule->next_fire_at_us);
    param_time(params, schedule->last_fire_at_us);
    param_text(params, schedule->error);
    param_time(params, schedule->created_at_us);
    param_time(params, schedule->updated_at_us);
    return pg_send(store, PGSQL_schedule_put, err);
}

int pg_schedule_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return pg_remove(base, PGSQL_schedule_delete, id, "schedule", err);
}

int pg_schedules_due(struct store *base, int64_t wall_us, uint32_t limit, struct arena *arena,
                     struct schedule **schedules, uint32_t *count, int64_t *next_us,
                     struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    *next_us = INT64_MAX;
    put_due(pg_of(base), wall_us, limit);
    rc = pg_rows_ask(pg_of(base), PGSQL_schedules_due, pg_schedule_row, sizeof **schedules, arena,
                     &taken, err);
    *schedules = taken.rows;
    *count = 0;
    while (*count < taken.count && *count < limit &&
           (*schedules)[*count].next_fire_at_us <= wall_us)
        ++*count;
    if (*count < taken.count)
        *next_us = (*schedules)[*count].next_fire_at_us;
    return rc;
}

int pg_schedules_step(struct store *base, struct plan_step *steps, uint32_t count, struct err *err)
{
    return step_all(pg_of(base), PGSQL_schedules_step, steps, count, err);
}

int pg_schedules_scan(struct store *base, const struct uuid *after, uint32_t limit,
                      struct arena *arena, struct schedule **schedules, uint32_t *count,
                      struct err *err)
{
    struct pg_catalog_rows taken;
    int rc = scan(pg_of(base), PGSQL_schedules_scan, after, limit, pg_schedule_row,
                  sizeof **schedules, arena, &taken, err);

    *schedules = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- recurring patterns ---- */

int pg_recurring_load(struct store *base, const struct uuid *ids, uint32_t count,
                      struct arena *arena, struct recurring **recurring, struct err *err)
{
    void **found = arena_alloc_array(arena, count ? count : 1, sizeof *found);

    if (!found)
        return err_set(err, ERR_MEMORY, "out of memory for recurring patterns; try again");
    TRY(pg_rows_by_id(pg_of(base), PGSQL_recurring_by_id, ids, count, pg_recurring_row,
                      sizeof **recurring, arena, found, err));
    for (uint32_t i = 0; i < count; i++)
        recurring[i] = found[i];
    return 0;
}

int pg_recurring_put(struct store *base, const struct recurring *recurring, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, &recurring->id);
    param_text(params, recurring->namespace_name.data ? recurring->namespace_name
                                                      : STR(TASK_DEFAULT_NAMESPACE));
    param_text(params, recurring->name);
    param_text(params, str_of(recurrence_type_word(recurring->type)));
    param_text(params, recurring->pattern_config.data ? recurring->pattern_config : STR("{}"));
    param_uuid(params, &recurring->template_job_id);
    param_time(params, recurring->last_generated_us);
    param_time(params, recurring->next_generation_us);
    param_bool(params, recurring->is_active);
    param_text(params, recurring->error);
    param_time(params, recurring->created_at_us);
    param_time(params, recurring->updated_at_us);
    return pg_send(store, PGSQL_recurring_put, err);
}

int pg_recurring_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return pg_remove(base, PGSQL_recurring_delete, id, "recurring pattern", err);
}

int pg_recurring_due(struct store *base, int64_t wall_us, uint32_t limit, struct arena *arena,
                     struct recurring **recurring, uint32_t *count, int64_t *next_us,
                     struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    *next_us = INT64_MAX;
    put_due(pg_of(base), wall_us, limit);
    rc = pg_rows_ask(pg_of(base), PGSQL_recurring_due, pg_recurring_row, sizeof **recurring, arena,
                     &taken, err);
    *recurring = taken.rows;
    *count = 0;
    while (*count < taken.count && *count < limit &&
           (*recurring)[*count].next_generation_us <= wall_us)
        ++*count;
    if (*count < taken.count)
        *next_us = (*recurring)[*count].next_generation_us;
    return rc;
}

int pg_recurring_step(struct store *base, struct plan_step *steps, uint32_t count, struct err *err)
{
    return step_all(pg_of(base), PGSQL_recurring_step, steps, count, err);
}

int pg_recurring_scan(struct store *base, const struct uuid *after, uint32_t limit,
                      struct arena *arena, struct recurring **recurring, uint32_t *count,
                      struct err *err)
{
    struct pg_catalog_rows taken;
    int rc = scan(pg_of(base), PGSQL_recurring_scan, after, limit, pg_recurring_row,
                  sizeof **recurring, arena, &taken, err);

    *recurring = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- what was fired ---- */

static bool is_row(const PGresult *result, int row, const struct fire *fire)
{
    struct uuid owner = get_uuid(result, row, 0);

    return uuid_eq(&owner, &fire->owner_id) && get_time(result, row, 1) == fire->instant_us;
}

/* The rows that were made come back in the order they were given in. */
int pg_fires_insert(struct store *base, bool of_recurring, struct fire *fires, uint32_t count,
                    struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    PGresult *result;
    int row = 0;
    int rc = 0;

    if (count == 0)
        return 0;
    put_uuids(params, &fires[0].owner_id, sizeof *fires, count);
    put_times(params, &fires[0].instant_us, sizeof *fires, count);
    put_uuids(params, &fires[0].task_id, sizeof *fires, count);
    TRY(pg_query(store, of_recurring ? PGSQL_recurring_fires : PGSQL_schedule_fires, &result, err));
    for (uint32_t i = 0; i < count; i++) {
        fires[i].taken = row >= PQntuples(result) || !is_row(result, row, &fires[i]);
        row += !fires[i].taken;
    }
    if (row < PQntuples(result))
        rc = err_set(err, ERR_INTERNAL, "the database gave instants in another order");
    PQclear(result);
    return rc;
}

int pg_fires_prune(struct store *base, int64_t before_us, uint32_t limit, uint32_t *removed,
                   struct err *err)
{
    static const enum pg_sql_name steps[] = {PGSQL_schedule_fires_prune,
                                             PGSQL_recurring_fires_prune};
    struct pg_store *store = pg_of(base);

    *removed = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && *removed < limit; i++) {
        PGresult *result;

        /* before all times: nothing is older, and the database has no such time */
        param_time(&store->conn.params, before_us > 0 ? before_us : 0);
        param_int(&store->conn.params, limit - *removed);
        TRY(pg_query(store, steps[i], &result, err));
        *removed += (uint32_t)get_int(result, 0, 0, 0);
        PQclear(result);
    }
    return 0;
}
