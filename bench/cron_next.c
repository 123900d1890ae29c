/* How long cron_next takes: everyday expressions, and the nastiest there are, each from places all
 * over 2000 to 2100. All of them are measured in turns, several rounds: what disturbs the machine
 * for a while disturbs one round, and a place counts with its fastest. Prints one JSON object and
 * ends with 1 when a goal is missed: typical (median of the places) below 1 microsecond, worst
 * (slowest place) below 20.
 *
 *     cron_next                                  measures
 *     cron_next --once ZONE POLICY AFTER CRON    a single call, for counting its instructions
 *     cron_next --search ZONE...                 looks for the slowest there are: cron_search.c
 *
 * The nasty ones are what --search found in all zones of the system, one of each sort. */
#include "cron_next.h"

#include "calendar/civil.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLACES 400
#define ROUNDS 9
#define CALLS 16
#define TYPICAL_MAX_NS 1000.0
#define WORST_MAX_NS 20000.0
#define EVERYDAY "America/New_York"

static const struct subject subjects[] = {
    {"* * * * *", DST_STANDARD, EVERYDAY, false},
    {"*/15 * * * *", DST_STANDARD, EVERYDAY, false},
    {"0 * * * *", DST_STANDARD, EVERYDAY, false},
    {"30 2 * * *", DST_STANDARD, EVERYDAY, false},
    {"0 9 * * MON-FRI", DST_STANDARD, EVERYDAY, false},
    {"0 0 1 * *", DST_STANDARD, EVERYDAY, false},
    {"0 0 L * *", DST_STANDARD, EVERYDAY, false},
    {"*/10 * * * * *", DST_STANDARD, EVERYDAY, false},
    {"0 0 29 2 *", DST_STANDARD, EVERYDAY, true},      /* up to 8 years */
    {"0 0 * 2 1#5", DST_BOTH, EVERYDAY, true},         /* up to 40 years */
    {"30 2 * 3 0#2", DST_SKIP, EVERYDAY, true},        /* always in the gap: a hundred years */
    {"*/30 2 * 3 0#2", DST_STANDARD, EVERYDAY, true},  /* and in real time */
    {"*/30 1 * 3 0L", DST_BOTH, "Eire", true},
    {"*/7 */7 2 * 3 0#2", DST_SKIP, "America/St_Johns", true},
    {"*/7 */7 2 * 3 0#2", DST_BOTH, "America/Goose_Bay", true},
    {"*/30 2 * 10 0#1", DST_STANDARD, "Pacific/Norfolk", true},
    {"*/59 22 * 9 6#1", DST_BOTH, "Chile/EasterIsland", true},
    {"*/30 1 * 3 0L", DST_SKIP, "Antarctica/Troll", true},
    {"*/30 0 * 3 0L", DST_BOTH, "Atlantic/Azores", true},
    {"*/30 2 * 9 0L", DST_STANDARD, "Antarctica/McMurdo", true},
    {"30 3 * 3 0L", DST_SKIP, "Asia/Famagusta", true},
    {"0-59 2 * 3 0#2", DST_SKIP, "America/Port-au-Prince", true},
};

#define SUBJECTS (sizeof subjects / sizeof *subjects)

/* A subject with its zone, and what a call from each place took in each round. */
struct trial {
    struct cron cron;
    struct zone *zone;
    double rounds_ns[PLACES][ROUNDS];
};

/* What is said about a subject: over its places, of the fastest round and of the middle one. */
struct figures {
    double median_ns;
    double max_ns;
    double max_middle_ns;
    int slowest; /* place */
};

int64_t cron_place(int index, int count)
{
    int64_t years_s = INT64_C(100) * 31556952;

    return civil_days(2000, 1, 1) * CIVIL_DAY_S + index * (years_s / count) + index % 7 * 12345;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double cron_call_ns(const struct cron *cron, const struct zone *zone, enum dst_policy policy,
                    int64_t after_s, int64_t *sum)
{
    double start_ns = now_ns();

    for (int n = 0; n < CALLS; n++) {
        int64_t next_s = 0;

        *sum += cron_next(cron, zone, policy, after_s + n, &next_s) ? next_s : 1;
    }
    return (now_ns() - start_ns) / CALLS;
}

static void prepare(const struct subject *subject, struct trial *trial)
{
    struct err err = {0};

    if (cron_parse(str_of(subject->text), &trial->cron, &err) < 0 ||
        zone_load(NULL, str_of(subject->zone), &trial->zone, &err) < 0) {
        fprintf(stderr, "cron_next: %s: %s\n", subject->text, err.text);
        exit(2);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct figures sum_up(struct trial *trial)
{
    struct figures figures = {0};
    double fastest_ns[PLACES];

    for (int i = 0; i < PLACES; i++) {
        double *rounds_ns = trial->rounds_ns[i];

        qsort(rounds_ns, ROUNDS, sizeof *rounds_ns, by_value);
        fastest_ns[i] = rounds_ns[0];
        if (rounds_ns[0] > figures.max_ns) {
            figures.max_ns = rounds_ns[0];
            figures.slowest = i;
        }
        if (rounds_ns[ROUNDS / 2] > figures.max_middle_ns)
            figures.max_middle_ns = rounds_ns[ROUNDS / 2];
    }
    qsort(fastest_ns, PLACES, sizeof *fastest_ns, by_value);
    figures.median_ns = fastest_ns[PLACES / 2];
    return figures;
}

static int measure(void)
{
    struct trial *trials = calloc(SUBJECTS, sizeof *trials);
    double typical_ns = 0;
    double worst_ns = 0;
    int64_t sum = 0;

    if (!trials)
        return 2;
    for (size_t i = 0; i < SUBJECTS; i++)
        prepare(&subjects[i], &trials[i]);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < SUBJECTS; i++)
            for (int place = 0; place < PLACES; place++)
                trials[i].rounds_ns[place][round] =
                    cron_call_ns(&trials[i].cron, trials[i].zone, subjects[i].policy,
                                 cron_place(place, PLACES), &sum);
    printf("{\"expressions\":[");
    for (size_t i = 0; i < SUBJECTS; i++) {
        const struct subject *subject = &subjects[i];
        struct figures figures = sum_up(&trials[i]);

        if (!subject->nasty && figures.median_ns > typical_ns)
            typical_ns = figures.median_ns;
        worst_ns = figures.max_ns > worst_ns ? figures.max_ns : worst_ns;
        printf("%s\n {\"cron\":\"%s\",\"dst\":\"%s\",\"zone\":\"%s\",\"nasty\":%s,"
               "\"median_ns\":%.0f,\"max_ns\":%.0f,\"max_middle_ns\":%.0f,\"slowest_s\":%lld}",
               i ? "," : "", subject->text, dst_policy_word(subject->policy), subject->zone,
               subject->nasty ? "true" : "false", figures.median_ns, figures.max_ns,
               figures.max_middle_ns, (long long)cron_place(figures.slowest, PLACES));
        zone_free(trials[i].zone);
    }
    printf("],\n \"typical_ns\":%.0f,\"worst_ns\":%.0f,\"sum\":%lld}\n", typical_ns, worst_ns,
           (long long)sum);
    free(trials);
    return typical_ns < TYPICAL_MAX_NS && worst_ns < WORST_MAX_NS ? 0 : 1;
}

static int call_once(char **words)
{
    struct subject subject = {.zone = words[0], .text = words[3]};
    struct trial *trial = calloc(1, sizeof *trial);
    int64_t next_s = 0;

    if (!trial || !dst_policy_parse(str_of(words[1]), &subject.policy))
        return 2;
    prepare(&subject, trial);
    if (!cron_next(&trial->cron, trial->zone, subject.policy, atoll(words[2]), &next_s))
        next_s = -1;
    printf("%lld\n", (long long)next_s);
    zone_free(trial->zone);
    free(trial);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return measure();
    if (argc == 6 && strcmp(argv[1], "--once") == 0)
        return call_once(argv + 2);
    if (argc > 2 && strcmp(argv[1], "--search") == 0)
        return cron_search(argv + 2, argc - 2);
    fprintf(stderr, "usage: cron_next | --once ZONE POLICY AFTER CRON | --search ZONE...\n");
    return 2;
}
