/* Data keys on rows, once for every store. */
#include "store/key_store.h"
#include "store/rows/rows.h"

#define KEY(...) FIELD_ROW(data_key_row, __VA_ARGS__)
static const struct field key_fields[] = {
    KEY(id, id, UUID, 0),
    KEY(namespace, namespace_name, TEXT, FIELD_ALWAYS, .otherwise = TASK_DEFAULT_NAMESPACE),
    KEY(day, day, TEXT, FIELD_ALWAYS, .otherwise = ""),
    KEY(user_id, user_id, TEXT, FIELD_ALWAYS, .otherwise = ""),
    KEY(kek, kek_id, TEXT, FIELD_ALWAYS, .otherwise = ""),
    KEY(wrapped, wrapped, TEXT, FIELD_ALWAYS, .otherwise = ""),
    KEY(created_at, created_at_us, TIME, FIELD_ALWAYS),
    KEY(destroyed_at, destroyed_at_us, TIME, 0),
};
static const struct field_table key_table = FIELD_TABLE(data_key_row, "data_key", "k", key_fields);

#define SUM(...) FIELD_ROW(data_key_sum, __VA_ARGS__)
static const struct field sum_fields[] = {SUM(namespace, namespace_name, TEXT, 0),
                                          SUM(kek, kek_id, TEXT, 0), SUM(keys, keys, INT, 0),
                                          SUM(destroyed, destroyed, INT, 0),
                                          SUM(newest, newest_us, TIME, 0)};
static const struct field_table sum_table = FIELD_TABLE(data_key_sum, "key_sum", "k", sum_fields);

#define TASK(...) FIELD_ROW(sealed_task, __VA_ARGS__)
static const struct field task_seal_fields[] = {TASK(namespace, namespace_name, TEXT, 0),
                                                TASK(user_id, user_id, TEXT, 0),
                                                TASK(encrypt, encrypt, BOOL, 0),
                                                TASK(encrypt_fields, encrypt_fields, TEXT, 0)};
static const struct field_table task_seal_table = FIELD_TABLE(sealed_task, "sealed_task", "s",
                                                              task_seal_fields);

int keys_put(struct store *store, const struct data_key_row *key, struct err *err)
{
    return rows_save(rows_of(store), ROWS_key_put, &key_table, key, err);
}

int keys_rewrap(struct store *store, const struct data_key_row *key, struct str from,
                bool *changed, struct err *err)
{
    int64_t changes = 0;

    TRY(rows_run(rows_of(store),
                 ROWS_QUERY(ROWS_key_rewrap, value_uuid(&key->id), value_text(from),
                            value_text(key->kek_id), value_text(key->wrapped)),
                 &changes, err));
    *changed = changes > 0;
    return 0;
}

/* Overwritten where it lies before anything else of the row changes: what a store leaves of the old
 * row is then this, too. */
int keys_destroy(struct store *store, struct str namespace_name, struct str user_id,
                 int64_t now_us, int64_t *destroyed, struct err *err)
{
    TRY(rows_run(rows_of(store),
                 ROWS_QUERY(ROWS_keys_overwrite, value_text(namespace_name), value_text(user_id)),
                 NULL, err));
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_keys_destroy, value_text(namespace_name), value_text(user_id),
                               value_time(now_us)),
                    destroyed, err);
}

int keys_page(struct store *store, struct str not_kek, const struct uuid *after, uint32_t limit,
              struct arena *arena, struct data_key_row **keys, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_keys_page, value_text(not_kek), value_uuid(after),
                                value_int(limit)),
                     &key_table, arena, ROWS_INTO(keys), count, err);
}

int keys_find(struct rows *rows, struct str namespace_name, struct str day, struct str user_id,
              struct arena *arena, struct data_key_row **key, struct err *err)
{
    return rows_one(rows,
                    ROWS_QUERY(ROWS_key_find, value_text(namespace_name), value_text(day),
                               value_text(user_id)),
                    &key_table, arena, ROWS_INTO(key), err);
}

int keys_load(struct rows *rows, const struct uuid *id, struct arena *arena,
              struct data_key_row **key, struct err *err)
{
    return rows_one(rows, ROWS_QUERY(ROWS_key_by_id, value_uuid(id)), &key_table, arena,
                    ROWS_INTO(key), err);
}

int keys_any(struct rows *rows, bool *any, struct err *err)
{
    int found = rows_any(rows, ROWS_PLAIN(ROWS_keys_any), err);

    *any = found > 0;
    return found < 0 ? found : 0;
}

int keys_sums(struct rows *rows, struct arena *arena, struct data_key_sum **sums, uint32_t *count,
              struct err *err)
{
    return rows_take(rows, ROWS_PLAIN(ROWS_keys_sums), &sum_table, arena, ROWS_INTO(sums), count,
                     err);
}

int keys_task(struct rows *rows, int64_t task_key, struct arena *arena, struct sealed_task **task,
              struct err *err)
{
    return rows_one(rows, ROWS_QUERY(ROWS_sealed_task, value_int(task_key)), &task_seal_table,
                    arena, ROWS_INTO(task), err);
}
