/* The breaker of a service. After so many failures in a row it opens: for a time nothing is called,
 * then one call is tried, and its end closes or opens it again. While it is open tasks wait; none
 * uses up an attempt. Pure: callers pass the time in and own the state, which is all zeros at
 * first. */
#ifndef CORE_SERVICE_BREAKER_H
#define CORE_SERVICE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker_rule {
    int64_t failures; /* 0 = it never opens */
    int64_t open_us;
};

struct breaker {
    int64_t failures;      /* in a row */
    int64_t since_us;      /* when it opened first; 0 = it is closed */
    int64_t open_until_us; /* then one call is tried */
    bool probing;          /* that call is under way */
};

static inline bool breaker_is_open(const struct breaker *breaker)
{
    return breaker->since_us != 0;
}

/* How many calls may begin now, at most `room`. */
uint32_t breaker_room(const struct breaker *breaker, uint32_t room, int64_t now_us);

/* A call begins, or was not made after all. */
void breaker_begin(struct breaker *breaker);
void breaker_undo(struct breaker *breaker);

/* A call ended; true when that opened or closed the breaker. */
bool breaker_end(struct breaker *breaker, const struct breaker_rule *rule, bool is_down,
                 int64_t now_us);

#endif
