/* The subcommands of `perdura schedule`, each in its file; cmd_schedule.c lists them. */
#ifndef CLI_SCHEDULE_COMMANDS_H
#define CLI_SCHEDULE_COMMANDS_H

#include "cli/command.h"

extern const struct command schedule_explain;

#endif
