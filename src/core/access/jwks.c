/* Public keys of a JWKS and signatures made with them, by OpenSSL. libcjose was left out: it has no
 * EdDSA and brings a second JSON library. Pure; any thread, each check with its own context. */
#include "core/access/jwt.h"

#include "base/base64.h"
#include "base/json.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#define RSA_BITS_MIN 2048
#define NUMBER_BYTES_MAX 1024 /* a modulus of 8192 bits */
#define P256_BYTES 32
#define ED25519_BYTES 32

struct public_key {
    struct str id; /* absent = none */
    enum jwt_algorithm algorithm;
    EVP_PKEY *key;
};

struct jwks {
    struct arena arena;
    uint32_t count;
    struct public_key keys[JWKS_KEYS_MAX];
};

/* ---- keys ---- */

/* A member in base64url as bytes; 0 = there is none, or it is too long. */
static size_t member_bytes(struct str object, const char *name, uint8_t *out, size_t max)
{
    struct str value = json_get(object, str_of(name));
    struct str text;
    size_t len;

    if (!value.data || json_kind(value) != JSON_STRING || value.len < 2)
        return 0;
    text = str_span(value.data + 1, value.len - 2); /* base64 has nothing to escape */
    if (text.len * 3 / 4 > max)
        return 0;
    return base64_read(text, out, &len) ? len : 0;
}

static EVP_PKEY *key_from(const char *type, OSSL_PARAM_BLD *build)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (params && ctx && EVP_PKEY_fromdata_init(ctx) == 1 &&
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

static EVP_PKEY *rsa_key(struct str object)
{
    uint8_t modulus[NUMBER_BYTES_MAX], exponent[8];
    size_t modulus_len = member_bytes(object, "n", modulus, sizeof modulus);
    size_t exponent_len = member_bytes(object, "e", exponent, sizeof exponent);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    BIGNUM *n = BN_bin2bn(modulus, (int)modulus_len, NULL);
    BIGNUM *e = BN_bin2bn(exponent, (int)exponent_len, NULL);
    EVP_PKEY *key = NULL;

    if (modulus_len && exponent_len && build && n && e && BN_num_bits(n) >= RSA_BITS_MIN &&
        BN_is_odd(e) && !BN_is_one(e) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        key = key_from("RSA", build);
    BN_free(n);
    BN_free(e);
    OSSL_PARAM_BLD_free(build);
    return key;
}

static EVP_PKEY *p256_key(struct str object)
{
    uint8_t point[1 + 2 * P256_BYTES] = {4}; /* uncompressed */
    OSSL_PARAM_BLD *build = NULL;
    EVP_PKEY *key = NULL;

    if (member_bytes(object, "x", point + 1, P256_BYTES) != P256_BYTES ||
        member_bytes(object, "y", point + 1 + P256_BYTES, P256_BYTES) != P256_BYTES)
        return NULL;
    build = OSSL_PARAM_BLD_new();
    if (build &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
                                         sizeof point) == 1)
        key = key_from("EC", build);
    OSSL_PARAM_BLD_free(build);
    return key;
}

static EVP_PKEY *ed25519_key(struct str object)
{
    uint8_t bytes[ED25519_BYTES];

    if (member_bytes(object, "x", bytes, sizeof bytes) != sizeof bytes)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, sizeof bytes);
}

/* Kinds of keys that are taken, and what they may sign. */
static const struct key_kind {
    const char *type, *curve, *algorithm_word;
    enum jwt_algorithm algorithm;
    EVP_PKEY *(*make)(struct str object);
} key_kinds[] = {
    {"RSA", NULL, "RS256", JWT_RS256, rsa_key},
    {"EC", "P-256", "ES256", JWT_ES256, p256_key},
    {"OKP", "Ed25519", "EdDSA", JWT_EDDSA, ed25519_key},
};

static bool member_is(struct str object, const char *name, const char *wanted, bool when_absent,
                      struct arena *arena)
{
    struct str value = json_get(object, str_of(name));

    if (!value.data)
        return when_absent;
    return json_kind(value) == JSON_STRING && str_is(json_string(value, arena), wanted);
}

static void take_key(struct jwks *jwks, struct str object)
{
    struct public_key *at = &jwks->keys[jwks->count];

    if (json_kind(object) != JSON_OBJECT || jwks->count == JWKS_KEYS_MAX ||
        !member_is(object, "use", "sig", true, &jwks->arena))
        return;
    for (size_t i = 0; i < sizeof key_kinds / sizeof key_kinds[0]; i++) {
        const struct key_kind *kind = &key_kinds[i];

        if (!member_is(object, "kty", kind->type, false, &jwks->arena) ||
            !member_is(object, "alg", kind->algorithm_word, true, &jwks->arena) ||
            (kind->curve && !member_is(object, "crv", kind->curve, false, &jwks->arena)))
            continue;
        *at = (struct public_key){.algorithm = kind->algorithm, .key = kind->make(object)};
        at->id = json_string(json_get(object, STR("kid")), &jwks->arena);
        if (at->key)
            jwks->count++;
    }
}

int jwks_parse(struct str text, struct jwks **out, struct err *err)
{
    struct str document, keys, element;
    struct json_iter iter;
    struct jwks *jwks;

    *out = NULL;
    if (text.len > JWKS_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the JWKS has more than %d bytes", JWKS_BYTES_MAX);
    jwks = calloc(1, sizeof *jwks);
    if (!jwks)
        return err_no_memory(err);
    jwks->arena = ARENA_INIT(0);
    document = arena_str(&jwks->arena, text); /* ids of keys point into it */
    if (json_check(document, &document, err) < 0 ||
        !(keys = json_get(document, STR("keys"))).data || json_kind(keys) != JSON_ARRAY) {
        jwks_free(jwks);
        return err_set(err, ERR_INVALID, "the JWKS is not a JSON object with an array 'keys'");
    }
    json_begin(keys, &iter);
    while (json_next_element(&iter, &element))
        take_key(jwks, element);
    ERR_clear_error(); /* what a wrong key left behind is no error of this thread's sockets */
    if (jwks->count == 0) {
        jwks_free(jwks);
        return err_set(err, ERR_INVALID, "the JWKS has no public key for RS256 (2048 bits or "
                       "more), ES256 or EdDSA");
    }
    *out = jwks;
    return 0;
}

void jwks_free(struct jwks *jwks)
{
    if (!jwks)
        return;
    for (uint32_t i = 0; i < jwks->count; i++)
        EVP_PKEY_free(jwks->keys[i].key);
    arena_deinit(&jwks->arena);
    free(jwks);
}

uint32_t jwks_count(const struct jwks *jwks)
{
    return jwks->count;
}

static bool fits(const struct jwks *jwks, const struct public_key *key, const struct jwt *jwt)
{
    if (key->algorithm != jwt->algorithm)
        return false;
    if (!jwt->key_id.data)
        return jwks->count == 1;
    return key->id.data && str_eq(key->id, jwt->key_id);
}

bool jwks_has(const struct jwks *jwks, const struct jwt *jwt)
{
    for (uint32_t i = 0; i < jwks->count; i++)
        if (fits(jwks, &jwks->keys[i], jwt))
            return true;
    return false;
}

/* ---- signatures ---- */

/* JWTs have r and s side by side, OpenSSL wants them in DER. 0 = they are not two numbers. */
static int ecdsa_to_der(struct str raw, uint8_t **der)
{
    ECDSA_SIG *pair = ECDSA_SIG_new();
    const uint8_t *bytes = (const uint8_t *)raw.data;
    BIGNUM *r, *s;
    int len = 0;

    *der = NULL;
    if (raw.len != (size_t)2 * P256_BYTES || !pair) {
        ECDSA_SIG_free(pair);
        return 0;
    }
    r = BN_bin2bn(bytes, P256_BYTES, NULL);
    s = BN_bin2bn(bytes + P256_BYTES, P256_BYTES, NULL);
    if (r && s && ECDSA_SIG_set0(pair, r, s) == 1) {
        len = i2d_ECDSA_SIG(pair, der);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(pair);
    return len > 0 ? len : 0;
}

static bool check_signature(EVP_PKEY *key, enum jwt_algorithm algorithm, struct str data,
                            const uint8_t *signature, size_t len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    const EVP_MD *digest = algorithm == JWT_EDDSA ? NULL : EVP_sha256();
    bool good = ctx && EVP_DigestVerifyInit(ctx, NULL, digest, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, signature, len, (const uint8_t *)data.data, data.len) == 1;

    EVP_MD_CTX_free(ctx);
    return good;
}

static bool is_signed_by(const struct jwt *jwt, const struct public_key *key)
{
    const uint8_t *signature = (const uint8_t *)jwt->signature.data;
    size_t len = jwt->signature.len;
    uint8_t *der = NULL;
    bool good;

    if (jwt->algorithm == JWT_ES256) {
        len = (size_t)ecdsa_to_der(jwt->signature, &der);
        signature = der;
    }
    good = len > 0 && check_signature(key->key, jwt->algorithm, jwt->signed_text, signature, len);
    OPENSSL_free(der);
    ERR_clear_error(); /* a wrong signature is no error of this thread's sockets */
    return good;
}

int jwt_verify(const struct jwt *jwt, const struct jwks *jwks, struct err *err)
{
    for (uint32_t i = 0; i < jwks->count; i++)
        if (fits(jwks, &jwks->keys[i], jwt) && is_signed_by(jwt, &jwks->keys[i]))
            return 0;
    return err_set(err, ERR_UNAUTHORIZED, "the JWT is not accepted: %s",
                   jwks_has(jwks, jwt) ? "its signature is wrong"
                                       : "its key (kid) is not in the JWKS of the issuer");
}
