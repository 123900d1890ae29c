/* Base64 as URLs have it. Reading accepts one text per value, so that nothing that is compared or
 * hashed as text has a second form. */
#include "base/base64.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_BLOCKS 1
#else
#define HAS_BLOCKS 0
#endif

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- 32 characters at a time: for texts that are stored encrypted ----
 *
 * After W. Mula and D. Lemire, "Faster Base64 Encoding and Decoding using AVX2 Instructions". What
 * is no whole block, or holds a character of another alphabet, is left to the plain loops. */

#if HAS_BLOCKS
#define WITH_AVX2 __attribute__((target("avx2")))

static bool can_blocks(size_t len)
{
    return len >= 48 && __builtin_cpu_supports("avx2");
}

/* The same sixteen bytes in both halves. */
WITH_AVX2 static inline __m256i twice(__m128i bytes)
{
    return _mm256_broadcastsi128_si256(bytes);
}

/* 24 bytes become 32 characters; 28 are read. How many bytes were written out. */
WITH_AVX2 static size_t write_blocks(const uint8_t *data, size_t len, char *out)
{
    const __m256i order = twice(_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
    const __m256i offsets = twice(_mm_setr_epi8('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
                                                '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
                                                '0' - 52, '-' - 62, '_' - 63, 'A', 0, 0));
    size_t i = 0;

    for (; i + 28 <= len; i += 24, out += 32) {
        __m128i first = _mm_loadu_si128((const void *)(data + i));
        __m128i second = _mm_loadu_si128((const void *)(data + i + 12));
        __m256i bits = _mm256_shuffle_epi8(_mm256_set_m128i(second, first), order);
        __m256i high = _mm256_mulhi_epu16(_mm256_and_si256(bits, _mm256_set1_epi32(0x0fc0fc00)),
                                          _mm256_set1_epi32(0x04000040));
        __m256i low = _mm256_mullo_epi16(_mm256_and_si256(bits, _mm256_set1_epi32(0x003f03f0)),
                                         _mm256_set1_epi32(0x01000010));
        __m256i numbers = _mm256_or_si256(high, low);
        __m256i kind = _mm256_subs_epu8(numbers, _mm256_set1_epi8(51));
        __m256i upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), numbers);

        kind = _mm256_or_si256(kind, _mm256_and_si256(upper, _mm256_set1_epi8(13)));
        _mm256_storeu_si256((void *)out,
                            _mm256_add_epi8(_mm256_shuffle_epi8(offsets, kind), numbers));
    }
    return i;
}

/* 32 characters become 24 bytes; 32 are written. How many were read.
 *
 * Characters are known by their high and low four bits: a high one stands for a class (32 = none),
 * a low one for the classes in which it means nothing. */
WITH_AVX2 static size_t read_blocks(struct str text, uint8_t *out)
{
    const __m256i classes = twice(_mm_setr_epi8(32, 32, 1, 2, 4, 8, 4, 16, 32, 32, 32, 32, 32, 32,
                                                32, 32));
    const __m256i wrong = twice(_mm_setr_epi8(0x25, 0x21, 0x21, 0x21, 0x21, 0x21, 0x21, 0x21, 0x21,
                                              0x21, 0x23, 0x3b, 0x3b, 0x3a, 0x3b, 0x33));
    const __m256i shifts = twice(_mm_setr_epi8(0, 0, 62 - '-', 52 - '0', -'A', -'A', 26 - 'a',
                                               26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i order = twice(_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1,
                                              -1));
    const __m256i close_up = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    const __m256i four = _mm256_set1_epi8(15), line = _mm256_set1_epi8('_');
    size_t i = 0;

    for (; i + 43 <= text.len; i += 32, out += 24) {
        __m256i chars = _mm256_loadu_si256((const void *)(text.data + i));
        __m256i high = _mm256_and_si256(_mm256_srli_epi32(chars, 4), four);
        __m256i low = _mm256_and_si256(chars, four);
        __m256i is_line = _mm256_cmpeq_epi8(chars, line);
        __m256i shift = _mm256_add_epi8(_mm256_shuffle_epi8(shifts, high),
                                        _mm256_and_si256(is_line,
                                                         _mm256_set1_epi8(63 - '_' + 'A')));
        __m256i pairs = _mm256_maddubs_epi16(_mm256_add_epi8(chars, shift),
                                             _mm256_set1_epi32(0x01400140));
        __m256i packed = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));

        if (!_mm256_testz_si256(_mm256_shuffle_epi8(classes, high),
                                _mm256_shuffle_epi8(wrong, low)))
            break;
        packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(packed, order), close_up);
        _mm256_storeu_si256((void *)out, packed);
    }
    return i;
}
#else
static bool can_blocks(size_t len)
{
    (void)len;
    return false;
}

static size_t write_blocks(const uint8_t *data, size_t len, char *out)
{
    (void)data, (void)len, (void)out;
    return 0;
}

static size_t read_blocks(struct str text, uint8_t *out)
{
    (void)text, (void)out;
    return 0;
}
#endif

void base64_write(const uint8_t *data, size_t len, char *out)
{
    size_t i = can_blocks(len) ? write_blocks(data, len, out) : 0;

    out += i / 3 * 4;
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
    size_t i = can_blocks(text.len) ? read_blocks(text, out) : 0;

    *len = i / 4 * 3;
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
