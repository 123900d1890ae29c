/* The subcommands of `perdura task` that are not in cmd_task.c, which puts them into its table. */
#ifndef CLI_COMMANDS_TASK_COMMANDS_H
#define CLI_COMMANDS_TASK_COMMANDS_H

#include "cli/frame/command.h"

extern const struct command task_cancel;
extern const struct command task_retry;
extern const struct command task_recover;
extern const struct command task_pause;
extern const struct command task_resume;
extern const struct command task_priority;
extern const struct command task_update;
extern const struct command task_delete;
extern const struct command task_why;
extern const struct command task_fork;

#endif
