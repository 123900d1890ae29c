/* Which tasks a caller may see, and how much of them. A principal with tasks:read sees all of its
 * namespace, without their contents unless it has payloads:read, too; one with tasks:enqueue alone
 * sees what it has made itself, and everything else as if it were not there. Of them, one with a
 * user_id sees only what belongs to that user or has no owner. */
#ifndef SERVER_SIGHT_H
#define SERVER_SIGHT_H

#include "server/server_int.h"

/* Payloads, data, results, checkpoints, errors and log texts, of all tasks. */
bool call_sees_content(const struct api_call *call);
/* Whether it belongs to another user than the caller's. */
bool call_hides_task(const struct api_call *call, const struct task *task);
/* The same of the task with this id, which is read. For a caller who sees the rows of all users
 * nothing is read. */
int call_hides_id(struct api_call *call, struct store_reader *reader, const struct uuid *id,
                  struct arena *scratch, bool *hides);
/* Whether the caller is limited to the rows of one user. */
bool call_has_user(const struct api_call *call);
/* Whether it may see the task at all: one with tasks:enqueue alone sees its own. */
bool call_knows(const struct api_call *call, const struct task *task);
/* Whether the contents of this task are left out of the answer. */
bool call_redacts(const struct api_call *call, const struct task *task);
/* ERR_NOT_FOUND where there is no task (NULL), and in the same words where the caller may not know
 * of it. */
int call_check_task(struct api_call *call, const struct task *task);
/* The same before call->task_id is handed to the engine: then(call) runs where it may be. */
int call_look_first(struct api_call *call, call_step *then);
/* ERR_FORBIDDEN with the first of these names that is not within what the caller is limited to. */
int call_check_names(struct api_call *call, const struct name_list *own, const char *field,
                     const struct str *names, uint32_t count);

#endif
