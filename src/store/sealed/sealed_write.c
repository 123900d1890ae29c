/* Encrypting: which task a text belongs to, with which data key, and what is stored then. Writer's
 * thread. */
#include "store/sealed/sealed_int.h"

#include "base/fault.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/seal/seal_members.h"

#include <sodium.h>
#include <stdio.h>

/* ---- rows ---- */

struct str seal_row_id(const struct uuid *id, char out[SEAL_ROW_BYTES])
{
    uuid_format(id, out);
    return str_span(out, UUID_TEXT_BYTES - 1);
}

struct str seal_row_number(int64_t number, char out[SEAL_ROW_BYTES])
{
    return str_of_int64(number, out);
}

struct str seal_row_event(int64_t task_key, int64_t seq, char out[SEAL_ROW_BYTES])
{
    snprintf(out, SEAL_ROW_BYTES, "%lld:%lld", (long long)task_key, (long long)seq);
    return str_of(out);
}

/* ---- tasks ---- */

static struct str key_bytes(const int64_t *key)
{
    return str_span((const char *)key, sizeof *key);
}

static int keep_ctx(struct sealed *sealed, int64_t task_key, const struct task_seal *seal,
                    struct str namespace_name, struct str user_id, struct sealed_ctx **out,
                    struct err *err)
{
    struct sealed_ctx *ctx = TRY_MEMORY(arena_alloc(&sealed->tx, sizeof *ctx));

    *ctx = (struct sealed_ctx){.task_key = task_key,
                               .sealed = seal->encrypt || seal->fields.data,
                               .seal = *seal};
    if (ctx->sealed)
        ctx->seal.fields = arena_str(&sealed->tx, seal->fields);
    ctx->namespace_name = arena_str(&sealed->tx, namespace_name);
    ctx->user_id = arena_str(&sealed->tx, user_id.data ? user_id : STR(""));
    if (sealed->tx.failed || map_put(&sealed->tasks, key_bytes(&ctx->task_key), ctx) < 0)
        return err_no_memory(err);
    *out = ctx;
    return 0;
}

int sealed_note(struct sealed *sealed, const struct task *task, struct sealed_ctx **ctx,
                struct err *err)
{
    *ctx = map_get(&sealed->tasks, key_bytes(&task->key));
    if (*ctx)
        return 0;
    if (!task->has_spec)
        return sealed_ctx_of(sealed, task->key, ctx, err);
    return keep_ctx(sealed, task->key, &task->spec.seal, task->spec.namespace_name,
                    task->spec.user_id, ctx, err);
}

int sealed_ctx_of(struct sealed *sealed, int64_t task_key, struct sealed_ctx **ctx,
                  struct err *err)
{
    struct sealed_task *stored;
    struct task_seal seal = {0};

    *ctx = map_get(&sealed->tasks, key_bytes(&task_key));
    if (*ctx)
        return 0;
    TRY(keys_task(rows_of(sealed->store), task_key, &sealed->tx, &stored, err));
    if (stored)
        seal = (struct task_seal){stored->encrypt, stored->encrypt_fields};
    return keep_ctx(sealed, task_key, &seal,
                    stored ? stored->namespace_name : STR(TASK_DEFAULT_NAMESPACE),
                    stored ? stored->user_id : STR_NONE, ctx, err);
}

/* ---- keys ---- */

static bool same_place(const struct str place[3], struct str namespace_name, struct str day,
                       struct str user_id)
{
    return place[0].data && str_eq(place[0], namespace_name) && str_eq(place[1], day) &&
           str_eq(place[2], user_id);
}

static const struct fresh_key *find_fresh(const struct sealed *sealed, struct str namespace_name,
                                          struct str day, struct str user_id)
{
    const struct fresh_key *fresh = sealed->fresh;

    while (fresh && !(str_eq(fresh->row.namespace_name, namespace_name) &&
                      str_eq(fresh->row.day, day) && str_eq(fresh->row.user_id, user_id)))
        fresh = fresh->next;
    return fresh;
}

/* Stored in this transaction, and used by no other before that is committed: what is encrypted with
 * it is stored only if it is. */
static int make_key(struct sealed *sealed, struct str namespace_name, struct str day,
                    struct str user_id, struct data_key *key, struct err *err)
{
    struct fresh_key *fresh = TRY_MEMORY(arena_alloc(&sealed->tx, sizeof *fresh));

    TRY(keyring_make(sealed->keyring, namespace_name, day, user_id, clock_wall_us(), &sealed->tx,
                     &fresh->row, key, err));
    TRY(keys_put(sealed->store, &fresh->row, err));
    FAULT_POINT("seal.key");
    memcpy(fresh->bytes, key->bytes, sizeof fresh->bytes);
    fresh->next = sealed->fresh;
    sealed->fresh = fresh;
    return 0;
}

int sealed_key(struct sealed *sealed, struct str namespace_name, struct str day,
               struct str user_id, struct data_key *key, struct err *err)
{
    const struct fresh_key *fresh = find_fresh(sealed, namespace_name, day, user_id);
    enum opened opened;

    if (fresh) {
        *key = (struct data_key){fresh->row.id, fresh->row.namespace_name, {0}};
        memcpy(key->bytes, fresh->bytes, sizeof key->bytes);
        return 0;
    }
    TRY(keyring_find(sealed->keyring, rows_of(sealed->store), namespace_name, day, user_id,
                     &sealed->tx, key, &opened, err));
    if (opened == OPENED_WELL)
        return 0;
    if (opened == OPENED_DAMAGED)
        return err_set(err, ERR_LOCKED, "the data key of today was changed in the store; run "
                                        "'perdura verify'");
    return make_key(sealed, namespace_name, day, user_id, key, err);
}

/* The key of a namespace and day; *key stays the layer's. */
static int use_key(struct sealed *sealed, struct str namespace_name, struct str day,
                   struct str user_id, const struct data_key **key, struct err *err)
{
    *key = &sealed->last;
    if (same_place(sealed->last_place, namespace_name, day, user_id))
        return 0;
    sealed->last_place[0] = STR_NONE;
    TRY(sealed_key(sealed, namespace_name, day, user_id, &sealed->last, err));
    sealed->last_place[1] = arena_str(&sealed->tx, day);
    sealed->last_place[2] = arena_str(&sealed->tx, user_id);
    sealed->last_place[0] = arena_str(&sealed->tx, namespace_name);
    return sealed->tx.failed ? err_no_memory(err) : 0;
}

/* A user's own key where there is one for each user, otherwise the one of the day. */
static int key_of(struct sealed *sealed, const struct sealed_ctx *ctx, const struct data_key **key,
                  struct err *err)
{
    int64_t now_us = clock_wall_us(), day = now_us / (86400 * CLOCK_SECOND_US) + 1;

    if (ctx->user_id.len && keyring_per_user(sealed->keyring))
        return use_key(sealed, ctx->namespace_name, STR(""), ctx->user_id, key, err);
    if (day != sealed->day)
        clock_format(now_us, sealed->day_text);
    sealed->day = day;
    return use_key(sealed, ctx->namespace_name, str_span(sealed->day_text, 10), STR(""), key, err);
}

/* ---- texts ---- */

/* Sixteen random bytes and a counter: no two are the same. The cipher makes a key of the sixteen,
 * so texts that are written together share it. */
static const uint8_t *next_nonce(struct sealed *sealed)
{
    if (sealed->nonces_left == 0) {
        hash_random(sealed->nonce, sizeof sealed->nonce);
        sealed->nonces_left = SEALED_NONCES;
    }
    sealed->nonces_left--;
    sodium_increment(sealed->nonce + SEAL_NONCE_PREFIX, SEAL_NONCE_BYTES - SEAL_NONCE_PREFIX);
    return sealed->nonce;
}

static int seal_whole(struct sealed *sealed, const struct sealed_ctx *ctx,
                      const struct seal_at *at, struct str pointer, struct str *text,
                      struct err *err)
{
    struct seal_place place = {.table = at->table,
                               .row = at->row,
                               .column = at->column,
                               .pointer = pointer};
    const struct data_key *key;

    TRY(key_of(sealed, ctx, &key, err));
    place.namespace_name = ctx->namespace_name;
    if (envelope_seal(&sealed->cipher, key->bytes, &key->id, next_nonce(sealed), &place, *text,
                      at->json, &sealed->tx, text) < 0)
        return err_no_memory(err);
    return 0;
}

int sealed_text(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err)
{
    if (!text->data || !(ctx->sealed || envelope_like(*text)))
        return 0;
    return seal_whole(sealed, ctx, at, STR_NONE, text, err);
}

bool seal_next_key(struct str *text, struct uuid *id)
{
    const size_t mark_len = sizeof ENVELOPE_MARK - 1, id_len = UUID_TEXT_BYTES - 1;
    const char *at;

    while ((at = memmem(text->data, text->len, ENVELOPE_MARK, mark_len))) {
        at += mark_len;
        *text = str_span(at, text->len - (size_t)(at - text->data));
        if (text->len >= id_len && uuid_parse(str_span(at, id_len), id))
            return true;
    }
    return false;
}

int sealed_is_current(struct sealed *sealed, const struct sealed_ctx *ctx, struct str stored,
                      bool *current, struct err *err)
{
    const struct data_key *key;
    struct uuid id;

    *current = true;
    if (!keyring_ready(sealed->keyring) || !seal_next_key(&stored, &id))
        return 0;
    TRY(key_of(sealed, ctx, &key, err));
    *current = uuid_eq(&key->id, &id);
    return 0;
}

/* Reasons and counts are no secrets. */
static bool quotes_content(struct str json)
{
    static const char *const members[] = {"\"message\":", "\"details\":", "\"error\":",
                                          "\"last_error\":", "\"result\":", "\"payload\":",
                                          "\"data\":"};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (memmem(json.data, json.len, members[i], strlen(members[i])))
            return true;
    return envelope_like(json);
}

/* What the engine itself says went wrong. */
static bool is_own_word(struct str text)
{
    static const char *const words[] = {"cancelled", "partial", "continuation_limit", "poison",
                                        "no_handler", "dependency_unsatisfied"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_is(text, words[i]))
            return true;
    return false;
}

/* Leases end and tasks are cancelled also where there is no key: then what was said is not kept. */
int sealed_told(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err)
{
    if (!text->data || (at->json ? !quotes_content(*text) : is_own_word(*text)))
        return 0;
    if (ctx->sealed && !keyring_ready(sealed->keyring)) {
        *text = STR(SEALED_TEXT);
        return 0;
    }
    return sealed_text(sealed, ctx, at, text, err);
}

struct member_seal {
    struct sealed *sealed;
    const struct sealed_ctx *ctx;
    const struct seal_at *at;
    struct err *err;
};

static int seal_one(void *opaque, struct str pointer, struct str value, struct arena *arena,
                    struct str *out)
{
    struct member_seal *member = opaque;

    (void)arena;
    *out = value;
    return seal_whole(member->sealed, member->ctx, member->at, pointer, out, member->err);
}

int sealed_body(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err)
{
    struct member_seal member = {sealed, ctx, at, err};
    int rc;

    if (!text->data || ctx->seal.encrypt || !ctx->seal.fields.data)
        return sealed_text(sealed, ctx, at, text, err);
    err->code = ERR_NONE;
    rc = seal_members(*text, ctx->seal.fields, seal_one, &member, &sealed->tx, text);
    return rc < 0 && err->code == ERR_NONE ? err_no_memory(err) : rc;
}

/* ---- new tasks ---- */

static int write_pointers(struct task *task, const struct handler_rule *rule, struct arena *arena,
                          struct err *err)
{
    BUF_AUTO struct buf list = BUF_INIT(64 * 1024);

    buf_byte(&list, '[');
    for (uint32_t i = 0; i < rule->encrypt_fields_count; i++) {
        json_comma(&list);
        json_write_string(&list, rule->encrypt_fields[i]);
    }
    buf_byte(&list, ']');
    task->spec.seal.fields = list.failed ? STR_NONE : arena_str(arena, buf_view(&list));
    return task->spec.seal.fields.data ? 0 : err_no_memory(err);
}

/* Equal payloads have equal hashes, but only who has the key can try out which payload has one. */
static int key_hash(struct sealed *sealed, struct task *task, struct arena *arena,
                    struct err *err)
{
    const struct data_key *key;
    uint8_t hash[HASH_BYTES];
    char *hex;

    if (!task->spec.input_hash.data)
        return 0;
    TRY(use_key(sealed, task->spec.namespace_name, STR(DATA_KEY_HASH_DAY), STR(""), &key, err));
    hex = TRY_MEMORY(arena_alloc(arena, HASH_HEX_BYTES + 1));
    if (hash_hmac_sha256(str_span((const char *)key->bytes, sizeof key->bytes),
                         task->spec.input_hash, hash) < 0)
        return err_no_memory(err);
    hash_hex(hash, sizeof hash, hex);
    task->spec.input_hash = str_span(hex, HASH_HEX_BYTES);
    return 0;
}

int sealed_admit(struct store *store, struct task *task, const struct handler_rule *rule,
                 struct arena *arena, struct err *err)
{
    struct sealed *sealed = sealed_of(store);
    struct task_seal *seal = &task->spec.seal;

    if (rule && !seal->encrypt && !seal->fields.data) {
        seal->encrypt = rule->encrypt;
        if (!rule->encrypt && rule->encrypt_fields_count)
            TRY(write_pointers(task, rule, arena, err));
    }
    seal->encrypt |= sealed && keyring_all(sealed->keyring);
    if (!seal->encrypt && !seal->fields.data)
        return 0;
    if (!sealed || !keyring_ready(sealed->keyring))
        return err_set(err, ERR_LOCKED, "this task must be stored encrypted, and the server has no "
                       "key for that; set encryption.keys and encryption.current ('perdura key "
                       "add' makes one)");
    return key_hash(sealed, task, arena, err);
}
