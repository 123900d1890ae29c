/* The event loop: one thread, timers, signals and posted work, over libevent.
 * A loop belongs to the thread in loop_run. Only loop_post and loop_stop may be called from other
 * threads; libevent's own locks stay off. Not for protocols: those sit on loop_base(). */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/err.h"

#include <stdint.h>

struct event_base;
struct loop;
struct loop_timer;

/* Work for the loop thread, embedded in the caller's struct so that posting cannot fail. It may be
 * freed or posted again from inside `run`, but not between loop_post and `run`. */
struct loop_item {
    struct loop_item *next;
    void (*run)(struct loop_item *item);
};

/* Also gives SIGPIPE an empty handler for the whole process: a peer that left is an error code. (A
 * handler, unlike SIG_IGN, is not inherited by programs that are started later.) */
struct loop *loop_new(struct err *err);
/* The loop is not running and everything made on it but signals has been freed before: libevent
 * gets one last turn to finish its own clean-up, in which a timer left behind could fire. */
void loop_free(struct loop *loop);

/* Runs until loop_stop, also one called before it. 0, or a negative code if the loop broke. */
int loop_run(struct loop *loop);
/* Any thread, also a signal callback of this loop. */
void loop_stop(struct loop *loop);

/* Runs item->run(item) on the loop thread, in the order of posting. Any thread. A burst of posts
 * costs one wake-up. Items still waiting when the loop stops stay in it until the next loop_run. */
void loop_post(struct loop *loop, struct loop_item *item);

/* A one-shot timer; it may be set again at any time, also from fn. NULL without memory. It follows
 * a coarse monotonic clock and can come up to 4 ms early: fn compares its own time. */
struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *ctx), void *ctx);
void loop_timer_set(struct loop_timer *timer, int64_t delay_us); /* below 0 counts as 0 */
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); /* NULL is fine */

/* fn runs on the loop thread, not in the signal handler. At most LOOP_SIGNALS_MAX per loop, and one
 * loop per process may have signals. */
#define LOOP_SIGNALS_MAX 8 /* TERM, INT, HUP, CHLD, USR1, USR2 and two to spare */
int loop_signal_add(struct loop *loop, int signo, void (*fn)(int signo, void *ctx), void *ctx,
                    struct err *err);

struct event_base *loop_base(struct loop *loop);

#endif
