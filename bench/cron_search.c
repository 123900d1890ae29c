/* Looks for the expressions cron_next is slowest with: days that are rare, or that clocks change
 * on, times that fall into gaps, every policy, in every zone that is named. What looks slow at first
 * is measured again, the slowest of it in turns, so that a busy machine makes nothing slow. Prints
 * the slowest, one per line: nanoseconds, zone, policy, expression. What it finds becomes the list
 * in cron_next.c. */
#include "cron_next.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACES 24
#define AGAIN 7
#define ROUNDS 15
#define KEPT 200
#define SHOWN 40

/* Day of month, month, day of week. */
static const char *const days[] = {
    "* * *", "29 2 *", "29 2 */7", "28,29 2 */3", "* 2 0#5", "* 2 1#5", "* 2 6#5", "29W 2 ?",
    "L-28 2 *", "31 12 *", "31 1 */6", "L-30 * *", "30 12 *", "1 1 *", "31 * */7", "14 3 */7",
    "* 3 0#2", "* 11 0#1", "* 3 0L", "* 10 0L", "* 10 0#1", "* 4 0#1", "* 9 0#1", "* 9 0L",
    "* 4 5L", "* 10 4L", "* 10 4#5", "* 3 4L", "* 3 5L", "* 3 6L", "22 3 *", "21 9 *", "* 4 6#1",
    "* 9 6#1", "8-14 3 0", "1W 1,7 1#5",
};
/* Second if there are six, minute, hour. */
static const char *const times[] = {
    "0 0", "30 0", "15 1", "30 1", "0 2", "15 2", "30 2", "30 3", "0 22", "30 22", "59 23",
    "0,30 0-3", "0-59 2", "*/30 0", "*/30 1", "*/30 2", "*/59 23", "*/59 22", "* *", "0 */2",
    "59 59 23", "* 30 2", "*/7 */7 2", "* * *",
};

#define DAYS (sizeof days / sizeof *days)
#define TIMES (sizeof times / sizeof *times)

struct found {
    double ns;
    char text[48];
    enum dst_policy policy;
    const struct cron *cron;
    const struct zone *zone;
    int64_t after_s;
};

struct search {
    struct cron crons[DAYS * TIMES];
    char texts[DAYS * TIMES][48];
    size_t crons_count;
    struct found found[KEPT + 1]; /* slowest first */
    size_t found_count;
    int64_t sum;
};

static int make_corpus(struct search *search)
{
    for (size_t i = 0; i < DAYS * TIMES; i++) {
        char *text = search->texts[search->crons_count];
        struct err err = {0};

        snprintf(text, sizeof search->texts[0], "%s %s", times[i % TIMES], days[i / TIMES]);
        if (cron_parse(str_of(text), &search->crons[search->crons_count], &err) < 0)
            return fprintf(stderr, "%s: %s\n", text, err.text), -1;
        search->crons_count++;
    }
    return 0;
}

static void keep(struct search *search, struct found found)
{
    size_t at = search->found_count;

    while (at > 0 && search->found[at - 1].ns < found.ns) {
        search->found[at] = search->found[at - 1];
        at--;
    }
    search->found[at] = found;
    if (search->found_count < KEPT)
        search->found_count++;
}

/* The fastest of a few, at the place that was slowest before. */
static void measure_again(struct search *search, struct found *found, int times_max)
{
    for (int i = 0; i < times_max; i++) {
        double ns = cron_call_ns(found->cron, found->zone, found->policy, found->after_s,
                                 &search->sum);

        found->ns = ns < found->ns ? ns : found->ns;
    }
}

/* In turns over all that were kept. */
static void settle(struct search *search)
{
    struct found kept[KEPT];
    size_t count = search->found_count;

    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            measure_again(search, &search->found[i], 1);
    memcpy(kept, search->found, sizeof kept);
    search->found_count = 0;
    for (size_t i = 0; i < count; i++)
        keep(search, kept[i]);
}

static void search_one(struct search *search, size_t index, const struct zone *zone,
                       enum dst_policy policy)
{
    const struct cron *cron = &search->crons[index];
    struct found found = {.policy = policy, .cron = cron, .zone = zone};

    for (int i = 0; i < PLACES; i++) {
        int64_t after_s = cron_place(i, PLACES);
        double ns = cron_call_ns(cron, zone, policy, after_s, &search->sum);

        if (ns > found.ns) {
            found.ns = ns;
            found.after_s = after_s;
        }
    }
    if (search->found_count == KEPT && found.ns <= search->found[KEPT - 1].ns)
        return;
    measure_again(search, &found, AGAIN);
    snprintf(found.text, sizeof found.text, "%s", search->texts[index]);
    if (search->found_count < KEPT || found.ns > search->found[KEPT - 1].ns)
        keep(search, found);
}

static void search_zone(struct search *search, const struct zone *zone)
{
    for (size_t i = 0; i < search->crons_count; i++)
        for (int policy = 0; policy < DST_POLICY_COUNT; policy++)
            search_one(search, i, zone, (enum dst_policy)policy);
}

int cron_search(char **zones, int zones_count)
{
    struct search *search = calloc(1, sizeof *search);
    struct zone **loaded = calloc((size_t)zones_count, sizeof *loaded);
    struct err err = {0};
    int rc = search && loaded ? make_corpus(search) : -1;

    for (int i = 0; i < zones_count && rc == 0; i++) {
        rc = zone_load(NULL, str_of(zones[i]), &loaded[i], &err);
        if (rc == 0)
            search_zone(search, loaded[i]);
        else
            fprintf(stderr, "cron_next: %s\n", err.text);
    }
    if (rc == 0)
        settle(search);
    for (size_t i = 0; rc == 0 && i < search->found_count && i < SHOWN; i++) {
        const struct found *found = &search->found[i];

        printf("%6.0f %s %s \"%s\"\n", found->ns, zone_name(found->zone),
               dst_policy_word(found->policy), found->text);
    }
    for (int i = 0; loaded && i < zones_count; i++)
        zone_free(loaded[i]);
    free(loaded);
    free(search);
    return rc == 0 ? 0 : 2;
}
