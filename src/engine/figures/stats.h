/* Counters, and the outbox as its dispatchers see it (stats.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_FIGURES_STATS_H
#define ENGINE_FIGURES_STATS_H

struct batch;
struct engine_stats;
struct request;

int stats_apply(struct batch *batch, struct request *base);
int outbox_take(struct batch *batch, struct request *base);
int outbox_done(struct batch *batch, struct request *base);
/* Adds counts since the start, and who waits. */
void stats_add(struct engine_stats *to, const struct engine_stats *from);

#endif
