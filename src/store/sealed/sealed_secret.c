/* A secret that the store needs for itself. It is not stored: who has the store and not its keys
 * cannot know it. The data key belongs to no namespace, so no destruction of keys concerns it, and
 * a rotation wraps it again like all others. Writer's thread. */
#include "store/sealed/sealed_int.h"

#include "base/hash.h"

#include <sodium.h>

#define OF_THE_STORE "*" /* which no namespace can be called */

static int name_key(struct sealed *sealed, const char *fact, struct err *err)
{
    struct data_key key;
    char text[UUID_TEXT_BYTES];

    TRY(sealed_key(sealed, STR(OF_THE_STORE), STR(DATA_KEY_HASH_DAY), STR(""), &key, err));
    sodium_memzero(key.bytes, sizeof key.bytes);
    uuid_format(&key.id, text);
    return sealed->verbs.info_put(sealed->store, fact, str_of(text), err);
}

static int derive(const struct data_key *key, const char *fact, struct arena *arena,
                  struct str *secret, struct err *err)
{
    char *hex = TRY_MEMORY(arena_alloc(arena, HASH_HEX_BYTES + 1));
    uint8_t hash[HASH_BYTES];

    if (hash_hmac_sha256(str_span((const char *)key->bytes, sizeof key->bytes), str_of(fact),
                         hash) < 0)
        return err_no_memory(err);
    hash_hex(hash, sizeof hash, hex);
    sodium_memzero(hash, sizeof hash);
    *secret = str_span(hex, HASH_HEX_BYTES);
    return 0;
}

int sealed_secret(struct store *store, const char *fact, struct arena *arena, struct str *secret,
                  bool *locked, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct data_key key;
    enum opened opened;
    struct uuid id;
    struct str text;
    int rc = 0;

    *secret = STR_NONE;
    *locked = false;
    TRY(store->verbs->info_get(store, fact, arena, &text, err));
    if (!text.data && !keyring_ready(sealed->keyring))
        return 0;
    if (!text.data) {
        TRY(name_key(sealed, fact, err));
        TRY(store->verbs->info_get(store, fact, arena, &text, err)); /* another node's counts */
    }
    *locked = true;
    if (!text.data || !uuid_parse(text, &id))
        return 0;
    TRY(keyring_get(sealed->keyring, rows_of(store), &id, arena, &key, &opened, err));
    *locked = opened != OPENED_WELL;
    if (opened == OPENED_WELL)
        rc = derive(&key, fact, arena, secret, err);
    sodium_memzero(key.bytes, sizeof key.bytes);
    return rc;
}
