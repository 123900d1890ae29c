/* What the engine does by itself when its time has come, as a table (chores.c). Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_CHORES_H
#define ENGINE_CHORES_H

#include <stdbool.h>
#include <stdint.h>

enum chore {
    CHORE_RATES,     /* a rate limit lets waiting claims look again */
    CHORE_INTAKE,    /* what was enqueued with SQL becomes tasks */
    CHORE_SWEEP,     /* leases that are over, silent workers, tasks beyond their timeout */
    CHORE_DUE,       /* delayed tasks whose time has come */
    CHORE_RECOVERY,  /* entries of the recovery queue */
    CHORE_FIRE,      /* planned instants */
    CHORE_RETENTION, /* what is too old goes */
    CHORE_ACCESS,    /* API tokens that other nodes have changed */
    CHORE_NAMESPACES, /* one is being removed with all that is in it */
    CHORE_COUNT
};

struct chore_state {
    int64_t next_us; /* when it is due; INT64_MAX = never, until something changes */
    int64_t held_us; /* no earlier than this, because it failed */
    bool ran;        /* in the transaction under way */
    bool fails;      /* the last transaction with it failed: it runs alone until it succeeds */
};

struct batch;
struct engine;
struct err;

/* It is due at that time at the latest, but never before it may be tried again. */
void chore_soon(struct engine *engine, enum chore which, int64_t at_us);
void chores_open(struct engine *engine, int64_t now_us);
int64_t chores_next_us(const struct engine *engine); /* when the next one is due */
bool chores_hurry(const struct engine *engine, int64_t now_us); /* a program waits for one */
int chores_run(struct batch *batch, struct err *err); /* those that are due */
void chores_reload(struct engine *engine, int64_t now_us); /* memory was read again */
void chores_begin(struct engine *engine);     /* a transaction begins, ... */
void chores_committed(struct engine *engine); /* ... or was committed */
/* A transaction failed: those that run apart are held back for a while. False = none of them ran,
 * and any chore may be at fault. */
bool chores_hold_apart(struct engine *engine, int64_t now_us);
void chores_hold_all(struct engine *engine, int64_t now_us);

#endif
