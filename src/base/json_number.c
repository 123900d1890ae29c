/* Decimal numbers both ways, independent of the process's locale: strtod is only ever given digits
 * and an exponent without a decimal point, and of what snprintf prints only the digits are taken.
 * Any thread; no state. */
#include "base/json_int.h"

#include <float.h>
#include <math.h>

#define DIGITS_MAX 800            /* 767 decide any double; one more says "and something" */
#define EXPONENT_MAX 1000000000000 /* beyond the length of any text, far from overflow */

/* 0.DIGITS times ten to the power of `exponent`, without zeros in front or behind. */
struct decimal {
    bool negative;
    uint32_t count;
    int64_t exponent;
    char digits[DIGITS_MAX + 1];
};

static void add_digit(struct decimal *decimal, char digit, bool whole, bool *cut)
{
    if (decimal->count == 0 && digit == '0') {
        decimal->exponent -= !whole;
        return;
    }
    decimal->exponent += whole;
    if (decimal->count < DIGITS_MAX)
        decimal->digits[decimal->count++] = digit;
    else
        *cut |= digit != '0';
}

/* The exponent behind e or E. */
static int64_t read_exponent(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t exponent = 0;

    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; at < end && json_is_digit(*at); at++)
        if (exponent < EXPONENT_MAX)
            exponent = exponent * 10 + (*at - '0');
    return negative ? -exponent : exponent;
}

static void read_decimal(struct str number, struct decimal *decimal)
{
    const char *at = number.data;
    const char *end = number.data + number.len;
    bool whole = true;
    bool cut = false;

    decimal->negative = at < end && *at == '-';
    decimal->count = 0;
    decimal->exponent = 0;
    for (at += decimal->negative; at < end; at++) {
        if (*at == '.')
            whole = false;
        else if (json_is_digit(*at))
            add_digit(decimal, *at, whole, &cut);
        else
            break;
    }
    if (at < end)
        decimal->exponent += read_exponent(at + 1, end);
    if (cut)
        decimal->digits[decimal->count++] = '1';
    while (decimal->count && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
    if (decimal->count == 0)
        decimal->exponent = 0;
}

static double decimal_to_double(const struct decimal *decimal)
{
    char text[DIGITS_MAX + 40];
    int64_t exponent = decimal->exponent - decimal->count;
    double value;

    if (decimal->count == 0 || decimal->exponent < -400)
        value = 0;
    else if (decimal->exponent > 400)
        value = (double)INFINITY;
    else {
        snprintf(text, sizeof text, "%.*se%d", (int)decimal->count, decimal->digits,
                 (int)exponent);
        value = strtod(text, NULL);
    }
    return decimal->negative ? -value : value;
}

bool json_number_overflows(struct str number)
{
    struct decimal decimal = {0};

    read_decimal(number, &decimal);
    if (decimal.exponent != DBL_MAX_10_EXP + 1)
        return decimal.exponent > DBL_MAX_10_EXP;
    return isinf(decimal_to_double(&decimal));
}

static bool is_number(struct str value)
{
    return value.len && (value.data[0] == '-' || json_is_digit(value.data[0]));
}

bool json_double(struct str value, double *number)
{
    struct decimal decimal = {0};

    if (!is_number(value))
        return false;
    read_decimal(value, &decimal);
    *number = decimal_to_double(&decimal);
    return true;
}

bool json_int64(struct str value, int64_t *number)
{
    char text[24];
    size_t len = 0;
    struct decimal decimal = {0};

    if (!is_number(value))
        return false;
    if (value.len <= 18 && str_to_int64(value, number)) /* nearly all of them */
        return true;
    read_decimal(value, &decimal);
    if (decimal.exponent < decimal.count || decimal.exponent > 19)
        return false;
    if (decimal.negative)
        text[len++] = '-';
    text[len++] = '0';
    memcpy(text + len, decimal.digits, decimal.count);
    memset(text + len + decimal.count, '0', (size_t)decimal.exponent - decimal.count);
    return str_to_int64(str_span(text, len + (size_t)decimal.exponent), number);
}

/* The digits of `value` (positive) rounded to `count` of them. */
static void round_to(double value, int count, struct decimal *decimal)
{
    char text[64];
    const char *at = text;

    snprintf(text, sizeof text, "%.*e", count - 1, value);
    decimal->negative = false;
    decimal->count = 0;
    for (; *at && *at != 'e'; at++)
        if (json_is_digit(*at)) /* the decimal point is the locale's, of one or more bytes */
            decimal->digits[decimal->count++] = *at;
    decimal->exponent = *at ? read_exponent(at + 1, text + strlen(text)) + 1 : 1;
}

/* The next larger decimal with as many digits. */
static void step_up(struct decimal *decimal)
{
    uint32_t i = decimal->count;

    while (i > 0 && decimal->digits[i - 1] == '9')
        decimal->digits[--i] = '0';
    if (i > 0) {
        decimal->digits[i - 1]++;
        return;
    }
    decimal->digits[0] = '1';
    decimal->exponent++;
}

/* The fewest digits that read back as `value`, the nearest of these. A normal double with a form
 * of up to 15 digits shows it at 15; one below DBL_MIN can be shorter only by trying. Below a power
 * of two doubles lie closer together than above, so there the next decimal up may read back where
 * the nearest does not. */
static void shortest(double value, struct decimal *decimal)
{
    int exponent;
    bool power_of_two = frexp(value, &exponent) == 0.5;

    for (int count = value < DBL_MIN ? 1 : 15; count <= 17; count++) {
        round_to(value, count, decimal);
        if (decimal_to_double(decimal) == value)
            break;
        if (power_of_two && count < 17) {
            step_up(decimal);
            if (decimal_to_double(decimal) == value)
                break;
        }
    }
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
}

static void write_zeros(struct buf *out, int64_t count)
{
    while (count-- > 0)
        buf_byte(out, '0');
}

/* The layout rules of ECMAScript: plain from 1e-6 up to below 1e21, else with an exponent. */
static void write_decimal(struct buf *out, const struct decimal *decimal)
{
    int64_t point = decimal->exponent;
    int64_t count = decimal->count;

    if (point > 21 || point < -5) {
        buf_byte(out, decimal->digits[0]);
        if (count > 1)
            buf_byte(out, '.');
        buf_append(out, decimal->digits + 1, (size_t)count - 1);
        buf_text(out, point > 0 ? "e+" : "e");
        buf_int(out, point - 1);
    } else if (point <= 0) {
        buf_text(out, "0.");
        write_zeros(out, -point);
        buf_append(out, decimal->digits, (size_t)count);
    } else {
        buf_append(out, decimal->digits, (size_t)(count < point ? count : point));
        write_zeros(out, point - count);
        if (count > point) {
            buf_byte(out, '.');
            buf_append(out, decimal->digits + point, (size_t)(count - point));
        }
    }
}

void json_write_double(struct buf *out, double value)
{
    struct decimal decimal = {0};

    if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value) {
        buf_int(out, (int64_t)value); /* also turns -0 into 0 */
        return;
    }
    if (value < 0)
        buf_byte(out, '-');
    shortest(fabs(value), &decimal);
    write_decimal(out, &decimal);
}

bool json_write_number(struct buf *out, struct str number)
{
    struct decimal decimal = {0};
    double value;

    if (!is_number(number))
        return false;
    read_decimal(number, &decimal);
    /* No two decimals of up to DBL_DIG digits share a double: this one is the shortest already. */
    if (decimal.count > 0 && decimal.count <= DBL_DIG && decimal.exponent > DBL_MIN_10_EXP + 1 &&
        decimal.exponent < DBL_MAX_10_EXP) {
        if (decimal.negative)
            buf_byte(out, '-');
        write_decimal(out, &decimal);
        return true;
    }
    value = decimal_to_double(&decimal);
    if (isinf(value))
        return false;
    json_write_double(out, value);
    return true;
}
