/* perdura category …: what jobs and tasks have in common. One thread. */
#include "base/json.h"
#include "cli/frame/listing.h"
#include "cli/plans/local_time.h"
#include "cli/plans/thing.h"
#include "core/bounds.h"

static const struct view_column list_columns[] = {
    {"NAME", "/name", VIEW_TEXT},
    {"ACTIVE", "/is_active", VIEW_YES | VIEW_SPARE(6)},
    {"PRIORITY", "/default_priority", VIEW_TEXT | VIEW_SPARE(2)},
    {"TIMEOUT", "/default_timeout", VIEW_SECONDS | VIEW_SPARE(2)},
    {"RETRIES", "/default_max_retries", VIEW_NUMBER | VIEW_SPARE(3)},
    {"QUEUE", "/configuration/queue", VIEW_TEXT | VIEW_SPARE(1)},
    {"WINDOWS", "/configuration/allowed_windows", VIEW_LIST | VIEW_SPARE(4)},
    {"BATCH", "/configuration/batch_size", VIEW_NUMBER | VIEW_SPARE(7)},
    {"DESCRIPTION", "/description", VIEW_TEXT | VIEW_SPARE(5)},
};

static const struct view_column show_columns[] = {
    {"name", "/name", VIEW_TEXT},
    {"id", "/id", VIEW_ID},
    {"description", "/description", VIEW_TEXT},
    {"active", "/is_active", VIEW_BOOL},
    {"priority", "/default_priority", VIEW_TEXT},
    {"timeout", "/default_timeout", VIEW_SECONDS},
    {"max retries", "/default_max_retries", VIEW_NUMBER},
    {"configuration", "/configuration", VIEW_TEXT},
    {"created", "/created_at", VIEW_TIME},
    {"updated", "/updated_at", VIEW_TIME},
};

#define CATEGORY_FLAGS                                                                           \
    {.name = "description", .type = FLAG_TEXT, .value = "TEXT", .field = "description",          \
     .help = "what it is for"},                                                                  \
    {.name = "priority", .type = FLAG_PRIORITY, .value = "P", .field = "default_priority",       \
     .help = "-1000 to 1000, higher first, or low, medium, high, critical"},                     \
    {.name = "timeout", .type = FLAG_SECONDS, .value = "D", .field = "default_timeout",          \
     .help = "longest run of one attempt"},                                                      \
    {.name = "max-retries", .type = FLAG_INT, .value = "N", .field = "default_max_retries",      \
     .min = 0, .max = BOUND_RETRIES, .help = "retries after the first attempt"},                 \
    {.name = "inactive", .type = FLAG_NO, .field = "is_active",                                  \
     .help = "its jobs do not run on schedule"}

/* Members of its configuration; those not given stay. */
#define CONFIGURATION_FLAGS                                                                      \
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .field = "queue",                     \
     .help = "queue of its tasks"},                                                              \
    {.name = "windows", .type = FLAG_TEXT, .value = "WINDOWS",                                   \
     .help = "local times in which its tasks may start, separated by ;: 02:00-06:00, 'MON-FRI "  \
             "18:00-24:00; SAT,SUN 00:00-24:00'; at other times they wait; none removes the "    \
             "windows"},                                                                         \
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .field = "timezone",                      \
     .help = "time zone of its windows for tasks without a schedule (UTC); local = this "        \
             "machine's"},                                                                       \
    {.name = "batch-size", .type = FLAG_INT, .value = "N", .field = "batch_size", .min = 1,      \
     .max = BOUND_CLAIM_MAX, .help = "most tasks of it in one claim"},                           \
    {.name = "service", .type = FLAG_TEXT, .value = "NAME", .field = "service",                  \
     .help = "the service its tasks go to"}

static const struct flag category_fields[] = {CATEGORY_FLAGS, {0}};
static const struct flag configuration_fields[] = {CONFIGURATION_FLAGS, {0}};

static struct str trim(struct str text)
{
    while (text.len > 0 && text.data[0] == ' ')
        text = str_span(text.data + 1, text.len - 1);
    while (text.len > 0 && text.data[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* A window ends at a semicolon, or at a comma once it has times: "SAT,SUN 00:00-24:00" is one. */
static struct str next_window(struct str *rest)
{
    struct str window = *rest;
    bool has_times = false;

    for (size_t i = 0; i < rest->len; i++) {
        char byte = rest->data[i];

        has_times |= byte == ':';
        if (byte == ';' || (byte == ',' && has_times)) {
            window.len = i;
            *rest = str_span(rest->data + i + 1, rest->len - i - 1);
            return trim(window);
        }
    }
    *rest = STR_NONE;
    return trim(window);
}

static void write_windows(struct call *call, struct buf *object)
{
    struct str rest = call_given_text(call, "windows");

    if (!rest.data)
        return;
    json_write_key(object, "allowed_windows");
    if (str_is(rest, "none")) {
        buf_text(object, "null");
        return;
    }
    buf_byte(object, '[');
    while (rest.data) {
        struct str window = next_window(&rest);

        if (window.len > 0 && object->data[object->len - 1] != '[')
            buf_byte(object, ',');
        if (window.len > 0)
            json_write_string(object, window);
    }
    buf_byte(object, ']');
}

/* From --configuration, or from what is stored; the flags for its members go before both. */
static int write_configuration(struct call *call, struct str stored, bool changed,
                               struct buf *body)
{
    BUF_AUTO struct buf object = BUF_INIT(THING_BODY_BYTES_MAX);
    struct str given = STR_NONE;

    TRY(call_json(call, "configuration", COMMAND_INPUT_BYTES_MAX, &given));
    if (str_is(call_given_text(call, "tz"), "local"))
        call_replace(call, "tz", local_zone_name(&call->arena));
    buf_byte(&object, '{');
    TRY(call_write_fields_of(call, configuration_fields, &object));
    write_windows(call, &object);
    if (changed || given.data || object.len > 1) {
        thing_merge(call, given.data ? given : stored, &object);
        buf_byte(&object, '}');
        json_write_key(body, "configuration");
        buf_str(body, given.data && json_kind(given) != JSON_OBJECT ? given : buf_view(&object));
    }
    return 0;
}

static const struct flag update_fields[] = {
    {.name = "name", .type = FLAG_TEXT, .field = "name"},
    {.name = "active", .type = FLAG_BOOL, .field = "is_active"},
    {0}};

/* The member of the configuration that goes by this name, or by that of its flag; NULL = none. */
static const char *configuration_member(struct str name)
{
    static const char windows[] = "allowed_windows";

    if (str_is(name, "windows") || str_is(name, windows))
        return windows;
    for (const struct flag *flag = configuration_fields; flag->name; flag++)
        if (flag->field && (str_is(name, flag->name) || str_is(name, flag->field)))
            return flag->field;
    return NULL;
}

static struct str without(struct call *call, struct str object, const char *name)
{
    BUF_AUTO struct buf out = BUF_INIT(THING_BODY_BYTES_MAX);
    struct json_member member;
    struct json_iter iter;

    if (!object.data || json_kind(object) != JSON_OBJECT)
        return object;
    buf_byte(&out, '{');
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        if (str_is(json_decode_key(member.key, &call->arena), name))
            continue;
        buf_text(&out, out.len > 1 ? ",\"" : "\"");
        buf_str(&out, member.key);
        buf_text(&out, "\":");
        buf_str(&out, member.value);
    }
    buf_byte(&out, '}');
    object = arena_str(&call->arena, buf_view(&out));
    return object;
}

/* Fields of its own become null, members of its configuration are left out of it. */
static int write_unset(struct call *call, struct str *stored, bool *changed, struct buf *body)
{
    struct str *names;
    uint32_t count;
    int rc = call_list(call, "unset", &names, &count);

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        const char *member = configuration_member(names[i]);

        if (!member) {
            thing_unset(call, names[i], body);
            continue;
        }
        *stored = without(call, *stored, member);
        *changed = true;
    }
    return rc;
}

static int write_fields(struct client *client, bool is_new, struct str stored, struct buf *body)
{
    struct call *call = client->call;
    struct str configuration = is_new ? STR_NONE : json_get(stored, STR("configuration"));
    bool changed = false;

    TRY(call_write_fields_of(call, category_fields, body));
    if (!is_new) {
        TRY(call_write_fields_of(call, update_fields, body));
        TRY(write_unset(call, &configuration, &changed, body));
    }
    return write_configuration(call, configuration, changed, body);
}

const struct thing thing_category = {
    .word = "category", .path = "/v1/categories/", COLUMNS(list_columns), COLUMNS(show_columns),
    .off = "inactive", .keeps = true, .write = write_fields};

#define CONFIGURATION_FLAG                                                              \
    {.name = "configuration", .type = FLAG_JSON, .value = "JSON|@FILE|-",               \
     .help = "its whole configuration as an object; replaces the stored one"}

static const struct flag create_flags[] = {CATEGORY_FLAGS, CONFIGURATION_FLAGS, CONFIGURATION_FLAG,
                                           {0}};
static const struct flag update_flags[] = {
    CATEGORY_FLAGS, CONFIGURATION_FLAGS, CONFIGURATION_FLAG,
    {.name = "active", .type = FLAG_BOOL, .field = "is_active", .help = "its jobs run again"},
    {.name = "name", .type = FLAG_TEXT, .value = "NAME", .field = "name", .help = "another name"},
    {.name = "unset", .type = FLAG_LIST, .value = "FIELD",
     .help = "set fields back to their default: description, windows, queue, configuration …"},
    {0}};
static const struct flag list_flags[] = {
    {.name = "active", .type = FLAG_WORD, .value = "BOOL", .field = "is_active",
     .choices = "true|false", .help = "only active ones, or only inactive ones"},
    LISTING_FLAGS("categories"),
    {0}};

static const struct command category_create = {
    .name = "create", .summary = "Make a category", .arguments = "NAME",
    .details = "Prints the category's id.",
    .example = "perdura category create nightly --queue low-priority --windows 22:00-06:00 --tz "
               "Europe/Paris --timeout 1h",
    .flags = create_flags, .about = &thing_category, CLIENT_COMMAND(1, 1, thing_run_create)};

static const struct command category_list = {
    .name = "list", .summary = "List categories", .example = "perdura category list",
    .flags = list_flags, .about = &thing_category, CLIENT_COMMAND(0, 0, thing_run_list)};

static const struct command category_show = {
    .name = "show", .summary = "Show a category", .arguments = "CATEGORY",
    .example = "perdura category show maintenance", .about = &thing_category,
    CLIENT_COMMAND(1, 1, thing_run_show)};

static const struct command category_update = {
    .name = "update", .summary = "Change a category", .arguments = "CATEGORY",
    .details = "Fields you leave out keep their values, in its configuration too. Existing tasks "
               "do not change.",
    .example = "perdura category update maintenance --windows 01:00-05:00\n"
               "perdura category update maintenance --unset windows",
    .flags = update_flags, .about = &thing_category, CLIENT_COMMAND(1, 1, thing_run_update)};

static const struct command category_delete = {
    .name = "delete", .summary = "Delete categories that no job uses", .arguments = "CATEGORY…",
    .example = "perdura category delete nightly", .about = &thing_category,
    CLIENT_COMMAND(1, COMMAND_ARGS_MAX, thing_run_delete)};

static const struct command *const subcommands[] = {&category_create, &category_list,
                                                    &category_show,   &category_update,
                                                    &category_delete, NULL};

const struct command command_category = {
    .name = "category", .summary = "Show and change categories of jobs",
    .example = "perdura category list\nperdura category update maintenance --windows 01:00-05:00",
    .subcommands = subcommands};
