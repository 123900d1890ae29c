/* Two buffers: callers fill one while the other is being sent. A receiver that does not answer is
 * retried a few times while the first buffer fills; then the buffer being sent is dropped. Spans
 * are written as JSON when they are added, so that nothing of a batch must be kept. */
#include "outbound/span_export.h"

#include "base/clock.h"
#include "base/thread.h"
#include "outbound/span_headers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define GATHERED_BYTES_MAX ((size_t)4 * 1024 * 1024) /* receivers take this much in one request */
#define GATHERED_MAX 8192
#define SEND_AT 512               /* so many are worth a request at once; fewer wait a second */
#define GATHER_MS 1000
#define SEND_MS 10000
#define LAST_SEND_MS 2000         /* shutting down does not wait long for a receiver */
#define STOP_MS 3000              /* nor for one that has held a request since before */
#define TRIES_MAX 4               /* after 1, 2 and 4 s */
#define ANSWER_BYTES_MAX ((size_t)64 * 1024)

struct span_export {
    struct http_client *client;
    const struct log *log;
    const char *node;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed;
    struct buf gathered;
    uint32_t gathered_count;
    struct span_export_counts counts;
    bool stop;
    bool ended;            /* the thread does nothing any more */
    bool failing;          /* the exporter's thread only: the last request failed */
};

/* ---- adding ---- */

static void begin(struct span_export *export)
{
    buf_reset(&export->gathered);
    export->gathered_count = 0;
    span_write_head(&export->gathered, str_of(export->node));
}

/* True when it fits, with room for what ends the request. */
static bool put(struct span_export *export, const struct span *span)
{
    struct buf *out = &export->gathered;
    size_t before = out->len;

    if (export->gathered_count >= GATHERED_MAX || out->failed)
        return false;
    if (export->gathered_count)
        buf_byte(out, ',');
    span_write(out, span);
    if (!out->failed && out->len + 16 < out->max_bytes) {
        export->gathered_count++;
        return true;
    }
    buf_reset(out); /* the memory is kept, and so is what was in it */
    out->len = before;
    return false;
}

void span_export_add(struct span_export *export, const struct span *spans, uint32_t count)
{
    LOCKED(&export->mutex);

    for (uint32_t i = 0; i < count; i++)
        export->counts.dropped += !put(export, &spans[i]);
    if (export->gathered_count >= SEND_AT)
        pthread_cond_signal(&export->changed);
}

void span_export_counts(struct span_export *export, struct span_export_counts *counts)
{
    LOCKED(&export->mutex);

    *counts = export->counts;
}

/* ---- sending ---- */

static void wait_ms(struct span_export *export, int64_t ms)
{
    struct timespec until = thread_deadline(ms * CLOCK_MS_US);

    pthread_cond_timedwait(&export->changed, &export->mutex, &until);
}

/* One request. Only the status counts: what receivers say is not for our log. */
static bool send_once(struct span_export *export, struct str body, int64_t timeout_ms,
                      bool *worth_retrying)
{
    struct buf answer = BUF_INIT(ANSWER_BYTES_MAX);
    struct err err = {0};
    int status = 0;
    int rc = http_client_call(export->client, "POST", "/v1/traces", body, timeout_ms, &answer,
                              &status, &err);
    bool taken = rc == 0 && status >= 200 && status < 300;

    *worth_retrying = rc < 0 || status == 429 || status >= 500;
    buf_deinit(&answer);
    if (!taken && !export->failing)
        LOG(export->log, LOG_WARN, "tracing.export_failed", KI("status", status),
            KC("reason", rc < 0 ? err.text : ""));
    if (taken && export->failing)
        LOG(export->log, LOG_INFO, "tracing.export_goes_on");
    export->failing = !taken;
    return taken;
}

/* Called and left with the mutex, which is not held meanwhile. */
static void send_all(struct span_export *export, struct buf *body, uint32_t count)
{
    bool taken = false;
    bool again = true;

    for (int tries = 1; again && !taken && tries <= TRIES_MAX; tries++) {
        bool last = export->stop;

        pthread_mutex_unlock(&export->mutex);
        taken = send_once(export, buf_view(body), last ? LAST_SEND_MS : SEND_MS, &again);
        pthread_mutex_lock(&export->mutex);
        export->counts.failed += !taken;
        again = again && !last && tries < TRIES_MAX;
        if (!taken && again)
            for (int64_t end_us = clock_boot_us() + (CLOCK_SECOND_US << (tries - 1));
                 !export->stop && clock_boot_us() < end_us;)
                wait_ms(export, (end_us - clock_boot_us()) / CLOCK_MS_US + 1);
    }
    if (taken)
        export->counts.exported += count;
    else
        export->counts.dropped += count;
}

static void *run(void *ctx)
{
    struct span_export *export = ctx;
    BUF_AUTO struct buf body = BUF_INIT(GATHERED_BYTES_MAX);

    pthread_mutex_lock(&export->mutex);
    while (!export->stop || export->gathered_count) {
        struct buf filled;
        uint32_t count;

        if (!export->stop && export->gathered_count < SEND_AT)
            wait_ms(export, GATHER_MS);
        count = export->gathered_count;
        if (count == 0)
            continue;
        filled = export->gathered;
        export->gathered = body;
        begin(export);
        span_write_tail(&filled);
        send_all(export, &filled, count);
        body = filled;
    }
    export->ended = true;
    pthread_cond_signal(&export->changed);
    pthread_mutex_unlock(&export->mutex);
    return NULL;
}

/* ---- beginning and end ---- */

static void destroy(struct span_export *export)
{
    http_client_free(export->client);
    buf_deinit(&export->gathered);
    pthread_cond_destroy(&export->changed);
    pthread_mutex_destroy(&export->mutex);
    free(export);
}

static struct str base_of(struct str url)
{
    static const struct str path = {"/v1/traces", sizeof "/v1/traces" - 1};

    while (url.len && url.data[url.len - 1] == '/')
        url.len--;
    if (url.len > path.len && str_eq(str_span(url.data + url.len - path.len, path.len), path))
        url.len -= path.len;
    return url;
}

struct span_export *span_export_start(const struct settings *settings, const char *node,
                                      const struct log *log, struct err *err)
{
    struct span_export *export = err_calloc(sizeof *export, err);

    if (!export)
        return NULL;
    export->log = log;
    export->node = node;
    export->gathered = BUF_INIT(GATHERED_BYTES_MAX);
    pthread_mutex_init(&export->mutex, NULL);
    thread_cond_init(&export->changed);
    begin(export);
    export->client = http_client_new(base_of(settings->tracing.otlp), STR_NONE, err);
    if (export->client && span_headers_add(settings, export->client, err) == 0) {
        if (thread_start(&export->thread, 0, run, export) == 0)
            return export;
        err_set(err, ERR_MEMORY, "no thread could be started to export spans");
    }
    destroy(export);
    return NULL;
}

/* A receiver that took a request and never answers is left. */
void span_export_stop(struct span_export *export)
{
    int64_t until_us = clock_boot_us() + STOP_MS * CLOCK_MS_US;
    bool ended;

    if (!export)
        return;
    pthread_mutex_lock(&export->mutex);
    export->stop = true;
    pthread_cond_signal(&export->changed);
    while (!export->ended && clock_boot_us() < until_us)
        wait_ms(export, (until_us - clock_boot_us()) / CLOCK_MS_US + 1);
    ended = export->ended;
    pthread_mutex_unlock(&export->mutex);
    if (!ended)
        http_client_interrupt(export->client);
    pthread_join(export->thread, NULL);
    destroy(export);
}
