/* The HTTP parser without sockets: requests cut at every byte, hostile ones (F-H4, F-K4), their
 * bounds. */
#include "http_hostile.h"

#include "net/http_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct http_limits test_limits(void)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.body_bytes_max = HOSTILE_BODY_BYTES_MAX;
    return limits;
}

/* Feeds text in pieces of `step` bytes until the request is decided; returns what was consumed. */
static size_t feed_all(struct http_parse *parse, struct str text, size_t step, struct err *err)
{
    size_t at = 0;

    while (at < text.len && parse->state < HTTP_PARSE_DONE) {
        size_t len = text.len - at < step ? text.len - at : step;
        size_t used = 0;

        while (used < len && parse->state < HTTP_PARSE_DONE)
            used += http_parse_feed(parse, str_span(text.data + at + used, len - used), err);
        at += used;
    }
    return at;
}

static void hostile_requests_are_refused_however_they_are_cut(void **state)
{
    struct http_limits limits = test_limits();

    (void)state;
    for (size_t i = 0; i < HOSTILE_COUNT; i++) {
        for (size_t step = 1; step < 1000; step = step < 8 ? step + 1 : step * 5) {
            struct http_parse parse;
            struct err err = {.code = ERR_NONE};

            http_parse_init(&parse, &limits);
            feed_all(&parse, str_of(hostile_requests[i].request), step, &err);
            if (parse.state != HTTP_PARSE_REFUSED ||
                err_http_status(err.code) != hostile_requests[i].status)
                fail_msg("%s, pieces of %zu: state %d, status %d", hostile_requests[i].what, step,
                         parse.state, err_http_status(err.code));
            http_parse_deinit(&parse);
        }
    }
}

static void a_chunked_request_cut_in_two_at_every_byte_is_the_same(void **state)
{
    static const char text[] =
        "\r\nPOST /a/b?c=d&e HTTP/1.1\r\nHost: example:80\r\nTransfer-Encoding: Chunked\r\n"
        "X-Empty:\r\nX-Padded: \t v w \t\r\n\r\n"
        "5\r\nhello\r\n1;name=value;x\r\n,\r\n00A\r\n 0123\r\n678\r\n0\r\nTrailer: yes\r\n\r\n"
        "GET /next";
    struct http_limits limits = test_limits();
    size_t len = sizeof text - 1;

    (void)state;
    for (size_t cut = 0; cut <= len; cut++) {
        struct http_parse parse;
        struct err err;
        size_t used;

        http_parse_init(&parse, &limits);
        used = feed_all(&parse, str_span(text, cut), len, &err);
        if (parse.state < HTTP_PARSE_DONE) {
            assert_int_equal(used, cut);
            used += feed_all(&parse, str_span(text + cut, len - cut), len, &err);
        }
        assert_int_equal(parse.state, HTTP_PARSE_DONE);
        assert_int_equal(used, len - 9); /* nothing of the next request */
        assert_int_equal(parse.request.method, HTTP_POST);
        assert_true(str_is(parse.request.path, "/a/b"));
        assert_true(str_is(parse.request.query, "c=d&e"));
        assert_true(str_is(parse.request.host, "example:80"));
        assert_true(str_is(parse.request.body, "hello, 0123\r\n678"));
        assert_true(str_is(http_header(&parse.request, "x-padded"), "v w"));
        assert_non_null(http_header(&parse.request, "X-Empty").data);
        assert_int_equal(http_header(&parse.request, "X-Empty").len, 0);
        assert_null(http_header(&parse.request, "Trailer").data);
        assert_true(parse.request.keep_alive);
        http_parse_deinit(&parse);
    }
}

static void good_requests_are_understood(void **state)
{
    static const struct {
        const char *request;
        enum http_method method;
        const char *path;
        const char *query; /* NULL = none */
        const char *host;
        const char *body;
        bool keep_alive;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_GET, "/", NULL, "a", "", true},
        {"GET /? HTTP/1.1\r\nHost:\r\n\r\n", HTTP_GET, "/", "", "", "", true},
        {"HEAD /x%20y?z=? HTTP/1.1\r\nhOST:[::1]:80\r\n\r\n", HTTP_HEAD, "/x%20y", "z=?",
         "[::1]:80", "", true},
        {"GET / HTTP/1.0\r\n\r\n", HTTP_GET, "/", NULL, "", "", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", HTTP_GET, "/", NULL, "", "", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", HTTP_GET, "/", NULL, "a", "",
         false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE\r\n\r\n", HTTP_GET, "/", NULL, "a",
         "", false},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_OPTIONS, "*", NULL, "a", "", true},
        {"GET http://b:1/c?d HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_GET, "/c", "d", "b:1", "", true},
        {"GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_GET, "/", NULL, "b", "", true},
        {"PATCH /p HTTP/1.1\r\nHost: a\r\nContent-Length: 003\r\n\r\nabc", HTTP_PATCH, "/p", NULL,
         "a", "abc", true},
        {"PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", HTTP_PUT, "/p", NULL, "a", "",
         true},
        {"DELETE /p HTTP/1.1\r\nHost: a\r\nX: \xC3\xA4\r\n\r\n", HTTP_DELETE, "/p", NULL, "a", "",
         true},
        {"PROPFIND /p HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_OTHER, "/p", NULL, "a", "", true},
        {"GET /p HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, TE\r\n\r\n", HTTP_GET, "/p", NULL,
         "a", "", true},
        {"GET /p HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nConnection: te ,\tClose\r\n\r\n", HTTP_GET,
         "/p", NULL, "a", "", false},
        {"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HTTP_POST,
         "/p", NULL, "a", "", true},
    };
    struct http_limits limits = test_limits();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str text = str_of(rows[i].request);
        struct http_parse parse;
        struct err err = {.code = ERR_NONE};

        http_parse_init(&parse, &limits);
        assert_int_equal(feed_all(&parse, text, 7, &err), text.len);
        if (parse.state != HTTP_PARSE_DONE)
            fail_msg("%s: %s", rows[i].request, err.text);
        assert_int_equal(parse.request.method, rows[i].method);
        assert_true(str_is(parse.request.path, rows[i].path));
        assert_true(str_eq(parse.request.query, str_of(rows[i].query)));
        assert_true((parse.request.query.data == NULL) == (rows[i].query == NULL));
        assert_true(str_is(parse.request.host, rows[i].host));
        assert_true(str_is(parse.request.body, rows[i].body));
        assert_int_equal(parse.request.keep_alive, rows[i].keep_alive);
        http_parse_deinit(&parse);
    }
}

static int refusal_of(const struct http_limits *limits, const struct buf *request)
{
    struct http_parse parse;
    struct err err = {.code = ERR_NONE};
    int status;

    http_parse_init(&parse, limits);
    feed_all(&parse, buf_view(request), 4096, &err);
    status = parse.state == HTTP_PARSE_REFUSED ? err_http_status(err.code) : 0;
    http_parse_deinit(&parse);
    return status;
}

static void fill_bytes(struct buf *buf, char c, size_t count)
{
    while (count--)
        buf_byte(buf, c);
}

static void heads_above_their_bounds_are_refused_with_431(void **state)
{
    struct http_limits limits = test_limits();
    struct buf text = BUF_INIT(1 << 20);

    (void)state;
    /* A head without any end: refused at the bound, not at the deadline. */
    buf_text(&text, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    fill_bytes(&text, 'x', limits.head_bytes_max);
    assert_int_equal(refusal_of(&limits, &text), 431);
    buf_reset(&text);
    fill_bytes(&text, 'G', limits.head_bytes_max + 1);
    assert_int_equal(refusal_of(&limits, &text), 431);
    buf_reset(&text);
    buf_text(&text, "GET /");
    fill_bytes(&text, 'u', limits.url_bytes_max);
    buf_text(&text, " HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(refusal_of(&limits, &text), 431);
    for (uint32_t count = limits.headers_max - 1; count <= limits.headers_max; count++) {
        buf_reset(&text);
        buf_text(&text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (uint32_t i = 0; i < count; i++)
            buf_text(&text, "X: y\r\n");
        buf_text(&text, "\r\n");
        assert_int_equal(refusal_of(&limits, &text), count < limits.headers_max ? 0 : 431);
    }
    buf_deinit(&text);
}

static void extensions_and_trailers_above_their_bound_are_refused(void **state)
{
    struct http_limits limits = test_limits();
    struct buf text = BUF_INIT(1 << 20);

    (void)state;
    buf_text(&text, CHUNKED "1;");
    fill_bytes(&text, 'e', HTTP_CHUNK_EXTRA_BYTES_MAX + 1);
    assert_int_equal(refusal_of(&limits, &text), 431);
    buf_reset(&text);
    buf_text(&text, CHUNKED "0\r\n");
    for (int i = 0; i < HTTP_CHUNK_EXTRA_BYTES_MAX / 3; i++)
        buf_text(&text, "X: y\r\n");
    assert_int_equal(refusal_of(&limits, &text), 431);
    buf_deinit(&text);
}

static void many_small_chunks_stop_at_the_body_limit(void **state)
{
    struct http_limits limits = test_limits();
    struct buf text = BUF_INIT(1 << 20);

    (void)state;
    limits.body_bytes_max = 10;
    for (int count = 10; count <= 11; count++) {
        buf_reset(&text);
        buf_text(&text, CHUNKED);
        for (int i = 0; i < count; i++)
            buf_text(&text, "1\r\nx\r\n");
        buf_text(&text, "0\r\n\r\n");
        assert_int_equal(refusal_of(&limits, &text), count == 10 ? 0 : 413);
    }
    buf_deinit(&text);
}

static void the_next_request_starts_clean(void **state)
{
    struct str text = STR("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\n\r\nabc"
                          "GET /2 HTTP/1.1\r\nHost: b\r\n\r\n");
    struct http_limits limits = test_limits();
    struct http_parse parse;
    struct err err;
    size_t used;

    (void)state;
    http_parse_init(&parse, &limits);
    assert_false(http_parse_has_begun(&parse));
    used = feed_all(&parse, text, text.len, &err);
    assert_true(http_parse_has_begun(&parse));
    assert_true(str_is(parse.request.body, "abc"));
    http_parse_next(&parse);
    assert_false(http_parse_has_begun(&parse));
    assert_null(parse.body.data);
    used += feed_all(&parse, str_span(text.data + used, text.len - used), text.len, &err);
    assert_int_equal(used, text.len);
    assert_true(str_is(parse.request.path, "/2"));
    assert_null(http_header(&parse.request, "X").data);
    assert_int_equal(parse.request.body.len, 0);
    http_parse_deinit(&parse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_requests_are_refused_however_they_are_cut),
        cmocka_unit_test(a_chunked_request_cut_in_two_at_every_byte_is_the_same),
        cmocka_unit_test(good_requests_are_understood),
        cmocka_unit_test(heads_above_their_bounds_are_refused_with_431),
        cmocka_unit_test(extensions_and_trailers_above_their_bound_are_refused),
        cmocka_unit_test(many_small_chunks_stop_at_the_body_limit),
        cmocka_unit_test(the_next_request_starts_clean),
    };

    return cmocka_run_group_tests_name("http_parse", tests, NULL, NULL);
}
