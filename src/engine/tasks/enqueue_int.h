/* What the parts of an enqueue share (enqueue.c, enqueue_checks.c). Belongs to the thread that has
 * the turn (inbox.c). */
#ifndef ENGINE_TASKS_ENQUEUE_INT_H
#define ENGINE_TASKS_ENQUEUE_INT_H

#include "engine/engine.h"
#include "engine/tasks/ended.h"

struct batch;

/* What one call of enqueue_tasks works on. */
struct plan {
    struct batch *batch;
    struct task_input *inputs;
    uint32_t count;
    enum actor actor;
    struct task *parent;
    struct arena *arena;
    struct task **tasks;
    bool *duplicate;
    bool *differs;
    struct err *err;
    struct culprit culprit; /* of the task that is placed: the parent that ended otherwise */
    struct str sealed_of;   /* the namespace that was looked up last, and ... */
    bool encrypts;          /* ... whether it has all its tasks encrypted */
};

/* Every task that is named as a dependency must be there. */
int plan_check_parents(struct plan *plan);
/* Category, rights and queue of every task; fills in what the category and the user give. */
int plan_check_places(struct plan *plan);
int plan_name_workflow(struct plan *plan);
/* Whether the token that asks may have so many more tasks. Duplicates are known by now. */
int plan_check_token(struct plan *plan);
/* Their queues come into being. */
int plan_make_queues(struct plan *plan);

#endif
