/* Feeds any bytes to json_check and then holds everything else to its promises: walking, decoding,
 * pointing and counting agree with each other, the canonical form is its own canonical form, and a
 * written string reads back. Built for libFuzzer, or with replay_main.c to replay a corpus. */
#include "base/json.h"

#define OUT_BYTES_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct str value, struct arena *arena, uint32_t depth);

static void walk_object(struct str value, struct arena *arena, uint32_t depth)
{
    struct json_iter iter;
    struct json_member member;
    size_t count = 0;

    json_begin(value, &iter);
    for (; json_next_member(&iter, &member); count++) {
        struct str key = json_decode_key(member.key, arena);

        ASSERT(key.data && str_is_utf8(key) && json_key_is(member.key, key));
        if (count < 8) { /* json_get is linear: every key would be quadratic */
            struct str found = json_get(value, key);

            ASSERT(found.data == member.value.data && found.len == member.value.len);
        }
        walk(member.value, arena, depth);
    }
    ASSERT(count == json_count(value));
}

static void walk_array(struct str value, struct arena *arena, uint32_t depth)
{
    struct json_iter iter;
    struct str element;
    size_t count = 0;

    json_begin(value, &iter);
    for (; json_next_element(&iter, &element); count++) {
        if (count < 8) {
            struct str pointer = arena_format(arena, "/%zu", count);

            ASSERT(json_pointer(value, pointer, arena).data == element.data);
        }
        walk(element, arena, depth);
    }
    ASSERT(count == json_count(value));
}

static void walk_string(struct str value, struct arena *arena)
{
    struct buf out = BUF_INIT(OUT_BYTES_MAX);
    struct str decoded = json_string(value, arena);
    struct str again;

    ASSERT(decoded.data && decoded.len <= value.len && str_is_utf8(decoded));
    json_write_string(&out, decoded);
    ASSERT(json_check(buf_view(&out), NULL, NULL) == 0);
    again = json_string(buf_view(&out), arena);
    ASSERT(str_eq(decoded, again));
    buf_deinit(&out);
}

static void walk_number(struct str value)
{
    double number;
    int64_t whole;

    ASSERT(json_double(value, &number) && number - number == 0);
    if (json_int64(value, &whole))
        ASSERT((double)whole == number);
}

static void walk(struct str value, struct arena *arena, uint32_t depth)
{
    struct str trimmed;

    ASSERT(depth <= JSON_DEPTH_MAX && value.len > 0);
    if (depth < 4) { /* each value stands on its own */
        ASSERT(json_check(value, &trimmed, NULL) == 0);
        ASSERT(trimmed.data == value.data && trimmed.len == value.len);
    }
    switch (json_kind(value)) {
    case JSON_OBJECT:
        walk_object(value, arena, depth + 1);
        break;
    case JSON_ARRAY:
        walk_array(value, arena, depth + 1);
        break;
    case JSON_STRING:
        walk_string(value, arena);
        break;
    case JSON_NUMBER:
        walk_number(value);
        break;
    case JSON_NULL:
        ASSERT(str_is(value, "null"));
        break;
    default:
        ASSERT(str_is(value, "true") || str_is(value, "false"));
    }
}

static void canonicalise(struct str value)
{
    struct buf once = BUF_INIT(OUT_BYTES_MAX);
    struct buf twice = BUF_INIT(OUT_BYTES_MAX);
    struct str trimmed;

    ASSERT(json_canonical(value, &once, NULL) == 0);
    ASSERT(json_check(buf_view(&once), &trimmed, NULL) == 0);
    ASSERT(trimmed.len == once.len);
    ASSERT(json_canonical(trimmed, &twice, NULL) == 0);
    ASSERT(str_eq(buf_view(&once), buf_view(&twice)));
    buf_deinit(&once);
    buf_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_span((const char *)data, size);
    struct arena arena = ARENA_INIT(0);
    struct buf out = BUF_INIT(OUT_BYTES_MAX);
    struct str value;
    struct err err = {0};
    int rc = json_check(text, &value, &err);

    if (rc == 0) {
        walk(value, &arena, 0);
        canonicalise(value);
    } else {
        ASSERT(rc == -ERR_MALFORMED && err.code == ERR_MALFORMED && err.text[0]);
    }
    json_write_string(&out, text);
    ASSERT(json_check(buf_view(&out), NULL, NULL) == 0);
    if (json_pointer_valid(text) && rc == 0)
        (void)json_pointer(value, text, &arena);
    buf_deinit(&out);
    arena_deinit(&arena);
    return 0;
}
