/* perdura version and perdura help. One thread. */
#include "cli/frame/command.h"
#include "cli/commands/help_commands.h"

int version_print(struct call *call, bool json)
{
    if (json)
        fputs("{\"version\":\"" PERDURA_VERSION "\"}\n", call->out.file);
    else
        fputs("perdura " PERDURA_VERSION "\n", call->out.file);
    return 0;
}

static int run_version(struct call *call)
{
    return version_print(call, call_given(call, "json"));
}

static int run_help(struct call *call)
{
    const struct command *command;
    struct str path;
    uint32_t used;

    TRY(command_resolve(call->args, call->args_count, &call->arena, &command, &path, &used,
                        &call->err));
    if (used < call->args_count)
        return err_set(&call->err, ERR_USAGE, "'" STR_FMT "' has no subcommand '" STR_FMT "'",
                       STR_ARG(path), STR_ARG(call->args[used]));
    command_print_help(&call->out, command, path);
    return 0;
}

const struct command command_version = {
    .name = "version", .summary = "Print the version", .example = "perdura version --json",
    .groups = FLAGS_JSON, .run = run_version};

const struct command command_help = {
    .name = "help", .summary = "Show help, for one command too", .arguments = "[COMMAND…]",
    .example = "perdura help task list", .args_max = 4, .run = run_help};
