/* Cells, tables and records from JSON. Nothing here trusts the text: cells are cleaned by the
 * table, lines by terminal_clean. One thread. */
#include "cli/frame/view.h"

#include "base/clock.h"
#include "base/json.h"

#define CELL_BYTES_MAX 65536
#define LEAVES_DEPTH_MAX 8

struct cell {
    struct str text;
    enum colour colour;
};

enum colour view_status_colour(struct str status)
{
    static const struct {
        const char *status;
        enum colour colour;
    } table[] = {{"completed", COLOUR_GREEN}, {"running", COLOUR_BLUE},   {"claimed", COLOUR_BLUE},
                 {"failed", COLOUR_RED},      {"dead_letter", COLOUR_RED}, {"orphaned", COLOUR_RED},
                 {"timeout", COLOUR_RED},     {"error", COLOUR_RED},       {"ERROR", COLOUR_RED},
                 {"FATAL", COLOUR_RED},       {"WARN", COLOUR_YELLOW},
                 {"critical", COLOUR_RED},    {"warning", COLOUR_YELLOW},
                 {"partial", COLOUR_YELLOW},  {"paused", COLOUR_YELLOW},
                 {"recovering", COLOUR_YELLOW},
                 {"cancelled", COLOUR_DIM},   {"released", COLOUR_DIM},
                 {"offline", COLOUR_DIM},     {"DEBUG", COLOUR_DIM}};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (str_is(status, table[i].status))
            return table[i].colour;
    return COLOUR_NONE;
}

struct str view_member(struct call *call, struct str object, const char *key)
{
    struct str value = json_kind(object) == JSON_OBJECT ? json_get(object, str_of(key)) : STR_NONE;

    return value.data && json_kind(value) == JSON_STRING ? json_string(value, &call->arena)
                                                         : STR_NONE;
}

struct str view_items(struct str reply)
{
    struct str items = STR_NONE;

    if (reply.data && json_kind(reply) == JSON_ARRAY)
        return reply;
    if (reply.data && json_kind(reply) == JSON_OBJECT)
        items = json_get(reply, STR("items"));
    return items.data && json_kind(items) == JSON_ARRAY ? items : STR("[]");
}

static struct str as_text(struct call *call, struct str value)
{
    return json_kind(value) == JSON_STRING ? json_string(value, &call->arena) : value;
}

/* The store only knows that the execution did not finish. The reason is that its worker gave it
 * back and the task continues elsewhere. */
static struct str as_execution(struct call *call, struct str execution, struct str status)
{
    struct str reason = json_pointer(execution, STR("/error_data/reason"), &call->arena);

    if (reason.data && str_is(as_text(call, reason), "released"))
        return STR("released");
    return as_text(call, status);
}

static struct str as_age(struct call *call, struct str value)
{
    struct str text = as_text(call, value);
    char shown[CLOCK_SPAN_BYTES];
    int64_t time_us;
    int64_t age_us;

    if (!clock_parse(text, &time_us))
        return text;
    age_us = clock_wall_us() - time_us;
    clock_format_ms((age_us < 0 ? -age_us : age_us) / CLOCK_MS_US, shown);
    return arena_format(&call->arena, "%s%s", age_us < 0 ? "in " : "", shown);
}

/* To the second on a terminal: microseconds would cost a third of a line. */
static struct str as_time(struct call *call, struct str value)
{
    struct str text = as_text(call, value);

    if (call->out.columns == 0 || text.len != sizeof "2026-01-01T00:00:00.000000Z" - 1 ||
        text.data[19] != '.')
        return text;
    return arena_format(&call->arena, "%.19sZ", text.data);
}

static struct str as_duration(struct call *call, struct str value, int64_t unit_ms,
                              const char *before)
{
    char shown[CLOCK_SPAN_BYTES];
    int64_t count;

    if (!json_int64(value, &count) || count > INT64_MAX / unit_ms)
        return as_text(call, value);
    clock_format_ms(count * unit_ms, shown);
    return arena_format(&call->arena, "%s%s", before, shown);
}

static struct str as_list(struct call *call, struct str value)
{
    BUF_AUTO struct buf out = BUF_INIT(CELL_BYTES_MAX);
    struct json_iter iter;
    struct str element;

    if (json_kind(value) != JSON_ARRAY)
        return as_text(call, value);
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        if (out.len > 0)
            buf_byte(&out, ',');
        buf_str(&out, as_text(call, element));
    }
    return arena_str(&call->arena, buf_view(&out));
}

/* "/s", "/10s", "/h": as people write it, where it is a whole number of some unit. */
static struct str as_period(struct call *call, int64_t per_ms)
{
    static const struct {
        int64_t ms;
        const char *word;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;

    while (units[i].ms > 1 && (per_ms < units[i].ms || per_ms % units[i].ms != 0))
        i++;
    if (per_ms == units[i].ms)
        return str_of(units[i].word);
    return arena_format(&call->arena, "%lld%s", (long long)(per_ms / units[i].ms), units[i].word);
}

static struct str as_rate(struct call *call, struct str value)
{
    struct str count_text = STR_NONE;
    struct str per_text = STR_NONE;
    int64_t count;
    int64_t per_ms;
    int64_t burst = 0;
    char more[32] = "";

    if (json_kind(value) == JSON_OBJECT) {
        count_text = json_get(value, STR("count"));
        per_text = json_get(value, STR("per_ms"));
    }
    if (!count_text.data || !per_text.data || !json_int64(count_text, &count) ||
        !json_int64(per_text, &per_ms))
        return as_text(call, value);
    if (json_int64(json_get(value, STR("burst")), &burst) && burst > 0)
        snprintf(more, sizeof more, " burst %lld", (long long)burst);
    return arena_format(&call->arena, "%lld/" STR_FMT "%s", (long long)count,
                        STR_ARG(as_period(call, per_ms)), more);
}

static struct str as_setter(struct call *call, struct str value)
{
    static const struct {
        const char *word, *text;
    } setters[] = {{"job", "this job"},
                   {"category", "its category"},
                   {"handler", "the handler's configuration"},
                   {"rule", "a rule of the configuration"},
                   {"default", "the built-in default"}};
    struct str word = as_text(call, value);

    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; i++)
        if (str_is(word, setters[i].word))
            return str_of(setters[i].text);
    return word;
}

/* What stands where there is no value, or one that means none. */
static const char *nothing(unsigned kind)
{
    switch (kind) {
    case VIEW_LIMIT:
        return "no limit";
    case VIEW_OFF:
        return "off";
    case VIEW_PATTERNS:
        return "*";
    default:
        return "";
    }
}

static bool is_nothing(unsigned kind, struct str value)
{
    if (!value.data || json_kind(value) == JSON_NULL)
        return true;
    return (kind == VIEW_LIMIT || kind == VIEW_OFF || kind == VIEW_COUNT) && str_is(value, "0");
}

/* The first of the pointers that leads to something. */
static struct str find_value(struct call *call, struct str object, const char *pointers)
{
    struct str value = STR_NONE;

    while (*pointers && (!value.data || json_kind(value) == JSON_NULL)) {
        size_t len = strcspn(pointers, "|");

        value = json_pointer(object, str_span(pointers, len), &call->arena);
        pointers += len + (pointers[len] == '|');
    }
    return value;
}

static struct cell make_cell(struct call *call, struct str object, const struct view_column *column)
{
    struct str value = find_value(call, object, column->pointer);
    unsigned kind = column->kind & VIEW_KINDS;
    struct cell cell = {str_of(nothing(kind)), COLOUR_NONE};

    if (is_nothing(kind, value))
        return cell;
    switch ((enum view_kind)kind) {
    case VIEW_STATUS:
        cell.text = as_text(call, value);
        cell.colour = view_status_colour(cell.text);
        break;
    case VIEW_EXECUTION:
        cell.text = as_execution(call, object, value);
        cell.colour = view_status_colour(cell.text);
        break;
    case VIEW_AGE:
        cell.text = as_age(call, value);
        break;
    case VIEW_DURATION:
    case VIEW_OFF:
        cell.text = as_duration(call, value, 1, "");
        break;
    case VIEW_SECONDS:
        cell.text = as_duration(call, value, 1000, "");
        break;
    case VIEW_WHEN:
        cell.text = as_duration(call, value, 1000, "every ");
        break;
    case VIEW_PERCENT:
        cell.text = arena_format(&call->arena, STR_FMT "%%", STR_ARG(as_text(call, value)));
        break;
    case VIEW_LIST:
    case VIEW_PATTERNS:
        cell.text = as_list(call, value);
        if (kind == VIEW_PATTERNS && cell.text.len == 0)
            cell.text = STR("-");
        break;
    case VIEW_RATE:
    case VIEW_LIMIT:
        cell.text = as_rate(call, value);
        break;
    case VIEW_SETTER:
        cell.text = as_setter(call, value);
        break;
    case VIEW_YES:
        cell.text = json_kind(value) == JSON_TRUE ? STR("yes") : STR("");
        break;
    case VIEW_ACTIVE:
        cell.text = json_kind(value) == JSON_STRING ? STR("deleted")
                    : json_kind(value) == JSON_TRUE ? STR("yes") : STR("");
        break;
    case VIEW_BOOL:
        cell.text = json_kind(value) == JSON_TRUE ? STR("yes") : STR("no");
        break;
    case VIEW_TIME:
        cell.text = as_time(call, value);
        break;
    case VIEW_TEXT:
    case VIEW_ID:
    case VIEW_NUMBER:
    case VIEW_COUNT:
    case VIEW_KINDS:
        cell.text = as_text(call, value);
        break;
    }
    return cell;
}

static bool is_right(unsigned kind)
{
    return kind == VIEW_NUMBER || kind == VIEW_PERCENT || kind == VIEW_DURATION ||
           kind == VIEW_SECONDS || kind == VIEW_AGE;
}

static void print_items(struct call *call, struct str items, const struct view_column *columns,
                        uint32_t columns_count, bool without_titles)
{
    struct table table;
    struct json_iter iter;
    struct str item;

    table_init(&table, &call->arena);
    table.without_titles = without_titles;
    for (uint32_t i = 0; i < columns_count; i++) {
        unsigned kind = columns[i].kind & VIEW_KINDS;

        table_column(&table, columns[i].title, is_right(kind),
                     kind == VIEW_TEXT || kind == VIEW_LIST ||
                         kind == VIEW_PATTERNS);
        table_spare(&table, columns[i].kind >> 8);
    }
    json_begin(items, &iter);
    while (json_next_element(&iter, &item)) {
        for (uint32_t i = 0; i < columns_count; i++) {
            struct cell cell = make_cell(call, item, &columns[i]);

            table_cell(&table, cell.text, cell.colour);
        }
    }
    table_print(&table, &call->out);
}

void view_table(struct call *call, struct str items, const struct view_column *columns,
                uint32_t columns_count)
{
    print_items(call, items, columns, columns_count, false);
}

void view_table_page(struct call *call, struct str items, const struct view_column *columns,
                     uint32_t columns_count)
{
    print_items(call, items, columns, columns_count, call->out.columns == 0);
}

static void print_pair(struct call *call, struct str title, size_t width, const struct cell *cell)
{
    BUF_AUTO struct buf line = BUF_INIT(8 * 1024 * 1024);

    terminal_clean(&line, title);
    buf_format(&line, "%*s", (int)(terminal_width(title) < width
                                       ? width - terminal_width(title) + 2 : 2), "");
    terminal_print(&call->out, COLOUR_BOLD, buf_view(&line));
    buf_reset(&line);
    terminal_clean(&line, cell->text);
    terminal_line(&call->out, cell->colour, buf_view(&line));
}

void view_record(struct call *call, struct str object, const struct view_column *columns,
                 uint32_t columns_count)
{
    size_t width = 0;

    for (uint32_t i = 0; i < columns_count; i++)
        if (strlen(columns[i].title) > width)
            width = strlen(columns[i].title);
    for (uint32_t i = 0; i < columns_count; i++) {
        struct cell cell = make_cell(call, object, &columns[i]);

        if (cell.text.len > 0)
            print_pair(call, str_of(columns[i].title), width, &cell);
    }
}

/* An element goes by its name where it has one, otherwise by its place. */
static struct str element_path(struct call *call, struct str path, struct str element,
                               uint32_t index)
{
    struct str name = view_member(call, element, "name");

    if (name.data)
        return arena_format(&call->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(name));
    return arena_format(&call->arena, STR_FMT ".%u", STR_ARG(path), index);
}

/* What a long list can do without: counters at zero, and the finest break-down. --json has
 * them all. */
static bool is_dull(struct str path, struct str value)
{
    bool counter = memmem(path.data, path.len, "counts.", 7) || str_starts(path, STR("totals."));

    return str_starts(path, STR("lanes.")) || (counter && str_is(value, "0"));
}

static void leaves(struct call *call, struct str path, struct str value, uint32_t depth)
{
    struct json_iter iter;
    struct json_member member;
    struct str element;
    uint32_t index = 0;

    if (depth < LEAVES_DEPTH_MAX && json_kind(value) == JSON_OBJECT && json_count(value) > 0) {
        json_begin(value, &iter);
        while (json_next_member(&iter, &member))
            leaves(call,
                   arena_format(&call->arena, STR_FMT "%s" STR_FMT, STR_ARG(path),
                                path.len ? "." : "",
                                STR_ARG(json_decode_key(member.key, &call->arena))),
                   member.value, depth + 1);
    } else if (depth < LEAVES_DEPTH_MAX && json_kind(value) == JSON_ARRAY &&
               json_count(value) > 0) {
        json_begin(value, &iter);
        while (json_next_element(&iter, &element))
            leaves(call, element_path(call, path, element, index++), element, depth + 1);
    } else if (!is_dull(path, value)) {
        struct cell cell = {as_text(call, value), COLOUR_NONE};

        print_pair(call, path, 36, &cell);
    }
}

void view_leaves(struct call *call, struct str value)
{
    leaves(call, STR(""), value, 0);
}
