/* How executions ended per hour and category, how long queues have had tasks waiting, and counts,
 * once for every store. The writer's thread writes hours; readers read everything else. */
#include "store/rows/rows_verbs.h"

#include "core/queue_name.h"

FIELD_WORDS(status, status, STATUS_NONE);

#define HOUR(...) FIELD_ROW(execution_hour, __VA_ARGS__)
static const struct field hours_fields[] = {
    HOUR(hour, hour_us, TIME, FIELD_ALWAYS), HOUR(category_id, category_id, ID_TEXT, 0),
    HOUR(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE),
    HOUR(successful, successful, INT, 0),    HOUR(failed, failed, INT, 0),
    HOUR(duration_ms, duration_ms, INT, 0)};
static const struct field_table hour_table = FIELD_TABLE(execution_hour, "hour", "h",
                                                         hours_fields);

#define WAIT(...) FIELD_ROW(queue_wait, __VA_ARGS__)
static const struct field wait_fields[] = {
    WAIT(namespace, namespace_name, TEXT, 0), WAIT(queue, queue, TEXT, 0),
    WAIT(type, type, TEXT, 0), WAIT(category_id, category_id, UUID, 0),
    WAIT(since, since_us, TIME, 0)};
static const struct field_table wait_table = FIELD_TABLE(queue_wait, "wait", "w", wait_fields);

#define COUNT(...) FIELD_ROW(queue_count, __VA_ARGS__)
static const struct field count_fields[] = {COUNT(namespace, namespace_name, TEXT, 0),
                                            COUNT(queue, queue, TEXT, 0),
                                            COUNT(status, status, WORD, 0, .words = &status_words),
                                            COUNT(tasks, tasks, INT, 0)};
static const struct field_table count_table = FIELD_TABLE(queue_count, "count", "c", count_fields);

#define LANE(...) FIELD_ROW(lane_count, __VA_ARGS__)
static const struct field lane_fields[] = {
    LANE(namespace, namespace_name, TEXT, 0), LANE(queue, queue, TEXT, 0),
    LANE(type, type, TEXT, 0), LANE(status, status, WORD, 0, .words = &status_words),
    LANE(tasks, tasks, INT, 0)};
static const struct field_table lane_table = FIELD_TABLE(lane_count, "lane", "l", lane_fields);

static int hours_put(struct store *store, struct str run, const struct execution_hour *hours,
                     uint32_t count, struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_QUERY(ROWS_hours_put, value_text(run)), &hour_table,
                         hours, count, NULL, err);
}

static int hours_prune(struct store *store, int64_t before_us, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_hours_prune, value_time(before_us)), NULL,
                    err);
}

/* Both columns become the full name. */
#define NAME_QUEUES(rows, count, arena)                                                            \
    do {                                                                                           \
        for (uint32_t i_ = 0; i_ < (count); i_++) {                                                \
            (rows)[i_].queue =                                                                     \
                queue_name_full((rows)[i_].namespace_name, (rows)[i_].queue, arena);               \
            TRY_MEMORY((rows)[i_].queue.data);                                                     \
        }                                                                                          \
    } while (0)

/* Writes what the open transaction changed to the table before reading it. */
int rows_counts_load(struct store *store, struct arena *arena, struct lane_count **counts,
                     uint32_t *count, struct err *err)
{
    TRY(rows_of(store)->driver->flush(rows_of(store), ROWS_COUNTS, err));
    TRY(rows_take(rows_of(store), ROWS_PLAIN(ROWS_counts_named), &lane_table, arena,
                  ROWS_INTO(counts), count, err));
    NAME_QUEUES(*counts, *count, arena);
    return 0;
}

/* ---- readers ---- */

static int read_hours(struct store_reader *reader, struct str namespace_name, int64_t since_us,
                      struct arena *arena, struct execution_hour **hours, uint32_t *count,
                      struct err *err)
{
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_hours_sums, value_moment(since_us),
                                value_text(namespace_name)),
                     &hour_table, arena, ROWS_INTO(hours), count, err);
}

static int read_waits(struct store_reader *reader, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader), ROWS_PLAIN(ROWS_waits_longest), &wait_table, arena,
                  ROWS_INTO(waits), count, err));
    NAME_QUEUES(*waits, *count, arena);
    return 0;
}

static int read_counts(struct store_reader *reader, struct arena *arena,
                       struct queue_count **counts, uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader), ROWS_PLAIN(ROWS_counts_by_queue), &count_table, arena,
                  ROWS_INTO(counts), count, err));
    NAME_QUEUES(*counts, *count, arena);
    return 0;
}

static int read_lanes(struct store_reader *reader, struct arena *arena, struct lane_count **lanes,
                      uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader), ROWS_PLAIN(ROWS_counts_named), &lane_table, arena,
                  ROWS_INTO(lanes), count, err));
    NAME_QUEUES(*lanes, *count, arena);
    return 0;
}

const struct measure_verbs rows_measure_verbs = {
    .hours_put = hours_put,
    .hours_prune = hours_prune,
    .read_hours = read_hours,
    .read_waits = read_waits,
    .read_counts = read_counts,
    .read_lanes = read_lanes,
};
