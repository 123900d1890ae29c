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
/* Writes {"items":[...],"next_cursor":...}; entries are sorted here. */
void page_write(struct api_call *call, const struct page *page, struct page_entry *entries,
                uint32_t count, void (*write)(struct api_call *call, const void *item));

#endif
