/* Reads cron expressions. A field is a list of items; an item is a value, a range or a step over
 * one, or, in the two day fields, one of the special forms. Every refusal names the field, its
 * place and what may stand there. Pure, any thread. */
#include "calendar/cron.h"

#include "calendar/civil.h"

#include <strings.h>

#define FIELDS_MAX 6
#define FIELD "cron_expression"

enum field_kind {
    FIELD_SECOND,
    FIELD_MINUTE,
    FIELD_HOUR,
    FIELD_DAY,
    FIELD_MONTH,
    FIELD_WEEKDAY
};

static const struct field_rule {
    const char *name;
    int32_t min;
    int32_t max;
    const char *allowed;
} rules[] = {
    [FIELD_SECOND] = {"second", 0, 59, "0-59"},
    [FIELD_MINUTE] = {"minute", 0, 59, "0-59"},
    [FIELD_HOUR] = {"hour", 0, 23, "0-23"},
    [FIELD_DAY] = {"day of month", 1, 31, "1-31, L, L-3, LW, 15W or ?"},
    [FIELD_MONTH] = {"month", 1, 12, "1-12 or JAN-DEC"},
    [FIELD_WEEKDAY] = {"day of week", 0, 7, "0-7 (0 and 7 are Sunday), SUN-SAT, 5L, 5#2 or ?"},
};

struct field {
    enum field_kind kind;
    struct str text;     /* as written */
    uint32_t number;     /* from 1 */
    struct cron *cron;
    struct str *fault;   /* out: what of it was refused */
    struct err *err;
};

/* One item of the list, eaten from the front. */
struct item {
    struct str text;
    struct str rest;
};

static int refuse(const struct field *field, struct str item, const char *why)
{
    const struct field_rule *rule = &rules[field->kind];

    *field->fault = item.len > 0 ? item : field->text;
    return err_set_field(field->err, ERR_INVALID, FIELD,
                         "the %s (field %u, \"" STR_FMT "\"): \"" STR_FMT "\" %s; allowed: %s",
                         rule->name, field->number, STR_ARG(str_cut(field->text, 40)),
                         STR_ARG(str_cut(item, 40)), why, rule->allowed);
}

static bool eat(struct item *item, char byte)
{
    if (item->rest.len == 0 || item->rest.data[0] != byte)
        return false;
    item->rest = str_span(item->rest.data + 1, item->rest.len - 1);
    return true;
}

/* L, W and names are read in either case. */
static bool eat_letter(struct item *item, char upper)
{
    return eat(item, upper) || eat(item, (char)(upper + ('a' - 'A')));
}

static bool eat_number(struct item *item, int32_t *number)
{
    size_t len = 0;
    int32_t value = 0;

    while (len < item->rest.len && len < 4 && item->rest.data[len] >= '0' &&
           item->rest.data[len] <= '9')
        value = value * 10 + (item->rest.data[len++] - '0');
    item->rest = str_span(item->rest.data + len, item->rest.len - len);
    *number = value;
    return len > 0;
}

/* The first three letters of English names, as every cron reads them. */
static bool eat_name(struct item *item, enum field_kind kind, int32_t *number)
{
    int32_t count = kind == FIELD_MONTH ? 12 : kind == FIELD_WEEKDAY ? 7 : 0;

    if (item->rest.len < 3)
        return false;
    for (int32_t i = 0; i < count; i++) {
        const char *name = kind == FIELD_MONTH ? civil_month_name(i + 1) : civil_weekday_name(i);

        if (strncasecmp(item->rest.data, name, 3) == 0) {
            item->rest = str_span(item->rest.data + 3, item->rest.len - 3);
            *number = kind == FIELD_MONTH ? i + 1 : i;
            return true;
        }
    }
    return false;
}

static int eat_value(const struct field *field, struct item *item, int32_t *value)
{
    const struct field_rule *rule = &rules[field->kind];

    if (!eat_name(item, field->kind, value) && !eat_number(item, value))
        return refuse(field, item->text, "is not understood");
    if (*value < rule->min || *value > rule->max)
        return refuse(field, item->text, "is out of range");
    return 0;
}

static void set_bit(const struct field *field, int32_t value)
{
    struct cron *cron = field->cron;

    switch (field->kind) {
    case FIELD_SECOND:
        cron->times.seconds |= UINT64_C(1) << value;
        break;
    case FIELD_MINUTE:
        cron->times.minutes |= UINT64_C(1) << value;
        break;
    case FIELD_HOUR:
        cron->times.hours |= 1u << value;
        break;
    case FIELD_DAY:
        cron->days.days |= 1u << value;
        break;
    case FIELD_MONTH:
        cron->days.months |= (uint16_t)(1u << value);
        break;
    case FIELD_WEEKDAY:
        cron->days.weekdays |= (uint8_t)(1u << value % 7);
        break;
    }
}

/* The end of an item: nothing, or "/step". */
static int take_steps(const struct field *field, struct item *item, int32_t from, int32_t to,
                      bool single)
{
    const struct field_rule *rule = &rules[field->kind];
    int32_t max = field->kind == FIELD_WEEKDAY ? 6 : rule->max;
    int32_t step = 1;

    if (eat(item, '/')) {
        if (!eat_number(item, &step) || step < 1 || step > max - rule->min + 1)
            return refuse(field, item->text, "has a step that is not a number within the range");
        to = single ? max : to; /* "5/15" starts at 5 and has no end */
    }
    if (item->rest.len > 0)
        return refuse(field, item->text, "is not understood");
    for (int32_t value = from; value <= to; value += step)
        set_bit(field, value);
    return 0;
}

static int take_range(const struct field *field, struct item *item, int32_t from)
{
    int32_t to = from;

    if (!eat(item, '-'))
        return take_steps(field, item, from, from, true);
    TRY(eat_value(field, item, &to));
    if (field->kind == FIELD_WEEKDAY && to == 0 && from > 0)
        to = 7; /* SAT-SUN */
    if (to < from)
        return refuse(field, item->text,
                      "runs backwards; a range does not go over the end, write two (22-23,0-5)");
    return take_steps(field, item, from, to, false);
}

/* L, L-3, LW and L-3W of the month. */
static int take_last_day(const struct field *field, struct item *item)
{
    struct cron_days *days = &field->cron->days;
    int32_t before = 0;

    if (eat(item, '-') && (!eat_number(item, &before) || before < 1 || before > 30))
        return refuse(field, item->text, "needs a number from 1 to 30 after \"L-\"");
    if (eat_letter(item, 'W'))
        days->last_nearest |= 1u << before;
    else
        days->last |= 1u << before;
    return item->rest.len == 0 ? 0 : refuse(field, item->text, "is not understood");
}

static int take_day(const struct field *field, struct item *item)
{
    int32_t day;

    if (eat_letter(item, 'L'))
        return take_last_day(field, item);
    TRY(eat_value(field, item, &day));
    if (!eat_letter(item, 'W'))
        return take_range(field, item, day);
    if (item->rest.len > 0)
        return refuse(field, item->text, "is not understood: W stands behind a single day");
    field->cron->days.nearest |= 1u << day;
    return 0;
}

static int take_weekday(const struct field *field, struct item *item)
{
    struct cron_days *days = &field->cron->days;
    int32_t weekday, nth;

    if (eat_letter(item, 'L'))
        return refuse(field, item->text, "needs a weekday before the L, as in 5L for the last "
                                         "Friday of the month");
    TRY(eat_value(field, item, &weekday));
    if (eat_letter(item, 'L')) {
        days->last_weekdays |= (uint8_t)(1u << weekday % 7);
    } else if (eat(item, '#')) {
        if (!eat_number(item, &nth) || nth < 1 || nth > 5)
            return refuse(field, item->text, "needs a number from 1 to 5 after the #");
        days->nth[weekday % 7] |= (uint8_t)(1u << nth);
    } else {
        return take_range(field, item, weekday);
    }
    return item->rest.len == 0 ? 0 : refuse(field, item->text, "is not understood");
}

static int take_item(const struct field *field, struct str text)
{
    const struct field_rule *rule = &rules[field->kind];
    struct item item = {text, text};
    int32_t value;

    if (text.len == 0)
        return refuse(field, text, "is empty");
    if (eat(&item, '*'))
        return take_steps(field, &item, rule->min, field->kind == FIELD_WEEKDAY ? 6 : rule->max,
                          false);
    if (field->kind == FIELD_DAY)
        return take_day(field, &item);
    if (field->kind == FIELD_WEEKDAY)
        return take_weekday(field, &item);
    TRY(eat_value(field, &item, &value));
    return take_range(field, &item, value);
}

static int take_field(const struct field *field)
{
    bool is_day = field->kind == FIELD_DAY || field->kind == FIELD_WEEKDAY;
    struct str rest = field->text;
    bool any = rest.data[0] == '*';

    if (is_day && str_is(rest, "?")) {
        rest = STR("*");
        any = true;
    }
    if (field->kind == FIELD_DAY)
        field->cron->days.days_any = any;
    if (field->kind == FIELD_WEEKDAY)
        field->cron->days.weekdays_any = any;
    if (field->kind == FIELD_MINUTE || field->kind == FIELD_HOUR)
        field->cron->real_time |= memchr(rest.data, '*', rest.len) != NULL ||
                                  memchr(rest.data, '/', rest.len) != NULL;
    for (;;) {
        const char *comma = memchr(rest.data, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.data) : rest.len;
        int rc = take_item(field, str_span(rest.data, len));

        if (rc < 0 || !comma)
            return rc;
        rest = str_span(comma + 1, rest.len - len - 1);
    }
}

static uint32_t split(struct str text, struct str *fields)
{
    uint32_t count = 0;
    size_t at = 0;

    for (;;) {
        size_t from;

        while (at < text.len && (text.data[at] == ' ' || text.data[at] == '\t'))
            at++;
        if (at == text.len)
            return count;
        from = at;
        while (at < text.len && text.data[at] != ' ' && text.data[at] != '\t')
            at++;
        if (count < FIELDS_MAX)
            fields[count] = str_span(text.data + from, at - from);
        count++;
    }
}

/* @reboot and @every have no place in a calendar; their refusals say where they belong. */
static int expand_word(struct str *text, struct err *err)
{
    static const struct {
        const char *word;
        const char *fields;
    } words[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };

    if (text->len == 0 || text->data[0] != '@')
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text->len == strlen(words[i].word) &&
            strncasecmp(text->data, words[i].word, text->len) == 0) {
            *text = str_of(words[i].fields);
            return 0;
        }
    if (text->len >= 6 && strncasecmp(text->data, "@every", 6) == 0)
        return err_set_field(err, ERR_INVALID, FIELD,
                             "@every is no cron expression; use schedule_type \"interval\" with "
                             "interval_seconds");
    return err_set_field(err, ERR_INVALID, FIELD,
                         "\"" STR_FMT "\" is not known; allowed: @yearly, @annually, @monthly, "
                         "@weekly, @daily, @midnight, @hourly", STR_ARG(str_cut(*text, 40)));
}

static struct str trim(struct str text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = str_span(text.data + 1, text.len - 1);
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static int take_fields(const struct str *fields, uint32_t count, struct cron *cron,
                       struct str *fault, struct err *err)
{
    bool has_seconds = count == FIELDS_MAX;

    cron->has_seconds = has_seconds;
    if (!has_seconds)
        cron->times.seconds = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct field field = {
            .kind = (enum field_kind)(has_seconds ? i : i + 1),
            .text = fields[i],
            .number = i + 1,
            .cron = cron,
            .fault = fault,
            .err = err,
        };

        TRY(take_field(&field));
    }
    return 0;
}

/* What is there too much, or nothing at the place behind the last one. */
static int refuse_count(struct str text, const struct str *fields, uint32_t count,
                        struct str *fault, struct err *err)
{
    const char *end = text.data + text.len;

    if (count > FIELDS_MAX) {
        const char *from = fields[FIELDS_MAX - 1].data + fields[FIELDS_MAX - 1].len + 1;

        *fault = str_span(from, (size_t)(end - from));
    } else {
        *fault = str_span(end, 0);
    }
    return err_set_field(err, ERR_INVALID, FIELD,
                         "a cron expression has 5 fields (minute, hour, day of month, month, "
                         "day of week), or 6 with seconds first; this one has %u", count);
}

int cron_parse_marking(struct str text, struct cron *cron, struct str *fault, struct err *err)
{
    struct str fields[FIELDS_MAX];
    uint32_t count;

    memset(cron, 0, sizeof *cron);
    *fault = STR_NONE;
    if (!text.data || text.len > CRON_BYTES_MAX || !str_is_utf8(text))
        return err_set_field(err, ERR_INVALID, FIELD, "a cron expression is text of at most %d "
                             "bytes", CRON_BYTES_MAX);
    text = trim(text);
    *fault = text;
    TRY(expand_word(&text, err));
    count = split(text, fields);
    if (count != 5 && count != FIELDS_MAX)
        return refuse_count(text, fields, count, fault, err);
    TRY(take_fields(fields, count, cron, fault, err));
    if (!cron_prepare(cron))
        return err_set_field(err, ERR_INVALID, FIELD, "\"" STR_FMT "\" never fires: no such day "
                             "is in any year", STR_ARG(str_cut(text, 80)));
    *fault = STR_NONE;
    return 0;
}

int cron_parse(struct str text, struct cron *cron, struct err *err)
{
    struct str fault;

    return cron_parse_marking(text, cron, &fault, err);
}
