/* Forks: a new task with an old one's spec that begins after one of its checkpoints, to try again
 * beside the original. Pure; enqueued like any task. */
#ifndef CORE_SPEC_FORK_H
#define CORE_SPEC_FORK_H

#include "core/spec/spec.h"

/* What shall be different; all else is as it was. */
struct fork_wish {
    bool has_payload, has_data, has_priority;
    struct str payload; /* JSON; absent = null */
    struct str data;
    struct str queue;   /* absent = the same */
    struct str name;
    int64_t priority;
};

/* The fork of a task loaded as a whole. It waits for the same tasks, whose results its handler
 * needs, but one that has run does so whatever they ended as since. It has no idempotency key, no
 * input hash or outside id: they are the original's. It is not a child of any task and not a run of
 * a job; metadata.forked_from names its original. checkpoint (NULL = from the start) is
 * borrowed. */
int fork_input(const struct task *task, const struct task_dependency *dependencies,
               uint32_t dependencies_count, const struct checkpoint *checkpoint,
               const struct fork_wish *wish, struct arena *arena, struct task_input *input,
               struct err *err);

#endif
