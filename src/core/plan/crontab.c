/* Reads crontabs line by line. The rules are those of the cron of Debian and of cronie, where they
 * do not contradict each other. See crontab.h. Pure, any thread. */
#include "core/plan/crontab.h"

#include "calendar/cron.h"

#include <strings.h>

#define FIELDS 5

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static struct str skip_blanks(struct str text)
{
    while (text.len > 0 && is_blank(text.data[0]))
        text = str_span(text.data + 1, text.len - 1);
    return text;
}

static struct str trim(struct str text)
{
    text = skip_blanks(text);
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* The next word off the front of *rest; blanks before it are dropped. */
static struct str next_word(struct str *rest)
{
    struct str text = skip_blanks(*rest);
    size_t len = 0;

    while (len < text.len && !is_blank(text.data[len]))
        len++;
    *rest = str_span(text.data + len, text.len - len);
    return str_span(text.data, len);
}

static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->data) : rest->len;
    struct str line = str_span(rest->data, len);

    *rest = str_span(rest->data + len + (end != NULL), rest->len - len - (end != NULL));
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* ---- variables ---- */

struct reader {
    struct arena *arena;
    bool system_form;
    struct crontab_variable variables[CRONTAB_VARIABLES_MAX];
    uint32_t variables_count;
    uint32_t settings_count;                  /* lines that set one */
    const struct crontab_variable *snapshot;  /* what entries point at; NULL = to be made */
};

static bool name_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.data[i];
        bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '_';

        if (!letter && (i == 0 || byte < '0' || byte > '9'))
            return false;
    }
    return name.len > 0;
}

static struct str unquote(struct str text)
{
    char quote = text.len >= 2 ? text.data[0] : '\0';

    if ((quote == '"' || quote == '\'') && text.data[text.len - 1] == quote)
        return str_span(text.data + 1, text.len - 2);
    return text;
}

/* NAME = value, either in quotes; false when the line is none. */
static bool split_variable(struct str text, struct str *name, struct str *value)
{
    const char *equals = memchr(text.data, '=', text.len);

    if (!equals)
        return false;
    *name = unquote(trim(str_span(text.data, (size_t)(equals - text.data))));
    *value = unquote(trim(str_span(equals + 1, text.len - (size_t)(equals + 1 - text.data))));
    return name_valid(*name);
}

static void refuse(struct crontab_line *line, struct str reason)
{
    line->kind = CRONTAB_REFUSED;
    line->reason = reason;
}

static void take_variable(struct reader *reader, struct crontab_line *line)
{
    uint32_t i = 0;

    if (reader->settings_count++ >= CRONTAB_VARIABLES_MAX) {
        refuse(line, STR("more than 256 variables are set; put them into a script"));
        return;
    }
    while (i < reader->variables_count && !str_eq(reader->variables[i].name, line->name))
        i++;
    reader->variables[i] = (struct crontab_variable){line->name, line->value};
    if (i == reader->variables_count)
        reader->variables_count++;
    reader->snapshot = NULL;
    line->kind = CRONTAB_VARIABLE;
}

static bool take_snapshot(struct reader *reader, struct crontab_line *line)
{
    if (!reader->snapshot)
        reader->snapshot = arena_copy(reader->arena, reader->variables,
                                      sizeof *reader->variables *
                                          (reader->variables_count ? reader->variables_count : 1));
    line->variables = reader->snapshot;
    line->variables_count = reader->variables_count;
    return reader->snapshot != NULL;
}

struct str crontab_variable_get(const struct crontab_line *entry, const char *name)
{
    for (uint32_t i = 0; i < entry->variables_count; i++)
        if (str_is(entry->variables[i].name, name))
            return entry->variables[i].value;
    return STR_NONE;
}

/* ---- times ---- */

/* Digits and a unit off the front of *text, in seconds. */
static bool eat_duration(struct str *text, int64_t *seconds)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    int64_t value = 0;
    size_t at = 0;

    while (at < text->len && text->data[at] >= '0' && text->data[at] <= '9') {
        value = value * 10 + (text->data[at++] - '0');
        if (value > CRONTAB_EVERY_S_MAX)
            return false;
    }
    if (at == 0 || at == text->len)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (text->data[at] == units[i].unit) {
            *seconds = value * units[i].seconds;
            *text = str_span(text->data + at + 1, text->len - at - 1);
            return true;
        }
    return false;
}

int crontab_every_parse(struct str text, int64_t *every_s, struct err *err)
{
    struct str rest = text;
    struct str word = next_word(&rest);
    int64_t part_s;

    *every_s = 0;
    rest = trim(rest);
    while (rest.len > 0 && eat_duration(&rest, &part_s) && *every_s <= CRONTAB_EVERY_S_MAX)
        *every_s += part_s;
    if (word.len == 6 && strncasecmp(word.data, "@every", 6) == 0 && rest.len == 0 &&
        *every_s > 0 && *every_s <= CRONTAB_EVERY_S_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not understood; write whole seconds up to "
                   "a year, such as @every 30s, @every 5m or @every 1h30m",
                   STR_ARG(str_cut(text, 60)));
}

static void take_fields(struct reader *reader, struct str *rest, struct crontab_line *line)
{
    struct buf fields = BUF_INIT(CRON_BYTES_MAX + FIELDS);
    struct cron cron;
    struct err err = {0};

    for (uint32_t i = 0; i < FIELDS; i++) {
        struct str word = next_word(rest);

        if (word.len == 0) {
            refuse(line, arena_format(reader->arena, "it has %u fields where five times and a "
                                      "command are needed", i));
            goto out;
        }
        if (i > 0)
            buf_byte(&fields, ' ');
        buf_str(&fields, word);
    }
    line->expression = arena_str(reader->arena, buf_view(&fields));
    if (fields.failed)
        refuse(line, STR("its five fields are too long"));
    else if (cron_parse(line->expression, &cron, &err) < 0)
        refuse(line, arena_str(reader->arena, str_of(err.text)));
out:
    buf_deinit(&fields);
}

/* @daily and so on, @every D. */
static void take_word(struct reader *reader, struct str *rest, struct crontab_line *line)
{
    struct str start = *rest;
    struct str word = next_word(rest);
    struct cron cron;
    struct err err = {0};
    int rc;

    if (word.len == 7 && strncasecmp(word.data, "@reboot", 7) == 0) {
        refuse(line, STR("@reboot names the start of the machine, not a time; start the command as "
                         "a system service"));
        return;
    }
    if (word.len == 6 && strncasecmp(word.data, "@every", 6) == 0) {
        struct str duration = next_word(rest);

        start.len = (size_t)(duration.data + duration.len - start.data);
        rc = crontab_every_parse(start, &line->every_s, &err);
    } else {
        line->expression = word;
        rc = cron_parse(word, &cron, &err);
    }
    if (rc < 0)
        refuse(line, arena_str(reader->arena, str_of(err.text)));
}

/* ---- commands ---- */

/* One part of a command, up to an unescaped % (where stop) or to its end; \% is %. */
static size_t copy_part(struct str text, bool stop, struct buf *out)
{
    size_t at = 0;

    for (; at < text.len; at++) {
        if (text.data[at] == '\\' && at + 1 < text.len && text.data[at + 1] == '%')
            buf_byte(out, text.data[++at]);
        else if (text.data[at] == '%' && stop)
            break;
        else
            buf_byte(out, text.data[at] == '%' ? '\n' : text.data[at]);
    }
    return at;
}

static void take_command(struct reader *reader, struct str text, struct crontab_line *line)
{
    BUF_AUTO struct buf part = BUF_INIT(CRONTAB_BYTES_MAX);
    size_t end = copy_part(text, true, &part);

    line->command = arena_str(reader->arena, buf_view(&part));
    if (end < text.len) {
        buf_reset(&part);
        copy_part(str_span(text.data + end + 1, text.len - end - 1), false, &part);
        if (part.len > 0 && part.data[part.len - 1] != '\n')
            buf_byte(&part, '\n');
        line->input = arena_str(reader->arena, buf_view(&part));
    }
    if (trim(line->command).len == 0)
        refuse(line, STR("there is no command"));
}

static void take_entry(struct reader *reader, struct str text, struct crontab_line *line)
{
    struct str rest = skip_blanks(text);

    line->kind = CRONTAB_ENTRY;
    if (rest.len > 1 && rest.data[0] == '-') /* cronie: do not log it */
        rest = str_span(rest.data + 1, rest.len - 1);
    if (rest.data[0] == '@')
        take_word(reader, &rest, line);
    else
        take_fields(reader, &rest, line);
    if (line->kind == CRONTAB_REFUSED)
        return;
    if (reader->system_form) {
        line->user = next_word(&rest);
        if (line->user.len == 0) {
            refuse(line, STR("there is no user and no command"));
            return;
        }
    }
    take_command(reader, skip_blanks(rest), line);
    if (line->kind == CRONTAB_ENTRY && !take_snapshot(reader, line))
        refuse(line, STR("there is not enough memory"));
}

static void take_line(struct reader *reader, struct str text, struct crontab_line *line)
{
    line->text = trim(text);
    if (!str_is_utf8(text))
        refuse(line, STR("it is not UTF-8 text"));
    else if (split_variable(line->text, &line->name, &line->value))
        take_variable(reader, line);
    else
        take_entry(reader, text, line);
}

/* As many as it may have that say something; one at least. */
static size_t count_lines(struct str text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len && count < CRONTAB_LINES_MAX; i++)
        count += text.data[i] == '\n';
    return count;
}

int crontab_parse(struct str text, bool system_form, struct arena *arena, struct crontab *crontab,
                  struct err *err)
{
    struct reader *reader = arena_alloc(arena, sizeof *reader);
    struct str rest = text;
    uint32_t number = 0;

    *crontab = (struct crontab){0};
    if (text.len > CRONTAB_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "a crontab has at most %d bytes", CRONTAB_BYTES_MAX);
    crontab->lines = arena_alloc_array(arena, count_lines(text), sizeof *crontab->lines);
    if (!reader || !crontab->lines)
        return err_set(err, ERR_MEMORY, "there is not enough memory for a crontab");
    reader->arena = arena;
    reader->system_form = system_form;
    while (rest.len > 0) {
        struct str line = next_line(&rest);
        struct str said = trim(line);

        number++;
        if (said.len == 0 || said.data[0] == '#')
            continue;
        if (crontab->count == CRONTAB_LINES_MAX)
            return err_set(err, ERR_TOO_LARGE, "a crontab has at most %d entries; split it",
                           CRONTAB_LINES_MAX);
        crontab->lines[crontab->count].number = number;
        take_line(reader, line, &crontab->lines[crontab->count++]);
    }
    return arena->failed ? err_set(err, ERR_MEMORY, "there is not enough memory for a crontab") : 0;
}

/* ---- where it lies ---- */

static struct str last_part(struct str *path)
{
    size_t len = 0;
    struct str part;

    while (len < path->len && path->data[path->len - 1 - len] != '/')
        len++;
    part = str_span(path->data + path->len - len, len);
    path->len -= len;
    if (path->len > 0)
        path->len--;
    return part;
}

bool crontab_path_is_system(struct str path)
{
    struct str name = last_part(&path);
    struct str folder = last_part(&path);

    return str_is(folder, "cron.d") || (str_is(folder, "etc") && str_is(name, "crontab"));
}

struct str crontab_path_user(struct str path)
{
    struct str name = last_part(&path);
    struct str folder = last_part(&path);

    if (str_is(folder, "crontabs") || str_is(folder, "tabs"))
        folder = last_part(&path);
    return str_is(folder, "cron") && str_is(last_part(&path), "spool") && name.len > 0 ? name
                                                                                       : STR_NONE;
}
