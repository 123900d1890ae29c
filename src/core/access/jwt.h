/* JSON Web Tokens: reading one, checking its signature against a set of public keys (JWKS), and
 * checking its claims. RS256, ES256 and EdDSA (Ed25519) only; every other algorithm, `none` and
 * HMAC among them, is refused before a key is looked at. Pure: time and keys are handed in, and
 * who fetches the keys is the caller's business. Any thread; a set of keys is read-only. */
#ifndef CORE_ACCESS_JWT_H
#define CORE_ACCESS_JWT_H

#include "base/arena.h"
#include "base/err.h"

#define JWT_BYTES_MAX 8192
#define JWKS_BYTES_MAX (256 * 1024)
#define JWKS_KEYS_MAX 64
#define JWT_SKEW_US INT64_C(30000000) /* clocks of two machines may differ by this */

enum jwt_algorithm { JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGORITHM_COUNT };

struct jwt {
    enum jwt_algorithm algorithm;
    struct str key_id;    /* absent = none */
    struct str claims;    /* a JSON object */
    struct str signed_text;
    struct str signature; /* bytes */
};

/* Whether a bearer credential looks like one: three parts with dots between. */
bool jwt_is_one(struct str text);

/* Everything points into text or lives in the arena. ERR_UNAUTHORIZED says what is wrong with it.
 * Nothing is believed yet. */
int jwt_read(struct str text, struct arena *arena, struct jwt *jwt, struct err *err);

struct jwks;

/* The public keys of a JWKS document. Keys of other kinds or uses are left out; ERR_INVALID when
 * the document is not one or no usable key is left. */
int jwks_parse(struct str text, struct jwks **jwks, struct err *err);
void jwks_free(struct jwks *jwks);
uint32_t jwks_count(const struct jwks *jwks);
/* Whether there is a key by that name; a JWT without one fits when the set has a single key. */
bool jwks_has(const struct jwks *jwks, const struct jwt *jwt);

/* ERR_UNAUTHORIZED unless a key of the set with the JWT's id and algorithm made the signature. */
int jwt_verify(const struct jwt *jwt, const struct jwks *jwks, struct err *err);

struct jwt_rules {
    struct str issuer;   /* must be iss */
    struct str audience; /* must be aud or one of it */
};

/* exp (required), nbf, iss and aud. ERR_UNAUTHORIZED. *expires_us is when it ends. */
int jwt_check(const struct jwt *jwt, const struct jwt_rules *rules, int64_t now_us,
              struct arena *arena, int64_t *expires_us, struct err *err);

/* Whether there is such a claim, of whatever kind. */
bool jwt_claim_given(const struct jwt *jwt, struct str name, struct arena *arena);

/* The claim with this name, or below this JSON pointer when it begins with '/': a text, or the
 * texts of an array with a space between. Absent when there is none of the kind. */
struct str jwt_claim_text(const struct jwt *jwt, struct str name, struct arena *arena);

#endif
