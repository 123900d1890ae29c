/* Lists of the catalog (categories, jobs, schedules, patterns): their filters, and a page as JSON,
 * newest first. Shared by the HTTP API and the library. Any thread with a reader. */
#ifndef VIEW_CATALOG_PAGE_H
#define VIEW_CATALOG_PAGE_H

#include "view/catalog_view.h"

struct catalog_page {
    enum catalog_kind kind;
    struct catalog_filter filter; /* with the page's limit */
    struct str category;          /* jobs: id or name of it; absent = any */
    bool dependents;              /* dependencies: those on the job, not its own */
};

void catalog_page_init(struct catalog_page *page, enum catalog_kind kind);

/* One parameter of a list by its name; texts are borrowed. ERR_INVALID with the name as field: it
 * is unknown for this kind, or the value is none. Limits above the bound count as the bound. */
int catalog_page_set(struct catalog_page *page, struct str name, struct str value,
                     struct err *err);

/* Writes {"items":[...],"next_cursor":...}. source->arena is reset between chunks: what the page
 * points to must live elsewhere. Of dependencies only those of filter.job_id itself are shown, or
 * those on it. */
int catalog_page_write(const struct catalog_page *page, const struct catalog_source *source,
                       struct buf *out, struct err *err);

#endif
