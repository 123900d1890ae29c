/* The list of tasks: any combination of filters, newest or oldest first. The way that looks at the
 * fewest rows drives the query (the index of a filter, or the shortest line by the counts); every
 * other filter is a condition. The way affects only the cost: each finds the same tasks. One
 * statement finds the keys and reads the tasks. One reader per thread. */
#include "store/postgres/pg_read.h"

#include "core/bounds.h"

#define LIST_TEXT_BYTES_MAX 32768
/* Nodes take keys in blocks, so a task's key may be older than its time by PG_KEY_AGE_US plus the
 * difference of the nodes' clocks. */
#define CREATED_MARGIN_US (PG_KEY_AGE_US + 50 * INT64_C(1000000))

struct list {
    struct store_reader *reader;
    const struct task_filter *filter;
    uint32_t limit;
    struct list_keys keys;
    enum list_way way;
};

static const enum pg_sql_name parts[WAY_COUNT] = {
    [WAY_WALK] = PGSQL_list_by_key,
    [WAY_LANES] = PGSQL_list_by_lanes,
    [WAY_SETTLED] = PGSQL_list_by_settled,
    [WAY_HELD] = PGSQL_list_by_held,
    [WAY_PENDING] = PGSQL_list_by_pending,
    [WAY_DELAYED] = PGSQL_list_by_delayed,
    [WAY_EXTERNAL] = PGSQL_list_by_external,
    [WAY_PARENT] = PGSQL_list_by_parent,
    [WAY_CONTEXT] = PGSQL_list_by_context,
    [WAY_WORKFLOW] = PGSQL_list_by_workflow,
    [WAY_CORRELATION] = PGSQL_list_by_correlation,
    [WAY_SCHEDULE] = PGSQL_list_by_schedule,
    [WAY_JOB] = PGSQL_list_by_job,
    [WAY_USER] = PGSQL_list_by_user,
    [WAY_TAG] = PGSQL_list_by_tag,
    [WAY_TAG_ANYWHERE] = PGSQL_list_by_tag_anywhere};

/* ---- the statement of a way ---- */

/* `text` with the `part` in place of `mark`. */
static void write_with(struct buf *out, const char *text, const char *mark, struct str part)
{
    const char *at = strstr(text, mark);

    ASSERT(at);
    buf_append(out, text, (size_t)(at - text));
    buf_str(out, part);
    buf_text(out, at + strlen(mark));
}

/* The texts sort newest first; this reverses every order. */
static void turn_round(struct buf *text)
{
    static const char newest[] = " DESC", oldest[] = " ASC ";

    _Static_assert(sizeof newest == sizeof oldest, "one takes the place of the other");
    for (char *at = text->data; (at = strstr(at, newest)) != NULL; at += sizeof oldest - 1)
        memcpy(at, oldest, sizeof oldest - 1);
}

static int make_text(const struct pg_sql *sql, const struct list *list, char **text,
                     struct err *err)
{
    enum list_way way = list->way;
    struct buf found = BUF_INIT(LIST_TEXT_BYTES_MAX);
    struct buf all = BUF_INIT(LIST_TEXT_BYTES_MAX);

    write_with(&found, sql->statements[parts[way]].text, "{fits}",
               str_of(sql->statements[PGSQL_list_fits].text));
    if (!found.failed)
        write_with(&all, sql->statements[PGSQL_list_tasks].text, "{found}", buf_view(&found));
    buf_byte(&all, '\0');
    if (found.failed || all.failed) {
        buf_deinit(&found);
        buf_deinit(&all);
        return err_no_memory(err);
    }
    buf_deinit(&found);
    if (list->filter->oldest_first)
        turn_round(&all);
    *text = all.data;
    return 0;
}

/* ---- choosing the way ---- */

/* The filter's index to use, the usually rarest first; WAY_COUNT if none applies. */
static enum list_way way_of_filter(const struct task_filter *filter)
{
    if (filter->external_id.data)
        return WAY_EXTERNAL;
    if (!uuid_is_nil(&filter->parent_id))
        return WAY_PARENT;
    if (filter->context_key.data)
        return WAY_CONTEXT;
    if (filter->workflow_id.data)
        return WAY_WORKFLOW;
    if (filter->correlation_id.data)
        return WAY_CORRELATION;
    if (!uuid_is_nil(&filter->schedule_id))
        return WAY_SCHEDULE;
    if (!uuid_is_nil(&filter->job_id))
        return WAY_JOB;
    if (filter->user_id.data)
        return WAY_USER;
    if (filter->tag.data)
        return filter->namespace_name.data ? WAY_TAG : WAY_TAG_ANYWHERE;
    return WAY_COUNT;
}

static int count_lanes(const struct list *list, struct list_counts *counts, struct err *err)
{
    const struct task_filter *filter = list->filter;
    struct pg_conn *conn = &list->reader->conn;
    PGresult *result;

    param_text(&conn->params, filter->namespace_name);
    param_text(&conn->params, filter->queue);
    param_text(&conn->params, filter->type);
    param_text(&conn->params, filter->status ? str_of(status_word(filter->status)) : STR_NONE);
    TRY(conn_query(conn, &list->reader->store->sql.statements[PGSQL_list_counts], &result, err));
    counts->lanes = get_int(result, 0, 0, 0);
    counts->matching = get_int(result, 0, 1, 0);
    counts->in_lanes = get_int(result, 0, 2, 0);
    counts->in_status = get_int(result, 0, 3, 0);
    counts->all = get_int(result, 0, 4, 0);
    PQclear(result);
    return 0;
}

/* *empty: the counts already show that nothing fits. */
static int choose_way(struct list *list, bool *empty, struct err *err)
{
    struct list_counts counts = {0};

    *empty = false;
    list->way = way_of_filter(list->filter);
    if (list->way != WAY_COUNT)
        return 0;
    TRY(count_lanes(list, &counts, err));
    *empty = counts.matching <= 0;
    list->way = list_way_of_counts(&counts, list->filter->status, list->limit, true);
    return 0;
}

/* ---- narrowing by time ---- */

/* The first key such that it and all later tasks were created at or after the time. */
static int key_at(struct store_reader *reader, int64_t time_us, int64_t *key, struct err *err)
{
    PGresult *result;

    param_time(&reader->conn.params, time_us > 0 ? time_us : 1);
    param_int(&reader->conn.params, KEY_END);
    TRY(conn_query(&reader->conn, &reader->store->sql.statements[PGSQL_list_key_at], &result, err));
    if (PQntuples(result) > 0)
        *key = get_int(result, 0, 0, 1);
    PQclear(result);
    return 0;
}

/* ---- asking ---- */

/* Must rows be read for more than their status? (Is there a filter that the way itself does not
 * cover?) */
static bool looks_further(const struct list *list)
{
    const struct task_filter *filter = list->filter;
    int columns = (filter->user_id.data != NULL) + (filter->external_id.data != NULL) +
                  (filter->context_key.data != NULL) + (filter->workflow_id.data != NULL) +
                  (filter->correlation_id.data != NULL) + (filter->tag.data != NULL) +
                  !uuid_is_nil(&filter->job_id) + !uuid_is_nil(&filter->schedule_id) +
                  !uuid_is_nil(&filter->parent_id) + (filter->created_after_us != 0) +
                  (filter->created_before_us != 0);
    bool in_lane = filter->namespace_name.data || filter->queue.data || filter->type.data;

    if (list->way == WAY_LANES)
        return columns > 0;
    return in_lane || columns > (list->way >= WAYS_BY_COUNTS);
}

/* In the order given in sql/read.sql. */
static void put_filter(const struct list *list, int64_t room)
{
    const struct task_filter *filter = list->filter;
    struct pg_params *params = &list->reader->conn.params;

    param_text(params, filter->namespace_name);
    param_text(params, filter->queue);
    param_text(params, filter->type);
    param_text(params, filter->status ? str_of(status_word(filter->status)) : STR_NONE);
    param_text(params, filter->tag);
    param_text(params, filter->user_id);
    param_text(params, filter->external_id);
    param_text(params, filter->context_key);
    param_text(params, filter->workflow_id);
    param_text(params, filter->correlation_id);
    param_uuid(params, &filter->job_id);
    param_uuid(params, &filter->schedule_id);
    param_uuid(params, &filter->parent_id);
    param_time(params, filter->created_after_us);
    param_time(params, filter->created_before_us);
    param_int(params, list->keys.first);
    param_int(params, list->keys.end);
    param_int(params, list->limit);
    param_bool(params, looks_further(list));
    param_int(params, room);
}

static int query_list(const struct list *list, const struct arena *arena, PGresult **result,
                      struct err *err)
{
    struct pg_reader *reader = (struct pg_reader *)list->reader;
    char **text = &reader->lists[list->filter->oldest_first][list->way];

    if (!*text && make_text(&reader->base.store->sql, list, text, err) < 0)
        return -(int)err->code;
    put_filter(list, reader_room(arena));
    return conn_query(&reader->base.conn, &(struct pg_statement){"list_tasks", *text}, result,
                      err);
}

static int fetch(const struct list *list, struct arena *arena, struct task **tasks,
                 uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc = query_list(list, arena, &result, err);
    int rows = rc == 0 ? PQntuples(result) : 0;

    if (rc < 0)
        return rc;
    if (rows > 0)
        *tasks = arena_alloc_array(arena, (size_t)rows, sizeof **tasks);
    if (rows > 0 && !*tasks)
        rc = err_no_memory(err);
    for (int row = 0; rc == 0 && row < rows; row++) {
        rc = pg_reader_row_fits(result, row, arena, err);
        if (rc == 0)
            reader_task_from_row(result, row, arena, &(*tasks)[(*count)++]);
    }
    PQclear(result);
    return rc;
}

static int run(struct list *list, struct arena *arena, struct task **tasks, uint32_t *count,
               struct err *err)
{
    bool empty = false;
    int rc = list_narrow(list->reader, list->filter, CREATED_MARGIN_US, key_at, &list->keys, err);

    if (rc == 0)
        rc = choose_way(list, &empty, err);
    if (rc == 0 && !empty)
        rc = fetch(list, arena, tasks, count, err);
    return rc;
}

int pg_read_tasks(struct store_reader *reader, const struct task_filter *filter,
                  struct arena *arena, struct task **tasks, uint32_t *count, struct err *err)
{
    struct list list = {.reader = reader,
                        .filter = filter,
                        .limit = filter->limit ? filter->limit : BOUND_LIST_LIMIT_DEFAULT};
    int turns = 0;
    int rc;

    if (list.limit > BOUND_LIST_LIMIT)
        list.limit = BOUND_LIST_LIMIT;
    do {
        *tasks = NULL;
        *count = 0;
        rc = pg_reader_begin(reader, err);
        if (rc == 0)
            rc = run(&list, arena, tasks, count, err);
        rc = pg_reader_end(reader, rc, err);
    } while (reader_again(reader, rc, &turns));
    return pg_reader_whole(arena, rc, err);
}
