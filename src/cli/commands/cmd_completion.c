/* perdura completion bash|zsh|fish: completions from the command table. The words of the table
 * hold letters, digits and dashes only, so nothing but help texts needs quoting. One thread. */
#include "cli/frame/command.h"

static bool is_switch(const struct flag *flag)
{
    return flag->type == FLAG_BOOL || flag->type == FLAG_NO;
}

/* Visits every command that is not hidden, with its path, parents first. */
static void each_command(struct call *call, const struct command *command, struct str path,
                         void (*visit)(struct call *, const struct command *, struct str))
{
    visit(call, command, path);
    for (uint32_t i = 0; command->subcommands && command->subcommands[i]; i++) {
        const struct command *sub = command->subcommands[i];

        if (!sub->hidden)
            each_command(call, sub,
                         arena_format(&call->arena, STR_FMT "%s%s", STR_ARG(path),
                                      path.len ? " " : "", sub->name), visit);
    }
}

static void put_words(FILE *file, const char *choices)
{
    for (; *choices; choices++)
        fputc(*choices == '|' ? ' ' : *choices, file);
}

static void bash_case(struct call *call, const struct command *command, struct str path)
{
    FILE *file = call->out.file;
    const struct flag *flag;

    fprintf(file, "    '" STR_FMT "') words=\"", STR_ARG(path));
    for (uint32_t i = 0; command->subcommands && command->subcommands[i]; i++)
        if (!command->subcommands[i]->hidden)
            fprintf(file, "%s ", command->subcommands[i]->name);
    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++)
        fprintf(file, "--%s ", flag->name);
    fputs("\" ;;\n", file);
}

static void bash_choices(struct call *call, const struct command *command, struct str path)
{
    const struct flag *flag;

    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++) {
        if (!flag->choices)
            continue;
        fprintf(call->out.file, "    '" STR_FMT " --%s') COMPREPLY=($(compgen -W \"", STR_ARG(path),
                flag->name);
        put_words(call->out.file, flag->choices);
        fputs("\" -- \"$current\")); return ;;\n", call->out.file);
    }
}

/* Cases of a shell: for the path of each command, what is done. */
static void put_paths(FILE *file, const char *action)
{
    for (uint32_t i = 0; command_root.subcommands[i]; i++) {
        const struct command *command = command_root.subcommands[i];

        if (command->hidden)
            continue;
        fprintf(file, "    '%s'", command->name);
        for (uint32_t j = 0; command->subcommands && command->subcommands[j]; j++)
            fprintf(file, "|'%s %s'", command->name, command->subcommands[j]->name);
        fprintf(file, ") %s ;;\n", action);
    }
}

/* Words up to the cursor that are commands make the path; flags come from its line. */
static void print_bash(struct call *call)
{
    FILE *file = call->out.file;

    fputs("# bash completion for perdura; load with: source <(perdura completion bash)\n"
          "_perdura() {\n"
          "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "  local path='' words='' word i\n"
          "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "    word=${COMP_WORDS[i]}\n"
          "    [[ $word == -* ]] && break\n"
          "    case \"${path:+$path }$word\" in\n", file);
    put_paths(file, "path=\"${path:+$path }$word\"");
    fputs("    *) break ;;\n    esac\n  done\n  case \"$path $before\" in\n", file);
    each_command(call, &command_root, STR(""), bash_choices);
    fputs("    *' --payload'|*' --config'|*' --store'|*' --anchor'|*' --folder')\n"
          "      COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
          "  esac\n  case \"$path\" in\n", file);
    each_command(call, &command_root, STR(""), bash_case);
    fputs("  esac\n"
          "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "}\n"
          "complete -o default -F _perdura perdura\n", file);
}

/* Inside single quotes of zsh and fish, and of zsh's [description]. */
static void put_quoted(FILE *file, const char *text, bool is_zsh)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(is_zsh ? "'\\''" : "\\'", file);
        else if (is_zsh && strchr("[]:", *text))
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
}

static void zsh_flag(FILE *file, const struct flag *flag)
{
    fprintf(file, " \\\n        '%s--%s%s[", flag->type == FLAG_LIST ? "*" : "", flag->name,
            is_switch(flag) ? "" : "=");
    put_quoted(file, flag->help, true);
    fputc(']', file);
    if (flag->choices) {
        fprintf(file, ":%s:(", flag->name);
        put_words(file, flag->choices);
        fputc(')', file);
    } else if (!is_switch(flag)) {
        fputc(':', file);
        put_quoted(file, flag->value, true);
        fputs(":_files", file);
    }
    fputc('\'', file);
}

static void zsh_case(struct call *call, const struct command *command, struct str path)
{
    FILE *file = call->out.file;
    const struct flag *flag;

    fprintf(file, "    '" STR_FMT "')\n", STR_ARG(path));
    if (command->subcommands) {
        fputs("      names=(", file);
        for (uint32_t i = 0; command->subcommands[i]; i++) {
            if (command->subcommands[i]->hidden)
                continue;
            fprintf(file, "\n        '%s:", command->subcommands[i]->name);
            put_quoted(file, command->subcommands[i]->summary, true);
            fputc('\'', file);
        }
        fputs(")\n      [[ $PREFIX == -* ]] || _describe command names\n", file);
    }
    fputs("      (( CURRENT -= depth, 1 )); words=(perdura \"${(@)words[depth+2,-1]}\")\n"
          "      _arguments -S", file);
    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++)
        zsh_flag(file, flag);
    fputs(command->subcommands ? " ;;\n" : " \\\n        '*:argument:_files' ;;\n", file);
}

static void print_zsh(struct call *call)
{
    FILE *file = call->out.file;

    fputs("#compdef perdura\n"
          "# zsh completion for perdura; put it into $fpath as _perdura\n"
          "_perdura() {\n"
          "  local commandpath='' i depth=0\n"
          "  local -a names\n"
          "  for ((i = 2; i < CURRENT; i++)); do\n"
          "    case \"${commandpath:+$commandpath }${words[i]}\" in\n", file);
    put_paths(file, "commandpath=\"${commandpath:+$commandpath }${words[i]}\"; (( depth++ ))");
    fputs("    *) break ;;\n    esac\n  done\n  case \"$commandpath\" in\n", file);
    each_command(call, &command_root, STR(""), zsh_case);
    fputs("  esac\n}\n_perdura \"$@\"\n", file);
}

/* Seen when exactly the words of path were typed as commands. */
static void fish_condition(FILE *file, const struct command *command, struct str path)
{
    const char *space = path.len ? memchr(path.data, ' ', path.len) : NULL;
    struct str first = space ? str_span(path.data, (size_t)(space - path.data)) : path;

    if (path.len == 0) {
        fputs("complete -c perdura -n __fish_use_subcommand", file);
        return;
    }
    fprintf(file, "complete -c perdura -n '__fish_seen_subcommand_from " STR_FMT, STR_ARG(first));
    if (space)
        fprintf(file, "; and __fish_seen_subcommand_from %s", command->name);
    fputc('\'', file);
}

static void fish_lines(struct call *call, const struct command *command, struct str path)
{
    FILE *file = call->out.file;
    const struct flag *flag;

    for (uint32_t i = 0; command->subcommands && command->subcommands[i]; i++) {
        if (command->subcommands[i]->hidden)
            continue;
        fish_condition(file, command, path);
        fprintf(file, " -f -a %s -d '", command->subcommands[i]->name);
        put_quoted(file, command->subcommands[i]->summary, false);
        fputs("'\n", file);
    }
    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++) {
        fish_condition(file, command, path);
        fprintf(file, " -l %s%s", flag->name, is_switch(flag) ? "" : " -r");
        if (flag->choices) {
            fputs(" -f -a '", file);
            put_words(file, flag->choices);
            fputc('\'', file);
        }
        fputs(" -d '", file);
        put_quoted(file, flag->help, false);
        fputs("'\n", file);
    }
}

static void print_fish(struct call *call)
{
    fputs("# fish completion for perdura; load with: perdura completion fish | source\n",
          call->out.file);
    each_command(call, &command_root, STR(""), fish_lines);
}

static int run(struct call *call)
{
    static const struct {
        const char *shell;
        void (*print)(struct call *call);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (!str_is(call->args[0], shells[i].shell))
            continue;
        shells[i].print(call);
        return 0;
    }
    return err_set(&call->err, ERR_USAGE, "there is no completion for '" STR_FMT
                   "'; there is one for bash, zsh and fish", STR_ARG(call->args[0]));
}

const struct command command_completion = {
    .name = "completion", .summary = "Print completions for a shell: bash, zsh or fish",
    .arguments = "SHELL",
    .example = "source <(perdura completion bash)\n"
               "perdura completion fish > ~/.config/fish/completions/perdura.fish",
    .args_min = 1, .args_max = 1, .run = run};
