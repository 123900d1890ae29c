/* Slows down guessing of tokens. A right token is served at once. After several wrong ones from an
 * address, each further one is answered a second later, at most GUARD_HELD_MAX in a second, whether
 * the client waits for the answer or hangs up. More are refused without checking the token, unless
 * the address showed a right one lately: it may be a proxy, and then one guesser would lock out all
 * clients behind it. Loop thread. */
#ifndef SERVER_DOOR_AUTH_GUARD_H
#define SERVER_DOOR_AUTH_GUARD_H

#include "base/log.h"
#include "net/http.h"

#define GUARD_FREE_MAX 10      /* wrong tokens of an address and minute, answered at once */
#define GUARD_HELD_MAX 32      /* per address: so many guesses a second */
#define GUARD_DELAY_US (1000 * INT64_C(1000))
#define GUARD_ADDRESSES 1024   /* remembered; the one silent longest is forgotten first */

struct guard_address {
    struct http_address address;
    int64_t seen_us;    /* 0 = not used */
    int64_t window_us;  /* start of the minute that is counted */
    int64_t right_us;   /* a right token came last; 0 = never */
    uint32_t wrong;     /* in that minute */
    int64_t paid_us;    /* each late answer moves this by a GUARD_HELD_MAXth of a second */
};

struct auth_guard {
    uint64_t seed;        /* secret, of this process */
    int64_t wrong_total;
    int64_t logged_total; /* of them, told in the log */
    int64_t logged_us;
    int64_t full_us;      /* before this some address may have had its guesses of the second */
    struct guard_address addresses[GUARD_ADDRESSES];
};

/* True: too many wrong tokens came from this address in this second; do not even look. */
bool guard_refuses(const struct auth_guard *guard, const struct http_address *address,
                   int64_t now_us);
void guard_right(struct auth_guard *guard, const struct http_address *address, int64_t now_us);
/* Counts, logs once a minute. Microseconds to wait before the answer; 0 = none. */
int64_t guard_wrong(struct auth_guard *guard, const struct http_address *address, int64_t now_us,
                    struct log *log);

#endif
