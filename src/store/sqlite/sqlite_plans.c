/* Schedules and recurring patterns: rows to structs and back, which of them are due, how they go
 * on, and the rows that make every planned instant fire once. Writer's thread only. */
#include "store/sqlite/sqlite_catalog.h"

/* Both kinds are read alike; which columns and statements, says this. */
struct plan_kind {
    catalog_row *row;
    size_t bytes;
    enum sqlite_statement by_id, due, next, step, scan;
};

static const struct plan_kind schedule_kind = {
    sqlite_schedule_row, sizeof(struct schedule), SQL_schedule_by_id,
    SQL_schedules_due,   SQL_schedules_next,      SQL_schedule_step,  SQL_schedules_scan};
static const struct plan_kind recurring_kind = {
    sqlite_recurring_row, sizeof(struct recurring), SQL_recurring_by_id,
    SQL_recurring_due,    SQL_recurring_next,       SQL_recurring_step, SQL_recurring_scan};

static int load_one(struct sqlite_sql *sql, const struct plan_kind *kind, const struct uuid *id,
                    struct arena *arena, void **row, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, kind->by_id, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    return sqlite_row_take(sql, stmt, kind->row, kind->bytes, arena, row, err);
}

/* The earliest instant after now of those that are active. */
static int next_after(struct sqlite_sql *sql, const struct plan_kind *kind, int64_t wall_us,
                      int64_t *next_us, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, kind->next, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, wall_us);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *next_us = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return 0;
}

/* One more than asked for is read: it is the earliest that is not given. */
static int find_due(struct store *base, const struct plan_kind *kind, int64_t wall_us,
                    uint32_t limit, struct arena *arena, struct catalog_rows *taken,
                    int64_t *next_us, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, kind->due, err);

    *next_us = INT64_MAX;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, wall_us);
    bind_int(stmt, 2, (int64_t)limit + 1);
    TRY(sqlite_rows_take(sql, stmt, kind->row, kind->bytes, arena, taken, err));
    return taken->count > limit ? 0 : next_after(sql, kind, wall_us, next_us, err);
}

static int step_all(struct store *base, const struct plan_kind *kind, struct plan_step *steps,
                    uint32_t count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        struct plan_step *step = &steps[i];
        sqlite3_stmt *stmt = sql_get(sql, kind->step, err);
        int64_t changes = 0;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &step->id);
        bind_int_or_null(stmt, 2, step->from_us);
        bind_int_or_null(stmt, 3, step->to_us);
        bind_int_or_null(stmt, 4, step->fired_us);
        bind_str(stmt, 5, step->error);
        TRY(sql_run(sql, stmt, &changes, err));
        step->moved = changes > 0;
    }
    return 0;
}

static int scan(struct store *base, const struct plan_kind *kind, const struct uuid *after,
                uint32_t limit, struct arena *arena, struct catalog_rows *taken, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, kind->scan, err);

    if (!stmt)
        return -(int)err->code;
    if (after)
        bind_uuid(stmt, 1, after);
    else
        sqlite3_bind_null(stmt, 1);
    bind_int(stmt, 2, limit);
    return sqlite_rows_take(sql, stmt, kind->row, kind->bytes, arena, taken, err);
}

/* ---- schedules ---- */

int sqlite_schedules_load(struct store *base, const struct uuid *ids, uint32_t count,
                          struct arena *arena, struct schedule **schedules, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        void *row;

        TRY(load_one(&sqlite_of(base)->sql, &schedule_kind, &ids[i], arena, &row, err));
        schedules[i] = row;
    }
    return 0;
}

int sqlite_schedule_put(struct store *base, const struct schedule *schedule, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_schedule_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &schedule->id);
    bind_str(stmt, 2, schedule->namespace_name.data ? schedule->namespace_name
                                                    : STR(TASK_DEFAULT_NAMESPACE));
    bind_uuid(stmt, 3, &schedule->job_id);
    bind_str(stmt, 4, str_of(schedule_type_word(schedule->type)));
    bind_str(stmt, 5, schedule->cron_expression);
    bind_int_or_null(stmt, 6, schedule->interval_s);
    bind_int_or_null(stmt, 7, schedule->scheduled_at_us);
    bind_str(stmt, 8, schedule->timezone.data ? schedule->timezone : STR("UTC"));
    bind_int_or_null(stmt, 9, schedule->starts_at_us);
    bind_int_or_null(stmt, 10, schedule->ends_at_us);
    bind_int(stmt, 11, schedule->is_active);
    bind_str(stmt, 12, str_of(misfire_word(schedule->misfire)));
    bind_int(stmt, 13, schedule->misfire_grace_ms);
    bind_int(stmt, 14, schedule->misfire_cap);
    bind_str(stmt, 15, str_of(overlap_word(schedule->overlap)));
    bind_str(stmt, 16, str_of(dst_policy_word(schedule->dst)));
    bind_int(stmt, 17, schedule->jitter_ms);
    bind_str(stmt, 18, schedule->callback_url);
    bind_int_or_null(stmt, 19, schedule->next_fire_at_us);
    bind_int_or_null(stmt, 20, schedule->last_fire_at_us);
    bind_str(stmt, 21, schedule->error);
    bind_int(stmt, 22, schedule->created_at_us);
    bind_int(stmt, 23, schedule->updated_at_us);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_schedule_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return sqlite_remove(base, SQL_schedule_delete, id, "schedule", err);
}

int sqlite_schedules_due(struct store *base, int64_t wall_us, uint32_t limit, struct arena *arena,
                         struct schedule **schedules, uint32_t *count, int64_t *next_us,
                         struct err *err)
{
    struct catalog_rows taken = {NULL, 0};
    int rc = find_due(base, &schedule_kind, wall_us, limit, arena, &taken, next_us, err);

    *schedules = taken.rows;
    if (taken.count > limit)
        *next_us = (*schedules)[--taken.count].next_fire_at_us;
    *count = taken.count;
    return rc;
}

int sqlite_schedules_step(struct store *base, struct plan_step *steps, uint32_t count,
                          struct err *err)
{
    return step_all(base, &schedule_kind, steps, count, err);
}

int sqlite_schedules_scan(struct store *base, const struct uuid *after, uint32_t limit,
                          struct arena *arena, struct schedule **schedules, uint32_t *count,
                          struct err *err)
{
    struct catalog_rows taken = {NULL, 0};
    int rc = scan(base, &schedule_kind, after, limit, arena, &taken, err);

    *schedules = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- recurring patterns ---- */

int sqlite_recurring_load(struct store *base, const struct uuid *ids, uint32_t count,
                          struct arena *arena, struct recurring **recurring, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        void *row;

        TRY(load_one(&sqlite_of(base)->sql, &recurring_kind, &ids[i], arena, &row, err));
        recurring[i] = row;
    }
    return 0;
}

int sqlite_recurring_put(struct store *base, const struct recurring *recurring, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_recurring_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &recurring->id);
    bind_str(stmt, 2, recurring->namespace_name.data ? recurring->namespace_name
                                                     : STR(TASK_DEFAULT_NAMESPACE));
    bind_str(stmt, 3, recurring->name);
    bind_str(stmt, 4, str_of(recurrence_type_word(recurring->type)));
    bind_str(stmt, 5, recurring->pattern_config.data ? recurring->pattern_config : STR("{}"));
    bind_uuid(stmt, 6, &recurring->template_job_id);
    bind_int_or_null(stmt, 7, recurring->last_generated_us);
    bind_int_or_null(stmt, 8, recurring->next_generation_us);
    bind_int(stmt, 9, recurring->is_active);
    bind_str(stmt, 10, recurring->error);
    bind_int(stmt, 11, recurring->created_at_us);
    bind_int(stmt, 12, recurring->updated_at_us);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_recurring_delete(struct store *base, const struct uuid *id, struct err *err)
{
    return sqlite_remove(base, SQL_recurring_delete, id, "recurring pattern", err);
}

int sqlite_recurring_due(struct store *base, int64_t wall_us, uint32_t limit, struct arena *arena,
                         struct recurring **recurring, uint32_t *count, int64_t *next_us,
                         struct err *err)
{
    struct catalog_rows taken = {NULL, 0};
    int rc = find_due(base, &recurring_kind, wall_us, limit, arena, &taken, next_us, err);

    *recurring = taken.rows;
    if (taken.count > limit)
        *next_us = (*recurring)[--taken.count].next_generation_us;
    *count = taken.count;
    return rc;
}

int sqlite_recurring_step(struct store *base, struct plan_step *steps, uint32_t count,
                          struct err *err)
{
    return step_all(base, &recurring_kind, steps, count, err);
}

int sqlite_recurring_scan(struct store *base, const struct uuid *after, uint32_t limit,
                          struct arena *arena, struct recurring **recurring, uint32_t *count,
                          struct err *err)
{
    struct catalog_rows taken = {NULL, 0};
    int rc = scan(base, &recurring_kind, after, limit, arena, &taken, err);

    *recurring = taken.rows;
    *count = taken.count;
    return rc;
}

/* ---- what was fired ---- */

int sqlite_fires_insert(struct store *base, bool of_recurring, struct fire *fires, uint32_t count,
                        struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, of_recurring ? SQL_recurring_fire : SQL_schedule_fire,
                                     err);
        int64_t changes = 0;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &fires[i].owner_id);
        bind_int(stmt, 2, fires[i].instant_us);
        bind_uuid(stmt, 3, &fires[i].task_id);
        TRY(sql_run(sql, stmt, &changes, err));
        fires[i].taken = changes == 0;
    }
    return 0;
}

int sqlite_fires_prune(struct store *base, int64_t before_us, uint32_t limit, uint32_t *removed,
                       struct err *err)
{
    static const enum sqlite_statement steps[] = {SQL_schedule_fires_prune,
                                                  SQL_recurring_fires_prune};
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    *removed = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && *removed < limit; i++) {
        sqlite3_stmt *stmt = sql_get(sql, steps[i], err);
        int64_t changes = 0;

        if (!stmt)
            return -(int)err->code;
        bind_int(stmt, 1, before_us);
        bind_int(stmt, 2, limit - *removed);
        TRY(sql_run(sql, stmt, &changes, err));
        *removed += (uint32_t)changes;
    }
    return 0;
}
