/* Keys of new tasks and executions: blocks of a sequence, kept in one ring for all writers of a
 * node, so that keys follow the order in which the node makes things. Lists are sorted by key,
 * newest first. Nodes do not coordinate: a node keeps using a block while the sequence shows that
 * no other node took a later one, which it checks every PG_KEY_AGE_US. So keys of two nodes are in
 * the order of time to within that long. Any writer's thread; the sequence is asked under the
 * lock.
 *
 * New messages of the outbox get their keys here too; rows_outbox.c does the rest. */
#include "store/postgres/pg_history.h"
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_tasks.h"

#include "base/clock.h"
#include "store/rows/rows_registry.h"

#include <pthread.h>
#include <stdlib.h>

#define OUTBOX_BLOCK 100 /* keys taken from the sequence at a time; as in the migration */
#define BLOCKS_MAX 1600 /* asked for at once by large requests: more than an array has */

struct keys {
    int64_t block;    /* keys of one block, as in the migrations */
    uint32_t least;   /* blocks asked for at once */
    int64_t next;
    int64_t end;
    int64_t until_us; /* by CLOCK_BOOTTIME: when to check the sequence */
    int64_t asked_us; /* when the blocks came */
    int64_t blocks[BLOCKS_MAX]; /* their first keys */
    uint32_t count;   /* of them ... */
    uint32_t used;    /* ... were begun */
};

struct pg_keyring {
    pthread_mutex_t mutex;
    struct keys tasks, executions;
};

/* Blocks of task keys are small, because a task that is enqueued with SQL uses up a whole one. */
static const struct keys no_task_keys = {.block = 10, .least = 10};
static const struct keys no_execution_keys = {.block = 100, .least = 1};

struct pg_keyring *pg_keyring_new(void)
{
    struct pg_keyring *ring = calloc(1, sizeof *ring);

    if (!ring)
        return NULL;
    pthread_mutex_init(&ring->mutex, NULL);
    ring->tasks = no_task_keys;
    ring->executions = no_execution_keys;
    return ring;
}

void pg_keyring_free(struct pg_keyring *ring)
{
    if (ring)
        pthread_mutex_destroy(&ring->mutex);
    free(ring);
}

static struct pg_keyring *ring_of(struct pg_store *store)
{
    return store->first ? store->first->keyring : store->keyring;
}

void pg_keys_forget(struct pg_store *store)
{
    struct pg_keyring *ring = ring_of(store);

    pthread_mutex_lock(&ring->mutex);
    ring->tasks = no_task_keys;
    ring->executions = no_execution_keys;
    pthread_mutex_unlock(&ring->mutex);
}

static uint32_t blocks_wanted(const struct keys *keys, int64_t now_us)
{
    bool soon = keys->count > 0 && now_us < keys->asked_us + CLOCK_SECOND_US;
    uint32_t most = BLOCKS_MAX / 10 * keys->least;

    if (!soon)
        return keys->least;
    return 2 * keys->count < most ? 2 * keys->count : most;
}

/* Gets more blocks, twice as many if the last ones lasted under a second. Unused keys are lost with
 * the process. A rollback does not undo it, because sequences do not roll back. With `unless_last`
 * the sequence gives no block if it gave none since: then the keys left are still the newest. False
 * when the database does not answer: the insert then fails. */
static bool ask_for_blocks(struct pg_store *store, struct keys *keys, enum pg_sql_name name,
                           bool unless_last)
{
    int64_t now_us = clock_boot_us();
    uint32_t wanted = blocks_wanted(keys, now_us);
    struct err err = {0};
    PGresult *result;

    param_int(&store->conn.params, wanted);
    param_int(&store->conn.params, unless_last ? keys->blocks[keys->count - 1] : 0);
    if (pg_ask(store, name, &result, &err) < 0) {
        LOG(store->log, LOG_WARN, "store.no_keys", KC("reason", err.text));
        return false;
    }
    keys->until_us = now_us + PG_KEY_AGE_US;
    if (PQntuples(result) > 0) {
        keys->count = (uint32_t)PQntuples(result) < wanted ? (uint32_t)PQntuples(result) : wanted;
        keys->used = 0;
        keys->asked_us = now_us;
        keys->next = keys->end = 0;
    }
    for (uint32_t i = 0; i < keys->count && PQntuples(result) > 0; i++)
        keys->blocks[i] = get_int(result, (int)i, 0, 0);
    PQclear(result);
    return keys->count > 0;
}

static int64_t key_next(struct pg_store *store, struct keys *keys, enum pg_sql_name name,
                        int64_t above)
{
    int64_t first = keys->next < keys->end         ? keys->next
                    : keys->used < keys->count ? keys->blocks[keys->used] : 0;
    bool must = first <= above; /* no key left, or only keys too low */

    if ((must || clock_boot_us() > keys->until_us) && !ask_for_blocks(store, keys, name, !must))
        return 0;
    if (keys->next == keys->end) {
        keys->next = keys->blocks[keys->used++];
        keys->end = keys->next + keys->block;
    }
    return keys->next++;
}

int64_t pg_task_key_next(struct store *base)
{
    struct pg_store *store = pg_of(base);
    struct pg_keyring *ring = ring_of(store);
    int64_t key;

    pthread_mutex_lock(&ring->mutex);
    key = key_next(store, &ring->tasks, PGSQL_task_keys, 0);
    pthread_mutex_unlock(&ring->mutex);
    return key;
}

int64_t pg_execution_key_next(struct store *base, int64_t above)
{
    struct pg_store *store = pg_of(base);
    struct pg_keyring *ring = ring_of(store);
    int64_t key;

    pthread_mutex_lock(&ring->mutex);
    key = key_next(store, &ring->executions, PGSQL_execution_keys, above);
    pthread_mutex_unlock(&ring->mutex);
    return key;
}

/* ---- messages of the outbox ---- */

/* Unused keys of a block are lost with the process. */
static int outbox_key(struct pg_store *store, int64_t *key, struct err *err)
{
    PGresult *result;

    if (store->outbox_next == store->outbox_end) {
        TRY(pg_query(store, PGSQL_outbox_keys, &result, err));
        store->outbox_next = get_int(result, 0, 0, 0);
        store->outbox_end = store->outbox_next + OUTBOX_BLOCK;
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
            TRY(outbox_key(store, &keyed[i].key, err));
    return rows_outbox_insert(base, keyed, count, err);
}
