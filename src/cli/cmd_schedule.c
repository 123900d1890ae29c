/* perdura schedule …: when jobs run. One thread. */
#include "cli/schedule_commands.h"

static const struct command *const subcommands[] = {&schedule_explain, NULL};

const struct command command_schedule = {
    .name = "schedule",
    .summary = "Plan when jobs run, and look at what is planned",
    .example = "perdura schedule explain '0 9 * * 1-5' --tz Europe/Paris",
    .subcommands = subcommands,
};
