/* perdura man [NAME]: the manual pages as scdoc source, from the command and settings tables. The
 * build pipes them through scdoc; not listed in help. One thread. */
#include "cli/frame/command.h"
#include "cli/config/config.h"

#define PAGE_BYTES_MAX (1024 * 1024)

/* scdoc reads * _ \ < and # specially, and a dash that begins a text as a list; a backslash makes
 * any of them plain. */
static void put(struct buf *out, const char *text)
{
    if (*text == '-')
        buf_byte(out, '\\');
    for (; *text; text++) {
        if (strchr("*_\\<#`", *text))
            buf_byte(out, '\\');
        buf_byte(out, *text);
    }
}

static void header(struct buf *out, const char *name, int section, const char *summary)
{
    buf_format(out, "%s(%d)\n\n# NAME\n\n%s - ", name, section, name);
    put(out, summary);
    buf_text(out, "\n\n");
}

static void flag_item(struct buf *out, const struct flag *flag)
{
    buf_format(out, "*--%s*", flag->name);
    if (flag->value) {
        buf_text(out, " _");
        put(out, flag->value);
        buf_text(out, "_");
    }
    buf_text(out, "\n\t");
    put(out, flag->help);
    if (flag->choices) {
        buf_text(out, ": ");
        put(out, flag->choices);
    }
    buf_byte(out, '.');
    if (flag->fallback) {
        buf_text(out, " Default: ");
        put(out, flag->fallback);
        buf_byte(out, '.');
    }
    if (flag->env) {
        buf_text(out, " Environment: ");
        put(out, flag->env);
        buf_byte(out, '.');
    }
    buf_text(out, "\n\n");
}

static void examples(struct buf *out, const char *example)
{
    buf_text(out, "# EXAMPLES\n\n```\n");
    buf_text(out, example);
    buf_text(out, "\n```\n\n");
}

static void flag_list(struct buf *out, const struct command *command)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++)
        flag_item(out, flag);
}

static void details(struct buf *out, const struct command *command)
{
    if (!command->details)
        return;
    put(out, command->details);
    buf_text(out, "\n\n");
}

static void subcommand(struct buf *out, const struct command *parent, const struct command *sub)
{
    buf_format(out, "## perdura %s %s", parent->name, sub->name);
    if (sub->arguments) {
        buf_byte(out, ' ');
        put(out, sub->arguments);
    }
    buf_text(out, "\n\n");
    put(out, sub->summary);
    buf_text(out, ".\n\n");
    details(out, sub);
    flag_list(out, sub);
}

static void exit_codes(struct buf *out)
{
    buf_text(out, "# EXIT STATUS\n\n*0*\n\tSuccess.\n\n*1*\n\tFailure.\n\n*2*\n\tWrong usage.\n\n"
                  "*3*\n\tWhat was asked for does not exist.\n\n");
}

static void command_page(struct buf *out, const struct command *command)
{
    char name[64];

    snprintf(name, sizeof name, "perdura-%s", command->name);
    header(out, name, 1, command->summary);
    buf_format(out, "# SYNOPSIS\n\n*perdura %s*", command->name);
    if (command->subcommands)
        buf_text(out, " _COMMAND_");
    if (command->arguments) {
        buf_text(out, " _");
        put(out, command->arguments);
        buf_text(out, "_");
    }
    buf_text(out, " [flags]\n\n# DESCRIPTION\n\n");
    put(out, command->summary);
    buf_text(out, ".\n\n");
    details(out, command);
    if (command->subcommands) {
        buf_text(out, "# COMMANDS\n\n");
        for (uint32_t i = 0; command->subcommands[i]; i++)
            subcommand(out, command, command->subcommands[i]);
    } else {
        buf_text(out, "# OPTIONS\n\n");
        flag_list(out, command);
    }
    examples(out, command->example);
    exit_codes(out);
    buf_text(out, "# SEE ALSO\n\n*perdura*(1), *perdura.yaml*(5)\n");
}

static void root_page(struct buf *out)
{
    header(out, "perdura", 1, "durable task queue, scheduler and crash recovery");
    buf_text(out, "# SYNOPSIS\n\n*perdura* _COMMAND_ [flags]\n\n# DESCRIPTION\n\n");
    put(out, command_root.summary);
    buf_text(out, ". Client commands speak HTTP to a server; *serve*, *migrate*, *verify*, "
                  "*doctor* and *bench* open a store themselves.\n\n# COMMANDS\n\n");
    for (uint32_t i = 0; command_root.subcommands[i]; i++) {
        const struct command *command = command_root.subcommands[i];

        if (command->hidden)
            continue;
        buf_format(out, "*perdura-%s*(1)\n\t", command->name);
        put(out, command->summary);
        buf_text(out, ".\n\n");
    }
    buf_text(out, "# ENVIRONMENT\n\n"
                  "A flag beats the environment, which beats the configuration file.\n\n"
                  "*PERDURA\\_SERVER*, *PERDURA\\_TOKEN*, *PERDURA\\_TOKEN\\_FILE*\n"
                  "\tServer and token of client commands, or a file with the token.\n\n"
                  "*PERDURA\\_STORE*, *DATABASE\\_URL*\n\tThe store.\n\n"
                  "*DB\\_HOST*, *DB\\_PORT*, *DB\\_NAME*, *DB\\_USER*, *DB\\_PASSWORD*, "
                  "*DB\\_SCHEMA*\n\tThe store in parts; each one that is absent falls back to "
                  "*API\\_PG\\_DB\\_HOST* and so on.\n\n"
                  "*PERDURA\\_LISTEN*, *WORKER\\_TIMEOUT*\n\tAs the settings of these names.\n\n"
                  "*NO\\_COLOR*\n\tNo colours, when set.\n\n");
    examples(out, command_root.example);
    exit_codes(out);
    buf_text(out, "# SEE ALSO\n\n*perdura.yaml*(5)\n");
}

static void setting_items(struct buf *out, const struct config_record *record)
{
    for (const struct config_field *field = record->fields; field->key; field++) {
        if (field->outside_file)
            continue;
        buf_byte(out, '*');
        put(out, field->key);
        buf_text(out, "*\n\t");
        put(out, field->help);
        buf_byte(out, '.');
        if (field->fallback) {
            buf_text(out, " Default: ");
            put(out, field->fallback);
            buf_byte(out, '.');
        }
        if (field->env || field->flag) {
            buf_text(out, " Also: ");
            put(out, field->env ? field->env : "");
            buf_text(out, field->env && field->flag ? ", --" : field->flag ? "--" : "");
            put(out, field->flag ? field->flag : "");
            buf_byte(out, '.');
        }
        buf_text(out, "\n\n");
    }
}

static void record_sections(struct buf *out, const struct config_record *record)
{
    for (const struct config_field *field = record->fields; field->key; field++) {
        if (field->kind != CONFIG_LIST)
            continue;
        buf_text(out, "# ENTRIES OF ");
        for (const char *at = field->key; *at; at++) {
            if (*at == '_')
                buf_byte(out, '\\');
            buf_byte(out, *at >= 'a' && *at <= 'z' ? (char)(*at - 32) : *at);
        }
        buf_text(out, "\n\n");
        setting_items(out, field->record);
        record_sections(out, field->record);
    }
}

static void settings_page(struct buf *out)
{
    header(out, "perdura.yaml", 5, "configuration of perdura");
    buf_text(out, "# DESCRIPTION\n\nYAML, read by *serve*, *worker* and the commands that open a "
                  "store: the file given with *--config*, else _perdura.yaml_ in the current "
                  "folder. Unknown keys are refused. Every key is optional. A dot marks a group: "
                  "_retention.logs_ is the key _logs_ under _retention_. Durations are written "
                  "500ms, 30s, 5m, 2h, 1d; rates 100/s or 5/s burst 10.\n\n# SETTINGS\n\n");
    setting_items(out, &config_root);
    record_sections(out, &config_root);
    buf_text(out, "# SEE ALSO\n\n*perdura*(1), *perdura-serve*(1), *perdura-doctor*(1)\n");
}

/* "", "perdura.yaml", or a command; "--list" is what a build wants to loop over. */
static int run(struct call *call)
{
    BUF_AUTO struct buf out = BUF_INIT(PAGE_BYTES_MAX);
    const struct command *command = NULL;
    int rc = 0;

    if (call_given(call, "list")) {
        buf_text(&out, "perdura.1\nperdura.yaml.5\n");
        for (uint32_t i = 0; command_root.subcommands[i]; i++)
            if (!command_root.subcommands[i]->hidden)
                buf_format(&out, "perdura-%s.1\n", command_root.subcommands[i]->name);
    } else if (call->args_count == 0 || str_is(call->args[0], "perdura")) {
        root_page(&out);
    } else if (str_is(call->args[0], "perdura.yaml")) {
        settings_page(&out);
    } else {
        struct str name = call->args[0];

        if (str_starts(name, STR("perdura-")))
            name = str_span(name.data + 8, name.len - 8);
        command = command_find(&command_root, name);
        if (command)
            command_page(&out, command);
        else
            rc = err_set(&call->err, ERR_NOT_FOUND, "there is no manual page for '" STR_FMT
                         "'; 'perdura man --list' lists them", STR_ARG(call->args[0]));
    }
    terminal_print(&call->out, COLOUR_NONE, buf_view(&out));
    return rc;
}

static const struct flag flags[] = {
    {.name = "list", .type = FLAG_BOOL, .help = "the names of all pages"}, {0}};

const struct command command_man = {
    .name = "man", .summary = "Print a manual page as scdoc source", .arguments = "[NAME]",
    .example = "perdura man enqueue | scdoc > perdura-enqueue.1", .flags = flags, .args_max = 1,
    .run = run, .hidden = true};
