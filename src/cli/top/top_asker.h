/* The thread that waits for the server while `perdura top` keeps drawing and obeying keys. One job
 * at a time, handed over whole and back; the caller may not touch the fetch until it has the
 * answer. Used by one thread. */
#ifndef CLI_TOP_TOP_ASKER_H
#define CLI_TOP_TOP_ASKER_H

#include "cli/top/top_fetch.h"

struct top_asker;

/* Signals must be blocked by now: the thread must not get them. NULL with err. */
struct top_asker *top_asker_start(struct top_fetch *fetch, struct err *err);

/* Can be read when an answer is there. */
int top_asker_fd(const struct top_asker *asker);

/* False when one is under way. */
bool top_asker_give(struct top_asker *asker, const struct top_job *job);
bool top_asker_busy(const struct top_asker *asker);

/* NULL = there is none yet. Lives until the next one is given. */
const struct top_answer *top_asker_take(struct top_asker *asker);

/* Breaks off what is under way; the fetch can ask no more. NULL is allowed. */
void top_asker_stop(struct top_asker *asker);

#endif
