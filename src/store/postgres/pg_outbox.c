/* The outbox: messages to the outside that are stored with the change they tell of, and stay until
 * they were told or given up. Sending them is not done here. Writer's thread only. */
#include "store/postgres/pg_int.h"

#define KEY_BLOCK 100 /* keys taken from the sequence at a time; as in the migration */

enum column {
    COLUMN_KEY, COLUMN_ID, COLUMN_KIND, COLUMN_TARGET, COLUMN_TASK, COLUMN_BODY, COLUMN_ATTEMPTS,
    COLUMN_ERROR, COLUMN_NEXT, COLUMN_EXPIRES, COLUMN_CREATED, COLUMN_COUNT
};

static const Oid column_types[COLUMN_COUNT] = {
    PG_OID_INT8, PG_OID_UUID, PG_OID_TEXT, PG_OID_TEXT, PG_OID_UUID, PG_OID_TEXT,
    PG_OID_INT8, PG_OID_TEXT, PG_OID_TIME, PG_OID_TIME, PG_OID_TIME};

/* Keys that no other node gives. What is left of a block is lost with the process. */
static int take_key(struct pg_store *store, int64_t *key, struct err *err)
{
    PGresult *result;

    if (store->outbox_next == store->outbox_end) {
        TRY(pg_query(store, PGSQL_outbox_keys, &result, err));
        store->outbox_next = get_int(result, 0, 0, 0);
        store->outbox_end = store->outbox_next + KEY_BLOCK;
        PQclear(result);
    }
    *key = store->outbox_next++;
    return 0;
}

static void put_value(struct pg_params *params, enum column column,
                      const struct outbox_message *message, int64_t key)
{
    switch (column) {
    case COLUMN_KEY:
        array_int(params, key);
        break;
    case COLUMN_ID:
        array_uuid(params, &message->id);
        break;
    case COLUMN_KIND:
        array_text(params, message->kind);
        break;
    case COLUMN_TARGET:
        array_text(params, message->target);
        break;
    case COLUMN_TASK:
        array_uuid(params, &message->task_id);
        break;
    case COLUMN_BODY:
        array_text(params, message->body);
        break;
    case COLUMN_ATTEMPTS:
        array_int(params, message->attempts);
        break;
    case COLUMN_ERROR:
        array_text(params, message->last_error);
        break;
    case COLUMN_NEXT:
        array_time(params, message->next_at_us);
        break;
    case COLUMN_EXPIRES:
        array_time(params, message->expires_at_us);
        break;
    default:
        array_time(params, message->created_at_us);
        break;
    }
}

int pg_outbox_insert(struct store *base, const struct outbox_message *messages, uint32_t count,
                     struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    int64_t *keys;

    if (count == 0)
        return 0;
    keys = arena_alloc_array(&store->arena, count, sizeof *keys);
    if (!keys)
        return err_set(err, ERR_MEMORY, "out of memory for messages; try again");
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = messages[i].key;
        if (keys[i] == 0 && take_key(store, &keys[i], err) < 0)
            return -(int)err->code;
    }
    for (int column = 0; column < COLUMN_COUNT; column++) {
        array_begin(params, column_types[column]);
        for (uint32_t i = 0; i < count; i++)
            put_value(params, (enum column)column, &messages[i], keys[i]);
        array_end(params);
    }
    return pg_send(store, PGSQL_outbox_insert, err);
}

static void message_from_row(const PGresult *result, int row, struct arena *arena,
                             struct outbox_message *message)
{
    message->key = get_int(result, row, COLUMN_KEY, 0);
    message->id = get_uuid(result, row, COLUMN_ID);
    message->kind = get_text(result, row, COLUMN_KIND, arena);
    message->target = get_text(result, row, COLUMN_TARGET, arena);
    message->task_id = get_uuid(result, row, COLUMN_TASK);
    message->body = get_text(result, row, COLUMN_BODY, arena);
    message->attempts = get_int(result, row, COLUMN_ATTEMPTS, 0);
    message->last_error = get_text(result, row, COLUMN_ERROR, arena);
    message->next_at_us = get_time(result, row, COLUMN_NEXT);
    message->expires_at_us = get_time(result, row, COLUMN_EXPIRES);
    message->created_at_us = get_time(result, row, COLUMN_CREATED);
}

static int find_next(struct pg_store *store, int64_t now_us, int64_t *next_at_us, struct err *err)
{
    PGresult *result;

    param_time(&store->conn.params, now_us);
    TRY(pg_ask(store, PGSQL_outbox_next, &result, err));
    *next_at_us = PQntuples(result) > 0 ? get_time(result, 0, 0) : INT64_MAX;
    PQclear(result);
    return 0;
}

/* *next_at_us is now when the limit left some behind, INT64_MAX when nothing waits. */
int pg_outbox_due(struct store *base, int64_t now_us, uint32_t limit, struct arena *arena,
                  struct outbox_message **messages, uint32_t *count, int64_t *next_at_us,
                  struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *count = 0;
    *next_at_us = now_us;
    param_time(&store->conn.params, now_us);
    param_int(&store->conn.params, limit);
    TRY(pg_ask(store, PGSQL_outbox_due, &result, err));
    *messages = arena_alloc_array(arena, (size_t)PQntuples(result) + 1, sizeof **messages);
    for (int row = 0; *messages && row < PQntuples(result); row++)
        message_from_row(result, row, arena, &(*messages)[(*count)++]);
    PQclear(result);
    if (!*messages || arena->failed)
        return err_set(err, ERR_MEMORY, "out of memory for messages; try again");
    return *count == limit ? 0 : find_next(store, now_us, next_at_us, err);
}

int pg_outbox_count(struct store *base, int64_t *pending, struct err *err)
{
    PGresult *result;

    TRY(pg_ask(pg_of(base), PGSQL_outbox_count, &result, err));
    *pending = get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

int pg_outbox_prune(struct store *base, int64_t before_us, uint32_t limit, uint32_t *removed,
                    struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *removed = 0;
    /* before all times: nothing is older, and the database has no such time */
    param_time(&store->conn.params, before_us > 0 ? before_us : 0);
    param_int(&store->conn.params, limit);
    TRY(pg_query(store, PGSQL_outbox_prune, &result, err));
    *removed = (uint32_t)get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

int pg_outbox_save(struct store *base, const struct outbox_message *message, bool remove,
                   struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_int(params, message->key);
    if (!remove) {
        param_int(params, message->attempts);
        param_text(params, message->last_error);
        param_time(params, message->next_at_us);
        param_time(params, message->expires_at_us);
    }
    return pg_send(store, remove ? PGSQL_outbox_delete : PGSQL_outbox_update, err);
}
