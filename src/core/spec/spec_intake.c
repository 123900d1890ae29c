#include "core/spec/spec_intake.h"

#include "base/buf.h"
#include "base/enum_words.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/field.h"

#define ROW_BYTES_MAX (8 * 1024 * 1024) /* the database takes no larger options than fit */

#define INTAKE(...) FIELD_ROW(intake_row, __VA_ARGS__)
static const struct field intake_fields[] = {
    INTAKE(task, key, INT, 0),           INTAKE(id, id, UUID, 0),
    INTAKE(namespace, namespace_name, TEXT, 0), INTAKE(type, type, TEXT, 0),
    INTAKE(payload, payload, TEXT, FIELD_LONG), INTAKE(options, options, TEXT, FIELD_LONG),
    INTAKE(created_at, created_at_us, TIME, FIELD_ALWAYS)};
const struct field_table intake_table = FIELD_TABLE(intake_row, "intake", "r", intake_fields);

static const char *const verb_words[INTAKE_VERB_COUNT] = {
    [INTAKE_COMPLETE] = "complete", [INTAKE_FAIL] = "fail",   [INTAKE_CHECKPOINT] = "checkpoint",
    [INTAKE_CANCEL] = "cancel",     [INTAKE_RETRY] = "retry", [INTAKE_DELETE] = "delete"};

ENUM_WORDS(intake_verb, verb_words);
FIELD_WORDS(intake_verb, intake_verb, INTAKE_CHECKPOINT);

#define REPORT(column, member, ...) FIELD_ROW(intake_report, column, report.member, __VA_ARGS__)
static const struct field report_columns[] = {
    FIELD_ROW(intake_report, seq, seq, INT, 0),
    REPORT(id, task_id, UUID, 0),
    REPORT(lease_token, lease_token, INT, 0),
    FIELD_ROW(intake_report, op, verb, WORD, 0, .words = &intake_verb_words),
    REPORT(progress, progress, INT, 0),
    REPORT(name, name, TEXT, 0),
    REPORT(data, data, TEXT, FIELD_LONG),
    REPORT(result, result, TEXT, FIELD_LONG),
    REPORT(error, error, TEXT, 0),
    REPORT(details, details, TEXT, 0),
    REPORT(retryable, retryable, BOOL, 0),
    FIELD_ROW(intake_report, asked_by, asked_by, TEXT, 0)};
const struct field_table intake_report_table =
    FIELD_TABLE(intake_report, "intake_report", "r", report_columns);

/* The object of a request that says the same. */
static int write_object(const struct intake_row *row, struct arena *arena, struct str *object,
                        struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(ROW_BYTES_MAX);
    struct str options = row->options;

    if (json_check(row->options, &options, err) < 0)
        return -(int)err->code;
    if (json_kind(options) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the options must be a JSON object");
    buf_byte(&text, '{');
    json_write_member_string(&text, "type", row->type);
    if (row->payload.data) {
        TRY(json_check(row->payload, NULL, err));
        buf_text(&text, ",\"payload\":");
        buf_str(&text, row->payload);
    }
    if (json_count(options) > 0)
        buf_byte(&text, ',');
    buf_append(&text, options.data + 1, options.len - 1);
    if (text.failed)
        return err_set(err, ERR_TOO_LARGE, "the options are larger than 8 MiB");
    *object = arena_str(arena, buf_view(&text));
    return object->data ? 0 : err_no_memory(err);
}

int intake_parse(const struct intake_row *row, const struct settings *settings,
                 struct arena *arena, struct task_input *input, struct err *err)
{
    struct str object;

    TRY(write_object(row, arena, &object, err));
    TRY(json_check_ours(object, &object, err));
    TRY(spec_parse(object, settings, arena, input, err));
    input->spec.namespace_name = row->namespace_name;
    input->given_key = row->key;
    input->given_id = row->id;
    input->given_at_us = row->created_at_us;
    return 0;
}

void intake_keep(const struct intake_row *row, struct task_input *input)
{
    spec_init(input);
    input->spec.namespace_name = row->namespace_name;
    input->spec.type = row->type;
    if (row->payload.data && json_check(row->payload, NULL, NULL) == 0)
        input->spec.payload = row->payload; /* PostgreSQL takes what no client understands */
    input->given_key = row->key;
    input->given_id = row->id;
    input->given_at_us = row->created_at_us;
}

struct str intake_option(const struct intake_row *row, const char *name, struct arena *arena)
{
    struct str options, value;

    if (json_check(row->options, &options, NULL) < 0 || json_kind(options) != JSON_OBJECT)
        return STR_NONE;
    value = json_get(options, str_of(name));
    return value.data && json_kind(value) == JSON_STRING ? json_string(value, arena) : STR_NONE;
}
