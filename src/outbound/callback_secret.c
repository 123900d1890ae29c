#include "outbound/callback_secret.h"

#include "base/hash.h"

static int load_or_make(struct store *store, const char *name, struct arena *arena,
                        struct str *secret, struct err *err)
{
    uint8_t random[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    int rc = store->verbs->info_get(store, name, arena, secret, err);

    if (rc < 0 || secret->data)
        return rc;
    hash_random(random, sizeof random);
    hash_hex(random, sizeof random, hex);
    TRY(store->verbs->info_put(store, name, str_of(hex), err));
    TRY(store->verbs->info_get(store, name, arena, secret, err));
    return secret->data ? 0 : err_no_memory(err);
}

int store_secret_load(struct store *store, const char *name, struct arena *arena,
                      struct str *secret, struct err *err)
{
    int rc;

    TRY(store->verbs->begin(store, err));
    rc = load_or_make(store, name, arena, secret, err);
    if (rc == 0)
        rc = store->verbs->commit(store, err);
    if (rc < 0)
        store->verbs->rollback(store);
    return rc;
}

int callback_secret_load(struct store *store, const struct settings *settings,
                         struct arena *arena, struct str *secret, struct err *err)
{
    *secret = settings->callbacks.secret;
    return secret->data ? 0
                        : store_secret_load(store, "callback_secret", arena, secret, err);
}
