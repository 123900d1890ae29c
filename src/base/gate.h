/* A thing that happens once, and a thread that waits for it. The waiting thread may free the gate
 * as soon as it is through: opening touches the gate only before that, and a wake at a freed
 * address wakes no thread. No lock: the woken thread never waits a second time. */
#ifndef BASE_GATE_H
#define BASE_GATE_H

#include <stdatomic.h>
#include <stdint.h>

struct gate {
    _Atomic uint32_t state; /* 0 = shut, 1 = a thread waits, 2 = open */
};

void gate_shut(struct gate *gate); /* before other threads know of it */
void gate_open(struct gate *gate);
void gate_wait(struct gate *gate); /* one thread */

#endif
