/* Base64 as URLs have it. Reading accepts one text per value, so that nothing that is compared or
 * hashed as text has a second form. */
#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_write(const uint8_t *data, size_t len, char *out)
{
    uint32_t bits = 0;
    int count = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | data[i];
        for (count += 8; count >= 6; count -= 6)
            *out++ = alphabet[bits >> (count - 6) & 63];
    }
    if (count)
        *out = alphabet[bits << (6 - count) & 63];
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool base64_read(struct str text, uint8_t *out, size_t *len)
{
    uint32_t bits = 0;
    int count = 0;

    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.data[i]);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[(*len)++] = (uint8_t)(bits >> count);
        }
    }
    return count < 6 && (bits & ((1u << count) - 1)) == 0;
}
