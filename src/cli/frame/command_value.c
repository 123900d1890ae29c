/* What flags mean: checking their values by type, and turning them into JSON fields and query
 * parameters of the API. One thread. */
#include "cli/frame/command.h"

#include <errno.h>

#include "base/clock.h"
#include "base/json.h"
#include "calendar/zone.h"
#include "cli/config/config.h"
#include "cli/plans/local_time.h"

#define INPUT_STEP_BYTES 65536
#define LOCAL_ARENA_BYTES 65536 /* for the name of this machine's zone */

static const struct flag *must_find(const struct call *call, const char *name)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++)
        if (strcmp(flag->name, name) == 0)
            break;
    ASSERT(flag != NULL); /* the command's table and its code disagree */
    return flag;
}

struct str call_given_text(const struct call *call, const char *flag)
{
    must_find(call, flag);
    for (uint32_t i = call->values_count; i > 0; i--) /* the last one wins */
        if (strcmp(call->values[i - 1].flag->name, flag) == 0)
            return call->values[i - 1].text;
    return STR_NONE;
}

bool call_given(const struct call *call, const char *flag)
{
    return call_given_text(call, flag).data != NULL;
}

struct str call_text(const struct call *call, const char *flag)
{
    const struct flag *found = must_find(call, flag);
    struct str text = call_given_text(call, flag);
    const char *env = found->env ? getenv(found->env) : NULL;

    if (text.data)
        return text;
    return env && *env ? str_of(env) : str_of(found->fallback);
}

int64_t call_int(const struct call *call, const char *flag, int64_t otherwise)
{
    int64_t value;

    return str_to_int64(call_text(call, flag), &value) ? value : otherwise;
}

int64_t call_duration_ms(const struct call *call, const char *flag, int64_t otherwise_ms)
{
    int64_t value_ms;

    return str_to_duration_ms(call_text(call, flag), &value_ms) ? value_ms : otherwise_ms;
}

static struct str next_item(struct str *rest)
{
    const char *comma = rest->len ? memchr(rest->data, ',', rest->len) : NULL;
    struct str item = comma ? str_span(rest->data, (size_t)(comma - rest->data)) : *rest;

    *rest = comma ? str_span(comma + 1, rest->len - item.len - 1) : STR_NONE;
    return item;
}

int call_list(struct call *call, const char *flag, struct str **items, uint32_t *count)
{
    size_t bytes = 0;

    must_find(call, flag);
    for (uint32_t i = 0; i < call->values_count; i++)
        bytes += call->values[i].text.len + 1;
    *items = arena_alloc_array(&call->arena, bytes + 1, sizeof **items);
    *count = 0;
    if (!*items)
        return err_set(&call->err, ERR_MEMORY, "--%s has more items than fit into memory", flag);
    for (uint32_t i = 0; i < call->values_count; i++) {
        struct str rest = call->values[i].text;

        while (strcmp(call->values[i].flag->name, flag) == 0 && rest.data) {
            struct str item = next_item(&rest);

            if (item.len > 0)
                (*items)[(*count)++] = item;
        }
    }
    return 0;
}

static int read_input(const char *path, struct buf *text, struct err *err)
{
    FILE *file = path ? fopen(path, "re") : stdin;
    size_t got = 1;
    int rc = 0;

    if (!file)
        return err_set(err, ERR_IO, "cannot read %s: %s", path, strerror(errno));
    while (got > 0 && buf_reserve(text, INPUT_STEP_BYTES)) {
        got = fread(text->data + text->len, 1, INPUT_STEP_BYTES, file);
        text->len += got;
    }
    if (text->failed)
        rc = err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes; keep large input in a file "
                     "or object store and enqueue its address", path ? path : "stdin",
                     text->max_bytes - INPUT_STEP_BYTES);
    else if (ferror(file))
        rc = err_set(err, ERR_IO, "cannot read %s: %s", path ? path : "stdin", strerror(errno));
    if (path)
        fclose(file);
    return rc;
}

int call_json(struct call *call, const char *flag, size_t bytes_max, struct str *json)
{
    struct str text = call_given_text(call, flag);
    BUF_AUTO struct buf input = BUF_INIT(COMMAND_INPUT_BYTES_MAX + INPUT_STEP_BYTES);
    struct err why;

    *json = STR_NONE;
    if (!text.data)
        return 0;
    if (str_is(text, "-"))
        TRY(read_input(NULL, &input, &call->err));
    else if (str_starts(text, STR("@")))
        TRY(read_input(text.data + 1, &input, &call->err));
    else
        buf_str(&input, text);
    text = arena_str(&call->arena, buf_view(&input));
    if (!text.data)
        return err_set(&call->err, ERR_MEMORY, "there is not enough memory to read --%s", flag);
    else if (json_check(text, json, &why) < 0)
        return err_set(&call->err, ERR_USAGE, "--%s is not valid JSON: %s", flag, why.text);
    else if (json->len > bytes_max)
        return err_set(&call->err, ERR_USAGE, "--%s has %zu bytes; at most %zu are allowed", flag,
                       json->len, bytes_max);
    return 0;
}

int call_read_file(struct call *call, struct str path, size_t bytes_max, struct str *text)
{
    BUF_AUTO struct buf input = BUF_INIT(bytes_max + 2 * INPUT_STEP_BYTES);
    const char *name = arena_cstr(&call->arena, path);
    int rc = read_input(str_is(path, "-") ? NULL : name, &input, &call->err);

    *text = STR_NONE;
    if (rc == -ERR_TOO_LARGE || (rc == 0 && input.len > bytes_max))
        rc = err_set(&call->err, ERR_TOO_LARGE, STR_FMT " has more than %zu bytes", STR_ARG(path),
                     bytes_max);
    if (rc == 0) {
        *text = arena_str(&call->arena, buf_view(&input));
        if (!text->data)
            rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory to read " STR_FMT,
                         STR_ARG(path));
    }
    return rc;
}

/* A date, or a date and a time without a zone, as if it were UTC. */
static bool local_parse(struct str text, int64_t *local_us)
{
    char whole[sizeof "2027-03-28T01:00:00Z"] = "0000-00-00T00:00:00Z";

    if (text.len != 10 && text.len != 16 && text.len != 19)
        return false;
    memcpy(whole, text.data, text.len);
    if (whole[10] == ' ')
        whole[10] = 'T';
    return clock_parse(str_of(whole), local_us);
}

/* The zone of --tz, where the command has one; otherwise UTC. */
static int local_zone(const struct call *call, struct zone **zone, struct err *err)
{
    const struct flag *flag;
    ARENA_AUTO struct arena arena = ARENA_INIT(LOCAL_ARENA_BYTES);
    struct str name = STR_NONE;

    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++)
        if (strcmp(flag->name, "tz") == 0)
            name = call_text(call, "tz");
    if (str_is(name, "local"))
        name = local_zone_name(&arena);
    return zone_load(NULL, name.data ? name : STR("UTC"), zone, err);
}

static bool time_parse(struct str text, int64_t *time_us)
{
    int64_t ms;

    if (text.len < 2 || (text.data[0] != '+' && text.data[0] != '-'))
        return clock_parse(text, time_us);
    if (!str_to_duration_ms(str_span(text.data + 1, text.len - 1), &ms))
        return false;
    /* A century each way: anything further is a mistake, and sums stay far from overflow. */
    if (ms > INT64_C(100) * 366 * 86400 * 1000)
        return false;
    *time_us = clock_wall_us() + (text.data[0] == '-' ? -ms : ms) * CLOCK_MS_US;
    return true;
}

/* What a flag says, with dates and times of no zone in that of --tz. */
static bool time_of_call(const struct call *call, struct str text, int64_t *time_us,
                         struct err *err)
{
    struct zone *zone = NULL;
    int64_t local_us, shown_s;

    if (!local_parse(text, &local_us))
        return time_parse(text, time_us);
    if (local_zone(call, &zone, err) < 0)
        return false;
    *time_us = zone_first_reaching(zone, local_us / CLOCK_SECOND_US, &shown_s) * CLOCK_SECOND_US;
    zone_free(zone);
    return true;
}

int64_t call_time_us(const struct call *call, const char *flag, int64_t otherwise_us)
{
    int64_t value_us;

    return time_of_call(call, call_text(call, flag), &value_us, NULL) ? value_us : otherwise_us;
}

static int check_int(const struct flag *flag, struct str text, struct err *err)
{
    int64_t value;

    if (flag->zero && str_is(text, flag->zero))
        return 0;
    if (str_to_int64(text, &value) && value >= flag->min && value <= flag->max)
        return 0;
    return err_set(err, ERR_USAGE, "--%s is '" STR_FMT "'; it must be a whole number from %lld to "
                   "%lld%s%s", flag->name, STR_ARG(text), (long long)flag->min,
                   (long long)flag->max, flag->zero ? ", or " : "",
                   flag->zero ? flag->zero : "");
}

int flag_check(const struct flag *flag, struct str text, struct err *err)
{
    struct rate_rule rate;
    const char *must = NULL;
    int64_t value;

    switch (flag->type) {
    case FLAG_INT:
        return check_int(flag, text, err);
    case FLAG_DURATION:
        must = str_to_duration_ms(text, &value)
                   ? NULL : "a duration such as 500ms, 30s, 5m, 2h, 1d";
        break;
    case FLAG_SECONDS:
        must = str_to_duration_ms(text, &value) && value % 1000 == 0
                   ? NULL : "a duration of whole seconds such as 30s, 5m, 2h, 1d";
        break;
    case FLAG_TIME:
        must = time_parse(text, &value) || local_parse(text, &value)
                   ? NULL : "a time such as 2027-03-28T01:00:00Z, +5m or -5m";
        break;
    case FLAG_PRIORITY:
        must = config_priority_parse(text, &value)
                   ? NULL : "a number from -1000 to 1000, or low, medium, high, critical";
        break;
    case FLAG_RATE:
        must = config_rate_parse(text, &rate) ? NULL : CONFIG_RATE_FORMS;
        break;
    case FLAG_WORD:
        must = config_word_valid(flag->choices, text) ? NULL : flag->choices;
        break;
    case FLAG_TEXT:
    case FLAG_LIST:
        must = text.len > 0 && str_is_utf8(text) ? NULL : "text that is valid UTF-8 and not empty";
        break;
    case FLAG_BOOL:
    case FLAG_NO:
    case FLAG_JSON:
        break;
    }
    if (!must)
        return 0;
    return err_set(err, ERR_USAGE, "--%s is '" STR_FMT "'; it must be %s%s", flag->name,
                   STR_ARG(text), flag->type == FLAG_WORD ? "one of " : "", must);
}

static int write_list(struct call *call, const struct flag *flag, struct buf *out)
{
    struct str *items;
    uint32_t count;

    TRY(call_list(call, flag->name, &items, &count));
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(out);
        json_write_string(out, items[i]);
    }
    buf_byte(out, ']');
    return 0;
}

static void write_rate(struct str text, struct buf *out)
{
    struct rate_rule rate = {0};

    config_rate_parse(text, &rate);
    if (rate.count == 0)
        buf_text(out, "null");
    else
        buf_format(out, "{\"count\":%lld,\"per_ms\":%lld,\"burst\":", (long long)rate.count,
                   (long long)rate.per_ms);
    if (rate.burst > 0)
        buf_format(out, "%lld}", (long long)rate.burst);
    else if (rate.count > 0)
        buf_text(out, "null}");
}

/* The value as JSON; as_query leaves the quotes out. Values were checked when parsed. */
static int write_value(struct call *call, const struct flag *flag, bool as_query, struct buf *out)
{
    struct str text = call_given_text(call, flag->name);
    char time_text[CLOCK_TEXT_BYTES];
    struct str json;
    int64_t value = 0;
    int rc;

    switch (flag->type) {
    case FLAG_BOOL:
    case FLAG_NO:
        buf_text(out, flag->type == FLAG_BOOL ? "true" : "false");
        return 0;
    case FLAG_DURATION:
        str_to_duration_ms(text, &value);
        buf_int(out, value);
        return 0;
    case FLAG_SECONDS:
        str_to_duration_ms(text, &value);
        buf_int(out, value / 1000);
        return 0;
    case FLAG_RATE:
        write_rate(text, out);
        return 0;
    case FLAG_JSON:
        rc = call_json(call, flag->name, COMMAND_INPUT_BYTES_MAX, &json);
        buf_str(out, json);
        return rc;
    case FLAG_LIST:
        if (!as_query)
            return write_list(call, flag, out);
        break;
    case FLAG_TIME:
        if (!time_of_call(call, text, &value, &call->err))
            return -(int)call->err.code;
        clock_format(value, time_text);
        text = str_of(time_text);
        break;
    case FLAG_INT:
        if (flag->zero && str_is(text, flag->zero))
            text = STR("0");
        break;
    case FLAG_PRIORITY:
    case FLAG_TEXT:
    case FLAG_WORD:
        break;
    }
    if (as_query)
        command_write_escaped(out, text);
    else if (flag->type != FLAG_TEXT && flag->type != FLAG_WORD && str_to_int64(text, &value))
        buf_int(out, value);
    else
        json_write_string(out, text);
    return 0;
}

static int write_field(struct call *call, const struct flag *flag, struct buf *out)
{
    if (!flag->field || !call_given(call, flag->name))
        return 0;
    json_write_key(out, flag->field);
    return write_value(call, flag, false, out);
}

static int check_written(struct call *call, const struct buf *out)
{
    return out->failed ? err_set(&call->err, ERR_TOO_LARGE, "the request is too large to be sent")
                       : 0;
}

int call_write_fields(struct call *call, struct buf *out)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++)
        TRY(write_field(call, flag, out));
    return check_written(call, out);
}

int call_write_fields_of(struct call *call, const struct flag *flags, struct buf *out)
{
    for (; flags->name; flags++)
        TRY(write_field(call, flags, out));
    return check_written(call, out);
}

void call_replace(struct call *call, const char *flag, struct str text)
{
    must_find(call, flag);
    for (uint32_t i = 0; i < call->values_count; i++)
        if (strcmp(call->values[i].flag->name, flag) == 0)
            call->values[i].text = text;
}

int call_write_query(struct call *call, struct buf *out)
{
    const struct flag *flag;
    char before = out->len > 0 && memchr(out->data, '?', out->len) ? '&' : '?';

    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++) {
        if (!flag->field || !call_given(call, flag->name))
            continue;
        buf_byte(out, before);
        buf_text(out, flag->field);
        buf_byte(out, '=');
        TRY(write_value(call, flag, true, out));
        before = '&';
    }
    return out->failed ? err_set(&call->err, ERR_TOO_LARGE, "the request is too large to be sent")
                       : 0;
}

void command_write_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte));

        if (plain)
            buf_byte(out, (char)byte);
        else
            buf_format(out, "%%%02X", byte);
    }
}
