/* Members replaced by pointer: the spans of all values are found in the text as it is, sorted, and
 * the text is put together again from what lies between them. */
#include "core/seal/seal_members.h"

#include "base/json.h"

#include <stdlib.h>

#define GROWN_BYTES_MAX (16 * 1024 * 1024)

struct span {
    struct str pointer;
    struct str value;
};

/* The outer one of two that begin together comes first. */
static int compare_spans(const void *a, const void *b)
{
    const struct span *left = a, *right = b;

    if (left->value.data != right->value.data)
        return left->value.data < right->value.data ? -1 : 1;
    return left->value.len > right->value.len ? -1 : left->value.len < right->value.len;
}

static uint32_t find_spans(struct str json, struct str pointers, struct arena *arena,
                           struct span *spans)
{
    struct json_iter iter;
    struct str item;
    uint32_t count = 0;

    json_begin(pointers, &iter);
    while (count < SEAL_POINTERS_MAX && json_next_element(&iter, &item)) {
        struct str pointer = json_string(item, arena);
        struct str value = json_pointer(json, pointer, arena);

        if (value.data && pointer.len)
            spans[count++] = (struct span){pointer, value};
    }
    qsort(spans, count, sizeof *spans, compare_spans);
    return count;
}

int seal_members(struct str json, struct str pointers, seal_member *replace, void *ctx,
                 struct arena *arena, struct str *out)
{
    BUF_AUTO struct buf whole = BUF_INIT(GROWN_BYTES_MAX);
    struct span spans[SEAL_POINTERS_MAX];
    uint32_t count = find_spans(json, pointers, arena, spans);
    const char *at = json.data;

    *out = json;
    if (count == 0)
        return arena->failed ? -ERR_MEMORY : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct str value;

        if (spans[i].value.data < at)
            continue; /* inside of the one before */
        TRY(replace(ctx, spans[i].pointer, spans[i].value, arena, &value));
        buf_append(&whole, at, (size_t)(spans[i].value.data - at));
        buf_str(&whole, value);
        at = spans[i].value.data + spans[i].value.len;
    }
    buf_append(&whole, at, (size_t)(json.data + json.len - at));
    *out = whole.failed ? STR_NONE : arena_str(arena, buf_view(&whole));
    return out->data ? 0 : -ERR_MEMORY;
}
