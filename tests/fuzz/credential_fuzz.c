/* Whatever a stranger sends as a bearer credential, or an issuer as its key set: a token has one
 * form, a JWT is read whole or refused, no key of ours ever accepts what was made without it, and
 * claims are found without leaving the text (D12, F-J1). */
#include "core/access/jwt.h"
#include "core/access/scope.h"
#include "core/access/token_text.h"

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A public key of RFC 8037; the fuzzer will not find signatures of it. */
static const char own_keys[] =
    "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k\","
    "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

static void read_jwt(struct str text, const struct jwks *jwks)
{
    static const struct jwt_rules rules = {.issuer = {"i", 1}, .audience = {"a", 1}};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    int64_t expires_us;
    struct jwt jwt;
    struct err err;

    if (jwt_read(text, &arena, &jwt, &err) < 0)
        return;
    ASSERT(json_kind(jwt.claims) == JSON_OBJECT && jwt.signature.len > 0);
    if (jwt_check(&jwt, &rules, INT64_C(1800000000000000), &arena, &expires_us, &err) == 0)
        ASSERT(expires_us > 0);
    jwt_claim_text(&jwt, STR("scope"), &arena);
    jwt_claim_text(&jwt, STR("/a/b"), &arena);
    ASSERT(jwt_verify(&jwt, jwks, &err) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_span((const char *)data, size), id;
    struct jwks *own, *given;
    scope_set scopes;
    struct err err;

    if (token_text_read(text, &id))
        ASSERT(id.len == TOKEN_ID_CHARS);
    if (scopes_read(text, &scopes, &err) == 0)
        ASSERT(scopes < SCOPE_BIT(SCOPE_COUNT));
    ASSERT(jwks_parse(str_of(own_keys), &own, &err) == 0);
    read_jwt(text, own);
    jwks_free(own);
    if (jwks_parse(text, &given, &err) == 0) {
        ASSERT(jwks_count(given) > 0 && jwks_count(given) <= JWKS_KEYS_MAX);
        jwks_free(given);
    }
    return 0;
}
