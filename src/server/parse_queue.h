/* The body of PATCH /v1/queues/{name}. null takes a limit away; what is not named stays. Pure, any
 * thread. */
#ifndef SERVER_PARSE_QUEUE_H
#define SERVER_PARSE_QUEUE_H

#include "base/arena.h"
#include "queue/queue.h"

/* object was accepted by json_check. -ERR_INVALID with the field at fault. */
int parse_queue_patch(struct str object, struct arena *arena, struct queue_patch_request *request,
                      struct err *err);

#endif
