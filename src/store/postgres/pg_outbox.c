/* Gives new messages of the outbox keys that no other node uses; rows_outbox.c does the rest.
 * Writer's thread only. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_history.h"
#include "store/rows/rows_registry.h"

#define KEY_BLOCK 100 /* keys taken from the sequence at a time; as in the migration */

/* Unused keys of a block are lost with the process. */
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

int pg_outbox_insert(struct store *base, const struct outbox_message *messages, uint32_t count,
                     struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct outbox_message *keyed;

    if (count == 0)
        return 0;
    keyed = TRY_MEMORY(arena_copy(&store->arena, messages, count * sizeof *messages));
    for (uint32_t i = 0; i < count; i++)
        if (keyed[i].key == 0)
            TRY(take_key(store, &keyed[i].key, err));
    return rows_outbox_insert(base, keyed, count, err);
}
