/* Parsing by inet_pton, which takes no short forms; comparing bit by bit. Pure; any thread. */
#include "core/access/address_range.h"

#include <arpa/inet.h>

static bool parse_address(struct str text, uint8_t bytes[ADDRESS_BYTES], bool *is_v4)
{
    char copy[INET6_ADDRSTRLEN];

    if (text.len == 0 || text.len >= sizeof copy || memchr(text.data, '\0', text.len))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    memset(bytes, 0, ADDRESS_BYTES);
    *is_v4 = inet_pton(AF_INET, copy, bytes + 12) == 1;
    if (*is_v4)
        bytes[10] = bytes[11] = 0xff;
    return *is_v4 || inet_pton(AF_INET6, copy, bytes) == 1;
}

static bool parse_bits(struct str text, int64_t max, int64_t *bits)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.len > 0 && text.len <= 3 && (text.len == 1 || text.data[0] != '0') &&
           str_to_int64(text, bits) && *bits <= max;
}

static bool bit_is_set(const uint8_t *bytes, unsigned at)
{
    return bytes[at / 8] & (0x80u >> at % 8);
}

bool address_range_parse(struct str text, struct address_range *range)
{
    const char *slash = text.len ? memchr(text.data, '/', text.len) : NULL;
    size_t len = slash ? (size_t)(slash - text.data) : text.len;
    int64_t bits;
    bool is_v4;

    *range = (struct address_range){.bits = 0};
    if (!parse_address(str_span(text.data, len), range->bytes, &is_v4))
        return false;
    bits = is_v4 ? 32 : 128;
    if (slash && !parse_bits(str_span(slash + 1, text.len - len - 1), bits, &bits))
        return false;
    range->bits = (uint8_t)(bits + (is_v4 ? ADDRESS_V4_BITS : 0));
    for (unsigned at = range->bits; at < ADDRESS_BYTES * 8; at++)
        if (bit_is_set(range->bytes, at))
            return false;
    return true;
}

bool address_range_has(const struct address_range *range, const uint8_t address[ADDRESS_BYTES])
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    unsigned mask = 0xff00u >> rest & 0xff;

    return memcmp(range->bytes, address, whole) == 0 &&
           (rest == 0 || ((unsigned)(range->bytes[whole] ^ address[whole]) & mask) == 0);
}

bool address_range_is_everything(const struct address_range *range)
{
    return range->bits == 0 ||
           (range->bits == ADDRESS_V4_BITS && range->bytes[10] == 0xff && range->bytes[11] == 0xff);
}
