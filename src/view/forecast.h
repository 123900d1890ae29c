/* What will fire, and when: the instants of all schedules and recurring patterns of a window in
 * time order, with marks for what is unusual. Callers add owners one by one, page by page; only the
 * earliest `limit` instants are kept, so that memory does not grow with their number (meant for
 * 100,000). Pure but for the zones it borrows; one thread at a time. It does not predict
 * overlapping runs: that depends on how long they take. */
#ifndef VIEW_FORECAST_H
#define VIEW_FORECAST_H

#include "core/bounds.h"
#include "core/plan/plan.h"

#define FORECAST_LIMIT 1000
#define FORECAST_LIMIT_MAX 10000
#define FORECAST_FOLD_OVER 100 /* who fires more often in the window is one line */
#define FORECAST_PILE_UP 10

struct forecast_wish {
    int64_t from_us; /* from this on ... */
    int64_t to_us;   /* ... and before this */
    const struct zone *zone; /* of the local times shown; borrowed until forecast_free */
    uint32_t limit;   /* 0 = FORECAST_LIMIT; more than the maximum is the maximum */
    uint32_t pile_up; /* as many fires in one minute are marked; 0 = FORECAST_PILE_UP */
    bool no_fold;     /* every instant is a line of its own */
};

/* How clocks change in the owner's own zone. */
enum forecast_dst {
    FORECAST_DST_NONE,
    FORECAST_DST_SHIFTED, /* its wall time does not exist: moved to the end of the gap */
    FORECAST_DST_FIRST,   /* its wall time comes twice: this is the first */
    FORECAST_DST_SECOND,
    FORECAST_DST_NEAR,    /* clocks change on that local day or within 24 hours */
    FORECAST_DST_COUNT
};
const char *forecast_dst_word(enum forecast_dst dst); /* "none" for none */

/* A schedule or recurring pattern. */
struct forecast_owner {
    bool is_recurring;
    struct uuid id;
    struct uuid job_id;
    char job_name[BOUND_NAME_BYTES + 1];
    char name[BOUND_NAME_BYTES + 1];        /* of a pattern; "" for schedules */
    char zone_name[ZONE_NAME_BYTES_MAX + 1];
    uint32_t lines; /* that speak of it */
};

/* One line. */
struct forecast_item {
    const struct forecast_owner *owner;
    int64_t at_us;
    int32_t offset_s;     /* of the zone asked for, then: local = at + offset */
    enum forecast_dst dst;
    int64_t change_us;    /* when clocks change (shifted, near); 0 = they do not */
    uint32_t pile_up;     /* fires in this minute, where they are many; else 0 */
    int64_t opens_us;     /* its category's window is closed: it waits until then; 0 = it is open */
    bool never_opens;     /* ... for years */
    /* A line for many instants: at_us is the first. count 1 = a line for one. */
    int64_t count;
    bool about;           /* count is an estimate */
    int64_t last_us;
    int64_t every_us;     /* the shortest pause between two */
};

struct forecast;

int forecast_new(const struct forecast_wish *wish, struct zones *zones, int64_t now_us,
                 struct forecast **forecast, struct err *err);
void forecast_free(struct forecast *forecast);

/* All categories, before anything else: whether they are active, and their windows. */
int forecast_categories(struct forecast *forecast, const struct category *categories,
                        uint32_t count, struct err *err);

/* job is its job, NULL = not there. What is not active, has no next instant or cannot be planned
 * fires nothing; the last are counted. Nothing that is handed in is kept. */
int forecast_add_schedule(struct forecast *forecast, const struct schedule *schedule,
                          const struct job *job, struct err *err);
int forecast_add_recurring(struct forecast *forecast, const struct recurring *recurring,
                           const struct job *job, struct err *err);

struct forecast_result {
    const struct forecast_item *items; /* in time order; they live as long as the forecast */
    uint32_t count;
    bool cut;          /* there is more: continue from the time of the last item */
    uint32_t owners;   /* that were handed in */
    uint32_t unplanned; /* of them: cannot be planned (their zone is gone) */
};
/* Once, after everything was added. */
void forecast_finish(struct forecast *forecast, struct forecast_result *result);

/* One item as JSON: at, local, schedule_id or recurring_job_id, job_id, job, timezone, and dst,
 * clock_changes_at, pile_up, window_wait, window_opens_at; count, count_is_estimate, last and
 * every_seconds of a line for many. Marks are there where they say something. */
void forecast_render(const struct forecast_item *item, struct buf *out);

#endif
