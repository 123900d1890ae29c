/* Reads recurrences as iCalendar writes them: lines and dates. The parts of the rule itself are in
 * rrule_parts.c. A refusal names the part, what it says and what is allowed. Pure, any thread. */
#include "calendar/rrule_int.h"

#include "calendar/civil.h"

#include <stdlib.h>
#include <strings.h>

#define FIELD "rrule"
#define DATES_BYTES ((size_t)RRULE_DATES_MAX * sizeof(int64_t))

bool rrule_word_is(struct str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

struct str rrule_cut(struct str *rest, char byte)
{
    const char *end = rest->len ? memchr(rest->data, byte, rest->len) : NULL;
    struct str front = end ? str_span(rest->data, (size_t)(end - rest->data)) : *rest;

    *rest = end ? str_span(end + 1, rest->len - front.len - 1) : str_span(rest->data, 0);
    return front;
}

int rrule_refuse(struct rrule_parser *parser, struct str part, struct str value, const char *why)
{
    parser->fault = value.len > 0 ? value : part;
    return err_set_field(parser->err, ERR_INVALID, FIELD, STR_FMT "=" STR_FMT " %s",
                         STR_ARG(str_cut(part, 40)), STR_ARG(str_cut(value, 60)), why);
}

/* ---- dates ---- */

static bool digits(const char *at, int count, int32_t *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        *value = *value * 10 + (at[i] - '0');
    }
    return true;
}

bool rrule_read_stamp(struct str text, struct rrule_stamp *stamp)
{
    struct civil_time time = {0};

    *stamp = (struct rrule_stamp){.is_date = text.len == 8, .is_utc = text.len == 16};
    if (text.len != 8 && text.len != 15 && (text.len != 16 || text.data[15] != 'Z'))
        return false;
    if (!digits(text.data, 4, &time.date.year) || !digits(text.data + 4, 2, &time.date.month) ||
        !digits(text.data + 6, 2, &time.date.day) ||
        !civil_date_exists(time.date.year, time.date.month, time.date.day))
        return false;
    if (!stamp->is_date &&
        (text.data[8] != 'T' || !digits(text.data + 9, 2, &time.hour) ||
         !digits(text.data + 11, 2, &time.minute) || !digits(text.data + 13, 2, &time.second) ||
         time.hour > 23 || time.minute > 59 || time.second > 60))
        return false;
    if (time.second == 60)
        time.second = 59;
    stamp->value_s = civil_seconds(&time);
    return true;
}

static int64_t instant_of(const struct rrule *rule, const struct rrule_stamp *stamp)
{
    int64_t shown_s;

    return stamp->is_utc ? stamp->value_s
                         : zone_first_reaching(rule->zone, stamp->value_s, &shown_s);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* A date alone stands for the time of day of DTSTART on it. */
static int take_dates(struct rrule_parser *parser, struct str name, struct str values,
                      int64_t *dates, uint32_t *count)
{
    int64_t time_s = civil_floor_mod(parser->rule->start_local_s, CIVIL_DAY_S);

    while (values.len > 0) {
        struct str value = rrule_cut(&values, ',');
        struct rrule_stamp stamp;

        if (!rrule_read_stamp(value, &stamp))
            return rrule_refuse(parser, name, value, "is not a date; write 20270131T090000");
        if (*count == RRULE_DATES_MAX)
            return rrule_refuse(parser, name, value, "is one date too many; 1000 are allowed");
        if (stamp.is_date)
            stamp.value_s += time_s;
        dates[(*count)++] = instant_of(parser->rule, &stamp);
    }
    return 0;
}

/* ---- lines ---- */

struct line {
    struct str name;
    struct str zone; /* of TZID, or STR_NONE */
    struct str value;
};

/* NAME;PARAMETER=VALUE:value. A line without a name is a rule. */
static bool next_line(struct str *rest, struct line *line)
{
    struct str text;

    do {
        if (rest->len == 0)
            return false;
        text = rrule_cut(rest, '\n');
        while (text.len > 0 && strchr(" \t\r", text.data[text.len - 1]))
            text.len--;
        while (text.len > 0 && strchr(" \t", text.data[0]))
            text = str_span(text.data + 1, text.len - 1);
    } while (text.len == 0);
    *line = (struct line){STR("RRULE"), STR_NONE, text};
    if (memchr(text.data, ':', text.len)) {
        struct str head = rrule_cut(&text, ':');

        line->value = text;
        line->name = rrule_cut(&head, ';');
        while (head.len > 0) {
            struct str parameter = rrule_cut(&head, ';');
            struct str name = rrule_cut(&parameter, '=');

            if (rrule_word_is(name, "TZID"))
                line->zone = parameter;
        }
    }
    return true;
}

struct str rrule_zone_name(struct str text)
{
    struct line line;

    while (next_line(&text, &line)) {
        if (!rrule_word_is(line.name, "DTSTART"))
            continue;
        if (line.zone.data)
            return line.zone;
        if (line.value.len == 16 && line.value.data[15] == 'Z')
            return STR("UTC");
    }
    return STR_NONE;
}

static int take_start(struct rrule_parser *parser, const struct line *line)
{
    struct rrule *rule = parser->rule;
    struct rrule_stamp stamp;

    if (parser->has_start || !rrule_read_stamp(line->value, &stamp))
        return rrule_refuse(parser, line->name, line->value,
                      "is not a date-time, or there twice; write DTSTART:20270131T090000");
    parser->has_start = true;
    rule->start_local_s = stamp.value_s;
    if (stamp.is_utc)
        rule->start_local_s += zone_offset_at(rule->zone, stamp.value_s);
    return 0;
}

static int take_line(struct rrule_parser *parser, const struct line *line)
{
    struct rrule *rule = parser->rule;

    if (line->zone.data && !str_is(line->zone, zone_name(rule->zone)))
        return rrule_refuse(parser, STR("TZID"), line->zone,
                      "is another zone than that of the recurrence; all dates have the same");
    if (rrule_word_is(line->name, "DTSTART"))
        return 0; /* read before the others, as they rest on it */
    if (rrule_word_is(line->name, "RRULE"))
        return rrule_take_parts(parser, line->value);
    if (rrule_word_is(line->name, "RDATE"))
        return take_dates(parser, line->name, line->value, rule->extra_s, &rule->extra_count);
    if (rrule_word_is(line->name, "EXDATE"))
        return take_dates(parser, line->name, line->value, rule->except_s, &rule->except_count);
    return rrule_refuse(parser, STR("line"), line->name,
                  "is not known; allowed: DTSTART, RRULE, RDATE, EXDATE");
}

static int take_lines(struct rrule_parser *parser, struct str text)
{
    struct str rest = text;
    struct line line;
    int rc = 0;

    while (rc == 0 && next_line(&rest, &line))
        if (rrule_word_is(line.name, "DTSTART"))
            rc = take_start(parser, &line);
    rest = text;
    while (rc == 0 && next_line(&rest, &line))
        rc = take_line(parser, &line);
    if (rc == 0 && !parser->has_rule)
        rc = err_set_field(parser->err, ERR_INVALID, FIELD,
                           "there is no rule; write one such as FREQ=WEEKLY;BYDAY=MO");
    return rc;
}

/* An UNTIL that is a date includes the whole of it. */
static void settle_until(struct rrule_parser *parser)
{
    struct rrule_stamp stamp;

    if (!parser->until.data)
        return;
    (void)rrule_read_stamp(parser->until, &stamp);
    if (stamp.is_date)
        stamp.value_s += CIVIL_DAY_S - 1;
    parser->rule->until_s = instant_of(parser->rule, &stamp);
    parser->rule->has_until = true;
}

/* Refusals name parts that stand in the text, or words of our own. */
static struct str within(struct str text, struct str part)
{
    return part.data >= text.data && part.data + part.len <= text.data + text.len ? part : STR_NONE;
}

int rrule_parse_marking(struct str text, const struct rrule_defaults *defaults,
                        struct arena *arena, struct rrule *rule, struct str *fault,
                        struct err *err)
{
    struct rrule_parser parser = {.rule = rule, .err = err, .until = STR_NONE, .fault = STR_NONE};
    int rc;

    memset(rule, 0, sizeof *rule);
    *fault = STR_NONE;
    if (!text.data || text.len > RRULE_BYTES_MAX || !str_is_utf8(text))
        return err_set_field(err, ERR_INVALID, FIELD, "a recurrence is text of at most %d bytes",
                             RRULE_BYTES_MAX);
    rule->zone = defaults->zone;
    rule->policy = defaults->policy;
    rule->start_local_s = defaults->start_local_s;
    rule->interval = 1;
    rule->week_start = 1;
    rule->extra_s = arena_alloc(arena, DATES_BYTES);
    rule->except_s = arena_alloc(arena, DATES_BYTES);
    if (!rule->extra_s || !rule->except_s)
        return err_set(err, ERR_MEMORY, "no memory for a recurrence");
    rc = take_lines(&parser, text);
    if (rc < 0) {
        *fault = within(text, parser.fault);
        return rc;
    }
    settle_until(&parser);
    qsort(rule->extra_s, rule->extra_count, sizeof(int64_t), by_value);
    qsort(rule->except_s, rule->except_count, sizeof(int64_t), by_value);
    return rrule_finish(rule, err);
}

int rrule_parse(struct str text, const struct rrule_defaults *defaults, struct arena *arena,
                struct rrule *rule, struct err *err)
{
    struct str fault;

    return rrule_parse_marking(text, defaults, arena, rule, &fault, err);
}
