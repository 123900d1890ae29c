/* One value: from text into its field, with its range, and back into text for people. The same
 * function reads flags, environment, file and defaults. One thread. */
#include "cli/config/config.h"

#include "core/bounds.h"
#include "node/node.h"

bool config_priority_parse(struct str text, int64_t *priority)
{
    static const struct {
        const char *word;
        int64_t priority;
    } levels[] = {{"low", -10}, {"medium", 0}, {"high", 10}, {"critical", 20}};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (!str_is(text, levels[i].word))
            continue;
        *priority = levels[i].priority;
        return true;
    }
    return str_to_int64(text, priority) && *priority >= -BOUND_PRIORITY &&
           *priority <= BOUND_PRIORITY;
}

bool config_rate_parse(struct str text, struct rate_rule *rate)
{
    const char *word = text.len ? memmem(text.data, text.len, " burst ", 7) : NULL;
    const char *slash;
    char per[24];
    struct str unit;

    *rate = (struct rate_rule){0};
    if (str_is(text, "none"))
        return true;
    if (word) { /* "5/s burst 10" */
        size_t front = (size_t)(word - text.data);

        if (!str_to_int64(str_span(word + 7, text.len - front - 7), &rate->burst) ||
            rate->burst < 1 || rate->burst > 1000000000)
            return false;
        text.len = front;
    }
    slash = text.len ? memchr(text.data, '/', text.len) : NULL;
    if (!slash || !str_to_int64(str_span(text.data, (size_t)(slash - text.data)), &rate->count))
        return false;
    unit = str_span(slash + 1, text.len - (size_t)(slash - text.data) - 1);
    if (unit.len == 0 || unit.len > sizeof per - 2)
        return false;
    /* "/s" is "/1s" */
    snprintf(per, sizeof per, "%s" STR_FMT, unit.data[0] >= '0' && unit.data[0] <= '9' ? "" : "1",
             STR_ARG(unit));
    if (!str_to_duration_ms(str_of(per), &rate->per_ms))
        return false;
    return rate->count >= 1 && rate->count <= 1000000000 && rate->per_ms >= 1 &&
           rate->per_ms <= BOUND_DELAY_MS;
}

/* 0 to 1, six digits */
static bool parse_ratio(struct str text, int64_t *millionths)
{
    int64_t unit = 1000000;

    *millionths = 0;
    if (text.len == 0 || text.len > 8 || text.data[0] < '0' || text.data[0] > '1' ||
        (text.len > 1 && (text.data[1] != '.' || text.len == 2)))
        return false;
    *millionths = (text.data[0] - '0') * unit;
    for (size_t i = 2; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        unit /= 10;
        *millionths += (text.data[i] - '0') * unit;
    }
    return *millionths <= 1000000;
}

/* Digits, and perhaps a point and up to six digits more. */
static bool parse_amount(struct str text, int64_t max, int64_t *millionths)
{
    const char *point = text.len ? memchr(text.data, '.', text.len) : NULL;
    struct str whole = point ? str_span(text.data, (size_t)(point - text.data)) : text;
    struct str part = point ? str_span(point + 1, text.len - whole.len - 1) : STR_NONE;
    int64_t unit = 100000, value;

    if (whole.len == 0 || whole.len > 7 || (point && (part.len == 0 || part.len > 6)) ||
        !str_to_int64(whole, &value) || value < 0)
        return false;
    *millionths = value * 1000000;
    for (size_t i = 0; i < part.len; i++, unit /= 10) {
        if (part.data[i] < '0' || part.data[i] > '9')
            return false;
        *millionths += (part.data[i] - '0') * unit;
    }
    return *millionths <= max * 1000000;
}

bool config_bytes_parse(struct str text, int64_t *bytes)
{
    static const struct {
        const char *unit;
        int64_t bytes;
    } units[] = {{"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.len <= 3 || memcmp(text.data + text.len - 3, units[i].unit, 3) != 0)
            continue;
        if (!str_to_int64(str_span(text.data, text.len - 3), bytes) || *bytes < 0 ||
            *bytes > INT64_MAX / units[i].bytes)
            return false;
        *bytes *= units[i].bytes;
        return true;
    }
    return str_to_int64(text, bytes);
}

bool config_word_valid(const char *choices, struct str word)
{
    while (*choices) {
        size_t len = strcspn(choices, "|");

        if (str_eq(str_span(choices, len), word))
            return true;
        choices += len + (choices[len] == '|');
    }
    return false;
}

/* host:port; an IPv6 address stands in brackets. Every address is 0.0.0.0 or [::], not an empty
 * host: to be open to the network is said in words. */
static bool address_valid(struct str text)
{
    const char *colon = text.data && text.len ? memrchr(text.data, ':', text.len) : NULL;
    size_t host_len = colon ? (size_t)(colon - text.data) : 0;
    int64_t port;

    if (!colon || !str_to_int64(str_span(colon + 1, text.len - host_len - 1), &port))
        return false;
    if (host_len == 0)
        return false;
    if (text.data[0] == '[' ? host_len < 3 || colon[-1] != ']'
                            : memchr(text.data, ':', host_len) != NULL)
        return false;
    return port >= 0 && port <= 65535;
}

/* As the client of HTTP takes it. */
static bool url_valid(struct str text)
{
    size_t scheme_len = str_starts(text, STR("http://")) ? 7
                        : str_starts(text, STR("https://")) ? 8 : 0;

    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] == 0x7f)
            return false;
    return scheme_len > 0 && text.len > scheme_len;
}

static int set_text(void *at, const struct config_field *field, struct str text,
                    struct arena *arena, struct err *err)
{
    int64_t max = field->max ? field->max : CONFIG_TEXT_BYTES_MAX;
    struct str copy;

    if (text.len == 0 || memchr(text.data, '\0', text.len) || !str_is_utf8(text))
        return err_set(err, ERR_INVALID, "%s must be text that is not empty", field->key);
    if (text.len > (size_t)max)
        return err_set(err, ERR_INVALID, "%s has %zu bytes; at most %lld are allowed", field->key,
                       text.len, (long long)max);
    if (field->kind == CONFIG_ADDRESS && !address_valid(text))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be an address and a port "
                       "such as 127.0.0.1:7070 or [::1]:7070", field->key, STR_ARG(text));
    if (field->kind == CONFIG_URL && !url_valid(text)) /* not shown: it may hold a password */
        return err_set(err, ERR_INVALID, "%s must be an address such as http://127.0.0.1:4318 or "
                       "https://traces.example", field->key);
    if (field->kind == CONFIG_WORD && !config_word_valid(field->choices, text))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be one of %s", field->key,
                       STR_ARG(text), field->choices);
    copy = arena_str(arena, text);
    TRY_MEMORY(copy.data);
    memcpy(at, &copy, sizeof copy);
    return 0;
}

static int set_number(void *at, const struct config_field *field, struct str text, struct err *err)
{
    const char *must = NULL;
    int64_t value = 0;

    if (field->kind == CONFIG_INT)
        must = str_to_int64(text, &value) ? NULL : "a whole number";
    else if (field->kind == CONFIG_BYTES)
        must = config_bytes_parse(text, &value) ? NULL : "a size such as 4096, 64KiB or 1MiB";
    else if (field->kind == CONFIG_RATIO)
        must = parse_ratio(text, &value) ? NULL : "a number from 0 to 1 such as 0.05";
    else if (field->kind == CONFIG_AMOUNT)
        must = parse_amount(text, field->max, &value)
                   ? NULL : "a number such as 0.15, with at most six decimals, up to 1000000";
    else if (field->kind == CONFIG_PRIORITY)
        must = config_priority_parse(text, &value)
                   ? NULL : "a number from -1000 to 1000, or low, medium, high, critical";
    else
        must = str_to_duration_ms(text, &value)
                   ? NULL : "a duration such as 500ms, 30s, 5m, 2h, 1d";
    if (must)
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be %s", field->key,
                       STR_ARG(text), must);
    if (field->kind != CONFIG_PRIORITY && field->kind != CONFIG_RATIO &&
        field->kind != CONFIG_AMOUNT && (value < field->min || value > field->max))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be from %lld to %lld%s",
                       field->key, STR_ARG(text), (long long)field->min, (long long)field->max,
                       field->kind == CONFIG_DURATION ? " ms" : "");
    memcpy(at, &value, sizeof value);
    return 0;
}

static int set_bool(void *at, const struct config_field *field, struct str text, struct err *err)
{
    bool value = str_is(text, "true");

    if (!value && !str_is(text, "false"))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be true or false",
                       field->key, STR_ARG(text));
    memcpy(at, &value, sizeof value);
    return 0;
}

static int set_policy(void *record, const struct config_field *field, struct str text,
                      struct err *err)
{
    struct handler_rule *rule = record;

    if (!retry_policy_parse(text, &rule->retry_policy))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be polynomial, exponential, "
                       "linear or fixed", field->key, STR_ARG(text));
    rule->has_retry_policy = true;
    return 0;
}

static int set_order(void *at, const struct config_field *field, struct str text, struct err *err)
{
    enum priority_order order = str_is(text, "low_first") ? ORDER_LOW_FIRST : ORDER_HIGH_FIRST;

    if (order == ORDER_HIGH_FIRST && !str_is(text, "high_first"))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be high_first or low_first",
                       field->key, STR_ARG(text));
    memcpy(at, &order, sizeof order);
    return 0;
}

static int set_rate(void *at, const struct config_field *field, struct str text, struct err *err)
{
    struct rate_rule rate;

    if (!config_rate_parse(text, &rate))
        return err_set(err, ERR_INVALID, "%s is '" STR_FMT "'; it must be " CONFIG_RATE_FORMS,
                       field->key, STR_ARG(text));
    memcpy(at, &rate, sizeof rate);
    return 0;
}

static int set_scopes(void *at, const struct config_field *field, struct str text, struct err *err)
{
    scope_set scopes;
    struct err why;

    if (scopes_read(text, &scopes, &why) < 0)
        return err_set(err, ERR_INVALID, "%s: %s", field->key, why.text);
    if (!scopes)
        return err_set(err, ERR_INVALID, "%s must name a scope or a role", field->key);
    memcpy(at, &scopes, sizeof scopes);
    return 0;
}

/* "a,b" for defaults only; in the file it is a list. */
static int set_texts(void *record, const struct config_field *field, struct str text,
                     struct arena *arena, struct err *err)
{
    struct str *items = TRY_MEMORY(arena_alloc_array(arena, text.len + 1, sizeof *items));
    uint32_t count = 0;

    while (text.len > 0) {
        const char *comma = memchr(text.data, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.data) : text.len;

        items[count++] = arena_str(arena, str_span(text.data, len));
        text = comma ? str_span(comma + 1, text.len - len - 1) : STR_NONE;
    }
    memcpy((char *)record + field->offset, &items, sizeof items);
    memcpy((char *)record + field->count_offset, &count, sizeof count);
    return 0;
}

int config_set_scalar(void *record, const struct config_field *field, struct str text,
                      struct arena *arena, struct err *err)
{
    void *at = (char *)record + field->offset;

    switch (field->kind) {
    case CONFIG_TEXT:
    case CONFIG_WORD:
    case CONFIG_ADDRESS:
    case CONFIG_URL:
        return set_text(at, field, text, arena, err);
    case CONFIG_INT:
    case CONFIG_BYTES:
    case CONFIG_DURATION:
    case CONFIG_PRIORITY:
    case CONFIG_RATIO:
    case CONFIG_AMOUNT:
        return set_number(at, field, text, err);
    case CONFIG_BOOL:
        return set_bool(at, field, text, err);
    case CONFIG_RATE:
        return set_rate(at, field, text, err);
    case CONFIG_POLICY:
        return set_policy(record, field, text, err);
    case CONFIG_ORDER:
        return set_order(at, field, text, err);
    case CONFIG_TEXTS:
        return set_texts(record, field, text, arena, err);
    case CONFIG_SCOPES:
        return set_scopes(at, field, text, err);
    case CONFIG_ARGV:
    case CONFIG_LIST:
    case CONFIG_RANGES:
        return err_set(err, ERR_INVALID, "%s must be a list", field->key);
    case CONFIG_VARIABLES:
    case CONFIG_METADATA:
    case CONFIG_JSON:
    case CONFIG_GROUPS:
        break;
    }
    return err_set(err, ERR_INVALID, "%s must be a mapping", field->key);
}

int config_set_defaults(void *record, const struct config_record *type, struct arena *arena,
                        struct err *err)
{
    for (const struct config_field *field = type->fields; field->key; field++) {
        bool is_number = field->kind == CONFIG_INT || field->kind == CONFIG_DURATION ||
                         field->kind == CONFIG_BYTES;

        if (field->fallback)
            TRY(config_set_scalar(record, field, str_of(field->fallback), arena, err));
        else if (is_number)
            memcpy((char *)record + field->offset, &field->absent, sizeof field->absent);
    }
    return 0;
}

/* An address without who asks and what for: both may hold a password. */
static void show_address(struct buf *out, struct str text)
{
    const char *start = text.len ? memmem(text.data, text.len, "://", 3) : NULL;
    const char *end = text.data + text.len;
    const char *stop;
    const char *at;

    if (!start) {
        buf_str(out, text);
        return;
    }
    start += 3;
    stop = memchr(start, '?', (size_t)(end - start));
    stop = stop ? stop : end;
    at = memrchr(start, '@', (size_t)(stop - start)); /* a password may hold one itself */
    buf_append(out, text.data, (size_t)(start - text.data));
    if (at)
        buf_text(out, "***");
    at = at ? at : start;
    buf_append(out, at, (size_t)(stop - at));
    if (stop < end)
        buf_text(out, "?***");
}

static void show_store(struct buf *out, struct str where)
{
    char shown[1024];

    node_store_shown(where, shown, sizeof shown);
    buf_text(out, shown);
}

static void show_duration(struct buf *out, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ms == 0 || ms % units[i].ms != 0)
            continue;
        buf_format(out, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
        return;
    }
    buf_text(out, "0");
}

static void show_number(struct buf *out, const struct config_field *field, int64_t value)
{
    if (!field->fallback && value == field->absent)
        buf_text(out, "(not set)");
    else if (field->kind == CONFIG_DURATION)
        show_duration(out, value);
    else if (field->kind == CONFIG_RATIO || field->kind == CONFIG_AMOUNT)
        buf_format(out, "%g", (double)value / 1e6);
    else
        buf_int(out, value);
}

void config_show(const struct config *config, const struct config_field *field, struct buf *out)
{
    const char *at = (const char *)config + field->offset;
    const char *count_at = (const char *)config + field->count_offset;
    bool is_secret = strstr(field->key, "secret") || strcmp(field->key, "token") == 0 ||
                     strcmp(field->key, "tracing.headers") == 0;
    struct str text;
    int64_t number;
    uint32_t count;
    bool flag;

    switch (field->kind) {
    case CONFIG_TEXT:
    case CONFIG_WORD:
    case CONFIG_ADDRESS:
    case CONFIG_URL:
        memcpy(&text, at, sizeof text);
        if (!text.data)
            buf_text(out, "(not set)");
        else if (is_secret)
            buf_text(out, "***");
        else if (strcmp(field->key, "store") == 0)
            show_store(out, text);
        else
            show_address(out, text);
        return;
    case CONFIG_BOOL:
        memcpy(&flag, at, sizeof flag);
        buf_text(out, flag ? "true" : "false");
        return;
    case CONFIG_TEXTS:
    case CONFIG_LIST:
    case CONFIG_RANGES:
    case CONFIG_GROUPS:
        memcpy(&count, count_at, sizeof count);
        buf_format(out, "%u %s", count, count == 1 ? "entry" : "entries");
        return;
    default:
        memcpy(&number, at, sizeof number);
        show_number(out, field, number);
    }
}
