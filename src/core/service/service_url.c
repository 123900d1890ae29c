/* See the header. Values that are "." or ".." are refused: no encoding keeps others from reading
 * them as steps of the path. */
#include "core/service/service_url.h"

#include "base/json.h"
#include "core/bounds.h"

static const char *const verbs[SERVICE_VERB_COUNT] = {
    [SERVICE_POST] = "POST",     [SERVICE_PUT] = "PUT", [SERVICE_PATCH] = "PATCH",
    [SERVICE_DELETE] = "DELETE", [SERVICE_GET] = "GET"};

const char *service_verb_word(enum service_verb verb)
{
    return verbs[verb];
}

bool service_verb_has_body(enum service_verb verb)
{
    return verb == SERVICE_POST || verb == SERVICE_PUT || verb == SERVICE_PATCH;
}

/* ---- schemes ---- */

static const struct scheme {
    const char *word;
    bool is_clear, is_grpc;
} schemes[] = {{"https://", false, false},
               {"http://", true, false},
               {"grpcs://", false, true},
               {"grpc://", true, true}};

static const struct scheme *scheme_of(struct str url)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (str_starts(url, str_of(schemes[i].word)))
            return &schemes[i];
    return NULL;
}

static size_t scheme_len(struct str url)
{
    const struct scheme *scheme = scheme_of(url);

    return scheme ? strlen(scheme->word) : 0;
}

/* ---- methods ---- */

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

static void write_encoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (is_unreserved(text.data[i]))
            buf_byte(out, text.data[i]);
        else
            buf_format(out, "%%%02X", (unsigned char)text.data[i]);
}

/* A verb and a path, or a name: then path is the name. */
static int split_method(struct str method, enum service_verb *verb, struct str *path,
                        struct err *err)
{
    const char *space = method.len ? memchr(method.data, ' ', method.len) : NULL;
    size_t len = space ? (size_t)(space - method.data) : 0;

    *verb = SERVICE_POST;
    *path = method;
    if (!space)
        return 0;
    for (int i = 0; i < SERVICE_VERB_COUNT; i++) {
        if (!str_is(str_span(method.data, len), verbs[i]))
            continue;
        *verb = (enum service_verb)i;
        *path = str_span(space + 1, method.len - len - 1);
        if (path->len && path->data[0] == '/')
            return 0;
        return err_set(err, ERR_INVALID, "the path of the method '" STR_FMT "' must begin with '/'",
                       STR_ARG(method));
    }
    return err_set(err, ERR_INVALID, "the method '" STR_FMT "' must be a name, or a verb (GET, "
                   "POST, PUT, PATCH, DELETE) and a path such as 'PUT /orders/{payload/id}'",
                   STR_ARG(method));
}

static bool is_root(struct str root)
{
    return str_is(root, "payload") || str_is(root, "data") || str_is(root, "metadata") ||
           str_is(root, "task");
}

/* Between the braces: "payload/customer/id" as its root and the pointer behind it. */
static bool split_place(struct str place, struct str *root, struct str *pointer)
{
    const char *slash = place.len ? memchr(place.data, '/', place.len) : NULL;

    if (!slash)
        return false;
    *root = str_span(place.data, (size_t)(slash - place.data));
    *pointer = str_span(slash, place.len - root->len);
    if (str_is(*root, "task"))
        return str_is(*pointer, "/id");
    return is_root(*root) && json_pointer_valid(*pointer);
}

static int refuse_place(struct str place, struct err *err)
{
    return err_set(err, ERR_INVALID, "'{" STR_FMT "}' in a method must be {task/id}, or a JSON "
                   "pointer into the task such as {payload/id}, {data/id} or {metadata/id}",
                   STR_ARG(place));
}

/* The next {…} of a path: what stands before it, and what is in it. 0 = there is none. */
static int next_place(struct str *path, struct str *before, struct str *place, struct err *err)
{
    const char *open = path->len ? memchr(path->data, '{', path->len) : NULL;
    const char *close = open ? memchr(open, '}', path->len - (size_t)(open - path->data)) : NULL;

    *before = open ? str_span(path->data, (size_t)(open - path->data)) : *path;
    if (before->len && memchr(before->data, '}', before->len))
        return err_set(err, ERR_INVALID, "a method has a '}' without a '{'");
    if (!open)
        return 0;
    if (!close)
        return err_set(err, ERR_INVALID, "a method has a '{' without a '}'");
    *place = str_span(open + 1, (size_t)(close - open - 1));
    *path = str_span(close + 1, path->len - (size_t)(close + 1 - path->data));
    return 1;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || (unsigned char)text.data[i] >= 127 ||
            strchr("\\#\"<>^`|*", text.data[i]))
            return false;
    return true;
}

int service_method_check(struct str method, struct err *err)
{
    struct str path, before, place, root, pointer;
    enum service_verb verb;
    int rc;

    TRY(split_method(method, &verb, &path, err));
    if (method.len && method.data[method.len - 1] == '*')
        return err_set(err, ERR_INVALID, "the method '" STR_FMT "' must not end with '*'",
                       STR_ARG(method));
    if (path.len == 0 || path.data[0] != '/')
        return 0;
    if (!is_plain(path))
        return err_set(err, ERR_INVALID, "the path of the method '" STR_FMT "' must be of "
                       "characters that stand in a URL; encode others as %%XX",
                       STR_ARG(method));
    while ((rc = next_place(&path, &before, &place, err)) > 0)
        if (!split_place(place, &root, &pointer))
            return refuse_place(place, err);
    return rc;
}

/* ---- values ---- */

static struct str root_value(const struct service_values *values, struct str root)
{
    return str_is(root, "payload") ? values->payload
           : str_is(root, "data")  ? values->data
                                   : values->metadata;
}

/* As text; absent when the task has no value there that can stand in a URL. */
static struct str value_text(const struct service_values *values, struct str root,
                             struct str pointer, struct arena *arena)
{
    struct str value = root_value(values, root);

    if (str_is(root, "task"))
        return values->id;
    value = value.data ? json_pointer(value, pointer, arena) : STR_NONE;
    if (!value.data)
        return STR_NONE;
    switch (json_kind(value)) {
    case JSON_STRING:
        return json_string(value, arena);
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
        return value;
    default:
        return STR_NONE;
    }
}

static int write_value(const struct service_values *values, struct str place, struct buf *out,
                       struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str root, pointer, text;

    if (!split_place(place, &root, &pointer))
        return refuse_place(place, err);
    text = value_text(values, root, pointer, &arena);
    if (str_empty(text))
        return err_set(err, ERR_INVALID, "the task has no text, number or boolean at '" STR_FMT
                       "', which the method puts into the URL", STR_ARG(place));
    if (str_is(text, ".") || str_is(text, ".."))
        return err_set(err, ERR_INVALID, "the value at '" STR_FMT "' is '" STR_FMT "', which would "
                       "change the path of the URL", STR_ARG(place), STR_ARG(text));
    write_encoded(out, text);
    return 0;
}

static int write_path(struct str path, const struct service_values *values, struct buf *out,
                      struct err *err)
{
    struct str before, place;
    int rc;

    while ((rc = next_place(&path, &before, &place, err)) > 0) {
        buf_str(out, before);
        TRY(write_value(values, place, out, err));
    }
    if (rc == 0)
        buf_str(out, before);
    return rc;
}

int service_url_write(struct str url, struct str method, const struct service_values *values,
                      enum service_verb *verb, struct buf *out, struct err *err)
{
    struct str path;

    while (url.len && url.data[url.len - 1] == '/')
        url.len--;
    TRY(service_method_check(method, err));
    TRY(split_method(method, verb, &path, err));
    if (service_url_is_grpc(url)) { /* for libcurl, which makes its connections */
        buf_text(out, service_url_is_clear(url) ? "http://" : "https://");
        url = str_span(url.data + scheme_len(url), url.len - scheme_len(url));
    }
    buf_str(out, url);
    if (path.len && path.data[0] == '/') {
        TRY(write_path(path, values, out, err));
    } else if (path.len) {
        buf_byte(out, '/');
        write_encoded(out, path);
    }
    if (out->failed)
        return err_set(err, ERR_INVALID, "the URL of the call is longer than %d bytes",
                       SERVICE_URL_BYTES);
    return 0;
}

/* ---- addresses ---- */

bool service_url_is_clear(struct str url)
{
    const struct scheme *scheme = scheme_of(url);

    return scheme && scheme->is_clear;
}

bool service_url_is_grpc(struct str url)
{
    const struct scheme *scheme = scheme_of(url);

    return scheme && scheme->is_grpc;
}

void service_url_place(struct str url, struct str *host, int64_t *port)
{
    size_t start = scheme_len(url), end = start;
    struct str digits = STR_NONE;

    while (end < url.len && url.data[end] != '/')
        end++;
    *host = str_span(url.data + start, end - start);
    *port = service_url_is_clear(url) ? 80 : 443;
    for (size_t i = host->len; i > 0 && host->data[i - 1] != ']'; i--)
        if (host->data[i - 1] == ':') {
            digits = str_span(host->data + i, host->len - i);
            host->len = i - 1;
            break;
        }
    if (digits.data && (!str_to_int64(digits, port) || *port < 1 || *port > 65535))
        *port = 0;
    if (host->len > 1 && host->data[0] == '[' && host->data[host->len - 1] == ']')
        *host = str_span(host->data + 1, host->len - 2);
}

bool service_url_valid(struct str url)
{
    struct str host;
    int64_t port;

    if (!scheme_len(url) || !is_plain(url) || memchr(url.data, '@', url.len) ||
        memchr(url.data, '?', url.len) || memchr(url.data, '{', url.len))
        return false;
    service_url_place(url, &host, &port);
    if (service_url_is_grpc(url) && memchr(url.data + scheme_len(url), '/',
                                           url.len - scheme_len(url)))
        return false; /* a gRPC service has no path */
    return host.len > 0 && port > 0;
}

bool service_url_is_loopback(struct str url)
{
    struct str host;
    int64_t port;

    service_url_place(url, &host, &port);
    return str_is(host, "localhost") || str_is(host, "::1") || str_is(host, "127.0.0.1");
}

/* ---- names ---- */

bool service_name_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_unreserved(name.data[i]))
            return false;
    return name.len > 0 && name.len <= BOUND_SERVICE_BYTES;
}

struct str service_type(struct str service, struct str method, struct arena *arena)
{
    return arena_format(arena, SERVICE_TYPE_PREFIX STR_FMT "/" STR_FMT, STR_ARG(service),
                        STR_ARG(method));
}

bool service_type_parse(struct str type, struct str *service, struct str *method)
{
    const struct str prefix = STR(SERVICE_TYPE_PREFIX);
    const char *slash;

    if (!str_starts(type, prefix))
        return false;
    type = str_span(type.data + prefix.len, type.len - prefix.len);
    slash = type.len ? memchr(type.data, '/', type.len) : NULL;
    if (!slash)
        return false;
    *service = str_span(type.data, (size_t)(slash - type.data));
    *method = str_span(slash + 1, type.len - service->len - 1);
    if (method->len == 0)
        *method = STR_NONE;
    return service->len > 0;
}
