/* The order key. Priorities and times out of their bounds are cut to them, so that no input, and no
 * ageing step however large, overflows. Pure, any thread. */
#include "core/task/order.h"

#include "base/clock.h"
#include "core/bounds.h"

#define ORDER_TIME_MAX ((INT64_C(1) << ORDER_TIME_BITS) - 1)

static int64_t clamp(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

int64_t order_key(int64_t priority, int64_t eligible_us, enum priority_order order,
                  int64_t ageing_ms)
{
    int64_t time_us = clamp(eligible_us, 0, ORDER_TIME_MAX);
    int64_t rank = clamp(priority, -BOUND_PRIORITY, BOUND_PRIORITY);
    int64_t middle = (int64_t)BOUND_PRIORITY << ORDER_TIME_BITS;
    int64_t shift_us, key;

    if (order == ORDER_HIGH_FIRST)
        rank = -rank;
    if (ageing_ms <= 0)
        return ((BOUND_PRIORITY + rank) << ORDER_TIME_BITS) + time_us;
    if (__builtin_mul_overflow(rank * CLOCK_MS_US, ageing_ms, &shift_us))
        shift_us = rank < 0 ? INT64_MIN : INT64_MAX;
    if (__builtin_add_overflow(middle + time_us, shift_us, &key))
        return INT64_MAX; /* only upwards: middle + time_us is never negative */
    return key < 0 ? 0 : key;
}

int64_t order_eligible_us(int64_t key, int64_t priority, enum priority_order order,
                          int64_t ageing_ms)
{
    int64_t zero = order_key(priority, 0, order, ageing_ms);

    if (ageing_ms <= 0)
        return key & ORDER_TIME_MAX;
    return clamp(key - zero, 0, ORDER_TIME_MAX);
}
