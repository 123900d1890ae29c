/* The outbox, once for every store: messages to other systems, stored with the change they report,
 * until they are sent or given up. The webhook thread sends them. Writer's thread only. */
#include "store/rows/rows_verbs.h"

#define MESSAGE(...) FIELD_ROW(outbox_message, __VA_ARGS__)
static const struct field message_fields[] = {
    MESSAGE(message, key, INT, FIELD_EMPTY), /* 0: the store gives it */
    MESSAGE(id, id, UUID, 0),
    MESSAGE(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE),
    MESSAGE(kind, kind, TEXT, 0),
    MESSAGE(target, target, TEXT, 0),
    MESSAGE(task_id, task_id, UUID, 0),
    MESSAGE(body, body, TEXT, FIELD_LONG),
    MESSAGE(attempts, attempts, INT, 0),
    MESSAGE(last_error, last_error, TEXT, 0),
    MESSAGE(next_at, next_at_us, TIME, 0),
    MESSAGE(expires_at, expires_at_us, TIME, FIELD_ALWAYS),
    MESSAGE(created_at, created_at_us, TIME, FIELD_ALWAYS),
};
const struct field_table rows_outbox_table = FIELD_TABLE(outbox_message, "outbox", "o",
                                                         message_fields);

int rows_outbox_insert(struct store *store, const struct outbox_message *messages, uint32_t count,
                       struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_outbox_insert), &rows_outbox_table,
                         messages, count, NULL, err);
}

/* *next_at_us is now when the limit left some, INT64_MAX when no message waits. */
int rows_outbox_due(struct store *store, int64_t now_us, uint32_t limit, struct arena *arena,
                    struct outbox_message **messages, uint32_t *count, int64_t *next_at_us,
                    struct err *err)
{
    *next_at_us = now_us;
    TRY(rows_take(rows_of(store),
                  ROWS_QUERY(ROWS_outbox_due, value_moment(now_us), value_int(limit)),
                  &rows_outbox_table, arena, ROWS_INTO(messages), count, err));
    if (*count == limit)
        return 0;
    *next_at_us = INT64_MAX;
    return rows_numbers(rows_of(store), ROWS_QUERY(ROWS_outbox_next, value_moment(now_us)),
                        next_at_us, 1, err);
}

int rows_outbox_count(struct store *store, int64_t *pending, struct err *err)
{
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_outbox_count), pending, 1, err);
}

int rows_outbox_prune(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                      struct err *err)
{
    int64_t changes = 0;

    *removed = 0;
    /* before all times: no row is older, and a database may have no such time */
    TRY(rows_run(rows_of(store),
                 ROWS_QUERY(ROWS_outbox_prune, value_time(before_us > 0 ? before_us : 0),
                            value_int(limit)),
                 &changes, err));
    *removed = (uint32_t)changes;
    return 0;
}

int rows_outbox_save(struct store *store, const struct outbox_message *message, bool remove,
                     struct err *err)
{
    if (remove)
        return rows_run(rows_of(store), ROWS_QUERY(ROWS_outbox_delete, value_int(message->key)),
                        NULL, err);
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_outbox_update, value_int(message->key),
                               value_int(message->attempts), value_text(message->last_error),
                               value_time(message->next_at_us),
                               value_moment(message->expires_at_us)),
                    NULL, err);
}
