/* Puts the configured rules of queues into force (configure.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_CONFIGURE_H
#define ENGINE_CONFIGURE_H

struct request;
struct batch;
struct engine;
struct err;

int configure_apply(struct batch *batch, struct request *base);
int configure_queues(struct engine *engine, struct err *err); /* in the transaction under way */

#endif
