/* Which tasks a caller may see, and how much of them. With the scope tasks:read it sees all tasks
 * of its namespace, and their contents if it has payloads:read too. With tasks:enqueue alone it
 * sees the tasks that it made; all others look missing. A caller with a user_id sees only tasks of
 * that user, and those without an owner. */
#ifndef SERVER_VISIBILITY_H
#define SERVER_VISIBILITY_H

#include "server/server_int.h"

/* Payloads, data, results, checkpoints, errors and log texts, of all tasks. */
bool call_sees_content(const struct api_call *call);
/* Does the task belong to a user whose rows the caller may not see? */
bool call_hides_task(const struct api_call *call, const struct task *task);
/* The same for a task by its id. Reads the task only if the caller is limited to one user. */
int call_hides_id(struct api_call *call, struct store_reader *reader, const struct uuid *id,
                  struct arena *scratch, bool *hides);
/* Is the caller limited to the rows of one user? */
bool call_has_user(const struct api_call *call);
/* Must the answer leave out the contents of this task? */
bool call_redacts(const struct api_call *call, const struct task *task);
/* ERR_NOT_FOUND if there is no task (NULL), and with the same sentence if the caller may not see
 * it. */
int call_check_task(struct api_call *call, const struct task *task);
/* The same for call->task_id, before a request about it goes to the engine: calls then(call) if the
 * caller may see the task. */
int call_look_first(struct api_call *call, call_step *then);
/* ERR_FORBIDDEN with the first of `names` that is not among the caller's `own`. */
int call_check_names(struct api_call *call, const struct name_list *own, const char *field,
                     const struct str *names, uint32_t count);

#endif
