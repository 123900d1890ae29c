/* One table row per key of a control line; each row's function takes the value apart. Sizes are
 * refused here with the name of the field, so that the author of a handler reads why. */
#include "worker/process/control_line.h"

#include "base/json.h"
#include "core/bounds.h"

#include <stddef.h>

struct context {
    struct arena *arena;
    struct report *report;
    struct err *err;
};

struct field {
    const char *key;
    int (*take)(struct context *ctx, const struct field *field, struct str value);
    size_t offset;    /* where it goes in the report */
    size_t bytes_max; /* of a text or of JSON */
    enum report_op op;
    bool alone; /* may not stand beside others */
};

#define AT(member) offsetof(struct report, member)

struct report worker_report(enum report_op op)
{
    return (struct report){.op = op, .progress = -1, .delay_ms = -1, .retryable = true,
                           .level = SEVERITY_INFO};
}

/* ---- values ---- */

static int wrong(struct context *ctx, const char *key, const char *what)
{
    return err_set_field(ctx->err, ERR_INVALID, key, "the control line's '%s' must be %s", key,
                         what);
}

static void *place_of(struct context *ctx, const struct field *field)
{
    return (char *)ctx->report + field->offset;
}

static int check_size(struct context *ctx, const struct field *field, size_t len)
{
    if (len <= field->bytes_max)
        return 0;
    return err_set_field(ctx->err, ERR_TOO_LARGE, field->key,
                         "the control line's '%s' has %zu bytes; at most %zu are kept", field->key,
                         len, field->bytes_max);
}

static int take_text(struct context *ctx, const struct field *field, struct str value)
{
    struct str *out = place_of(ctx, field);

    if (json_kind(value) != JSON_STRING)
        return wrong(ctx, field->key, "a string");
    *out = json_string(value, ctx->arena);
    if (!out->data)
        return err_no_memory(ctx->err);
    return check_size(ctx, field, out->len);
}

static int take_json(struct context *ctx, const struct field *field, struct str value)
{
    *(struct str *)place_of(ctx, field) = value;
    return check_size(ctx, field, value.len);
}

static int take_object(struct context *ctx, const struct field *field, struct str value)
{
    if (json_kind(value) != JSON_OBJECT)
        return wrong(ctx, field->key, "an object");
    return take_json(ctx, field, value);
}

static int take_bool(struct context *ctx, const struct field *field, struct str value)
{
    enum json_kind kind = json_kind(value);

    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return wrong(ctx, field->key, "true or false");
    *(bool *)place_of(ctx, field) = kind == JSON_TRUE;
    return 0;
}

static int take_progress(struct context *ctx, const struct field *field, struct str value)
{
    double number;

    if (json_kind(value) != JSON_NUMBER || !json_double(value, &number) ||
        !(number >= 0 && number <= 100))
        return wrong(ctx, field->key, "a number from 0 to 100");
    ctx->report->progress = (int64_t)number; /* 99.9 is not done yet */
    return 0;
}

static int take_level(struct context *ctx, const struct field *field, struct str value)
{
    struct str word = json_kind(value) == JSON_STRING ? json_string(value, ctx->arena) : STR_NONE;

    if (!word.data || !severity_parse(word, &ctx->report->level))
        return wrong(ctx, field->key, "DEBUG, INFO, WARN, ERROR or FATAL");
    return 0;
}

static int take_delay(struct context *ctx, const struct field *field, struct str value)
{
    if (json_kind(value) != JSON_NUMBER || !json_int64(value, &ctx->report->delay_ms) ||
        ctx->report->delay_ms < 0 || ctx->report->delay_ms > BOUND_DELAY_MS)
        return wrong(ctx, field->key, "a whole number of milliseconds, at most ten years");
    return 0;
}

/* Over the members of an object, by a table of its own. */
static int take_members(struct context *ctx, const char *key, struct str value,
                        const struct field *fields)
{
    struct json_member member;
    struct json_iter iter;

    if (json_kind(value) != JSON_OBJECT)
        return wrong(ctx, key, "an object");
    json_begin(value, &iter);
    while (json_next_member(&iter, &member)) {
        const struct field *field = fields;

        while (field->key && !json_key_is(member.key, str_of(field->key)))
            field++;
        if (!field->key)
            return err_set_field(ctx->err, ERR_INVALID, key,
                                 "the control line's '%s' has an unknown member '%.*s'", key,
                                 member.key.len > 60 ? 60 : (int)member.key.len, member.key.data);
        TRY(field->take(ctx, field, member.value));
    }
    return 0;
}

/* ---- the keys of a line ---- */

static int take_checkpoint(struct context *ctx, const struct field *line, struct str value)
{
    static const struct field fields[] = {
        {"name", take_text, AT(name), BOUND_NAME_BYTES, 0, false},
        {"progress", take_progress, 0, 0, 0, false},
        {"description", take_text, AT(description), BOUND_ERROR_BYTES, 0, false},
        {"data", take_json, AT(data), BOUND_DATA_BYTES, 0, false},
        {"database_state", take_json, AT(database_state), BOUND_DATA_BYTES, 0, false},
        {"file_state", take_json, AT(file_state), BOUND_DATA_BYTES, 0, false},
        {NULL, NULL, 0, 0, 0, false},
    };

    TRY(take_members(ctx, line->key, value, fields));
    if (str_empty(ctx->report->name))
        return err_set_field(ctx->err, ERR_INVALID, "name",
                             "the control line's 'checkpoint' needs a 'name'");
    return 0;
}

/* Messages and errors are cut, not refused. */
static int take_log(struct context *ctx, const struct field *line, struct str value)
{
    static const struct field fields[] = {
        {"message", take_text, AT(message), SIZE_MAX, 0, false},
        {"level", take_level, 0, 0, 0, false},
        {"context", take_object, AT(context), BOUND_METADATA_BYTES, 0, false},
        {NULL, NULL, 0, 0, 0, false},
    };

    if (json_kind(value) == JSON_STRING)
        return take_text(ctx, &fields[0], value);
    TRY(take_members(ctx, line->key, value, fields));
    if (!ctx->report->message.data)
        return err_set_field(ctx->err, ERR_INVALID, "message",
                             "the control line's 'log' needs a 'message'");
    return 0;
}

static int take_continue(struct context *ctx, const struct field *line, struct str value)
{
    static const struct field fields[] = {
        {"data", take_json, AT(data), BOUND_DATA_BYTES, 0, false},
        {"delay_ms", take_delay, 0, 0, 0, false},
        {"wait_children", take_bool, AT(wait_children), 0, 0, false},
        {"question", take_text, AT(question), BOUND_NAME_BYTES, 0, false},
        {NULL, NULL, 0, 0, 0, false},
    };

    return take_members(ctx, line->key, value, fields);
}

static int take_fail(struct context *ctx, const struct field *line, struct str value)
{
    static const struct field fields[] = {
        {"error", take_text, AT(error), SIZE_MAX, 0, false},
        {"details", take_json, AT(details), BOUND_METADATA_BYTES, 0, false},
        {"retryable", take_bool, AT(retryable), 0, 0, false},
        {NULL, NULL, 0, 0, 0, false},
    };

    if (json_kind(value) == JSON_STRING)
        return take_text(ctx, &fields[0], value);
    return take_members(ctx, line->key, value, fields);
}

static int take_spawn(struct context *ctx, const struct field *line, struct str value)
{
    struct json_iter iter;
    struct str element;
    size_t count = 0;

    if (json_kind(value) != JSON_ARRAY)
        return wrong(ctx, line->key, "an array of task objects");
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        if (json_kind(element) != JSON_OBJECT)
            return wrong(ctx, line->key, "an array of task objects");
        if (++count > BOUND_ARRAY)
            return err_set_field(ctx->err, ERR_TOO_LARGE, "spawn",
                                 "the control line's 'spawn' may hold at most %d tasks",
                                 BOUND_ARRAY);
    }
    ctx->report->tasks = value;
    return 0;
}

static const struct field line_fields[] = {
    {"progress", take_progress, 0, 0, REPORT_PROGRESS, false},
    {"state", take_text, AT(state), BOUND_NAME_BYTES, REPORT_PROGRESS, false},
    {"metadata", take_object, AT(metadata), BOUND_METADATA_BYTES, REPORT_PROGRESS, false},
    {"detail", take_json, AT(detail), BOUND_METADATA_BYTES, REPORT_PROGRESS, false},
    {"data", take_json, AT(data), BOUND_DATA_BYTES, REPORT_PROGRESS, true},
    {"checkpoint", take_checkpoint, 0, 0, REPORT_CHECKPOINT, true},
    {"log", take_log, 0, 0, REPORT_LOG, true},
    {"result", take_json, AT(result), BOUND_RESULT_BYTES, REPORT_COMPLETE, true},
    {"continue", take_continue, 0, 0, REPORT_CONTINUE, true},
    {"fail", take_fail, 0, 0, REPORT_FAIL, true},
    {"partial", take_json, AT(result), BOUND_RESULT_BYTES, REPORT_PARTIAL, true},
    {"spawn", take_spawn, 0, 0, REPORT_SPAWN, true},
};

static const struct field *find_line_field(struct str key)
{
    for (size_t i = 0; i < sizeof line_fields / sizeof *line_fields; i++)
        if (json_key_is(key, str_of(line_fields[i].key)))
            return &line_fields[i];
    return NULL;
}

static int parse_object(struct context *ctx, struct str object)
{
    size_t count = json_count(object);
    struct json_member member;
    struct json_iter iter;

    if (count == 0)
        return err_set(ctx->err, ERR_INVALID, "a control line needs one key, such as 'progress'");
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        const struct field *field = find_line_field(member.key);

        if (!field)
            return err_set(ctx->err, ERR_INVALID, "a control line has an unknown key '%.*s'",
                           member.key.len > 60 ? 60 : (int)member.key.len, member.key.data);
        ctx->report->op = field->op;
        if (field->alone && count > 1)
            return err_set_field(ctx->err, ERR_INVALID, field->key,
                                 "a control line's '%s' must stand alone; write one line each",
                                 field->key);
        TRY(field->take(ctx, field, member.value));
    }
    return 0;
}

/* Whether a line that is not JSON begins like one that would have said how the attempt ends. */
static bool meant_as_outcome(struct str line)
{
    static const char *const keys[] = {"\"result\"", "\"fail\"", "\"partial\"", "\"continue\""};
    size_t at = 0;

    while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t' || line.data[at] == '{'))
        at++;
    line = str_span(line.data + at, line.len - at);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (str_starts(line, str_of(keys[i])))
            return true;
    return false;
}

int control_line_parse(struct str line, struct arena *arena, struct report *report,
                       struct err *err)
{
    struct context ctx = {arena, report, err};
    struct err cause = {0};
    struct str object;

    *report = worker_report(REPORT_OP_COUNT);
    if (json_check(line, &object, &cause) < 0) {
        if (meant_as_outcome(line)) /* a cut or wrong result must not pass for none */
            report->op = REPORT_COMPLETE;
        return err_set(err, ERR_MALFORMED, "a control line is not JSON: %s", cause.text);
    }
    if (json_kind(object) != JSON_OBJECT)
        return err_set(err, ERR_INVALID,
                       "a control line must be an object with one key, such as 'progress'");
    return parse_object(&ctx, object);
}
