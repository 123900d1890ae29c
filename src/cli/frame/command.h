/* Commands as data: name, arguments, flags, example and the function that does it. Parsing, help,
 * completions and man pages all come from these tables, so that they cannot disagree. The tables
 * themselves are in cmd_*.c, one file per command; command_table.c lists them. One thread. */
#ifndef CLI_FRAME_COMMAND_H
#define CLI_FRAME_COMMAND_H

#include "base/arena.h"
#include "base/err.h"
#include "cli/frame/terminal.h"

#define COMMAND_ARGS_MAX 1000  /* `task cancel ID…` takes as many ids as a shell line has */
#define COMMAND_FLAGS_MAX 2000 /* flags on one line; lists may be repeated */
#define COMMAND_ARENA_BYTES_MAX (256 * 1024 * 1024)
#define COMMAND_INPUT_BYTES_MAX (2 * 1024 * 1024) /* files and stdin given as JSON */

enum flag_type {
    FLAG_BOOL,
    FLAG_NO,       /* a switch that turns its field off: --no-auto-recovery */
    FLAG_TEXT,
    FLAG_WORD,     /* one of choices */
    FLAG_INT,      /* min to max */
    FLAG_DURATION, /* 500ms, 30s, 5m, 2h, 1d */
    FLAG_SECONDS,  /* the same in whole seconds, for fields that count these */
    FLAG_TIME,     /* RFC 3339, +5m or -5m */
    FLAG_LIST,     /* a,b and repeated */
    FLAG_JSON,     /* JSON, @file or - for stdin */
    FLAG_PRIORITY, /* number or level */
    FLAG_RATE      /* 100/s, none */
};

struct flag {
    const char *name; /* without the dashes; NULL ends a table */
    const char *also; /* a second name, of commands that have no flag by that name */
    enum flag_type type;
    const char *value; /* how help names the value: URL, N, D */
    const char *help;
    const char *fallback; /* the default, as text; NULL = none */
    const char *env;      /* variable that stands in for the flag */
    const char *field;    /* request field or query parameter it fills, NULL = none */
    const char *choices;  /* "a|b|c" for FLAG_WORD */
    const char *zero;     /* FLAG_INT: a word that means 0, NULL = none */
    int64_t min;          /* FLAG_INT */
    int64_t max;
};

/* The files of TLS, of commands that talk to a server. `--key` of `perdura enqueue`
 * is a task's idempotency key. */
#define CLIENT_NAMESPACE_FLAG                                                                      \
    {.name = "namespace", .type = FLAG_TEXT, .value = "NAME", .env = "PERDURA_NAMESPACE",          \
     .help = "namespace to use (default: that of the token, else 'default')"}
#define CLIENT_TLS_FLAGS                                                                    \
    {.name = "ca", .type = FLAG_TEXT, .value = "FILE", .env = "PERDURA_CA",                 \
     .help = "CA of a server behind https:// (PEM; default: those of the system)"},          \
    {.name = "cert", .type = FLAG_TEXT, .value = "FILE", .env = "PERDURA_CERT",             \
     .help = "client certificate (PEM), for a server that requires one"},                    \
    {.name = "cert-key", .also = "key", .type = FLAG_TEXT, .value = "FILE",                  \
     .env = "PERDURA_KEY",                                                                  \
     .help = "its private key (PEM; default: in the same file)"}

/* Flags that many commands share. */
enum flag_group { FLAGS_CLIENT = 1, FLAGS_JSON = 2, FLAGS_STORE = 4 };

struct call;

struct command {
    const char *name;
    const char *summary;   /* one line without a full stop */
    const char *arguments; /* "TYPE", "ID…"; NULL = none */
    const char *details;   /* a paragraph, NULL = none */
    const char *example;   /* lines of whole commands */
    const struct flag *flags;
    unsigned groups;
    uint32_t args_min;
    uint32_t args_max;
    const struct command *const *subcommands; /* NULL-terminated; NULL = none */
    /* 0, a positive exit code, or a negative error with call->err filled. */
    int (*run)(struct call *call);
    const struct thing *about; /* for a function of several commands; NULL = none */
    bool hidden;
};

/* The last members of a command that asks a server. */
#define CLIENT_COMMAND(min, max, function) \
    .groups = FLAGS_CLIENT | FLAGS_JSON, .args_min = (min), .args_max = (max), .run = (function)

struct flag_value {
    const struct flag *flag;
    struct str text;
};

/* One run of a command: what was typed, and where answers go. */
struct call {
    const struct command *command;
    struct str path; /* "task show" */
    struct str *args;
    uint32_t args_count;
    struct flag_value *values;
    uint32_t values_count;
    bool wants_help;
    struct arena arena;
    struct terminal out;
    struct terminal notes; /* stderr: bars, hints, errors */
    struct err err;
};

extern const struct command command_root;

/* Runs one command line and returns the exit code. Used by main and by tests. */
int command_main(int argc, char **argv, FILE *out, FILE *notes);

/* "perdura: sentence" on stderr; for commands that continue after an error. */
void call_print_error(struct call *call);

/* The subcommand with this name, or NULL. */
const struct command *command_find(const struct command *parent, struct str name);

/* The command's own flags, then those of its groups, then --help; NULL behind the last. */
const struct flag *command_flag_at(const struct command *command, uint32_t index);

/* Help of a command (path "" = the program) in the form people read. */
void command_print_help(const struct terminal *out, const struct command *command, struct str path);

/* Finds the command a path of words names; negative with ERR_USAGE and the nearest match. */
int command_resolve(const struct str *words, uint32_t words_count, struct arena *arena,
                    const struct command **command, struct str *path, uint32_t *used,
                    struct err *err);

/* Values of flags. The flag must be in the command's table: anything else is a bug. */
bool call_given(const struct call *call, const char *flag); /* on the command line */
struct str call_given_text(const struct call *call, const char *flag);
/* Flag, else its variable, else its default, else STR_NONE. */
struct str call_text(const struct call *call, const char *flag);
int64_t call_int(const struct call *call, const char *flag, int64_t otherwise);
int64_t call_duration_ms(const struct call *call, const char *flag, int64_t otherwise_ms);
int64_t call_time_us(const struct call *call, const char *flag, int64_t otherwise_us);
/* Every item of a list flag, in order; they live as long as the call. */
int call_list(struct call *call, const char *flag, struct str **items, uint32_t *count);
/* Reads a FLAG_JSON value: literal, @file or stdin; checked and trimmed. */
int call_json(struct call *call, const char *flag, size_t bytes_max, struct str *json);
/* The text of a file, or of stdin for "-"; it lives as long as the call. */
int call_read_file(struct call *call, struct str path, size_t bytes_max, struct str *text);

/* Checks a value against its flag's type; ERR_USAGE with the sentence. */
int flag_check(const struct flag *flag, struct str text, struct err *err);

/* Appends "field":value for every flag given that has a field, with commas between (and before,
 * if out does not end in '{'). */
int call_write_fields(struct call *call, struct buf *out);
/* The same for those flags of a table that were given: a command may fill several objects. */
int call_write_fields_of(struct call *call, const struct flag *flags, struct buf *out);
/* Puts another value in place of one that was given; it is not checked again. */
void call_replace(struct call *call, const char *flag, struct str text);
/* Appends ?field=value&… for the same flags; continues with & when out already has a ?. */
int call_write_query(struct call *call, struct buf *out);
void command_write_escaped(struct buf *out, struct str text); /* percent-encoding of one segment */

#endif
