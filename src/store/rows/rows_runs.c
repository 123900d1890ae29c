/* Open runs of jobs (limits per job, overlap) and what they wait for (gates), once for every store.
 * Writer's thread only. */
#include "store/rows/rows_catalog.h"

#include "core/plan/catalog_fields.h"
#include "store/rows/rows.h"

#define DELAYED(...) FIELD_ROW(delayed, __VA_ARGS__)
static const struct field delayed_fields[] = {
    DELAYED(id, id, UUID, 0), DELAYED(scheduled_at, at_us, TIME, 0), DELAYED(task, key, INT, 0),
    DELAYED(has_state, has_state, BOOL, 0)};
static const struct field_table delayed_table = FIELD_TABLE(delayed, "delayed", "d",
                                                            delayed_fields);

int rows_runs_insert(struct store *store, const struct job_run *runs, uint32_t count,
                     struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_runs_insert), &job_run_table, runs, count,
                         NULL, err);
}

int rows_run_save(struct store *store, const struct job_run *run, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_run_save, value_uuid(&run->task_id),
                               value_bool(run->waits_slot)),
                    NULL, err);
}

int rows_run_delete(struct store *store, const struct uuid *task_id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_run_delete, value_uuid(task_id)), NULL, err);
}

int rows_runs_find(struct store *store, const struct uuid *job_id, const struct uuid *schedule_id,
                   const struct uuid *recurring_job_id, uint32_t limit, struct arena *arena,
                   struct job_run **runs, uint32_t *count, struct err *err)
{
    enum rows_statement name = ROWS_runs_of_recurring;
    const struct uuid *id = recurring_job_id;

    if (!uuid_is_nil(job_id)) {
        name = ROWS_runs_of_job;
        id = job_id;
    } else if (!uuid_is_nil(schedule_id)) {
        name = ROWS_runs_of_schedule;
        id = schedule_id;
    }
    return rows_take(rows_of(store), ROWS_QUERY(name, value_uuid(id), value_int(limit)),
                     &job_run_table, arena, ROWS_INTO(runs), count, err);
}

/* ---- those that wait for a slot ---- */

int rows_runs_count(struct store *store, const struct uuid *job_id, const struct uuid *schedule_id,
                    uint32_t limit, uint32_t *going, uint32_t *waiting, struct err *err)
{
    bool of_job = !uuid_is_nil(job_id);
    int64_t counts[2] = {0, 0};

    *going = *waiting = 0;
    TRY(rows_numbers(rows_of(store),
                     ROWS_QUERY(of_job ? ROWS_runs_count_job : ROWS_runs_count_schedule,
                                value_uuid(of_job ? job_id : schedule_id), value_int(limit)),
                     counts, 2, err));
    *going = (uint32_t)counts[0];
    *waiting = (uint32_t)counts[1];
    return 0;
}

int rows_runs_waiting(struct store *store, const struct uuid *job_id,
                      const struct uuid *schedule_id, const struct job_run *after, uint32_t limit,
                      struct arena *arena, struct job_run **runs, uint32_t *count,
                      struct err *err)
{
    bool of_job = !uuid_is_nil(job_id);

    return rows_take(rows_of(store),
                     ROWS_QUERY(of_job ? ROWS_runs_waiting : ROWS_runs_waiting_of_schedule,
                                value_uuid(of_job ? job_id : schedule_id),
                                value_time(after ? after->created_at_us : 0),
                                value_uuid(after ? &after->task_id : NULL), value_int(limit)),
                     &job_run_table, arena, ROWS_INTO(runs), count, err);
}

int rows_runs_waiting_jobs(struct store *store, const struct uuid *after, uint32_t limit,
                           struct arena *arena, struct uuid **ids, uint32_t *count,
                           struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_runs_waiting_jobs, value_uuid(after), value_int(limit)),
                     &rows_id_table, arena, ROWS_INTO(ids), count, err);
}

/* ---- waits ---- */

int rows_waits_insert(struct store *store, const struct job_wait *waits, uint32_t count,
                      struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_waits_insert), &job_wait_table, waits,
                         count, NULL, err);
}

int rows_waits_find(struct store *store, const struct uuid *depends_on_job_id,
                    const struct job_wait *after, uint32_t limit, struct arena *arena,
                    struct job_wait **waits, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_waits_of_job, value_uuid(depends_on_job_id),
                                value_uuid(after ? &after->task_id : NULL),
                                value_word(after ? dependency_word(after->kind) : NULL),
                                value_int(limit)),
                     &job_wait_table, arena, ROWS_INTO(waits), count, err);
}

int rows_waits_delete(struct store *store, const struct job_wait *waits, uint32_t count,
                      uint32_t *removed, struct err *err)
{
    int64_t changes = 0;

    TRY(rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_waits_delete), &job_wait_table, waits, count,
                      removed ? &changes : NULL, err));
    if (removed)
        *removed = (uint32_t)changes;
    return 0;
}

int rows_waits_drop(struct store *store, const struct uuid *task_id, uint32_t *removed,
                    struct err *err)
{
    int64_t changes = 0;

    TRY(rows_run(rows_of(store), ROWS_QUERY(ROWS_waits_drop, value_uuid(task_id)),
                 removed ? &changes : NULL, err));
    if (removed)
        *removed = (uint32_t)changes;
    return 0;
}

int rows_waits_end(struct store *store, const struct uuid *depends_on_job_id, const bool *kinds,
                   const struct uuid *of_job_id, struct err *err)
{
    struct rows_value values[2 + DEPENDENCY_COUNT] = {value_uuid(depends_on_job_id)};

    for (int i = 0; i < DEPENDENCY_COUNT; i++)
        values[1 + i] = value_word(kinds[i] ? dependency_word((enum dependency)i) : NULL);
    values[1 + DEPENDENCY_COUNT] = value_uuid(of_job_id);
    return rows_run(rows_of(store),
                    &(const struct rows_query){ROWS_waits_end, 2 + DEPENDENCY_COUNT, values}, NULL,
                    err);
}

int rows_waits_end_of_job(struct store *store, const struct uuid *job_id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_waits_end_of_job, value_uuid(job_id)), NULL,
                    err);
}

int rows_waits_over(struct store *store, uint32_t limit, struct arena *arena,
                    struct job_wait **waits, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_QUERY(ROWS_waits_over, value_int(limit)),
                     &job_wait_table, arena, ROWS_INTO(waits), count, err);
}

/* ---- tasks that wait for the wall clock ---- */

int rows_delayed_scan(struct store *store, struct str state, const struct delayed *after,
                      uint32_t limit, struct arena *arena, struct delayed **delayed,
                      uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_delayed_scan, value_time(after ? after->at_us : 0),
                                value_int(after ? after->key : 0), value_int(limit),
                                value_text(state)),
                     &delayed_table, arena, ROWS_INTO(delayed), count, err);
}
