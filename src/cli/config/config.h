/* The configuration: flags, environment, file and defaults joined into one struct settings that
 * does not change afterwards, with the origin of every value. Everything lives in the arena of the
 * config. One thread. */
#ifndef CLI_CONFIG_CONFIG_H
#define CLI_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/settings.h"

#define CONFIG_FILE_DEFAULT "perdura.yaml"
#define CONFIG_BYTES_MAX (1024 * 1024) /* thousands of handlers; more is not a configuration */
#define CONFIG_DEPTH_MAX 16            /* the deepest known key is five levels down */
#define CONFIG_NODES_MAX 50000         /* counted per visit, so aliases cannot multiply */
#define CONFIG_ANCHORS_MAX 1000        /* libyaml compares every one with all before it */
#define CONFIG_TEXT_BYTES_MAX 4096
#define CONFIG_ARENA_BYTES_MAX (64 * 1024 * 1024)
#define CONFIG_SETTINGS_MAX 112

enum config_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

struct config_value_origin {
    enum config_origin origin;
    struct str where; /* "perdura.yaml:3", "PERDURA_STORE", "--store"; absent for defaults */
};

struct config {
    struct settings settings;
    struct str file; /* the file that was read; absent = none */
    struct config_value_origin origins[CONFIG_SETTINGS_MAX]; /* by index of config_fields */
    struct arena arena;
    struct config *older; /* that it took the place of: config_reload.h */
};

/* Where values come from besides the file. Lookups return STR_NONE for what is not set. */
struct config_inputs {
    const char *file;   /* --config; NULL = CONFIG_FILE_DEFAULT if it is there */
    struct str (*flag)(const void *ctx, const char *name); /* NULL = no flags */
    const void *flag_ctx;
    struct str (*environment)(const void *ctx, const char *name);
    const void *environment_ctx;
};

/* The caller calls config_deinit in every case. */
int config_load(struct config *config, const struct config_inputs *inputs, struct err *err);
void config_deinit(struct config *config);
#define CONFIG_AUTO __attribute__((cleanup(config_deinit))) /* freed when its block ends */
/* Only the file, over what config_init_defaults left. given NULL = CONFIG_FILE_DEFAULT if there. */
int config_load_file(struct config *config, const char *given, struct err *err);

/* Defaults, then one YAML text; name stands in the messages. For tests and the fuzzer too. */
int config_init_defaults(struct config *config, struct err *err);
int config_parse(struct config *config, struct str text, const char *name, struct err *err);

/* The real environment, for inputs.environment. An empty variable counts as not set. */
struct str config_getenv(const void *ctx, const char *name);

/* The table of settings: what they are called, where they may come from, what they mean. */
enum config_kind {
    CONFIG_TEXT,
    CONFIG_WORD,      /* one of choices */
    CONFIG_ADDRESS,   /* host:port */
    CONFIG_URL,       /* http://… or https://… */
    CONFIG_INT,
    CONFIG_BOOL,
    CONFIG_DURATION,
    CONFIG_BYTES,     /* 1024, 64KiB, 1MiB */
    CONFIG_PRIORITY,
    CONFIG_RATIO,     /* 0 to 1, kept in millionths */
    CONFIG_AMOUNT,    /* a number of at most six decimals, kept in millionths */
    CONFIG_RATE,      /* "100/s", "5/s burst 10" or {count, per, burst} */
    CONFIG_POLICY,    /* retry_policy; sets has_retry_policy too */
    CONFIG_ORDER,
    CONFIG_TEXTS,     /* a list of texts */
    CONFIG_ARGV,      /* a list of texts, as a NULL-terminated argv */
    CONFIG_VARIABLES, /* a mapping, as NULL-terminated "NAME=value" */
    CONFIG_METADATA,  /* {pointer: value} of a rule */
    CONFIG_JSON,      /* a mapping, as the JSON object it looks like */
    CONFIG_LIST,      /* a list of mappings */
    CONFIG_SCOPES,    /* a list of scopes and roles, or one text with spaces between */
    CONFIG_RANGES,    /* a list of addresses and ranges of them */
    CONFIG_GROUPS     /* a mapping of names to values or mappings; its record has the name first */
};

struct config_record;

struct config_field {
    const char *key; /* groups are written with a point: "retention.completed" */
    enum config_kind kind;
    size_t offset;         /* into the record */
    size_t count_offset;   /* of lists */
    int64_t min;           /* numbers and durations (ms) */
    int64_t max;           /* also: bytes of a text, items of a list; 0 = the usual maximum */
    int64_t absent;        /* number that stands for "not set" where there is no fallback */
    const char *fallback;  /* the default, as it would be written */
    const char *choices;   /* "a|b|c" for CONFIG_WORD */
    const char *flag;
    const char *env;
    bool outside_file;     /* may not stand in the file (secrets, switches of one run) */
    bool required;
    bool live;             /* in force when the file is read again; others need a restart */
    const char *help;
    const struct config_record *record; /* CONFIG_LIST, CONFIG_GROUPS */
};

struct config_record {
    const char *name;      /* as messages say it: "queues" */
    size_t bytes;
    const struct config_field *fields; /* ends with a NULL key */
    /* Rules over several keys of one entry; the sentence goes into err without file and line. */
    int (*check)(const void *record, struct err *err);
};

extern const struct config_record config_root; /* its fields are those of struct config */

/* Sets one scalar field from text, with the field's range; err has no file and line. */
int config_set_scalar(void *record, const struct config_field *field, struct str text,
                      struct arena *arena, struct err *err);
int config_set_defaults(void *record, const struct config_record *type, struct arena *arena,
                        struct err *err);

/* Rules over several keys; the sentence names the file. Those of `access:` have a file of their
 * own, config_access.c. */
int config_check(const struct config *config, const char *name, struct err *err);
int config_check_access(const struct config *config, const char *name, struct err *err);
extern const struct config_record config_certificate_record, config_group_record;
extern const struct config_record config_sql_role_record;
bool config_type_pattern_valid(struct str type); /* exact, or a prefix ending in '*' */
/* Those of `services:`, config_services.c. */
int config_check_services(const struct config *config, const char *name, struct err *err);
extern const struct config_record config_service_record;
/* Those of `inboxes:`, config_inboxes.c. */
int config_check_inboxes(const struct config *config, const char *name, struct err *err);
extern const struct config_record config_inbox_record;
/* Those of `brokers:`, config_brokers.c. */
int config_check_brokers(const struct config *config, const char *name, struct err *err);
extern const struct config_record config_broker_record;
/* Those of `models:`, `agents:` and `tools:`, config_agents.c. */
int config_check_agents(const struct config *config, const char *name, struct err *err);
int config_read_prompts(struct config *config, struct err *err);
bool config_same_agents(const struct config *a, const struct config *b);
extern const struct config_record config_model_record, config_agent_record, config_tool_record;

/* The value as a person would write it; passwords in addresses and secrets are hidden. */
void config_show(const struct config *config, const struct config_field *field, struct buf *out);

/* "100/s", "5/s burst 10"; "none" is no limit. */
#define CONFIG_RATE_FORMS                                                                  \
    "a rate such as 100/s, 20/m or 5/10s, with a burst such as '5/s burst 10', or none; the "  \
    "count and the burst are 1 to 1000000000, the period is 1ms to 3650d"
bool config_rate_parse(struct str text, struct rate_rule *rate);
bool config_priority_parse(struct str text, int64_t *priority);      /* number or level */
bool config_word_valid(const char *choices, struct str word);        /* choices: "a|b|c" */
bool config_bytes_parse(struct str text, int64_t *bytes);

#endif
