#include "base/gate.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHUT, WAITED_FOR, OPEN };

void gate_shut(struct gate *gate)
{
    atomic_init(&gate->state, SHUT);
}

void gate_open(struct gate *gate)
{
    if (atomic_exchange(&gate->state, OPEN) == WAITED_FOR)
        syscall(SYS_futex, &gate->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void gate_wait(struct gate *gate)
{
    uint32_t seen = SHUT;

    atomic_compare_exchange_strong(&gate->state, &seen, WAITED_FOR);
    while (atomic_load(&gate->state) != OPEN)
        syscall(SYS_futex, &gate->state, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL, NULL, 0);
}
