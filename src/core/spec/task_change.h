/* A change of what people say about a task: which of the texts that task_fields.h calls editable
 * (ASK_EDIT) get another value. Works at any time, also after the task has ended. Pure. */
#ifndef CORE_SPEC_TASK_CHANGE_H
#define CORE_SPEC_TASK_CHANGE_H

#include "base/arena.h"
#include "base/err.h"
#include "core/task/task.h"

struct task_change {
    struct task_about about;
    uint32_t set; /* bit i: the text of task_edits[i] is the one in `about`; absent = none */
};

/* One text more; absent and "" take it away. ERR_INVALID with the field. The text is borrowed. */
int change_add(struct task_change *change, size_t edit, struct str text, struct err *err);

/* Changes *about; the bits of what differs now. */
uint32_t change_apply(const struct task_change *change, struct task_about *about);

/* How events tell it: the object `detail`, or an empty one, with a member "name":"text" or null for
 * each text in `set`. In arena; absent when memory is out. */
struct str change_tell(struct str detail, const struct task_about *about, uint32_t set,
                       struct arena *arena);
/* The bits of the texts that are there. */
uint32_t change_given(const struct task_about *about);

#endif
