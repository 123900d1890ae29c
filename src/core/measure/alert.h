/* Alerts: what an operator should look at, decided from facts. GET /v1/stats shows them. The same
 * rules for Prometheus are in deploy/prometheus/alerts.yml. Pure. */
#ifndef CORE_MEASURE_ALERT_H
#define CORE_MEASURE_ALERT_H

#include "base/buf.h"

#define ALERTS_MAX 100             /* more are not shown */
#define ALERT_ENDS_MIN 20          /* fewer ends in 5 minutes say nothing about a rate */
#define ALERT_CLOCK_US (INT64_C(2) * 1000000)  /* what a clock is set by in passing */

/* Of one queue. */
struct alert_queue {
    struct str name;     /* absent = all that have no figures of their own */
    bool served;         /* a live worker registered for it */
    bool paused;
    int64_t waits_us;    /* of the first in line; 0 = none waits */
    int64_t unclaimed_us; /* the same of those no live worker of the queue would be given, ... */
    struct str unclaimed_type; /* ... its type, ... */
    struct str unclaimed_category; /* ... and its category, where it is that; else absent */
    double completed;    /* in the last 5 minutes, so the next */
    double failed;
    double dead_before;  /* dead letters, the fewest of the last hour; -1 = not known */
    double dead_now;
};

struct alert_facts {
    const struct alert_queue *queues;
    uint32_t queues_count;
    int64_t unclaimed_after_us; /* without a worker for this long */
    bool no_leader;
    int64_t clock_behind_us; /* of the wall clock behind the engine's */
    bool storage_full;
    int64_t stores_down;
    bool log_regression;
    int64_t read_errors;
    uint32_t schedules_in_error; /* and recurring patterns; counted no further than a page */
    bool unread; /* what comes from the store could not be read, or not all of it */
};

/* [{"code":…,"severity":…,"text":…,"queue":…,"n":…,"of":…},…], what is critical first; n and of are
 * the numbers in the text. */
void alerts_render(const struct alert_facts *facts, struct buf *out);

#endif
