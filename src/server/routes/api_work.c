/* The work protocol's hot routes: claim, report, heartbeat. Bodies are sliced where they lie,
 * answers are written straight into the buffer that is sent. A claim long-polls; when its client
 * has left although tasks were granted, they are given back at once. Loop thread. */
#include "server/api.h"
#include "server/parse_report.h"
#include "server/server_int.h"
#include "server/visibility.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/render.h"
#include "core/service/call_keys.h"
#include "core/service/service_url.h"

/* Tasks beyond this are given back for the next claim. */
#define CLAIM_BYTES_ENOUGH ((size_t)64 << 20)

static int reply_claim(struct api_call *call)
{
    TRY(call_check_credential(call));
    buf_text(&call->out, call->out.len ? "]}" : "{\"tasks\":[]}");
    return call_reply(call, 200);
}

/* Gives claimed tasks from `first` on back: they will not run under this lease. */
static int release(struct api_call *call, uint32_t first)
{
    const struct claim_request *claim = call->ctx;
    uint32_t count = claim->claimed_count - first;
    struct report_request *request = arena_alloc(call->arena, sizeof *request);
    struct report *reports = arena_alloc_array(call->arena, count, sizeof *reports);
    struct report_result *results = arena_alloc_array(call->arena, count, sizeof *results);

    if (!request || !reports || !results) /* their lease will end by itself */
        return reply_claim(call);
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
    return call_submit(call, &request->base, REQUEST_REPORT, reply_claim);
}

/* As the worker will find it: the exact type, else the longest prefix; NULL = none. */
static const struct str *service_of(const struct claim_request *request, struct str type)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < request->types_count && i < request->services_count; i++)
        if (settings_type_matches(request->types[i], type) &&
            (best == UINT32_MAX || str_eq(request->types[i], type) ||
             (!str_eq(request->types[best], type) &&
              request->types[i].len > request->types[best].len)))
            best = i;
    return best == UINT32_MAX ? NULL : &request->services[best];
}

/* What the worker sends with the call of a service. */
static void write_proofs(struct api_call *call, const struct task *task,
                         const struct str *service)
{
    const struct call_keys *keys = call->server->auth.call_keys;
    struct call_identity identity = {.namespace_name = task->spec.namespace_name,
                                     .task_id = task->id,
                                     .attempt = task->counts.attempts,
                                     .lease_token = task->lease.token,
                                     .service = *service};
    char token[CALL_TOKEN_CHARS + 1];

    if (!keys || !call_token_write(keys, &task->id, task->lease.token, token))
        return;
    call->out.len--; /* the end of the task */
    render_text(&call->out, "complete_token", str_of(token));
    render_text(&call->out, "identity",
                call_identity_write(keys, &identity, clock_wall_us(), call->arena));
    buf_byte(&call->out, '}');
}

static int claimed(struct api_call *call)
{
    const struct claim_request *request = call->ctx;
    struct buf *out = &call->out;
    const struct str *service;
    uint32_t i;

    call->err = request->base.err;
    if (call->err.code != ERR_NONE)
        return -(int)call->err.code;
    if (call->credential.ended || http_is_gone(call->exchange)) {
        if (request->claimed_count > 0)
            return release(call, 0);
        TRY(call_check_credential(call));
    }
    for (i = 0; i < request->claimed_count && out->len < CLAIM_BYTES_ENOUGH; i++) {
        const struct claimed *claim = &request->claimed[i];
        struct render_extra extra = {.claimed = true, .lease_ms = request->lease_ms,
                                     .traceparent = claim->traceparent,
                                     .checkpoint = claim->checkpoint, .data = claim->data};

        buf_text(out, i ? "," : "{\"tasks\":[");
        render_task(out, claim->task, &extra);
        service = service_of(request, claim->task->spec.type);
        if (service && !out->failed)
            write_proofs(call, claim->task, service);
    }
    return i < request->claimed_count ? release(call, i) : reply_claim(call);
}

/* Who gets a proof can call the service in Perdura's name, who says that it is down keeps others
 * from calling it, and figures lead people astray: that is for credentials that may take its
 * tasks. */
static int check_service(struct api_call *call, struct str service)
{
    struct str tasks = service_type(service, STR("*"), call->arena);

    if (!tasks.data)
        return call_no_memory(call);
    return call_check_names(call, &call->principal->types, "types", &tasks, 1);
}

int api_worker_claim(struct api_call *call)
{
    struct claim_request *request = CALL_NEW(call, sizeof *request);

    request->worker_id = call->name;
    if (call->server->draining)
        return err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping; try again");
    TRY(parse_claim(call->request->body, call->arena, request, &call->err));
    TRY(call_check_names(call, &call->principal->queues, "queues", request->queues,
                         request->queues_count));
    TRY(call_check_names(call, &call->principal->types, "types", request->types,
                         request->types_count));
    for (uint32_t i = 0; i < request->services_count; i++)
        TRY(check_service(call, request->services[i]));
    http_release_body(call->exchange);
    return call_submit_waiting(call, &request->base, REQUEST_CLAIM, claimed);
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

static int reported(struct api_call *call)
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
    return call_reply(call, 200);
}

int api_worker_report(struct api_call *call)
{
    struct report_call *report = CALL_NEW(call, sizeof *report);
    struct report_request *request = &report->request;

    TRY(parse_reports(call->request->body, call->arena, &report->batch, &call->err));
    request->results = arena_alloc_array(call->arena, report->batch.count + 1,
                                         sizeof *request->results);
    if (!request->results)
        return call_no_memory(call);
    request->worker_id = call->name;
    request->reports = report->batch.reports;
    request->count = report->batch.count;
    engine_prepare_reports(call->server->engine, request->reports, request->count, request->results,
                           call->arena);
    return call_submit(call, &request->base, REQUEST_REPORT, reported);
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

static void write_holds(struct buf *out, const struct heartbeat_request *request)
{
    json_write_key(out, "holds");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < request->held_off_count; i++) {
        json_comma(out);
        buf_byte(out, '{');
        render_text(out, "service", request->held_off[i].service);
        render_int(out, "wait_ms", request->held_off[i].wait_ms);
        render_bool(out, "is_down", request->held_off[i].is_down);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

struct heartbeat_call {
    struct heartbeat_request request;
    struct services_told told;
};

static int beaten(struct api_call *call)
{
    const struct heartbeat_call *beat = call->ctx;
    const struct heartbeat_request *request = &beat->request;
    struct buf *out = &call->out;

    services_heard_put(&call->server->shown.heard, call_namespace(call), request->worker_id,
                       &beat->told, call->server->settings->lease_ms * CLOCK_MS_US);

    buf_byte(out, '{');
    write_ids(out, "cancel", request->cancel, request->cancel_count);
    write_ids(out, "pause", request->pause, request->pause_count);
    write_ids(out, "lost", request->lost, request->lost_count);
    buf_text(out, ",\"lost_leases\":[");
    for (uint32_t i = 0; i < request->lost_count; i++)
        buf_format(out, "%s%lld", i ? "," : "", (long long)request->lost_tokens[i]);
    buf_byte(out, ']');
    if (request->held_off_count)
        write_holds(out, request);
    if (request->days_count && request->others)
        agent_days_write(request->others, request->days_count, out);
    buf_byte(out, '}');
    return call_reply(call, 200);
}

int api_worker_heartbeat(struct api_call *call)
{
    struct heartbeat_call *beat = CALL_NEW(call, sizeof *beat);
    struct heartbeat_request *request = &beat->request;

    request->worker_id = call->name;
    TRY(parse_heartbeat(call->request->body, call->arena, request, &beat->told, &call->err));
    for (uint32_t i = 0; i < request->holds_count; i++)
        TRY(check_service(call, request->holds[i].service));
    for (uint32_t i = 0; i < beat->told.count; i++)
        TRY(check_service(call, beat->told.list[i].name));
    for (uint32_t i = 0; i < request->days_count; i++) /* an agent serves the queue of its name */
        TRY(call_check_names(call, &call->principal->queues, "queues", &request->days[i].agent, 1));
    return call_submit(call, &request->base, REQUEST_HEARTBEAT, beaten);
}
