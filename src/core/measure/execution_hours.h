/* How executions ended, counted per hour and category, and summed over the last hour, day and week.
 * Pure. */
#ifndef CORE_MEASURE_EXECUTION_HOURS_H
#define CORE_MEASURE_EXECUTION_HOURS_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/uuid7.h"

#define EXECUTION_HOUR_US (3600 * CLOCK_SECOND_US)
#define EXECUTION_HOURS_KEPT (8 * 24)  /* a week, and a day to spare */
#define EXECUTION_HOURS_SHOWN (7 * 24)
#define EXECUTION_CATEGORIES_MAX 200   /* that are shown */

struct execution_hour {
    int64_t hour_us;         /* when it began */
    struct uuid category_id; /* nil = none, or one too many */
    int64_t successful;
    int64_t failed;
    int64_t duration_ms;     /* of all of them together */
    struct str namespace_name;
};

struct execution_category {
    struct uuid id;
    struct str name;
};

struct execution_sum {
    int64_t successful;
    int64_t failed;
    int64_t duration_ms;
};

/* Of the hours until now_us; category NULL = all. The hour a period begins in counts in
 * proportion. */
struct execution_sum execution_hours_sum(const struct execution_hour *hours, uint32_t count,
                                         int64_t now_us, int64_t period_hours,
                                         const struct uuid *category);
/* [{"period":…,"category":…,"total":…},…]: each period with all together first, then the categories
 * in which something ended, in their order. */
void execution_hours_render(const struct execution_hour *hours, uint32_t count, int64_t now_us,
                            const struct execution_category *categories, uint32_t categories_count,
                            struct buf *out);

#endif
