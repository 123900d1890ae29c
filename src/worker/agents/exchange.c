/* Requests of agents. The slot's thread, or one of a tool. */
#include "worker/agents/exchange.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/services/service_int.h"
#include "worker/worker_int.h"

#define LOOK_MS 200 /* at most this long between looks at a stalled stream */
#define BUFFER_BYTES 16384L
#define CLOCK_SLACK_US (20 * CLOCK_MS_US) /* libcurl has a clock of its own */

static bool is_stopped(const struct exchange *exchange)
{
    return exchange->stop && atomic_load(exchange->stop) >= exchange->stop_at;
}

static void note_head(struct exchange *exchange, CURL *easy)
{
    curl_off_t seconds = 0;
    char *type = NULL;
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    exchange->status = (int)status;
    exchange->retry_after_s = seconds > 0 ? seconds : 0;
    exchange->is_stream = exchange->take && status >= 200 && status <= 299 && type &&
                          strncasecmp(type, "text/event-stream", 17) == 0;
}

struct receiver {
    struct exchange *exchange;
    CURL *easy;
};

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct receiver *receiver = ctx;
    struct exchange *exchange = receiver->exchange;
    size_t bytes = size * count, room;

    if (!exchange->status)
        note_head(exchange, receiver->easy);
    exchange->last_us = clock_boot_us();
    exchange->answer_bytes += bytes;
    if (exchange->is_stream) {
        exchange->refused = !exchange->take(exchange->ctx, str_span(data, bytes));
        return exchange->refused ? 0 : bytes;
    }
    room = exchange->answer.max_bytes - exchange->answer.len;
    buf_append(&exchange->answer, data, bytes < room ? bytes : room);
    if (bytes <= room && !exchange->answer.failed)
        return bytes;
    exchange->end = EXCHANGE_TOO_LARGE;
    return 0;
}

static bool add_line(struct service_call *call, const char *name, struct str value)
{
    struct curl_slist *headers;
    char line[512];

    if (!value.data)
        return true;
    snprintf(line, sizeof line, "%s: " STR_FMT, name, STR_ARG(value));
    headers = curl_slist_append(call->headers, line);
    if (headers)
        call->headers = headers;
    return headers != NULL;
}

/* Without a task's own request, what services get of one is put in here. */
static int add_own(struct exchange *exchange, struct service_call *call, struct err *err)
{
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body.len);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, exchange->body.data);
    TRY_MEMORY(add_line(call, "Idempotency-Key", exchange->key) &&
               add_line(call, "traceparent", exchange->traceparent));
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return 0;
}

static void drain(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof count) < 0)
        return; /* it was read already */
}

static CURLcode drive(struct exchange *exchange, CURL *easy)
{
    struct curl_waitfd wake = {.fd = exchange->wake_fd, .events = CURL_WAIT_POLLIN};
    unsigned wakes = exchange->wake_fd >= 0 ? 1 : 0;
    int running = 1, left;
    CURLMsg *message;

    while (running) {
        if (curl_multi_perform(exchange->multi, &running) != CURLM_OK)
            return CURLE_OUT_OF_MEMORY;
        if (running && is_stopped(exchange))
            exchange->end = EXCHANGE_STOPPED;
        else if (running && exchange->is_stream && exchange->stall_ms > 0 &&
                 clock_boot_us() - exchange->last_us > exchange->stall_ms * CLOCK_MS_US)
            exchange->end = EXCHANGE_STALLED;
        if (exchange->end == EXCHANGE_STOPPED || exchange->end == EXCHANGE_STALLED)
            return CURLE_ABORTED_BY_CALLBACK;
        if (!running)
            break;
        wake.revents = 0;
        curl_multi_poll(exchange->multi, &wake, wakes, LOOK_MS, NULL);
        if (wake.revents)
            drain(exchange->wake_fd);
    }
    message = curl_multi_info_read(exchange->multi, &left);
    return message && message->easy_handle == easy ? message->data.result : CURLE_GOT_NOTHING;
}

static void judge(struct exchange *exchange, const struct service_call *call, CURLcode code)
{
    if (exchange->end != EXCHANGE_DONE || exchange->refused) /* decided on the way */
        return;
    if (code == CURLE_OPERATION_TIMEDOUT &&
        clock_boot_us() >= exchange->deadline_us - CLOCK_SLACK_US)
        exchange->end = EXCHANGE_TIMEOUT;
    else if (code != CURLE_OK)
        exchange->end = EXCHANGE_FAILED;
    if (code != CURLE_OK)
        snprintf(exchange->reason, sizeof exchange->reason, "%s",
                 call->reason[0] ? call->reason : curl_easy_strerror(code));
}

static struct run *new_run(struct exchange *exchange, struct arena *arena)
{
    struct run *run = exchange->work ? arena_alloc(arena, sizeof *run) : NULL;

    if (!run)
        return NULL;
    run->work = *exchange->work;
    run->work.payload = exchange->body;
    return run;
}

void exchange_run(struct exchange *exchange)
{
    struct service_line line = {.rule = exchange->rule};
    struct service_call call = {.line = &line, .arena = ARENA_INIT(0), .phase = CALL_RUNS,
                                .deadline_us = exchange->deadline_us, .key = exchange->key};
    struct receiver receiver = {exchange, NULL};
    CURLcode code = CURLE_OK;
    struct err err = {0};

    exchange->end = EXCHANGE_DONE;
    exchange->last_us = clock_boot_us();
    call.run = new_run(exchange, &call.arena);
    if (exchange->work && !call.run)
        err_no_memory(&err);
    else if (call_prepare(&call, exchange->method, &err) == 0 && !call.run)
        add_own(exchange, &call, &err);
    if (err.code == ERR_NONE) {
        receiver.easy = call.easy;
        curl_easy_setopt(call.easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(call.easy, CURLOPT_WRITEDATA, &receiver);
        curl_easy_setopt(call.easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
        if (curl_multi_add_handle(exchange->multi, call.easy) != CURLM_OK)
            err_no_memory(&err);
    }
    if (err.code == ERR_NONE) {
        code = drive(exchange, call.easy);
        note_head(exchange, call.easy);
        judge(exchange, &call, code);
        curl_multi_remove_handle(exchange->multi, call.easy);
    } else {
        exchange->end = EXCHANGE_INVALID;
        snprintf(exchange->reason, sizeof exchange->reason, "%.200s", err.text);
    }
    call_clear(&call);
    arena_deinit(&call.arena);
}
