/* A thing that happens once, and a thread that waits for it. The one who waits may free the gate as
 * soon as it is through: opening touches it only before that, and a wake at an address that is gone
 * wakes nobody. No lock: who is woken has nothing to wait for a second time. */
#ifndef BASE_GATE_H
#define BASE_GATE_H

#include <stdatomic.h>
#include <stdint.h>

struct gate {
    _Atomic uint32_t state; /* 0 = shut, 1 = somebody waits, 2 = open */
};

void gate_shut(struct gate *gate); /* before anybody knows of it */
void gate_open(struct gate *gate);
void gate_wait(struct gate *gate); /* one thread */

#endif
