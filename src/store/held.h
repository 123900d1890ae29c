/* Copies of the tasks that workers hold, without payload and data, so that a report does not read
 * back what the claim has just written. The table stays the truth: a copy is put by the write it
 * repeats and forgotten with the first rollback and with the first foreign write to the file.
 * Where others write to the same tables, what comes of a copy is written only to the same row.
 * Bounded; what does not fit is read from the table. Not thread-safe. */
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

void held_put(struct held *held, const struct task *task); /* in place of an older copy */
void held_remove(struct held *held, int64_t task_key);
/* A copy in the arena, or NULL: not here, or no memory. */
struct task *held_get(const struct held *held, int64_t task_key, struct arena *arena);
void held_forget(struct held *held); /* all of them */

#endif
