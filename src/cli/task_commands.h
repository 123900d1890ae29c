/* The subcommands of `perdura task` that change a task; cmd_task.c puts them into its table. */
#ifndef CLI_TASK_COMMANDS_H
#define CLI_TASK_COMMANDS_H

#include "cli/command.h"

extern const struct command task_cancel;
extern const struct command task_retry;
extern const struct command task_pause;
extern const struct command task_resume;
extern const struct command task_priority;
extern const struct command task_delete;

#endif
