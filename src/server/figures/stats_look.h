/* What statistics and metrics read from the store beside the queue's own figures, as far as it
 * could be read. */
#ifndef SERVER_FIGURES_STATS_LOOK_H
#define SERVER_FIGURES_STATS_LOOK_H

#include "server/server_int.h"
#include "store/measure_store.h"

#define STATS_ERRORS_MAX 100 /* schedules in error, and entries that wait, are counted so far */

struct stats_look {
    struct stats_request request; /* first: it is what the queue is asked afterwards */
    struct str about;             /* the namespace; absent = all of them */
    struct execution_hour *hours;
    uint32_t hours_count;
    bool hours_known;             /* they could be read */
    struct execution_category *categories;
    uint32_t categories_count;
    struct queue_wait *waits;     /* in call->arena, as the rest */
    uint32_t waits_count;
    uint32_t schedules_in_error;
    uint32_t recoveries_pending;
    bool whole;                   /* all of it could be read */
};

/* Reads, asks the queue, and calls then(call) with call->ctx as struct stats_look: of the namespace
 * of the call, or of everything. */
int stats_look(struct api_call *call, bool everything, call_step *then);
/* By queue: struct queue_wait; the caller's to deinit. */
void stats_look_map_waits(const struct stats_look *look, struct map *waits);
/* The same of types and categories that no live worker of a queue takes, though the queue has
 * workers. */
void stats_look_map_unclaimed(const struct stats_look *look, struct map *waits);
/* Of one of these: its category, if its type has workers and they take others; else absent. */
struct str stats_look_category(const struct stats_look *look, const struct queue_view *view,
                               const struct queue_wait *wait);

#endif
