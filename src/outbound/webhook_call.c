/* libcurl's settings for calls to strangers. The body lies behind its time stamp in one buffer,
 * which is first signed and then sent from, so that a large body is copied once. Nothing here
 * blocks; it runs on the thread of webhook.c. */
#include "outbound/webhook_call.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/callback_allow.h"
#include "core/trace.h"
#include "net/http_client_options.h"

#include <limits.h>

#define CONNECT_MS 3000L
#define RESPONSE_BYTES_MAX ((size_t)64 * 1024) /* a head and a short answer; the rest is not read */
#define SLOW_BYTES_PER_S 32L
#define SLOW_S 8L /* below the time of a whole call, so that a trickle ends before it */
#define BODY_BYTES_MAX ((size_t)9 * 1024 * 1024) /* the queue writes at most 8 MiB */

/* Counts and drops. Returning less than was given ends the transfer. */
static size_t drop(char *data, size_t size, size_t count, void *ctx)
{
    struct webhook_call *call = ctx;

    (void)data;
    call->response_bytes += size * count;
    return call->response_bytes > RESPONSE_BYTES_MAX ? 0 : size * count;
}

static void set_options(struct webhook_call *call)
{
    CURL *easy = call->easy;

    http_client_options(easy);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_PER_S);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
}

/* The folder of the system's CAs stays, beside the file. Both are read for every connection. */
static void trust(CURL *easy, struct str ca)
{
    char path[PATH_MAX];

    if (str_empty(ca) || ca.len >= sizeof path)
        return;
    memcpy(path, ca.data, ca.len);
    path[ca.len] = '\0';
    curl_easy_setopt(easy, CURLOPT_CAINFO, path);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
}

int webhook_call_init(struct webhook_call *call, struct str ca, struct err *err)
{
    *call = (struct webhook_call){.easy = curl_easy_init(),
                                  .signed_text = BUF_INIT(BODY_BYTES_MAX)};
    TRY_MEMORY(call->easy);
    set_options(call);
    trust(call->easy, ca);
    return 0;
}

void webhook_call_deinit(struct webhook_call *call)
{
    webhook_call_finish(call);
    if (call->easy)
        curl_easy_cleanup(call->easy);
    call->easy = NULL;
}

static bool add_header(struct webhook_call *call, const char *line)
{
    struct curl_slist *headers = curl_slist_append(call->headers, line);

    if (headers)
        call->headers = headers;
    return headers != NULL;
}

static bool add_pair(struct webhook_call *call, const char *name, struct str value)
{
    char line[32 + TRACE_STATE_BYTES];

    snprintf(line, sizeof line, "%s: " STR_FMT, name, STR_ARG(value));
    return add_header(call, line);
}

/* The body is the task; a context that is part of it goes along as W3C wants it. */
static bool add_trace(struct webhook_call *call, struct str body)
{
    static const char member[] = "\"traceparent\":\"";
    ARENA_AUTO struct arena arena = ARENA_INIT(4096);
    struct trace_context context;
    struct str task, parent, state;
    bool ok = true;

    if (!memmem(body.data, body.len, member, sizeof member - 1) ||
        json_check_ours(body, &task, NULL) < 0 || json_kind(task) != JSON_OBJECT)
        return true;
    parent = json_string(json_get(task, STR("traceparent")), &arena);
    state = json_string(json_get(task, STR("tracestate")), &arena);
    if (trace_parse(parent, &context)) {
        ok = add_pair(call, "traceparent", str_span(parent.data, TRACE_PARENT_BYTES));
        if (ok && trace_state_valid(state))
            ok = add_pair(call, "tracestate", state);
    }
    return ok;
}

static bool make_headers(struct webhook_call *call, struct str secret, int64_t unix_s)
{
    uint8_t hmac[HASH_BYTES];
    char hex[HASH_HEX_BYTES + 1];
    char id[UUID_TEXT_BYTES];
    char event[64];
    char signature[64 + HASH_HEX_BYTES];

    uuid_format(&call->message.id, id);
    snprintf(event, sizeof event, "Perdura-Event-Id: %s", id);
    if (hash_hmac_sha256(secret, buf_view(&call->signed_text), hmac) < 0)
        return false;
    hash_hex(hmac, sizeof hmac, hex);
    snprintf(signature, sizeof signature, "Perdura-Signature: t=%lld,v1=%s", (long long)unix_s,
             hex);
    return add_header(call, "Content-Type: application/json") && add_header(call, event) &&
           add_header(call, signature) &&
           add_header(call, "Expect:"); /* no round trip before a large body */
}

int webhook_call_prepare(struct webhook_call *call, const struct outbox_message *message,
                         struct str secret, int64_t wall_us, int64_t timeout_ms, struct err *err)
{
    int64_t unix_s = wall_us / CLOCK_SECOND_US;
    size_t body_at;

    ASSERT(!call->busy && message->target.len < sizeof call->url);
    call->message = *message;
    memcpy(call->url, message->target.data, message->target.len);
    call->url[message->target.len] = '\0';
    call->message.target = str_span(call->url, message->target.len);
    call->message.kind = call->message.last_error = STR_NONE;
    call->origin = callback_origin(call->message.target);
    call->response_bytes = 0;
    buf_int(&call->signed_text, unix_s);
    buf_byte(&call->signed_text, '.');
    body_at = call->signed_text.len;
    buf_str(&call->signed_text, message->body);
    if (call->signed_text.failed || !make_headers(call, secret, unix_s) ||
        !add_trace(call, message->body)) {
        webhook_call_finish(call);
        return err_no_memory(err);
    }
    call->message.body = str_span(call->signed_text.data + body_at, message->body.len);
    curl_easy_setopt(call->easy, CURLOPT_URL, call->url);
    curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(call->signed_text.len - body_at));
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->signed_text.data + body_at);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    call->busy = true;
    return 0;
}

/* The status alone decides: a receiver that said 2xx has the message, even if the rest of its
 * answer is endless, slow or cut off. */
bool webhook_call_delivered(const struct webhook_call *call, CURLcode result, char *reason)
{
    long status = 0;

    reason[0] = '\0';
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300)
        return true;
    if (status >= 300 && status < 400)
        snprintf(reason, WEBHOOK_REASON_BYTES,
                 "the receiver answered with status %ld; redirects are not followed", status);
    else if (status >= 400)
        snprintf(reason, WEBHOOK_REASON_BYTES, "the receiver answered with status %ld", status);
    else if (result == CURLE_OK)
        snprintf(reason, WEBHOOK_REASON_BYTES, "the receiver gave no answer");
    else
        snprintf(reason, WEBHOOK_REASON_BYTES, "the call failed: %s", curl_easy_strerror(result));
    return false;
}

void webhook_call_finish(struct webhook_call *call)
{
    if (call->easy) {
        curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, NULL);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, NULL);
    }
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    buf_deinit(&call->signed_text); /* bodies may be large, and calls are seldom */
    call->signed_text = BUF_INIT(BODY_BYTES_MAX);
    call->busy = false;
}
