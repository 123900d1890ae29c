/* The subcommands of `perdura job` that have files of their own; cmd_job.c lists them. */
#ifndef CLI_PLANS_JOB_COMMANDS_H
#define CLI_PLANS_JOB_COMMANDS_H

#include "cli/plans/thing.h"

extern const struct command job_depend;
extern const struct command job_undepend;
extern const struct command job_history;

/* The dependencies of a job as a table below its record. */
int job_print_dependencies(struct client *client, struct str job_id);

#endif
