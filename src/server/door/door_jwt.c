/* The table of known JWTs: by SHA-256, the one not used for longest makes room. A JWT that failed
 * is not kept: what is wrong today may be right with tomorrow's keys, and strangers cannot fill
 * the table. Loop thread. */
#include "server/door/door_jwt.h"

#include "base/hash.h"
#include "base/map.h"
#include "core/access/outside.h"

#include <stdlib.h>
#include <sys/queue.h>

#define KNOWN_BYTES 512 /* an entry's texts, in most cases */

struct known_jwt {
    TAILQ_ENTRY(known_jwt) others;
    uint8_t hash[HASH_BYTES];
    const struct principal *principal;
    struct arena arena;
};
TAILQ_HEAD(known_list, known_jwt); /* the one used last is first */

struct door_jwt {
    struct jwt_settings settings;
    struct jwks_source *source;
    void (*on_keys)(void *ctx);
    void *ctx;
    struct map by_hash;
    struct known_list known;
    int64_t verified;
};

/* ---- the table ---- */

static void forget(struct door_jwt *jwt, struct known_jwt *known)
{
    map_remove(&jwt->by_hash, str_span((const char *)known->hash, HASH_BYTES));
    TAILQ_REMOVE(&jwt->known, known, others);
    arena_deinit(&known->arena);
    free(known);
}

static void forget_all(struct door_jwt *jwt)
{
    while (!TAILQ_EMPTY(&jwt->known))
        forget(jwt, TAILQ_FIRST(&jwt->known));
}

static struct str copy_text(struct arena *arena, struct str text)
{
    return text.data ? arena_str(arena, text) : STR_NONE;
}

static const struct principal *copy(const struct principal *from, struct arena *arena)
{
    struct principal *made = arena_copy(arena, from, sizeof *from);

    if (!made)
        return NULL;
    made->name = copy_text(arena, from->name);
    made->key = copy_text(arena, from->key);
    made->namespace_name = copy_text(arena, from->namespace_name);
    made->user_id = copy_text(arena, from->user_id);
    return arena->failed ? NULL : made;
}

/* Without memory the next request verifies it again. */
static void remember(struct door_jwt *jwt, const uint8_t hash[HASH_BYTES],
                     const struct principal *principal)
{
    struct known_jwt *known = calloc(1, sizeof *known);

    if (!known)
        return;
    if (map_count(&jwt->by_hash) >= DOOR_JWTS_MAX)
        forget(jwt, TAILQ_LAST(&jwt->known, known_list));
    memcpy(known->hash, hash, HASH_BYTES);
    known->arena.first_bytes = KNOWN_BYTES;
    known->principal = copy(principal, &known->arena);
    if (known->principal &&
        map_put(&jwt->by_hash, str_span((const char *)known->hash, HASH_BYTES), known) == 0) {
        TAILQ_INSERT_HEAD(&jwt->known, known, others);
        return;
    }
    arena_deinit(&known->arena);
    free(known);
}

/* The principal of one that was verified before; NULL when it was not, or has ended. */
static const struct principal *recall(struct door_jwt *jwt, const uint8_t hash[HASH_BYTES],
                                      int64_t now_us)
{
    struct known_jwt *known = map_get(&jwt->by_hash, str_span((const char *)hash, HASH_BYTES));

    if (!known)
        return NULL;
    if (known->principal->expires_at_us <= now_us) {
        forget(jwt, known);
        return NULL;
    }
    TAILQ_REMOVE(&jwt->known, known, others);
    TAILQ_INSERT_HEAD(&jwt->known, known, others);
    return known->principal;
}

/* ---- one JWT ---- */

static int no_key(struct door_jwt *jwt, bool *waits, struct err *err)
{
    *waits = jwks_source_ask(jwt->source);
    if (*waits)
        return err_set(err, ERR_UNAVAILABLE, "the keys of the issuer are being fetched; try again "
                       "in a moment");
    if (!jwks_source_keys(jwt->source) || jwks_source_is_failing(jwt->source))
        return err_set(err, ERR_UNAVAILABLE, "the keys of the issuer (JWKS) cannot be read at the "
                       "moment, and the JWT's key is not among those known; see the server's log");
    return err_set(err, ERR_UNAUTHORIZED, "the JWT is not accepted: its key (kid) is not in the "
                   "JWKS of the issuer; get a new one");
}

static int verify(struct door_jwt *jwt, struct str text, int64_t now_us, struct arena *arena,
                  const struct principal **principal, bool *waits, struct err *err)
{
    const struct jwt_rules rules = {.issuer = jwt->settings.issuer,
                                    .audience = jwt->settings.audience};
    const struct jwks *keys = jwks_source_keys(jwt->source);
    int64_t expires_us;
    struct jwt read;

    TRY(jwt_read(text, arena, &read, err));
    /* what is wrong in any case fetches no keys */
    TRY(jwt_check(&read, &rules, now_us, arena, &expires_us, err));
    if (!keys || !jwks_has(keys, &read))
        return no_key(jwt, waits, err);
    TRY(jwt_verify(&read, keys, err));
    jwt->verified++;
    return outside_jwt(&jwt->settings, &read, expires_us + JWT_SKEW_US, arena, principal, err);
}

int door_jwt_find(struct door_jwt *jwt, struct str text, int64_t now_us, struct arena *arena,
                  const struct principal **principal, bool *waits, struct err *err)
{
    const struct principal *known;
    uint8_t hash[HASH_BYTES];

    *waits = false;
    if (text.len > JWT_BYTES_MAX)
        return err_set(err, ERR_UNAUTHORIZED, "the JWT is not accepted: it has more than %d bytes",
                       JWT_BYTES_MAX);
    TRY_MEMORY(hash_sha256(text, hash) == 0);
    known = recall(jwt, hash, now_us);
    if (known) {
        *principal = TRY_MEMORY(copy(known, arena));
        return 0;
    }
    TRY(verify(jwt, text, now_us, arena, principal, waits, err));
    remember(jwt, hash, *principal);
    return 0;
}

/* ---- its life ---- */

static void keys_told(void *ctx, bool keys_changed)
{
    struct door_jwt *jwt = ctx;

    if (keys_changed)
        forget_all(jwt);
    jwt->on_keys(jwt->ctx);
}

struct door_jwt *door_jwt_open(struct loop *loop, const struct log *log, void (*on_keys)(void *ctx),
                               void *ctx, struct err *err)
{
    struct door_jwt *jwt = err_calloc(sizeof *jwt, err);

    if (!jwt)
        return NULL;
    jwt->on_keys = on_keys;
    jwt->ctx = ctx;
    jwt->by_hash = MAP_INIT;
    TAILQ_INIT(&jwt->known);
    jwt->source = jwks_source_open(loop, log, keys_told, jwt, err);
    if (jwt->source)
        return jwt;
    door_jwt_free(jwt);
    return NULL;
}

void door_jwt_free(struct door_jwt *jwt)
{
    if (!jwt)
        return;
    jwks_source_free(jwt->source);
    forget_all(jwt);
    map_deinit(&jwt->by_hash);
    free(jwt);
}

int door_jwt_configure(struct door_jwt *jwt, const struct jwt_settings *settings, struct err *err)
{
    TRY(jwks_source_configure(jwt->source, settings, err));
    jwt->settings = *settings;
    forget_all(jwt);
    return 0;
}

bool door_jwt_is_on(const struct door_jwt *jwt)
{
    return jwt && jwt->settings.issuer.data;
}

void door_jwt_counts(const struct door_jwt *jwt, struct door_jwt_counts *counts)
{
    *counts = (struct door_jwt_counts){.known = map_count(&jwt->by_hash),
                                       .verified = jwt->verified};
    jwks_source_counts(jwt->source, &counts->keys);
}
