/* Every command, in the order help lists them. Adding one means a cmd_*.c file and a line here. */
#include "cli/frame/command.h"
#include "cli/commands/help_commands.h"

extern const struct command command_serve;
extern const struct command command_worker;
extern const struct command command_enqueue;
extern const struct command command_task;
extern const struct command command_queue;
extern const struct command command_job;
extern const struct command command_schedule;
extern const struct command command_recurring;
extern const struct command command_category;
extern const struct command command_forecast;
extern const struct command command_recovery;
extern const struct command command_workers;
extern const struct command command_services;
extern const struct command command_inbox;
extern const struct command command_broker;
extern const struct command command_stats;
extern const struct command command_top;
extern const struct command command_whoami;
extern const struct command command_audit;
extern const struct command command_token;
extern const struct command command_key;
extern const struct command command_namespace;
extern const struct command command_migrate;
extern const struct command command_verify;
extern const struct command command_copy;
extern const struct command command_backup;
extern const struct command command_bench;
extern const struct command command_mock_model;
extern const struct command command_doctor;
extern const struct command command_completion;
extern const struct command command_exec_cron;
extern const struct command command_man;
extern const struct command command_version;
extern const struct command command_help;

static const struct command *const commands[] = {
    &command_serve, &command_worker, &command_enqueue, &command_task, &command_queue, &command_job,
    &command_schedule, &command_recurring, &command_category, &command_forecast, &command_recovery,
    &command_workers, &command_services, &command_inbox, &command_broker, &command_stats,
    &command_top, &command_whoami, &command_token, &command_key, &command_audit, &command_namespace,
    &command_migrate, &command_copy, &command_verify, &command_backup, &command_bench,
    &command_mock_model, &command_doctor, &command_completion, &command_man, &command_exec_cron,
    &command_version, &command_help, NULL};

static int run_root(struct call *call)
{
    if (call_given(call, "version"))
        return version_print(call, false);
    command_print_help(&call->out, &command_root, STR(""));
    return 0;
}

static const struct flag root_flags[] = {
    {.name = "version", .type = FLAG_BOOL, .help = "print the version"}, {0}};

const struct command command_root = {
    .name = "perdura",
    .summary = "Perdura runs tasks durably: queue, scheduler and crash recovery in one program",
    .example = "perdura serve\n"
               "perdura enqueue email:send --payload '{\"to\":\"ada@example.org\"}' --wait\n"
               "perdura task list --status failed",
    .flags = root_flags, .subcommands = commands, .run = run_root};
