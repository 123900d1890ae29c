/* What programs enqueued or reported with SQL; only on stores that several nodes share. Writer's
 * thread. */
#include "store/rows/rows_verbs.h"

#include "core/field.h"
#include "store/intake_store.h"

static const struct field done_fields[] = {FIELD_ROW(intake_row, task, key, INT, 0)};
static const struct field_table done_table =
    FIELD_TABLE(intake_row, "intake_done", "r", done_fields);

static int intake_due(struct store *store, int64_t now_us, uint32_t limit, int64_t bytes,
                      struct arena *arena, struct intake_row **rows, uint32_t *count,
                      struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_intake_due, value_moment(now_us), value_int(limit),
                                value_int(bytes)),
                     &intake_table, arena, ROWS_INTO(rows), count, err);
}

static int intake_one(struct store *store, int64_t key, struct arena *arena,
                      struct intake_row **row, struct err *err)
{
    return rows_one(rows_of(store), ROWS_QUERY(ROWS_intake_one, value_int(key)), &intake_table,
                    arena, ROWS_INTO(row), err);
}

static int intake_done(struct store *store, const struct intake_row *rows, uint32_t count,
                       struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_intake_done), &done_table, rows, count,
                         NULL, err);
}

static int intake_put_off(struct store *store, int64_t key, int64_t due_at_us, struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_intake_put_off, value_int(key), value_moment(due_at_us)), NULL,
                    err);
}

static const struct field said_fields[] = {FIELD_ROW(intake_report, seq, seq, INT, 0)};
static const struct field_table said_table =
    FIELD_TABLE(intake_report, "intake_said", "r", said_fields);

static int intake_reports(struct store *store, int64_t now_us, uint32_t tasks, int64_t bytes,
                          struct arena *arena, struct intake_report **rows, uint32_t *count,
                          struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_intake_reports, value_int(tasks), value_int(bytes),
                                value_moment(now_us)),
                     &intake_report_table, arena, ROWS_INTO(rows), count, err);
}

static int intake_reports_of(struct store *store, int64_t key, struct arena *arena,
                             struct intake_report **rows, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_QUERY(ROWS_intake_reports_of, value_int(key)),
                     &intake_report_table, arena, ROWS_INTO(rows), count, err);
}

static int intake_reports_done(struct store *store, const struct intake_report *rows,
                               uint32_t count, struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_intake_reports_done), &said_table, rows,
                         count, NULL, err);
}

static int intake_reports_put_off(struct store *store, int64_t key, int64_t due_at_us,
                                  struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_intake_reports_put_off, value_int(key),
                               value_moment(due_at_us)), NULL, err);
}

static int intake_count(struct store *store, int64_t *rows, struct err *err)
{
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_intake_count), rows, 1, err);
}

static int intake_hold(struct store *store, struct err *err)
{
    return rows_run(rows_of(store), ROWS_PLAIN(ROWS_intake_hold), NULL, err);
}

static int intake_grant(struct store *store, struct str role, struct str verbs, struct err *err)
{
    int64_t rows_count;

    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_intake_grant, value_text(role), value_text(verbs)),
                    &rows_count, err);
}

const struct intake_verbs rows_intake_verbs = {
    .due = intake_due,
    .one = intake_one,
    .done = intake_done,
    .put_off = intake_put_off,
    .reports = intake_reports,
    .reports_of = intake_reports_of,
    .reports_done = intake_reports_done,
    .reports_put_off = intake_reports_put_off,
    .count = intake_count,
    .hold = intake_hold,
    .grant = intake_grant,
};
