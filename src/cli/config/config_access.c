/* The section `access:` of the configuration: entries of its lists, and what its keys must be
 * together. A section that is wrong in one place is refused as a whole. Constant data, checks. */
#include "cli/config/config.h"

#include "base/enum_words.h"
#include "base/json.h"
#include "core/access/jwks_url.h"
#include "core/access/outside.h"
#include "core/bounds.h"
#include "core/queue_name.h"

#include <strings.h>

#define SCOPES_MAX 64
#define SAN_BYTES_MAX 1024
#define AT(type, member) .offset = offsetof(struct type, member)

static bool namespace_valid(struct str name)
{
    return str_is(name, ACCESS_ANY_NAMESPACE) || namespace_check_name(name, NULL) == 0;
}

static int check_certificate(const void *record, struct err *err)
{
    const struct certificate_rule *rule = record;

    if (!outside_san_valid(rule->san))
        return err_set(err, ERR_INVALID, "san '" STR_FMT "' must be a URI such as "
                       "spiffe://example.org/worker or a DNS name, without patterns",
                       STR_ARG(str_cut(rule->san, 200)));
    if (!namespace_valid(rule->namespace_name))
        return err_set(err, ERR_INVALID, "namespace '" STR_FMT "' is not the name of one, and not "
                       "'*'", STR_ARG(str_cut(rule->namespace_name, 200)));
    return 0;
}

static const struct config_field certificate_fields[] = {
    {.key = "san", .kind = CONFIG_TEXT, AT(certificate_rule, san), .max = SAN_BYTES_MAX,
     .required = true, .help = "name in the certificate: a URI (SPIFFE id) or a DNS name, exact"},
    {.key = "namespace", .kind = CONFIG_TEXT, AT(certificate_rule, namespace_name),
     .max = BOUND_NAME_BYTES, .fallback = "default", .help = "its namespace; * is every one"},
    {.key = "scopes", .kind = CONFIG_SCOPES, AT(certificate_rule, scopes), .max = SCOPES_MAX,
     .required = true, .help = "scopes or roles"},
    {.key = "user", .kind = CONFIG_TEXT, AT(certificate_rule, user), .max = BOUND_NAME_BYTES,
     .help = "limit it to rows of this user (default: all users)"},
    {0}};
const struct config_record config_certificate_record = {
    "access.certificates", sizeof(struct certificate_rule), certificate_fields, check_certificate};

static const struct config_field group_fields[] = {
    {.key = "access.proxy.groups", .kind = CONFIG_TEXT, AT(group_rule, name),
     .max = BOUND_NAME_BYTES, .help = "name of the group"},
    {.key = "access.proxy.groups", .kind = CONFIG_SCOPES, AT(group_rule, scopes),
     .max = SCOPES_MAX, .help = "scopes or roles"},
    {0}};
const struct config_record config_group_record = {"access.proxy.groups", sizeof(struct group_rule),
                                                  group_fields, NULL};

/* As intake_verbs() has them, migration 0030. */
static const char *const sql_verbs[] = {"enqueue", "complete", "fail",   "checkpoint",
                                        "cancel",  "retry",    "status", "wait_for"};

static int check_sql_role(const void *record, struct err *err)
{
    const struct sql_role_rule *rule = record;

    if (namespace_check_name(rule->namespace_name, NULL) < 0)
        return err_set(err, ERR_INVALID, "namespace '" STR_FMT "' is not the name of one",
                       STR_ARG(str_cut(rule->namespace_name, 200)));
    for (uint32_t i = 0; i < rule->verbs_count; i++)
        if (enum_words_find(rule->verbs[i], sql_verbs, sizeof sql_verbs / sizeof *sql_verbs) < 0)
            return err_set(err, ERR_INVALID, "access.sql_roles: there is no verb '" STR_FMT "'; "
                           "choose from enqueue, complete, fail, checkpoint, cancel, retry, "
                           "status and wait_for", STR_ARG(str_cut(rule->verbs[i], 64)));
    for (uint32_t i = 0; i < rule->types_count; i++)
        if (!config_type_pattern_valid(rule->types[i]))
            return err_set(err, ERR_INVALID, "access.sql_roles: type '" STR_FMT "' may have '*' at "
                           "its end only", STR_ARG(str_cut(rule->types[i], 200)));
    return 0;
}

static const struct config_field sql_role_fields[] = {
    {.key = "access.sql_roles", .kind = CONFIG_TEXT, AT(sql_role_rule, role), .max = 63,
     .help = "role of the database"},
    {.key = "namespace", .kind = CONFIG_TEXT, AT(sql_role_rule, namespace_name),
     .max = BOUND_NAME_BYTES, .fallback = "default", .help = "namespace of its tasks"},
    {.key = "verbs", .kind = CONFIG_TEXTS, AT(sql_role_rule, verbs),
     .count_offset = offsetof(struct sql_role_rule, verbs_count), .max = 16,
     .help = "which functions it may call (default: all that it was granted)"},
    {.key = "types", .kind = CONFIG_TEXTS, AT(sql_role_rule, types),
     .count_offset = offsetof(struct sql_role_rule, types_count), .max = 256,
     .help = "types of tasks that it may enqueue and change, exact or with '*' at the end"},
    {0}};
const struct config_record config_sql_role_record = {
    "access.sql_roles", sizeof(struct sql_role_rule), sql_role_fields, check_sql_role};

/* ---- access.jwt ---- */

static int check_claim(const char *name, const char *key, struct str claim, struct err *err)
{
    if (!claim.data || claim.data[0] != '/' || json_pointer_valid(claim))
        return 0;
    return err_set(err, ERR_INVALID, "%s: access.jwt.claims.%s is '" STR_FMT "'; it must be the "
                   "name of a claim, or a JSON pointer such as /realm_access/roles", name, key,
                   STR_ARG(str_cut(claim, 200)));
}

static int check_jwt(const struct jwt_settings *jwt, const char *name, struct err *err)
{
    bool any = jwt->issuer.data || jwt->audience.data || jwt->jwks_url.data ||
               jwt->jwks_file.data || jwt->ca.data || jwt->user_id_claim.data;

    if (!any)
        return 0;
    if (!jwt->issuer.data || !jwt->audience.data)
        return err_set(err, ERR_INVALID, "%s: access.jwt needs an issuer and an audience: without "
                       "both, JWTs made for others would be taken", name);
    if (!jwt->jwks_url.data == !jwt->jwks_file.data)
        return err_set(err, ERR_INVALID, "%s: access.jwt needs the issuer's public keys, either "
                       "jwks_url or jwks_file", name);
    if (jwt->jwks_url.data && !jwks_url_allowed(jwt->jwks_url))
        return err_set(err, ERR_INVALID, "%s: access.jwt.jwks_url must begin with https:// and "
                       "hold no user or password; http:// is for loopback only, because keys that "
                       "cross a network in clear text prove nothing", name);
    if (jwt->ca.data && !jwt->jwks_url.data)
        return err_set(err, ERR_INVALID, "%s: access.jwt.ca is of no use without jwks_url", name);
    TRY(check_claim(name, "user", jwt->user_claim, err));
    TRY(check_claim(name, "namespace", jwt->namespace_claim, err));
    TRY(check_claim(name, "scopes", jwt->scopes_claim, err));
    return check_claim(name, "user_id", jwt->user_id_claim, err);
}

/* ---- access.proxy ---- */

/* A header that means something else to this server cannot name a person. */
static bool header_valid(struct str header)
{
    static const char *const taken[] = {
        "host", "content-length", "transfer-encoding", "expect", "content-type", "authorization",
        "idempotency-key", "if-match", "perdura-namespace", "origin", "sec-fetch-site",
        "connection", "cookie", "accept", "x-request-id", "x-forwarded-for"};

    for (size_t i = 0; i < header.len; i++) {
        char c = header.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (header.len == strlen(taken[i]) && strncasecmp(header.data, taken[i], header.len) == 0)
            return false;
    return header.len > 0;
}

static int check_header(const char *name, const char *key, struct str header, struct err *err)
{
    if (header.data && header_valid(header))
        return 0;
    if (!header.data)
        return err_set(err, ERR_INVALID, "%s: access.proxy needs %s, the name of a header that the "
                       "proxy sets", name, key);
    return err_set(err, ERR_INVALID, "%s: access.proxy.%s is '" STR_FMT "'; it must be a header of "
                   "letters, digits and '-' that has no other meaning here, such as "
                   "X-Forwarded-User", name, key, STR_ARG(str_cut(header, 100)));
}

static int check_proxy(const struct proxy_settings *proxy, const char *name, struct err *err)
{
    bool any = proxy->from || proxy->user_header.data || proxy->groups_header.data ||
               proxy->groups;

    if (!any)
        return 0;
    if (proxy->from_count == 0)
        return err_set(err, ERR_INVALID, "%s: access.proxy needs from, the addresses of the "
                       "proxies that may name people", name);
    TRY(check_header(name, "user_header", proxy->user_header, err));
    TRY(check_header(name, "groups_header", proxy->groups_header, err));
    if (proxy->user_header.len == proxy->groups_header.len &&
        strncasecmp(proxy->user_header.data, proxy->groups_header.data,
                    proxy->user_header.len) == 0)
        return err_set(err, ERR_INVALID, "%s: access.proxy.user_header and groups_header are the "
                       "same header", name);
    if (proxy->groups_count == 0)
        return err_set(err, ERR_INVALID, "%s: access.proxy needs groups: no person has rights "
                       "without one", name);
    if (!namespace_valid(proxy->namespace_name))
        return err_set(err, ERR_INVALID, "%s: access.proxy.namespace is '" STR_FMT "', which is "
                       "neither the name of a namespace nor '*'", name,
                       STR_ARG(str_cut(proxy->namespace_name, 200)));
    return 0;
}

int config_check_access(const struct config *config, const char *name, struct err *err)
{
    const struct access_settings *access = &config->settings.access;

    for (uint32_t i = 0; i < access->certificates_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(access->certificates[j].san, access->certificates[i].san))
                return err_set(err, ERR_INVALID, "%s: two entries of access.certificates have the "
                               "san '" STR_FMT "'", name,
                               STR_ARG(str_cut(access->certificates[i].san, 200)));
    TRY(check_jwt(&access->jwt, name, err));
    return check_proxy(&access->proxy, name, err);
}
