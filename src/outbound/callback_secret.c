#include "outbound/callback_secret.h"

#include "base/hash.h"

static int load_or_make(struct store *store, struct arena *arena, struct str *secret,
                        struct err *err)
{
    uint8_t random[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    int rc = store->verbs->info_get(store, "callback_secret", arena, secret, err);

    if (rc < 0 || secret->data)
        return rc;
    hash_random(random, sizeof random);
    hash_hex(random, sizeof random, hex);
    *secret = arena_str(arena, str_of(hex));
    TRY_MEMORY(secret->data);
    return store->verbs->info_put(store, "callback_secret", *secret, err);
}

int callback_secret_load(struct store *store, const struct settings *settings,
                         struct arena *arena, struct str *secret, struct err *err)
{
    int rc;

    *secret = settings->callbacks.secret;
    if (secret->data)
        return 0;
    TRY(store->verbs->begin(store, err));
    rc = load_or_make(store, arena, secret, err);
    if (rc == 0)
        rc = store->verbs->commit(store, err);
    if (rc < 0)
        store->verbs->rollback(store);
    return rc;
}
