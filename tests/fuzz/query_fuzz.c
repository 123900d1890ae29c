/* libFuzzer: any bytes as the target of a request, "METHOD /path?query": routing, the name inside
 * the path, the parameters of the route, and everything a list reads from them: numbers, times,
 * ids, cursors. What is accepted is in its range and a cursor that was read is written the same. */
#include <stddef.h>
#include <stdint.h>

#include "core/bounds.h"
#include "server/page.h"
#include "server/router.h"
#include "server/server_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_parameter(const struct route *route, const char *name)
{
    for (int i = 0; i < ROUTE_PARAMETERS_MAX && route->parameters[i]; i++)
        if (strcmp(route->parameters[i], name) == 0)
            return true;
    return false;
}

static void check_refusal(const struct api_call *call)
{
    ASSERT(call->err.code == ERR_INVALID && call->err.text[0]);
    ASSERT(str_is_utf8(str_of(call->err.text)));
}

static void check_cursor(struct api_call *call, char kind)
{
    struct buf out = BUF_INIT(256);
    int64_t key = -1;

    if (call_cursor(call, kind, &key) < 0) {
        check_refusal(call);
    } else if (key >= 0) {
        call_write_cursor(&out, kind, key, true);
        ASSERT(memmem(out.data, out.len, call_parameter(call, "cursor").data, 17));
    }
    buf_deinit(&out);
}

static void check_page(struct api_call *call)
{
    struct page page = {0};
    uint32_t limit = 0;

    if (page_parse(call, &page) < 0)
        check_refusal(call);
    else
        ASSERT(page.limit >= 1 && page.limit <= BOUND_LIST_LIMIT);
    if (call_limit(call, 7, 9, &limit) < 0)
        check_refusal(call);
    else
        ASSERT(limit >= 1 && limit <= 9);
    check_cursor(call, 't');
    check_cursor(call, 'p');
}

static void check_values(struct api_call *call)
{
    const char *const *names = call->route->parameters;

    for (int i = 0; i < ROUTE_PARAMETERS_MAX && names[i]; i++) {
        struct str text = call_parameter(call, names[i]);
        struct uuid id = {0};
        int64_t number = 5;
        int64_t time_us = 0;

        ASSERT(!text.data || (text.len > 0 && str_is_utf8(text)));
        if (call_parameter_int(call, names[i], 0, 1000, &number) < 0)
            check_refusal(call);
        ASSERT(number >= 0 && number <= 1000);
        if (call_parameter_time(call, names[i], &time_us) < 0)
            check_refusal(call);
        ASSERT(time_us >= CLOCK_MIN_US && time_us <= CLOCK_MAX_US);
        if (call_parameter_uuid(call, names[i], &id) < 0)
            check_refusal(call);
    }
}

static void run(enum http_method method, struct str path, struct str query)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct api_call call = {.arena = &arena};
    char allow[ROUTER_ALLOW_BYTES];
    struct str names[ROUTE_NAMES_MAX];
    int rc = router_find(method, path, &arena, &call.route, names, allow, &call.err);

    if (rc < 0) {
        ASSERT(call.err.code == ERR_NOT_FOUND || call.err.code == ERR_METHOD ||
               call.err.code == ERR_MALFORMED);
        goto out;
    }
    call.name = names[0];
    ASSERT(!call.name.data || str_is_utf8(call.name));
    ASSERT(!names[1].data || str_is_utf8(names[1]));
    if (call.name.data && call_task_id(&call) < 0)
        ASSERT(call.err.code == ERR_NOT_FOUND);
    if (router_query(call.route, query, &arena, call.parameters, &call.err) < 0) {
        ASSERT(call.err.code == ERR_INVALID || call.err.code == ERR_MALFORMED);
        goto out;
    }
    check_values(&call);
    if (has_parameter(call.route, "cursor") && has_parameter(call.route, "limit"))
        check_page(&call);
out:
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *word;
        enum http_method method;
    } methods[] = {{"GET ", HTTP_GET}, {"POST ", HTTP_POST}, {"PATCH ", HTTP_PATCH},
                   {"DELETE ", HTTP_DELETE}, {"HEAD ", HTTP_HEAD}, {"PUT ", HTTP_PUT}};
    struct str target = str_span((const char *)data, size);

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct str rest;
        const char *mark;

        if (!str_starts(target, str_of(methods[i].word)))
            continue;
        rest = str_span(target.data + strlen(methods[i].word),
                        target.len - strlen(methods[i].word));
        mark = rest.len ? memchr(rest.data, '?', rest.len) : NULL;
        if (rest.len == 0 || rest.data[0] != '/')
            return 0;
        if (mark)
            run(methods[i].method, str_span(rest.data, (size_t)(mark - rest.data)),
                str_span(mark + 1, rest.len - (size_t)(mark - rest.data) - 1));
        else
            run(methods[i].method, rest, STR_NONE);
    }
    return 0;
}
