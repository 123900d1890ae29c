/* Reading and checking headers of span exports: see span_headers.h. Messages say which one is wrong
 * by its number: even a name may be half of a secret that was written the wrong way round. */
#include "outbound/span_headers.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

struct headers {
    struct http_client *client;
    const char *source; /* as messages name it */
    uint32_t count;
    struct err *err;
};

static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return name.len > 0;
}

/* Printable ASCII, blanks inside. */
static bool is_value(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i] < ' ' || value.data[i] > '~')
            return false;
    return value.len > 0;
}

/* Those that are the client's own business: a second one would break the request. */
static bool is_ours(struct str name)
{
    static const char *const names[] = {"content-type", "content-length", "transfer-encoding",
                                        "host", "connection", "expect"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (name.len == strlen(names[i]) && strncasecmp(name.data, names[i], name.len) == 0)
            return true;
    return false;
}

static struct str trim(struct str text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = str_span(text.data + 1, text.len - 1);
    while (text.len && strchr(" \t\r", text.data[text.len - 1]) && text.data[text.len - 1])
        text.len--;
    return text;
}

static int add(struct headers *headers, struct str name, struct str value)
{
    uint32_t nth = ++headers->count;

    name = trim(name);
    value = trim(value);
    if (nth > SPAN_HEADERS_MAX)
        return err_set(headers->err, ERR_INVALID, "%s has more than %d headers", headers->source,
                       SPAN_HEADERS_MAX);
    if (!is_token(name) || is_ours(name))
        return err_set(headers->err, ERR_INVALID, "header %u of %s has no name that can be sent; "
                       "write a name such as authorization", nth, headers->source);
    if (!is_value(value))
        return err_set(headers->err, ERR_INVALID, "header %u of %s has no value, or one with "
                       "characters that cannot be sent", nth, headers->source);
    return http_client_add_header(headers->client, name, value, headers->err);
}

/* %20 and the like; a per cent sign without two digits stands for itself. */
static void decode(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.data[i] == '%' && i + 2 < text.len;
        int high = escaped ? hash_hex_digit(text.data[i + 1]) : -1;
        int low = escaped ? hash_hex_digit(text.data[i + 2]) : -1;

        if (high >= 0 && low >= 0) {
            buf_byte(out, (char)(high * 16 + low));
            i += 2;
        } else {
            buf_byte(out, text.data[i]);
        }
    }
}

/* The front of text up to a byte, which is taken off with it. */
static struct str cut_at(struct str *text, char byte)
{
    const char *found = text->len ? memchr(text->data, byte, text->len) : NULL;
    struct str front = str_span(text->data, found ? (size_t)(found - text->data) : text->len);
    size_t used = front.len + (found != NULL);

    *text = str_span(text->data + used, text->len - used);
    return front;
}

static int add_setting(struct headers *headers, struct str text)
{
    int rc = 0;

    while (rc == 0 && text.len) {
        BUF_AUTO struct buf decoded = BUF_INIT(SPAN_HEADERS_BYTES_MAX);
        struct str value = cut_at(&text, ',');
        struct str name = cut_at(&value, '=');

        decode(trim(value), &decoded);
        rc = decoded.failed ? err_no_memory(headers->err)
                            : add(headers, name, buf_view(&decoded));
    }
    return rc;
}

static int add_lines(struct headers *headers, struct str text)
{
    while (text.len) {
        struct str value = cut_at(&text, '\n');
        struct str name;

        if (trim(value).len == 0 || value.data[0] == '#')
            continue;
        name = cut_at(&value, ':');
        TRY(add(headers, name, value));
    }
    return 0;
}

static int read_file(struct str path, char *text, size_t cap, size_t *len, struct err *err)
{
    char name[4097];
    ssize_t got = 0;
    int fd;

    snprintf(name, sizeof name, STR_FMT, STR_ARG(path));
    fd = open(name, O_RDONLY | O_CLOEXEC);
    *len = 0;
    while (fd >= 0 && *len < cap && (got = read(fd, text + *len, cap - *len)) > 0)
        *len += (size_t)got;
    if (fd < 0 || got < 0)
        err_set(err, ERR_IO, "cannot read tracing.headers_file %s: %s", name, strerror(errno));
    else if (*len == cap)
        err_set(err, ERR_INVALID, "tracing.headers_file %s is larger than %d bytes", name,
                SPAN_HEADERS_BYTES_MAX);
    if (fd >= 0)
        close(fd);
    return -(int)err->code;
}

int span_headers_add(const struct settings *settings, struct http_client *client, struct err *err)
{
    struct headers headers = {.client = client, .source = "tracing.headers", .err = err};
    char text[SPAN_HEADERS_BYTES_MAX + 1];
    size_t len;
    int rc = 0;

    *err = (struct err){0};
    if (settings->tracing.headers.data)
        rc = add_setting(&headers, settings->tracing.headers);
    if (rc < 0 || !settings->tracing.headers_file.data)
        return rc;
    headers.source = "tracing.headers_file";
    headers.count = 0;
    rc = read_file(settings->tracing.headers_file, text, sizeof text, &len, err);
    if (rc == 0)
        rc = add_lines(&headers, str_span(text, len));
    explicit_bzero(text, sizeof text);
    return rc;
}
