/* JWTs as credentials: each is verified once, with the issuer's keys (jwks_source.h), and known by
 * its hash until it ends, its keys change or the settings do. Loop thread. */
#ifndef SERVER_DOOR_DOOR_JWT_H
#define SERVER_DOOR_DOOR_JWT_H

#include "core/access/principal.h"
#include "server/door/jwks_source.h"

#define DOOR_JWTS_MAX 4096 /* known at once: some 1 KiB each */

struct door_jwt;

struct door_jwt_counts {
    uint32_t known;
    int64_t verified; /* signatures found right, since the start */
    struct jwks_counts keys;
};

/* on_keys(ctx) is called after every fetch of keys: what waited for it may be tried again. */
struct door_jwt *door_jwt_open(struct loop *loop, const struct log *log, void (*on_keys)(void *ctx),
                               void *ctx, struct err *err);
void door_jwt_free(struct door_jwt *jwt); /* NULL is fine */

/* -ERR_INVALID, and nothing changed, when the file of keys cannot be used. */
int door_jwt_configure(struct door_jwt *jwt, const struct jwt_settings *settings, struct err *err);
bool door_jwt_is_on(const struct door_jwt *jwt); /* NULL = no */

/* Who shows this JWT: a principal in the arena. ERR_UNAUTHORIZED (what is wrong with it),
 * ERR_FORBIDDEN (it is good and allows nothing here), ERR_UNAVAILABLE (its key is not known yet);
 * then *waits says whether a fetch runs that may bring it. */
int door_jwt_find(struct door_jwt *jwt, struct str text, int64_t now_us, struct arena *arena,
                  const struct principal **principal, bool *waits, struct err *err);

void door_jwt_counts(const struct door_jwt *jwt, struct door_jwt_counts *counts);

#endif
