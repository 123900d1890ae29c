/* perdura exec-cron: the handler of what `perdura schedule import crontab` made. It gets the task
 * on stdin as any process handler does and becomes the shell of its command, in the surroundings
 * cron gives one: shell, home, few variables, the crontab's own, its input on stdin. Exit code,
 * output and signals are those of the command, as nothing stands between. Not listed in help; one
 * thread. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/frame/command.h"

#define TASK_BYTES_MAX (16 * 1024 * 1024) /* payload, data and checkpoint of the largest task */
#define VARIABLES_MAX 512
#define CONTROL_FD 3

struct cron_run {
    struct call *call;
    struct str command;
    struct str shell;
    struct str input;
    struct str user;     /* absent: the user who runs the worker, but never root */
    struct str variables; /* JSON object or absent */
    const struct passwd *account;
    char **environment;
    uint32_t environment_count;
};

/* The sentence becomes the task's error; trying again would not help. */
static int refuse(struct call *call)
{
    BUF_AUTO struct buf line = BUF_INIT(4096);

    if (getenv("PERDURA_TASK_ID") && fcntl(CONTROL_FD, F_GETFD) >= 0) {
        buf_text(&line, "{\"fail\":{\"error\":");
        json_write_string(&line, str_of(call->err.text));
        buf_text(&line, ",\"retryable\":false}}\n");
        if (write(CONTROL_FD, line.data, line.len) < 0)
            call->err.field[0] = '\0'; /* the worker does not listen; stderr says it too */
    }
    return -(int)call->err.code;
}

/* ---- the task ---- */

static int read_stdin(struct call *call, struct str *text)
{
    struct buf input = BUF_INIT(TASK_BYTES_MAX);
    ssize_t got = 1;

    while (got != 0 && buf_reserve(&input, 65536)) {
        got = read(STDIN_FILENO, input.data + input.len, 65536);
        if (got < 0 && errno != EINTR)
            break;
        input.len += got > 0 ? (size_t)got : 0;
    }
    *text = got == 0 && !input.failed ? arena_str(&call->arena, buf_view(&input)) : STR_NONE;
    buf_deinit(&input);
    if (text->data)
        return 0;
    return err_set(&call->err, ERR_IO, "cannot read the task from stdin; this command is a "
                   "handler, 'perdura schedule import --help' says how it is used");
}

/* A string member of the payload; absent and null are STR_NONE. */
static int take_text(struct cron_run *run, struct str payload, const char *name, struct str *text)
{
    struct call *call = run->call;
    struct str value = json_get(payload, str_of(name));

    *text = STR_NONE;
    if (!value.data || json_kind(value) == JSON_NULL)
        return 0;
    *text = json_string(value, &call->arena);
    if (text->data && !memchr(text->data, '\0', text->len))
        return 0;
    return err_set(&call->err, ERR_INVALID, "the payload's '%s' must be text", name);
}

static int take_task(struct cron_run *run)
{
    struct call *call = run->call;
    struct str payload = STR_NONE;
    struct str text;

    TRY(read_stdin(call, &text));
    if (json_check_ours(text, &text, NULL) == 0 && json_kind(text) == JSON_OBJECT)
        payload = json_get(text, STR("payload"));
    if (!payload.data || json_kind(payload) != JSON_OBJECT)
        return err_set(&call->err, ERR_INVALID, "stdin is not a task with a payload such as "
                       "{\"command\":\"echo hello\"}");
    TRY(take_text(run, payload, "command", &run->command));
    TRY(take_text(run, payload, "shell", &run->shell));
    TRY(take_text(run, payload, "stdin", &run->input));
    TRY(take_text(run, payload, "user", &run->user));
    run->variables = json_get(payload, STR("env"));
    if (run->command.len == 0)
        return err_set(&call->err, ERR_INVALID, "the payload has no 'command'");
    return 0;
}

/* ---- who ---- */

static int find_account(struct cron_run *run)
{
    struct call *call = run->call;
    const char *name = arena_cstr(&call->arena, run->user);

    if (!run->user.data && geteuid() == 0)
        return err_set(&call->err, ERR_FORBIDDEN, "the task names no user, and this worker runs as "
                       "root; import the crontab again, or name one in the payload's 'user' (name "
                       "root, too)");
    errno = 0;
    run->account = run->user.data ? getpwnam(name ? name : "") : getpwuid(geteuid());
    if (run->account)
        return 0;
    if (run->user.data)
        return err_set(&call->err, ERR_INVALID, "there is no user '" STR_FMT "' on this machine",
                       STR_ARG(run->user));
    return err_set(&call->err, ERR_INVALID, "the user with the number %u has no entry in "
                   "/etc/passwd", (unsigned)geteuid());
}

static int become(struct cron_run *run)
{
    struct call *call = run->call;
    const struct passwd *account = run->account;

    if (account->pw_uid == geteuid())
        return 0;
    if (geteuid() != 0)
        return err_set(&call->err, ERR_FORBIDDEN, "only a worker that runs as root can run this "
                       "command as '%s'", account->pw_name);
    if (initgroups(account->pw_name, account->pw_gid) == 0 && setgid(account->pw_gid) == 0 &&
        setuid(account->pw_uid) == 0)
        return 0;
    return err_set(&call->err, ERR_IO, "cannot become '%s': %s", account->pw_name,
                   strerror(errno));
}

/* ---- surroundings ---- */

/* Replaces a variable of the same name. */
static int put(struct cron_run *run, struct str name, struct str value)
{
    struct call *call = run->call;
    struct str text = arena_format(&call->arena, STR_FMT "=" STR_FMT, STR_ARG(name),
                                   STR_ARG(value));
    uint32_t at = 0;

    if (!text.data || !run->environment || run->environment_count == VARIABLES_MAX)
        return err_set(&call->err, ERR_TOO_LARGE, "more than %d variables", VARIABLES_MAX);
    while (at < run->environment_count &&
           strncmp(run->environment[at], text.data, name.len + 1) != 0)
        at++;
    run->environment[at] = (char *)text.data; /* ours: execve wants it so, and does not write */
    if (at == run->environment_count)
        run->environment_count++;
    return 0;
}

/* What the worker says about the task, and of its own what a login would have. */
static int put_inherited(struct cron_run *run)
{
    static const char *const kept[] = {"PERDURA_", "LANG=", "LC_", "TZ=", "TMPDIR="};
    int rc = 0;

    for (char **variable = environ; *variable && rc == 0; variable++)
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            if (strncmp(*variable, kept[i], strlen(kept[i])) == 0) {
                size_t len = strcspn(*variable, "=");

                rc = put(run, str_span(*variable, len), str_of(*variable + len + 1));
            }
    return rc;
}

/* Which task it is, and where it is to be reported, is not the crontab's to say. */
static bool is_ours(struct str name)
{
    return name.len >= strlen("PERDURA_") && memcmp(name.data, "PERDURA_", strlen("PERDURA_")) == 0;
}

static int put_crontab(struct cron_run *run)
{
    struct call *call = run->call;
    struct json_member member;
    struct json_iter iter;
    int rc = 0;

    if (!run->variables.data || json_kind(run->variables) != JSON_OBJECT)
        return 0;
    json_begin(run->variables, &iter);
    while (rc == 0 && json_next_member(&iter, &member)) {
        struct str name = json_decode_key(member.key, &call->arena);
        struct str value = json_string(member.value, &call->arena);

        if (!value.data || name.len == 0 || memchr(name.data, '=', name.len))
            rc = err_set(&call->err, ERR_INVALID, "the payload's 'env' must have names and texts");
        else if (!is_ours(name))
            rc = put(run, name, value);
    }
    return rc;
}

/* As crontab(5) has it: the crontab may set all but who it is. */
static int make_environment(struct cron_run *run)
{
    const struct passwd *account = run->account;

    run->environment = arena_alloc_array(&run->call->arena, VARIABLES_MAX + 1,
                                         sizeof *run->environment);
    TRY(put_inherited(run));
    TRY(put(run, STR("HOME"), str_of(account->pw_dir)));
    TRY(put(run, STR("SHELL"), STR("/bin/sh")));
    TRY(put(run, STR("PATH"), STR("/usr/bin:/bin")));
    TRY(put_crontab(run));
    TRY(put(run, STR("LOGNAME"), str_of(account->pw_name)));
    return put(run, STR("USER"), str_of(account->pw_name));
}

static const char *variable(const struct cron_run *run, const char *name)
{
    size_t len = strlen(name);

    for (uint32_t i = 0; i < run->environment_count; i++)
        if (strncmp(run->environment[i], name, len) == 0)
            return run->environment[i] + len;
    return "";
}

/* The input lies in memory, so that a command that reads none of it does not block the worker. */
static int give_input(struct cron_run *run)
{
    struct call *call = run->call;
    int fd = run->input.len > 0 ? memfd_create("stdin", MFD_CLOEXEC)
                                : open("/dev/null", O_RDONLY | O_CLOEXEC);
    size_t written = 0;

    while (fd >= 0 && written < run->input.len) {
        ssize_t got = write(fd, run->input.data + written, run->input.len - written);

        if (got < 0 && errno != EINTR)
            break;
        written += got > 0 ? (size_t)got : 0;
    }
    if (fd < 0 || written < run->input.len || (run->input.len > 0 && lseek(fd, 0, SEEK_SET) < 0) ||
        dup2(fd, STDIN_FILENO) < 0)
        return err_set(&call->err, ERR_IO, "cannot give the command its input: %s",
                       strerror(errno));
    return 0;
}

static int run_shell(struct cron_run *run)
{
    struct call *call = run->call;
    const char *home = variable(run, "HOME=");
    const char *shell = run->shell.len ? arena_cstr(&call->arena, run->shell)
                                       : variable(run, "SHELL=");
    char *command = arena_cstr(&call->arena, run->command);
    char *arguments[] = {(char *)shell, (char *)"-c", command, NULL};

    if (chdir(home) < 0 && chdir("/") < 0) /* as Debian's cron: an account without a home still
                                            * runs */
        return err_set(&call->err, ERR_IO, "cannot change to the home folder '%s': %s", home,
                       strerror(errno));
    execve(shell, arguments, run->environment);
    return err_set(&call->err, ERR_IO, "cannot run the shell '%s': %s", shell, strerror(errno));
}

static int run_exec(struct call *call)
{
    struct cron_run run = {.call = call};
    int rc = take_task(&run);

    if (rc == 0)
        rc = find_account(&run);
    if (rc == 0)
        rc = make_environment(&run);
    if (rc == 0)
        rc = give_input(&run);
    if (rc == 0)
        rc = become(&run);
    if (rc == 0)
        rc = run_shell(&run);
    (void)rc;
    return refuse(call);
}

const struct command command_exec_cron = {
    .name = "exec-cron", .summary = "Run the command of a task that came from a crontab",
    .details = "A handler: it reads the task from stdin. Declare it as command: [\"perdura\", "
               "\"exec-cron\"] for the type cron:*.",
    .example = "echo '{\"payload\":{\"command\":\"echo hello\"}}' | perdura exec-cron",
    .run = run_exec, .hidden = true};
