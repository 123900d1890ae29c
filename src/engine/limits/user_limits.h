/* How many tasks each user may have enqueued in a time (access.user_limits.tasks). A user's bucket
 * is kept in memory, on a shared store in a row of its own: two nodes that count the same user in
 * the same moment may each miss one batch of the other. What plans fire is not counted. Belongs to
 * the thread that has the turn (inbox.c). */
#ifndef ENGINE_LIMITS_USER_LIMITS_H
#define ENGINE_LIMITS_USER_LIMITS_H

#include "base/map.h"
#include "core/rate.h"
#include "engine/engine.h"

#define USER_LIMITS_KEPT 100000 /* users in memory; the next one clears it of those at rest */

struct batch;
struct user_limit;

struct user_limits {
    struct map by_user;      /* struct user_limit, by namespace and user */
    struct user_limit *used; /* in this batch: written before the commit */
};

/* What a request took, so that it can be given back. */
struct user_taken {
    struct user_limit *limit;
    struct bucket before;
    int64_t count;
};

/* Takes what all tasks of the request need, or nothing and ERR_RATE, with the time to wait in
 * request->retry_after_s. *taken is an array in the batch's arena. */
int user_limits_take(struct batch *batch, struct request *request,
                     const struct task_input *inputs, uint32_t count, struct user_taken **taken,
                     uint32_t *taken_count);
void user_limits_give_back(struct user_taken *taken, uint32_t count); /* of a refused request */
int user_limits_save(struct batch *batch, struct err *err);           /* before the commit */
void user_limits_forget(struct engine *engine);

#endif
