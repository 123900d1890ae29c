/* Whatever stands in the head of a request: only a trusted proxy names a person, the name is one
 * name, and the rights are those of listed groups. The headers of anyone else are refused, never
 * passed over (D12). */
#include "core/access/outside.h"
#include "net/http_head.h"
#include "server/door/door_outside.h"

#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD "GET / HTTP/1.1\r\nHost: h\r\n"

static const struct group_rule groups[] = {
    {.name = {"a", 1}, .scopes = SCOPE_BIT(SCOPE_TASKS_READ)},
    {.name = {"b c", 3}, .scopes = SCOPE_BIT(SCOPE_WORK)},
};
static const struct http_address proxy_address = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
static const struct http_address other_address = {{[10] = 0xff, [11] = 0xff, [12] = 11, [15] = 1}};

static void check_name(struct str name)
{
    ASSERT(name.len > 0 && name.len <= 200 && str_is_utf8(name));
    for (size_t i = 0; i < name.len; i++)
        ASSERT((unsigned char)name.data[i] >= ' ' && name.data[i] != 127 && name.data[i] != ',');
}

static void check_person(const struct proxy_settings *settings, struct str user, struct str given)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct principal *principal = NULL;
    struct err err = {0};

    if (outside_person(settings, user, given, &arena, &principal, &err) < 0) {
        ASSERT(err.code == ERR_FORBIDDEN && err.text[0]);
        return;
    }
    check_name(principal->name);
    ASSERT(principal->scopes && !(principal->scopes & ~(groups[0].scopes | groups[1].scopes)));
    if (principal->scopes & groups[1].scopes)
        ASSERT(memmem(given.data, given.len, "b c", 3));
}

static void check_from(const struct proxy_settings *settings, struct http_request *request,
                       const struct http_address *peer)
{
    struct str user, given, found;
    struct err err = {0};
    uint32_t users = http_headers_count(request, settings->user_header, &found);
    uint32_t lists = http_headers_count(request, settings->groups_header, &found);
    int rc;

    request->peer = peer;
    rc = door_proxy_headers(settings, request, &user, &given, &err);
    if (users > 1 || lists > 1)
        ASSERT(rc == -ERR_MALFORMED);
    else if (peer != &proxy_address)
        ASSERT(rc == (users + lists ? -ERR_FORBIDDEN : 0));
    else
        ASSERT(rc == 0 && (user.data != NULL) == (users == 1));
    if (rc == 0 && user.data)
        check_person(settings, user, given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_limits limits = {.head_bytes_max = 16384, .headers_max = 64,
                                              .url_bytes_max = 8192, .body_bytes_max = 1};
    BUF_AUTO struct buf head = BUF_INIT(65536);
    struct address_range range;
    struct proxy_settings settings = {.from = &range, .from_count = 1,
                                      .user_header = STR("X-User"), .groups_header = STR("X-In"),
                                      .namespace_name = STR("*"), .groups = groups,
                                      .groups_count = 2};
    struct str text = str_span((const char *)data, size);
    struct http_request request;
    struct http_head out;
    struct err err;

    if (address_range_parse(text, &range)) /* as a range it covers its own address */
        ASSERT(range.bits <= 128 && address_range_has(&range, range.bytes));
    ASSERT(address_range_parse(STR("10.0.0.0/24"), &range));
    check_person(&settings, text, text);
    buf_text(&head, HEAD);
    buf_str(&head, text);
    buf_text(&head, "\r\n\r\n");
    if (head.failed || http_head_parse(buf_view(&head), &limits, &request, &out, &err) < 0)
        return 0;
    check_from(&settings, &request, &proxy_address);
    check_from(&settings, &request, &other_address);
    check_from(&settings, &request, NULL);
    return 0;
}
