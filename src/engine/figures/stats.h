/* Counters, and the outbox as its dispatchers see it (stats.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_FIGURES_STATS_H
#define ENGINE_FIGURES_STATS_H

struct request;
struct batch;

int stats_apply(struct batch *batch, struct request *base);
int outbox_take(struct batch *batch, struct request *base);
int outbox_done(struct batch *batch, struct request *base);

#endif
