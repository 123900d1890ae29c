/* Any bytes as a stored form: parsing ends, and what opens is what was sealed. The first byte
 * chooses whether the rest is taken as it is or overwrites a part of a good one. */
#include "core/seal/envelope.h"

static const uint8_t KEY[SEAL_KEY_BYTES] = {7};
static const struct uuid ID = {{1}};
static const struct seal_place PLACE = {
    {"default", 7}, "tasks", {"1", 1}, "payload", {NULL, 0}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct seal_cipher cipher;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct envelope envelope;
    struct str text, clear, good;
    char *copy;

    seal_init();
    if (size < 2)
        return 0;
    if (data[0] & 1) {
        text = str_span((const char *)data + 1, size - 1);
        if (envelope_parse(text, &envelope))
            ASSERT(envelope_open(&cipher, KEY, &envelope, &PLACE, &arena, &clear) != 0);
        return 0;
    }
    ASSERT(envelope_seal(&cipher, KEY, &ID, KEY, &PLACE, STR("{\"a\":1}"), data[0] & 2, &arena,
                         &good) == 0);
    copy = arena_cstr(&arena, good);
    for (size_t i = 2; i < size; i++)
        copy[(data[1] + i - 2) % good.len] = (char)data[i];
    text = str_span(copy, good.len);
    if (envelope_parse(text, &envelope) &&
        envelope_open(&cipher, KEY, &envelope, &PLACE, &arena, &clear) == 0)
        ASSERT(str_eq(text, good) && str_is(clear, "{\"a\":1}"));
    return 0;
}
