/* The subcommands of `perdura schedule` that have files of their own; cmd_schedule.c lists them. */
#ifndef CLI_PLANS_SCHEDULE_COMMANDS_H
#define CLI_PLANS_SCHEDULE_COMMANDS_H

#include "cli/frame/command.h"

extern const struct command schedule_explain;
extern const struct command schedule_import;

#endif
