/* Help for people, made from the command table: usage, flags with their defaults and variables,
 * and an example. One thread. */
#include "cli/frame/command.h"

#define LEFT_WIDTH 26 /* what stands right of it starts in this column */
#define HELP_BYTES_MAX (256 * 1024)
#define WRAP_WIDTH 96

/* Text wrapped at spaces; every line but the first starts with indent spaces. */
static void wrap(struct buf *out, struct str text, size_t indent, size_t width)
{
    size_t column = indent;

    while (text.len > 0) {
        const char *space = memchr(text.data, ' ', text.len);
        struct str word = space ? str_span(text.data, (size_t)(space - text.data)) : text;
        size_t wide = terminal_width(word);

        if (column > indent && column + 1 + wide > width) {
            buf_format(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buf_byte(out, ' ');
            column++;
        }
        buf_str(out, word);
        column += wide;
        text = space ? str_span(space + 1, text.len - word.len - 1) : STR_NONE;
    }
    buf_byte(out, '\n');
}

static void row(struct buf *out, struct str left, struct str right)
{
    size_t wide = terminal_width(left) + 2;

    buf_text(out, "  ");
    buf_str(out, left);
    if (wide + 2 > LEFT_WIDTH)
        buf_format(out, "\n%*s", LEFT_WIDTH, "");
    else
        buf_format(out, "%*s", (int)(LEFT_WIDTH - wide), "");
    wrap(out, right, LEFT_WIDTH, WRAP_WIDTH);
}

static void flag_row(struct buf *out, const struct flag *flag)
{
    BUF_AUTO struct buf left = BUF_INIT(512);
    BUF_AUTO struct buf right = BUF_INIT(4096);

    buf_format(&left, "--%s%s%s", flag->name, flag->value ? " " : "",
               flag->value ? flag->value : "");
    buf_text(&right, flag->help);
    if (flag->choices)
        buf_format(&right, ": %s", flag->choices);
    if (flag->fallback)
        buf_format(&right, " (default %s)", flag->fallback);
    if (flag->env)
        buf_format(&right, " [$%s]", flag->env);
    row(out, buf_view(&left), buf_view(&right));
}

static void heading(const struct terminal *out, struct buf *text, const char *title)
{
    terminal_print(out, COLOUR_NONE, buf_view(text));
    buf_reset(text);
    terminal_line(out, COLOUR_BOLD, str_of(title));
}

static void subcommand_rows(struct buf *text, const struct command *command)
{
    for (uint32_t i = 0; command->subcommands[i]; i++) {
        const struct command *sub = command->subcommands[i];
        BUF_AUTO struct buf left = BUF_INIT(512);

        if (sub->hidden)
            continue;
        buf_text(&left, sub->name);
        if (sub->arguments)
            buf_format(&left, " %s", sub->arguments);
        row(text, buf_view(&left), str_of(sub->summary));
    }
    buf_byte(text, '\n');
}

static void example_lines(struct buf *text, const char *example)
{
    while (*example) {
        size_t len = strcspn(example, "\n");

        buf_text(text, "  ");
        buf_append(text, example, len);
        buf_byte(text, '\n');
        example += len + (example[len] == '\n');
    }
}

void command_print_help(const struct terminal *out, const struct command *command, struct str path)
{
    BUF_AUTO struct buf text = BUF_INIT(HELP_BYTES_MAX);
    const struct flag *flag;

    buf_format(&text, "%s\n\n", command->summary);
    heading(out, &text, "Usage");
    buf_format(&text, "  perdura%s" STR_FMT "%s%s%s\n\n", path.len ? " " : "", STR_ARG(path),
               command->arguments ? " " : "", command->arguments ? command->arguments : "",
               command->subcommands ? " COMMAND [flags]" : " [flags]");
    if (command->details) {
        wrap(&text, str_of(command->details), 0, WRAP_WIDTH);
        buf_byte(&text, '\n');
    }
    if (command->subcommands) {
        heading(out, &text, "Commands");
        subcommand_rows(&text, command);
    }
    heading(out, &text, "Flags");
    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++)
        flag_row(&text, flag);
    if (command->example) {
        buf_byte(&text, '\n');
        heading(out, &text, "Examples");
        example_lines(&text, command->example);
    }
    terminal_print(out, COLOUR_NONE, buf_view(&text));
}
