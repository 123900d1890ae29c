/* Keys of what is stored encrypted. A rotation wraps data keys again, so many per request: who asks
 * repeats until none is left, and a kill in between leaves keys that the old or the new
 * key-encryption key wraps, each of them whole. A destruction is one transaction. */
#include "engine/history/keys.h"

#include "base/fault.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/sealed/sealed.h"

#define ROTATE_PAGE 500 /* wrapped again by one request: a few milliseconds */

static int no_layer(struct err *err)
{
    return err_set(err, ERR_CONFLICT, "nothing is encrypted here: the server has no "
                                      "encryption.keys, and the store holds no data keys");
}

static int rotate(struct batch *batch, struct keys_request *request, struct keyring *keyring,
                  struct err *err)
{
    struct arena *arena = &batch->arena;
    struct str current = keyring_current(keyring);
    struct data_key_row *keys;
    struct uuid after = {{0}};
    uint32_t count;

    if (!current.data)
        return err_set(err, ERR_LOCKED, "encryption.current names no key that is here; there is "
                                        "nothing to wrap data keys with");
    TRY(keys_page(batch->store, current, &after, ROTATE_PAGE, arena, &keys, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        struct str from = keys[i].kek_id;
        bool changed;

        TRY(keyring_rewrap(keyring, &keys[i], arena, err));
        TRY(keys_rewrap(batch->store, &keys[i], from, &changed, err));
        FAULT_POINT("keys.rewrapped");
        request->rotated += changed;
    }
    batch->wrote |= count > 0;
    return 0;
}

static int destroy(struct batch *batch, struct keys_request *request, struct err *err)
{
    TRY(batch_flush(batch, err));
    TRY(sealed_destroy(batch->store, request->namespace_name, request->user_id, batch->now_us,
                       &request->destroyed, err));
    FAULT_POINT("keys.destroyed");
    batch->wrote = true;
    TRY(trail_note_in(batch, &request->base,
                      request->namespace_name.data ? request->namespace_name : STR("*"),
                      "key.destroy", request->user_id.data ? "user" : "namespace",
                      request->user_id.data ? request->user_id : request->namespace_name,
                      batch_text(batch, "{\"data_keys\":%lld}", (long long)request->destroyed),
                      err));
    LOG(batch->engine->log, LOG_WARN, "encryption.keys_destroyed",
        KS("namespace", request->namespace_name), KS("user", request->user_id),
        KI("keys", request->destroyed));
    return 0;
}

/* How many another key than the current one wraps. */
static int64_t count_left(const struct keys_request *request, struct keyring *keyring)
{
    struct str current = keyring_current(keyring);
    int64_t left = 0;

    for (uint32_t i = 0; i < request->sums_count; i++)
        if (!str_eq(request->sums[i].kek_id, current))
            left += request->sums[i].keys - request->sums[i].destroyed;
    return left;
}

int keys_apply(struct batch *batch, struct request *base)
{
    struct keys_request *request = (struct keys_request *)base;
    struct keyring *keyring = sealed_keyring(batch->store);
    struct err *err = &base->err;
    struct data_key_sum *sums;

    request->rotated = request->left = request->destroyed = 0;
    request->sums_count = 0;
    request->keyring = keyring;
    if (!keyring)
        return request->op == KEYS_LIST ? 0 : no_layer(err);
    if (request->op == KEYS_ROTATE)
        TRY(rotate(batch, request, keyring, err));
    if (request->op == KEYS_DESTROY)
        TRY(destroy(batch, request, err));
    TRY(keys_sums(batch->store->rows, base->arena, &sums, &request->sums_count, err));
    request->sums = sums;
    request->left = count_left(request, keyring);
    return 0;
}
