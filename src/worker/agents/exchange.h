/* One HTTP request of an agent and its answer, with the machinery of services: its limits, its TLS,
 * its URLs. Blocks the calling thread, and can be stopped. */
#ifndef WORKER_AGENTS_EXCHANGE_H
#define WORKER_AGENTS_EXCHANGE_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "core/settings.h"
#include "worker/sources/source.h"

enum exchange_end {
    EXCHANGE_DONE,
    EXCHANGE_STOPPED,
    EXCHANGE_TIMEOUT,
    EXCHANGE_STALLED,   /* a stream without a byte for too long */
    EXCHANGE_TOO_LARGE, /* the front of the body is there */
    EXCHANGE_INVALID,   /* nothing was sent: reason says why */
    EXCHANGE_FAILED
};

struct exchange {
    const struct service_rule *rule;
    struct str method;       /* "POST /chat/completions" */
    struct str body;         /* JSON */
    const struct work *work; /* whose id and values are sent; NULL = nothing of a task */
    struct str key;          /* Idempotency-Key; absent = none */
    struct str traceparent;  /* where there is no work */
    int64_t deadline_us;
    int64_t stall_ms;        /* 0 = none */
    int wake_fd;
    const atomic_int *stop;  /* it stops when this is at least ... */
    int stop_at;             /* ... so much */
    CURLM *multi;            /* keeps connections */
    /* Takes the body where it is a stream of events; NULL = it is a body like any other. False: it
     * wants no more, and the exchange is done. */
    bool (*take)(void *ctx, struct str bytes);
    void *ctx;
    /* What came: */
    struct buf answer;       /* the caller's, with its maximum */
    uint64_t answer_bytes;
    enum exchange_end end;
    bool is_stream;
    bool refused;        /* `take` wanted no more */
    int status;              /* 0 = none */
    int64_t retry_after_s;
    int64_t last_us;         /* its last byte */
    char reason[CURL_ERROR_SIZE];
};

/* Needs some 40 KiB of stack. */
void exchange_run(struct exchange *exchange);

#endif
