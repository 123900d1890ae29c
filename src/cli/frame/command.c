/* From words to a command: finding it, sorting flags from arguments, running it, and turning its
 * result into an exit code and at most one sentence on stderr. One thread. */
#include "cli/frame/command.h"

#include "cli/frame/suggest.h"
#include "cli/plans/zone_hint.h"

static const struct flag group_client[] = {
    {.name = "server", .type = FLAG_TEXT, .value = "URL", .env = "PERDURA_SERVER",
     .fallback = "http://127.0.0.1:7070",
     .help = "the server to talk to; the token comes from PERDURA_TOKEN, else from the file in "
             "PERDURA_TOKEN_FILE, else from token_file in perdura.yaml"},
    CLIENT_NAMESPACE_FLAG,
    CLIENT_TLS_FLAGS,
    {0}};
static const struct flag group_json[] = {
    {.name = "json", .type = FLAG_BOOL, .help = "print JSON for programs"}, {0}};
static const struct flag group_store[] = {
    {.name = "config", .type = FLAG_TEXT, .value = "FILE",
     .help = "configuration file (default: perdura.yaml in the current folder, if it exists)"},
    {.name = "store", .type = FLAG_TEXT, .value = "STORE", .fallback = "perdura.db",
     .env = "PERDURA_STORE", .help = "a file path, sqlite:PATH or postgres://…"},
    {0}};
static const struct flag group_help[] = {
    {.name = "help", .type = FLAG_BOOL, .help = "show this help"}, {0}};

/* A flag of the command itself takes the place of one that many share. */
static bool is_own(const struct command *command, const struct flag *shared)
{
    for (const struct flag *flag = command->flags; flag && flag->name; flag++)
        if (strcmp(flag->name, shared->name) == 0)
            return true;
    return false;
}

const struct flag *command_flag_at(const struct command *command, uint32_t index)
{
    static const struct flag none[] = {{0}};
    const struct flag *groups[] = {
        command->flags ? command->flags : none,
        command->groups & FLAGS_STORE ? group_store : none,
        command->groups & FLAGS_CLIENT ? group_client : none,
        command->groups & FLAGS_JSON ? group_json : none,
        group_help,
    };

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        for (const struct flag *flag = groups[i]; flag->name; flag++)
            if ((i == 0 || !is_own(command, flag)) && index-- == 0)
                return flag;
    return NULL;
}

const struct command *command_find(const struct command *parent, struct str name)
{
    for (uint32_t i = 0; parent->subcommands && parent->subcommands[i]; i++)
        if (str_is(name, parent->subcommands[i]->name))
            return parent->subcommands[i];
    return NULL;
}

static int unknown_command(const struct command *parent, struct str path, struct str word,
                           struct err *err)
{
    struct suggest suggest;

    suggest_init(&suggest, word);
    for (uint32_t i = 0; parent->subcommands[i]; i++)
        if (!parent->subcommands[i]->hidden)
            suggest_offer(&suggest, parent->subcommands[i]->name);
    if (suggest.best)
        return err_set(err, ERR_USAGE, "unknown command '" STR_FMT "%s" STR_FMT
                       "'; did you mean '%s'?", STR_ARG(path), path.len ? " " : "",
                       STR_ARG(word), suggest.best);
    return err_set(err, ERR_USAGE, "unknown command '" STR_FMT "%s" STR_FMT
                   "'; 'perdura help%s" STR_FMT "' lists what there is", STR_ARG(path),
                   path.len ? " " : "", STR_ARG(word), path.len ? " " : "", STR_ARG(path));
}

int command_resolve(const struct str *words, uint32_t words_count, struct arena *arena,
                    const struct command **command, struct str *path, uint32_t *used,
                    struct err *err)
{
    *command = &command_root;
    *path = STR("");
    *used = 0;
    while ((*command)->subcommands && *used < words_count) {
        const struct command *next = command_find(*command, words[*used]);

        if (!next)
            return unknown_command(*command, *path, words[*used], err);
        *path = arena_format(arena, STR_FMT "%s%s", STR_ARG(*path), path->len ? " " : "",
                             next->name);
        *command = next;
        (*used)++;
    }
    return 0;
}

static const struct flag *find_flag(const struct command *command, struct str name)
{
    const struct flag *flag, *second = NULL;

    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++) {
        if (str_is(name, flag->name))
            return flag;
        if (flag->also && str_is(name, flag->also))
            second = flag;
    }
    return second;
}

static int unknown_flag(struct call *call, struct str name)
{
    struct suggest suggest;
    const struct flag *flag;
    const char *space = call->path.len ? " " : "";

    suggest_init(&suggest, name);
    for (uint32_t i = 0; (flag = command_flag_at(call->command, i)) != NULL; i++)
        suggest_offer(&suggest, flag->name);
    if (suggest.best)
        return err_set(&call->err, ERR_USAGE, "'perdura%s" STR_FMT "' has no flag '--" STR_FMT
                       "'; did you mean '--%s'?", space, STR_ARG(call->path), STR_ARG(name),
                       suggest.best);
    return err_set(&call->err, ERR_USAGE, "'perdura%s" STR_FMT "' has no flag '--" STR_FMT
                   "'; 'perdura%s" STR_FMT " --help' lists its flags", space, STR_ARG(call->path),
                   STR_ARG(name), space, STR_ARG(call->path));
}

static bool is_switch(const struct flag *flag)
{
    return flag->type == FLAG_BOOL || flag->type == FLAG_NO;
}

/* One "--name[=value]"; *at moves over a value that is a word of its own. */
static int parse_flag(struct call *call, const struct str *words, uint32_t words_count,
                      uint32_t *at)
{
    struct str word = str_span(words[*at].data + 2, words[*at].len - 2);
    const char *equals = memchr(word.data, '=', word.len);
    struct str name = equals ? str_span(word.data, (size_t)(equals - word.data)) : word;
    const struct flag *flag = find_flag(call->command, name);
    struct str value = STR("");

    if (!flag)
        return unknown_flag(call, name);
    if (equals && is_switch(flag))
        return err_set(&call->err, ERR_USAGE, "--%s is a switch and takes no value", flag->name);
    if (equals) {
        value = str_span(equals + 1, word.len - name.len - 1);
    } else if (!is_switch(flag)) {
        if (*at + 1 >= words_count || str_starts(words[*at + 1], STR("--")))
            return err_set(&call->err, ERR_USAGE, "--%s needs a value: --%s %s", flag->name,
                           flag->name, flag->value);
        value = words[++*at];
    }
    if (strcmp(flag->name, "help") == 0)
        call->wants_help = true;
    call->values[call->values_count++] = (struct flag_value){flag, value};
    return 0;
}

static bool is_flag(struct str word)
{
    return word.len > 2 && str_starts(word, STR("--"));
}

/* "-h" and mistaken one-dash flags; "-" and "-5" are arguments. */
static bool is_short_flag(struct str word)
{
    return word.len >= 2 && word.data[0] == '-' && (word.data[1] < '0' || word.data[1] > '9');
}

static int parse_words(struct call *call, const struct str *words, uint32_t words_count)
{
    bool only_arguments = false;

    for (uint32_t i = 0; i < words_count; i++) {
        if (!only_arguments && str_is(words[i], "--")) {
            only_arguments = true;
        } else if (!only_arguments && is_flag(words[i])) {
            TRY(parse_flag(call, words, words_count, &i));
        } else if (!only_arguments && str_is(words[i], "-h")) {
            call->wants_help = true;
        } else if (!only_arguments && is_short_flag(words[i])) {
            return err_set(&call->err, ERR_USAGE, "unknown flag '" STR_FMT
                           "'; flags are written with two dashes, 'perdura " STR_FMT
                           " --help' lists them", STR_ARG(words[i]), STR_ARG(call->path));
        } else {
            call->args[call->args_count++] = words[i];
        }
    }
    return 0;
}

static int check_values(struct call *call)
{
    const struct command *command = call->command;

    for (uint32_t i = 0; i < call->values_count; i++)
        TRY(flag_check(call->values[i].flag, call->values[i].text, &call->err));
    if (command->subcommands && !command->run)
        return err_set(&call->err, ERR_USAGE, "'perdura " STR_FMT "' needs a subcommand; 'perdura "
                       STR_FMT " --help' lists them", STR_ARG(call->path), STR_ARG(call->path));
    if (call->args_count < command->args_min)
        return err_set(&call->err, ERR_USAGE, "'perdura " STR_FMT "' needs %s; 'perdura " STR_FMT
                       " --help' shows an example", STR_ARG(call->path), command->arguments,
                       STR_ARG(call->path));
    if (call->args_count > command->args_max)
        return err_set(&call->err, ERR_USAGE, "'perdura " STR_FMT
                       "' does not know what to do with '" STR_FMT "'; 'perdura " STR_FMT
                       " --help' shows its arguments", STR_ARG(call->path),
                       STR_ARG(call->args[command->args_max]), STR_ARG(call->path));
    return 0;
}

/* Command words come first; what starts with a dash ends them. */
static int parse(struct call *call, const struct str *words, uint32_t words_count)
{
    uint32_t names = 0;
    uint32_t used;

    while (names < words_count && !(words[names].len > 1 && words[names].data[0] == '-'))
        names++;
    TRY(command_resolve(words, names, &call->arena, &call->command, &call->path, &used,
                        &call->err));
    TRY(parse_words(call, words + used, words_count - used));
    if (call->wants_help)
        return 0;
    return check_values(call);
}

static int run(struct call *call, const struct str *words, uint32_t words_count)
{
    TRY(parse(call, words, words_count));
    if (call->wants_help) {
        command_print_help(&call->out, call->command, call->path);
        return 0;
    }
    return call->command->run(call);
}

void call_print_error(struct call *call)
{
    BUF_AUTO struct buf text = BUF_INIT(8 * sizeof call->err.text);

    terminal_clean(&text, str_of(call->err.text));
    terminal_print(&call->notes, COLOUR_RED, STR("perdura: "));
    terminal_line(&call->notes, COLOUR_NONE, buf_view(&text));
}

static int finish(struct call *call, int rc)
{
    if (rc >= 0 && (fflush(call->out.file) != 0 || ferror(call->out.file)))
        rc = err_set(&call->err, ERR_IO, "the output could not be written; is the disk full?");
    if (rc < 0) {
        zone_hint_add(&call->err);
        call_print_error(call);
        rc = err_exit_code((enum err_code)-rc);
    }
    fflush(call->notes.file);
    return rc;
}

int command_main(int argc, char **argv, FILE *out, FILE *notes)
{
    struct call call = {.command = &command_root, .path = STR(""),
                        .arena = ARENA_INIT(COMMAND_ARENA_BYTES_MAX)};
    uint32_t words_count = argc > 1 ? (uint32_t)argc - 1 : 0;
    struct str *words = arena_alloc_array(&call.arena, words_count + 1, sizeof *words);
    int rc;

    terminal_init(&call.out, out);
    terminal_init(&call.notes, notes);
    call.args = arena_alloc_array(&call.arena, words_count + 1, sizeof *call.args);
    call.values = arena_alloc_array(&call.arena, words_count + 1, sizeof *call.values);
    if (!words || !call.args || !call.values) {
        rc = err_no_memory(&call.err);
    } else if (words_count > COMMAND_FLAGS_MAX) {
        rc = err_set(&call.err, ERR_USAGE, "more than %d words; split the command into several",
                     COMMAND_FLAGS_MAX);
    } else {
        for (uint32_t i = 0; i < words_count; i++)
            words[i] = str_of(argv[i + 1]);
        rc = run(&call, words, words_count);
    }
    rc = finish(&call, rc);
    arena_deinit(&call.arena);
    return rc;
}
