/* libFuzzer: any bytes as what a model's API answers (whole, or as a stream cut anywhere), as a
 * conversation of a checkpoint, as a schema with arguments. The first byte chooses. What is taken
 * must be whole: it can be stored, and what is loaded leads to the same next act. */
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "core/agent/conversation.h"
#include "core/agent/prompt.h"
#include "core/agent/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(const struct model_answer *answer, struct arena *arena)
{
    BUF_AUTO struct buf state = BUF_INIT(64 * MODEL_ANSWER_BYTES_MAX);
    struct conversation talk, loaded;
    struct err err = {0};

    conversation_init(&talk, arena);
    if (conversation_add(&talk, "user", STR("task"), &err) < 0 ||
        conversation_add_answer(&talk, answer, &err) < 0)
        return;
    conversation_write(&talk, &state);
    ASSERT(json_check(buf_view(&state), NULL, NULL) == 0);
    conversation_init(&loaded, arena);
    ASSERT(conversation_load(&loaded, buf_view(&state), &err) == 0);
    ASSERT(conversation_next(&loaded) == conversation_next(&talk));
    ASSERT(loaded.calls_count == talk.calls_count);
    for (uint32_t i = 0; i < talk.calls_count; i++)
        ASSERT(str_eq(loaded.calls[i].call.id, talk.calls[i].call.id));
}

static void stream(struct str bytes, size_t step, struct arena *arena)
{
    struct model_stream reader;
    struct model_answer answer;
    struct err err = {0};

    model_stream_init(&reader, arena);
    for (size_t at = 0; at < bytes.len; at += step)
        model_stream_feed(&reader, str_span(bytes.data + at,
                                            step < bytes.len - at ? step : bytes.len - at));
    if (model_stream_answer(&reader, &answer, &err) == 0)
        keep(&answer, arena);
    model_stream_deinit(&reader);
}

/* Schema and value are the two members of an array. */
static void schema(struct str bytes)
{
    struct str parts[2] = {STR_NONE, STR_NONE};
    struct json_iter iter;
    struct err err = {0};

    if (json_check(bytes, &bytes, NULL) < 0)
        return;
    json_begin(json_kind(bytes) == JSON_ARRAY ? bytes : STR("[]"), &iter);
    for (int i = 0; i < 2; i++)
        if (!json_next_element(&iter, &parts[i]))
            return;
    if (schema_check(parts[0], &err) == 0)
        schema_validate(parts[0], parts[1], &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT(256 * 1024 * 1024);
    struct str bytes = str_span((const char *)data + 1, size ? size - 1 : 0);
    struct model_answer answer;
    struct conversation talk;
    struct err err = {0};

    if (size == 0)
        return 0;
    switch (data[0] % 5) {
    case 0:
        if (model_answer_parse(bytes, &arena, &answer, &err) == 0)
            keep(&answer, &arena);
        model_error_text(bytes, &arena);
        break;
    case 1:
        stream(bytes, data[0] / 5 + 1u, &arena);
        break;
    case 2:
        conversation_init(&talk, &arena);
        if (conversation_load(&talk, bytes, &err) == 0)
            conversation_next(&talk);
        break;
    case 3:
        schema(bytes);
        break;
    default:
        prompt_check(bytes, &err);
    }
    arena_deinit(&arena);
    return 0;
}
