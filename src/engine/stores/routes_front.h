/* What the engine in front of several stores does instead of working itself (routes.c). Any thread.
 * */
#ifndef ENGINE_STORES_ROUTES_FRONT_H
#define ENGINE_STORES_ROUTES_FRONT_H

#include "engine/engine.h"

/* what is asked of the queue in front of several */
void routes_submit(struct engine *front, struct request *request);
void routes_forget(struct engine *front, enum request_kind kind, struct request *request);
void routes_close(struct engine *front);
int64_t routes_now_us(struct engine *front);

#endif
