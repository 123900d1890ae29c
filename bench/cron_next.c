/* How long cron_next takes: everyday expressions, and the nastiest we know, each from 2,000 places
 * between 2000 and 2100 in New York's time. A place is measured five times, 16 calls each, and the
 * fastest counts: what is slow then is the search and not the machine. Prints one JSON object and
 * ends with 1 when a goal is missed: typical (median) below 1 microsecond, worst below 20.
 *
 *     cron_next [--zone America/New_York] */
#include "calendar/civil.h"
#include "calendar/cron.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLACES 2000
#define REPEATS 5
#define CALLS 16
#define TYPICAL_MAX_NS 1000.0
#define WORST_MAX_NS 20000.0

struct subject {
    const char *text;
    enum dst_policy policy;
    bool nasty;
};

static const struct subject subjects[] = {
    {"* * * * *", DST_STANDARD, false},
    {"*/15 * * * *", DST_STANDARD, false},
    {"0 * * * *", DST_STANDARD, false},
    {"30 2 * * *", DST_STANDARD, false},
    {"0 9 * * MON-FRI", DST_STANDARD, false},
    {"0 0 1 * *", DST_STANDARD, false},
    {"0 0 L * *", DST_STANDARD, false},
    {"*/10 * * * * *", DST_STANDARD, false},
    {"0 0 29 2 *", DST_STANDARD, true},       /* up to 8 years */
    {"0 0 * 2 1#5", DST_STANDARD, true},      /* up to 40 years */
    {"0 0 * 2 1#5", DST_BOTH, true},          /* the same, from change to change of the zone */
    {"*/59 23 * 2 1#5", DST_STANDARD, true},  /* in real time */
    {"59 59 23 * 2 1#5", DST_BOTH, true},
    {"30 2 * 3 0#2", DST_SKIP, true},         /* always in the gap: a hundred years for nothing */
    {"*/30 2 * 3 0#2", DST_STANDARD, true},   /* and in real time */
    {"30 2 8-14 3 *", DST_SKIP, true},
    {"59 59 23 31 12 *", DST_STANDARD, true},
    {"0 0 29W 2 ?", DST_BOTH, true},
    {"0 1 * 11 0#1", DST_BOTH, true},         /* always twice */
    {"0 0 L-30 1,3,5,7,8,10,12 *", DST_STANDARD, true},
};

#define SUBJECTS (sizeof subjects / sizeof *subjects)

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The fastest of a few runs; sum keeps the compiler from leaving the work out. */
static double measure(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
                      int64_t after_s, int64_t *sum)
{
    double best_ns = 1e18;

    for (int i = 0; i < REPEATS; i++) {
        double start_ns = now_ns();
        double each_ns;

        for (int n = 0; n < CALLS; n++) {
            int64_t next_s = 0;

            *sum += cron_next(cron, zone, policy, after_s + n, &next_s) ? next_s : 1;
        }
        each_ns = (now_ns() - start_ns) / CALLS;
        best_ns = each_ns < best_ns ? each_ns : best_ns;
    }
    return best_ns;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median and maximum over the places. */
static void run(const struct subject *subject, const struct zone *zone, double *median_ns,
                double *max_ns, int64_t *sum)
{
    static double places[PLACES];
    struct civil_time first = {.date = {2000, 1, 1}};
    int64_t step_s = INT64_C(100) * 31556952 / PLACES + 12345;
    struct cron cron;
    struct err err = {0};

    if (cron_parse(str_of(subject->text), &cron, &err) < 0) {
        fprintf(stderr, "%s: %s\n", subject->text, err.text);
        exit(2);
    }
    for (int i = 0; i < PLACES; i++)
        places[i] = measure(&cron, zone, subject->policy, civil_seconds(&first) + i * step_s, sum);
    qsort(places, PLACES, sizeof *places, by_value);
    *median_ns = places[PLACES / 2];
    *max_ns = places[PLACES - 1];
}

int main(int argc, char **argv)
{
    const char *name = argc == 3 && strcmp(argv[1], "--zone") == 0 ? argv[2] : "America/New_York";
    double typical_ns = 0;
    double worst_ns = 0;
    struct zone *zone = NULL;
    struct err err = {0};
    int64_t sum = 0;

    if (zone_load(NULL, str_of(name), &zone, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    printf("{\"zone\":\"%s\",\"expressions\":[", name);
    for (size_t i = 0; i < SUBJECTS; i++) {
        double median_ns, max_ns;

        run(&subjects[i], zone, &median_ns, &max_ns, &sum);
        if (!subjects[i].nasty && median_ns > typical_ns)
            typical_ns = median_ns;
        worst_ns = max_ns > worst_ns ? max_ns : worst_ns;
        printf("%s\n {\"cron\":\"%s\",\"dst\":\"%s\",\"nasty\":%s,\"median_ns\":%.0f,"
               "\"max_ns\":%.0f}", i ? "," : "", subjects[i].text,
               dst_policy_word(subjects[i].policy), subjects[i].nasty ? "true" : "false",
               median_ns, max_ns);
    }
    printf("],\n \"typical_ns\":%.0f,\"worst_ns\":%.0f,\"sum\":%lld}\n", typical_ns, worst_ns,
           (long long)sum);
    zone_free(zone);
    return typical_ns < TYPICAL_MAX_NS && worst_ns < WORST_MAX_NS ? 0 : 1;
}
