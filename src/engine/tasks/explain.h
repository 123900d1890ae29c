/* Why a task does not run: the facts (explain.c, explain_blocked.c). Belongs to the thread that has
 * the turn (inbox.c). */
#ifndef ENGINE_TASKS_EXPLAIN_H
#define ENGINE_TASKS_EXPLAIN_H

struct request;
struct arena;
struct batch;
struct caller;
struct err;
struct task;
struct why_facts;

int explain_apply(struct batch *batch, struct request *base);
/* asker: the facts leave out other tasks and jobs that it may not see; NULL = the program. */
int explain_task(struct batch *batch, struct task *task, const struct caller *asker,
                 struct arena *arena, struct why_facts *facts, struct err *err);
int explain_chain(struct batch *batch, const struct caller *asker, struct arena *arena,
                  struct why_facts *facts, struct err *err);
int explain_blocked(struct batch *batch, struct task *task, const struct caller *asker,
                    struct arena *arena, struct why_facts *facts, struct err *err);

#endif
