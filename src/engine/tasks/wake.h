/* Requests that wait inside: claims for work, clients for the end of a task (wake.c). Belongs to
 * the thread that has the turn (inbox.c). */
#ifndef ENGINE_TASKS_WAKE_H
#define ENGINE_TASKS_WAKE_H

#include "base/map.h"
#include "engine/engine.h"

#include <stdatomic.h>

struct batch;

struct waiting {
    struct request *claims_first, *claims_last; /* oldest first */
    size_t claim_task_bytes;                    /* memory a task of the last claim took */
    int64_t claims_next_us;   /* no claim has an earlier deadline; may be too early */
    atomic_uint claims_count; /* any thread reads it */
    struct map waits;         /* by task id: struct wait_list */
    atomic_uint waits_count;  /* any thread reads it */
    uint32_t waits_cursor;    /* where the next look for ends on other nodes begins */
    uint32_t count;           /* claims and waits */
};

int wait_apply(struct batch *batch, struct request *base);
void waits_answer(struct engine *engine, struct batch *batch); /* after the commit */
int waits_look(struct batch *batch, struct err *err);          /* what ended on other nodes */
void waits_expire(struct engine *engine, int64_t now_us, int64_t *next_us);
void waits_forget(struct engine *engine, struct request *request);
void waits_fail_all(struct engine *engine, const struct err *err);
void claims_park(struct engine *engine, struct claim_request *request);
void claims_unpark(struct engine *engine, struct claim_request *request);

#endif
