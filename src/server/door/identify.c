/* Each way in looks at the request and says: not mine, mine, or mine and wrong. The first that does
 * not pass decides. Secrets are compared in constant time and never logged. Loop thread. */
#include "server/door/identify.h"

#include "base/hash.h"
#include "core/access/outside.h"
#include "core/access/token_text.h"
#include "server/door/door_outside.h"

#include <strings.h>

/* No credential is asked for: everything, as on one's own machine. */
static const struct principal local = {
    .kind = PRINCIPAL_LOCAL, .namespace_name = {ACCESS_ANY_NAMESPACE, 1},
    .scopes = SCOPE_BIT(SCOPE_ADMIN)};
/* The server's own token. */
static const struct principal root = {
    .kind = PRINCIPAL_ROOT, .namespace_name = {ACCESS_ANY_NAMESPACE, 1},
    .scopes = SCOPE_BIT(SCOPE_ADMIN), .key = {"root", 4}};

struct attempt {
    const struct auth *auth;
    struct tokens *tokens;
    struct door_jwt *jwt;
    const struct http_request *request;
    struct arena *arena;
    struct str bearer;       /* absent = none was sent */
    struct str user, groups; /* what a trusted proxy says; absent = nothing */
    int64_t now_us;
};

enum verdict { PASS, TAKEN };

/* Tries one way in: PASS, TAKEN, or a negative code. */
typedef int way_in(const struct attempt *attempt, struct identity *who, struct err *err);

bool door_is_own_token(struct str token)
{
    struct str id;

    return !str_empty(token) && !token_text_read(token, &id) &&
           !(str_starts(token, STR("eyJ")) && jwt_is_one(token));
}

static int by_server_token(const struct attempt *attempt, struct identity *who, struct err *err)
{
    struct str token = attempt->auth->settings->access.token;

    (void)err;
    if (!door_is_own_token(token) || !attempt->bearer.data ||
        !hash_equal_secret(attempt->bearer, token))
        return PASS;
    who->principal = &root;
    return TAKEN;
}

static int by_api_token(const struct attempt *attempt, struct identity *who, struct err *err)
{
    if (!attempt->bearer.data || !str_starts(attempt->bearer, STR("pdt_")))
        return PASS;
    TRY(tokens_find(attempt->tokens, attempt->bearer, attempt->now_us, &who->token,
                    &who->principal, err));
    return TAKEN;
}

static int by_jwt(const struct attempt *attempt, struct identity *who, struct err *err)
{
    if (!attempt->bearer.data || !door_jwt_is_on(attempt->jwt) || !jwt_is_one(attempt->bearer))
        return PASS;
    TRY(door_jwt_find(attempt->jwt, attempt->bearer, attempt->now_us, attempt->arena,
                      &who->principal, &who->waits, err));
    return TAKEN;
}

static int by_proxy(const struct attempt *attempt, struct identity *who, struct err *err)
{
    if (attempt->bearer.data || !attempt->user.data)
        return PASS;
    TRY(outside_person(&attempt->auth->settings->access.proxy, attempt->user, attempt->groups,
                       attempt->arena, &who->principal, err));
    return TAKEN;
}

static int by_certificate(const struct attempt *attempt, struct identity *who, struct err *err)
{
    const struct http_request *request = attempt->request;
    const struct settings *settings = attempt->auth->settings;

    if (attempt->bearer.data || !door_certificate_counts(settings, request))
        return PASS;
    TRY(outside_certificate(&settings->access, request->peer_sans, request->peer_sans_count,
                            attempt->arena, &who->principal, err));
    return TAKEN;
}

static way_in *const ways[] = {by_server_token, by_api_token, by_jwt, by_proxy, by_certificate};

bool door_is_open(const struct auth *auth, const struct tokens *tokens)
{
    return auth->loopback && str_empty(auth->settings->access.token) &&
           !settings_ask_for_credentials(&auth->settings->access) && tokens->valid == 0;
}

/* The text behind "Bearer "; absent when nothing was sent. */
static int read_bearer(const struct http_request *request, struct str *bearer, struct err *err)
{
    struct str given = http_header(request, "Authorization"), scheme = STR("Bearer ");

    *bearer = STR_NONE;
    if (!given.data)
        return 0;
    if (given.len <= scheme.len || strncasecmp(given.data, scheme.data, scheme.len) != 0)
        return err_set(err, ERR_UNAUTHORIZED, "the Authorization header does not begin with "
                       "'Bearer '; send 'Authorization: Bearer TOKEN'");
    *bearer = str_span(given.data + scheme.len, given.len - scheme.len);
    return 0;
}

static int refuse(const struct attempt *attempt, struct err *err)
{
    if (!attempt->bearer.data)
        return err_set(err, ERR_UNAUTHORIZED, "the request has no token; send one as "
                       "'Authorization: Bearer TOKEN' (clients take it from PERDURA_TOKEN): the "
                       "server's own, or one that someone with access:write made with `perdura "
                       "token create`");
    if (str_starts(attempt->bearer, STR("eyJ")) && jwt_is_one(attempt->bearer))
        return err_set(err, ERR_UNAUTHORIZED, "this server takes no JWTs: its configuration has no "
                       "access.jwt; send a token that `perdura token create` made");
    return err_set(err, ERR_UNAUTHORIZED, "the token is wrong; send the one the server was started "
                   "with, or one that `perdura token create` made: it begins with pdt_");
}

static int try_ways(const struct attempt *attempt, struct identity *who, struct err *err)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int verdict = ways[i](attempt, who, err);

        if (verdict != PASS)
            return verdict < 0 ? verdict : 0;
    }
    return refuse(attempt, err);
}

int door_identify(const struct ways_in *in, const struct http_request *request, int64_t now_us,
                  struct arena *arena, struct identity *who, struct err *err)
{
    struct attempt attempt = {.auth = in->auth, .tokens = in->tokens, .jwt = in->jwt,
                              .request = request, .arena = arena, .now_us = now_us};
    bool open = door_is_open(in->auth, in->tokens);

    *who = (struct identity){.principal = open ? &local : NULL};
    if (open || auth_is_open(in->auth, request))
        return 0;
    TRY(door_proxy_headers(&in->auth->settings->access.proxy, request, &attempt.user,
                           &attempt.groups, err));
    TRY(read_bearer(request, &attempt.bearer, err));
    return try_ways(&attempt, who, err);
}
