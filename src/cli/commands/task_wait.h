/* Waiting for a task to end, with a bar on a terminal. Shared by `enqueue --wait` and
 * `task wait`. One thread. */
#ifndef CLI_COMMANDS_TASK_WAIT_H
#define CLI_COMMANDS_TASK_WAIT_H

#include "cli/frame/cli_client.h"

/* Waits at most timeout_ms (-1 = as long as it takes). *task is the last state seen. A line on
 * stderr tells why the task does not run, when it has not for a while; after Ctrl-C one says that
 * the task continues. */
int task_wait(struct client *client, struct str id, int64_t timeout_ms, struct str *task);

/* What a person can do about the reason in an answer of /v1/tasks/{id}/why, where its sentence
 * leaves that open; absent = nothing to add. */
struct str task_why_hint(struct call *call, struct str why);

/* Prints what a wait brought: the whole task (json) or its result. A task that did not complete is
 * an error that says why. */
int task_wait_print(struct client *client, struct str id, struct str task, bool json);
/* Both, for a task that was made just now; its id is printed before. */
int task_wait_and_print(struct client *client, struct str id, int64_t timeout_ms);

#endif
