/* The small tables around the tasks: outbox, workers, queues with their limits, counts, and the
 * store's own facts (store_info). Whole tables are read at the start and kept in memory above the
 * seam; here rows become structs and back. Writer's thread only. */
#include "base/json.h"
#include "core/bounds.h"
#include "store/sqlite/sqlite_int.h"

#define TYPE_LIMIT_BYTES_MAX (8 * BOUND_NAME_BYTES + 256) /* every byte of a name escaped */

static int memory_failed(sqlite3_stmt *stmt, const char *what, struct err *err)
{
    sqlite3_reset(stmt);
    return err_set(err, ERR_MEMORY, "out of memory for %s; try again", what);
}

/* Room for one more in a list of unknown length: doubled when full. */
static void *grow(struct arena *arena, void *items, uint32_t count, uint32_t *cap, size_t bytes)
{
    uint32_t wanted = *cap ? *cap * 2 : 16;
    void *larger;

    if (count < *cap)
        return items;
    larger = arena_alloc_array(arena, wanted, bytes);
    if (larger && count)
        memcpy(larger, items, count * bytes);
    *cap = wanted;
    return larger;
}

int sqlite_outbox_insert(struct store *base, const struct outbox_message *messages, uint32_t count,
                         struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        const struct outbox_message *message = &messages[i];
        sqlite3_stmt *stmt = sql_get(sql, SQL_outbox_insert, err);

        if (!stmt)
            return -(int)err->code;
        bind_int_or_null(stmt, 1, message->key);
        bind_uuid(stmt, 2, &message->id);
        bind_str(stmt, 3, message->kind);
        bind_str(stmt, 4, message->target);
        bind_uuid(stmt, 5, &message->task_id);
        bind_str(stmt, 6, message->body);
        bind_int(stmt, 7, message->attempts);
        bind_str(stmt, 8, message->last_error);
        bind_int_or_null(stmt, 9, message->next_at_us);
        bind_int(stmt, 10, message->expires_at_us);
        bind_int(stmt, 11, message->created_at_us);
        TRY(sql_run(sql, stmt, NULL, err));
    }
    return 0;
}

static void message_from_row(sqlite3_stmt *stmt, struct arena *arena,
                             struct outbox_message *message)
{
    message->key = sqlite3_column_int64(stmt, 0);
    message->id = column_uuid(stmt, 1);
    message->kind = column_str(stmt, 2, arena);
    message->target = column_str(stmt, 3, arena);
    message->task_id = column_uuid(stmt, 4);
    message->body = column_str(stmt, 5, arena);
    message->attempts = sqlite3_column_int64(stmt, 6);
    message->last_error = column_str(stmt, 7, arena);
    message->next_at_us = sqlite3_column_int64(stmt, 8);
    message->expires_at_us = sqlite3_column_int64(stmt, 9);
    message->created_at_us = sqlite3_column_int64(stmt, 10);
}

static int outbox_next(struct sqlite_sql *sql, int64_t now_us, int64_t *next_at_us,
                       struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_outbox_next, err);
    int rc;

    *next_at_us = INT64_MAX;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, now_us);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *next_at_us = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return 0;
}

/* *next_at_us is now when the limit left some behind, INT64_MAX when nothing waits. */
int sqlite_outbox_due(struct store *base, int64_t now_us, uint32_t limit, struct arena *arena,
                      struct outbox_message **messages, uint32_t *count, int64_t *next_at_us,
                      struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_outbox_due, err);
    uint32_t cap = 0;
    int rc;

    *messages = NULL;
    *count = 0;
    *next_at_us = now_us;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, now_us);
    bind_int(stmt, 2, limit);
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        *messages = grow(arena, *messages, *count, &cap, sizeof **messages);
        if (!*messages)
            return memory_failed(stmt, "messages", err);
        message_from_row(stmt, arena, &(*messages)[(*count)++]);
    }
    if (rc < 0 || *count == limit)
        return rc;
    return outbox_next(sql, now_us, next_at_us, err);
}

int sqlite_outbox_count(struct store *base, int64_t *pending, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_outbox_count, err);
    int rc = stmt ? sql_step(sql, stmt, err) : -(int)err->code;

    if (rc <= 0)
        return rc;
    *pending = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return 0;
}

int sqlite_outbox_prune(struct store *base, int64_t before_us, uint32_t limit, uint32_t *removed,
                        struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_outbox_prune, err);
    int64_t changes = 0;

    *removed = 0;
    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, before_us);
    bind_int(stmt, 2, limit);
    TRY(sql_run(sql, stmt, &changes, err));
    *removed = (uint32_t)changes;
    return 0;
}

int sqlite_outbox_save(struct store *base, const struct outbox_message *message, bool remove,
                       struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, remove ? SQL_outbox_delete : SQL_outbox_update, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, message->key);
    if (!remove) {
        bind_int(stmt, 2, message->attempts);
        bind_str(stmt, 3, message->last_error);
        bind_int_or_null(stmt, 4, message->next_at_us);
        bind_int(stmt, 5, message->expires_at_us);
    }
    return sql_run(sql, stmt, NULL, err);
}

static void worker_from_row(sqlite3_stmt *stmt, struct arena *arena, struct worker_row *worker)
{
    worker->id = column_str(stmt, 0, arena);
    worker->hostname = column_str(stmt, 1, arena);
    worker->version = column_str(stmt, 2, arena);
    worker->queues = column_str(stmt, 3, arena);
    worker->types = column_str(stmt, 4, arena);
    worker->categories = column_str(stmt, 5, arena);
    worker->pool_size = sqlite3_column_int64(stmt, 6);
    worker->started_at_us = sqlite3_column_int64(stmt, 7);
    worker->last_heartbeat_us = sqlite3_column_int64(stmt, 8);
    worker->lease_until_us = sqlite3_column_int64(stmt, 9);
    worker->is_leader = sqlite3_column_int64(stmt, 10) != 0;
    worker->leader_until_us = sqlite3_column_int64(stmt, 11);
    worker->errored = str_is(str_of((const char *)sqlite3_column_text(stmt, 12)), "error");
}

int sqlite_workers_load(struct store *base, struct arena *arena, struct worker_row **workers,
                        uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_workers_all, err);
    uint32_t cap = 0;
    int rc;

    *workers = NULL;
    *count = 0;
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        *workers = grow(arena, *workers, *count, &cap, sizeof **workers);
        if (!*workers)
            return memory_failed(stmt, "workers", err);
        worker_from_row(stmt, arena, &(*workers)[(*count)++]);
    }
    return rc;
}

static struct str text_or(struct str text, struct str otherwise)
{
    return text.data ? text : otherwise;
}

int sqlite_worker_put(struct store *base, const struct worker_row *worker, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_worker_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, worker->id);
    bind_str(stmt, 2, text_or(worker->hostname, STR("")));
    bind_str(stmt, 3, worker->version);
    bind_str(stmt, 4, text_or(worker->queues, STR("[]")));
    bind_str(stmt, 5, worker->types);
    bind_str(stmt, 6, worker->categories);
    bind_int(stmt, 7, worker->pool_size);
    bind_int(stmt, 8, worker->started_at_us);
    bind_int(stmt, 9, worker->last_heartbeat_us);
    bind_int(stmt, 10, worker->lease_until_us);
    bind_int(stmt, 11, worker->is_leader);
    bind_int_or_null(stmt, 12, worker->leader_until_us);
    bind_str(stmt, 13, worker->errored ? STR("error") : STR("idle")); /* the others are derived */
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_worker_delete(struct store *base, struct str id, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_worker_delete, err);

    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, id);
    return sql_run(sql, stmt, NULL, err);
}

static int64_t member_int(struct str object, struct str key)
{
    int64_t number = 0;

    json_int64(json_get(object, key), &number);
    return number;
}

/* Hand-written JSON that is not a list of limits counts as none; verify names it. */
static int type_limits_parse(struct str text, struct arena *arena, struct queue_rule *rule,
                             struct err *err)
{
    struct type_limit *limits;
    struct json_iter iter;
    struct str element;
    size_t count;

    rule->type_limits = NULL;
    rule->type_limits_count = 0;
    if (!text.data || json_check(text, &text, NULL) < 0 || json_kind(text) != JSON_ARRAY)
        return 0;
    count = json_count(text);
    limits = arena_alloc_array(arena, count ? count : 1, sizeof *limits);
    if (!limits)
        return err_set(err, ERR_MEMORY, "out of memory for the limits of a queue; try again");
    json_begin(text, &iter);
    while (json_next_element(&iter, &element) && rule->type_limits_count < BOUND_TYPE_LIMITS) {
        struct type_limit *limit = &limits[rule->type_limits_count];

        limit->type = json_string(json_get(element, STR("type")), arena);
        limit->concurrency = member_int(element, STR("concurrency"));
        limit->rate.count = member_int(element, STR("rate_count"));
        limit->rate.per_ms = member_int(element, STR("rate_per_ms"));
        limit->rate.burst = member_int(element, STR("rate_burst"));
        if (limit->type.data)
            rule->type_limits_count++;
    }
    rule->type_limits = limits;
    return 0;
}

static void type_limits_write(const struct queue_rule *rule, struct buf *out)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < rule->type_limits_count; i++) {
        const struct type_limit *limit = &rule->type_limits[i];

        buf_text(out, i ? ",{" : "{");
        json_write_member_string(out, "type", limit->type);
        buf_text(out, ",\"concurrency\":");
        buf_int(out, limit->concurrency);
        buf_text(out, ",\"rate_count\":");
        buf_int(out, limit->rate.count);
        buf_text(out, ",\"rate_per_ms\":");
        buf_int(out, limit->rate.per_ms);
        buf_text(out, ",\"rate_burst\":");
        buf_int(out, limit->rate.burst);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static struct rate_rule rate_from_row(sqlite3_stmt *stmt, int first)
{
    return (struct rate_rule){sqlite3_column_int64(stmt, first),
                              sqlite3_column_int64(stmt, first + 1),
                              sqlite3_column_int64(stmt, first + 2)};
}

static int queue_from_row(sqlite3_stmt *stmt, struct arena *arena, struct queue_row *queue,
                          struct err *err)
{
    struct queue_rule *rule = &queue->rule;

    queue->namespace_name = column_str(stmt, 0, arena);
    rule->name = column_str(stmt, 1, arena);
    queue->paused_at_us = sqlite3_column_int64(stmt, 2);
    rule->concurrency = sqlite3_column_int64(stmt, 3);
    rule->rate = rate_from_row(stmt, 4);
    rule->key_concurrency = sqlite3_column_int64(stmt, 7);
    rule->key_rate = rate_from_row(stmt, 8);
    rule->priority_order =
        str_is(str_of((const char *)sqlite3_column_text(stmt, 12)), "low_first")
            ? ORDER_LOW_FIRST
            : ORDER_HIGH_FIRST;
    rule->ageing_ms = sqlite3_column_int64(stmt, 13);
    queue->created_at_us = sqlite3_column_int64(stmt, 14);
    queue->updated_at_us = sqlite3_column_int64(stmt, 15);
    return type_limits_parse(column_str(stmt, 11, arena), arena, rule, err);
}

int sqlite_queues_load(struct store *base, struct arena *arena, struct queue_row **queues,
                       uint32_t *count, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_queues_all, err);
    uint32_t cap = 0;
    int rc;

    *queues = NULL;
    *count = 0;
    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        *queues = grow(arena, *queues, *count, &cap, sizeof **queues);
        if (!*queues || queue_from_row(stmt, arena, &(*queues)[(*count)++], err) < 0)
            return memory_failed(stmt, "queues", err);
    }
    return rc;
}

/* The parts of a rule that come from the configuration alone (store, stall, dead letters) are not
 * stored. */
int sqlite_queue_put(struct store *base, const struct queue_row *queue, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    struct buf limits = BUF_INIT(BOUND_TYPE_LIMITS * TYPE_LIMIT_BYTES_MAX);
    const struct queue_rule *rule = &queue->rule;
    sqlite3_stmt *stmt = sql_get(sql, SQL_queue_put, err);
    int rc = stmt ? 0 : -(int)err->code;

    type_limits_write(rule, &limits);
    if (rc == 0 && limits.failed)
        rc = err_set(err, ERR_TOO_LARGE, "queue %.60s has too many limits per type",
                     rule->name.data);
    if (rc < 0)
        goto out;
    bind_str(stmt, 1, text_or(queue->namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
    bind_str(stmt, 2, rule->name);
    bind_int_or_null(stmt, 3, queue->paused_at_us);
    bind_int(stmt, 4, rule->concurrency);
    bind_int(stmt, 5, rule->rate.count);
    bind_int(stmt, 6, rule->rate.per_ms);
    bind_int(stmt, 7, rule->rate.burst);
    bind_int(stmt, 8, rule->key_concurrency);
    bind_int(stmt, 9, rule->key_rate.count);
    bind_int(stmt, 10, rule->key_rate.per_ms);
    bind_int(stmt, 11, rule->key_rate.burst);
    bind_str(stmt, 12, buf_view(&limits));
    bind_str(stmt, 13,
             rule->priority_order == ORDER_LOW_FIRST ? STR("low_first") : STR("high_first"));
    bind_int(stmt, 14, rule->ageing_ms);
    bind_int(stmt, 15, queue->created_at_us);
    bind_int(stmt, 16, queue->updated_at_us);
    rc = sql_run(sql, stmt, NULL, err);
out:
    buf_deinit(&limits);
    return rc;
}

int sqlite_queue_delete(struct store *base, const struct queue_row *queue, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_queue_delete, err);

    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, text_or(queue->namespace_name, STR(TASK_DEFAULT_NAMESPACE)));
    bind_str(stmt, 2, queue->rule.name);
    bind_int(stmt, 3, queue->updated_at_us);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_info_get(struct store *base, const char *name, struct arena *arena, struct str *value,
                    struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_info_get, err);
    int rc;

    *value = STR_NONE;
    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, str_of(name));
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    *value = column_str(stmt, 0, arena);
    if (!value->data)
        return memory_failed(stmt, "a fact of the store", err);
    sqlite3_reset(stmt);
    return 0;
}

int sqlite_info_put(struct store *base, const char *name, struct str value, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_info_put, err);

    if (!stmt)
        return -(int)err->code;
    bind_str(stmt, 1, str_of(name));
    bind_str(stmt, 2, value);
    return sql_run(sql, stmt, NULL, err);
}
