/* A stricter grammar than that of URLs: what is outside of it is refused. Pure; any thread. */
#include "core/access/jwks_url.h"

static bool is_plain(struct str url)
{
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.data[i] <= ' ' || (unsigned char)url.data[i] >= 127 ||
            strchr("\\#\"<>^`{|}@", url.data[i]))
            return false;
    return true;
}

static size_t scheme_len(struct str url)
{
    return str_starts(url, STR("https://")) ? 8 : str_starts(url, STR("http://")) ? 7 : 0;
}

void jwks_url_split(struct str url, struct str *origin, struct str *path)
{
    size_t at = scheme_len(url);

    while (at < url.len && url.data[at] != '/' && url.data[at] != '?')
        at++;
    *origin = str_span(url.data, at);
    *path = at < url.len ? str_span(url.data + at, url.len - at) : STR("");
}

static struct str host_of(struct str url)
{
    struct str origin, path;
    size_t start = scheme_len(url), end;

    jwks_url_split(url, &origin, &path);
    for (end = start; end < origin.len && origin.data[end] != ':'; end++)
        if (origin.data[end] == '[')
            while (end + 1 < origin.len && origin.data[end] != ']')
                end++;
    return str_span(origin.data + start, end - start);
}

bool jwks_url_is_clear(struct str url)
{
    return scheme_len(url) == 7;
}

bool jwks_url_allowed(struct str url)
{
    struct str host;

    if (!scheme_len(url) || !is_plain(url))
        return false;
    host = host_of(url);
    if (host.len == 0)
        return false;
    return !jwks_url_is_clear(url) || str_is(host, "127.0.0.1") || str_is(host, "localhost") ||
           str_is(host, "[::1]");
}
