/* What came of a call, as a report: the result, or the error with its context. Words of the service
 * are shown only where they cannot hold a secret of ours. The loop's thread. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"
#include "worker/services/service_int.h"

#define CLOCK_SLACK_US (20 * CLOCK_MS_US) /* libcurl has a clock of its own */
#define WORDS_BYTES_MAX 300 /* of the service's own reason */

/* ---- errors ---- */

static long status_of(const struct service_call *call)
{
    long status = 0;

    if (call->stream)
        return grpc_status_of(call);
    if (call->easy)
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The members of error_details beside message, reason and correlation_id. */
static struct str details(struct service_call *call, const char *code)
{
    BUF_AUTO struct buf out = BUF_INIT(8192);
    long status = status_of(call);
    struct str service, method;

    service = call->line ? call->line->rule->name : STR_NONE;
    if (!service.data && !service_type_parse(call->run->work.type, &service, &method))
        service = STR_NONE;
    buf_format(&out, "{\"code\":\"%s\"", code);
    buf_byte(&out, ',');
    json_write_member_string(&out, "service", service);
    buf_byte(&out, ',');
    json_write_member_string(&out, "method", call->method);
    if (call->stream ? status >= 0 : status != 0)
        buf_format(&out, ",\"status\":%ld", status);
    else
        buf_text(&out, ",\"status\":null");
    buf_format(&out, ",\"attempt\":%lld,\"duration_ms\":%lld}", (long long)call->run->work.attempt,
               (long long)(call->began_us ? (clock_boot_us() - call->began_us) / CLOCK_MS_US : 0));
    return out.failed ? STR_NONE : arena_str(&call->arena, buf_view(&out));
}

void answer_failed(struct service_call *call, const char *code, bool retryable,
                   struct str message)
{
    call->report = worker_report(REPORT_FAIL);
    call->report.error = arena_str(&call->arena, str_cut(message, BOUND_ERROR_BYTES));
    call->report.retryable = retryable;
    call->report.details = details(call, code);
}

/* A service may send back what it got. */
bool answer_holds_secret(const struct service_call *call, struct str text)
{
    const struct service_rule *rule = call->line->rule;

    for (uint32_t i = 0; i < rule->headers_count; i++) {
        const struct service_header *header = &rule->headers[i];

        if ((header->env.data || header->file.data) && header->value.len &&
            memmem(text.data, text.len, header->value.data, header->value.len))
            return true;
    }
    return false;
}

/* Its own reason: the text that common kinds of error bodies have it in. */
static struct str reason_of(struct service_call *call)
{
    static const char *const members[] = {"message", "detail", "error", "title"};
    struct str body;

    if (json_check(buf_view(&call->body), &body, NULL) < 0 || json_kind(body) != JSON_OBJECT)
        return STR_NONE;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(body, str_of(members[i]));
        struct str text = value.data && json_kind(value) == JSON_STRING
                              ? json_string(value, &call->arena) : STR_NONE;

        if (!str_empty(text))
            return answer_holds_secret(call, text) ? STR_NONE : str_cut(text, WORDS_BYTES_MAX);
    }
    return STR_NONE;
}

static struct str status_message(struct service_call *call, const struct service_verdict *verdict)
{
    const struct service_rule *rule = call->line->rule;
    struct str reason = reason_of(call);
    bool redirects = strcmp(verdict->code, "redirect_refused") == 0;

    return arena_format(&call->arena, "service " STR_FMT " answered with status %ld%s%s" STR_FMT,
                        STR_ARG(rule->name), status_of(call),
                        redirects ? "; redirects are not followed" : "",
                        reason.data ? ": " : "", STR_ARG(reason));
}

/* ---- results ---- */

static bool is_json_type(const char *type)
{
    size_t len = type ? strcspn(type, "; ") : 0;

    return !type || (len == 16 && strncasecmp(type, "application/json", 16) == 0) ||
           (len > 5 && strncasecmp(type + len - 5, "+json", 5) == 0);
}

/* What is no JSON, wrapped: text as it is, other bytes in base64. */
static struct str wrapped(struct service_call *call, struct str body, const char *type)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_RESULT_BYTES);

    buf_byte(&out, '{');
    if (str_is_utf8(body)) {
        json_write_member_string(&out, "body", body);
    } else {
        char *text = arena_alloc(&call->arena, BASE64_CHARS(body.len) + 1);

        if (!text)
            return STR_NONE;
        base64_write((const uint8_t *)body.data, body.len, text);
        json_write_member_string(&out, "body_base64", str_of(text));
    }
    buf_byte(&out, ',');
    json_write_member_string(&out, "content_type", type ? str_of(type) : STR_NONE);
    buf_byte(&out, '}');
    return out.failed ? STR_NONE : arena_str(&call->arena, buf_view(&out));
}

void answer_too_large(struct service_call *call, struct service_verdict *verdict)
{
    *verdict = (struct service_verdict){SERVICE_REFUSED, false, "too_large"};
    answer_failed(call, verdict->code, false,
                  arena_format(&call->arena, "service " STR_FMT " answered with more than %d KiB, "
                               "the most a result may have", STR_ARG(call->line->rule->name),
                               BOUND_RESULT_BYTES / 1024));
}

static void complete(struct service_call *call, struct service_verdict *verdict)
{
    struct str body = buf_view(&call->body), json;
    char *type = NULL;

    curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
    call->report = worker_report(REPORT_COMPLETE);
    if (body.len == 0)
        return;
    if (is_json_type(type) && json_check(body, &json, NULL) == 0)
        call->report.result = arena_str(&call->arena, json);
    else
        call->report.result = wrapped(call, body, type);
    if (!call->report.result.data)
        answer_too_large(call, verdict);
}

/* ---- no answer ---- */

static void timed_out(struct service_call *call, struct service_verdict *verdict)
{
    bool whole = call->limit_ms % 1000 == 0;

    *verdict = (struct service_verdict){SERVICE_RETRY, true, "timeout"};
    answer_failed(call, verdict->code, true,
                  arena_format(&call->arena, "timeout after %lld%s: service " STR_FMT
                               " did not answer in time",
                               (long long)(whole ? call->limit_ms / 1000 : call->limit_ms),
                               whole ? "s" : "ms", STR_ARG(call->line->rule->name)));
    call->report.timed_out = true;
}

static bool is_tls_failure(CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR ||
           code == CURLE_USE_SSL_FAILED || code == CURLE_SSL_CRL_BADFILE;
}

static const char *failure_code(const struct service_call *call, CURLcode code)
{
    if (is_tls_failure(code) || strstr(call->reason, "SSL") || strstr(call->reason, "certificate"))
        return "tls_failed";
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "name_not_found";
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT: /* while it connected */
        return "connection_failed";
    case CURLE_WRITE_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return "invalid_answer";
    default:
        return "connection_lost";
    }
}

static void failed(struct service_call *call, CURLcode code, struct service_verdict *verdict)
{
    const char *why = call->reason[0] ? call->reason : curl_easy_strerror(code);

    *verdict = (struct service_verdict){SERVICE_RETRY, true, failure_code(call, code)};
    answer_failed(call, verdict->code, true,
                  arena_format(&call->arena, "the call of service " STR_FMT " failed: %s",
                               STR_ARG(call->line->rule->name), why));
}

/* ---- the whole ---- */

static void judge_status(struct service_call *call, struct service_verdict *verdict)
{
    curl_off_t seconds = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &seconds);
    *verdict = service_judge((int)status_of(call), seconds > 0, call->is_async);
    switch (verdict->end) {
    case SERVICE_DONE:
    case SERVICE_ACCEPTED:
        complete(call, verdict);
        return;
    case SERVICE_WAIT:
        call->report = worker_report(REPORT_CONTINUE);
        call->report.delay_ms = service_wait_ms(seconds);
        return;
    case SERVICE_RETRY:
    case SERVICE_REFUSED:
        answer_failed(call, verdict->code, verdict->end == SERVICE_RETRY,
                      status_message(call, verdict));
    }
}

/* An answer that is not wanted to its end counts by its status alone. */
void answer_judge(struct service_call *call, CURLcode code, struct service_verdict *verdict)
{
    long status = status_of(call);
    bool cut = code == CURLE_WRITE_ERROR && status >= 300;
    bool late = clock_boot_us() + CLOCK_SLACK_US >= call->deadline_us;

    if (call->too_large)
        answer_too_large(call, verdict);
    else if (code == CURLE_OPERATION_TIMEDOUT && late)
        timed_out(call, verdict);
    else if (call->stream && code == CURLE_OK)
        grpc_judge_answer(call, verdict);
    else if (code == CURLE_OK || cut)
        judge_status(call, verdict);
    else
        failed(call, code, verdict);
}
