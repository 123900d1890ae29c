/* What is known of an inbox, for those that show it: routes, metrics. Filled by node/inboxes. Pure
 * data. */
#ifndef CORE_INBOX_INBOX_VIEW_H
#define CORE_INBOX_INBOX_VIEW_H

#include "base/str.h"

#define INBOX_VIEW_ERROR_BYTES 512

struct inbox_view {
    char name[201];
    char namespace_name[201];
    char store[512]; /* without a password */
    char table[128];
    const char *state;     /* connecting, ready, failed, standby (another node leads) */
    char error[INBOX_VIEW_ERROR_BYTES]; /* "" = none */
    bool connected;
    int64_t lag_ms;        /* age of the oldest row that waited at the last look */
    int64_t taken, damaged; /* rows since the start */
    int64_t last_taken_us; /* wall clock; 0 = none yet */
};

/* Any thread. */
struct inbox_views {
    void *ctx;
    uint32_t (*count)(void *ctx);
    bool (*read)(void *ctx, uint32_t index, struct inbox_view *view);
};

#endif
