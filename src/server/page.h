/* Pages over lists that are in memory as a whole (queues, workers): newest first, then by name.
 * The cursor is the last entry's time and name, so that what comes and goes meanwhile shifts
 * nothing. Not for tasks and their parts: the store pages those. Loop thread. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "server/server_int.h"

struct page_entry {
    int64_t time_us;
    struct str name;
    const void *item;
};

struct page {
    uint32_t limit;
    bool has_cursor;
    struct page_entry after;
};

/* limit and cursor of the query. */
int page_parse(struct api_call *call, struct page *page);
/* Replies {"items":[...],"next_cursor":...}. entry(ctx, i) says where the i-th of the call's ctx
 * stands and what write is given; entries are sorted here. */
int page_reply(struct api_call *call, const struct page *page, uint32_t count,
               struct page_entry (*entry)(const void *ctx, uint32_t i),
               void (*write)(struct api_call *call, const void *item));

#endif
