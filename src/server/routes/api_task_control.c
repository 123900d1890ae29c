/* What users do to a task: cancel, retry, pause, resume, prioritize, recover, update, delete. The
 * engine decides whether it is allowed; the answer is the task as a reader sees it after the
 * commit. Loop thread. */
#include "server/body.h"
#include "server/routes/api_tasks.h"

#include "core/bounds.h"
#include "core/task/task_fields.h"

/* If-Match: "7" compares, * takes any version, anything else can match no version. */
static int parse_if_match(struct api_call *call, struct control_request *request)
{
    struct str text = http_header(call->request, "If-Match");

    if (!text.data || str_is(text, "*"))
        return 0;
    request->if_match = true;
    if (text.len > 2 && text.data[0] == '"' && text.data[text.len - 1] == '"' &&
        str_to_int64(str_span(text.data + 1, text.len - 2), &request->if_version) &&
        request->if_version >= 0)
        return 0;
    return err_set(&call->err, ERR_PRECONDITION,
                   "If-Match must be the ETag of the task, such as \"3\"");
}

static int parse_if_version(struct api_call *call, const struct body_field *field,
                            struct control_request *request)
{
    if (field->value.data && request->if_match)
        return err_set_field(&call->err, ERR_INVALID, "if_version",
                             "give 'if_version' or If-Match, not both");
    return body_int(field, 0, INT64_MAX, &request->if_version, &call->err);
}

/* The detail of the event is JSON. */
static int parse_reason(const struct body_field *field, struct arena *arena, struct str *reason,
                        struct err *err)
{
    struct str text = STR_NONE;
    int rc = body_text(field, BOUND_ERROR_BYTES, arena, &text, err);

    if (rc < 0 || !text.data)
        return rc;
    *reason = arena_format(arena, "{\"reason\":" STR_FMT "}", STR_ARG(field->value));
    return reason->data ? 0 : err_no_memory(err);
}

/* null and "" take a text away. */
static int parse_change(struct api_call *call, struct control_request *request)
{
    struct body_field fields[TASK_EDITS_MAX + 1] = {{.name = NULL}};
    struct str object;
    size_t count = 0;

    TRY(call_object(call, &object));
    for (; task_edits[count].name; count++)
        fields[count].name = task_edits[count].name;
    fields[count].name = "if_version";
    TRY(body_parse(object, fields, count + 1, &call->err));
    TRY(parse_if_version(call, &fields[count], request));
    for (size_t i = 0; i < count; i++) {
        struct str text = STR_NONE;

        if (!fields[i].value.data && !fields[i].is_null)
            continue;
        TRY(body_text(&fields[i], SIZE_MAX, call->arena, &text, &call->err));
        TRY(change_add(&request->change, i, text, &call->err));
    }
    return 0;
}

static int check_amount(struct str budget, const char *name, bool whole, struct err *err)
{
    struct str value = json_get(budget, str_of(name));
    int64_t count;
    double number;

    if (!value.data || (whole ? json_int64(value, &count) && count > 0
                              : json_double(value, &number) && number > 0 && number <= 1e6))
        return 0;
    return err_set_field(err, ERR_INVALID, "budget", "'%s' of 'budget' must be a %snumber above 0",
                         name, whole ? "whole " : "");
}

static int check_budget(struct str budget, struct arena *arena, struct err *err)
{
    static const char *const names[] = {"calls", "tokens", "cost", "time"};
    struct json_member member;
    struct json_iter iter;
    struct str time;
    int64_t ms;

    if (json_kind(budget) != JSON_OBJECT || json_count(budget) == 0)
        return err_set_field(err, ERR_INVALID, "budget", "'budget' must be an object with calls, "
                             "tokens, cost or time");
    json_begin(budget, &iter);
    while (json_next_member(&iter, &member)) {
        bool known = false;

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            known |= json_key_is(member.key, str_of(names[i]));
        if (!known)
            return err_set_field(err, ERR_INVALID, "budget", "'budget' may have calls, tokens, "
                                 "cost and time only");
    }
    TRY(check_amount(budget, "calls", true, err));
    TRY(check_amount(budget, "tokens", true, err));
    TRY(check_amount(budget, "cost", false, err));
    time = json_get(budget, STR("time"));
    if (!time.data || (json_kind(time) == JSON_STRING &&
                       str_to_duration_ms(json_string(time, arena), &ms) && ms > 0))
        return 0;
    return err_set_field(err, ERR_INVALID, "budget", "'time' of 'budget' must be a duration, such "
                         "as \"10m\"");
}

/* The answer to what an agent asked: {"decision":…,"budget":…}. */
static int parse_answer(struct api_call *call, const struct body_field *decision,
                        const struct body_field *budget, struct control_request *request)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_METADATA_BYTES);
    struct str word = STR_NONE;

    TRY(body_text(decision, BOUND_NAME_BYTES, call->arena, &word, &call->err));
    if (word.data && !str_is(word, "retry") && !str_is(word, "skip") && !str_is(word, "fail"))
        return err_set_field(&call->err, ERR_INVALID, "decision",
                             "'decision' must be retry, skip or fail");
    if (budget->value.data)
        TRY(check_budget(budget->value, call->arena, &call->err));
    if (!word.data && !budget->value.data)
        return 0;
    buf_byte(&out, '{');
    if (word.data)
        json_write_member_string(&out, "decision", word);
    if (budget->value.data) {
        buf_text(&out, word.data ? ",\"budget\":" : "\"budget\":");
        buf_str(&out, budget->value);
    }
    buf_byte(&out, '}');
    if (out.failed)
        return err_set_field(&call->err, ERR_TOO_LARGE, "budget", "'budget' is too large");
    request->answer = arena_str(call->arena, buf_view(&out));
    return request->answer.data ? 0 : err_no_memory(&call->err);
}

static int parse_body(struct api_call *call, struct control_request *request)
{
    enum { IF_VERSION, REASON, EXTRA, FURTHER };
    struct body_field fields[] = {{.name = "if_version"}, {.name = "reason"}, {.name = NULL},
                                  {.name = NULL}};
    size_t count = EXTRA;
    struct str object;

    TRY(call_object(call, &object));
    if (request->op == CONTROL_PRIORITIZE)
        fields[count++].name = "priority";
    else if (request->op == CONTROL_RECOVER)
        fields[count++].name = "method";
    else if (request->op == CONTROL_RETRY)
        fields[count++].name = "ignore_dependencies";
    if (request->op == CONTROL_RESUME) {
        fields[count++].name = "decision";
        fields[count++].name = "budget";
    }
    TRY(body_parse(object, fields, count, &call->err));
    TRY(parse_if_version(call, &fields[IF_VERSION], request));
    TRY(parse_reason(&fields[REASON], call->arena, &request->reason, &call->err));
    if (request->op == CONTROL_PRIORITIZE)
        TRY(spec_read_priority(fields[EXTRA].value.data ? fields[EXTRA].value : STR("null"),
                               "priority", call->arena, &request->priority, &call->err));
    if (request->op == CONTROL_RECOVER)
        TRY(api_parse_method(&fields[EXTRA], call->arena, &request->method, &call->err));
    if (request->op == CONTROL_RESUME)
        TRY(parse_answer(call, &fields[EXTRA], &fields[FURTHER], request));
    if (request->op == CONTROL_RETRY)
        TRY(body_bool(&fields[EXTRA], &request->ignore_dependencies, &call->err));
    return 0;
}

static int controlled(struct api_call *call)
{
    return call_read(call, api_read_task);
}

int api_task_control(struct api_call *call)
{
    struct control_request *request = CALL_NEW(call, sizeof *request);

    request->op = (enum control_op)call->route->what;
    request->actor = ACTOR_USER;
    request->if_version = -1;
    TRY(call_task_id(call));
    TRY(parse_if_match(call, request));
    TRY(request->op == CONTROL_UPDATE ? parse_change(call, request) : parse_body(call, request));
    request->task_id = call->task_id;
    return call_submit(call, &request->base, REQUEST_CONTROL,
                       request->op == CONTROL_DELETE ? call_reply_empty : controlled);
}
