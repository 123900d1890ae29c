/* What `perdura top` asks the server for: one job at a time, each some requests, and the replies
 * turned into what is shown. Blocks for as long as the server takes: the live view has a thread for
 * it (top_asker.c). One thread at a time, except where noted. */
#ifndef CLI_TOP_TOP_FETCH_H
#define CLI_TOP_TOP_FETCH_H

#include "cli/top/top_model.h"

#include "base/err.h"
#include "net/http_client.h"

#include <stdatomic.h>

#define TOP_KEY_BYTES 1024

enum top_job_kind { TOP_JOB_REFRESH, TOP_JOB_DETAIL, TOP_JOB_PAUSE };

struct top_job {
    enum top_job_kind kind;
    enum top_pane pane;      /* detail: where the row stands */
    bool paused;             /* pause: it is paused, and shall resume */
    bool recurring;          /* detail: a pattern, not a schedule */
    char key[TOP_KEY_BYTES]; /* of the row */
    uint64_t serial;         /* given by who asks, told with the answer */
};

struct top_answer {
    struct top_job job;
    struct err err;               /* code 0 = it was done */
    struct top_snapshot snapshot; /* refresh */
    struct top_lines lines;       /* detail; an error is a line of it */
};

struct top_fetch {
    struct http_client *http;
    struct top_memory memory;
    struct arena frames[2]; /* of the last refresh that was done, and of the one under way */
    uint32_t frame;         /* which the next one fills */
    struct arena detail;
    struct buf reply;
    /* Boot time when the request was sent to which no answer came yet, the first of several; 0 =
     * the server answers. Any thread. */
    atomic_int_least64_t silent_since_us;
};

/* token may be absent. -ERR_INVALID for a bad address. Call deinit in every case. */
int top_fetch_init(struct top_fetch *fetch, struct str server, struct str token, struct err *err);
void top_fetch_deinit(struct top_fetch *fetch);

/* A snapshot lives until the refresh after the next one, lines until the next detail. */
void top_fetch_do(struct top_fetch *fetch, const struct top_job *job, struct top_answer *answer);

#endif
