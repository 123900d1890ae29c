/* Any pointers over any JSON: what encrypt_fields replaces is found again by the same pointers, and
 * putting it back gives the bytes that were there. Pointers and JSON are divided by a zero byte. */
#include "base/json.h"
#include "core/seal/seal_members.h"

#define REPLACED_MAX SEAL_POINTERS_MAX

struct replaced {
    struct str values[REPLACED_MAX];
    uint32_t count;
    uint32_t back; /* so many were put back */
};

static int take(void *ctx, struct str pointer, struct str value, struct arena *arena,
                struct str *out)
{
    struct replaced *replaced = ctx;

    (void)pointer;
    ASSERT(replaced->count < REPLACED_MAX && value.len > 0);
    *out = arena_format(arena, "\"#%u\"", replaced->count);
    replaced->values[replaced->count++] = value;
    return out->data ? 0 : -ERR_MEMORY;
}

static int put_back(void *ctx, struct str pointer, struct str value, struct arena *arena,
                    struct str *out)
{
    struct replaced *replaced = ctx;
    struct str mark = arena_format(arena, "\"#%u\"", replaced->back);

    (void)pointer;
    ASSERT(str_eq(value, mark));
    *out = replaced->values[replaced->back++];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    struct replaced replaced = {.count = 0};
    struct str pointers, json, sealed, opened;
    struct err err = {0};

    if (!zero)
        return 0;
    pointers = str_span((const char *)data, (size_t)(zero - data));
    json = str_span((const char *)zero + 1, size - (size_t)(zero + 1 - data));
    if (json_check(pointers, &pointers, &err) < 0 || json_kind(pointers) != JSON_ARRAY ||
        json_check(json, &json, &err) < 0)
        return 0;
    ASSERT(seal_members(json, pointers, take, &replaced, &arena, &sealed) == 0);
    ASSERT(json_check(sealed, &sealed, &err) == 0);
    ASSERT(seal_members(sealed, pointers, put_back, &replaced, &arena, &opened) == 0);
    ASSERT(replaced.back == replaced.count && str_eq(opened, json));
    return 0;
}
