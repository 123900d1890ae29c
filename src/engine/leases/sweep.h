/* The timer that takes back lost tasks and starts due ones (sweep.c). Belongs to the thread that
 * has the turn (inbox.c). */
#ifndef ENGINE_LEASES_SWEEP_H
#define ENGINE_LEASES_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct engine;
struct err;

int sweep_run(struct batch *batch, int64_t *next_us, struct err *err);
int sweep_due(struct batch *batch, int64_t *next_us, struct err *err);
void sweep_forget_lost(struct engine *engine);

#endif
