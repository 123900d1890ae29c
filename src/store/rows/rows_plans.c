/* Schedules and recurring patterns, once for every store: which of them are due, how they advance,
 * and the rows that make every planned instant fire once. Writer's thread only. */
#include "store/rows/rows_catalog.h"

#include "core/plan/catalog_fields.h"
#include "store/rows/rows.h"

#define STEP(...) FIELD_ROW(plan_step, __VA_ARGS__)
static const struct field step_fields[] = {
    STEP(id, id, UUID, 0), STEP(stood_at, from_us, TIME, 0), STEP(goes_to, to_us, TIME, 0),
    STEP(fired_at, fired_us, TIME, 0), STEP(error, error, TEXT, 0)};
static const struct field_table step_table = FIELD_TABLE(plan_step, "step", "s", step_fields);

#define FIRE(...) FIELD_ROW(fire, __VA_ARGS__)
static const struct field fire_fields[] = {FIRE(owner_id, owner_id, UUID, 0),
                                           FIRE(instant, instant_us, TIME, FIELD_ALWAYS),
                                           FIRE(task_id, task_id, UUID, 0)};
static const struct field_table fire_table = FIELD_TABLE(fire, "fire", "f", fire_fields);

/* The due ones and the first that is not due yet; or, where the limit leaves some, one more than
 * the limit. */
#define DUE(statement, wall_us, limit)                                                             \
    ROWS_QUERY(statement, value_moment(wall_us), value_int((int64_t)(limit) + 1))

#define SCAN(statement, after, limit) ROWS_QUERY(statement, value_uuid(after), value_int(limit))

/* ---- schedules ---- */

int rows_schedules_load(struct store *store, const struct uuid *ids, uint32_t count,
                        struct arena *arena, struct schedule **schedules, struct err *err)
{
    return rows_by_id(rows_of(store), ROWS_schedules_by_id, ids, count, &schedule_table, arena,
                      ROWS_INTO(schedules), err);
}

int rows_schedule_put(struct store *store, const struct schedule *schedule, struct err *err)
{
    return rows_save(rows_of(store), ROWS_schedule_put, &schedule_table, schedule, err);
}

int rows_schedule_delete(struct store *store, const struct uuid *id, struct err *err)
{
    return rows_change(rows_of(store), ROWS_QUERY(ROWS_schedule_delete, value_uuid(id)),
                       "schedule", err);
}

int rows_schedules_due(struct store *store, int64_t wall_us, uint32_t limit, struct arena *arena,
                       struct schedule **schedules, uint32_t *count, int64_t *next_us,
                       struct err *err)
{
    uint32_t taken = 0;

    *count = 0;
    *next_us = INT64_MAX;
    TRY(rows_take(rows_of(store), DUE(ROWS_schedules_due, wall_us, limit), &schedule_table, arena,
                  ROWS_INTO(schedules), &taken, err));
    while (*count < taken && *count < limit && (*schedules)[*count].next_fire_at_us <= wall_us)
        ++*count;
    if (*count < taken)
        *next_us = (*schedules)[*count].next_fire_at_us;
    return 0;
}

int rows_schedules_step(struct store *store, struct plan_step *steps, uint32_t count,
                        struct err *err)
{
    return rows_save_marked(rows_of(store), ROWS_schedules_step, &step_table, steps, count,
                            offsetof(struct plan_step, moved), err);
}

int rows_schedules_scan(struct store *store, const struct uuid *after, uint32_t limit,
                        struct arena *arena, struct schedule **schedules, uint32_t *count,
                        struct err *err)
{
    return rows_take(rows_of(store), SCAN(ROWS_schedules_scan, after, limit), &schedule_table,
                     arena, ROWS_INTO(schedules), count, err);
}

/* ---- recurring patterns ---- */

int rows_recurring_load(struct store *store, const struct uuid *ids, uint32_t count,
                        struct arena *arena, struct recurring **recurring, struct err *err)
{
    return rows_by_id(rows_of(store), ROWS_recurring_by_id, ids, count, &recurring_table, arena,
                      ROWS_INTO(recurring), err);
}

int rows_recurring_put(struct store *store, const struct recurring *recurring, struct err *err)
{
    return rows_save(rows_of(store), ROWS_recurring_put, &recurring_table, recurring, err);
}

int rows_recurring_delete(struct store *store, const struct uuid *id, struct err *err)
{
    return rows_change(rows_of(store), ROWS_QUERY(ROWS_recurring_delete, value_uuid(id)),
                       "recurring pattern", err);
}

int rows_recurring_due(struct store *store, int64_t wall_us, uint32_t limit, struct arena *arena,
                       struct recurring **recurring, uint32_t *count, int64_t *next_us,
                       struct err *err)
{
    uint32_t taken = 0;

    *count = 0;
    *next_us = INT64_MAX;
    TRY(rows_take(rows_of(store), DUE(ROWS_recurring_due, wall_us, limit), &recurring_table, arena,
                  ROWS_INTO(recurring), &taken, err));
    while (*count < taken && *count < limit && (*recurring)[*count].next_generation_us <= wall_us)
        ++*count;
    if (*count < taken)
        *next_us = (*recurring)[*count].next_generation_us;
    return 0;
}

int rows_recurring_step(struct store *store, struct plan_step *steps, uint32_t count,
                        struct err *err)
{
    return rows_save_marked(rows_of(store), ROWS_recurring_step, &step_table, steps, count,
                            offsetof(struct plan_step, moved), err);
}

int rows_recurring_scan(struct store *store, const struct uuid *after, uint32_t limit,
                        struct arena *arena, struct recurring **recurring, uint32_t *count,
                        struct err *err)
{
    return rows_take(rows_of(store), SCAN(ROWS_recurring_scan, after, limit), &recurring_table,
                     arena, ROWS_INTO(recurring), count, err);
}

/* ---- what was fired ---- */

int rows_fires_insert(struct store *store, bool of_recurring, struct fire *fires, uint32_t count,
                      struct err *err)
{
    TRY(rows_save_marked(rows_of(store), of_recurring ? ROWS_recurring_fires : ROWS_schedule_fires,
                         &fire_table, fires, count, offsetof(struct fire, taken), err));
    for (uint32_t i = 0; i < count; i++)
        fires[i].taken = !fires[i].taken; /* an instant that existed before changed no row */
    return 0;
}

int rows_fires_prune(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                     struct err *err)
{
    static const enum rows_statement steps[] = {ROWS_schedule_fires_prune,
                                                ROWS_recurring_fires_prune};

    *removed = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && *removed < limit; i++) {
        int64_t changes = 0;

        /* before all times: no row is older, and a database may have no such time */
        TRY(rows_run(rows_of(store),
                     ROWS_QUERY(steps[i], value_time(before_us > 0 ? before_us : 0),
                                value_int(limit - *removed)),
                     &changes, err));
        *removed += (uint32_t)changes;
    }
    return 0;
}
