/* The last day in rings of fixed size: what the queues did per step of 5 s (an hour) and of 60 s (a
 * day), for charts and alerts. Fed with figures that only grow (core/measure/measure.h) and with
 * how many tasks there are just now. In memory only: a restart begins with empty rings. Not
 * thread-safe; time is handed in and must not go back. */
#ifndef CORE_MEASURE_HISTORY_H
#define CORE_MEASURE_HISTORY_H

#include "base/buf.h"
#include "core/measure/measure.h"

#define HISTORY_STEP_US INT64_C(5000000)
#define HISTORY_QUEUES_MAX 64 /* the others are one together, shown as "*" */

/* Per step; the first ones stand for its end. */
enum history_series {
    HISTORY_WAITING, /* pending, delayed, blocked */
    HISTORY_RUNNING, /* claimed, running */
    HISTORY_DEAD,    /* dead_letter; not shown, for alerts */
    HISTORY_COMPLETED,
    HISTORY_FAILED,  /* for good: failed, dead_letter */
    HISTORY_RETRIED,
    HISTORY_ENQUEUED,
    HISTORY_WAIT_P50,
    HISTORY_WAIT_P99,
    HISTORY_RUN_P50,
    HISTORY_RUN_P99,
    HISTORY_SERIES
};

/* How many tasks a queue has now. */
struct history_now {
    struct str queue;
    int64_t waiting;
    int64_t running;
    int64_t dead;
};

enum history_window { WINDOW_15M, WINDOW_1H, WINDOW_6H, WINDOW_24H, WINDOW_COUNT };
bool history_window_parse(struct str word, enum history_window *window);

struct history;

struct history *history_new(int64_t now_us); /* NULL without memory */
void history_free(struct history *history);

/* True when a step is over at that time, so that history_add is worth its while. */
bool history_is_due(const struct history *history, int64_t now_us);
/* Ends the steps that are over. now == NULL: how many there are is not known just now. */
void history_add(struct history *history, int64_t now_us, const struct measured *measured,
                 const struct history_now *now, uint32_t count);

/* What was done so far in the step under way, until the next history_add. */
void history_look(struct history *history, const struct measured *measured);

/* {"from":…,"step_ms":…,"points":…,"total":{…},"queues":[…]}; open: the last point is the step
 * under way, as history_look left it. within: only the queues of this namespace, and their sums;
 * absent = all there is. */
void history_render(const struct history *history, enum history_window window, bool open,
                    struct str within, struct buf *out);

/* For alerts: of each queue (absent = the others), over the steps of the last so many seconds, an
 * hour at most. */
#define HISTORY_OTHERS 0 /* the first of them */
uint32_t history_queues(const struct history *history);
struct str history_queue(const struct history *history, uint32_t queue);
double history_sum(const struct history *history, uint32_t queue, enum history_series series,
                   int64_t seconds);
/* The smallest figure of that time; -1 when there is none. */
double history_least(const struct history *history, uint32_t queue, enum history_series series,
                     int64_t seconds);

#endif
