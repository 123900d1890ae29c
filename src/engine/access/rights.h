/* What a request may do with a row of a user (core/access/principal.h): one of another user is as
 * if it were not there, one without an owner may be read. Any thread of the engine. */
#ifndef ENGINE_ACCESS_RIGHTS_H
#define ENGINE_ACCESS_RIGHTS_H

#include "engine/engine.h"

/* Another user's: the answer is that of a row that is not there. */
bool rights_hide(const struct request *request, struct str owner);
/* For what is not hidden: ERR_FORBIDDEN where it may not be changed. what: "this task". */
int rights_change(const struct request *request, struct str owner, const char *what,
                  struct err *err);

/* How much of this task who asks may see. */
enum visibility rights_visibility(const struct caller *caller, const struct task *task);
/* Whether a task may depend on this one: its handler gets the result. Without payloads:read only
 * what one has made oneself may be named; a task that another one spawns may also name what the
 * maker of its parent has made. ERR_FORBIDDEN where the task may be known of, else *hides. */
int rights_depend(const struct task_input *input, const struct task *spawner,
                  const struct task *on, bool *hides, struct err *err);

/* Who asks, as tasks, plans and events remember it (struct principal.key); absent: no credential,
 * or the program itself. */
static inline struct str request_maker(const struct request *request)
{
    return request->caller && request->caller->principal ? request->caller->principal->key
                                                         : STR_NONE;
}

#endif
