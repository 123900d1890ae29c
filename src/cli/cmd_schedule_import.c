/* perdura schedule import crontab FILE: a crontab becomes jobs with schedules, and every line is
 * told what became of it. One thread. */
#include <limits.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/crontab_import.h"
#include "cli/local_time.h"
#include "cli/schedule_commands.h"

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
    struct buf out = BUF_INIT(2 * PATH_MAX);
    struct str copy;

    buf_text(&out, "handlers:\n  - type: " IMPORT_TASK_TYPE "\n    command: [");
    json_write_string(&out, own_path(&call->arena));
    buf_text(&out, ", \"exec-cron\"]\n");
    copy = arena_str(&call->arena, buf_view(&out));
    buf_deinit(&out);
    return copy;
}

static void print_summary(struct import *import)
{
    struct call *call = import->call;
    static const enum import_result told[] = {IMPORT_PLANNED, IMPORT_TAKEN, IMPORT_CHANGED,
                                              IMPORT_THERE, IMPORT_REFUSED};
    struct buf line = BUF_INIT(1024);

    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        uint32_t count = count_of(import, told[i]);

        if (count > 0)
            buf_format(&line, "%s%u %s", line.len ? ", " : "", count, words[told[i]]);
    }
    if (line.len == 0)
        buf_text(&line, "there is no line to take");
    if (count_good(import) > 0)
        buf_format(&line, "; times are those of " STR_FMT " where the crontab says nothing else",
                   STR_ARG(import->timezone));
    terminal_line(&call->out, COLOUR_BOLD, buf_view(&line));
    buf_deinit(&line);
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
    fputs("\nThe commands are run by a handler of the server or of a worker. In its "
          "perdura.yaml:\n\n", call->out.file);
    terminal_print(&call->out, COLOUR_NONE, handlers_text(call));
}

static void write_line(const struct import_line *planned, struct buf *out)
{
    const struct crontab_line *line = planned->line;

    if (out->data[out->len - 1] != '[')
        buf_byte(out, ',');
    buf_format(out, "{\"line\":%u,", line->number);
    json_write_member_string(out, "result", str_of(wire_words[planned->result]));
    buf_byte(out, ',');
    json_write_member_string(out, "text", line->text);
    buf_byte(out, ',');
    json_write_member_string(out, "note", planned->note);
    buf_byte(out, ',');
    json_write_member_string(out, "job", planned->name);
    buf_byte(out, ',');
    json_write_member_string(out, "job_id", planned->job_id);
    buf_byte(out, ',');
    json_write_member_string(out, "timezone", planned->timezone);
    buf_text(out, ",\"payload\":");
    buf_str(out, planned->payload.data ? planned->payload : STR("null"));
    buf_byte(out, '}');
}

static void print_json(struct import *import)
{
    struct buf out = BUF_INIT(JSON_BYTES_MAX);

    buf_text(&out, "{\"items\":[");
    for (uint32_t i = 0; i < import->count; i++)
        write_line(&import->lines[i], &out);
    buf_text(&out, "],\"gone\":[");
    for (uint32_t i = 0; i < import->gone_count; i++) {
        buf_text(&out, i > 0 ? ",{" : "{");
        json_write_member_string(&out, "job", import->gone[i].name);
        buf_byte(&out, ',');
        json_write_member_string(&out, "job_id", import->gone[i].id);
        buf_format(&out, ",\"deleted\":%s}", import->gone[i].deleted ? "true" : "false");
    }
    buf_text(&out, "],");
    json_write_member_string(&out, "handlers", handlers_text(import->call));
    buf_byte(&out, '}');
    terminal_json(&import->call->out, buf_view(&out));
    buf_deinit(&out);
}

/* ---- what is imported ---- */

/* The whole path, so that the same file has the same jobs wherever it is imported from. */
static struct str label_of(struct call *call, struct str file, struct str user)
{
    char path[PATH_MAX];
    const char *name = arena_cstr(&call->arena, file);

    if (str_is(file, "-"))
        return user.data ? user : STR("-");
    return name && realpath(name, path) ? arena_str(&call->arena, str_of(path)) : file;
}

static int check_words(struct call *call)
{
    if (call->args_count == 2 && str_is(call->args[0], "crontab"))
        return 0;
    return err_set(&call->err, ERR_USAGE, "say what is to be imported: 'perdura schedule import "
                   "crontab FILE', with - for stdin");
}

static int apply(struct import *import)
{
    struct call *call = import->call;
    struct client client = {0};
    int rc;

    if (call_given(call, "dry-run"))
        return 0;
    rc = client_open(&client, call);
    if (rc == 0)
        rc = import_apply(import, &client, call_given(call, "prune"));
    client_close(&client);
    return rc;
}

static int run_import(struct call *call)
{
    struct import import = {.call = call, .user = call_given_text(call, "user"),
                            .timezone = call_text(call, "tz")};
    struct crontab crontab;
    struct str text;
    bool system_form;
    int rc = check_words(call);

    if (rc == 0)
        rc = call_read_file(call, call->args[1], CRONTAB_BYTES_MAX, &text);
    if (rc < 0)
        return rc;
    import.label = label_of(call, call->args[1], import.user);
    system_form = call_given(call, "system") || crontab_path_is_system(import.label);
    if (!import.user.data && !system_form)
        import.user = crontab_path_user(import.label);
    if (str_is(import.timezone, "local"))
        import.timezone = local_zone_name(&call->arena);
    rc = crontab_parse(text, system_form, &call->arena, &crontab, &call->err);
    if (rc == 0)
        rc = import_plan(&import, &crontab);
    if (rc == 0)
        rc = apply(&import);
    if (rc < 0)
        return rc;
    if (call_given(call, "json"))
        print_json(&import);
    else
        print_report(&import);
    return count_good(&import) > 0 ? 0 : 1;
}

static const struct flag flags[] = {
    {.name = "system", .type = FLAG_BOOL,
     .help = "lines have a user before the command, as in /etc/crontab and /etc/cron.d, which are "
             "known"},
    {.name = "user", .type = FLAG_TEXT, .value = "USER",
     .help = "who runs the commands of a user's crontab, where the worker runs as root; otherwise "
             "that of a file in /var/spool/cron, or the worker's"},
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .fallback = "local",
     .help = "the zone of its times where it sets no CRON_TZ; local is this machine's"},
    {.name = "timeout", .type = FLAG_SECONDS, .value = "D", .fallback = "1d",
     .help = "longest run of a command"},
    {.name = "queue", .type = FLAG_TEXT, .value = "QUEUE", .help = "the line its tasks wait in"},
    {.name = "misfire", .type = FLAG_WORD, .value = "POLICY", .choices = "skip|fire_once|fire_all",
     .help = "what becomes of times missed while nothing ran (fire_once; cron would skip them)"},
    {.name = "overlap", .type = FLAG_WORD, .value = "POLICY",
     .choices = "allow|skip|queue|replace",
     .help = "when an earlier run has not ended (allow, as cron does)"},
    {.name = "prune", .type = FLAG_BOOL,
     .help = "delete jobs of an earlier import whose lines are gone"},
    {.name = "dry-run", .type = FLAG_BOOL, .help = "only say what would be done; needs no server"},
    {0}};

const struct command schedule_import = {
    .name = "import",
    .summary = "Take a crontab over",
    .arguments = "crontab FILE",
    .details = "Every line becomes a job with a schedule; its tasks have the type " IMPORT_TASK_TYPE
               " and are run by the handler 'perdura exec-cron', with the shell, variables, user "
               "and input cron would give them. A command is not retried. Importing again changes "
               "only what changed in the file.",
    .example = "perdura schedule import crontab /etc/crontab --dry-run\n"
               "crontab -l | perdura schedule import crontab -",
    .flags = flags,
    .groups = FLAGS_CLIENT | FLAGS_JSON,
    .args_min = 1,
    .args_max = 2,
    .run = run_import,
};
