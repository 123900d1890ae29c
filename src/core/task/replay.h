/* A task as it was: its state at an earlier time, rebuilt from its events one after the other.
 * What events tell of comes back: status, state, progress, attempts, holder, checkpoint, and what
 * people said about it. Progress is that of the last event that told it: a report that changes the
 * number alone makes no event. Pure; the caller, which reads the events, decides
 * where to stop. */
#ifndef CORE_TASK_REPLAY_H
#define CORE_TASK_REPLAY_H

#include "base/buf.h"
#include "core/task/task.h"

struct replay {
    uint32_t events_count;
    bool whole;             /* the first event was there; else retention removed some */
    int64_t seq;            /* of the last event, and its time */
    int64_t updated_at_us;
    enum status status;
    enum status previous_status;
    struct str state;
    struct task_about about; /* the editable texts (task_fields.h), nothing else */
    int64_t progress;
    int64_t attempts;
    struct str worker_id;   /* who held it last */
    int64_t lease_token;
    bool pause_requested;
    int64_t claimed_at_us;
    int64_t started_at_us;
    int64_t completed_at_us;
    int64_t checkpoint_seq; /* 0 = none */
    struct str checkpoint_name;
    int64_t checkpoint_progress;
};

#define REPLAY_INIT ((struct replay){.whole = false})

/* The next event, oldest first. Texts are borrowed from it, or decoded into arena. */
void replay_event(struct replay *replay, const struct task_event *event, struct arena *arena);
/* Is a detail written like the one that tells the progress: {"progress":N}? A user's own that looks
 * so is stored with a space more, or it would be taken for it. */
bool replay_tells_progress(struct str detail);
/* Its texts move to arena, so that the events may go. */
void replay_keep(struct replay *replay, struct arena *arena);

/* One JSON object with the names a task has; `task` gives what never changes. */
void replay_render(struct buf *out, const struct replay *replay, const struct task *task,
                   int64_t at_us, bool redacted);

#endif
