/* JWTs signed here with OpenSSL and read back: algorithms, keys, claims, and what an attacker
 * sends (D12, F-J1). */
#include "core/access/jwt.h"

#include "base/base64.h"
#include "base/buf.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW INT64_C(1800000000000000)
#define HOUR_S 3600

static const struct jwt_rules rules = {.issuer = {"https://id.example", 18},
                                       .audience = {"perdura", 7}};

struct signer {
    const char *algorithm;
    EVP_PKEY *key;
    char jwk[1024]; /* without the closing brace */
};

static struct signer rsa, ec, ed;

static void write_number(struct buf *out, const uint8_t *bytes, size_t len)
{
    char text[1024];

    base64_write(bytes, len, text);
    buf_append(out, text, BASE64_CHARS(len));
}

static void jwk_number(struct buf *out, const char *name, EVP_PKEY *key, const char *param,
                       size_t len)
{
    BIGNUM *number = NULL;
    uint8_t bytes[512];

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &number), 1);
    if (len == 0)
        len = (size_t)BN_num_bytes(number);
    assert_true(BN_bn2binpad(number, bytes, (int)len) > 0);
    buf_format(out, ",\"%s\":\"", name);
    write_number(out, bytes, len);
    buf_byte(out, '"');
    BN_free(number);
}

static void keep_jwk(struct signer *signer, struct buf *out)
{
    buf_byte(out, '\0');
    assert_true(!out->failed && out->len <= sizeof signer->jwk);
    memcpy(signer->jwk, out->data, out->len);
}

static int make_keys(void **state)
{
    BUF_AUTO struct buf out = BUF_INIT(1024);
    uint8_t raw[32];
    size_t len = sizeof raw;

    (void)state;
    rsa = (struct signer){.algorithm = "RS256", .key = EVP_RSA_gen(2048)};
    buf_text(&out, "{\"kty\":\"RSA\"");
    jwk_number(&out, "n", rsa.key, OSSL_PKEY_PARAM_RSA_N, 0);
    jwk_number(&out, "e", rsa.key, OSSL_PKEY_PARAM_RSA_E, 0);
    keep_jwk(&rsa, &out);
    buf_reset(&out);
    ec = (struct signer){.algorithm = "ES256", .key = EVP_EC_gen("P-256")};
    buf_text(&out, "{\"kty\":\"EC\",\"crv\":\"P-256\"");
    jwk_number(&out, "x", ec.key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
    jwk_number(&out, "y", ec.key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    keep_jwk(&ec, &out);
    buf_reset(&out);
    ed = (struct signer){.algorithm = "EdDSA",
                         .key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
    assert_int_equal(EVP_PKEY_get_raw_public_key(ed.key, raw, &len), 1);
    buf_text(&out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
    write_number(&out, raw, len);
    buf_byte(&out, '"');
    keep_jwk(&ed, &out);
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa.key);
    EVP_PKEY_free(ec.key);
    EVP_PKEY_free(ed.key);
    return 0;
}

static size_t der_to_raw(const uint8_t *der, size_t len, uint8_t out[64])
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)len);

    assert_non_null(pair);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, 32), 32);
    assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + 32, 32), 32);
    ECDSA_SIG_free(pair);
    return 64;
}

/* Header and claims as given, signed with the signer's key whatever the header says. */
static struct str sign(const struct signer *signer, struct arena *arena, const char *header,
                       const char *claims)
{
    BUF_AUTO struct buf out = BUF_INIT(16384);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t signature[512], raw[64];
    size_t len = sizeof signature;
    bool plain = signer == &ed;

    write_number(&out, (const uint8_t *)header, strlen(header));
    buf_byte(&out, '.');
    write_number(&out, (const uint8_t *)claims, strlen(claims));
    assert_int_equal(EVP_DigestSignInit(ctx, NULL, plain ? NULL : EVP_sha256(), NULL,
                                        signer->key), 1);
    assert_int_equal(EVP_DigestSign(ctx, signature, &len, (const uint8_t *)out.data, out.len), 1);
    EVP_MD_CTX_free(ctx);
    buf_byte(&out, '.');
    if (signer == &ec) {
        len = der_to_raw(signature, len, raw);
        memcpy(signature, raw, len);
    }
    write_number(&out, signature, len);
    return arena_str(arena, buf_view(&out));
}

static struct str claims_of(struct arena *arena, const char *more)
{
    return arena_format(arena, "{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"sub\":\"ann\","
                        "\"exp\":%lld%s}", (long long)(NOW / 1000000 + HOUR_S), more);
}

static struct jwks *all_keys(void)
{
    BUF_AUTO struct buf out = BUF_INIT(8192);
    struct jwks *jwks;
    struct err err;

    buf_format(&out, "{\"keys\":[%s,\"kid\":\"r\",\"use\":\"sig\"},%s,\"kid\":\"e\",\"alg\":"
               "\"ES256\"},%s,\"kid\":\"d\"},{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"h\"}]}",
               rsa.jwk, ec.jwk, ed.jwk);
    assert_int_equal(jwks_parse(buf_view(&out), &jwks, &err), 0);
    assert_int_equal(jwks_count(jwks), 3);
    return jwks;
}

/* Reads, verifies and checks; the sentence of the refusal, or NULL. */
static const char *judge(struct str text, const struct jwks *jwks, struct arena *arena,
                         struct jwt *jwt)
{
    static struct err err;
    int64_t expires_us;

    if (jwt_read(text, arena, jwt, &err) < 0 || jwt_verify(jwt, jwks, &err) < 0 ||
        jwt_check(jwt, &rules, NOW, arena, &expires_us, &err) < 0) {
        assert_int_equal(err.code, ERR_UNAUTHORIZED);
        return err.text;
    }
    assert_int_equal(expires_us, NOW + HOUR_S * INT64_C(1000000));
    return NULL;
}

static void the_three_algorithms_are_accepted_with_their_key(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct jwks *jwks = all_keys();
    const struct {
        const struct signer *signer;
        const char *kid;
    } rows[] = {{&rsa, "r"}, {&ec, "e"}, {&ed, "d"}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct str header = arena_format(&arena, "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                                         rows[i].signer->algorithm, rows[i].kid);
        struct str text = sign(rows[i].signer, &arena, header.data, claims_of(&arena, "").data);
        struct jwt jwt;

        assert_null(judge(text, jwks, &arena, &jwt));
        assert_true(str_is(jwt_claim_text(&jwt, STR("sub"), &arena), "ann"));
        for (size_t at = 0; at < text.len; at += 7) { /* every seventh character changed */
            char *changed = arena_cstr(&arena, text);

            changed[at] = changed[at] == 'A' ? 'B' : 'A';
            assert_non_null(judge(str_span(changed, text.len), jwks, &arena, &jwt));
        }
    }
    jwks_free(jwks);
}

static void a_header_cannot_choose_another_algorithm_or_key(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\"}", "{\"alg\":\"HS256\",\"kid\":\"h\"}", "{\"alg\":\"RS512\",\"kid\":\"r\"}",
        "{\"alg\":\"ES256\",\"kid\":\"r\"}", "{\"alg\":\"RS256\",\"kid\":\"x\"}",
        "{\"alg\":\"RS256\"}", "{\"kid\":\"r\"}", "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"b64\"]}",
        "{\"alg\":\"RS256\",\"alg\":\"RS256\",\"kid\":\"r\"}", "[]", "{\"alg\":5,\"kid\":\"r\"}",
        "{\"alg\":\"rs256\",\"kid\":\"r\"}", "{\"alg\":\"RS256\",\"kid\":7}"};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct jwks *jwks = all_keys();
    struct jwt jwt;

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct str text = sign(&rsa, &arena, headers[i], claims_of(&arena, "").data);

        if (!judge(text, jwks, &arena, &jwt))
            fail_msg("%s was accepted", headers[i]);
    }
    jwks_free(jwks);
}

static void claims_are_checked(void **state)
{
    static const struct {
        const char *claims;
        const char *refused; /* NULL = accepted */
    } rows[] = {
        {"{\"iss\":\"https://id.example\",\"aud\":[\"x\",\"perdura\"],\"exp\":1800003600}", NULL},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":1800003600.0,"
         "\"nbf\":1800000029}", NULL},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\"}", "exp"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":\"1800003600\"}", "exp"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":-1}", "exp"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":1e300}", "exp"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":1799999970}", "expired"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":1800003600,"
         "\"nbf\":1800000031}", "nbf"},
        {"{\"iss\":\"https://id.example\",\"aud\":\"perdura\",\"exp\":1800003600,\"nbf\":[]}",
         "nbf"},
        {"{\"aud\":\"perdura\",\"exp\":1800003600}", "iss"},
        {"{\"iss\":\"https://id.example/\",\"aud\":\"perdura\",\"exp\":1800003600}", "iss"},
        {"{\"iss\":[\"https://id.example\"],\"aud\":\"perdura\",\"exp\":1800003600}", "iss"},
        {"{\"iss\":\"https://id.example\",\"exp\":1800003600}", "aud"},
        {"{\"iss\":\"https://id.example\",\"aud\":[],\"exp\":1800003600}", "aud"},
        {"{\"iss\":\"https://id.example\",\"aud\":[[\"perdura\"]],\"exp\":1800003600}", "aud"},
        {"{\"iss\":\"https://id.example\",\"aud\":{\"perdura\":1},\"exp\":1800003600}", "aud"},
    };
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct jwks *jwks = all_keys();
    struct jwt jwt;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = sign(&ed, &arena, "{\"alg\":\"EdDSA\",\"kid\":\"d\"}", rows[i].claims);
        const char *why = judge(text, jwks, &arena, &jwt);

        if (!rows[i].refused != !why || (why && !strstr(why, rows[i].refused)))
            fail_msg("%s: %s", rows[i].claims, why ? why : "accepted");
    }
    jwks_free(jwks);
}

static void claims_are_found_by_name_or_pointer(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct jwt jwt = {.claims = STR("{\"scope\":\"a b\",\"roles\":[\"x\",7,\"y\"],"
                                    "\"realm\":{\"ns\":\"prod\"},\"n\":5}")};

    (void)state;
    assert_true(str_is(jwt_claim_text(&jwt, STR("scope"), &arena), "a b"));
    assert_true(str_is(jwt_claim_text(&jwt, STR("roles"), &arena), "x y"));
    assert_true(str_is(jwt_claim_text(&jwt, STR("/realm/ns"), &arena), "prod"));
    assert_null(jwt_claim_text(&jwt, STR("n"), &arena).data);
    assert_null(jwt_claim_text(&jwt, STR("/realm/no"), &arena).data);
    assert_null(jwt_claim_text(&jwt, STR_NONE, &arena).data);
}

static void key_sets_that_are_none_are_refused(void **state)
{
    static const char *const wrong[] = {
        "", "{}", "[]", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[1,null,\"x\",[]]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":"
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}"};
    struct jwks *jwks;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (jwks_parse(str_of(wrong[i]), &jwks, &err) == 0)
            fail_msg("%s was taken", wrong[i]);
}

static void a_single_key_needs_no_name(void **state)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str text = arena_format(&arena, "{\"keys\":[%s}]}", ec.jwk);
    struct jwks *jwks;
    struct jwt jwt;
    struct err err;

    (void)state;
    assert_int_equal(jwks_parse(text, &jwks, &err), 0);
    assert_null(judge(sign(&ec, &arena, "{\"alg\":\"ES256\"}", claims_of(&arena, "").data), jwks,
                      &arena, &jwt));
    jwks_free(jwks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_algorithms_are_accepted_with_their_key),
        cmocka_unit_test(a_header_cannot_choose_another_algorithm_or_key),
        cmocka_unit_test(claims_are_checked),
        cmocka_unit_test(claims_are_found_by_name_or_pointer),
        cmocka_unit_test(key_sets_that_are_none_are_refused),
        cmocka_unit_test(a_single_key_needs_no_name),
    };

    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
