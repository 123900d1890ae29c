/* Namespaces on rows, once for every store. The table is small and read as a whole; what belongs to
 * a namespace is removed table by table, a few rows at a time. Writer's thread only. */
#include "store/namespace_store.h"
#include "store/rows/rows.h"

static int load(struct store *store, struct arena *arena, struct namespace_row **rows,
                uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_PLAIN(ROWS_namespaces_all), &namespace_table, arena,
                     ROWS_INTO(rows), count, err);
}

static int put(struct store *store, const struct namespace_row *row, struct err *err)
{
    return rows_save(rows_of(store), ROWS_namespace_put, &namespace_table, row, err);
}

static int remove_row(struct store *store, struct str name, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_namespace_delete, value_text(name)), NULL, err);
}

static int hold(struct store *store, struct str name, bool alone, bool *there, struct err *err)
{
    int rc = rows_any(rows_of(store),
                      ROWS_QUERY(alone ? ROWS_namespace_lock : ROWS_namespace_share,
                                 value_text(name)),
                      err);

    *there = rc > 0;
    return rc < 0 ? rc : 0;
}

/* What the transaction under way has changed is in the table of counts before it is read. */
static int waiting(struct store *store, struct str name, int64_t *tasks, struct err *err)
{
    struct rows *rows = rows_of(store);

    *tasks = 0;
    TRY(rows->driver->flush(rows, ROWS_COUNTS, err));
    return rows_numbers(rows, ROWS_QUERY(ROWS_namespace_waiting, value_text(name)), tasks, 1, err);
}

static int plans(struct store *store, struct str name, int64_t *count, struct err *err)
{
    *count = 0;
    return rows_numbers(rows_of(store), ROWS_QUERY(ROWS_namespace_plans, value_text(name)), count,
                        1, err);
}

static int tasks(struct store *store, struct str name, uint32_t limit, struct arena *arena,
                 struct uuid **ids, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_namespace_tasks, value_text(name), value_int(limit)),
                     &rows_id_table, arena, ROWS_INTO(ids), count, err);
}

static int purge(struct store *store, struct str name, enum namespace_part part, uint32_t limit,
                 bool *more, struct err *err)
{
    static const struct {
        enum namespace_part part;
        enum rows_statement statement;
    } steps[] = {
        {NAMESPACE_PLANS, ROWS_namespace_schedule_fires},
        {NAMESPACE_PLANS, ROWS_namespace_schedules},
        {NAMESPACE_PLANS, ROWS_namespace_recurring_fires},
        {NAMESPACE_PLANS, ROWS_namespace_recurring},
        {NAMESPACE_PLANS, ROWS_namespace_dependencies},
        {NAMESPACE_JOBS, ROWS_namespace_jobs},
        {NAMESPACE_JOBS, ROWS_namespace_categories},
        {NAMESPACE_AROUND, ROWS_namespace_rates},
        {NAMESPACE_AROUND, ROWS_namespace_hours},
        {NAMESPACE_AROUND, ROWS_namespace_outbox},
        {NAMESPACE_AROUND, ROWS_namespace_days},
    };

    *more = false;
    for (size_t i = 0; !*more && i < sizeof steps / sizeof steps[0]; i++) {
        int64_t removed = 0;

        if (steps[i].part != part)
            continue;
        TRY(rows_run(rows_of(store),
                     ROWS_QUERY(steps[i].statement, value_text(name), value_int(limit)), &removed,
                     err));
        *more = removed >= limit; /* those behind it may hang on what is left of it */
    }
    return 0;
}

static int days(struct store *store, struct str name, int64_t before, int64_t *left,
                struct err *err)
{
    *left = 0;
    TRY(rows_run(rows_of(store), ROWS_QUERY(ROWS_days_prune, value_text(name), value_int(before)),
                 NULL, err));
    return rows_numbers(rows_of(store), ROWS_QUERY(ROWS_days_count, value_text(name)), left, 1,
                        err);
}

const struct namespace_verbs rows_namespace_verbs = {
    .load = load,
    .put = put,
    .remove = remove_row,
    .hold = hold,
    .waiting = waiting,
    .plans = plans,
    .tasks = tasks,
    .purge = purge,
    .days = days,
};
