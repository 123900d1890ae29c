/* Each way in looks at the request and says: not mine, mine, or mine and wrong. The first that does
 * not pass decides. Secrets are compared in constant time and never logged. Loop thread. */
#include "server/door/identify.h"

#include "base/hash.h"

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
    struct str bearer; /* absent = none was sent */
    int64_t now_us;
};

enum verdict { PASS, TAKEN };

/* Tries one way in: PASS, TAKEN, or a negative code. */
typedef int way_in(const struct attempt *attempt, struct identity *who, struct err *err);

static int by_server_token(const struct attempt *attempt, struct identity *who, struct err *err)
{
    struct str token = attempt->auth->settings->access.token;

    (void)err;
    if (str_empty(token) || !attempt->bearer.data || !hash_equal_secret(attempt->bearer, token))
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

static way_in *const ways[] = {by_server_token, by_api_token};

bool door_is_open(const struct auth *auth, const struct tokens *tokens)
{
    return auth->loopback && str_empty(auth->settings->access.token) &&
           !auth->settings->access.required && tokens->valid == 0;
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
    return err_set(err, ERR_UNAUTHORIZED, "the token is wrong; send the one the server was started "
                   "with, or one that `perdura token create` made: it begins with pdt_");
}

int door_identify(const struct auth *auth, struct tokens *tokens,
                  const struct http_request *request, int64_t now_us, struct identity *who,
                  struct err *err)
{
    struct attempt attempt = {.auth = auth, .tokens = tokens, .now_us = now_us};
    bool open = door_is_open(auth, tokens);

    *who = (struct identity){.principal = open ? &local : NULL};
    if (open || auth_is_open(auth, request))
        return 0;
    TRY(read_bearer(request, &attempt.bearer, err));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int verdict = ways[i](&attempt, who, err);

        if (verdict != PASS)
            return verdict < 0 ? verdict : 0;
    }
    return refuse(&attempt, err);
}
