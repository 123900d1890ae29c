/* Fuzzes the HTTP parser: whatever the bytes and however they are cut, the outcome is the same, no
 * request consumes bytes of the next, and a request that is accepted keeps its promises. The first
 * byte of an input is the length of the pieces. */
#include "net/http_parse.h"
#include "net/url.h"

#define REQUESTS_MAX 64
#define PATH_HASH_START 1469598103934665603u

struct outcome {
    uint32_t requests;
    enum err_code refusal;
    size_t used;
    uint64_t digest; /* of all requests, in order */
};

static uint64_t digest_add(uint64_t digest, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        digest = (digest ^ (unsigned char)text.data[i]) * 1099511628211u;
    return (digest ^ text.len) * 1099511628211u;
}

static void check_url(const struct http_request *request)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct url_query query = url_query_of(request->query);
    struct str path = request->path;
    struct str name;
    struct str value;
    struct err err;

    while (url_next_segment(&path, &name))
        if (url_decode_segment(name, &arena, &value, &err) == 0)
            ASSERT(str_is_utf8(value) && value.len <= name.len);
    while (url_query_next(&query, &arena, &name, &value, &err) > 0)
        ASSERT(str_is_utf8(name));
    arena_deinit(&arena);
}

static void check_request(const struct http_request *request, const struct http_limits *limits,
                          struct outcome *outcome)
{
    ASSERT(request->path.len > 0 && request->path.data[0] != ' ');
    ASSERT(request->path.len + request->query.len <= limits->url_bytes_max);
    ASSERT(request->body.len <= limits->body_bytes_max);
    ASSERT(request->minor_version == 1 || !request->keep_alive);
    ASSERT(request->minor_version == 0 || http_header(request, "HOST").data);
    ASSERT(!http_header(request, "content-length").data ||
           !http_header(request, "transfer-encoding").data);
    ASSERT(!request->headers.len || !memchr(request->headers.data, '\0', request->headers.len));
    check_url(request);
    outcome->digest = digest_add(outcome->digest, request->path);
    outcome->digest = digest_add(outcome->digest, request->query);
    outcome->digest = digest_add(outcome->digest, request->host);
    outcome->digest = digest_add(outcome->digest, request->headers);
    outcome->digest = digest_add(outcome->digest, request->body);
}

static struct outcome run(const char *data, size_t len, size_t step,
                          const struct http_limits *limits)
{
    struct outcome outcome = {0, ERR_NONE, 0, PATH_HASH_START};
    struct http_parse parse;
    size_t end = 0;

    http_parse_init(&parse, limits);
    while (outcome.used < len && outcome.requests < REQUESTS_MAX &&
           parse.state != HTTP_PARSE_REFUSED) {
        struct err err = {.code = ERR_NONE};
        /* Exactly sized, so that reading beyond a piece is seen. */
        size_t piece_len;
        char *piece;

        if (end <= outcome.used)
            end = len - outcome.used < step ? len : outcome.used + step;
        piece_len = end - outcome.used;
        piece = malloc(piece_len);
        ASSERT(piece);
        memcpy(piece, data + outcome.used, piece_len);
        outcome.used += http_parse_feed(&parse, str_span(piece, piece_len), &err);
        free(piece);
        ASSERT(outcome.used <= end);
        if (parse.state == HTTP_PARSE_REFUSED) {
            ASSERT(err.code != ERR_NONE && err.text[0]);
            outcome.refusal = err.code;
        } else if (parse.state == HTTP_PARSE_DONE) {
            check_request(&parse.request, limits, &outcome);
            outcome.requests++;
            http_parse_next(&parse);
        }
    }
    http_parse_deinit(&parse);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;
    struct outcome whole;
    struct outcome cut;

    if (size < 2)
        return 0;
    limits.head_bytes_max = 512; /* within the fuzzer's reach */
    limits.url_bytes_max = 128;
    limits.headers_max = 8;
    limits.body_bytes_max = 256;
    whole = run((const char *)data + 1, size - 1, size, &limits);
    cut = run((const char *)data + 1, size - 1, (size_t)(data[0] % 16) + 1, &limits);
    ASSERT(whole.requests == cut.requests);
    ASSERT(whole.digest == cut.digest);
    /* A refused request may have been refused a few bytes earlier or later, never differently,
     * except that a head above its bound can hide what else was wrong with it. */
    ASSERT((whole.refusal == ERR_NONE) == (cut.refusal == ERR_NONE));
    if (whole.refusal == ERR_NONE)
        ASSERT(whole.used == cut.used);
    return 0;
}
