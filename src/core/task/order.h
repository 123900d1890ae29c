/* In which order tasks run: one number per task, so that the order is an index. Pure. */
#ifndef CORE_TASK_ORDER_H
#define CORE_TASK_ORDER_H

#include "core/settings.h"

#define ORDER_TIME_BITS 52 /* microseconds until the year 2112; later times share the last place */

/* Smaller runs first. eligible_us is when the task may run. Never negative.
 * Strict (ageing_ms 0): priority decides, time only among equals. Ageing: one step of priority is
 * worth ageing_ms of waiting; a task of priority 0 has the same key either way. */
int64_t order_key(int64_t priority, int64_t eligible_us, enum priority_order order,
                  int64_t ageing_ms);

/* The eligible_us a key was made of, for a queue whose rule changes. Exact unless it was cut. */
int64_t order_eligible_us(int64_t key, int64_t priority, enum priority_order order,
                          int64_t ageing_ms);

#endif
