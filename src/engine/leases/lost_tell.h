/* What the log says of lost tasks after the commit (lost_tell.c). Belongs to the thread that has
 * the turn (inbox.c). */
#ifndef ENGINE_LEASES_LOST_TELL_H
#define ENGINE_LEASES_LOST_TELL_H

#include "base/str.h"

#include <stdint.h>

struct batch;
struct engine;
struct task;

/* One transaction under way: tasks as they are to be, and what the store is owed. */
#define LOST_GROUPS_MAX 4 /* holders of lost tasks that one line names */

#define LOST_POISON_MAX 4 /* tasks that became poison, with a line each; others are counted */
/* Tasks that were taken back, for the log. */
struct lost_told {
    uint32_t tasks_count;
    struct lost_group {
        struct str worker_id;
        const char *reason;
        uint32_t tasks_count;
    } groups[LOST_GROUPS_MAX];
    uint32_t groups_count;
    uint32_t others_count; /* tasks of further workers */
    const struct task *poison[LOST_POISON_MAX];
    uint32_t poison_count;
};

/* what the log says of lost tasks once they are committed. */
void lost_note(struct batch *batch, const struct task *task, const char *reason);
void lost_note_poison(struct batch *batch, const struct task *task);
void lost_tell(const struct engine *engine, const struct batch *batch);

#endif
