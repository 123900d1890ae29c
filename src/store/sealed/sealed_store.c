/* The layer itself: how it is put over a store, and what begins and ends with transactions. The
 * writer's thread; a reader only looks at what does not change. */
#include "store/sealed/sealed_int.h"

#include "base/fault.h"

#include <sodium.h>
#include <stdlib.h>

static void wipe(struct sealed *sealed)
{
    for (struct fresh_key *fresh = sealed->fresh; fresh; fresh = fresh->next)
        sodium_memzero(fresh->bytes, sizeof fresh->bytes);
    sealed->fresh = NULL;
    sodium_memzero(&sealed->last, sizeof sealed->last);
    seal_cipher_deinit(&sealed->cipher);
    sealed->last_place[0] = STR_NONE;
    sealed->forgets = false;
}

void sealed_forget(struct sealed *sealed)
{
    wipe(sealed);
    keyring_forget(sealed->keyring);
    sealed->forgets = true;
}

static int begin(struct store *store, struct err *err)
{
    struct sealed *sealed = sealed_of(store);

    wipe(sealed);
    map_deinit(&sealed->tasks);
    arena_reset(&sealed->tx);
    sealed->number++;
    return sealed->below->begin(store, err);
}

/* Keys that were made are known to all from here on; those that were destroyed to none. */
static int commit(struct store *store, struct err *err)
{
    struct sealed *sealed = sealed_of(store);

    TRY(sealed->below->commit(store, err));
    FAULT_POINT("seal.committed");
    if (sealed->forgets)
        keyring_forget(sealed->keyring);
    else
        for (struct fresh_key *fresh = sealed->fresh; fresh; fresh = fresh->next)
            keyring_learn(sealed->keyring, &fresh->row, fresh->bytes);
    wipe(sealed);
    return 0;
}

/* Whether keys were destroyed may be unknown now: they are read again. */
static enum store_outcome rollback(struct store *store)
{
    struct sealed *sealed = sealed_of(store);

    if (sealed->forgets)
        keyring_forget(sealed->keyring);
    wipe(sealed);
    return sealed->below->rollback(store);
}

static void free_sealed(struct sealed *sealed)
{
    wipe(sealed);
    map_deinit(&sealed->tasks);
    arena_deinit(&sealed->tx);
    if (sealed->owns_keyring)
        keyring_free(sealed->keyring);
    free(sealed);
}

void sealed_remove(struct store *store)
{
    struct sealed *sealed = sealed_of(store);

    if (!sealed)
        return;
    store->verbs = sealed->below;
    store->sealed = NULL;
    free_sealed(sealed);
}

static void close_store(struct store *store)
{
    struct sealed *sealed = sealed_of(store);

    sealed->below->close(store);
    free_sealed(sealed);
}

static struct store_reader *reader_open(struct store *store, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct store_reader *reader = sealed->below->reader_open(store, err);

    if (reader)
        rows_of_reader(reader)->sealed = sealed;
    return reader;
}

static int install(struct store *store, struct keyring *keyring, bool own, struct err *err);

static int writer_open(struct store *store, struct store **writer, struct err *err)
{
    struct sealed *sealed = sealed_of(store);

    TRY(sealed->below->writer_open(store, writer, err));
    if (install(*writer, sealed->keyring, false, err) == 0)
        return 0;
    (*writer)->verbs->close(*writer);
    *writer = NULL;
    return -(int)err->code;
}

static int install(struct store *store, struct keyring *keyring, bool own, struct err *err)
{
    struct sealed *sealed = TRY_MEMORY(calloc(1, sizeof *sealed));

    sealed->store = store;
    sealed->below = store->verbs;
    sealed->verbs = *store->verbs;
    sealed->recovery = *store->verbs->recovery;
    sealed->catalog = *store->verbs->catalog;
    sealed->verbs.recovery = &sealed->recovery;
    sealed->verbs.catalog = &sealed->catalog;
    sealed->keyring = keyring;
    sealed->owns_keyring = own;
    sealed->tx = ARENA_INIT(0);
    sealed_set_writes(sealed);
    sealed_set_loads(sealed);
    sealed_set_reads(sealed);
    sealed->verbs.begin = begin;
    sealed->verbs.commit = commit;
    sealed->verbs.rollback = rollback;
    sealed->verbs.close = close_store;
    sealed->verbs.reader_open = reader_open;
    if (sealed->verbs.writer_open)
        sealed->verbs.writer_open = writer_open;
    store->sealed = sealed;
    store->verbs = &sealed->verbs;
    return 0;
}

/* A store of one transaction: it may ask only within one. */
static int holds_keys(struct store *store, bool *any, struct err *err)
{
    TRY(store->verbs->begin(store, err));
    if (keys_any(rows_of(store), any, err) < 0 || store->verbs->commit(store, err) < 0) {
        store->verbs->rollback(store);
        return -(int)err->code;
    }
    return 0;
}

int sealed_install(struct store *store, struct keyring *keyring, struct err *err)
{
    bool own = !keyring, any = true;

    if (own) {
        TRY(holds_keys(store, &any, err));
        if (!any)
            return 0;
        keyring = keyring_new(NULL, err);
        if (!keyring)
            return -(int)err->code;
    }
    if (install(store, keyring, own, err) == 0)
        return 0;
    if (own)
        keyring_free(keyring);
    return -(int)err->code;
}

struct keyring *sealed_keyring(const struct store *store)
{
    return store->sealed ? store->sealed->keyring : NULL;
}

const struct store_verbs *sealed_below(const struct store *store)
{
    return store->sealed ? store->sealed->below : store->verbs;
}

int sealed_destroy(struct store *store, struct str namespace_name, struct str user_id,
                   int64_t now_us, int64_t *destroyed, struct err *err)
{
    struct sealed *sealed = sealed_of(store);

    ASSERT(namespace_name.data || user_id.data);
    *destroyed = 0;
    if (sealed)
        sealed_forget(sealed);
    return keys_destroy(store, namespace_name, user_id, now_us, destroyed, err);
}
