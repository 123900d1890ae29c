/* Types that workers gave back because they cannot run them. Any thread. */
#ifndef ENGINE_TASKS_DECLINED_H
#define ENGINE_TASKS_DECLINED_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/uuid7.h"

struct declined;

struct declined *declined_new(void);
void declined_free(struct declined *declined);
/* The worker gave back this unstarted task; no_handler: because it cannot run its type. */
void declined_note(struct declined *declined, struct str worker, struct str type,
                   const struct uuid *task_id, bool no_handler, int64_t now_us);
/* Does it get no task of this type just now? */
bool declined_has(struct declined *declined, struct str worker, struct str type, int64_t now_us);
/* All such types of a worker, copied into the arena. */
uint32_t declined_types(struct declined *declined, struct str worker, int64_t now_us,
                        struct arena *arena, struct str **types);
void declined_forget(struct declined *declined, struct str worker); /* it registered again */

#endif
