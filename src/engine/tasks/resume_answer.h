/* What a person says when a task that asked is resumed. The writer's thread. */
#ifndef ENGINE_TASKS_RESUME_ANSWER_H
#define ENGINE_TASKS_RESUME_ANSWER_H

#include "engine/batch.h"

/* answer: a JSON object with members. */
int resume_answer_put(struct batch *batch, struct task *task, struct str answer, struct err *err);

#endif
