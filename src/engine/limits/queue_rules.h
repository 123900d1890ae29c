/* Queues as users list, change and remove them (queue_rules.c, queues_gone.c). Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_LIMITS_QUEUE_RULES_H
#define ENGINE_LIMITS_QUEUE_RULES_H

#include "engine/engine.h"

struct batch;

int queues_remove(struct batch *batch, struct queue_patch_request *request,
                  struct queue_row *gone); /* as it was */
int queues_remove_idle(struct batch *batch, struct err *err); /* empty and without settings */
int queues_follow_gone(struct batch *batch, struct err *err); /* that others removed */
int limits_list(struct batch *batch, struct request *base);
int limits_patch(struct batch *batch, struct request *base);

#endif
