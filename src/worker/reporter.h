/* Collects the reports of all slots and sends what has gathered in one call, in order, from its own
 * thread. While one batch is on its way the next gathers; there is no timer but a short wait of
 * lone `start` reports for company. Full means the slots wait, so that a handler's pipe fills. */
#ifndef WORKER_REPORTER_H
#define WORKER_REPORTER_H

#include <stdatomic.h>

#include "base/log.h"
#include "worker/sources/source.h"

#define REPORTER_ELEMENTS_MAX 4096 /* of one batch; two batches exist */
#define REPORTER_BYTES_MAX (4 * 1024 * 1024) /* texts of one batch, unless it is a single report */

struct reporter;

/* The part of a held task the reporter knows. Lives until its final entry was answered. */
struct reporter_task {
    struct uuid id;
    int64_t lease_token;
    int64_t seq;      /* of its last report; the slot's thread only */
    bool start_awaited; /* its `start` does not wait for company; set before it is added */
    atomic_bool lost; /* nothing of it is sent any more */
};

struct reporter_entry {
    struct reporter_task *task;
    bool final; /* nothing of this task comes after it */
    bool held;  /* the reporter's own: to be sent again */
};

struct reporter_hooks {
    void *ctx;
    /* Everything of one batch, in order, with its answers, before any later one is sent. Entries
     * of a lost task have ERR_STALE_LEASE; a final entry without a report (op REPORT_OP_COUNT)
     * ERR_NONE; what could not be sent before the end ERR_UNAVAILABLE. */
    void (*answered)(void *ctx, const struct report *reports, const struct reporter_entry *entries,
                     const struct report_result *results, uint32_t count);
    /* The source does not know this worker any more: register again. */
    int (*unknown)(void *ctx);
};

struct reporter *reporter_start(struct source *source, const struct reporter_hooks *hooks,
                                int64_t lease_ms, const struct log *log, struct err *err);

/* Copies the report and its texts. False only when there is no room and wait is false. The final
 * entry may have op REPORT_OP_COUNT: then nothing is sent, and it is answered in its turn. */
bool reporter_add(struct reporter *reporter, struct reporter_task *task,
                  const struct report *report, bool final, bool wait);

/* From give_up_ms on a report that cannot be sent is answered with ERR_UNAVAILABLE instead of being
 * tried again, so that an unreachable server does not hold up the end. The earliest limit holds. */
void reporter_limit(struct reporter *reporter, int64_t give_up_ms);
/* Sends what is there and ends the thread. Nothing may be added any more. */
void reporter_stop(struct reporter *reporter);
void reporter_free(struct reporter *reporter); /* after stop */

#endif
