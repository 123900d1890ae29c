/* Base64 as URLs have it. Reading accepts one text per value, so that nothing that is compared or
 * hashed as text has a second form. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_write(const uint8_t *data, size_t len, char *out)
{
    size_t i = 0;

    for (; i + 3 <= len; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];

        *out++ = alphabet[bits >> 18];
        *out++ = alphabet[bits >> 12 & 63];
        *out++ = alphabet[bits >> 6 & 63];
        *out++ = alphabet[bits & 63];
    }
    if (len - i == 1) {
        *out++ = alphabet[data[i] >> 2];
        *out = alphabet[data[i] << 4 & 63];
    } else if (len - i == 2) {
        *out++ = alphabet[data[i] >> 2];
        *out++ = alphabet[(data[i] << 4 | data[i + 1] >> 4) & 63];
        *out = alphabet[data[i + 1] << 2 & 63];
    }
}

/* Of every character its value and 1; 0 = it is none of the alphabet. */
#define UP(c, n) [c] = (n) + 1, [(c) + 1] = (n) + 2
static const uint8_t values[256] = {
    UP('A', 0),  UP('C', 2),  UP('E', 4),  UP('G', 6),  UP('I', 8),  UP('K', 10), UP('M', 12),
    UP('O', 14), UP('Q', 16), UP('S', 18), UP('U', 20), UP('W', 22), UP('Y', 24), UP('a', 26),
    UP('c', 28), UP('e', 30), UP('g', 32), UP('i', 34), UP('k', 36), UP('m', 38), UP('o', 40),
    UP('q', 42), UP('s', 44), UP('u', 46), UP('w', 48), UP('y', 50), UP('0', 52), UP('2', 54),
    UP('4', 56), UP('6', 58), UP('8', 60), ['-'] = 63,  ['_'] = 64};

static uint32_t value_of(char c)
{
    return values[(uint8_t)c];
}

/* What is left behind the last four characters. */
static bool read_rest(struct str text, uint8_t *out, size_t *len)
{
    uint32_t bits = 0;

    if (text.len == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (value_of(text.data[i]) == 0)
            return false;
        bits = bits << 6 | (value_of(text.data[i]) - 1);
    }
    if (text.len == 2) {
        out[(*len)++] = (uint8_t)(bits >> 4);
        return (bits & 15) == 0;
    }
    if (text.len == 3) {
        out[(*len)++] = (uint8_t)(bits >> 10);
        out[(*len)++] = (uint8_t)(bits >> 2);
        return (bits & 3) == 0;
    }
    return true;
}

bool base64_read(struct str text, uint8_t *out, size_t *len)
{
    size_t i = 0;

    *len = 0;
    for (; i + 4 <= text.len; i += 4) {
        uint32_t a = value_of(text.data[i]), b = value_of(text.data[i + 1]);
        uint32_t c = value_of(text.data[i + 2]), d = value_of(text.data[i + 3]);
        uint32_t bits;

        if (!a || !b || !c || !d)
            return false;
        bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        out[(*len)++] = (uint8_t)(bits >> 16);
        out[(*len)++] = (uint8_t)(bits >> 8);
        out[(*len)++] = (uint8_t)bits;
    }
    return read_rest(str_span(text.data + i, text.len - i), out, len);
}
