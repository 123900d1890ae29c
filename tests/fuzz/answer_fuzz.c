/* libFuzzer: any bytes as what a server answers a remote worker. The first byte chooses the route.
 * A server of another version, or something that is no server of ours, must end in a sentence, and
 * what is understood must be whole: ids, leases and JSON that a handler can be given. */
#include <stddef.h>
#include <stdint.h>

#include "net/http_client.h"
#include "worker/sources/source_remote_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORKS_MAX 8
#define HELD_COUNT 3

static bool is_json(struct str value)
{
    return !value.data || json_check(value, NULL, NULL) == 0;
}

static int registration(struct str body, struct arena *arena, struct err *err)
{
    struct source_registration told = {.id = STR_NONE};
    int rc = remote_read_register(body, arena, &told, err);

    ASSERT(rc < 0 || (told.id.len > 0 && told.heartbeat_ms > 0 && told.lease_ms > 0));
    ASSERT(rc < 0 || is_json(told.unknown_categories));
    return rc;
}

static int claim(struct str body, struct arena *arena, struct err *err)
{
    struct work *works = NULL;
    uint32_t count = 0;
    int rc = remote_read_claim(body, WORKS_MAX, arena, &works, &count, err);

    ASSERT(count <= WORKS_MAX);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        ASSERT(works[i].type.len > 0 && str_is_utf8(works[i].type));
        ASSERT(works[i].payload.data && is_json(works[i].payload));
        ASSERT(works[i].data.data && is_json(works[i].data) && is_json(works[i].json));
        ASSERT(is_json(works[i].metadata) && is_json(works[i].checkpoint_data));
    }
    return rc;
}

static int reports(struct str body, struct arena *arena, struct err *err)
{
    struct report_result results[HELD_COUNT] = {0};
    int rc = remote_read_reports(body, results, HELD_COUNT, err);

    (void)arena;
    for (uint32_t i = 0; i < HELD_COUNT && rc == 0; i++)
        ASSERT(memchr(results[i].message, '\0', sizeof results[i].message));
    return rc;
}

static int heartbeat(struct str body, struct arena *arena, struct err *err)
{
    struct held held[HELD_COUNT] = {{.lease_token = 1}};
    struct heartbeat_answer answer;
    int rc;

    for (uint8_t i = 0; i < HELD_COUNT; i++)
        memset(&held[i].task_id, 0x11 * (i + 1), sizeof held[i].task_id);
    rc = remote_read_heartbeat(body, held, HELD_COUNT, arena, &answer, err);
    for (uint32_t i = 0; rc == 0 && i < answer.cancel_count; i++)
        ASSERT(answer.cancel[i] < HELD_COUNT);
    for (uint32_t i = 0; rc == 0 && i < answer.lost_count; i++)
        ASSERT(answer.lost[i] < HELD_COUNT);
    ASSERT(answer.cancel_count <= HELD_COUNT && answer.pause_count <= HELD_COUNT &&
           answer.lost_count <= HELD_COUNT);
    return rc;
}

static int refusal(struct str body, struct arena *arena, struct err *err)
{
    static const int statuses[] = {400, 401, 404, 409, 413, 422, 429, 500, 503, 599};
    int rc = http_client_error(statuses[body.len % 10], body, err);

    (void)arena;
    ASSERT(rc < 0 && rc == -(int)err->code);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const routes[])(struct str, struct arena *, struct err *) = {
        registration, claim, reports, heartbeat, refusal};
    struct arena arena = ARENA_INIT((size_t)16 << 20);
    struct err err = {0};

    if (size < 1)
        return 0;
    if (routes[data[0] % (sizeof routes / sizeof routes[0])](
            str_span((const char *)data + 1, size - 1), &arena, &err) < 0)
        ASSERT(err.code != ERR_NONE && err.text[0]);
    arena_deinit(&arena);
    return 0;
}
