/* Keys of what is stored encrypted. A rotation wraps data keys again, so many per request, or gives
 * content new data keys (sealed_again.c): who asks repeats until none is left. A kill in between
 * leaves keys and texts that the old or the new key opens, each of them whole. A destruction is one
 * transaction, and its entry of the audit trail is part of it. */
#include "engine/history/keys.h"

#include "base/fault.h"
#include "base/json.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/sealed/sealed.h"

#define ROTATE_PAGE 500 /* wrapped again by one request: a few milliseconds */

#define SEEN_FACT "encryption_keys" /* ids of the keys of the node that started last */
#define KEKS_MAX 32

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
    if (request->rotated == 0)
        return 0;
    batch->wrote = true;
    return trail_note_in(batch, &request->base, STR("*"), "key.rotate", "key", current,
                      batch_text(batch, "{\"data_keys\":%lld}", (long long)request->rotated), err);
}

/* Begin and end are noted, not each step. What earlier requests of the batch changed is written
 * first, so that it is found. */
static int rotate_content(struct batch *batch, struct keys_request *request, struct err *err)
{
    struct seal_rotation before, *now = &request->content;

    TRY(batch_flush(batch, err));
    TRY(seal_rotation_read(batch->store, &batch->arena, &before, err));
    TRY(seal_rotation_step(batch->store, request->since_us, &batch->arena, now, err));
    FAULT_POINT("keys.content");
    if (before.done && now->since_us == before.since_us)
        return 0;
    batch->wrote = true;
    if (!now->done && now->since_us == before.since_us)
        return 0;
    LOG(batch->engine->log, LOG_INFO, now->done ? "encryption.content_rotated"
                                                : "encryption.content_rotates",
        KI("texts", now->texts), KI("closed", now->closed));
    return trail_note_in(batch, &request->base, STR("*"), "key.rotate", "content", STR(""),
                      batch_text(batch, "{\"texts\":%lld,\"done\":%s}", (long long)now->texts,
                                 now->done ? "true" : "false"),
                      err);
}

/* ---- keys of the configuration ---- */

static bool is_listed(const struct str *ids, uint32_t count, struct str id)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(ids[i], id))
            return true;
    return false;
}

static uint32_t read_seen(struct str fact, struct arena *arena, struct str ids[KEKS_MAX])
{
    struct json_iter iter;
    struct str item;
    uint32_t count = 0;

    if (!fact.data)
        return 0;
    json_begin(json_get(fact, STR("keys")), &iter);
    while (count < KEKS_MAX && json_next_element(&iter, &item))
        ids[count++] = json_string(item, arena);
    return count;
}

static struct str write_seen(struct batch *batch, const struct str *ids, uint32_t count,
                             struct str current)
{
    BUF_AUTO struct buf text = BUF_INIT(KEKS_MAX * 128);

    buf_text(&text, "{\"keys\":[");
    for (uint32_t i = 0; i < count; i++) {
        json_comma(&text);
        json_write_string(&text, ids[i]);
    }
    buf_text(&text, "]");
    if (current.data)
        json_write_member_string(&text, "current", current);
    buf_byte(&text, '}');
    return arena_str(&batch->arena, buf_view(&text));
}

static int note_seen(struct batch *batch, struct keyring *keyring, struct err *err)
{
    const struct store_verbs *verbs = batch->store->verbs;
    struct str ids[KEKS_MAX], current = keyring ? keyring_current(keyring) : STR_NONE;
    uint32_t count = keyring ? keyring_ids(keyring, ids, KEKS_MAX) : 0, before_count;
    struct str fact, now, was, before[KEKS_MAX];

    TRY(verbs->info_get(batch->store, SEEN_FACT, &batch->arena, &fact, err));
    now = write_seen(batch, ids, count, current);
    TRY_MEMORY(now.data);
    if (fact.data ? str_eq(fact, now) : count == 0)
        return 0;
    before_count = read_seen(fact, &batch->arena, before);
    was = fact.data ? json_string(json_get(fact, STR("current")), &batch->arena) : STR_NONE;
    for (uint32_t i = 0; i < count; i++)
        if (!is_listed(before, before_count, ids[i]))
            TRY(trail_note_configured(batch, "key.add", "key", ids[i], err));
    for (uint32_t i = 0; i < before_count; i++)
        if (!is_listed(ids, count, before[i]))
            TRY(trail_note_configured(batch, "key.remove", "key", before[i], err));
    if (current.data && !str_eq(was, current))
        TRY(trail_note_configured(batch, "key.current", "key", current, err));
    batch->wrote = true;
    return verbs->info_put(batch->store, SEEN_FACT, now, err);
}

/* ---- destruction ---- */

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
    if (request->op == KEYS_SEEN)
        return note_seen(batch, keyring, err);
    if (!keyring)
        return request->op == KEYS_LIST ? 0 : no_layer(err);
    if (request->op == KEYS_ROTATE)
        TRY(rotate(batch, request, keyring, err));
    if (request->op == KEYS_ROTATE && request->data)
        TRY(rotate_content(batch, request, err));
    else
        TRY(seal_rotation_read(batch->store, &batch->arena, &request->content, err));
    if (request->op == KEYS_DESTROY)
        TRY(destroy(batch, request, err));
    TRY(keys_sums(batch->store->rows, base->arena, &sums, &request->sums_count, err));
    request->sums = sums;
    request->left = count_left(request, keyring);
    return 0;
}
