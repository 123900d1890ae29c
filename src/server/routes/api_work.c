/* The work protocol's hot routes: claim, report, heartbeat. Bodies are sliced where they lie,
 * answers are written straight into the buffer that is sent. A claim long-polls; when its client
 * has left although tasks were granted, they are given back at once. Loop thread. */
#include "server/api.h"
#include "server/parse_report.h"
#include "server/server_int.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"

/* Tasks beyond this are given back for the next claim. */
#define CLAIM_BYTES_ENOUGH ((size_t)64 << 20)

static void *request_new(struct api_call *call, size_t bytes)
{
    call->ctx = arena_alloc(call->arena, bytes);
    if (!call->ctx) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
    }
    return call->ctx;
}

static void reply_claim(struct api_call *call)
{
    buf_text(&call->out, call->out.len ? "]}" : "{\"tasks\":[]}");
    call_reply(call, 200);
}

/* Gives claimed tasks from `first` on back: nobody will run them under this lease. */
static void release(struct api_call *call, uint32_t first)
{
    const struct claim_request *claim = call->ctx;
    uint32_t count = claim->claimed_count - first;
    struct report_request *request = arena_alloc(call->arena, sizeof *request);
    struct report *reports = arena_alloc_array(call->arena, count, sizeof *reports);
    struct report_result *results = arena_alloc_array(call->arena, count, sizeof *results);

    if (!request || !reports || !results) { /* their lease will end by itself */
        reply_claim(call);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct task *task = claim->claimed[first + i].task;

        reports[i] = (struct report){.task_id = task->id,
                                     .lease_token = task->lease.token,
                                     .op = REPORT_RELEASE,
                                     .progress = -1,
                                     .delay_ms = -1};
    }
    request->worker_id = claim->worker_id;
    request->reports = reports;
    request->results = results;
    request->count = count;
    engine_prepare_reports(call->server->engine, reports, count, results, call->arena);
    call_submit(call, &request->base, REQUEST_REPORT, reply_claim);
}

static void claimed(struct api_call *call)
{
    const struct claim_request *request = call->ctx;
    struct buf *out = &call->out;
    uint32_t i;

    if (request->base.err.code != ERR_NONE) {
        call->err = request->base.err;
        call_fail(call);
        return;
    }
    if (http_is_gone(call->exchange) && request->claimed_count > 0) {
        release(call, 0);
        return;
    }
    for (i = 0; i < request->claimed_count && out->len < CLAIM_BYTES_ENOUGH; i++) {
        const struct claimed *claim = &request->claimed[i];
        struct render_extra extra = {.claimed = true, .lease_ms = request->lease_ms,
                                     .traceparent = claim->traceparent,
                                     .checkpoint = claim->checkpoint, .data = claim->data};

        buf_text(out, i ? "," : "{\"tasks\":[");
        render_task(out, claim->task, &extra);
    }
    if (i < request->claimed_count)
        release(call, i);
    else
        reply_claim(call);
}

void api_worker_claim(struct api_call *call)
{
    struct claim_request *request = request_new(call, sizeof *request);

    if (!request)
        return;
    request->worker_id = call->name;
    if (call->server->draining) {
        err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping; try again");
        call_fail(call);
        return;
    }
    if (parse_claim(call->request->body, call->arena, request, &call->err) < 0) {
        call_fail(call);
        return;
    }
    http_release_body(call->exchange);
    call_submit_waiting(call, &request->base, REQUEST_CLAIM, claimed);
}

struct report_call {
    struct report_request request;
    struct report_batch batch;
};

static void write_result(struct buf *out, struct str task_id, const struct report_result *result)
{
    buf_byte(out, '{');
    render_json(out, "task_id", task_id);
    buf_text(out, result->code == ERR_NONE ? ",\"ok\":true" : ",\"ok\":false");
    if (result->code != ERR_NONE) {
        buf_text(out, ",\"error\":{\"code\":\"");
        buf_text(out, err_word(result->code));
        buf_text(out, "\",\"message\":");
        json_write_string(out, str_of(result->message));
        buf_byte(out, '}');
    }
    if (result->cancel)
        buf_text(out, ",\"cancel\":true");
    if (result->pause)
        buf_text(out, ",\"pause\":true");
    buf_byte(out, '}');
}

static void reported(struct api_call *call)
{
    const struct report_call *report = call->ctx;
    const struct report_result *next = report->request.results;

    buf_text(&call->out, "{\"items\":[");
    for (uint32_t i = 0; i < report->batch.items_count; i++) {
        const struct report_item *item = &report->batch.items[i];

        json_comma(&call->out);
        write_result(&call->out, item->task_id, item->bad ? item->bad : next++);
    }
    buf_text(&call->out, "]}");
    call_reply(call, 200);
}

void api_worker_report(struct api_call *call)
{
    struct report_call *report = request_new(call, sizeof *report);
    struct report_request *request;
    int rc;

    if (!report)
        return;
    request = &report->request;
    rc = parse_reports(call->request->body, call->arena, &report->batch, &call->err);
    if (rc == 0) {
        request->results = arena_alloc_array(call->arena, report->batch.count + 1,
                                             sizeof *request->results);
        if (!request->results)
            rc = err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
    }
    if (rc < 0) {
        call_fail(call);
        return;
    }
    request->worker_id = call->name;
    request->reports = report->batch.reports;
    request->count = report->batch.count;
    engine_prepare_reports(call->server->engine, request->reports, request->count, request->results,
                           call->arena);
    call_submit(call, &request->base, REQUEST_REPORT, reported);
}

static void write_ids(struct buf *out, const char *key, const struct uuid *ids, uint32_t count)
{
    char text[UUID_TEXT_BYTES];

    json_write_key(out, key);
    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        uuid_format(&ids[i], text);
        buf_format(out, "%s\"%s\"", i ? "," : "", text);
    }
    buf_byte(out, ']');
}

static void beaten(struct api_call *call)
{
    const struct heartbeat_request *request = call->ctx;
    struct buf *out = &call->out;

    buf_byte(out, '{');
    write_ids(out, "cancel", request->cancel, request->cancel_count);
    write_ids(out, "pause", request->pause, request->pause_count);
    write_ids(out, "lost", request->lost, request->lost_count);
    buf_text(out, ",\"lost_leases\":[");
    for (uint32_t i = 0; i < request->lost_count; i++)
        buf_format(out, "%s%lld", i ? "," : "", (long long)request->lost_tokens[i]);
    buf_text(out, "]}");
    call_reply(call, 200);
}

void api_worker_heartbeat(struct api_call *call)
{
    struct heartbeat_request *request = request_new(call, sizeof *request);

    if (!request)
        return;
    request->worker_id = call->name;
    if (parse_heartbeat(call->request->body, call->arena, request, &call->err) < 0)
        call_fail(call);
    else
        call_submit(call, &request->base, REQUEST_HEARTBEAT, beaten);
}
