/* Puts the configured rules of queues into force (configure.c). Belongs to the thread that has the
 * turn (inbox.c). */
#ifndef ENGINE_CONFIGURE_H
#define ENGINE_CONFIGURE_H

struct batch;
struct configure_request;
struct engine;
struct err;

int configure_apply(struct batch *batch, struct configure_request *request);
int configure_queues(struct engine *engine, struct err *err); /* in the transaction under way */

#endif
