/* Where the public keys of JWTs come from: a file that is watched, or an address that is asked by a
 * thread of its own, so that the loop never waits. New keys take the place of the old ones as a
 * whole; keys that cannot be read or fetched leave the old ones in force, and log and metrics say
 * so. Loop thread. */
#ifndef SERVER_DOOR_JWKS_SOURCE_H
#define SERVER_DOOR_JWKS_SOURCE_H

#include "base/log.h"
#include "core/access/jwt.h"
#include "core/settings.h"
#include "net/loop.h"

#define JWKS_EVERY_US INT64_C(300000000) /* a key that its issuer has removed is trusted so long */
#define JWKS_AGAIN_US INT64_C(30000000)  /* between two for unknown keys, or after a failure */
#define JWKS_FETCH_MS 5000               /* of a whole fetch: requests wait for it */

struct jwks_source;

struct jwks_counts {
    uint32_t keys;
    int64_t loaded_us; /* boot time of the last good answer; 0 = none yet */
    int64_t fetches;   /* or reads of the file, since the start */
    int64_t failures;  /* of them */
};

/* told(ctx) is called after every fetch or read: keys_changed says whether what was verified with
 * the keys before has to be verified again. log may be NULL. */
struct jwks_source *jwks_source_open(struct loop *loop, const struct log *log,
                                     void (*told)(void *ctx, bool keys_changed), void *ctx,
                                     struct err *err);
void jwks_source_free(struct jwks_source *source); /* ends a fetch under way; NULL is fine */

/* From now on these settings, which live as long as the source. -ERR_INVALID, and nothing changed,
 * when a file has no usable keys. */
int jwks_source_configure(struct jwks_source *source, const struct jwt_settings *settings,
                          struct err *err);
/* What configure would refuse. Any thread. */
int jwks_source_check(const struct jwt_settings *settings, struct err *err);

const struct jwks *jwks_source_keys(const struct jwks_source *source); /* NULL = none yet */

/* A JWT came whose key is not there. True: a fetch runs, so that it is worth waiting for told. One
 * begins only if the last one that was asked for is JWKS_AGAIN_US ago. */
bool jwks_source_ask(struct jwks_source *source);
/* Whether the last try failed. */
bool jwks_source_is_failing(const struct jwks_source *source);

void jwks_source_counts(const struct jwks_source *source, struct jwks_counts *counts);

#endif
