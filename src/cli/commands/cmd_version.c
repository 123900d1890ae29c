/* perdura version and perdura help. One thread. */
#include "base/embedded.h"
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

static bool has_grpc(void)
{
#ifdef PERDURA_GRPC
    return true;
#else
    return false;
#endif
}

static bool has_rabbitmq(void)
{
#ifdef PERDURA_RABBITMQ
    return true;
#else
    return false;
#endif
}

static bool has_dashboard(void)
{
    return embedded_find("dashboard/index.html") != NULL;
}

static bool has_faults(void)
{
#ifdef PERDURA_FAULTS
    return true;
#else
    return false;
#endif
}

/* What a build may have or not. */
static const struct feature {
    const char *name;
    bool (*is_there)(void);
} features[] = {{"dashboard", has_dashboard}, {"faults", has_faults}, {"grpc", has_grpc},
                {"rabbitmq", has_rabbitmq}};

static int print_features(struct call *call, bool json)
{
    size_t count = sizeof features / sizeof *features;

    if (json)
        fputs("{\"version\":\"" PERDURA_VERSION "\",\"features\":{", call->out.file);
    else
        version_print(call, false);
    for (size_t i = 0; i < count; i++)
        if (json)
            fprintf(call->out.file, "%s\"%s\":%s", i ? "," : "", features[i].name,
                    features[i].is_there() ? "true" : "false");
        else
            fprintf(call->out.file, "%-10s %s\n", features[i].name,
                    features[i].is_there() ? "yes" : "no");
    if (json)
        fputs("}}\n", call->out.file);
    return 0;
}

static int run_version(struct call *call)
{
    bool json = call_given(call, "json");

    return call_given(call, "features") ? print_features(call, json) : version_print(call, json);
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

static const struct flag version_flags[] = {
    {.name = "features", .type = FLAG_BOOL,
     .help = "also list what this build has: the dashboard, gRPC, RabbitMQ, fault points"},
    {0}};

const struct command command_version = {
    .name = "version", .summary = "Print the version", .example = "perdura version --features",
    .flags = version_flags, .groups = FLAGS_JSON, .run = run_version};

const struct command command_help = {
    .name = "help", .summary = "Show help, for one command too", .arguments = "[COMMAND…]",
    .example = "perdura help task list", .args_max = 4, .run = run_help};
