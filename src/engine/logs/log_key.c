/* The key that records about logs are signed with: the configured file, or the one beside the
 * store, which is made when it is first needed. Whether the records that are there are by it is
 * looked at here, too. Runs on the thread that has the turn. */
#include "core/log/logmac.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"

#include <stdio.h>
#include <sys/stat.h>

#define LOOK_ROWS 50

static bool key_path(const struct engine *engine, char out[LOG_PATH_BYTES])
{
    int len = 0;

    if (engine->settings->logs.key.data)
        len = snprintf(out, LOG_PATH_BYTES, STR_FMT, STR_ARG(engine->settings->logs.key));
    else if (engine->store->path)
        len = snprintf(out, LOG_PATH_BYTES, "%s.log-key", engine->store->path);
    return len > 0 && len < LOG_PATH_BYTES;
}

/* Once: it is tried again with every record. */
static void tell_unsigned(struct engine *engine, const char *reason)
{
    if (!engine->heads.key_missed)
        LOG(engine->log, LOG_WARN, "log.unsigned", KC("reason", reason));
    engine->heads.key_missed = true;
}

/* A new one is made only where there was none, or where the store is ours alone: of several nodes
 * one would sign what the others cannot vouch for. False: it is missed. */
static bool load_key(struct engine *engine, struct str stored, bool make)
{
    struct log_heads *heads = &engine->heads;
    bool configured =
        engine->settings->logs.key.data != NULL; /* perhaps a mounted secret: a link */
    char path[LOG_PATH_BYTES];
    struct err err = {0};
    struct stat info;

    if (!key_path(engine, path)) {
        if (stored.data)
            tell_unsigned(engine, "other nodes have a key and this one has none: set log_key");
        return false;
    }
    if (stat(path, &info) == 0 && info.st_mode & (S_IRWXG | S_IRWXO))
        LOG(engine->log, LOG_WARN, "log.key_exposed", KC("key", path),
            KC("meaning", "others could read it, which was taken from them now"));
    if (sign_key_load(path, configured, &heads->key, &err) == 0 && !heads->key) {
        if (stored.data && engine->store->shared)
            err_set(&err, ERR_NOT_FOUND, "the key '%s' is not there, and other nodes have one: "
                    "copy it from them", path);
        else if (!make)
            return true;
        else if (sign_key_make(path, &heads->key, &err) == -(int)ERR_CONFLICT)
            sign_key_load(path, configured, &heads->key, &err);
    }
    if (!heads->key)
        tell_unsigned(engine, err.text);
    return heads->key != NULL;
}

/* Is the newest record by our key? Its text is looked at, not the hash beside it. */
static bool newest_is_ours(const struct engine *engine, const struct pen *pen)
{
    uint8_t key[SIGN_PUBLIC_BYTES];
    char hex[HASH_HEX_BYTES + 1];

    sign_key_public(engine->heads.key, key);
    if (pen->last.serial == 0 || !pen->before.is_signed ||
        memcmp(pen->before.key, key, sizeof key) != 0 || pen->before.serial != pen->last.serial)
        return false;
    hash_hex(pen->before.hash, sizeof pen->before.hash, hex);
    return strcmp(hex, engine->heads.newest) == 0 ||
           anchor_signature_good(&pen->before, pen->last.record, str_of(pen->last.signature));
}

/* The newest record of a store that has our key is by it, whichever node wrote it. Otherwise an
 * attacker removed records, or made one: what we write next must not make that good. */
void log_tell_foreign(struct engine *engine, int64_t serial)
{
    engine->figures.stats.log_regression = true;
    LOG(engine->log, LOG_WARN, "log.foreign_records", KI("newest", serial),
        KC("meaning", "the newest record about logs is gone or not signed by this key: the store "
                      "was changed from outside"));
}

/* The store names another key than ours. Where its newest record is by ours, an intruder put that
 * name there, and no other node means it. */
static int correct_name(struct batch *batch, const char *hex, bool *waits, struct err *err)
{
    struct pen pen = {.foreign = false};

    TRY(batch->store->verbs->logs->anchor_last(batch->store, &batch->arena, &pen.last, err));
    if (!anchor_parse(pen.last.record, &pen.before) || !newest_is_ours(batch->engine, &pen))
        return 0;
    *waits = false;
    batch->wrote = true;
    LOG(batch->engine->log, LOG_WARN, "log.key_renamed",
        KC("meaning",
           "the store named another "
           "key than the one its newest record is signed with: an intruder changed the store"));
    return batch->store->verbs->info_put(batch->store, "log_public_key", str_of(hex), err);
}

/* With our key, and not as one that waits for the right one. */
static bool has_signed(const struct log_heads *heads)
{
    return heads->ready && heads->mac;
}

/* Has our key signed this store? The anchor file may say so, or any record: one that was damaged,
 * and another name of the key, do not make the store one from before. */
static int was_ours(struct batch *batch, bool *ours, struct err *err)
{
    const struct log_heads *heads = &batch->engine->heads;
    uint8_t key[SIGN_PUBLIC_BYTES];
    struct anchor anchor;
    int64_t after = 0;
    uint32_t count;

    sign_key_public(heads->key, key);
    *ours = has_signed(heads) || memcmp(heads->file_key, key, sizeof key) == 0;
    do {
        struct arena page = ARENA_INIT(0);
        struct anchor_row *rows;
        int rc = batch->store->verbs->logs->anchors_read(batch->store, after, LOOK_ROWS, &page,
                                                         &rows, &count, err);

        for (uint32_t i = 0; rc == 0 && i < count && !*ours; i++) {
            *ours = log_record_trusted(heads, &rows[i], &anchor);
            after = rows[i].serial;
        }
        arena_deinit(&page);
        TRY(rc);
    } while (!*ours && count == LOOK_ROWS);
    return 0;
}

/* The store names another key than ours, and its newest record is not by ours. A node that has
 * signed with its key, or whose anchor file ends with that, knows better: it continues, and its
 * next record says what it found. One that was started meanwhile cannot tell this from a new key
 * of all other nodes: it waits, and raises the alert. */
static int judge_other(struct batch *batch, const uint8_t public_key[SIGN_PUBLIC_BYTES],
                       bool *waits, struct err *err)
{
    const struct log_heads *heads = &batch->engine->heads;
    bool ours;

    if (has_signed(heads) || memcmp(heads->file_key, public_key, SIGN_PUBLIC_BYTES) == 0) {
        *waits = false;
        return 0;
    }
    TRY(was_ours(batch, &ours, err));
    batch->engine->figures.stats.log_regression |= ours;
    tell_unsigned(batch->engine,
                  "the key is another one than that of the other nodes: copy theirs");
    return 0;
}

/* No node signs in the place of another: where the store has a key, that one is meant. *waits: it
 * has one, and we do not; what can wait for it does. One that is not there yet may be made. */
static int find_key(struct batch *batch, bool make, struct str *stored,
                    char hex[2 * SIGN_PUBLIC_BYTES + 1], bool *waits, struct err *err)
{
    struct engine *engine = batch->engine;
    uint8_t public_key[SIGN_PUBLIC_BYTES];

    TRY(batch->store->verbs->info_get(batch->store, "log_public_key", &batch->arena, stored, err));
    *waits = !engine->heads.key && (stored->data || make) && !load_key(engine, *stored, make) &&
             stored->data;
    if (!engine->heads.key)
        return 0;
    sign_key_public(engine->heads.key, public_key);
    hash_hex(public_key, sizeof public_key, hex);
    *waits = stored->data && batch->store->shared && !str_is(*stored, hex);
    if (*waits && correct_name(batch, hex, waits, err) < 0)
        return -(int)err->code;
    if (*waits)
        return judge_other(batch, public_key, waits, err);
    engine->heads.key_missed = false;
    return 0;
}

int log_key_look(struct batch *batch, bool *waits, struct err *err)
{
    char hex[2 * SIGN_PUBLIC_BYTES + 1];
    struct str stored;

    return find_key(batch, false, &stored, hex, waits, err);
}

static int take_mac(struct batch *batch, struct err *err)
{
    struct log_heads *heads = &batch->engine->heads;

    if (!heads->mac && !(heads->mac = logmac_new(heads->key)))
        return err_no_memory(err);
    batch->store->log_mac = heads->mac;
    return 0;
}

/* What the newest record says of the time before is believed where it is by our key. Where the
 * store had another key or none it is adopted; where it had ours, and the record is not by it,
 * nothing from before is. */
static int look_back(struct batch *batch, struct pen *pen, struct str stored, const char *hex,
                     struct err *err)
{
    bool ours = str_is(stored, hex);
    char hint[256];

    if (!ours && !newest_is_ours(batch->engine, pen))
        TRY(was_ours(batch, &ours, err));
    if (newest_is_ours(batch->engine, pen)) {
        pen->since_us = pen->before.since_us;
        pen->begin = pen->before.begin;
        pen->adopts = pen->begin == 0;
        pen->again = pen->adopts && pen->before.has_since;
    } else if (ours || batch->engine->heads.ready) {
        pen->foreign = true;
        log_tell_foreign(batch->engine, pen->last.serial);
        pen->begin = 1; /* nothing is of the time before */
    } else {
        pen->adopts = true;
        snprintf(hint, sizeof hint, "perdura verify --logs --public-key " STR_FMT ",%s",
                 STR_ARG(stored), hex);
        if (stored.data)
            LOG(batch->engine->log, LOG_WARN, "log.key_replaced", KS("before", stored),
                KC("now", hex), KC("verify_both_with", hint));
    }
    return 0;
}

/* The store's public key is that one then. */
int log_key_take(struct batch *batch, struct pen *pen, struct err *err)
{
    struct log_heads *heads = &batch->engine->heads;
    char hex[2 * SIGN_PUBLIC_BYTES + 1];
    struct str stored;
    bool waits;

    batch->store->log_mac = NULL;
    TRY(find_key(batch, true, &stored, hex, &waits, err));
    if (!heads->key || waits) {
        pen->since_us = pen->before.since_us;
        pen->begin = pen->before.begin;
        pen->adopts = pen->begin == 0 && !waits;
        return 0;
    }
    pen->key = heads->key;
    TRY(take_mac(batch, err));
    TRY(look_back(batch, pen, stored, hex, err));
    if (str_is(stored, hex))
        return 0;
    return batch->store->verbs->info_put(batch->store, "log_public_key", str_of(hex), err);
}

bool log_record_trusted(const struct log_heads *heads, const struct anchor_row *row,
                        struct anchor *anchor)
{
    uint8_t key[SIGN_PUBLIC_BYTES];

    if (!anchor_parse(row->record, anchor) || anchor->serial != row->serial)
        return false;
    if (!heads->key)
        return true;
    sign_key_public(heads->key, key);
    return anchor->is_signed && memcmp(anchor->key, key, sizeof key) == 0 &&
           anchor_signature_good(anchor, row->record, str_of(row->signature));
}
