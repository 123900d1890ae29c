/* What the root command does itself; see cmd_version.c. */
#ifndef CLI_COMMANDS_HELP_COMMANDS_H
#define CLI_COMMANDS_HELP_COMMANDS_H

#include "cli/frame/command.h"

int version_print(struct call *call, bool json);

#endif
