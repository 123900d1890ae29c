/* When a schedule or a recurring pattern fires: its calendar, and what to do at a given time with
 * instants that are due (D2 to D4, D6). Pure but for the zones it borrows. */
#ifndef CORE_PLAN_PLAN_H
#define CORE_PLAN_PLAN_H

#include "calendar/cron.h"
#include "calendar/zones.h"
#include "core/plan/catalog.h"

#define PLAN_INSTANTS_MAX 1000 /* fired of one schedule at a time; the rest comes next */
#define PLAN_INTERVAL_MAX_S (INT64_C(10) * 365 * 86400) /* ten years, as any delay */

struct plan {
    enum { PLAN_CRON, PLAN_INTERVAL, PLAN_ONCE, PLAN_RECURRENCE } kind;
    struct cron cron;
    struct recurrence recurrence;
    const struct zone *zone; /* borrowed until plan_release */
    enum dst_policy dst;
    int64_t anchor_us;   /* interval: instants are anchor + n * every; once: the instant */
    int64_t every_us;
    int64_t starts_at_us; /* nothing before it; 0 = no start */
    int64_t ends_at_us;   /* nothing after it; 0 = no end */
};

/* ERR_INVALID names the field: an expression that cannot be read or never fires, a zone that is not
 * there, an interval of nothing, a time beyond the year 9999. An interval counts from starts_at,
 * which is its first instant, else from created_at, which is none. Immediate is once, at created_at
 * (or starts_at). created_at 0 (not created yet) means now. A plan that was refused needs no
 * release. */
int plan_schedule(const struct schedule *schedule, struct zones *zones, int64_t now_us,
                  struct plan *plan, struct err *err);
int plan_recurring(const struct recurring *recurring, struct zones *zones, int64_t now_us,
                   struct arena *arena, struct plan *plan, struct err *err);
void plan_release(struct plan *plan, struct zones *zones);

/* The first instant after then; false when there is none any more. A new schedule of type once or
 * immediate begins with the first one at all (after INT64_MIN), which may lie in the past; all
 * others, and those that were changed, continue after now or after the last firing, whichever is
 * later. */
bool plan_next(const struct plan *plan, int64_t after_us, int64_t *next_us);
/* The last one after after_us and not after until_us; false when there is none. */
bool plan_last(const struct plan *plan, int64_t after_us, int64_t until_us, int64_t *last_us);

struct misfire_rule {
    enum misfire misfire;
    int64_t grace_ms;
    int64_t cap;
};

/* What is due: instants to fire, oldest first, and where the plan continues. */
struct due {
    int64_t *instants;
    uint32_t count;
    int64_t passed_over; /* late ones the policy leaves out; at least this many are known of */
    int64_t next_us;     /* the next planned instant; 0 = none any more */
};

/* first_us is the stored next instant, which is one even if the zone has changed since; when it is
 * after now_us nothing is due. Instants not later than the grace all fire (up to PLAN_INSTANTS_MAX:
 * then next_us is the first of the rest); of older ones skip fires none, fire_once the last one,
 * fire_all at most `cap`, the newest of them, oldest first. Work does not grow with how many were
 * missed, but for those that fire. */
int plan_due(const struct plan *plan, const struct misfire_rule *rule, int64_t first_us,
             int64_t now_us, struct arena *arena, struct due *due, struct err *err);

/* In words: "At 09:00, Monday to Friday, Europe/Paris", "Every 90 minutes", "Every day at 09:00,
 * UTC", "Once, at 2030-01-02 03:04:05, UTC". */
void plan_explain(const struct plan *plan, struct buf *out);

/* How much later than planned a run starts: the same for the same instant, 0 to jitter_ms. */
int64_t plan_jitter_us(const struct uuid *owner_id, int64_t instant_us, int64_t jitter_ms);

#endif
