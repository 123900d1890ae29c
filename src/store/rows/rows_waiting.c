/* Tasks that wait for a key or for a time, once for every store; and limits over all nodes of a
 * shared store. A claim on a queue with limits locks the queue's row, so claims on it come one
 * after the other. Ends need no lock, because they only make room, unless they bring back parked
 * tasks. Writer's thread only. */
#include "store/rows/rows_verbs.h"

struct str parked_name(struct str queue, struct str limit_key, char out[PARKED_BYTES_MAX])
{
    ASSERT(queue.len + limit_key.len + 1 < PARKED_BYTES_MAX);
    memcpy(out, queue.data, queue.len);
    out[queue.len] = '\x1f';
    if (limit_key.len)
        memcpy(out + queue.len + 1, limit_key.data, limit_key.len);
    return str_span(out, queue.len + 1 + limit_key.len);
}

int rows_parked_find(struct store *store, struct str queue, struct str limit_key, uint32_t limit,
                     struct arena *arena, struct uuid **ids, uint32_t *count, struct err *err)
{
    char name[PARKED_BYTES_MAX];

    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_parked_first, value_text(parked_name(queue, limit_key, name)),
                                value_int(limit)),
                     &rows_id_table, arena, ROWS_INTO(ids), count, err);
}

int rows_parked_keys(struct store *store, struct str after, uint32_t limit, struct arena *arena,
                     struct str **keys, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_parked_keys, value_text(after.data ? after : STR("")),
                                value_int(limit)),
                     &rows_text_table, arena, ROWS_INTO(keys), count, err);
}

/* For one clock: the due tasks, and when the first of all is due. */
static int due_of(struct rows *rows, bool by_wall, int64_t clock_us, uint32_t limit,
                  struct arena *arena, struct uuid **ids, uint32_t *count, int64_t *next_in_us,
                  struct err *err)
{
    int64_t next_us = INT64_MAX;

    TRY(rows_take(rows,
                  ROWS_QUERY(ROWS_due_first, value_bool(by_wall), value_moment(clock_us),
                             value_int(limit)),
                  &rows_id_table, arena, ROWS_INTO(ids), count, err));
    TRY(rows_numbers(rows, ROWS_QUERY(ROWS_due_next, value_bool(by_wall)), &next_us, 1, err));
    if (next_us != INT64_MAX && next_us - clock_us < *next_in_us)
        *next_in_us = next_us - clock_us;
    return 0;
}

int rows_due_find(struct store *store, int64_t now_us, int64_t wall_us, uint32_t limit,
                  struct arena *arena, struct uuid **ids, uint32_t *count, int64_t *next_in_us,
                  struct err *err)
{
    struct uuid *by_wall;
    uint32_t by_wall_count;

    *next_in_us = INT64_MAX;
    TRY(due_of(rows_of(store), false, now_us, limit, arena, ids, count, next_in_us, err));
    TRY(due_of(rows_of(store), true, wall_us, limit, arena, &by_wall, &by_wall_count, next_in_us,
               err));
    if (by_wall_count > 0) {
        struct uuid *all = TRY_MEMORY(arena_alloc_array(arena, *count + by_wall_count,
                                                        sizeof *all));

        if (*count)
            memcpy(all, *ids, *count * sizeof *all);
        memcpy(all + *count, by_wall, by_wall_count * sizeof *all);
        *ids = all;
        *count += by_wall_count;
    }
    return 0;
}

/* ---- limits over all nodes ---- */

#define HELD(...) FIELD_ROW(held_count, __VA_ARGS__)
static const struct field held_fields[] = {HELD(type, type, TEXT, 0), HELD(held, held, INT, 0)};
static const struct field_table held_table = FIELD_TABLE(held_count, "held", "h", held_fields);

/* Changes of the open transaction count too. */
int rows_limits_count(struct store *store, struct str queue, struct arena *arena,
                      struct held_count **counts, uint32_t *count, struct err *err)
{
    struct rows *rows = rows_of(store);

    TRY(rows->driver->flush(rows, ROWS_COUNTS, err));
    return rows_take(rows,
                     ROWS_QUERY(ROWS_held_of_queue, value_text(queue_name_namespace(queue)),
                                value_text(queue_name_plain(queue))),
                     &held_table, arena, ROWS_INTO(counts), count, err);
}

int rows_limits_lock(struct store *store, struct str queue, struct arena *arena,
                     struct held_count **counts, uint32_t *count, struct err *err)
{
    TRY(rows_run(rows_of(store),
                 ROWS_QUERY(ROWS_queue_lock, value_text(queue_name_namespace(queue)),
                            value_text(queue_name_plain(queue))),
                 NULL, err));
    return rows_limits_count(store, queue, arena, counts, count, err);
}

struct stored_bucket {
    int64_t tokens;
    int64_t rest;
    int64_t updated_us;
    struct str marks;
};

#define BUCKET(...) FIELD_ROW(stored_bucket, __VA_ARGS__)
static const struct field bucket_fields[] = {
    BUCKET(tokens, tokens, INT, 0), BUCKET(rest, rest, INT, 0),
    BUCKET(updated_at, updated_us, TIME, FIELD_ALWAYS), BUCKET(starts, marks, TEXT, 0)};
static const struct field_table bucket_table = FIELD_TABLE(stored_bucket, "bucket", "b",
                                                           bucket_fields);

int rows_bucket_load(struct store *store, struct str namespace_name, struct str name,
                     struct bucket *bucket, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct stored_bucket *stored;

    *bucket = (struct bucket){0};
    TRY(rows_one(rows_of(store),
                 ROWS_QUERY(ROWS_bucket_one, value_text(namespace_name), value_text(name)),
                 &bucket_table, &arena, ROWS_INTO(&stored), err));
    if (!stored)
        return 0;
    *bucket = (struct bucket){.tokens = stored->tokens, .rest = stored->rest,
                              .updated_us = stored->updated_us};
    bucket_marks_read(bucket, stored->marks);
    return 0;
}

int rows_bucket_save(struct store *store, struct str namespace_name, struct str name,
                     const struct bucket *bucket, struct err *err)
{
    char marks[RATE_MARKS_BYTES];

    if (bucket->updated_us == 0)
        return 0; /* nothing was taken */
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_bucket_put, value_text(namespace_name), value_text(name),
                               value_int(bucket->tokens), value_int(bucket->rest),
                               value_time(bucket->updated_us),
                               value_text(bucket_marks_write(bucket, marks))),
                    NULL, err);
}

struct queue_place {
    struct str namespace_name;
    struct str name;
};

#define PLACE(...) FIELD_ROW(queue_place, __VA_ARGS__)
static const struct field place_fields[] = {PLACE(namespace, namespace_name, TEXT, 0),
                                            PLACE(name, name, TEXT, 0)};
static const struct field_table place_table = FIELD_TABLE(queue_place, "place", "p", place_fields);

/* Until the transaction ends. */
int rows_limits_hold(struct store *store, const struct str *queues, uint32_t count,
                     struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct queue_place *places = TRY_MEMORY(arena_alloc_array(&arena, count, sizeof *places));

    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct queue_place){queue_name_namespace(queues[i]),
                                         queue_name_plain(queues[i])};
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_queues_lock), &place_table, places, count,
                         NULL, err);
}

int rows_key_held(struct store *store, struct str queue, struct str limit_key, int64_t *held,
                  struct err *err)
{
    char name[PARKED_BYTES_MAX];

    *held = 0;
    return rows_numbers(rows_of(store),
                        ROWS_QUERY(ROWS_key_held, value_text(parked_name(queue, limit_key, name))),
                        held, 1, err);
}
