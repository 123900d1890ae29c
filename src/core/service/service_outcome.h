/* What the answer of a service means for the task: a table by status. Pure; any thread. */
#ifndef CORE_SERVICE_SERVICE_OUTCOME_H
#define CORE_SERVICE_SERVICE_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

enum service_end {
    SERVICE_DONE,    /* completed, with the answer as the result */
    SERVICE_ACCEPTED, /* the service says later how it ended */
    SERVICE_RETRY,   /* failed, and called again as the task's policy says */
    SERVICE_WAIT,    /* called again when the service said; no retry is used up */
    SERVICE_REFUSED  /* failed for good */
};

struct service_verdict {
    enum service_end end;
    bool is_down;     /* counts against the service: its breaker may open */
    const char *code; /* a word for error_details */
};

/* Of an answer. asks_wait: it has a Retry-After; is_async: it has Perdura-Async: 1. */
struct service_verdict service_judge(int status, bool asks_wait, bool is_async);

/* Of the question whether an earlier call was done: found, not there, or no answer. */
enum service_found { SERVICE_FOUND, SERVICE_NOT_THERE, SERVICE_NOT_KNOWN };
enum service_found service_judge_lookup(int status);

#define SERVICE_WAIT_MS_MAX (INT64_C(3600) * 1000) /* of a Retry-After: an hour */
#define SERVICE_WAIT_MS_MIN 100

/* Seconds of a Retry-After as a delay within these bounds. */
int64_t service_wait_ms(int64_t seconds);

#endif
