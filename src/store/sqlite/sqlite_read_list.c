/* The list of tasks: any combination of filters, newest or oldest first. The way that looks at the
 * fewest rows finds the keys (one index drives the query, every other filter is a condition); then
 * each task is read by its key, in the same snapshot. The way affects only the cost: each finds the
 * same tasks. One reader per thread. */
#include "store/rows/task_list.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_read.h"

#include "core/bounds.h"

/* Keys of a copied cluster are less in order. */
#define CREATED_MARGIN_US INT64_C(60000000)

struct list {
    struct store_reader *reader;
    const struct task_filter *filter;
    uint32_t limit;
    struct list_keys keys;
    struct query query;
};

/* Columns of task_options that have an index, the usually rarest first. */
static const struct {
    const char *column;
    const char *index;
    size_t offset; /* in struct task_filter */
    bool is_id;
} indexed[] = {
    {"parent_id", "task_options_parent", offsetof(struct task_filter, parent_id), true},
    {"context_key", "task_options_context", offsetof(struct task_filter, context_key), false},
    {"workflow_id", "task_options_workflow", offsetof(struct task_filter, workflow_id), false},
    {"correlation_id", "task_options_correlation", offsetof(struct task_filter, correlation_id),
     false},
    {"schedule_id", "task_options_schedule", offsetof(struct task_filter, schedule_id), true},
    {"job_id", "task_options_job", offsetof(struct task_filter, job_id), true},
    {"user_id", "task_options_user", offsetof(struct task_filter, user_id), false},
};
#define INDEXED_COUNT (sizeof indexed / sizeof indexed[0])

static struct query_value indexed_value(const struct task_filter *filter, size_t i)
{
    const char *at = (const char *)filter + indexed[i].offset;
    struct query_value value = {NULL, STR_NONE, 0};

    if (indexed[i].is_id) {
        const struct uuid *id = (const void *)at;

        value.id = uuid_is_nil(id) ? NULL : id;
    } else {
        memcpy(&value.text, at, sizeof value.text);
    }
    return value;
}

static bool value_given(const struct query_value *value)
{
    return value->id || value->text.data;
}

/* Conditions on the lane, for a statement that has `lanes l`. */
static void add_lane_conditions(struct list *list)
{
    query_add_text(&list->query, " AND l.namespace = ?", list->filter->namespace_name);
    query_add_text(&list->query, " AND l.queue = ?", list->filter->queue);
    query_add_text(&list->query, " AND l.type = ?", list->filter->type);
}

/* Conditions on `task_specs p`, on its status in `task_states s`, and on the tag. */
static void add_task_conditions(struct list *list)
{
    const struct task_filter *filter = list->filter;

    for (size_t i = 0; i < INDEXED_COUNT; i++) {
        struct query_value value = indexed_value(filter, i);
        char condition[64];

        snprintf(condition, sizeof condition, " AND o.%s = ?", indexed[i].column);
        if (value_given(&value))
            query_add(&list->query, condition, value);
    }
    query_add_text(&list->query, " AND o.external_id = ?", filter->external_id);
    if (filter->created_after_us)
        query_add_number(&list->query, " AND p.created_at >= ?", filter->created_after_us);
    if (filter->created_before_us)
        query_add_number(&list->query, " AND p.created_at < ?", filter->created_before_us);
    if (filter->status != STATUS_NONE)
        query_add_text(&list->query, " AND s.status = ?", str_of(status_word(filter->status)));
    query_add_text(&list->query, " AND EXISTS (SELECT 1 FROM task_tags t WHERE t.namespace = "
                   "l.namespace AND t.task = p.task AND t.tag = ?)", filter->tag);
}

static void add_key_range(struct list *list, const char *alias)
{
    char condition[64];

    snprintf(condition, sizeof condition, " AND %s.task < ?", alias);
    query_add_number(&list->query, condition, list->keys.end);
    snprintf(condition, sizeof condition, " AND %s.task >= ?", alias);
    query_add_number(&list->query, condition, list->keys.first);
}

static void add_end(struct list *list, const char *alias)
{
    buf_format(&list->query.text, " ORDER BY %s.task %s", alias,
               list->filter->oldest_first ? "ASC" : "DESC");
    query_add_number(&list->query, " LIMIT ?", list->limit);
}

/* Joins tables that only some filters need, because each costs a look per row. */
static const char *options_join(const struct list *list)
{
    for (size_t i = 0; i < INDEXED_COUNT; i++) {
        struct query_value value = indexed_value(list->filter, i);

        if (value_given(&value))
            return " CROSS JOIN task_options o ON o.task = p.task";
    }
    return list->filter->external_id.data ? " CROSS JOIN task_options o ON o.task = p.task" : "";
}

static const char *state_join(const struct list *list)
{
    return list->filter->status == STATUS_NONE ? ""
                                               : " CROSS JOIN task_states s ON s.task = p.task";
}

static const char *spec_join(const struct list *list)
{
    return list->filter->created_after_us || list->filter->created_before_us
               ? " CROSS JOIN task_specs p ON p.task = s.task"
               : "";
}

static const char *lane_join(const struct list *list, const char *on)
{
    const struct task_filter *filter = list->filter;

    return filter->namespace_name.data || filter->queue.data || filter->type.data ||
                   filter->tag.data
               ? on
               : "";
}

static void add_namespace(struct list *list, const char *alias)
{
    char condition[96];

    if (list->filter->namespace_name.data) {
        snprintf(condition, sizeof condition, " AND %s.namespace = ?", alias);
        query_add_text(&list->query, condition, list->filter->namespace_name);
    } else {
        buf_format(&list->query.text, " AND %s.namespace IN (SELECT namespace FROM lanes)", alias);
    }
}

/* An outside id, an indexed column or a tag drives: writes the text up to WHERE and its conditions.
 * Returns the alias that has the key, or NULL when there is no such filter. */
static const char *begin_by_column(struct list *list)
{
    static const char by_lane[] = " CROSS JOIN lanes l ON l.lane = p.lane";
    const struct task_filter *filter = list->filter;
    struct query_value value = {NULL, STR_NONE, 0};
    size_t i = 0;

    while (i < INDEXED_COUNT && !value_given(&value))
        value = indexed_value(filter, i++);
    if (filter->external_id.data) {
        buf_format(&list->query.text, "SELECT p.task FROM task_uniques u CROSS JOIN task_specs p "
                   "ON p.task = u.task%s%s%s WHERE u.kind = 'external' AND u.type = ''",
                   options_join(list), lane_join(list, by_lane), state_join(list));
        query_add_text(&list->query, " AND u.value = ?", filter->external_id);
        add_namespace(list, "u");
        return "p";
    }
    if (value_given(&value)) {
        buf_format(&list->query.text, "SELECT o.task FROM task_options o INDEXED BY %s CROSS JOIN "
                   "task_specs p ON p.task = o.task%s%s WHERE true", indexed[i - 1].index,
                   lane_join(list, by_lane), state_join(list));
        return "o";
    }
    if (!filter->tag.data)
        return NULL;
    buf_format(&list->query.text, "SELECT g.task FROM task_tags g CROSS JOIN task_specs p ON "
               "p.task = g.task%s%s WHERE true", lane_join(list, by_lane), state_join(list));
    query_add_text(&list->query, " AND g.tag = ?", filter->tag);
    add_namespace(list, "g");
    return "g";
}

static bool build_by_column(struct list *list)
{
    const char *alias = begin_by_column(list);

    if (!alias)
        return false;
    add_key_range(list, alias);
    add_lane_conditions(list);
    add_task_conditions(list);
    add_end(list, alias);
    return true;
}

/* The first tasks of every lane that fits, then the first of these. */
static void build_by_lanes(struct list *list)
{
    const struct task_filter *filter = list->filter;

    buf_text(&list->query.text, "SELECT x.task FROM lanes l CROSS JOIN task_states x WHERE true");
    add_lane_conditions(list);
    if (filter->status != STATUS_NONE)
        query_add_text(&list->query, " AND l.lane IN (SELECT lane FROM lane_counts WHERE "
                       "tasks > 0 AND status = ?)", str_of(status_word(filter->status)));
    buf_format(&list->query.text, " AND x.task IN (SELECT p.task FROM task_specs p "
               "INDEXED BY task_specs_lane%s WHERE p.lane = l.lane", state_join(list));
    add_key_range(list, "p");
    add_task_conditions(list);
    add_end(list, "p");
    buf_byte(&list->query.text, ')');
    add_end(list, "x");
}

/* Walks task_states, by key or by the index of a status. Statuses are literals because partial
 * indexes need constants. */
static void build_by_state(struct list *list, enum list_way way)
{
    static const char *const from[WAYS_BY_COUNTS] = {
        [WAY_WALK] = "task_states s NOT INDEXED",
        [WAY_SETTLED] = "task_states s INDEXED BY task_states_settled",
        [WAY_HELD] = "task_states s INDEXED BY task_states_held",
        [WAY_PENDING] = ("(SELECT task FROM task_states WHERE status = 'pending' AND parked IS NULL"
                         " UNION ALL SELECT task FROM task_states WHERE parked IS NOT NULL) c"
                         " CROSS JOIN task_states s ON s.task = c.task"),
        [WAY_DELAYED] = "task_states s INDEXED BY task_states_due"};
    static const char *const where[WAYS_BY_COUNTS] = {
        [WAY_WALK] = "true",
        [WAY_SETTLED] = ("s.status <> 'pending' AND s.status <> 'claimed' AND "
                         "s.status <> 'running' AND s.status <> 'delayed'"),
        [WAY_HELD] = "s.held = 1",
        [WAY_PENDING] = "true",
        [WAY_DELAYED] = "s.status = 'delayed'"};

    buf_format(&list->query.text, "SELECT s.task FROM %s%s%s WHERE %s", from[way], spec_join(list),
               lane_join(list, " CROSS JOIN lanes l ON l.lane = s.lane"), where[way]);
    add_key_range(list, "s");
    add_lane_conditions(list);
    add_task_conditions(list);
    add_end(list, "s");
}

static int count_lanes(struct list *list, struct list_counts *counts, struct err *err)
{
    const struct task_filter *filter = list->filter;
    sqlite3_stmt *stmt = sql_get(&list->reader->sql, SQL_list_counts, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, filter->namespace_name);
    bind_str(stmt, 2, filter->queue);
    bind_str(stmt, 3, filter->type);
    bind_str(stmt, 4, filter->status ? str_of(status_word(filter->status)) : STR_NONE);
    rc = sql_step(&list->reader->sql, stmt, err);
    if (rc < 0)
        return rc;
    counts->lanes = sqlite3_column_int64(stmt, 0);
    counts->matching = sqlite3_column_int64(stmt, 1);
    counts->in_lanes = sqlite3_column_int64(stmt, 2);
    counts->in_status = sqlite3_column_int64(stmt, 3);
    counts->all = sqlite3_column_int64(stmt, 4);
    sqlite3_reset(stmt);
    return 0;
}

/* Builds the statement. *empty: the counts already show that nothing fits. */
static int build(struct list *list, bool *empty, struct err *err)
{
    struct list_counts counts = {0};
    enum list_way way;

    *empty = false;
    if (build_by_column(list))
        return 0;
    TRY(count_lanes(list, &counts, err));
    *empty = counts.matching == 0;
    way = list_way_of_counts(&counts, list->filter->status, list->limit, false);
    if (way == WAY_LANES)
        build_by_lanes(list);
    else
        build_by_state(list, way);
    return 0;
}

static int key_at(struct store_reader *reader, int64_t time_us, int64_t *key, struct err *err)
{
    return query_key_at(&reader->sql, SQL_list_probe, time_us, key, err);
}

static int fetch(struct list *list, struct arena *arena, struct task **tasks, uint32_t *count,
                 struct err *err)
{
    sqlite3_stmt *stmt = query_prepare(&list->query, &list->reader->sql, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(&list->reader->sql, stmt, err)) > 0) {
        bool found;

        if (!*tasks)
            *tasks = arena_alloc_array(arena, list->limit, sizeof **tasks);
        if (!*tasks) {
            rc = err_no_memory(err);
            break;
        }
        rc = reader_task_by_key(list->reader, sqlite3_column_int64(stmt, 0), arena,
                                &(*tasks)[*count], &found, err);
        if (rc < 0)
            break;
        *count += found;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int run(struct list *list, struct arena *arena, struct task **tasks, uint32_t *count,
               struct err *err)
{
    bool empty;
    int rc;

    rc = list_narrow(list->reader, list->filter, CREATED_MARGIN_US, key_at, &list->keys, err);
    if (rc == 0)
        rc = build(list, &empty, err);
    if (rc == 0 && !empty)
        rc = fetch(list, arena, tasks, count, err);
    return rc;
}

int sqlite_read_tasks(struct store_reader *reader, const struct task_filter *filter,
                      struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct list list = {.reader = reader,
                        .filter = filter,
                        .limit = filter->limit ? filter->limit : BOUND_LIST_LIMIT_DEFAULT,
                        .query = QUERY_INIT};
    int rc;

    *tasks = NULL;
    *count = 0;
    if (list.limit > BOUND_LIST_LIMIT)
        list.limit = BOUND_LIST_LIMIT;
    if (sqlite3_exec(reader->sql.db, "BEGIN", NULL, NULL, NULL))
        return sql_fail(reader->sql.db, "BEGIN", err);
    reader_begin(reader);
    rc = run(&list, arena, tasks, count, err);
    rc = reader_end(reader, reader_whole(arena, rc, err));
    sqlite3_exec(reader->sql.db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    buf_deinit(&list.query.text);
    return rc;
}
