/* Patterns of recurring jobs, read from JSON into a rule of RFC 5545. Pure, any thread. */
#include "calendar/recurrence.h"

#include "base/clock.h"
#include "base/enum_words.h"
#include "base/json.h"
#include "calendar/civil.h"

#include <strings.h>

#define RRULE_TEXT_BYTES 80 /* of a member shown in a refusal */

static const char *const type_words[] = {
    [RECURRENCE_DAILY] = "daily",   [RECURRENCE_WEEKLY] = "weekly",
    [RECURRENCE_MONTHLY] = "monthly", [RECURRENCE_YEARLY] = "yearly",
    [RECURRENCE_RRULE] = "rrule"};

/* What is read, and where it goes. */
struct reader {
    struct recurrence *recurrence;
    struct rrule_defaults defaults;
    struct arena *arena;
    struct err *err;
    int32_t time_s;
    struct str rule_text;
    uint8_t weekday;
    int32_t nth;
    bool has_day, has_weekday, has_nth, has_month;
};

ENUM_WORDS(recurrence_type, type_words);

static int refuse(struct reader *reader, const char *member, struct str value, const char *allowed)
{
    char field[64];

    snprintf(field, sizeof field, "pattern_config.%s", member);
    return err_set_field(reader->err, ERR_INVALID, field, "%s cannot be " STR_FMT "; allowed: %s",
                         member, STR_ARG(str_cut(value, RRULE_TEXT_BYTES)), allowed);
}

/* ---- values ---- */

bool recurrence_time_parse(struct str text, int32_t *time_s)
{
    int32_t parts[3] = {0, 0, 0};

    if (text.len != 5 && text.len != 8)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];

        if (i % 3 == 2 ? byte != ':' : byte < '0' || byte > '9')
            return false;
        if (i % 3 != 2)
            parts[i / 3] = parts[i / 3] * 10 + (byte - '0');
    }
    if (parts[2] == 60)
        parts[2] = 59; /* F-C8 */
    *time_s = parts[0] * CIVIL_HOUR_S + parts[1] * CIVIL_MINUTE_S + parts[2];
    return parts[0] <= 23 && parts[1] <= 59 && parts[2] <= 59;
}

/* A whole name or its first letters, two at least, in any case. */
static bool name_is(struct str text, const char *name, size_t least)
{
    return text.len >= least && (text.len <= 3 || text.len == strlen(name)) &&
           text.len <= strlen(name) && strncasecmp(text.data, name, text.len) == 0;
}

static bool read_weekday(struct reader *reader, struct str value, uint8_t *weekday)
{
    int64_t number;

    if (json_kind(value) == JSON_STRING) {
        struct str text = json_string(value, reader->arena);

        for (uint8_t i = 0; i < 7; i++)
            if (name_is(text, civil_weekday_name(i), 2)) {
                *weekday = i;
                return true;
            }
        return false;
    }
    if (!json_int64(value, &number) || number < 0 || number > 7)
        return false;
    *weekday = (uint8_t)(number % 7);
    return true;
}

/* A number from min to max or from the end, or "last"; "first" to "fifth" for nth. */
static bool read_place(struct reader *reader, struct str value, int32_t max, bool in_words,
                       int32_t *place)
{
    static const char *const words[] = {"first", "second", "third", "fourth", "fifth"};
    int64_t number;

    if (json_kind(value) == JSON_STRING) {
        struct str text = json_string(value, reader->arena);

        *place = str_is(text, "last") ? -1 : 0;
        for (int32_t i = 0; i < 5 && in_words; i++)
            *place = str_is(text, words[i]) ? i + 1 : *place;
        return *place != 0;
    }
    if (!json_int64(value, &number) || number == 0 || number > max || number < -max)
        return false;
    *place = (int32_t)number;
    return true;
}

/* ---- members ---- */

static int take_time(struct reader *reader, struct str value)
{
    struct str text = json_string(value, reader->arena);

    if (!text.data || !recurrence_time_parse(text, &reader->time_s))
        return refuse(reader, "time", value,
                      "\"09:00\" or \"09:00:30\", from 00:00 to 23:59:59");
    return 0;
}

static int read_instant(struct reader *reader, const char *member, struct str value, int64_t *at_s)
{
    struct str text = json_string(value, reader->arena);
    int64_t at_us;

    if (json_kind(value) == JSON_NULL)
        return 0;
    if (!text.data || !clock_parse(text, &at_us))
        return refuse(reader, member, value, "a time such as \"2027-01-31T09:00:00Z\"");
    *at_s = civil_floor_div(at_us, CLOCK_SECOND_US);
    if (strcmp(member, "starts_at") == 0) {
        *at_s += at_us % CLOCK_SECOND_US != 0; /* not before it, also not by a fraction */
        reader->recurrence->has_start = true;
    }
    return 0;
}

static int take_starts_at(struct reader *reader, struct str value)
{
    return read_instant(reader, "starts_at", value, &reader->recurrence->starts_s);
}

static int take_ends_at(struct reader *reader, struct str value)
{
    return read_instant(reader, "ends_at", value, &reader->recurrence->ends_s);
}

static int take_dst(struct reader *reader, struct str value)
{
    if (!dst_policy_parse(json_string(value, reader->arena), &reader->defaults.policy))
        return refuse(reader, "dst", value, "\"standard\", \"skip\" or \"both\"");
    return 0;
}

static int take_interval(struct reader *reader, struct str value)
{
    int64_t number;

    if (!json_int64(value, &number) || number < 1 || number > RRULE_INTERVAL_MAX)
        return refuse(reader, "interval", value, "1 to 1000000");
    reader->recurrence->rule.interval = (int32_t)number;
    return 0;
}

static int take_weekdays(struct reader *reader, struct str value)
{
    struct json_iter iter;
    struct str element;

    if (json_kind(value) != JSON_ARRAY || json_count(value) == 0)
        return refuse(reader, "weekdays", value, "an array such as [\"monday\",\"friday\"]");
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        uint8_t weekday;

        if (!read_weekday(reader, element, &weekday))
            return refuse(reader, "weekdays", element,
                          "names (\"monday\", \"MON\") or numbers (0 and 7 are Sunday)");
        reader->recurrence->rule.weekdays |= (uint8_t)(1u << weekday);
    }
    return 0;
}

static int take_day(struct reader *reader, struct str value)
{
    struct rrule *rule = &reader->recurrence->rule;
    int32_t day;

    if (!read_place(reader, value, 31, false, &day))
        return refuse(reader, "day", value, "1 to 31, -1 to -31 from the end, or \"last\"");
    reader->has_day = true;
    if (day > 0)
        rule->month_days = 1u << day;
    else
        rule->month_days_end = 1u << -day;
    return 0;
}

static int take_weekday(struct reader *reader, struct str value)
{
    if (!read_weekday(reader, value, &reader->weekday))
        return refuse(reader, "weekday", value,
                      "a name (\"monday\", \"MON\") or a number (0 and 7 are Sunday)");
    reader->has_weekday = true;
    return 0;
}

static int take_nth(struct reader *reader, struct str value)
{
    if (!read_place(reader, value, 5, true, &reader->nth))
        return refuse(reader, "nth", value, "1 to 5, -1 to -5 from the end, or \"last\"");
    reader->has_nth = true;
    return 0;
}

static int take_month(struct reader *reader, struct str value)
{
    int64_t number = 0;

    if (json_kind(value) == JSON_STRING) {
        struct str text = json_string(value, reader->arena);

        for (int32_t i = 1; i <= 12; i++)
            if (name_is(text, civil_month_name(i), 3))
                number = i;
    } else if (!json_int64(value, &number)) {
        number = 0;
    }
    if (number < 1 || number > 12)
        return refuse(reader, "month", value, "1 to 12 or a name (\"january\", \"JAN\")");
    reader->recurrence->rule.months = (uint16_t)(1u << number);
    reader->has_month = true;
    return 0;
}

static int take_rule_text(struct reader *reader, struct str value)
{
    reader->rule_text = json_string(value, reader->arena);
    if (!reader->rule_text.data)
        return refuse(reader, "rrule", value, "text such as \"FREQ=WEEKLY;BYDAY=MO\"");
    return 0;
}

static int take_zone(struct reader *reader, struct str value)
{
    struct str name = json_string(value, reader->arena);

    if (!name.data || !str_is(name, zone_name(reader->defaults.zone)))
        return refuse(reader, "timezone", value, "the name of the zone of the recurrence");
    return 0;
}

#define TYPE(t) (1u << RECURRENCE_##t)
#define ALL_TYPES 0x1fu

static const struct member {
    const char *name;
    int (*take)(struct reader *reader, struct str value);
    uint32_t types;
} members[] = {
    {"timezone", take_zone, ALL_TYPES},
    {"dst", take_dst, ALL_TYPES},
    {"time", take_time, ALL_TYPES},
    {"starts_at", take_starts_at, ALL_TYPES},
    {"ends_at", take_ends_at, ALL_TYPES},
    {"interval", take_interval, ALL_TYPES & ~TYPE(RRULE)},
    {"weekdays", take_weekdays, TYPE(WEEKLY)},
    {"day", take_day, TYPE(MONTHLY) | TYPE(YEARLY)},
    {"weekday", take_weekday, TYPE(MONTHLY) | TYPE(YEARLY)},
    {"nth", take_nth, TYPE(MONTHLY) | TYPE(YEARLY)},
    {"month", take_month, TYPE(YEARLY)},
    {"rrule", take_rule_text, TYPE(RRULE)},
};

#define MEMBERS (sizeof members / sizeof *members)

static int take_members(struct reader *reader, struct str config)
{
    enum recurrence_type type = reader->recurrence->type;
    struct json_iter iter;
    struct json_member found;
    int rc = 0;

    if (!config.data || json_kind(config) != JSON_OBJECT)
        return err_set_field(reader->err, ERR_INVALID, "pattern_config",
                             "pattern_config is a JSON object");
    json_begin(config, &iter);
    while (rc == 0 && json_next_member(&iter, &found)) {
        size_t i = 0;

        while (i < MEMBERS && (!(members[i].types >> type & 1) ||
                               !json_key_is(found.key, str_of(members[i].name))))
            i++;
        rc = i < MEMBERS ? members[i].take(reader, found.value)
                         : err_set_field(reader->err, ERR_INVALID, "pattern_config",
                                         "\"" STR_FMT "\" is not known for a %s pattern",
                                         STR_ARG(str_cut(found.key, 40)), type_words[type]);
    }
    return rc;
}

/* What must be there, and what cannot stand together. */
static int check_members(struct reader *reader)
{
    enum recurrence_type type = reader->recurrence->type;
    const char *why = NULL;

    if (type == RECURRENCE_RRULE && !reader->rule_text.data)
        why = "an rrule pattern needs rrule";
    else if (reader->has_weekday != reader->has_nth)
        why = "weekday and nth stand together (the second Tuesday)";
    else if (reader->has_day && reader->has_weekday)
        why = "a pattern has day, or weekday and nth, not both";
    else if ((type == RECURRENCE_MONTHLY || type == RECURRENCE_YEARLY) && !reader->has_day &&
             !reader->has_weekday)
        why = "a monthly or yearly pattern needs day, or weekday and nth";
    else if (type == RECURRENCE_YEARLY && !reader->has_month)
        why = "a yearly pattern needs month";
    if (!why)
        return 0;
    return err_set_field(reader->err, ERR_INVALID, "pattern_config", "%s", why);
}

/* ---- the rule ---- */

struct rrule_defaults recurrence_defaults(const struct zone *zone, enum dst_policy policy,
                                          int64_t from_s, int32_t time_s)
{
    int64_t local_s = from_s + zone_offset_at(zone, from_s);

    return (struct rrule_defaults){
        .zone = zone, .policy = policy, .count_from_s = from_s,
        .start_local_s = civil_floor_div(local_s, CIVIL_DAY_S) * CIVIL_DAY_S + time_s};
}

static int make_rule(struct reader *reader)
{
    static const enum rrule_freq freqs[] = {RRULE_DAILY, RRULE_WEEKLY, RRULE_MONTHLY,
                                            RRULE_YEARLY};
    struct recurrence *recurrence = reader->recurrence;
    struct rrule *rule = &recurrence->rule;
    const struct zone *zone = reader->defaults.zone;

    reader->defaults = recurrence_defaults(zone, reader->defaults.policy, recurrence->starts_s,
                                           reader->time_s);
    if (recurrence->type == RECURRENCE_RRULE)
        return rrule_parse(reader->rule_text, &reader->defaults, reader->arena, rule, reader->err);
    rule->freq = freqs[recurrence->type];
    rule->week_start = 1;
    rule->zone = zone;
    rule->policy = reader->defaults.policy;
    rule->start_local_s = reader->defaults.start_local_s;
    if (reader->has_weekday) {
        rule->nth[0] = (struct rrule_weekday){(int16_t)reader->nth, reader->weekday};
        rule->nth_count = 1;
    }
    return rrule_finish(rule, reader->err);
}

int recurrence_parse(enum recurrence_type type, struct str config, const struct zone *zone,
                     int64_t anchor_s, struct arena *arena, struct recurrence *recurrence,
                     struct err *err)
{
    struct reader reader = {.recurrence = recurrence, .arena = arena, .err = err,
                            .defaults = {.zone = zone, .policy = DST_STANDARD},
                            .rule_text = STR_NONE};
    int64_t first_s;
    int rc;

    memset(recurrence, 0, sizeof *recurrence);
    recurrence->type = type;
    recurrence->rule.interval = 1;
    recurrence->starts_s = anchor_s;
    recurrence->ends_s = ZONE_EVER_S;
    rc = take_members(&reader, config);
    rc = rc < 0 ? rc : check_members(&reader);
    rc = rc < 0 ? rc : make_rule(&reader);
    if (rc == 0 && recurrence->ends_s < recurrence->starts_s)
        return err_set_field(err, ERR_INVALID, "pattern_config.ends_at",
                             "the pattern never fires: ends_at lies before %s",
                             recurrence->has_start ? "starts_at" : "now");
    if (rc == 0 && !recurrence_next(recurrence, INT64_MIN, &first_s))
        rc = err_set_field(err, ERR_INVALID, "pattern_config",
                           "the pattern never fires: nothing of it comes after %s",
                           recurrence->has_start ? "starts_at" : "now");
    return rc;
}

int recurrence_zone_name(enum recurrence_type type, struct str config, struct arena *arena,
                         struct str *name, struct err *err)
{
    struct str value = json_get(config, STR("timezone"));
    struct str rule;

    *name = STR("UTC");
    if (value.data && json_kind(value) != JSON_STRING)
        return err_set_field(err, ERR_INVALID, "pattern_config.timezone",
                             "timezone is a name such as \"Europe/Paris\"");
    if (value.data) {
        *name = json_string(value, arena);
    } else if (type == RECURRENCE_RRULE) {
        value = json_get(config, STR("rrule"));
        rule = value.data ? json_string(value, arena) : STR_NONE;
        rule = rrule_zone_name(rule);
        *name = rule.data ? rule : *name;
    }
    return name->data ? 0 : err_set(err, ERR_MEMORY, "no memory for a time zone's name");
}

bool recurrence_next(const struct recurrence *recurrence, int64_t after_s, int64_t *next_s)
{
    if (after_s < recurrence->starts_s - 1)
        after_s = recurrence->starts_s - 1;
    return rrule_next(&recurrence->rule, after_s, next_s) && *next_s <= recurrence->ends_s;
}

static bool fires_next(const void *ctx, int64_t after_s, int64_t *next_s)
{
    return recurrence_next(ctx, after_s, next_s);
}

bool recurrence_last(const struct recurrence *recurrence, int64_t after_s, int64_t until_s,
                     int64_t *last_s)
{
    return instant_last(fires_next, recurrence, after_s, until_s, last_s);
}

static void say_date(const struct recurrence *recurrence, const char *word, int64_t at_s,
                     struct buf *out)
{
    int32_t offset_s = zone_offset_at(recurrence->rule.zone, at_s);
    struct civil_date date = civil_time_of(at_s + offset_s).date;

    buf_format(out, ", %s %04d-%02d-%02d", word, date.year, date.month, date.day);
}

void recurrence_explain(const struct recurrence *recurrence, struct buf *out)
{
    rrule_explain(&recurrence->rule, out);
    if (recurrence->has_start)
        say_date(recurrence, "from", recurrence->starts_s, out);
    if (recurrence->ends_s < ZONE_EVER_S)
        say_date(recurrence, "until", recurrence->ends_s, out);
}
