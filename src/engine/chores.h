/* What the engine does by itself when its time has come, as a table (chores.c). Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_CHORES_H
#define ENGINE_CHORES_H

#include <stdbool.h>
#include <stdint.h>

enum chore {
    CHORE_RATES,     /* a rate limit lets waiting claims look again */
    CHORE_SWEEP,     /* leases that are over, silent workers, tasks beyond their timeout */
    CHORE_DUE,       /* delayed tasks whose time has come */
    CHORE_RECOVERY,  /* entries of the recovery queue */
    CHORE_FIRE,      /* planned instants */
    CHORE_RETENTION, /* what is too old goes */
    CHORE_COUNT
};

struct chore_state {
    int64_t next_us; /* when it is due; INT64_MAX = never, until something changes */
    int64_t held_us; /* no earlier than this, because it failed */
    bool ran;        /* in the transaction under way */
    bool fails;      /* the last transaction with it failed: it runs alone until it succeeds */
};

#endif
