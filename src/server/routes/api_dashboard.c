/* GET / and GET /assets/{name}: the dashboard, which is a client of /v1 like any other. Its files
 * are made by dashboard/build.mjs and embedded, each also as .gz. Their names carry a hash of what
 * is in them, so that browsers keep them for good; only the page itself is asked for again. A
 * build without them has a page that says how to get them. Nothing secret is in any of this: no
 * token is needed. Loop thread. */
#include "server/api.h"
#include "server/server_int.h"

#include "base/embedded.h"
#include "base/hash.h"

#include <strings.h>

#define NAME_BYTES_MAX 128
#define TAG_BYTES 24

static const struct {
    const char *name;
    const char *value;
} safe_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
};

static const char *content_type(const char *name)
{
    static const struct {
        const char *end;
        const char *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".txt", "text/plain; charset=utf-8"}};
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t end_len = strlen(types[i].end);

        if (len > end_len && strcmp(name + len - end_len, types[i].end) == 0)
            return types[i].type;
    }
    return NULL;
}

/* "gzip", "*;q=0.5", but not "gzip;q=0": what the client says it can read. */
static bool accepts_gzip(struct str header)
{
    const char *end = header.data + header.len;

    for (const char *at = header.data; at && at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        bool named;

        while (at < stop && (*at == ' ' || *at == '\t'))
            at++;
        named = (stop - at >= 4 && strncasecmp(at, "gzip", 4) == 0 &&
                 (stop - at == 4 || strchr("; \t", at[4]))) ||
                (stop > at && *at == '*');
        if (named) {
            const char *q = memchr(at, '=', (size_t)(stop - at));

            return !q || strtod(q + 1, NULL) > 0; /* a header ends in a line break */
        }
        at = comma ? comma + 1 : end;
    }
    return false;
}

/* Of what is sent: the packed form is another representation and has a tag of its own. */
static void make_tag(struct str content, bool packed, char tag[TAG_BYTES])
{
    char hex[17];

    snprintf(hex, sizeof hex, "%016llx",
             (unsigned long long)hash_bytes64(content.data, content.len, 0));
    snprintf(tag, TAG_BYTES, "\"%s%s\"", hex, packed ? "-gz" : "");
}

static bool is_known(struct str header, const char *tag)
{
    return header.data && (str_is(header, "*") ||
                           memmem(header.data, header.len, tag, strlen(tag)) != NULL);
}

/* Browsers then use https for this name alone, whatever a user types. Not for localhost, where
 * the promise would hold for every other program, too. */
static void insist_on_tls(struct api_call *call)
{
    const struct http_request *request = call->request;

    if (request->is_secure && !(request->host.len >= 9 &&
                                strncasecmp(request->host.data, "localhost", 9) == 0))
        http_reply_header(call->exchange, "Strict-Transport-Security", "max-age=31536000");
}

static int reply_file(struct api_call *call, const char *name, const char *cache)
{
    char packed_name[NAME_BYTES_MAX + 8];
    char tag[TAG_BYTES];
    const struct embedded *file = embedded_find(name);
    const struct embedded *packed;
    struct str body;

    ASSERT(file && content_type(name));
    snprintf(packed_name, sizeof packed_name, "%s.gz", name);
    packed = accepts_gzip(http_header(call->request, "Accept-Encoding"))
                 ? embedded_find(packed_name) : NULL;
    body = packed ? str_span(packed->data, packed->len) : str_span(file->data, file->len);
    make_tag(body, packed != NULL, tag);
    for (size_t i = 0; i < sizeof safe_headers / sizeof safe_headers[0]; i++)
        http_reply_header(call->exchange, safe_headers[i].name, safe_headers[i].value);
    insist_on_tls(call);
    http_reply_header(call->exchange, "Cache-Control", cache);
    http_reply_header(call->exchange, "ETag", tag);
    http_reply_header(call->exchange, "Vary", "Accept-Encoding");
    if (is_known(http_header(call->request, "If-None-Match"), tag))
        return call_reply_static(call, 304, NULL, STR_NONE);
    if (packed)
        http_reply_header(call->exchange, "Content-Encoding", "gzip");
    return call_reply_static(call, 200, content_type(name), body);
}

int api_index(struct api_call *call)
{
    const char *name = "dashboard/index.html";

    return reply_file(call, embedded_find(name) ? name : "server/assets/index.html", "no-cache");
}

int api_asset(struct api_call *call)
{
    char name[NAME_BYTES_MAX];
    int len = snprintf(name, sizeof name, "dashboard/" STR_FMT, STR_ARG(call->name));

    if (len > 0 && (size_t)len < sizeof name && strlen(name) == (size_t)len &&
        content_type(name) && !str_is(call->name, "index.html") && embedded_find(name))
        return reply_file(call, name, "public, max-age=31536000, immutable");
    return err_set(&call->err, ERR_NOT_FOUND, "the dashboard has no such file; load / again");
}
