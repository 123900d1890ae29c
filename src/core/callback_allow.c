/* A stricter grammar than RFC 3986: everything outside it is refused before it is compared. */
#include "core/callback_allow.h"

#include "core/bounds.h"

#include <strings.h>

#define PORT_DIGITS_MAX 5

struct target {
    bool tls;
    struct str origin; /* scheme, host and port as written */
    struct str host;   /* with its brackets, if any */
    int64_t port;      /* 0 = not written */
    struct str path;   /* "/" where none is written; up to the query */
    bool has_query;
};

static const struct str loopback[] = {{"http://127.0.0.1", 16},
                                      {"http://localhost", 16},
                                      {"http://[::1]", 12}};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static int hex_value(char byte)
{
    if (is_digit(byte))
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

static bool eq_any_case(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

/* Printable ASCII without the characters that clients and servers disagree about. A fragment is
 * never sent, so one that is written is a mistake. */
static bool is_plain(struct str url)
{
    for (size_t i = 0; i < url.len; i++)
        if (url.data[i] <= ' ' || url.data[i] >= 127 || strchr("\\#\"<>^`{|}", url.data[i]))
            return false;
    return true;
}

static bool is_name(struct str host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!is_letter(host.data[i]) && !is_digit(host.data[i]) && !strchr("-._", host.data[i]))
            return false;
    return host.len > 0 && host.data[0] != '.' && host.data[0] != '-';
}

static bool is_bracketed(struct str host)
{
    if (host.len < 4 || host.data[0] != '[' || host.data[host.len - 1] != ']')
        return false;
    for (size_t i = 1; i < host.len - 1; i++)
        if (hex_value(host.data[i]) < 0 && host.data[i] != ':' && host.data[i] != '.')
            return false;
    return true;
}

static bool parse_port(struct str text, int64_t *port)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.data[i]))
            return false;
    return text.len > 0 && text.len <= PORT_DIGITS_MAX && text.data[0] != '0' &&
           str_to_int64(text, port) && *port <= 65535;
}

/* host or host:port; a '@' is no letter of a host, so that user info is refused here. */
static bool parse_authority(struct str text, struct target *target)
{
    size_t host_len = 0;

    if (text.len && text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.len);

        host_len = end ? (size_t)(end - text.data) + 1 : 0;
    } else {
        while (host_len < text.len && text.data[host_len] != ':')
            host_len++;
    }
    target->host = str_span(text.data, host_len);
    if (!is_name(target->host) && !is_bracketed(target->host))
        return false;
    if (host_len == text.len)
        return true;
    return text.data[host_len] == ':' &&
           parse_port(str_span(text.data + host_len + 1, text.len - host_len - 1), &target->port);
}

/* One character of a path as a server may see it after decoding. */
static char decoded(struct str path, size_t *at)
{
    char byte = path.data[(*at)++];
    int high, low;

    if (byte != '%' || *at + 2 > path.len)
        return byte;
    high = hex_value(path.data[*at]);
    low = hex_value(path.data[*at + 1]);
    if (high < 0 || low < 0)
        return byte;
    *at += 2;
    return (char)(high * 16 + low);
}

/* "." and ".." lead out of an allowed prefix, also when they are escaped, when their slashes are,
 * or when parameters follow (/..;/). */
static bool has_dot_segment(struct str path)
{
    size_t at = 0;
    size_t dots = 0;
    bool only_dots = true;

    while (at < path.len) {
        char byte = decoded(path, &at);

        if (byte == '/' || byte == '\\' || byte == ';') {
            if (only_dots && (dots == 1 || dots == 2))
                return true;
            dots = 0;
            only_dots = byte != ';'; /* what follows a ';' is no segment */
        } else if (byte == '.') {
            dots++;
        } else {
            only_dots = false;
        }
    }
    return only_dots && (dots == 1 || dots == 2);
}

static bool parse_target(struct str url, struct target *target)
{
    size_t scheme_len;
    size_t at;
    size_t end;

    *target = (struct target){.path = STR("/")};
    if (!url.data || url.len > BOUND_URL_BYTES || !is_plain(url))
        return false;
    target->tls = url.len >= 8 && strncasecmp(url.data, "https://", 8) == 0;
    if (!target->tls && (url.len < 7 || strncasecmp(url.data, "http://", 7) != 0))
        return false;
    scheme_len = target->tls ? 8 : 7;
    at = scheme_len;
    while (at < url.len && url.data[at] != '/' && url.data[at] != '?')
        at++;
    if (!parse_authority(str_span(url.data + scheme_len, at - scheme_len), target))
        return false;
    target->origin = str_span(url.data, at);
    for (end = at; end < url.len && url.data[end] != '?'; end++)
        ;
    if (end > at)
        target->path = str_span(url.data + at, end - at);
    target->has_query = end < url.len;
    return !has_dot_segment(target->path);
}

static int64_t port_of(const struct target *target)
{
    return target->port ? target->port : target->tls ? 443 : 80;
}

/* A prefix ends where a segment ends: /hooks covers /hooks and /hooks/a, not /hooks2. */
static bool path_covers(struct str prefix, struct str path)
{
    return str_starts(path, prefix) &&
           (prefix.data[prefix.len - 1] == '/' || path.len == prefix.len ||
            path.data[prefix.len] == '/');
}

static bool entry_covers(struct str entry, const struct target *url)
{
    struct target allowed;

    return parse_target(entry, &allowed) && !allowed.has_query && allowed.tls == url->tls &&
           eq_any_case(allowed.host, url->host) &&
           (!allowed.port || allowed.port == port_of(url)) && path_covers(allowed.path, url->path);
}

int callback_check_right(const struct settings *settings, const struct principal *principal,
                         struct err *err)
{
    if (settings->callbacks.allow_count > 0 ||
        (principal_allows(principal, SCOPE_ADMIN) && principal_is_global(principal) &&
         !principal->user_id.data))
        return 0;
    return err_set_field(err, ERR_FORBIDDEN, "callback_url", "this credential may not have the "
                         "server call itself; list the addresses that callbacks may go to in "
                         "callbacks.allow of the configuration");
}

bool callback_allowed(const struct settings *settings, struct str url)
{
    bool listed = settings->callbacks.allow_count > 0;
    const struct str *entries = listed ? settings->callbacks.allow : loopback;
    size_t count = listed ? settings->callbacks.allow_count : sizeof loopback / sizeof *loopback;
    struct target target;

    if (!parse_target(url, &target))
        return false;
    for (size_t i = 0; i < count; i++)
        if (entry_covers(entries[i], &target))
            return true;
    return false;
}

bool callback_entry_valid(struct str entry)
{
    struct target target;

    return parse_target(entry, &target) && !target.has_query;
}

struct str callback_origin(struct str url)
{
    struct target target;

    return parse_target(url, &target) ? target.origin : STR_NONE;
}
