/* Copies of the tasks that workers hold, without payload and data, so that a report does not read
 * back what the claim has just written. The table stays the truth: each write updates its copy, and
 * the first rollback or foreign write to the file drops all copies. Where other nodes write to the
 * same tables, a change made from a copy is stored only if the row is still the same. Bounded:
 * tasks that do not fit are read from the table. Not thread-safe. */
#ifndef STORE_HELD_H
#define STORE_HELD_H

#include "base/arena.h"
#include "base/map.h"
#include "core/task/task.h"

#define HELD_BYTES_MAX (16 * 1024 * 1024)

struct held {
    struct map by_key; /* struct held_task */
    size_t used_bytes;
};

void held_put(struct held *held, const struct task *task); /* replaces an older copy */
void held_remove(struct held *held, int64_t task_key);
/* A copy in the arena, or NULL: not kept here, or out of memory. */
struct task *held_get(const struct held *held, int64_t task_key, struct arena *arena);
void held_forget(struct held *held); /* all of them */

#endif
