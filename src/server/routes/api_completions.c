/* The URL that a service gets with a call, to say later how it ended, and the keys by which it
 * knows who called. The URL is its own credential (core/service/call_keys.h) and counts for one
 * attempt. Loop thread. */
#include "server/routes/api_services.h"

#include "server/body.h"
#include "server/server_int.h"

#include "core/bounds.h"
#include "core/service/call_keys.h"

struct completion {
    struct report_request request;
    struct report report;
    struct report_result result;
};

enum { RESULT, FAIL, PROGRESS, STATE, CHECKPOINT, FIELDS };

/* {"error":…,"details":…,"retryable":…}, or the error alone. */
static int take_fail(struct api_call *call, const struct body_field *field, struct report *report)
{
    struct body_field fields[] = {{.name = "error"}, {.name = "details"}, {.name = "retryable"}};

    report->op = REPORT_FAIL;
    if (json_kind(field->value) == JSON_STRING)
        return body_text(field, BOUND_ERROR_BYTES, call->arena, &report->error, &call->err);
    TRY(body_parse(field->value, fields, 3, &call->err));
    TRY(body_text(&fields[0], BOUND_ERROR_BYTES, call->arena, &report->error, &call->err));
    report->details = fields[1].value;
    return body_bool(&fields[2], &report->retryable, &call->err);
}

static int take_checkpoint(struct api_call *call, const struct body_field *field,
                           struct report *report)
{
    struct body_field fields[] = {{.name = "name"}, {.name = "progress"}, {.name = "data"},
                                  {.name = "description"}};

    report->op = REPORT_CHECKPOINT;
    TRY(body_parse(field->value, fields, 4, &call->err));
    TRY(body_text(&fields[0], BOUND_NAME_BYTES, call->arena, &report->name, &call->err));
    TRY(body_int(&fields[1], 0, 100, &report->progress, &call->err));
    report->data = fields[2].value;
    return body_text(&fields[3], BOUND_ERROR_BYTES, call->arena, &report->description, &call->err);
}

static bool is_there(const struct body_field *field)
{
    return field->value.data || field->is_null;
}

/* One of result, fail, checkpoint; or progress, state, both. */
static int parse(struct api_call *call, struct report *report)
{
    struct body_field fields[FIELDS] = {{.name = "result"}, {.name = "fail"}, {.name = "progress"},
                                        {.name = "state"}, {.name = "checkpoint"}};
    struct str object;
    int said = 0;

    TRY(call_object(call, &object));
    TRY(body_parse(object, fields, FIELDS, &call->err));
    said += is_there(&fields[RESULT]) + is_there(&fields[FAIL]) + is_there(&fields[CHECKPOINT]) +
            (is_there(&fields[PROGRESS]) || is_there(&fields[STATE]));
    if (said != 1)
        return err_set(&call->err, ERR_INVALID, "the body must have one of 'result', 'fail', "
                       "'progress' and 'checkpoint'");
    if (fields[FAIL].value.data)
        return take_fail(call, &fields[FAIL], report);
    if (fields[CHECKPOINT].value.data)
        return take_checkpoint(call, &fields[CHECKPOINT], report);
    if (is_there(&fields[RESULT])) {
        report->op = REPORT_COMPLETE;
        report->result = fields[RESULT].value;
        return 0;
    }
    report->op = is_there(&fields[FAIL]) ? REPORT_FAIL : REPORT_PROGRESS;
    TRY(body_int(&fields[PROGRESS], 0, 100, &report->progress, &call->err));
    return body_text(&fields[STATE], BOUND_NAME_BYTES, call->arena, &report->state, &call->err);
}

static int reported(struct api_call *call)
{
    const struct report_result *result = &((struct completion *)call->ctx)->result;

    if (result->code == ERR_NONE)
        return call_reply_empty(call);
    if (result->code == ERR_STALE_LEASE)
        return err_set(&call->err, ERR_STALE_LEASE, "this attempt is over: the task has ended, was "
                       "cancelled, or is called again with another URL");
    return err_set(&call->err, result->code, "%s", result->message);
}

int api_completion(struct api_call *call)
{
    struct completion *completion = CALL_NEW(call, sizeof *completion);
    struct report_request *request = &completion->request;
    struct report *report = &completion->report;

    *report = (struct report){.progress = -1, .delay_ms = -1, .retryable = true};
    if (!call->server->auth.call_keys ||
        !call_token_read(call->server->auth.call_keys, call->name, &report->task_id,
                         &report->lease_token))
        return err_set(&call->err, ERR_NOT_FOUND, "there is no such URL here");
    TRY(parse(call, report));
    request->is_completion = true;
    request->reports = report;
    request->results = &completion->result;
    request->count = 1;
    engine_prepare_reports(call->server->engine, report, 1, &completion->result, call->arena);
    return call_submit(call, &request->base, REQUEST_REPORT, reported);
}

/* Read again and again by every service: the same for all, and no secret. */
int api_jwks(struct api_call *call)
{
    const struct call_keys *keys = call->server->auth.call_keys;
    struct str text = keys ? call_keys_jwks(keys, call->arena) : STR("{\"keys\":[]}");

    if (!text.data)
        return call_no_memory(call);
    http_reply_header(call->exchange, "Cache-Control", "public, max-age=300");
    buf_str(&call->out, text);
    return call_reply(call, 200);
}
