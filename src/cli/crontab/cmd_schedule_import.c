/* perdura schedule import crontab FILE: turns a crontab into jobs with schedules and prints the
 * result of every line. One thread. */
#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/crontab/crontab_import.h"
#include "cli/plans/local_time.h"
#include "cli/plans/schedule_commands.h"

#define JSON_BYTES_MAX (64 * 1024 * 1024)

static const char *const words[] = {
    [IMPORT_REFUSED] = "refused", [IMPORT_PLANNED] = "would be taken", [IMPORT_TAKEN] = "taken",
    [IMPORT_THERE] = "already there", [IMPORT_CHANGED] = "changed", [IMPORT_NOTED] = "note"};

static const char *const wire_words[] = {
    [IMPORT_REFUSED] = "refused", [IMPORT_PLANNED] = "planned", [IMPORT_TAKEN] = "taken",
    [IMPORT_THERE] = "already_there", [IMPORT_CHANGED] = "changed", [IMPORT_NOTED] = "note"};

static uint32_t count_of(const struct import *import, enum import_result result)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < import->count; i++)
        count += import->lines[i].result == result;
    return count;
}

static uint32_t count_good(const struct import *import)
{
    return count_of(import, IMPORT_PLANNED) + count_of(import, IMPORT_TAKEN) +
           count_of(import, IMPORT_THERE) + count_of(import, IMPORT_CHANGED);
}

/* ---- report ---- */

static enum colour colour_of(enum import_result result)
{
    return result == IMPORT_REFUSED  ? COLOUR_RED
           : result == IMPORT_NOTED  ? COLOUR_YELLOW
           : result == IMPORT_THERE  ? COLOUR_DIM
                                     : COLOUR_GREEN;
}

static void add_line(struct import *import, struct table *table, const struct import_line *planned)
{
    struct arena *arena = &import->call->arena;
    const struct crontab_line *line = planned->line;
    bool is_entry = line->kind == CRONTAB_ENTRY;
    struct str when = line->expression;

    if (is_entry && line->every_s > 0)
        when = arena_format(arena, "@every %llds", (long long)line->every_s);
    table_cell(table, arena_format(arena, "%u", line->number), COLOUR_NONE);
    table_cell(table, str_of(words[planned->result]), colour_of(planned->result));
    table_cell(table, is_entry ? when : STR(""), COLOUR_NONE);
    table_cell(table, is_entry ? line->command : line->text, COLOUR_NONE);
    table_cell(table, planned->note.data ? planned->note : planned->name, COLOUR_DIM);
}

static void print_gone(struct import *import)
{
    struct call *call = import->call;

    for (uint32_t i = 0; i < import->gone_count; i++) {
        const struct import_gone *gone = &import->gone[i];

        terminal_line_clean(
            &call->out, COLOUR_YELLOW,
            arena_format(&call->arena, "not in the file any more: " STR_FMT ", %s",
                         STR_ARG(gone->name),
                         gone->deleted ? "deleted" : "still runs; --prune deletes it"));
    }
}

/* The path of this program, so that a worker finds the same one. */
static struct str own_path(struct arena *arena)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path);

    return len > 0 && (size_t)len < sizeof path ? arena_str(arena, str_span(path, (size_t)len))
                                                : STR("perdura");
}

static struct str handlers_text(struct call *call)
{
    BUF_AUTO struct buf out = BUF_INIT(2 * PATH_MAX);

    buf_text(&out, "handlers:\n  - type: " IMPORT_TASK_TYPE "\n    command: [");
    json_write_string(&out, own_path(&call->arena));
    buf_text(&out, ", \"exec-cron\"]\n");
    return arena_str(&call->arena, buf_view(&out));
}

static void print_summary(struct import *import)
{
    struct call *call = import->call;
    static const enum import_result told[] = {IMPORT_PLANNED, IMPORT_TAKEN, IMPORT_CHANGED,
                                              IMPORT_THERE, IMPORT_REFUSED};
    BUF_AUTO struct buf line = BUF_INIT(1024);

    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        uint32_t count = count_of(import, told[i]);

        if (count > 0)
            buf_format(&line, "%s%u %s", line.len ? ", " : "", count, words[told[i]]);
    }
    if (line.len == 0)
        buf_text(&line, "there is no line to import");
    if (count_good(import) > 0)
        buf_format(&line, "; times are those of " STR_FMT " unless the crontab sets another zone",
                   STR_ARG(import->timezone));
    if (count_good(import) > 0 && import->user.data)
        buf_format(&line, "; commands run as " STR_FMT, STR_ARG(import->user));
    terminal_line(&call->out, COLOUR_BOLD, buf_view(&line));
}

static void print_report(struct import *import)
{
    struct call *call = import->call;
    struct table table;

    table_init(&table, &call->arena);
    table_column(&table, "LINE", true, false);
    table_column(&table, "RESULT", false, false);
    table_column(&table, "WHEN", false, false);
    table_column(&table, "COMMAND", false, true);
    table_column(&table, "JOB OR REASON", false, true);
    for (uint32_t i = 0; i < import->count; i++)
        add_line(import, &table, &import->lines[i]);
    if (import->count > 0)
        table_print(&table, &call->out);
    print_gone(import);
    if (import->count > 0)
        fputc('\n', call->out.file);
    print_summary(import);
    if (count_of(import, IMPORT_PLANNED) + count_of(import, IMPORT_TAKEN) == 0)
        return;
    fputs("\nA handler of the server or of a worker runs the commands. In its "
          "perdura.yaml:\n\n", call->out.file);
    terminal_print(&call->out, COLOUR_NONE, handlers_text(call));
}

static void write_line(const struct import_line *planned, struct buf *out)
{
    const struct crontab_line *line = planned->line;

    json_comma(out);
    buf_format(out, "{\"line\":%u,", line->number);
    json_write_member_string(out, "result", str_of(wire_words[planned->result]));
    json_write_member_string(out, "text", line->text);
    json_write_member_string(out, "note", planned->note);
    json_write_member_string(out, "job", planned->name);
    json_write_member_string(out, "job_id", planned->job_id);
    json_write_member_string(out, "timezone", planned->timezone);
    buf_text(out, ",\"payload\":");
    buf_str(out, planned->payload.data ? planned->payload : STR("null"));
    buf_byte(out, '}');
}

static void print_json(struct import *import)
{
    BUF_AUTO struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_text(&out, "{\"items\":[");
    for (uint32_t i = 0; i < import->count; i++)
        write_line(&import->lines[i], &out);
    buf_text(&out, "],\"gone\":[");
    for (uint32_t i = 0; i < import->gone_count; i++) {
        buf_text(&out, i > 0 ? ",{" : "{");
        json_write_member_string(&out, "job", import->gone[i].name);
        json_write_member_string(&out, "job_id", import->gone[i].id);
        buf_format(&out, ",\"deleted\":%s}", import->gone[i].deleted ? "true" : "false");
    }
    buf_text(&out, "],");
    json_write_member_string(&out, "handlers", handlers_text(import->call));
    buf_byte(&out, '}');
    terminal_json(&import->call->out, buf_view(&out));
}

/* ---- what is imported ---- */

/* The whole path, so that the same file has the same jobs wherever it is imported from. */
static struct str label_of(struct call *call, struct str file)
{
    char path[PATH_MAX];
    const char *name = arena_cstr(&call->arena, file);

    if (call_given(call, "name"))
        return call_given_text(call, "name");
    if (str_is(file, "-"))
        return STR("stdin");
    return name && realpath(name, path) ? arena_str(&call->arena, str_of(path)) : file;
}

/* A user's crontab runs as that user, named by its place or by --user; otherwise as the caller. */
static struct str user_of(struct call *call, struct str label)
{
    struct str user = crontab_path_user(label);
    const struct passwd *account;

    if (user.data)
        return user;
    account = getpwuid(geteuid());
    return account ? arena_str(&call->arena, str_of(account->pw_name)) : STR_NONE;
}

static int check_words(struct call *call)
{
    if (call->args_count == 2 && str_is(call->args[0], "crontab")) {
        if (str_is(call->args[1], "-") && call_given(call, "prune") && !call_given(call, "name"))
            return err_set(&call->err, ERR_USAGE, "--prune with stdin needs --name, so that it "
                           "deletes no jobs of another crontab");
        return 0;
    }
    return err_set(&call->err, ERR_USAGE, "say what to import: 'perdura schedule import crontab "
                   "FILE', with - for stdin");
}

static int apply(struct import *import)
{
    struct call *call = import->call;
    CLIENT_AUTO struct client client = {0};

    if (call_given(call, "dry-run"))
        return 0;
    TRY(client_open(&client, call));
    return import_apply(import, &client, call_given(call, "prune"));
}

/* Commands that begin with the name of a user are lines of a system's crontab, mostly. */
static void hint_system(struct import *import)
{
    struct call *call = import->call;
    uint32_t like_users = 0;

    for (uint32_t i = 0; i < import->count; i++) {
        const struct crontab_line *line = import->lines[i].line;
        size_t len = 0;
        const char *word;

        if (line->kind != CRONTAB_ENTRY)
            continue;
        while (len < line->command.len && line->command.data[len] != ' ' &&
               line->command.data[len] != '\t')
            len++;
        word = arena_cstr(&call->arena, str_span(line->command.data, len));
        like_users += len < line->command.len && word && getpwnam(word) != NULL;
    }
    if (like_users > 0)
        terminal_line(&call->notes, COLOUR_YELLOW,
                      arena_format(&call->arena, "%u of the commands begin%s with the name of a "
                                   "user; if these are lines as in /etc/crontab, import them with "
                                   "--system", like_users, like_users == 1 ? "s" : ""));
}

static int run_import(struct call *call)
{
    struct import import = {.call = call, .user = call_given_text(call, "user"),
                            .timezone = call_text(call, "tz")};
    struct crontab crontab;
    struct str text;
    bool system_form;

    TRY(check_words(call));
    TRY(call_read_file(call, call->args[1], CRONTAB_BYTES_MAX, &text));
    import.label = label_of(call, call->args[1]);
    system_form = call_given(call, "system") || crontab_path_is_system(import.label);
    if (!import.user.data && !system_form)
        import.user = user_of(call, call_given(call, "name") ? STR("-") : import.label);
    if (str_is(import.timezone, "local"))
        import.timezone = local_zone_name(&call->arena);
    TRY(crontab_parse(text, system_form, &call->arena, &crontab, &call->err));
    TRY(import_plan(&import, &crontab));
    TRY(apply(&import));
    if (call_given(call, "json"))
        print_json(&import);
    else
        print_report(&import);
    if (!system_form)
        hint_system(&import);
    if (call_given(call, "strict") && count_of(&import, IMPORT_REFUSED) > 0)
        return 1;
    return count_good(&import) > 0 ? 0 : 1;
}

static const struct flag flags[] = {
    {.name = "system", .type = FLAG_BOOL,
     .help = "lines name a user before the command, as in /etc/crontab and /etc/cron.d, which "
             "are recognised"},
    {.name = "user", .type = FLAG_TEXT, .value = "USER",
     .help = "user who runs the commands of a user's crontab (default: the user whose file in "
             "/var/spool/cron it is, or you)"},
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .fallback = "local",
     .help = "time zone where the crontab sets no CRON_TZ; local = this machine's"},
    {.name = "timeout", .type = FLAG_SECONDS, .value = "D", .fallback = "1d",
     .help = "longest run of a command"},
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .help = "queue of its tasks"},
    {.name = "misfire", .type = FLAG_WORD, .value = "POLICY", .choices = "skip|fire_once|fire_all",
     .help = "what to do with times missed while no server ran (fire_once; cron would skip them)"},
    {.name = "overlap", .type = FLAG_WORD, .value = "POLICY",
     .choices = "allow|skip|queue|replace",
     .help = "what to do when an earlier run has not ended (allow, as cron does)"},
    {.name = "prune", .type = FLAG_BOOL,
     .help = "delete jobs of an earlier import whose lines are gone"},
    {.name = "name", .type = FLAG_TEXT, .value = "NAME",
     .help = "name by which a later import finds its jobs (default: the file's path, or stdin)"},
    {.name = "strict", .type = FLAG_BOOL, .help = "exit code 1 when any line was refused"},
    {.name = "dry-run", .type = FLAG_BOOL, .help = "only say what would be done; needs no server"},
    {0}};

const struct command schedule_import = {
    .name = "import", .summary = "Import a crontab", .arguments = "crontab FILE",
    .details = "Every line becomes a job with a schedule; its tasks have the type " IMPORT_TASK_TYPE
               " and the handler 'perdura exec-cron' runs them, with the shell, variables, user "
               "and input cron would give them. A command is not retried. Importing again changes "
               "only what changed in the file.",
    .example = "perdura schedule import crontab /etc/crontab --dry-run\n"
               "crontab -l | perdura schedule import crontab -",
    .flags = flags, CLIENT_COMMAND(1, 2, run_import)};
