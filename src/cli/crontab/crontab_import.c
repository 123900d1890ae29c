/* Planning an import, before any request: names, payloads, zones, users. The requests are in
 * crontab_import_apply.c. See crontab_import.h. One thread. */
#include "cli/crontab/crontab_import.h"

#include <errno.h>
#include <pwd.h>

#include "base/hash.h"
#include "base/json.h"
#include "calendar/zone.h"

#define PROGRAM_BYTES_MAX 24
#define LABEL_BYTES_MAX 140 /* of the 200 of a name; the end of a path says most */
#define HASH_SHOWN 6        /* bytes: among 10,000 lines two are alike once in five million files */
#define JITTER_MINUTES_MAX 1440

static void refuse(struct import_line *planned, struct str why)
{
    planned->result = IMPORT_REFUSED;
    planned->note = why;
}

/* ---- names ---- */

static struct str make_prefix(struct arena *arena, struct str label)
{
    if (label.len > LABEL_BYTES_MAX)
        label = str_span(label.data + label.len - LABEL_BYTES_MAX, LABEL_BYTES_MAX);
    while (label.len > 0 && str_utf8_step(label.data, label.len) == 0)
        label = str_span(label.data + 1, label.len - 1); /* not within a character */
    return arena_format(arena, "crontab:" STR_FMT ":", STR_ARG(label));
}

static int hash_line(const struct import *import, const struct crontab_line *line, char *hex)
{
    struct hash_state *state = hash_sha256_begin();
    uint8_t hash[HASH_BYTES];
    struct str parts[] = {line->user.data ? line->user : import->user, line->command, line->input};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash_sha256_add(state, parts[i].data ? parts[i] : STR(""));
        hash_sha256_add(state, STR("\n\n")); /* two of them are in no part's end and next one's */
    }
    if (hash_sha256_end(state, hash) < 0)
        return err_no_memory(&import->call->err);
    hash_hex(hash, HASH_SHOWN, hex);
    return 0;
}

/* The name of the program, so that lists of jobs can be read. */
static void write_program(struct str command, struct buf *out)
{
    size_t end = 0;
    size_t begin;

    while (end < command.len && command.data[end] != ' ' && command.data[end] != '\t')
        end++;
    begin = end;
    while (begin > 0 && command.data[begin - 1] != '/')
        begin--;
    for (size_t i = begin; i < end && i < begin + PROGRAM_BYTES_MAX; i++) {
        char byte = command.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte && strchr("-._", byte));

        if (plain)
            buf_byte(out, byte);
    }
    if (out->len > 0)
        buf_byte(out, '-');
}

/* The job of a line is known by who runs what: a line that fires at other times is the same job.
 * A number distinguishes the second of two equal ones. */
static int name_line(struct import *import, struct import_line *planned)
{
    struct buf program = BUF_INIT(PROGRAM_BYTES_MAX + 2);
    char hex[2 * HASH_SHOWN + 1];
    uint32_t same = 1;
    struct str base;

    TRY(hash_line(import, planned->line, hex));
    write_program(planned->line->command, &program);
    base = arena_format(&import->call->arena, STR_FMT STR_FMT "%s", STR_ARG(import->prefix),
                        STR_ARG(buf_view(&program)), hex);
    buf_deinit(&program);
    for (const struct import_line *other = import->lines; other < planned; other++)
        if (other->result != IMPORT_REFUSED && other->name.len >= base.len &&
            str_starts(other->name, base))
            same++;
    planned->name = same == 1 ? base
                              : arena_format(&import->call->arena, STR_FMT ":%u", STR_ARG(base),
                                             same);
    return planned->name.data ? 0 : err_no_memory(&import->call->err);
}

/* ---- payloads ---- */

static void write_variables(const struct crontab_line *line, struct buf *out)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < line->variables_count; i++) {
        json_comma(out);
        json_write_string(out, line->variables[i].name);
        buf_byte(out, ':');
        json_write_string(out, line->variables[i].value);
    }
    buf_byte(out, '}');
}

static int write_payload(struct import *import, struct import_line *planned)
{
    const struct crontab_line *line = planned->line;
    struct str shell = crontab_variable_get(line, "SHELL");
    struct str user = line->user.data ? line->user : import->user;
    BUF_AUTO struct buf out = BUF_INIT(8 * CRONTAB_BYTES_MAX);

    buf_byte(&out, '{');
    json_write_member_string(&out, "command", line->command);
    json_write_member_string(&out, "shell", shell.len ? shell : STR("/bin/sh"));
    buf_text(&out, ",\"env\":");
    write_variables(line, &out);
    json_write_member_string(&out, "stdin", line->input);
    json_write_member_string(&out, "user", user);
    json_write_member_string(&out, "crontab", import->label);
    json_write_member_string(&out, "line", line->text);
    buf_byte(&out, '}');
    planned->payload = out.failed ? STR_NONE
                                  : arena_str(&import->call->arena, buf_view(&out));
    return planned->payload.data ? 0 : err_no_memory(&import->call->err);
}

/* ---- what the line leans on ---- */

static void check_user(struct import *import, struct import_line *planned)
{
    struct str user = planned->line->user.data ? planned->line->user : import->user;
    const char *name = arena_cstr(&import->call->arena, user);

    if (user.data && name && !getpwnam(name))
        refuse(planned, arena_format(&import->call->arena, "there is no user '" STR_FMT
                                     "' on this machine", STR_ARG(user)));
}

static void check_zone(struct import *import, struct import_line *planned)
{
    struct str name = crontab_variable_get(planned->line, "CRON_TZ");
    struct zone *zone = NULL;
    struct err why;

    planned->timezone = name.len ? name : import->timezone;
    if (zone_load(NULL, planned->timezone, &zone, &why) < 0)
        refuse(planned, arena_str(&import->call->arena, str_of(why.text)));
    else
        zone_free(zone);
}

/* RANDOM_DELAY of cronie: up to so many minutes later. */
static void take_delay(struct import_line *planned)
{
    int64_t minutes;

    if (str_to_int64(crontab_variable_get(planned->line, "RANDOM_DELAY"), &minutes) &&
        minutes > 0 && minutes <= JITTER_MINUTES_MAX)
        planned->jitter_ms = minutes * 60 * 1000;
}

static int plan_entry(struct import *import, struct import_line *planned)
{
    planned->result = IMPORT_PLANNED;
    check_user(import, planned);
    if (planned->result == IMPORT_PLANNED)
        check_zone(import, planned);
    if (planned->result == IMPORT_REFUSED)
        return 0;
    take_delay(planned);
    TRY(name_line(import, planned));
    return write_payload(import, planned);
}

/* Most variables just go with the commands and need no note. */
static bool note_variable(struct import_line *planned)
{
    const struct crontab_line *line = planned->line;

    planned->result = IMPORT_NOTED;
    if (str_is(line->name, "MAILTO") && line->value.len > 0)
        planned->note = STR("no mail is sent; 'perdura task logs' shows what a command printed");
    else if (str_is(line->name, "RANDOM_DELAY"))
        planned->note = STR("becomes the jitter of the schedules below it");
    else if (str_is(line->name, "START_HOURS_RANGE"))
        planned->note = STR("is ignored; give a category allowed windows instead");
    return planned->note.data != NULL;
}

int import_plan(struct import *import, const struct crontab *crontab)
{
    struct call *call = import->call;

    import->prefix = make_prefix(&call->arena, import->label);
    import->lines = arena_alloc_array(&call->arena, crontab->count + 1, sizeof *import->lines);
    if (!import->lines || !import->prefix.data)
        return err_no_memory(&call->err);
    for (uint32_t i = 0; i < crontab->count; i++) {
        struct import_line *planned = &import->lines[import->count];

        *planned = (struct import_line){.line = &crontab->lines[i]};
        if (planned->line->kind == CRONTAB_REFUSED)
            refuse(planned, planned->line->reason);
        else if (planned->line->kind == CRONTAB_ENTRY)
            TRY(plan_entry(import, planned));
        else if (!note_variable(planned))
            continue;
        import->count++;
    }
    return 0;
}
