/* Claims (claim.c), new tasks handed straight to waiting ones (hand_over.c), and tasks no live
 * worker can take (unclaimed.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_CLAIM_H
#define ENGINE_TASKS_CLAIM_H

#include "engine/engine.h"

struct batch;
struct worker_state;

int claim_apply(struct batch *batch, struct request *base);
int claim_serve_waiting(struct batch *batch, struct err *err);
int claim_take(struct batch *batch, struct claim_request *request, struct worker_state *worker,
               struct task *task, struct err *err);
/* claim_named.c: of request->task_id alone */
int claim_named(struct batch *batch, struct claim_request *request, struct worker_state *worker);
bool claim_wants(struct batch *batch, const struct claim_request *request,
                 const struct worker_state *worker, const struct task_spec *spec);
/* The same of what is in a queue, whatever its category. */
bool claim_wants_type(const struct batch *batch, const struct claim_request *request,
                      const struct worker_state *worker, struct str queue, struct str type);
bool claim_wants_hot(const struct batch *batch, const struct claim_request *request,
                     const struct worker_state *worker);
/* Categories were made, removed or renamed, so waiting claims may get other tasks. */
void claim_heat_categories(struct batch *batch);
/* new tasks to waiting claims, before the first flush */
int claim_hand_over(struct batch *batch, struct err *err);
/* fails what no live worker can take, where that is wanted */
int unclaimed_fail(struct batch *batch, bool *more, struct err *err);
/* Takes the first *left tasks of a lane out of the line and gives each to `fail`. */
int unclaimed_fail_lane(struct batch *batch, const struct lane_count *lane,
                        int (*fail)(struct batch *batch, struct task *task, struct err *err),
                        uint32_t *left, struct err *err);
/* unknown_services.c: the same for tasks of services that are not known; and whether one is. */
int unknown_services_fail(struct batch *batch, bool *more, struct err *err);
bool unknown_services_has(struct engine *engine, struct str service);

#endif
