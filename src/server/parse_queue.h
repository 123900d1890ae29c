/* The body of PATCH /v1/queues/{name}: limits and order of a queue. null removes a limit; fields
 * that are not named stay; an unknown name is refused. Nothing is applied here. Pure, any thread.
 * Texts point into the body or the arena. */
#ifndef SERVER_PARSE_QUEUE_H
#define SERVER_PARSE_QUEUE_H

#include "base/arena.h"
#include "engine/engine.h"
#include "server/body.h"

/* {"count","per_ms","burst"?}; absent and null are no limit. */
int parse_rate(const struct body_field *field, struct rate_rule *rate, struct err *err);

/* object was accepted by json_check. -ERR_INVALID with the field at fault. */
int parse_queue_patch(struct str object, struct arena *arena, struct queue_patch_request *request,
                      struct err *err);

/* {"count","per_ms","burst"}, or no rate. */
int parse_rate(const struct body_field *field, struct rate_rule *rate, struct err *err);

#endif
