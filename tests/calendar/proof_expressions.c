/* See proof_expressions.h. */
#include "proof_expressions.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MADE_UP 120

static const char *const written[] = {
    /* every minute, steps, hours */
    "* * * * *", "*/2 * * * *", "*/5 * * * *", "*/7 * * * *", "*/15 * * * *", "*/59 * * * *",
    "0 * * * *", "30 * * * *", "0,30 * * * *", "5/20 * * * *", "1-10/3 * * * *", "59 * * * *",
    "0 */2 * * *", "0 */5 * * *", "0 1-23/2 * * *", "30 0/6 * * *", "*/30 2 * * *", "*/20 1 * * *",
    "*/10 0 * * *", "*/30 0-3 * * *", "* 2 * * *", "0 0-23 * * *",
    /* times that daylight saving touches, on most continents */
    "0 0 * * *", "1 0 * * *", "30 0 * * *", "59 23 * * *", "30 23 * * *", "0 1 * * *", "30 1 * * *",
    "59 1 * * *", "0 2 * * *", "15 2 * * *", "30 2 * * *", "59 2 * * *", "0 3 * * *", "30 3 * * *",
    "0,30 2 * * *", "0,15,30,45 1 * * *", "0 0,1,2,3 * * *", "30 0,1,2,3,22,23 * * *",
    "15 2,14 * * *", "0 0,12 * * *", "45 1,2 * * *", "0 4 * * *", "0 9 * * *", "0 12 * * *",
    /* weekdays */
    "0 9 * * MON-FRI", "0 9 * * 1-5", "30 2 * * 0", "30 2 * * 7", "30 1 * * SUN", "0 0 * * 5-7",
    "0 0 * * sat-sun", "0 2 * * 0,6", "0 3 * * */2", "0 22 * * 1,3,5", "0 2 * * 6", "0 0 * * 0",
    /* days of the month */
    "0 0 1 * *", "0 0 15 * *", "0 0 28 * *", "0 0 29 * *", "0 0 30 * *", "0 0 31 * *",
    "30 2 8-14 * *", "0 2 25-31 * *", "0 0 1,15 * *", "0 0 */2 * *", "0 0 */10 * *",
    "0 0 2/3 * *", "0 0 1-31/7 * *",
    /* months and leap days */
    "0 0 1 1 *", "0 0 1 JAN,JUL *", "0 0 29 2 *", "30 2 29 2 *", "0 0 28,29 2 *", "0 12 31 12 *",
    "30 2 * 3 *", "30 1 * 10,11 *", "0 0 1 */3 *", "0 0 31 1-12/2 *", "0 0 30 12 *",
    /* both days */
    "0 0 13 * 5", "0 0 1 * 1", "0 0 1,15 * MON", "0 0 */2 * 1", "0 0 1-7 * */2", "0 0 1-31 * 3",
    "30 2 14 3 0", "0 0 29 2 1", "0 0 31 * 0,6", "0 0 ? * 5", "0 0 13 * ?", "0 0 *,5 * 2",
    "0 0 5,* * 2",
    /* L, W, # */
    "0 0 L * *", "0 0 L 2 *", "0 0 L-1 * *", "0 0 L-3 * *", "0 0 L-29 * *", "0 0 L-30 * *",
    "0 0 LW * *", "0 0 LW 2 *", "0 0 L-2W * *", "0 0 1W * *", "0 0 15W * *", "0 0 31W * *",
    "0 0 29W 2 *", "0 0 1W,15W * *", "0 0 1,L * *", "0 0 L * 5", "0 0 15W * MON#1",
    "0 0 * * 5L", "0 0 * * SUNL", "30 2 * * 0L", "30 2 * 3 0#2", "30 1 * 11 0#1", "30 2 * 3 0L",
    "0 3 * 10 7#1", "0 0 * * 1#1", "0 0 * * TUE#2", "0 0 * * 3#3", "0 0 * * 4#4", "0 0 * * 6#5",
    "0 0 * 2 1#5", "0 0 * 2 0#5,3#5", "0 0 * * 1#1,1#3", "0 0 * * MON#1,FRIL", "0 0 L,1 * MON#1",
    "0 0 ? * 2#1", "*/30 2 * 3 0#2",
};

#define WRITTEN (sizeof written / sizeof *written)

size_t proof_expressions_count(void)
{
    return WRITTEN + MADE_UP;
}

static uint32_t roll(uint64_t *seed, uint32_t sides)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % sides;
}

/* A value, a list, a range or a range with steps; few values, so that it fires seldom. */
static void make_field(uint64_t *seed, int min, int max, char *text, size_t bytes)
{
    int size = max - min + 1;
    int a = min + (int)roll(seed, (uint32_t)size);
    int b = min + (int)roll(seed, (uint32_t)size);
    int low = a < b ? a : b;
    int high = a < b ? b : a;

    switch (roll(seed, 4)) {
    case 0:
        snprintf(text, bytes, "%d", a);
        break;
    case 1:
        snprintf(text, bytes, "%d,%d", a, b);
        break;
    case 2:
        snprintf(text, bytes, "%d-%d/%d", low, high, 1 + (int)roll(seed, 9));
        break;
    default:
        snprintf(text, bytes, "%d,%d-%d", a, low, low + (high - low) / 4);
        break;
    }
}

static void make_day(uint64_t *seed, char *text, size_t bytes)
{
    switch (roll(seed, 8)) {
    case 0:
        snprintf(text, bytes, "L-%u", 1 + roll(seed, 27));
        break;
    case 1:
        snprintf(text, bytes, "%uW", 1 + roll(seed, 31));
        break;
    case 2:
    case 3:
    case 4:
        snprintf(text, bytes, "*");
        break;
    case 5:
        snprintf(text, bytes, "*/%u", 2 + roll(seed, 12));
        break;
    default:
        make_field(seed, 1, 28, text, bytes);
        break;
    }
}

static void make_weekday(uint64_t *seed, char *text, size_t bytes)
{
    switch (roll(seed, 6)) {
    case 0:
        snprintf(text, bytes, "%u#%u", roll(seed, 7), 1 + roll(seed, 5));
        break;
    case 1:
        snprintf(text, bytes, "%uL", roll(seed, 8));
        break;
    case 2:
        make_field(seed, 0, 6, text, bytes);
        break;
    default:
        snprintf(text, bytes, "*");
        break;
    }
}

void proof_expression(size_t index, char *text)
{
    uint64_t seed = index * 7919 + 12345;
    char fields[5][32];

    if (index < WRITTEN) {
        snprintf(text, PROOF_EXPRESSION_BYTES, "%s", written[index]);
        return;
    }
    for (int i = 0; i < 8; i++)
        (void)roll(&seed, 2);
    make_field(&seed, 0, 59, fields[0], sizeof fields[0]);
    make_field(&seed, 0, roll(&seed, 2) ? 23 : 4, fields[1], sizeof fields[1]);
    make_day(&seed, fields[2], sizeof fields[2]);
    if (roll(&seed, 2))
        snprintf(fields[3], sizeof fields[3], "*");
    else
        make_field(&seed, 1, 12, fields[3], sizeof fields[3]);
    make_weekday(&seed, fields[4], sizeof fields[4]);
    snprintf(text, PROOF_EXPRESSION_BYTES, "%s %s %s %s %s", fields[0], fields[1], fields[2],
             fields[3], fields[4]);
}
