/* Runs a task as a command: the task as JSON on stdin, control lines on descriptor 3, output as
 * logs, the exit code as outcome. */
#ifndef WORKER_HANDLERS_HANDLER_PROCESS_H
#define WORKER_HANDLERS_HANDLER_PROCESS_H

#include "core/settings.h"
#include "worker/handler.h"
#include "worker/process/identity.h"

/* handler.what is a struct handler_rule with a command. */
extern const struct handler_verbs handler_process_verbs;

#define HANDLER_EXIT_CONTINUE 75 /* EX_TEMPFAIL: continue later */

/* The part of this process's environment that commands may see, with the home and the names of
 * the user they run as; NULL when memory ran out. */
char *const *handler_process_environment(const struct identity *identity, struct arena *arena);

#endif
