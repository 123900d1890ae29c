#include "core/service/call_keys.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/sign.h"

#define MEANT_BYTES 24 /* a task and a lease */
#define TOKEN_BYTES (MEANT_BYTES + HASH_BYTES)
#define KEY_ID_BYTES 8
#define JWT_BYTES 2048

_Static_assert(BASE64_CHARS(TOKEN_BYTES) == CALL_TOKEN_CHARS, "of the header");

struct call_keys {
    struct sign_key *sign;
    uint8_t code_key[SIGN_SEED_BYTES];
    char id[2 * KEY_ID_BYTES + 1]; /* of the public key */
    char public_key[BASE64_CHARS(SIGN_PUBLIC_BYTES) + 1];
};

static bool derive(struct call_keys *keys, const uint8_t seed[SIGN_SEED_BYTES])
{
    uint8_t public_key[SIGN_PUBLIC_BYTES], hash[HASH_BYTES];

    keys->sign = sign_key_new(seed);
    if (!keys->sign || sign_key_derive(keys->sign, STR("completion"), keys->code_key) < 0)
        return false;
    sign_key_public(keys->sign, public_key);
    if (hash_sha256(str_span((const char *)public_key, sizeof public_key), hash) < 0)
        return false;
    hash_hex(hash, KEY_ID_BYTES, keys->id);
    base64_write(public_key, sizeof public_key, keys->public_key);
    return true;
}

struct call_keys *call_keys_new(struct str secret)
{
    struct call_keys *keys = calloc(1, sizeof *keys);
    uint8_t seed[SIGN_SEED_BYTES];

    if (!keys || secret.len != 2 * sizeof seed || !hash_from_hex(secret, seed, sizeof seed) ||
        !derive(keys, seed)) {
        call_keys_free(keys);
        keys = NULL;
    }
    explicit_bzero(seed, sizeof seed);
    return keys;
}

void call_keys_free(struct call_keys *keys)
{
    if (!keys)
        return;
    sign_key_free(keys->sign);
    explicit_bzero(keys, sizeof *keys);
    free(keys);
}

/* ---- the URL ---- */

static bool make_code(const struct call_keys *keys, const uint8_t meant[MEANT_BYTES],
                      uint8_t code[HASH_BYTES])
{
    return hash_hmac_sha256(str_span((const char *)keys->code_key, sizeof keys->code_key),
                            str_span((const char *)meant, MEANT_BYTES), code) == 0;
}

bool call_token_write(const struct call_keys *keys, const struct uuid *task_id,
                      int64_t lease_token, char out[CALL_TOKEN_CHARS + 1])
{
    uint8_t bytes[TOKEN_BYTES];

    memcpy(bytes, task_id->bytes, sizeof task_id->bytes);
    for (int i = 0; i < 8; i++)
        bytes[16 + i] = (uint8_t)((uint64_t)lease_token >> (56 - 8 * i));
    if (!make_code(keys, bytes, bytes + MEANT_BYTES))
        return false;
    base64_write(bytes, sizeof bytes, out);
    out[CALL_TOKEN_CHARS] = '\0';
    return true;
}

bool call_token_read(const struct call_keys *keys, struct str text, struct uuid *task_id,
                     int64_t *lease_token)
{
    uint8_t bytes[TOKEN_BYTES + 1], code[HASH_BYTES];
    uint64_t lease = 0;
    size_t len;

    if (text.len != CALL_TOKEN_CHARS || !base64_read(text, bytes, &len) || len != TOKEN_BYTES ||
        !make_code(keys, bytes, code) ||
        !hash_equal_secret(str_span((const char *)code, sizeof code),
                           str_span((const char *)bytes + MEANT_BYTES, sizeof code)))
        return false;
    memcpy(task_id->bytes, bytes, sizeof task_id->bytes);
    for (int i = 0; i < 8; i++)
        lease = lease << 8 | bytes[16 + i];
    *lease_token = (int64_t)lease;
    return true;
}

/* ---- the JWT ---- */

static void put_base64(struct buf *out, struct str data)
{
    char text[BASE64_CHARS(JWT_BYTES) + 1];

    if (data.len > JWT_BYTES) {
        out->failed = true;
        return;
    }
    base64_write((const uint8_t *)data.data, data.len, text);
    buf_append(out, text, BASE64_CHARS(data.len));
}

static void write_claims(struct buf *out, const struct call_identity *identity, int64_t now_s)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&identity->task_id, id);
    buf_format(out, "{\"iss\":\"perdura\",\"sub\":\"%s\",", id);
    json_write_member_string(out, "aud", identity->service);
    buf_format(out, ",\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld,\"jti\":\"%s.%lld\",",
               (long long)now_s, (long long)now_s, (long long)now_s + CALL_IDENTITY_SECONDS, id,
               (long long)identity->lease_token);
    json_write_member_string(out, "namespace", identity->namespace_name);
    buf_format(out, ",\"task_id\":\"%s\",\"attempt\":%lld,\"lease_token\":%lld}", id,
               (long long)identity->attempt, (long long)identity->lease_token);
}

struct str call_identity_write(const struct call_keys *keys, const struct call_identity *identity,
                               int64_t now_us, struct arena *arena)
{
    BUF_AUTO struct buf claims = BUF_INIT(JWT_BYTES);
    BUF_AUTO struct buf out = BUF_INIT(4 * JWT_BYTES);
    uint8_t signature[SIGN_BYTES];
    char head[128];

    write_claims(&claims, identity, now_us / CLOCK_SECOND_US);
    snprintf(head, sizeof head, "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"%s\"}", keys->id);
    put_base64(&out, str_of(head));
    buf_byte(&out, '.');
    put_base64(&out, buf_view(&claims));
    if (claims.failed || out.failed)
        return STR_NONE;
    sign_make(keys->sign, buf_view(&out), signature);
    buf_byte(&out, '.');
    put_base64(&out, str_span((const char *)signature, sizeof signature));
    return out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
}

struct str call_keys_jwks(const struct call_keys *keys, struct arena *arena)
{
    return arena_format(arena, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"sig\","
                        "\"alg\":\"EdDSA\",\"kid\":\"%s\",\"x\":\"%s\"}]}", keys->id,
                        keys->public_key);
}
