/* Answers questions about the calendar, one per line, for the programs that compare it with others
 * (oracles.py). Fields are separated by tabs, times are seconds since 1970; a rule's lines by "|".
 *
 *     offset  ZONE UTC...                        offsets
 *     local   ZONE LOCAL                         kind (0 unique, 1 gap, 2 twice), first, second
 *     cron    ZONE POLICY AFTER COUNT EXPRESSION instants
 *     rrule   ZONE POLICY AFTER COUNT RULE       instants
 *     explain EXPRESSION                         words
 *
 * An answer is one line; "error TEXT" when the question cannot be answered. */
#include "base/map.h"
#include "calendar/cron.h"
#include "calendar/rrule.h"

#include <stdio.h>
#include <stdlib.h>

#define FIELDS_MAX 4096

static const struct zone *zone_of(struct map *zones, const char *name)
{
    struct zone *zone = map_get(zones, str_of(name));
    struct err err = {0};

    if (zone)
        return zone;
    if (zone_load(NULL, str_of(name), &zone, &err) < 0) {
        printf("error %s\n", err.text);
        return NULL;
    }
    if (map_put(zones, str_of(zone_name(zone)), zone) < 0)
        abort();
    return zone;
}

static void answer_offsets(const struct zone *zone, char **fields, int count)
{
    for (int i = 2; i < count; i++)
        printf("%s%d", i > 2 ? " " : "", zone_offset_at(zone, atoll(fields[i])));
    printf("\n");
}

static void answer_local(const struct zone *zone, const char *text)
{
    struct zone_local found = zone_from_local(zone, atoll(text));

    printf("%d %lld %lld\n", (int)found.kind, (long long)found.first_s,
           (long long)found.second_s);
}

static void answer_instants(instant_next *next, const void *ctx, int64_t after_s, int count)
{
    int64_t next_s = after_s;

    for (int i = 0; i < count && next(ctx, next_s, &next_s); i++)
        printf("%s%lld", i ? " " : "", (long long)next_s);
    printf("\n");
}

struct cron_question {
    struct cron cron;
    const struct zone *zone;
    enum dst_policy policy;
};

static bool cron_fires(const void *ctx, int64_t after_s, int64_t *next_s)
{
    const struct cron_question *question = ctx;

    return cron_next(&question->cron, question->zone, question->policy, after_s, next_s);
}

static bool rrule_fires(const void *ctx, int64_t after_s, int64_t *next_s)
{
    return rrule_next(ctx, after_s, next_s);
}

static void answer_rule(const struct zone *zone, enum dst_policy policy, int64_t after_s, int count,
                        char *text)
{
    struct rrule_defaults defaults = {.zone = zone, .policy = policy};
    struct arena arena = ARENA_INIT(1u << 20);
    struct err err = {0};
    struct rrule rule;

    for (char *at = text; *at; at++)
        *at = *at == '|' ? '\n' : *at;
    if (rrule_parse(str_of(text), &defaults, &arena, &rule, &err) < 0)
        printf("error %s\n", err.text);
    else
        answer_instants(rrule_fires, &rule, after_s, count);
    arena_deinit(&arena);
}

static void answer_explain(const char *text)
{
    struct buf words = BUF_INIT(4096);
    struct err err = {0};
    struct cron cron;

    if (cron_parse(str_of(text), &cron, &err) < 0) {
        printf("error %s\n", err.text);
        return;
    }
    cron_explain(&cron, &words);
    printf("%.*s\n", (int)words.len, words.data);
    buf_deinit(&words);
}

static void answer(struct map *zones, char **fields, int count)
{
    struct cron_question question;
    const struct zone *zone;
    struct err err = {0};

    if (count == 2 && strcmp(fields[0], "explain") == 0) {
        answer_explain(fields[1]);
        return;
    }
    zone = count >= 3 ? zone_of(zones, fields[1]) : NULL;
    if (!zone)
        return;
    if (strcmp(fields[0], "offset") == 0) {
        answer_offsets(zone, fields, count);
    } else if (strcmp(fields[0], "local") == 0) {
        answer_local(zone, fields[2]);
    } else if (count != 6 || !dst_policy_parse(str_of(fields[2]), &question.policy)) {
        printf("error the question is not understood\n");
    } else if (strcmp(fields[0], "rrule") == 0) {
        answer_rule(zone, question.policy, atoll(fields[3]), atoi(fields[4]), fields[5]);
    } else if (cron_parse(str_of(fields[5]), &question.cron, &err) < 0) {
        printf("error %s\n", err.text);
    } else {
        question.zone = zone;
        answer_instants(cron_fires, &question, atoll(fields[3]), atoi(fields[4]));
    }
}

int main(void)
{
    struct map zones = MAP_INIT;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    uint32_t cursor = 0;
    struct zone *zone;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        char *fields[FIELDS_MAX];
        char *rest = line;
        int count = 0;

        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        while (rest && count < FIELDS_MAX)
            fields[count++] = strsep(&rest, "\t");
        answer(&zones, fields, count);
        fflush(stdout);
    }
    while ((zone = map_next(&zones, &cursor))) {
        map_remove(&zones, str_of(zone_name(zone)));
        zone_free(zone);
    }
    map_deinit(&zones);
    free(line);
    return 0;
}
