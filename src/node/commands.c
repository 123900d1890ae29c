/* See the header. The main thread, at the start. */
#include "node/commands.h"

#include "base/buf.h"
#include "node/node.h"
#include "store/store.h"
#include "worker/process/identity.h"
#include "worker/process/process.h"
#include "worker/process/process_cgroup.h"
#include "worker/process/process_spawner.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_BYTES_MAX 16384

_Static_assert(sizeof NODE_SPAWN_NAME == sizeof SPAWNER_NAME, "one name for one program");

_Noreturn void node_spawn_main(void)
{
    process_spawner_main();
}

/* The file and its key, where the store is a file. */
static void add_store(const struct settings *settings, struct buf *files)
{
    struct str path = settings->store;
    char shown[1024];

    if (str_starts(path, STR("sqlite:")))
        path = str_span(path.data + 7, path.len - 7);
    store_shown(path, shown, sizeof shown);
    if (strstr(shown, "://"))
        return;
    buf_text(files, shown);
    if (!settings->logs.key.data)
        buf_format(files, ", %s.log-key", shown);
}

static void add_file(struct buf *files, struct str path)
{
    if (path.data)
        buf_format(files, "%s" STR_FMT, files->len ? ", " : "", STR_ARG(path));
}

static void look_at_tools(const struct settings *settings, struct arena *arena,
                          struct command_risks *risks)
{
    for (uint32_t i = 0; i < settings->agents.tools_count; i++) {
        const struct tool_rule *tool = &settings->agents.tools[i];
        const struct handler_rule rule = {.type = tool->name, .command = tool->command,
                                          .user = tool->user, .group = tool->group};
        struct identity identity;
        struct err err = {0};

        if (!tool->command)
            continue;
        risks->commands++;
        if (identity_of_rule(&rule, arena, &identity, &err) < 0)
            risks->refusal = arena_str(arena, str_of(err.text));
        else if (!identity.ids.is_set)
            risks->shared++;
    }
}

static void look_at_users(const struct settings *settings, struct arena *arena,
                          struct command_risks *risks)
{
    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];
        struct identity identity;
        struct err err = {0};

        if (!rule->command && !rule->validate_command)
            continue;
        risks->commands++;
        if (identity_of_rule(rule, arena, &identity, &err) < 0)
            risks->refusal = arena_str(arena, str_of(err.text));
        else if (!identity.ids.is_set)
            risks->shared++;
    }
}

void node_command_risks(const struct settings *settings, bool has_store, struct arena *arena,
                        struct command_risks *risks)
{
    BUF_AUTO struct buf files = BUF_INIT(FILES_BYTES_MAX);

    *risks = (struct command_risks){.is_root = geteuid() == 0};
    look_at_users(settings, arena, risks);
    look_at_tools(settings, arena, risks);
    if (risks->shared == 0)
        return;
    risks->is_open = has_store && !settings->access.token.data;
    risks->is_readable = faccessat(AT_FDCWD, "/proc/self/exe", R_OK, AT_EACCESS) == 0;
    if (has_store)
        add_store(settings, &files);
    if (has_store)
        add_file(&files, settings->logs.key);
    add_file(&files, settings->access.token_file);
    add_file(&files, settings->access.password_file);
    add_file(&files, settings->tls.key);
    for (uint32_t i = 0; has_store && i < settings->encryption.keys_count; i++)
        add_file(&files, settings->encryption.keys[i].file);
    if (files.len && !files.failed)
        risks->files = arena_str(arena, buf_view(&files));
}

uint32_t node_exposed_files(const struct settings *settings,
                            struct str files[NODE_SECRET_FILES_MAX])
{
    const struct str paths[NODE_SECRET_FILES_MAX] = {settings->access.token_file,
                                                     settings->access.password_file,
                                                     settings->tracing.headers_file,
                                                     settings->tls.key};
    uint32_t count = 0;
    char path[4096];
    struct stat info;

    for (size_t i = 0; i < NODE_SECRET_FILES_MAX; i++) {
        if (!paths[i].data || paths[i].len >= sizeof path)
            continue;
        snprintf(path, sizeof path, STR_FMT, STR_ARG(paths[i]));
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_mode & S_IROTH)
            files[count++] = paths[i];
    }
    return count;
}

static void warn_of_files(const struct settings *settings, struct arena *arena,
                          const struct log *log)
{
    struct str files[NODE_SECRET_FILES_MAX];
    uint32_t count = node_exposed_files(settings, files);

    for (uint32_t i = 0; i < count; i++)
        LOG(log, LOG_WARN, "secrets.readable_by_all", KS("file", files[i]),
            KS("hint", arena_format(arena, "every user of this machine can read it; run 'chmod 600 "
                                    STR_FMT "'", STR_ARG(files[i]))));
}

static void warn(const struct command_risks *risks, const struct log *log)
{
    if (risks->shared && risks->is_root)
        LOG(log, LOG_WARN, "handlers.run_as_root", KI("handlers", risks->shared),
            KC("hint", "they can read and change everything here; give them a 'user'"));
    else if (risks->shared && risks->files.data)
        LOG(log, LOG_WARN, "handlers.share_user", KI("handlers", risks->shared),
            KS("can_read", risks->files),
            KC("hint", "they run as this user; give them one of their own with 'user'"));
    if (risks->shared && !risks->is_root && risks->is_readable)
        LOG(log, LOG_WARN, "handlers.program_readable", KI("handlers", risks->shared),
            KC("hint", "a handler of an earlier run can open the memory of this program while it "
                       "starts; install it as root, mode 0711"));
    if (risks->is_root && risks->is_open)
        LOG(log, LOG_WARN, "handlers.open_as_root",
            KC("hint", "without a token every user of this machine can start handlers as root; set "
                       "PERDURA_TOKEN, or give handlers a 'user'"));
}

/* ---- programs ---- */

static bool is_program(int folder, const char *path)
{
    struct stat info;

    return fstatat(folder, path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
           faccessat(folder, path, X_OK, AT_EACCESS) == 0;
}

static const char *search_path(const struct handler_rule *rule)
{
    const char *own = getenv("PATH");

    for (char *const *at = rule->environment; at && *at; at++)
        if (strncmp(*at, "PATH=", 5) == 0)
            own = *at + 5;
    return own ? own : PROCESS_PATH_DEFAULT;
}

static bool is_in_path(int folder, const char *path, const char *name)
{
    char file[PATH_MAX];

    for (;; path++) {
        size_t len = strcspn(path, ":");
        int wrote = snprintf(file, sizeof file, "%.*s/%s", len ? (int)len : 1, len ? path : ".",
                             name);

        if (wrote > 0 && (size_t)wrote < sizeof file && is_program(folder, file))
            return true;
        path += len;
        if (!*path)
            return false;
    }
}

/* The run begins in its folder, so names that do not begin at the root are looked up there. */
bool node_program_exists(const struct handler_rule *rule, char *const *command)
{
    int folder = AT_FDCWD;
    bool found;

    if (rule->directory.data) {
        char path[PATH_MAX];
        int wrote = snprintf(path, sizeof path, STR_FMT, STR_ARG(rule->directory));

        folder = wrote > 0 && (size_t)wrote < sizeof path
                     ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        if (folder < 0)
            return false;
    }
    found = strchr(command[0], '/') ? is_program(folder, command[0])
                                    : is_in_path(folder, search_path(rule), command[0]);
    if (folder != AT_FDCWD)
        close(folder);
    return found;
}

/* Commands may hold secrets and stay out of the log. */
static void warn_missing(const struct handler_rule *rule, char *const *command, const char *what,
                         const struct log *log)
{
    if (command && !node_program_exists(rule, command))
        LOG(log, LOG_WARN, "handler.program_missing", KS("type", rule->type), KC("setting", what),
            KC("hint", "its tasks fail until the program is there; 'perdura doctor' names it"));
}

void commands_warn_missing(const struct settings *settings, bool has_store,
                           const struct log *log)
{
    if (!has_store && !settings_has_commands(settings) && settings->agents.agents_count == 0)
        LOG(log, LOG_WARN, "worker.takes_nothing", KI("handlers", settings->handlers_count),
            KC("hint", "no handler has a 'command', so this worker runs no task; give one a "
                       "command and send SIGHUP"));
    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];

        if (!has_store || settings->pool.slots != 0)
            warn_missing(rule, rule->command, "command", log);
        if (has_store)
            warn_missing(rule, rule->validate_command, "validate", log);
    }
    for (uint32_t i = 0; i < settings->agents.tools_count; i++) {
        const struct tool_rule *tool = &settings->agents.tools[i];
        const struct handler_rule rule = {.type = tool->name, .directory = tool->directory,
                                          .environment = tool->environment};

        if (!has_store || settings->pool.slots != 0)
            warn_missing(&rule, tool->command, "tools", log);
    }
}

struct str node_handler_ends(struct arena *arena)
{
    char path[PATH_MAX];

    if (process_cgroup_base(path))
        return arena_format(arena, "cgroup.kill, each run in a cgroup of its own below %s", path);
    return STR("the parents of their processes; it may not make cgroups (v2)");
}

struct spawner *commands_open(const struct settings *settings, bool has_store,
                              const struct log *log, struct err *err)
{
    struct spawner *spawner = spawner_open(true, err);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct command_risks risks;
    int rc = spawner ? 0 : -(int)err->code;

    node_command_risks(settings, has_store, &arena, &risks);
    if (rc == 0 && risks.refusal.data)
        rc = err_set(err, ERR_FORBIDDEN, STR_FMT, STR_ARG(risks.refusal));
    if (rc == 0 && risks.commands)
        rc = spawner_ready(spawner, err);
    if (rc == 0 && risks.commands)
        LOG(log, LOG_INFO, "node.handler_ends", KS("by", node_handler_ends(&arena)));
    if (rc == 0 && !settings->demo)
        warn(&risks, log);
    if (rc == 0)
        warn_of_files(settings, &arena, log);
    if (rc == 0)
        commands_warn_missing(settings, has_store, log);
    if (rc < 0) {
        spawner_close(spawner);
        spawner = NULL;
    }
    return spawner;
}
