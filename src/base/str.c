/* The rules of base/str.h that are more than a comparison: order, numbers, durations and UTF-8.
 * Locale-independent on purpose; nothing here allocates. Any thread. */
#include "base/str.h"

int str_compare(struct str a, struct str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.data, b.data, len) : 0;

    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

bool str_to_int64(struct str text, int64_t *value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    size_t i = negative ? 1 : 0;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t sum = 0;

    if (i == text.len)
        return false;
    for (; i < text.len; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.data[i] - '0';

        if (digit > 9 || sum > (limit - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

struct str str_of_int64(int64_t value, char space[STR_INT_BYTES])
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t at = STR_INT_BYTES;

    do {
        space[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        space[--at] = '-';
    return str_span(space + at, STR_INT_BYTES - at);
}

bool str_to_duration_ms(struct str text, int64_t *value_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t digits = 0;
    int64_t count;

    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    if (digits == text.len && str_is(text, "0")) {
        *value_ms = 0;
        return true;
    }
    if (!str_to_int64(str_span(text.data, digits), &count))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!str_is(str_span(text.data + digits, text.len - digits), units[i].unit))
            continue;
        if (count > INT64_MAX / 1000 / units[i].ms) /* stays countable in microseconds */
            return false;
        *value_ms = count * units[i].ms;
        return true;
    }
    return false;
}

size_t str_utf8_step(const char *at, size_t left)
{
    const unsigned char *s = (const unsigned char *)at;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        return left >= 2 && (s[1] & 0xC0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        if (left < 3 || (s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80)
            return 0;
        if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))
            return 0;
        return 3;
    }
    if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        if (left < 4 || (s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80 || (s[3] & 0xC0) != 0x80)
            return 0;
        if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
            return 0;
        return 4;
    }
    return 0;
}

bool str_is_utf8(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t step = text.data[i] == 0 ? 0 : str_utf8_step(text.data + i, text.len - i);

        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

struct str str_cut(struct str text, size_t bytes_max)
{
    if (text.len <= bytes_max)
        return text;
    text.len = bytes_max;
    while (text.len > 0 && ((unsigned char)text.data[text.len] & 0xc0) == 0x80)
        text.len--;
    return text;
}

bool str_words_same(char *const *a, char *const *b)
{
    if (!a || !b)
        return a == b;
    while (*a && *b && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == *b;
}
