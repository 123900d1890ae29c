/* libFuzzer: any bytes as a body of the work protocol (report, heartbeat, claim, register) or of a
 * change of a queue. The first byte chooses the route. What is accepted is within its bounds and,
 * where it must outlive its body, holds no pointer into it; what is refused has a sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "core/bounds.h"
#include "server/parse_queue.h"
#include "server/parse_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARENA_BYTES_MAX ((size_t)64 << 20)

static bool is_json(struct str value)
{
    return !value.data || json_check(value, NULL, NULL) == 0;
}

static void check_report(const struct report *report)
{
    ASSERT(report->op < REPORT_OP_COUNT && report->level < SEVERITY_COUNT);
    ASSERT(report->progress >= -1 && report->progress <= 100);
    ASSERT(report->delay_ms >= -1 && report->seq >= 0);
    ASSERT(is_json(report->data) && is_json(report->metadata) && is_json(report->detail));
    ASSERT(is_json(report->database_state) && is_json(report->file_state));
    ASSERT(is_json(report->context) && is_json(report->tasks) && is_json(report->result));
    ASSERT(is_json(report->details));
    ASSERT(!report->state.data || str_is_utf8(report->state));
    ASSERT(!report->message.data || str_is_utf8(report->message));
    ASSERT(!report->error.data || str_is_utf8(report->error));
}

static int reports(struct str body, struct arena *arena, struct err *err)
{
    struct report_batch batch;
    uint32_t well_formed = 0;
    int rc = parse_reports(body, arena, &batch, err);

    if (rc < 0)
        return rc;
    ASSERT(batch.items_count <= BOUND_REPORT_ELEMENTS);
    for (uint32_t i = 0; i < batch.items_count; i++) {
        const struct report_result *bad = batch.items[i].bad;

        well_formed += !bad;
        if (bad)
            ASSERT(bad->code != ERR_NONE && bad->message[0]);
        ASSERT(is_json(batch.items[i].task_id));
    }
    ASSERT(well_formed == batch.count);
    for (uint32_t i = 0; i < batch.count; i++)
        check_report(&batch.reports[i]);
    return 0;
}

static int heartbeat(struct str body, struct arena *arena, struct err *err)
{
    struct heartbeat_request request = {0};
    struct services_told told;

    return parse_heartbeat(body, arena, &request, &told, err);
}

/* The body is gone before the claim is looked at: ASan sees any code that still reads it. */
static int claim(struct str body, struct arena *arena, struct err *err)
{
    struct claim_request request = {0};
    char *copy = malloc(body.len + 1);
    int rc;

    ASSERT(copy);
    memcpy(copy, body.data, body.len);
    rc = parse_claim(str_span(copy, body.len), arena, &request, err);
    free(copy);
    if (rc < 0)
        return rc;
    ASSERT(request.max >= 1 && request.max <= BOUND_CLAIM_MAX);
    ASSERT(request.wait_ms >= 0 && request.wait_ms <= BOUND_WAIT_MS);
    ASSERT(request.queues_count <= BOUND_CLAIM_QUEUES && request.types_count <= BOUND_CLAIM_TYPES);
    for (uint32_t i = 0; i < request.queues_count; i++)
        ASSERT(request.queues[i].len > 0 && str_is_utf8(request.queues[i]));
    for (uint32_t i = 0; i < request.types_count; i++)
        ASSERT(request.types[i].len > 0 && str_is_utf8(request.types[i]));
    return 0;
}

static int registration(struct str body, struct arena *arena, struct err *err)
{
    struct register_request request = {0};

    return parse_register(body, arena, &request, err);
}

static int patch(struct str body, struct arena *arena, struct err *err)
{
    struct queue_patch_request request = {0};
    struct str object;
    int rc = json_check(body, &object, err);

    return rc < 0 ? rc : parse_queue_patch(object, arena, &request, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const routes[])(struct str, struct arena *, struct err *) = {
        reports, heartbeat, claim, registration, patch};
    struct arena arena = ARENA_INIT(ARENA_BYTES_MAX);
    struct err err = {0};

    if (size < 1)
        return 0;
    if (routes[data[0] % 5](str_span((const char *)data + 1, size - 1), &arena, &err) < 0)
        ASSERT(err.code != ERR_NONE && err.text[0] && str_is_utf8(str_of(err.text)));
    arena_deinit(&arena);
    return 0;
}
