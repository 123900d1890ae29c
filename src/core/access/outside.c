/* Names are compared whole: no patterns, no prefixes, no guesses at what an issuer meant. What
 * could be read in two ways is refused. Pure; any thread. */
#include "core/access/outside.h"

#include "core/bounds.h"
#include "core/queue_name.h"
#include "core/task/task.h"

#include <strings.h>

#define SHOWN_BYTES 120 /* of a name in an error */

/* A name as events, audit and metrics may show it. */
static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127)
            return false;
    return text.len > 0 && text.len <= BOUND_NAME_BYTES && str_is_utf8(text);
}

static bool is_namespace(struct str text)
{
    return str_is(text, ACCESS_ANY_NAMESPACE) || namespace_check_name(text, NULL) == 0;
}

/* Its key, which its tasks and workers remember, says the way in, too: the same name means another
 * one there. */
static int make(const struct principal *from, struct arena *arena,
                const struct principal **principal, struct err *err)
{
    struct principal *made = TRY_MEMORY(arena_copy(arena, from, sizeof *from));

    made->name = arena_str(arena, from->name);
    made->key = arena_format(arena, "%s:" STR_FMT, principal_kind_word(from->kind),
                             STR_ARG(from->name));
    made->namespace_name = arena_str(arena, from->namespace_name);
    if (from->user_id.data)
        made->user_id = arena_str(arena, from->user_id);
    TRY_MEMORY(!arena->failed);
    *principal = made;
    return 0;
}

/* ---- JWTs ---- */

/* Issuers put scopes of many servers into one claim: those of others are passed over. */
static scope_set known_scopes(struct str words)
{
    scope_set scopes = 0;

    while (words.len) {
        const char *space = memchr(words.data, ' ', words.len);
        size_t len = space ? (size_t)(space - words.data) : words.len;

        scopes_add_word(&scopes, str_span(words.data, len));
        len += space != NULL;
        words = str_span(words.data + len, words.len - len);
    }
    return scopes;
}

static int refuse_claim(struct str claim, const char *why, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "the JWT is valid, but its claim '" STR_FMT "' %s",
                   STR_ARG(str_cut(claim, SHOWN_BYTES)), why);
}

static int read_scopes(const struct jwt_settings *settings, const struct jwt *jwt,
                       struct arena *arena, scope_set *scopes, struct err *err)
{
    struct str words = jwt_claim_text(jwt, settings->scopes_claim, arena);

    *scopes = known_scopes(words);
    if (*scopes)
        return 0;
    if (str_empty(words))
        return refuse_claim(settings->scopes_claim, "is missing or empty, so that it allows "
                            "nothing; ask the issuer for scopes such as tasks:enqueue or for a "
                            "role such as producer", err);
    return err_set(err, ERR_FORBIDDEN, "the JWT is valid, but its claim '" STR_FMT "' has no scope "
                   "of this server: it is '" STR_FMT "'; ask the issuer for scopes such as "
                   "tasks:enqueue or for a role such as producer",
                   STR_ARG(str_cut(settings->scopes_claim, SHOWN_BYTES)),
                   STR_ARG(str_cut(words, SHOWN_BYTES)));
}

int outside_jwt(const struct jwt_settings *settings, const struct jwt *jwt, int64_t expires_at_us,
                struct arena *arena, const struct principal **principal, struct err *err)
{
    struct principal made = {.kind = PRINCIPAL_JWT, .expires_at_us = expires_at_us};
    struct str namespace_name = jwt_claim_text(jwt, settings->namespace_claim, arena);

    made.name = jwt_claim_text(jwt, settings->user_claim, arena);
    if (!is_name(made.name))
        return refuse_claim(settings->user_claim, "is not a name of 1 to 200 bytes", err);
    made.namespace_name = namespace_name;
    if (!jwt_claim_given(jwt, settings->namespace_claim, arena))
        made.namespace_name = STR(TASK_DEFAULT_NAMESPACE); /* and not where it is no text */
    if (!made.namespace_name.data || !is_namespace(made.namespace_name))
        return refuse_claim(settings->namespace_claim, "is not the name of a namespace", err);
    if (settings->user_id_claim.data) { /* without it the rows of all users would be open */
        made.user_id = jwt_claim_text(jwt, settings->user_id_claim, arena);
        if (!is_name(made.user_id))
            return refuse_claim(settings->user_id_claim, "is not a user id of 1 to 200 bytes", err);
    }
    TRY(read_scopes(settings, jwt, arena, &made.scopes, err));
    return make(&made, arena, principal, err);
}

/* ---- client certificates ---- */

static bool is_uri(struct str text)
{
    return text.len > 3 && memmem(text.data, text.len, "://", 3) != NULL;
}

static bool has_kind(struct str text)
{
    return str_starts(text, STR("URI:")) || str_starts(text, STR("DNS:"));
}

bool outside_san_valid(struct str san)
{
    struct str name = has_kind(san) ? str_span(san.data + 4, san.len - 4) : san;

    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] <= ' ' || (unsigned char)name.data[i] >= 127 ||
            name.data[i] == '*')
            return false;
    return name.len > 0 && (!str_starts(san, STR("URI:")) || is_uri(name)) &&
           (!str_starts(san, STR("DNS:")) || !is_uri(name));
}

/* The case of letters counts in a URI and not in a DNS name. */
bool outside_san_matches(struct str rule, struct str given)
{
    struct str wanted = has_kind(rule) ? str_span(rule.data + 4, rule.len - 4) : rule;
    struct str name;

    if (!has_kind(given) || memchr(given.data, '*', given.len))
        return false;
    name = str_span(given.data + 4, given.len - 4);
    if (name.len == 0 || name.len != wanted.len)
        return false;
    if (is_uri(wanted))
        return str_starts(given, STR("URI:")) && str_eq(name, wanted);
    return str_starts(given, STR("DNS:")) && strncasecmp(name.data, wanted.data, name.len) == 0;
}

static const struct certificate_rule *find_rule(const struct access_settings *settings,
                                                const struct str *sans, uint32_t sans_count)
{
    for (uint32_t i = 0; i < settings->certificates_count; i++)
        for (uint32_t at = 0; at < sans_count; at++)
            if (outside_san_matches(settings->certificates[i].san, sans[at]))
                return &settings->certificates[i];
    return NULL;
}

int outside_certificate(const struct access_settings *settings, const struct str *sans,
                        uint32_t sans_count, struct arena *arena,
                        const struct principal **principal, struct err *err)
{
    const struct certificate_rule *rule = find_rule(settings, sans, sans_count);
    struct principal made = {.kind = PRINCIPAL_CERTIFICATE};

    if (!rule && sans_count == 0)
        return err_set(err, ERR_FORBIDDEN, "the client certificate has no name that can be mapped; "
                       "use one with a URI or DNS name (SAN) that access.certificates lists");
    if (!rule)
        return err_set(err, ERR_FORBIDDEN, "no entry of access.certificates is for this client "
                       "certificate (" STR_FMT "); add one, or use another certificate",
                       STR_ARG(str_cut(sans[0], SHOWN_BYTES)));
    made.name = rule->san;
    made.namespace_name = rule->namespace_name;
    made.scopes = rule->scopes;
    made.user_id = rule->user;
    return make(&made, arena, principal, err);
}

/* ---- people behind a proxy ---- */

static struct str trim(struct str text)
{
    while (text.len && text.data[0] == ' ') {
        text.data++;
        text.len--;
    }
    while (text.len && text.data[text.len - 1] == ' ')
        text.len--;
    return text;
}

static scope_set scopes_of_group(const struct proxy_settings *settings, struct str name)
{
    for (uint32_t i = 0; i < settings->groups_count; i++)
        if (str_eq(settings->groups[i].name, name))
            return settings->groups[i].scopes;
    return 0;
}

static scope_set scopes_of_groups(const struct proxy_settings *settings, struct str groups)
{
    scope_set scopes = 0;

    while (groups.len) {
        const char *comma = memchr(groups.data, ',', groups.len);
        size_t len = comma ? (size_t)(comma - groups.data) : groups.len;

        scopes |= scopes_of_group(settings, trim(str_span(groups.data, len)));
        len += comma != NULL;
        groups = str_span(groups.data + len, groups.len - len);
    }
    return scopes;
}

int outside_person(const struct proxy_settings *settings, struct str user, struct str groups,
                   struct arena *arena, const struct principal **principal, struct err *err)
{
    struct principal made = {.kind = PRINCIPAL_PROXY, .name = user,
                             .namespace_name = settings->namespace_name};

    /* a comma is what programs put between two headers of the same name */
    if (!is_name(user) || memchr(user.data, ',', user.len))
        return err_set(err, ERR_FORBIDDEN, "the header " STR_FMT " does not hold one name of 1 to "
                       "200 bytes without commas and control characters",
                       STR_ARG(settings->user_header));
    made.scopes = scopes_of_groups(settings, groups);
    if (!made.scopes)
        return err_set(err, ERR_FORBIDDEN, "no group of " STR_FMT " has rights here: "
                       STR_FMT " is '" STR_FMT "', and access.proxy.groups lists none of it; ask "
                       "to be put into a group that it lists", STR_ARG(str_cut(user, SHOWN_BYTES)),
                       STR_ARG(settings->groups_header), STR_ARG(str_cut(groups, SHOWN_BYTES)));
    return make(&made, arena, principal, err);
}
