/* Counters, and the outbox as its dispatchers see it (stats.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_FIGURES_STATS_H
#define ENGINE_FIGURES_STATS_H

struct batch;
struct outbox_done_request;
struct outbox_take_request;
struct stats_request;

int stats_apply(struct batch *batch, struct stats_request *request);
int outbox_take(struct batch *batch, struct outbox_take_request *request);
int outbox_done(struct batch *batch, struct outbox_done_request *request);

#endif
