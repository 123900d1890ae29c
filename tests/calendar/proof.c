/* The proof of the calendar (the oracle of F-C4 ... F-C11): cron_next against brute force, in one
 * zone after the other.
 *
 *     calendar_proof [--from 2000] [--until 2100] [--around] ZONE...
 *
 * The brute force shares nothing with src/calendar: expressions are matched minute by minute by
 * naive_cron.c, and a zone is what the C library says (proof_zone.c). From both follows, by the words of requirement D3, the list of all instants;
 * cron_next must give exactly that list. Expressions that fire more than 24 times a day, and the
 * policies skip and both, are compared around every change of the zone (two days) and on every 61st
 * day; with --around everything is. Prints one line of JSON per zone; ends with 1 on a mismatch. */
#include "calendar/cron.h"
#include "naive_cron.h"
#include "proof_expressions.h"
#include "proof_zone.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_S PROOF_DAY_S
#define EXPRESSIONS_MAX 512
#define FULL_PER_DAY_MAX 24
#define EVERY_DAYS 61
#define ASK_SECONDS 9000 /* on both sides of a change; a multiple of the step */
#define ASK_STEP 300
#define SHOWN_MAX 20 /* mismatches that are printed */
#define WINDOW_FIRES_MAX (1u << 21)

/* What an expression matches, by local day and minute. Day 0 is the first of the table. */
struct table {
    char text[PROOF_EXPRESSION_BYTES];
    struct cron cron;
    bool follows_clock;
    bool *days;
    int minutes[1440]; /* the matching ones, ascending */
    int minutes_count;
    bool minute[1440];
};

struct proof {
    int from_year, until_year;
    bool around;
    int64_t first_day_s; /* local midnight of day 0 of the tables */
    int days_count;
    struct table tables[EXPRESSIONS_MAX];
    size_t tables_count;

    const char *name; /* of the zone at hand */
    struct zone *zone;
    struct proof_zone clock;
    int64_t *fires_s;
    size_t fires_count;
    int64_t compared, mismatches, calls;
};

/* ---- brute force: expressions ---- */

static void fill_table(struct proof *proof, struct table *table, const struct naive_cron *naive)
{
    struct naive_date date = {1970, 1, 1, 4};
    int64_t day_s = 0;

    for (; day_s < proof->first_day_s; day_s += DAY_S)
        date = naive_tomorrow(date);
    table->days = calloc((size_t)proof->days_count, sizeof *table->days);
    for (int day = 0; day < proof->days_count; day++, date = naive_tomorrow(date))
        table->days[day] = naive_cron_day(naive, &date);
    for (int minute = 0; minute < 1440; minute++) {
        table->minute[minute] = naive_cron_hour(naive, minute / 60) &&
                                naive_cron_minute(naive, minute % 60);
        if (table->minute[minute])
            table->minutes[table->minutes_count++] = minute;
    }
    table->follows_clock = naive_cron_follows_clock(naive);
}

/* An expression that is refused must have no day in the years of the proof. */
static bool never_fires(const struct proof *proof, const struct table *table)
{
    for (int day = 0; day < proof->days_count; day++)
        if (table->days[day])
            return false;
    return true;
}

static int make_tables(struct proof *proof)
{
    for (size_t i = 0; i < proof_expressions_count(); i++) {
        struct table *table = &proof->tables[proof->tables_count];
        struct naive_cron naive;
        struct err err = {0};

        memset(table, 0, sizeof *table);
        proof_expression(i, table->text);
        if (!naive_cron_read(table->text, &naive))
            return fprintf(stderr, "%s: not five fields\n", table->text), -1;
        fill_table(proof, table, &naive);
        if (cron_parse(str_of(table->text), &table->cron, &err) == 0) {
            proof->tables_count++;
        } else if (!never_fires(proof, table)) {
            return fprintf(stderr, "%s: refused: %s\n", table->text, err.text), -1;
        } else {
            free(table->days);
        }
    }
    return 0;
}

/* Whether a local minute (in seconds) matches. */
static bool matches(const struct proof *proof, const struct table *table, int64_t local_s)
{
    int64_t day = (local_s - proof->first_day_s) / DAY_S;

    return day >= 0 && day < proof->days_count && table->days[day] &&
           table->minute[(local_s - proof->first_day_s) % DAY_S / 60];
}

/* ---- brute force: instants, by the words of D3 ---- */

static void add_fire(struct proof *proof, int64_t at_s)
{
    if (proof->fires_count < WINDOW_FIRES_MAX)
        proof->fires_s[proof->fires_count++] = at_s;
}

/* Some clock time of a span before `index` was this one. */
static bool shown_before(const struct proof *proof, int index, int64_t local_s)
{
    for (int i = index - 1; i >= 0 && proof->clock.spans[i].until_s + 3 * DAY_S > local_s; i--) {
        int64_t utc_s = local_s - proof->clock.spans[i].offset_s;

        if (utc_s >= proof->clock.spans[i].from_s && utc_s < proof->clock.spans[i].until_s)
            return true;
    }
    return false;
}

/* The gap before a span: is a matching time in it? */
static bool gap_has_match(const struct proof *proof, const struct table *table, int index)
{
    const struct span *span = &proof->clock.spans[index];
    int64_t local_s = index > 0 ? span->from_s + proof->clock.spans[index - 1].offset_s : INT64_MAX;

    for (; local_s < span->from_s + span->offset_s; local_s += 60)
        if (matches(proof, table, local_s))
            return true;
    return false;
}

/* All that fire in a span, from from_s up to until_s. */
static void fire_span(struct proof *proof, const struct table *table, enum dst_policy policy,
                      int index, int64_t from_s, int64_t until_s)
{
    const struct span *span = &proof->clock.spans[index];
    bool once = !table->follows_clock && policy != DST_BOTH;
    int64_t fold_until_s = index > 0 ? span->from_s + proof->clock.spans[index - 1].offset_s : 0;
    int64_t day = (from_s + span->offset_s - proof->first_day_s) / DAY_S;

    if (from_s == span->from_s && !table->follows_clock && policy != DST_SKIP &&
        gap_has_match(proof, table, index) &&
        !matches(proof, table, span->from_s + span->offset_s))
        add_fire(proof, span->from_s);
    for (; day < proof->days_count; day++) {
        int64_t day_s = proof->first_day_s + day * DAY_S;

        if (day_s - span->offset_s >= until_s)
            return;
        if (!table->days[day])
            continue;
        for (int i = 0; i < table->minutes_count; i++) {
            int64_t local_s = day_s + table->minutes[i] * 60;
            int64_t utc_s = local_s - span->offset_s;

            if (utc_s < from_s || utc_s >= until_s)
                continue;
            if (once && local_s < fold_until_s && shown_before(proof, index, local_s))
                continue;
            add_fire(proof, utc_s);
        }
    }
}

static void fire_window(struct proof *proof, const struct table *table, enum dst_policy policy,
                        int64_t from_s, int64_t until_s)
{
    proof->fires_count = 0;
    for (int i = 0; i < proof->clock.spans_count; i++) {
        const struct span *span = &proof->clock.spans[i];
        int64_t start_s = span->from_s > from_s ? span->from_s : from_s;
        int64_t end_s = span->until_s < until_s ? span->until_s : until_s;

        if (start_s < end_s)
            fire_span(proof, table, policy, i, start_s, end_s);
    }
}

/* ---- the comparison ---- */

static void mismatch(struct proof *proof, const struct table *table, enum dst_policy policy,
                     int64_t after_s, int64_t expected_s, int64_t found_s)
{
    if (proof->mismatches++ < SHOWN_MAX)
        fprintf(stderr, "MISMATCH %s \"%s\" %s after %lld: %lld instead of %lld\n", proof->name,
                table->text, dst_policy_word(policy), (long long)after_s, (long long)found_s,
                (long long)expected_s);
}

static void ask(struct proof *proof, const struct table *table, enum dst_policy policy,
                int64_t after_s, int64_t expected_s)
{
    int64_t found_s = INT64_MAX;

    proof->calls++;
    if (!cron_next(&table->cron, proof->zone, policy, after_s, &found_s))
        found_s = INT64_MAX;
    if (found_s != expected_s)
        mismatch(proof, table, policy, after_s, expected_s, found_s);
}

/* Each instant from the one before it, and some from places between; behind the last one, nothing
 * before the end of the window. */
static void compare_window(struct proof *proof, const struct table *table, enum dst_policy policy,
                           int64_t from_s, int64_t until_s)
{
    int64_t after_s = from_s - 1;
    int64_t found_s;

    fire_window(proof, table, policy, from_s, until_s);
    if (proof->fires_count == WINDOW_FIRES_MAX)
        mismatch(proof, table, policy, from_s, 0, 0);
    for (size_t i = 0; i < proof->fires_count; i++) {
        int64_t expected_s = proof->fires_s[i];

        ask(proof, table, policy, after_s, expected_s);
        if (i % 8 == 3) {
            ask(proof, table, policy, expected_s - 1, expected_s);
            ask(proof, table, policy, after_s + (expected_s - after_s) / 2, expected_s);
        }
        after_s = expected_s;
    }
    proof->compared += (int64_t)proof->fires_count;
    proof->calls++;
    if (cron_next(&table->cron, proof->zone, policy, after_s, &found_s) && found_s < until_s)
        mismatch(proof, table, policy, after_s, until_s, found_s);
}

/* From all places around a change, in a gap's last second and in an hour that comes again, with the
 * list of the window at hand. */
static void ask_around(struct proof *proof, const struct table *table, enum dst_policy policy,
                       int64_t change_s)
{
    size_t next = 0;

    for (int64_t at_s = change_s - ASK_SECONDS; at_s <= change_s + ASK_SECONDS; at_s += ASK_STEP) {
        for (int64_t after_s = at_s - 1; after_s <= at_s; after_s++) {
            while (next < proof->fires_count && proof->fires_s[next] <= after_s)
                next++;
            if (next < proof->fires_count)
                ask(proof, table, policy, after_s, proof->fires_s[next]);
        }
    }
}

/* Around every change, and every 61st day. */
static void compare_around(struct proof *proof, const struct table *table, enum dst_policy policy,
                           int64_t from_s, int64_t until_s)
{
    for (int i = 1; i < proof->clock.spans_count; i++) {
        int64_t change_s = proof->clock.spans[i].from_s;

        if (change_s - 2 * DAY_S < from_s || change_s + 2 * DAY_S > until_s)
            continue;
        compare_window(proof, table, policy, change_s - 2 * DAY_S, change_s + 2 * DAY_S);
        ask_around(proof, table, policy, change_s);
    }
    for (int64_t day_s = from_s; day_s + DAY_S <= until_s; day_s += EVERY_DAYS * DAY_S)
        compare_window(proof, table, policy, day_s, day_s + DAY_S);
}

static void compare_zone(struct proof *proof, int64_t from_s, int64_t until_s)
{
    for (size_t i = 0; i < proof->tables_count; i++) {
        const struct table *table = &proof->tables[i];

        for (int policy = 0; policy < DST_POLICY_COUNT; policy++)
            compare_around(proof, table, (enum dst_policy)policy, from_s, until_s);
        if (!proof->around && table->minutes_count <= FULL_PER_DAY_MAX)
            compare_window(proof, table, DST_STANDARD, from_s, until_s);
    }
}

/* Spans and tables reach a few days further than what is compared, on both sides. */
static int prove_zone(struct proof *proof, const char *name)
{
    int64_t from_s = proof_year_s(proof->from_year);
    int64_t until_s = proof_year_s(proof->until_year + 1);
    struct err err = {0};

    proof->name = name;
    proof->compared = proof->mismatches = proof->calls = 0;
    if (zone_load(NULL, str_of(name), &proof->zone, &err) < 0)
        return fprintf(stderr, "%s\n", err.text), -1;
    if (proof_zone_read(&proof->clock, name, from_s - 10 * DAY_S, until_s + 10 * DAY_S) < 0)
        return -1;
    compare_zone(proof, from_s, until_s);
    printf("{\"zone\":\"%s\",\"changes\":%d,\"expressions\":%zu,\"compared\":%lld,\"calls\":%lld,"
           "\"mismatches\":%lld}\n", name, proof->clock.spans_count - 1, proof->tables_count,
           (long long)proof->compared, (long long)proof->calls, (long long)proof->mismatches);
    fflush(stdout);
    zone_free(proof->zone);
    return proof->mismatches > 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct proof *proof = calloc(1, sizeof *proof);
    int at = 1;
    int rc = 0;

    if (!proof || !(proof->fires_s = calloc(WINDOW_FIRES_MAX, sizeof(int64_t))))
        return 2;
    proof->from_year = 2000;
    proof->until_year = 2100;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--around") == 0)
            proof->around = true;
        else if (strcmp(argv[at], "--from") == 0 && at + 1 < argc)
            proof->from_year = atoi(argv[++at]);
        else if (strcmp(argv[at], "--until") == 0 && at + 1 < argc)
            proof->until_year = atoi(argv[++at]);
    }
    if (at >= argc || proof->from_year < 1970 || proof->until_year > 2200)
        return fprintf(stderr, "usage: calendar_proof [--from Y] [--until Y] [--around] ZONE...\n"),
               2;
    proof->first_day_s = proof_year_s(proof->from_year) - 20 * DAY_S;
    proof->days_count = (int)((proof_year_s(proof->until_year + 1) - proof->first_day_s) / DAY_S) + 20;
    if (make_tables(proof) < 0)
        return 1;
    for (; at < argc; at++)
        rc |= prove_zone(proof, argv[at]) < 0;
    for (size_t i = 0; i < proof->tables_count; i++)
        free(proof->tables[i].days);
    free(proof->fires_s);
    free(proof);
    return rc;
}
