/* Categories whose tasks run only at certain times, or only a few per claim (windows.c). Belongs to
 * the thread that has the turn (inbox.c). */
#ifndef ENGINE_LIMITS_WINDOWS_H
#define ENGINE_LIMITS_WINDOWS_H

#include "engine/batch.h"
#include "store/store.h"

/* May the claim have the task? If not, it was delayed, or given back because of its batch_size. */
enum claim_move { CLAIM_TAKE, CLAIM_PUT_OFF, CLAIM_GIVE_BACK };

#define WINDOWS_STATE "Waiting for its window"
#define LOCKED_STATE "Encrypted, and cannot be opened"
/* After a change of windows, looks again at the tasks they delayed, page by page. */
struct windows {
    uint64_t seen;        /* a checksum of the windows that put tasks off ... */
    struct delayed after; /* ... as far as this task */
    bool known;           /* ... of all tasks */
    bool walk;            /* not at the end yet */
};

/* Of a task of a category: when its window opens; 0 = one is open, or there are none. */
int windows_look(struct batch *batch, const struct task *task, int64_t *opens_us, struct err *err);
/* A task of a category becomes pending: while its window is closed it is delayed instead. */
int windows_hold(struct batch *batch, struct task *task, enum status *to, const char **state,
                 struct err *err);
/* A delayed task is due: true if its window is closed, so that it keeps waiting. */
int windows_wait_on(struct batch *batch, struct task *task, bool *waits, struct err *err);
int windows_admit(struct batch *batch, const struct claim_request *request, struct task *task,
                  enum claim_move *move, struct err *err);
/* A task that a claim would hand out cannot be decrypted: it waits for a minute, then for the
 * next. */
int windows_lock(struct batch *batch, struct task *task, enum claim_move *move, struct err *err);
/* Must the line see it, because its category counts what one claim gets? */
bool windows_count(struct batch *batch, const struct task *task);
/* After a change of windows, looks again at the tasks they delayed, a page at a time. */
void windows_begin(struct engine *engine);
int windows_follow(struct batch *batch, bool *more, struct err *err);

/* The status of a task that is new, or no longer paused or blocked, and its state text. */
static inline int batch_waiting_status(struct batch *batch, struct task *task, enum status *to,
                                       const char **state, struct err *err)
{
    *to = outcome_waiting_status(task, task->by_wall ? batch->wall_us : batch->now_us);
    *state = "Queued";
    return *to != STATUS_PENDING || uuid_is_nil(&task->spec.category_id)
               ? 0
               : windows_hold(batch, task, to, state, err);
}

#endif
