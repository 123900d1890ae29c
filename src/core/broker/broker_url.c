#include "core/broker/broker_url.h"

#include "base/hash.h"

#define PORT_CLEAR 5672
#define PORT_TLS 5671

static int refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "%s; an address looks like amqp://user@127.0.0.1:5672/%%2f, "
                   "with amqps:// for TLS", what);
}

static int decode(struct str text, struct arena *arena, struct str *to, struct err *err)
{
    char *out = TRY_MEMORY(arena_space(arena, text.len + 1));
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        int high, low;

        if (text.data[i] != '%') {
            out[len++] = text.data[i];
            continue;
        }
        high = i + 2 < text.len ? hash_hex_digit(text.data[i + 1]) : -1;
        low = high >= 0 ? hash_hex_digit(text.data[i + 2]) : -1;
        if (low < 0 || high * 16 + low == 0)
            return refuse(err, "a '%' in it must begin two hexadecimal digits, and not of a zero");
        out[len++] = (char)(high * 16 + low);
        i += 2;
    }
    out[len] = '\0';
    *to = str_span(out, len);
    return 0;
}

/* What is before the first `mark` (the last one where `last`), *rest what is behind it; false where
 * there is none. */
static bool split(struct str text, char mark, bool last, struct str *before, struct str *rest)
{
    const char *at = NULL;

    if (text.len)
        at = last ? memrchr(text.data, mark, text.len) : memchr(text.data, mark, text.len);
    if (!at)
        return false;
    *rest = str_span(at + 1, text.len - (size_t)(at + 1 - text.data));
    *before = str_span(text.data, (size_t)(at - text.data));
    return true;
}

static int read_place(struct str place, struct arena *arena, struct broker_url *parts,
                      struct err *err)
{
    struct str host = place, port = STR_NONE;

    if (place.len && place.data[0] == '[') {
        if (!split(str_span(place.data + 1, place.len - 1), ']', false, &host, &port))
            return refuse(err, "its host has no closing ']'");
        if (port.len && port.data[0] != ':')
            return refuse(err, "there is something between its host and its port");
        port = port.len ? str_span(port.data + 1, port.len - 1) : STR_NONE;
    } else {
        split(place, ':', false, &host, &port);
    }
    parts->port = parts->tls ? PORT_TLS : PORT_CLEAR;
    if (port.data && (!str_to_int64(port, &parts->port) || parts->port < 1 || parts->port > 65535))
        return refuse(err, "its port must be 1 to 65535");
    for (size_t i = 0; i < host.len; i++)
        if ((unsigned char)host.data[i] <= ' ' || strchr("%?#\\\"<>", host.data[i]))
            return refuse(err, "its host has a character that no host has");
    parts->host = arena_str(arena, host);
    return host.len ? 0 : refuse(err, "it has no host");
}

int broker_url_parse(struct str url, struct arena *arena, struct broker_url *parts,
                     struct err *err)
{
    struct str rest, place, path, login, password = STR_NONE;

    *parts = (struct broker_url){.user = STR("guest"), .password = STR("guest"),
                                 .vhost = STR("/")};
    parts->tls = str_starts(url, STR("amqps://"));
    if (!parts->tls && !str_starts(url, STR("amqp://")))
        return refuse(err, "it must begin with amqp:// or amqps://");
    rest = str_span(url.data + 7 + parts->tls, url.len - 7 - parts->tls);
    if (memchr(rest.data, '?', rest.len) || memchr(rest.data, '#', rest.len))
        return refuse(err, "it must have no '?' or '#'");
    if (split(rest, '/', false, &place, &path)) {
        if (path.len && memchr(path.data, '/', path.len))
            return refuse(err, "a '/' in its virtual host is written %2f");
        TRY(decode(path, arena, &parts->vhost, err));
    } else {
        place = rest;
    }
    if (split(place, '@', true, &login, &place)) {
        if (!split(login, ':', false, &login, &password))
            password = STR_NONE;
        TRY(decode(login, arena, &parts->user, err));
        if (password.data)
            TRY(decode(password, arena, &parts->password, err));
    }
    TRY(read_place(place, arena, parts, err));
    return arena->failed ? err_no_memory(err) : 0;
}

bool broker_url_is_loopback(const struct broker_url *parts)
{
    return str_is(parts->host, "localhost") || str_is(parts->host, "::1") ||
           str_starts(parts->host, STR("127."));
}

struct str broker_url_shown(const struct broker_url *parts, struct arena *arena)
{
    bool six = parts->host.len && memchr(parts->host.data, ':', parts->host.len);
    bool usual = str_is(parts->vhost, "/");

    return arena_format(arena, "%s" STR_FMT "%s:%lld%s" STR_FMT, six ? "[" : "",
                        STR_ARG(parts->host), six ? "]" : "", (long long)parts->port,
                        usual ? "" : "/", STR_ARG(usual ? STR("") : parts->vhost));
}
