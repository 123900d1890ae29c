/* libFuzzer: any bytes as the body of an enqueue. What is accepted keeps every bound that the queue
 * and the store rely on, has its links inside the array, and can be shown as JSON; what is refused
 * has a sentence. The first byte chooses whether handler and priority rules are there. */
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"
#include "core/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_BYTES_MAX ((size_t)64 << 20)

static const struct handler_rule handlers[] = {
    {.type = {"a*", 2}, .timeout_ms = 500, .grace_ms = -1, .max_retries = 7, .retry_delay_ms = 20,
     .max_retry_delay_ms = 40, .has_retry_policy = true, .retry_policy = RETRY_LINEAR,
     .hash_input = true, .output_bytes_max = -1, .retention_ms = -1},
};
static const struct priority_rule rules[] = {
    {.type = {"a", 1}, .priority = 9},
    {.metadata_pointer = {"/k", 2}, .metadata_equals = {"1.0", 3}, .priority = -9},
};
static const struct settings settings = {.handlers = handlers, .handlers_count = 1,
                                         .enqueue = {.rules = rules, .rules_count = 2}};

static bool is_line(struct str text, size_t bytes_max)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 32 || text.data[i] == 127)
            return false;
    return text.len <= bytes_max && (!text.data || str_is_utf8(text));
}

static void check_json(struct str json, size_t bytes_max)
{
    struct str trimmed;

    if (json.data)
        ASSERT(json.len <= bytes_max && json_check(json, &trimmed, NULL) == 0);
}

static void check_links(const struct task_input *input, uint32_t index, uint32_t count)
{
    ASSERT(input->depends_on_count <= BOUND_DEPENDS_ON);
    for (uint32_t i = 0; i < input->depends_on_count; i++)
        if (input->depends_on[i].ref.data)
            ASSERT(input->depends_on[i].element < count && input->depends_on[i].element != index);
}

static void check_input(const struct task_input *input, uint32_t index, uint32_t count)
{
    const struct task_spec *spec = &input->spec;

    ASSERT(spec->type.len > 0 && is_line(spec->type, BOUND_NAME_BYTES));
    ASSERT(spec->queue.len > 0 && is_line(spec->queue, BOUND_NAME_BYTES));
    ASSERT(!memchr(spec->queue.data, '/', spec->queue.len));
    ASSERT(is_line(spec->idempotency_key, BOUND_KEY_BYTES));
    ASSERT(is_line(spec->limit_key, BOUND_KEY_BYTES));
    ASSERT(is_line(spec->callback.url, BOUND_URL_BYTES));
    ASSERT(input->priority >= -BOUND_PRIORITY && input->priority <= BOUND_PRIORITY);
    ASSERT(input->delay_ms >= 0 && input->delay_ms <= BOUND_DELAY_MS);
    ASSERT(!input->delay_ms || !spec->run_at_us);
    ASSERT(spec->retry.max_retries >= 0 && spec->retry.max_retries <= BOUND_RETRIES);
    ASSERT(!input->hash_input || spec->input_hash.len == 64 || input->no_hash);
    check_json(spec->payload, BOUND_PAYLOAD_BYTES);
    check_json(input->data, BOUND_DATA_BYTES);
    check_json(input->about.metadata, BOUND_METADATA_BYTES);
    check_json(spec->tags, BOUND_TAGS * (6 * BOUND_NAME_BYTES + 3) + 2);
    check_links(input, index, count);
}

static void check_shown(const struct task_input *input)
{
    struct buf out = BUF_INIT(OUT_BYTES_MAX);
    struct task task = {.spec = input->spec, .has_spec = true, .has_data = true,
                        .data = input->data, .about = input->about,
                        .priority = input->priority};

    render_task(&out, &task, NULL);
    ASSERT(!out.failed && json_check(buf_view(&out), NULL, NULL) == 0);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(OUT_BYTES_MAX);
    struct task_input *inputs = NULL;
    struct err err = {0};
    struct str json;
    uint32_t count = 0;
    bool is_array = false;

    if (size < 1 || json_check(str_span((const char *)data + 1, size - 1), &json, NULL) < 0)
        return 0;
    if (spec_parse_all(json, data[0] & 1 ? &settings : NULL, &arena, &inputs, &count, &is_array,
                       &err) < 0) {
        ASSERT(err.code == ERR_INVALID || err.code == ERR_TOO_LARGE);
        ASSERT(err.text[0] && str_is_utf8(str_of(err.text)));
    } else {
        ASSERT(is_array ? count == json_count(json) : count == 1);
        for (uint32_t i = 0; i < count; i++)
            check_input(&inputs[i], i, count);
        if (count)
            check_shown(&inputs[0]);
    }
    arena_deinit(&arena);
    return 0;
}
