/* Idempotency keys, input hashes and outside ids: reserved with INSERT … ON CONFLICT, so that of
 * two nodes that want the same key at once, one waits for the other's commit and then finds it
 * taken. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_tasks.h"
#include "store/rows/rows_waiting.h"

/* Arrays of namespace, kind, type and value. */
static void put_uniques(struct pg_params *params, const struct unique *uniques, uint32_t count)
{
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, uniques[i].namespace_name);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, str_of(unique_kind_word((int)uniques[i].kind)));
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, uniques[i].type);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, uniques[i].value);
    array_end(params);
}

static void put_tasks(struct pg_params *params, const struct unique *uniques, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, uniques[i].task_key);
    array_end(params);
}

/* Marks free keys with a nil owner and a flag in `reserved`; returns how many. */
static uint32_t note_reserved(const PGresult *result, struct unique *uniques, uint32_t count,
                              bool *reserved)
{
    uint32_t at = 0;

    for (int row = 0; row < PQntuples(result); row++) { /* in the order of the request */
        while (at < count && (uniques[at].task_key != get_int(result, row, 0, 0) ||
                              !str_is(view_text(result, row, 1),
                                      unique_kind_word((int)uniques[at].kind)) ||
                              !str_eq(view_text(result, row, 2), uniques[at].value)))
            at++;
        ASSERT(at < count);
        reserved[at++] = true;
    }
    return (uint32_t)PQntuples(result);
}

int pg_uniques_reserve(struct store *base, struct unique *uniques, uint32_t count,
                       struct err *err)
{
    struct pg_store *store = pg_of(base);
    bool *reserved = arena_alloc_array(&store->arena, count, sizeof *reserved);
    uint32_t taken;
    PGresult *result;

    if (!reserved)
        return err_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        memset(&uniques[i].owner, 0, sizeof uniques[i].owner);
    put_uniques(&store->conn.params, uniques, count);
    put_tasks(&store->conn.params, uniques, count);
    TRY(pg_query(store, PGSQL_uniques_insert, &result, err));
    taken = count - note_reserved(result, uniques, count, reserved);
    PQclear(result);
    if (taken == 0)
        return 0;
    put_uniques(&store->conn.params, uniques, count);
    TRY(pg_query(store, PGSQL_uniques_owner, &result, err));
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t at = get_int(result, row, 0, 1) - 1;

        if (reserved[at])
            continue;
        uniques[at].task_key = get_int(result, row, 1, 0);
        uniques[at].owner = get_uuid(result, row, 2);
    }
    PQclear(result);
    return 0;
}
