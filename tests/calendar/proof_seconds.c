/* The proof of the calendar to the second (D2, D3, F-C4, F-C5, F-C6): six-field expressions, asked
 * of cron_next around every change of a zone, against a clock that is walked second by second.
 *
 *     calendar_proof_seconds [--from 2000] [--until 2100] ZONE...
 *
 * The brute force shares nothing with src/calendar (see proof.c). In a window of four hours on both
 * sides of a change, more where clocks jump further, each second is looked at: what clocks show
 * then, whether the expression names it, whether it was shown before, and what was jumped over.
 * Prints one line of JSON per zone; ends with 1 on a mismatch. */
#include "calendar/cron.h"
#include "naive_cron.h"
#include "proof_zone.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_S PROOF_DAY_S
#define SIDE_S (4 * 3600)
#define WINDOW_MAX (3 * DAY_S)
#define CLOSE_S 120 /* this near to a change it is asked from every second */
#define ASK_EVERY 61
#define SHOWN_MAX 20

static const char *const texts[] = {
    "* * * * * *", "*/7 * * * * *", "0 * * * * *", "30 * * * * *", "1-59/29 * * * * *",
    "0 0 * * * *", "59 59 * * * *", "30 2 * * * *", "*/13 */17 * * * *", "0 0 */2 * * *",
    "15 */20 2 * * *", "* * 2 * * *", "* 30 2 * * *", "*/10 30 2 * * *", "15 30 2 * * *",
    "59 59 1 * * *", "0 0 2 * * *", "59 59 2 * * *", "0 0 3 * * *", "1 0 3 * * *",
    "30 15,45 1 * * *", "0,30 0,30 1,2 * * *", "5,6,7 0 1,2,3 * * *", "* 0 1 * * *",
    "*/15 59 1 * * *", "0 0 0 * * *", "1 0 0 * * *", "59 59 23 * * *", "*/20 30 0 * * *",
    "30 30 23 * * *", "45 0 1 * * *", "10 20 12 30 12 *", "0 30 2 * 3 0#2", "7 30 1 * 11 0#1",
    "0-9 30 2 * 3,10 0L", "59 29 2 8-14 3 */7", "0 15 1,2 * * SUN", "20 40 3 * 4,9,10 6,0",
};

#define TEXTS (sizeof texts / sizeof *texts)

/* What an expression names, by local day and second. */
struct table {
    const char *text;
    struct cron cron;
    bool follows_clock;
    bool *days;
    bool seconds[DAY_S];
};

struct proof {
    int64_t first_day_s; /* local midnight of day 0 of the tables */
    int days_count;
    struct table tables[TEXTS];

    const char *name;
    struct zone *zone;
    struct proof_zone clock;
    int64_t fires_s[WINDOW_MAX];
    int fires_count;
    bool shown[3 * WINDOW_MAX]; /* local seconds of the window, from a window before it */
    int64_t compared, calls, mismatches;
};

static int fill_table(struct proof *proof, struct table *table, const char *text)
{
    struct naive_date date = {1970, 1, 1, 4};
    struct naive_cron naive;
    struct err err = {0};

    table->text = text;
    if (!naive_cron_read(text, &naive) || cron_parse(str_of(text), &table->cron, &err) < 0)
        return fprintf(stderr, "%s: %s\n", text, err.text), -1;
    for (int64_t day_s = 0; day_s < proof->first_day_s; day_s += DAY_S)
        date = naive_tomorrow(date);
    table->days = calloc((size_t)proof->days_count, sizeof *table->days);
    for (int day = 0; day < proof->days_count; day++, date = naive_tomorrow(date))
        table->days[day] = naive_cron_day(&naive, &date);
    for (int second = 0; second < DAY_S; second++)
        table->seconds[second] = naive_cron_second(&naive, second % 60) &&
                                 naive_cron_minute(&naive, second / 60 % 60) &&
                                 naive_cron_hour(&naive, second / 3600);
    table->follows_clock = naive_cron_follows_clock(&naive);
    return 0;
}

static bool named(const struct proof *proof, const struct table *table, int64_t local_s)
{
    int64_t day = (local_s - proof->first_day_s) / DAY_S;

    return day >= 0 && day < proof->days_count && table->days[day] &&
           table->seconds[(local_s - proof->first_day_s) % DAY_S];
}

/* Was one jumped over at the start of a span? */
static bool jumped_over(const struct proof *proof, const struct table *table, int span)
{
    const struct span *spans = proof->clock.spans;
    int64_t local_s = spans[span].from_s + spans[span - 1].offset_s;

    for (; local_s < spans[span].from_s + spans[span].offset_s; local_s++)
        if (named(proof, table, local_s))
            return true;
    return false;
}

/* The walk: each second of the window, by the words of D3. */
static void walk(struct proof *proof, const struct table *table, enum dst_policy policy,
                 int64_t from_s, int64_t until_s)
{
    const struct span *spans = proof->clock.spans;
    int span = 0;

    proof->fires_count = 0;
    memset(proof->shown, 0, sizeof proof->shown);
    while (spans[span].until_s <= from_s)
        span++;
    for (int64_t at_s = from_s; at_s < until_s; at_s++) {
        bool jump = at_s == spans[span].until_s;
        int64_t local_s;
        bool *shown, fires;

        span += jump;
        local_s = at_s + spans[span].offset_s;
        shown = &proof->shown[local_s - from_s + WINDOW_MAX];
        fires = named(proof, table, local_s);
        if (!table->follows_clock) {
            if (*shown && policy != DST_BOTH)
                fires = false;
            if (jump && policy != DST_SKIP && jumped_over(proof, table, span))
                fires = true;
        }
        *shown = true;
        if (fires)
            proof->fires_s[proof->fires_count++] = at_s;
    }
}

static void ask(struct proof *proof, const struct table *table, enum dst_policy policy,
                int64_t after_s, int64_t expected_s, bool at_least)
{
    int64_t found_s = INT64_MAX;

    proof->calls++;
    if (!cron_next(&table->cron, proof->zone, policy, after_s, &found_s))
        found_s = INT64_MAX;
    if (found_s == expected_s || (at_least && found_s > expected_s))
        return;
    if (proof->mismatches++ < SHOWN_MAX)
        fprintf(stderr, "MISMATCH %s \"%s\" %s after %lld: %lld instead of %lld\n", proof->name,
                table->text, dst_policy_word(policy), (long long)after_s, (long long)found_s,
                (long long)expected_s);
}

/* Each one from the one before; then from places between, and from every second near the change. */
static void compare(struct proof *proof, const struct table *table, enum dst_policy policy,
                    int64_t change_s, int64_t side_s)
{
    int64_t from_s = change_s - side_s;
    int64_t until_s = change_s + side_s;
    int64_t before_s = from_s - 1;
    int next = 0;

    walk(proof, table, policy, from_s, until_s);
    for (int i = 0; i < proof->fires_count; i++) {
        ask(proof, table, policy, before_s, proof->fires_s[i], false);
        before_s = proof->fires_s[i];
    }
    for (int64_t at_s = from_s; at_s < until_s; at_s++) {
        bool is_last;

        while (next < proof->fires_count && proof->fires_s[next] <= at_s)
            next++;
        if (at_s % ASK_EVERY != 0 && (at_s < change_s - CLOSE_S || at_s > change_s + CLOSE_S))
            continue;
        is_last = next == proof->fires_count;
        ask(proof, table, policy, at_s, is_last ? until_s : proof->fires_s[next], is_last);
    }
    proof->compared += until_s - from_s;
}

static int prove_zone(struct proof *proof, const char *name, int64_t from_s, int64_t until_s)
{
    struct err err = {0};

    proof->name = name;
    proof->compared = proof->calls = proof->mismatches = 0;
    if (zone_load(NULL, str_of(name), &proof->zone, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), -1;
    if (proof_zone_read(&proof->clock, name, from_s, until_s) < 0)
        return -1;
    for (int i = 1; i < proof->clock.spans_count; i++) {
        const struct span *span = &proof->clock.spans[i];
        int64_t side_s = SIDE_S + llabs(span->offset_s - span[-1].offset_s);

        if (span->from_s < from_s + 2 * DAY_S || span->from_s > until_s - 3 * DAY_S)
            continue;
        for (size_t text = 0; text < TEXTS; text++)
            for (int policy = 0; policy < DST_POLICY_COUNT; policy++)
                compare(proof, &proof->tables[text], (enum dst_policy)policy, span->from_s, side_s);
    }
    printf("{\"zone\":\"%s\",\"changes\":%d,\"expressions\":%zu,\"seconds\":%lld,\"calls\":%lld,"
           "\"mismatches\":%lld}\n", name, proof->clock.spans_count - 1, TEXTS,
           (long long)proof->compared, (long long)proof->calls, (long long)proof->mismatches);
    fflush(stdout);
    zone_free(proof->zone);
    return proof->mismatches > 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct proof *proof = calloc(1, sizeof *proof);
    int from_year = 2000;
    int until_year = 2100;
    int at = 1;
    int rc = 0;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--from") == 0)
            from_year = atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--until") == 0)
            until_year = atoi(argv[at + 1]);
    }
    if (!proof || at >= argc || from_year < 1970 || until_year > 2200)
        return fprintf(stderr, "usage: calendar_proof_seconds [--from Y] [--until Y] ZONE...\n"), 2;
    proof->first_day_s = proof_year_s(from_year) - 20 * DAY_S;
    proof->days_count = (int)((proof_year_s(until_year + 1) - proof->first_day_s) / DAY_S) + 20;
    for (size_t i = 0; i < TEXTS && rc == 0; i++)
        rc = fill_table(proof, &proof->tables[i], texts[i]);
    for (; at < argc && rc == 0; at++)
        rc |= prove_zone(proof, argv[at], proof_year_s(from_year), proof_year_s(until_year + 1));
    for (size_t i = 0; i < TEXTS; i++)
        free(proof->tables[i].days);
    free(proof);
    return rc == 0 ? 0 : 1;
}
