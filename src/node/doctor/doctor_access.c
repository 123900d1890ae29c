/* What `perdura doctor` says about the ways in that `access:` describes: what would let strangers
 * in, and what can never let anyone in. One thread. */
#include "node/node.h"

#include "core/access/jwks_url.h"
#include "server/server.h"

static struct doctor_check judged(enum doctor_verdict verdict, struct str name, struct str detail,
                                  struct str fix)
{
    return (struct doctor_check){.verdict = verdict, .name = name, .detail = detail, .fix = fix};
}

static struct doctor_check check_jwt(const struct settings *settings, struct arena *arena)
{
    const struct jwt_settings *jwt = &settings->access.jwt;
    struct err err = {0};

    if (server_check_settings(settings, &err) < 0)
        return judged(DOCTOR_FAILURE, STR("jwt"), arena_str(arena, str_of(err.text)),
                      STR("correct access.jwt.jwks_file, or the file"));
    if (jwt->jwks_url.data && jwks_url_is_clear(jwt->jwks_url))
        return judged(DOCTOR_WARNING, STR("jwt"),
                      STR("the issuer's keys come in clear text, from this machine: any user of it "
                          "who can take that port can let in anyone"),
                      STR("use an https:// address in access.jwt.jwks_url, or jwks_file"));
    return judged(DOCTOR_OK, STR("jwt"),
                  arena_format(arena, "JWTs of " STR_FMT " for " STR_FMT,
                               STR_ARG(str_cut(jwt->issuer, 200)),
                               STR_ARG(str_cut(jwt->audience, 200))), STR_NONE);
}

static struct doctor_check check_certificates(const struct settings *settings,
                                              struct arena *arena)
{
    if (!settings->tls.client_ca.data)
        return judged(DOCTOR_FAILURE, STR("certificates"),
                      STR("access.certificates lists names, but no client can show a certificate: "
                          "tls.client_ca is not set"),
                      STR("set tls.client_ca to the CAs that sign them, or remove "
                          "access.certificates"));
    return judged(DOCTOR_OK, STR("certificates"),
                  arena_format(arena, "%u names have rights",
                               settings->access.certificates_count), STR_NONE);
}

static struct doctor_check check_proxy(const struct proxy_settings *proxy, struct arena *arena)
{
    for (uint32_t i = 0; i < proxy->from_count; i++)
        if (address_range_is_everything(&proxy->from[i]))
            return judged(DOCTOR_FAILURE, STR("proxy"),
                          arena_format(arena, "access.proxy.from lists every address, so that any "
                                       "client can say in " STR_FMT " who it is",
                                       STR_ARG(proxy->user_header)),
                          STR("list only the addresses of your proxies"));
    return judged(DOCTOR_OK, STR("proxy"),
                  arena_format(arena, STR_FMT " is believed from %u ranges of addresses",
                               STR_ARG(proxy->user_header), proxy->from_count), STR_NONE);
}

uint32_t node_doctor_access(const struct settings *settings, struct arena *arena,
                            struct doctor_check checks[NODE_ACCESS_CHECKS_MAX])
{
    const struct access_settings *access = &settings->access;
    uint32_t count = 0;

    if (access->jwt.issuer.data)
        checks[count++] = check_jwt(settings, arena);
    if (access->certificates_count)
        checks[count++] = check_certificates(settings, arena);
    if (access->proxy.from_count)
        checks[count++] = check_proxy(&access->proxy, arena);
    if (access->open_metrics)
        checks[count++] = judged(DOCTOR_OK, STR("metrics"),
                                 STR("open: every client that reaches the server may read "
                                     "/metrics (access.open_metrics)"), STR_NONE);
    return count;
}
