/* One table row per key of a control line; each row's function takes the value apart. Sizes are
 * refused here with the name of the field, so that the author of a handler reads why. */
#include "worker/process/control_line.h"

#include "base/json.h"
#include "core/bounds.h"

struct context {
    struct arena *arena;
    struct report *report;
    struct err *err;
};

struct field {
    const char *key;
    int (*parse)(struct context *ctx, struct str value);
    enum report_op op;
    bool alone; /* may not stand beside others */
};

struct report worker_report(enum report_op op)
{
    return (struct report){.op = op, .progress = -1, .delay_ms = -1, .retryable = true,
                           .level = SEVERITY_INFO};
}

/* ---- values ---- */

static int wrong(struct context *ctx, const char *key, const char *what)
{
    return err_set_field(ctx->err, ERR_INVALID, key, "The control line's '%s' must be %s.", key,
                         what);
}

static int take_text(struct context *ctx, const char *key, struct str value, size_t bytes_max,
                     struct str *out)
{
    if (json_kind(value) != JSON_STRING)
        return wrong(ctx, key, "a string");
    *out = json_string(value, ctx->arena);
    if (!out->data)
        return err_no_memory(ctx->err);
    if (out->len > bytes_max)
        return err_set_field(ctx->err, ERR_TOO_LARGE, key,
                             "The control line's '%s' has %zu bytes; at most %zu are kept.", key,
                             out->len, bytes_max);
    return 0;
}

static int take_json(struct context *ctx, const char *key, struct str value, size_t bytes_max,
                     struct str *out)
{
    if (value.len > bytes_max)
        return err_set_field(ctx->err, ERR_TOO_LARGE, key,
                             "The control line's '%s' has %zu bytes; at most %zu are kept.", key,
                             value.len, bytes_max);
    *out = value;
    return 0;
}

static int take_object(struct context *ctx, const char *key, struct str value, size_t bytes_max,
                       struct str *out)
{
    if (json_kind(value) != JSON_OBJECT)
        return wrong(ctx, key, "an object");
    return take_json(ctx, key, value, bytes_max, out);
}

static int take_bool(struct context *ctx, const char *key, struct str value, bool *out)
{
    enum json_kind kind = json_kind(value);

    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return wrong(ctx, key, "true or false");
    *out = kind == JSON_TRUE;
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
                                 "The control line's '%s' has an unknown member '%.*s'.", key,
                                 member.key.len > 60 ? 60 : (int)member.key.len, member.key.data);
        TRY(field->parse(ctx, member.value));
    }
    return 0;
}

/* ---- fields ---- */

static int parse_progress(struct context *ctx, struct str value)
{
    double number;

    if (json_kind(value) != JSON_NUMBER || !json_double(value, &number) ||
        !(number >= 0 && number <= 100))
        return wrong(ctx, "progress", "a number from 0 to 100");
    ctx->report->progress = (int64_t)number; /* 99.9 is not done yet */
    return 0;
}

static int parse_state(struct context *ctx, struct str value)
{
    return take_text(ctx, "state", value, BOUND_NAME_BYTES, &ctx->report->state);
}

static int parse_metadata(struct context *ctx, struct str value)
{
    return take_object(ctx, "metadata", value, BOUND_METADATA_BYTES, &ctx->report->metadata);
}

static int parse_detail(struct context *ctx, struct str value)
{
    return take_json(ctx, "detail", value, BOUND_METADATA_BYTES, &ctx->report->detail);
}

static int parse_data(struct context *ctx, struct str value)
{
    return take_json(ctx, "data", value, BOUND_DATA_BYTES, &ctx->report->data);
}

static int parse_name(struct context *ctx, struct str value)
{
    return take_text(ctx, "name", value, BOUND_NAME_BYTES, &ctx->report->name);
}

static int parse_description(struct context *ctx, struct str value)
{
    return take_text(ctx, "description", value, BOUND_ERROR_BYTES, &ctx->report->description);
}

static int parse_database_state(struct context *ctx, struct str value)
{
    return take_json(ctx, "database_state", value, BOUND_DATA_BYTES, &ctx->report->database_state);
}

static int parse_file_state(struct context *ctx, struct str value)
{
    return take_json(ctx, "file_state", value, BOUND_DATA_BYTES, &ctx->report->file_state);
}

static int parse_level(struct context *ctx, struct str value)
{
    struct str word = STR_NONE;
    int rc = take_text(ctx, "level", value, BOUND_NAME_BYTES, &word);

    if (rc == 0 && !severity_parse(word, &ctx->report->level))
        return wrong(ctx, "level", "DEBUG, INFO, WARN, ERROR or FATAL");
    return rc;
}

static int parse_message(struct context *ctx, struct str value)
{
    return take_text(ctx, "message", value, SIZE_MAX, &ctx->report->message); /* cut, not refused */
}

static int parse_context(struct context *ctx, struct str value)
{
    return take_object(ctx, "context", value, BOUND_METADATA_BYTES, &ctx->report->context);
}

static int parse_delay(struct context *ctx, struct str value)
{
    if (json_kind(value) != JSON_NUMBER || !json_int64(value, &ctx->report->delay_ms) ||
        ctx->report->delay_ms < 0 || ctx->report->delay_ms > BOUND_DELAY_MS)
        return wrong(ctx, "delay_ms", "a whole number of milliseconds, at most ten years");
    return 0;
}

static int parse_wait_children(struct context *ctx, struct str value)
{
    return take_bool(ctx, "wait_children", value, &ctx->report->wait_children);
}

static int parse_error(struct context *ctx, struct str value)
{
    return take_text(ctx, "error", value, SIZE_MAX, &ctx->report->error); /* cut, not refused */
}

static int parse_details(struct context *ctx, struct str value)
{
    return take_json(ctx, "details", value, BOUND_METADATA_BYTES, &ctx->report->details);
}

static int parse_retryable(struct context *ctx, struct str value)
{
    return take_bool(ctx, "retryable", value, &ctx->report->retryable);
}

/* ---- the keys of a line ---- */

static int parse_checkpoint(struct context *ctx, struct str value)
{
    static const struct field fields[] = {
        {"name", parse_name, 0, false},
        {"progress", parse_progress, 0, false},
        {"description", parse_description, 0, false},
        {"data", parse_data, 0, false},
        {"database_state", parse_database_state, 0, false},
        {"file_state", parse_file_state, 0, false},
        {NULL, NULL, 0, false},
    };
    int rc = take_members(ctx, "checkpoint", value, fields);

    if (rc == 0 && str_empty(ctx->report->name))
        return err_set_field(ctx->err, ERR_INVALID, "name",
                             "The control line's 'checkpoint' needs a 'name'.");
    return rc;
}

static int parse_log(struct context *ctx, struct str value)
{
    static const struct field fields[] = {
        {"level", parse_level, 0, false},
        {"message", parse_message, 0, false},
        {"context", parse_context, 0, false},
        {NULL, NULL, 0, false},
    };

    if (json_kind(value) == JSON_STRING)
        return parse_message(ctx, value);
    TRY(take_members(ctx, "log", value, fields));
    if (!ctx->report->message.data)
        return err_set_field(ctx->err, ERR_INVALID, "message",
                             "The control line's 'log' needs a 'message'.");
    return 0;
}

static int parse_result(struct context *ctx, struct str value)
{
    return take_json(ctx, "result", value, BOUND_RESULT_BYTES, &ctx->report->result);
}

static int parse_continue(struct context *ctx, struct str value)
{
    static const struct field fields[] = {
        {"data", parse_data, 0, false},
        {"delay_ms", parse_delay, 0, false},
        {"wait_children", parse_wait_children, 0, false},
        {NULL, NULL, 0, false},
    };

    return take_members(ctx, "continue", value, fields);
}

static int parse_fail(struct context *ctx, struct str value)
{
    static const struct field fields[] = {
        {"error", parse_error, 0, false},
        {"details", parse_details, 0, false},
        {"retryable", parse_retryable, 0, false},
        {NULL, NULL, 0, false},
    };

    if (json_kind(value) == JSON_STRING)
        return parse_error(ctx, value);
    return take_members(ctx, "fail", value, fields);
}

static int parse_partial(struct context *ctx, struct str value)
{
    return take_json(ctx, "partial", value, BOUND_RESULT_BYTES, &ctx->report->result);
}

static int parse_spawn(struct context *ctx, struct str value)
{
    struct json_iter iter;
    struct str element;
    size_t count = 0;

    if (json_kind(value) != JSON_ARRAY)
        return wrong(ctx, "spawn", "an array of task objects");
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        if (json_kind(element) != JSON_OBJECT)
            return wrong(ctx, "spawn", "an array of task objects");
        if (++count > BOUND_ARRAY)
            return err_set_field(ctx->err, ERR_TOO_LARGE, "spawn",
                                 "The control line's 'spawn' may hold at most %d tasks.",
                                 BOUND_ARRAY);
    }
    ctx->report->tasks = value;
    return 0;
}

static const struct field line_fields[] = {
    {"progress", parse_progress, REPORT_PROGRESS, false},
    {"state", parse_state, REPORT_PROGRESS, false},
    {"metadata", parse_metadata, REPORT_PROGRESS, false},
    {"detail", parse_detail, REPORT_PROGRESS, false},
    {"data", parse_data, REPORT_PROGRESS, true},
    {"checkpoint", parse_checkpoint, REPORT_CHECKPOINT, true},
    {"log", parse_log, REPORT_LOG, true},
    {"result", parse_result, REPORT_COMPLETE, true},
    {"continue", parse_continue, REPORT_CONTINUE, true},
    {"fail", parse_fail, REPORT_FAIL, true},
    {"partial", parse_partial, REPORT_PARTIAL, true},
    {"spawn", parse_spawn, REPORT_SPAWN, true},
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
        return err_set(ctx->err, ERR_INVALID, "A control line needs one key, such as 'progress'.");
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        const struct field *field = find_line_field(member.key);

        if (!field)
            return err_set(ctx->err, ERR_INVALID, "A control line has an unknown key '%.*s'.",
                           member.key.len > 60 ? 60 : (int)member.key.len, member.key.data);
        ctx->report->op = field->op;
        if (field->alone && count > 1)
            return err_set_field(ctx->err, ERR_INVALID, field->key,
                                 "A control line's '%s' must stand alone; write one line each.",
                                 field->key);
        TRY(field->parse(ctx, member.value));
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
        return err_set(err, ERR_MALFORMED, "A control line is not JSON: %s", cause.text);
    }
    if (json_kind(object) != JSON_OBJECT)
        return err_set(err, ERR_INVALID,
                       "A control line must be an object with one key, such as 'progress'.");
    return parse_object(&ctx, object);
}
