/* The rules for request lines and headers. When two programs could read a head differently, it is
 * refused: that difference is what request smuggling lives on. */
#include "net/http_head.h"

/* Headers of which a second one is refused; the index is the bit in `seen`. */
enum single { SINGLE_HOST, SINGLE_LENGTH, SINGLE_CODING, SINGLE_EXPECT, SINGLE_COUNT_KNOWN };
static const struct str single_names[] = {
    [SINGLE_HOST] = {"host", 4},
    [SINGLE_LENGTH] = {"content-length", 14},
    [SINGLE_CODING] = {"transfer-encoding", 17},
    [SINGLE_EXPECT] = {"expect", 6},
    {"content-type", 12},
    {"authorization", 13},
    {"idempotency-key", 15},
    {"if-match", 8},
    {"perdura-namespace", 17},
};
#define SINGLES_COUNT (sizeof single_names / sizeof single_names[0])

struct fields {
    struct str values[SINGLES_COUNT]; /* data NULL = absent */
};

bool http_is_token_byte(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

bool http_is_value_byte(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 127);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* in any case of ASCII letters */
static bool name_eq(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

/* Takes the next line off *rest, without its CRLF; the caller has made sure that one is there. */
static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->data) + 1 : rest->len;
    struct str line = str_span(rest->data, len >= 2 ? len - 2 : 0);

    rest->data += len;
    rest->len -= len;
    return line;
}

static struct str trim(struct str text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool split_field(struct str line, struct str *name, struct str *value)
{
    const char *colon = memchr(line.data, ':', line.len);

    if (!colon || colon == line.data)
        return false;
    *name = str_span(line.data, (size_t)(colon - line.data));
    *value = trim(str_span(colon + 1, line.len - name->len - 1));
    return true;
}

/* False: not a registered method. Those we have no name for are HTTP_OTHER. */
static bool method_of(struct str word, enum http_method *method)
{
    static const struct {
        const char *word;
        enum http_method method;
    } methods[] = {{"GET", HTTP_GET},       {"POST", HTTP_POST},     {"PATCH", HTTP_PATCH},
                   {"PUT", HTTP_PUT},       {"DELETE", HTTP_DELETE}, {"HEAD", HTTP_HEAD},
                   {"OPTIONS", HTTP_OPTIONS}};
    static const char *const others[] = {
        "ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "LINK", "LOCK", "MERGE", "MKACTIVITY",
        "MKCALENDAR", "MKCOL", "MOVE", "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT",
        "SEARCH", "TRACE", "UNBIND", "UNLINK", "UNLOCK"};

    *method = HTTP_OTHER;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (str_is(word, methods[i].word)) {
            *method = methods[i].method;
            return true;
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (str_is(word, others[i]))
            return true;
    return false;
}

/* Host and the authority of an absolute target: no blank, no slash, no user information. */
static bool is_authority(struct str text)
{
    for (size_t i = 0; text.data && i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c <= ' ' || c >= 127 || strchr("/\\?#@,\"<>^`{|}", c))
            return false;
    }
    return true;
}

/* Splits "http://host/path" into request->host and the rest; leaves "/path" alone. */
static bool strip_authority(struct str *target, struct http_request *request)
{
    const char *slash;
    size_t scheme_len;
    size_t len;

    if (target->data[0] == '/')
        return true;
    if (request->method == HTTP_OPTIONS && str_is(*target, "*"))
        return true;
    if (target->len > 7 && name_eq(str_span(target->data, 7), STR("http://")))
        scheme_len = 7;
    else if (target->len > 8 && name_eq(str_span(target->data, 8), STR("https://")))
        scheme_len = 8;
    else
        return false;
    *target = str_span(target->data + scheme_len, target->len - scheme_len);
    slash = memchr(target->data, '/', target->len);
    len = slash ? (size_t)(slash - target->data) : target->len;
    request->host = str_span(target->data, len);
    if (len == 0 || !is_authority(request->host))
        return false;
    *target = slash ? str_span(slash, target->len - len) : STR("/");
    return true;
}

static int parse_target(struct str target, struct http_request *request, struct err *err)
{
    const char *mark;

    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.data[i];

        if (c <= ' ' || c >= 127 || c == '#')
            return err_set(err, ERR_MALFORMED, "the request target holds a forbidden byte");
    }
    if (!strip_authority(&target, request))
        return err_set(err, ERR_MALFORMED, "the request target is neither a path nor a URL");
    mark = memchr(target.data, '?', target.len);
    request->path = target;
    request->query = STR_NONE;
    if (mark) {
        request->path.len = (size_t)(mark - target.data);
        request->query = str_span(mark + 1, target.len - request->path.len - 1);
    }
    return 0;
}

static int parse_request_line(struct str line, const struct http_limits *limits,
                              struct http_request *request, struct err *err)
{
    const char *first = memchr(line.data, ' ', line.len);
    size_t method_len = first ? (size_t)(first - line.data) : 0;
    struct str target;

    for (size_t i = 0; i < method_len; i++)
        if (!http_is_token_byte(line.data[i]))
            method_len = 0;
    /* "M / HTTP/1.1": two single blanks, and the version is always the last eight bytes. */
    if (method_len == 0 || line.len < method_len + 11 || line.data[line.len - 9] != ' ')
        return err_set(err, ERR_MALFORMED, "the request line is malformed");
    if (memcmp(line.data + line.len - 8, "HTTP/1.", 7) != 0 ||
        (line.data[line.len - 1] != '0' && line.data[line.len - 1] != '1'))
        return err_set(err, ERR_MALFORMED, "the protocol is neither HTTP/1.1 nor HTTP/1.0");
    request->minor_version = (uint8_t)(line.data[line.len - 1] - '0');
    if (!method_of(str_span(line.data, method_len), &request->method))
        return err_set(err, ERR_METHOD, "the method is unknown");
    target = str_span(first + 1, line.len - method_len - 10);
    if (target.len > limits->url_bytes_max)
        return err_set(err, ERR_HEADERS_TOO_LARGE, "the request target exceeds %zu bytes",
                       limits->url_bytes_max);
    return parse_target(target, request, err);
}

static int check_field(struct str line, struct fields *fields, struct err *err)
{
    struct str name;
    struct str value;

    if (!split_field(line, &name, &value))
        return err_set(err, ERR_MALFORMED, "a header line has no name");
    for (size_t i = 0; i < name.len; i++)
        if (!http_is_token_byte(name.data[i]))
            return err_set(err, ERR_MALFORMED,
                           "a header name holds a blank or another forbidden byte");
    for (size_t i = 0; i < value.len; i++)
        if (!http_is_value_byte(value.data[i]))
            return err_set(err, ERR_MALFORMED, "a header value holds a control character");
    for (size_t i = 0; i < SINGLES_COUNT; i++) {
        if (!name_eq(name, single_names[i]))
            continue;
        if ((i == SINGLE_LENGTH || i == SINGLE_CODING) && memchr(line.data, '\t', line.len))
            return err_set(err, ERR_MALFORMED, "a tab beside the length of the body: some programs "
                           "take it for part of the value");
        if (fields->values[i].data)
            return err_set(err, ERR_MALFORMED, "the header %s is given twice",
                           single_names[i].data);
        fields->values[i] = value;
    }
    return 0;
}

static int check_fields(struct str lines, const struct http_limits *limits,
                        struct fields *fields, struct err *err)
{
    uint32_t count = 0;

    while (lines.len) {
        if (++count > limits->headers_max)
            return err_set(err, ERR_HEADERS_TOO_LARGE, "more than %u headers",
                           limits->headers_max);
        TRY(check_field(next_line(&lines), fields, err));
    }
    return 0;
}

/* Digits only: no sign, no list, no other base. */
static int parse_length(struct str text, size_t max, uint64_t *length, struct err *err)
{
    bool large = false;

    *length = 0;
    if (text.len == 0)
        return err_set(err, ERR_MALFORMED, "Content-Length is empty");
    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.data[i] - '0';

        if (digit > 9)
            return err_set(err, ERR_MALFORMED, "Content-Length is not a plain number");
        large = large || *length > max;
        *length = large ? *length : *length * 10 + digit;
    }
    if (large || *length > max)
        return err_set(err, ERR_TOO_LARGE, "the request body exceeds %zu bytes", max);
    return 0;
}

static int check_framing(const struct fields *fields, const struct http_limits *limits,
                         const struct http_request *request, struct http_head *out,
                         struct err *err)
{
    struct str length = fields->values[SINGLE_LENGTH];
    struct str coding = fields->values[SINGLE_CODING];

    *out = (struct http_head){false, 0};
    if (!coding.data)
        return length.data ? parse_length(length, limits->body_bytes_max, &out->length, err) : 0;
    if (length.data)
        return err_set(err, ERR_MALFORMED, "Content-Length and Transfer-Encoding together");
    if (request->minor_version == 0)
        return err_set(err, ERR_MALFORMED, "HTTP/1.0 has no Transfer-Encoding");
    if (!name_eq(coding, STR("chunked")))
        return err_set(err, ERR_MALFORMED, "the only Transfer-Encoding known is chunked");
    out->chunked = true;
    return 0;
}

static int check_host(const struct fields *fields, struct http_request *request, struct err *err)
{
    struct str host = fields->values[SINGLE_HOST];

    if (!host.data && request->minor_version == 1)
        return err_set(err, ERR_MALFORMED, "the header Host is missing");
    if (!is_authority(host))
        return err_set(err, ERR_MALFORMED, "the header Host is malformed");
    if (!request->host.data) /* RFC 9112 section 3.2.2: an absolute target goes before Host */
        request->host = host.data ? host : STR("");
    return 0;
}

/* "close" in any Connection header, which may be a list and may be given several times. */
static bool asks_to_close(struct str lines)
{
    while (lines.len) {
        struct str name, value;

        if (!split_field(next_line(&lines), &name, &value) ||
            !name_eq(name, STR("connection")))
            continue;
        while (value.len) {
            const char *comma = memchr(value.data, ',', value.len);
            size_t len = comma ? (size_t)(comma - value.data) : value.len;

            if (name_eq(trim(str_span(value.data, len)), STR("close")))
                return true;
            len += comma != NULL;
            value = str_span(value.data + len, value.len - len);
        }
    }
    return false;
}

/* A CR that no LF follows hides a line end from some programs and shows it to others. */
static bool has_bare_cr(struct str head)
{
    const char *at = head.data;
    const char *end = head.data + head.len;

    while ((at = memchr(at, '\r', (size_t)(end - at)))) {
        if (at + 1 == end || at[1] != '\n')
            return true;
        at += 2;
        if (at == end)
            break;
    }
    return false;
}

int http_head_parse(struct str head, const struct http_limits *limits,
                    struct http_request *request, struct http_head *out, struct err *err)
{
    struct str rest = head;
    struct fields fields;
    int rc;

    memset(&fields, 0, sizeof fields);
    *request = (struct http_request){0};
    if (has_bare_cr(head))
        return err_set(err, ERR_MALFORMED, "a line of the request head has a bare CR");
    TRY(parse_request_line(next_line(&rest), limits, request, err));
    request->headers = str_span(rest.data, rest.len - 2); /* without the empty line */
    rc = check_fields(request->headers, limits, &fields, err);
    if (rc == 0)
        rc = check_host(&fields, request, err);
    if (rc == 0)
        rc = check_framing(&fields, limits, request, out, err);
    request->keep_alive = request->minor_version == 1 && !asks_to_close(request->headers);
    request->expects_continue =
        request->minor_version == 1 && fields.values[SINGLE_EXPECT].data &&
        name_eq(fields.values[SINGLE_EXPECT], STR("100-continue"));
    return rc;
}

struct str http_header(const struct http_request *request, const char *name)
{
    struct str rest = request->headers;
    struct str wanted = str_of(name);
    struct str found;
    struct str value;

    while (rest.len)
        if (split_field(next_line(&rest), &found, &value) && name_eq(found, wanted))
            return value;
    return STR_NONE;
}

uint32_t http_headers_count(const struct http_request *request, struct str name,
                            struct str *value)
{
    struct str rest = request->headers;
    struct str found, text;
    uint32_t count = 0;

    *value = STR_NONE;
    while (rest.len)
        if (split_field(next_line(&rest), &found, &text) && name_eq(found, name) && count++ == 0)
            *value = text;
    return count;
}
