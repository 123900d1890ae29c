/* What a call of a service carries as proof of whose it is: the secret part of the URL that says
 * how an attempt ended, and the JWT by which the service knows who asks. Both come from one secret
 * of the store, so every node makes and checks the same, and nothing is stored per call. Both name
 * the lease: what belongs to an earlier attempt is of no use in a later one. Any thread;
 * read-only. */
#ifndef CORE_SERVICE_CALL_KEYS_H
#define CORE_SERVICE_CALL_KEYS_H

#include "base/arena.h"
#include "base/uuid7.h"

#define CALL_TOKEN_CHARS 75 /* 16 bytes of the task, 8 of the lease, 32 of the code, in base64 */
#define CALL_COMPLETE_PATH "/v1/completions/"
#define CALL_JWKS_PATH "/v1/identity/jwks.json"
#define CALL_IDENTITY_SECONDS 300

struct call_keys;

/* secret: 64 hex digits. NULL: that it is not, or no memory. */
struct call_keys *call_keys_new(struct str secret);
void call_keys_free(struct call_keys *keys);

/* The end of the URL; false without memory. */
bool call_token_write(const struct call_keys *keys, const struct uuid *task_id,
                      int64_t lease_token, char out[CALL_TOKEN_CHARS + 1]);
/* The other way around; false = no node of this store made it. */
bool call_token_read(const struct call_keys *keys, struct str text, struct uuid *task_id,
                     int64_t *lease_token);

struct call_identity {
    struct str namespace_name;
    struct uuid task_id;
    int64_t attempt;
    int64_t lease_token;
    struct str service; /* the audience */
};

/* A JWT, valid from now_us (wall clock) on. STR_NONE without memory. */
struct str call_identity_write(const struct call_keys *keys, const struct call_identity *identity,
                               int64_t now_us, struct arena *arena);
/* The public key as a JWKS document. */
struct str call_keys_jwks(const struct call_keys *keys, struct arena *arena);

#endif
