/* What users do to a task: cancel, retry, pause, resume, prioritize, recover, delete. Whether it is
 * allowed is decided by the queue; the answer is the task as a reader sees it after the commit.
 * Loop thread. */
#include "server/api.h"
#include "server/body.h"
#include "server/server_int.h"

#include "core/bounds.h"

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

static int parse_method(const struct body_field *field, struct arena *arena,
                        enum recovery_method *method, struct err *err)
{
    struct str word = STR("resume_checkpoint");

    TRY(body_text(field, BOUND_NAME_BYTES, arena, &word, err));
    if (recovery_method_parse(word, method))
        return 0;
    return err_set_field(err, ERR_INVALID, "method", "'method' must be resume_checkpoint, "
                         "restart_clean or validate_only");
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
    return reason->data ? 0 : err_set(err, ERR_MEMORY, "there is not enough memory; try again");
}

static int parse_body(struct api_call *call, struct control_request *request)
{
    enum { IF_VERSION, REASON, EXTRA };
    struct body_field fields[] = {{.name = "if_version"}, {.name = "reason"}, {.name = NULL}};
    size_t count = EXTRA;
    struct str object;
    int rc = call_object(call, &object);

    if (request->op == CONTROL_PRIORITIZE)
        fields[count++].name = "priority";
    else if (request->op == CONTROL_RECOVER)
        fields[count++].name = "method";
    else if (request->op == CONTROL_RETRY)
        fields[count++].name = "ignore_dependencies";
    if (rc == 0)
        rc = body_parse(object, fields, count, &call->err);
    if (rc == 0 && fields[IF_VERSION].value.data && request->if_match)
        rc = err_set_field(&call->err, ERR_INVALID, "if_version",
                           "give 'if_version' or If-Match, not both");
    if (rc == 0)
        rc = body_int(&fields[IF_VERSION], 0, INT64_MAX, &request->if_version, &call->err);
    if (rc == 0)
        rc = parse_reason(&fields[REASON], call->arena, &request->reason, &call->err);
    if (rc == 0 && request->op == CONTROL_PRIORITIZE)
        rc = spec_read_priority(fields[EXTRA].value.data ? fields[EXTRA].value : STR("null"),
                                "priority", call->arena, &request->priority, &call->err);
    if (rc == 0 && request->op == CONTROL_RECOVER)
        rc = parse_method(&fields[EXTRA], call->arena, &request->method, &call->err);
    if (rc == 0 && request->op == CONTROL_RETRY)
        rc = body_bool(&fields[EXTRA], &request->ignore_dependencies, &call->err);
    return rc;
}

static void controlled(struct api_call *call)
{
    call_read(call, api_read_task);
}

static void control(struct api_call *call, enum control_op op, void (*then)(struct api_call *call))
{
    struct control_request *request = arena_alloc(call->arena, sizeof *request);
    int rc;

    if (!request) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
        return;
    }
    request->op = op;
    request->actor = ACTOR_USER;
    request->if_version = -1;
    rc = call_task_id(call);
    if (rc == 0)
        rc = parse_if_match(call, request);
    if (rc == 0)
        rc = parse_body(call, request);
    if (rc < 0) {
        call_fail(call);
        return;
    }
    request->task_id = call->task_id;
    call->ctx = request;
    call_submit(call, &request->base, REQUEST_CONTROL, then);
}

void api_task_delete(struct api_call *call)
{
    control(call, CONTROL_DELETE, call_reply_empty);
}

void api_task_cancel(struct api_call *call)
{
    control(call, CONTROL_CANCEL, controlled);
}

void api_task_retry(struct api_call *call)
{
    control(call, CONTROL_RETRY, controlled);
}

void api_task_pause(struct api_call *call)
{
    control(call, CONTROL_PAUSE, controlled);
}

void api_task_resume(struct api_call *call)
{
    control(call, CONTROL_RESUME, controlled);
}

void api_task_prioritize(struct api_call *call)
{
    control(call, CONTROL_PRIORITIZE, controlled);
}

void api_task_recover(struct api_call *call)
{
    control(call, CONTROL_RECOVER, controlled);
}
