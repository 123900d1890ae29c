/* A table of addresses, a few places for each hash. Pure but for the log line. */
#include "server/door/auth_guard.h"

#include "base/clock.h"

#define PLACES 8 /* an address may be in; the one silent longest makes room */
#define STEP_US (GUARD_DELAY_US / GUARD_HELD_MAX)
#define WINDOW_US (60 * CLOCK_SECOND_US)
#define RIGHT_US (10 * WINDOW_US) /* how long a right token vouches for its address */

static struct guard_address *place(const struct auth_guard *guard,
                                   const struct http_address *address, uint32_t i)
{
    uint32_t at = (http_address_hash(address, guard->seed) + i) % GUARD_ADDRESSES;

    return (struct guard_address *)&guard->addresses[at];
}

static struct guard_address *find(const struct auth_guard *guard,
                                  const struct http_address *address)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        struct guard_address *at = place(guard, address, i);

        if (at->seen_us && http_address_eq(&at->address, address))
            return at;
    }
    return NULL;
}

static bool is_vouched(const struct guard_address *at, int64_t now_us)
{
    return at->right_us && now_us - at->right_us < RIGHT_US;
}

/* Nothing is known of it any more that counts: its minute is over, and no right token vouches. */
static bool is_over(const struct guard_address *at, int64_t now_us)
{
    return (at->wrong == 0 || now_us - at->window_us >= WINDOW_US) && at->paid_us <= now_us &&
           !is_vouched(at, now_us);
}

/* One whose guesses still count stays, or many addresses in turn would begin at none each time.
 * NULL: all places are such. */
static struct guard_address *find_or_make(struct auth_guard *guard,
                                          const struct http_address *address, int64_t now_us)
{
    struct guard_address *found = find(guard, address);

    for (uint32_t i = 0; !found && i < PLACES; i++)
        if (!place(guard, address, i)->seen_us)
            found = place(guard, address, i);
    if (!found)
        for (uint32_t i = 0; i < PLACES; i++) {
            struct guard_address *at = place(guard, address, i);

            if (is_over(at, now_us) && (!found || at->seen_us < found->seen_us))
                found = at;
        }
    if (found && (!found->seen_us || !http_address_eq(&found->address, address)))
        *found = (struct guard_address){.address = *address, .window_us = now_us};
    if (found)
        found->seen_us = now_us;
    return found;
}

/* Has it had its guesses of this second? */
static bool is_full(const struct guard_address *at, int64_t now_us)
{
    return at->paid_us - now_us > GUARD_DELAY_US - STEP_US;
}

bool guard_refuses(const struct auth_guard *guard, const struct http_address *address,
                   int64_t now_us)
{
    const struct guard_address *at = now_us < guard->full_us ? find(guard, address) : NULL;

    return at && is_full(at, now_us) && !is_vouched(at, now_us);
}

void guard_right(struct auth_guard *guard, const struct http_address *address, int64_t now_us)
{
    struct guard_address *at = find_or_make(guard, address, now_us);

    if (at)
        at->right_us = now_us;
}

static void log_minute(struct auth_guard *guard, int64_t now_us, struct log *log)
{
    if (guard->logged_us && now_us - guard->logged_us < WINDOW_US)
        return;
    LOG(log, LOG_WARN, "auth.wrong_tokens", KI("count", guard->wrong_total - guard->logged_total),
        KI("total", guard->wrong_total));
    guard->logged_total = guard->wrong_total;
    guard->logged_us = now_us;
}

int64_t guard_wrong(struct auth_guard *guard, const struct http_address *address, int64_t now_us,
                    struct log *log)
{
    struct guard_address *at = find_or_make(guard, address, now_us);

    guard->wrong_total++;
    log_minute(guard, now_us, log);
    if (!at) /* so many guess at once that this one may as well be of them */
        return GUARD_DELAY_US;
    if (now_us - at->window_us >= WINDOW_US) {
        at->window_us = now_us;
        at->wrong = 0;
    }
    if (++at->wrong <= GUARD_FREE_MAX)
        return 0;
    if (!is_full(at, now_us)) /* full: of a proxy, which is looked at all the same */
        at->paid_us = (at->paid_us > now_us ? at->paid_us : now_us) + STEP_US;
    if (is_full(at, now_us))
        guard->full_us = now_us + GUARD_DELAY_US;
    return GUARD_DELAY_US;
}
