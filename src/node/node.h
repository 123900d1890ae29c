/* What the command line asks of the rest of the program: the two long-running modes and the
 * commands that open a store themselves. The command line parses and prints; the node does the
 * work. Implemented in src/node/. Texts in reports live in the caller's arena. */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/uuid7.h"
#include "core/settings.h"

/* Both run until a signal ends them and return the exit code; they say themselves, on stderr, what
 * went wrong. */

/* Reads the configuration again, for SIGHUP. The settings live until the mode returns; restart gets
 * the names of settings that changed and stay as they were until the next start. */
struct node_config {
    int (*reload)(void *ctx, const struct settings **fresh, struct buf *restart, struct err *err);
    void *ctx;
};

int node_serve_main(const struct settings *settings, const struct node_config *config);

/* The program's other self, where NODE_SPAWN_NAME is its own name: starts handlers for a server. */
#define NODE_SPAWN_NAME "perdura-spawn"
_Noreturn void node_spawn_main(void);

struct worker_options {
    struct str server;             /* base URL */
    struct str namespace_name;     /* absent = that of the token */
    struct str ca, cert, key;      /* files of TLS; absent = the system's CAs, no certificate */
    const struct str *queues;      /* count 0 = `default` and those of the configuration */
    uint32_t queues_count;
    const struct str *categories;  /* count 0 = all */
    uint32_t categories_count;
    int64_t concurrency;
};

int node_worker_main(const struct settings *settings, const struct worker_options *options,
                     const struct node_config *config);

/* The place of a store as it may be shown, without a password; whether one can be added. */
void node_store_shown(struct str where, char *out, size_t cap);
bool node_store_wants_password(struct str where);

/* migrate */
enum migrate_action { MIGRATE_STATUS, MIGRATE_UP, MIGRATE_DOWN, MIGRATE_SQL, MIGRATE_GRANT };

struct migrate_request {
    enum migrate_action action;
    int64_t target; /* UP: the last to apply; DOWN: the last that stays; -1 = all / one step */
    bool down;      /* SQL: the statements that go back */
    bool lose_data; /* DOWN: also where it gives up what is stored */
    struct str role; /* GRANT: of the database; it may use SQL ... */
    struct str only; /* ... with these verbs, a comma between them; absent = all */
};

struct migration {
    int64_t number;
    struct str name;
    bool applied;
    bool changed_now;      /* by this run */
    bool checksum_differs; /* the stored checksum is not that of this program's file */
    int64_t applied_at_us; /* 0 = not applied */
    struct str sql;        /* for MIGRATE_SQL */
    struct str gives_up;   /* when it is taken back; absent = nothing */
};

struct migrate_report {
    const struct migration *migrations; /* in the order of their numbers */
    uint32_t migrations_count;
};

int node_migrate(const struct settings *settings, const struct migrate_request *request,
                 struct arena *arena, struct migrate_report *report, struct err *err);

/* Makes an API token in a store that no server has open. body and reply as of POST /v1/tokens. */
int node_token_create(const struct settings *settings, struct str body, struct arena *arena,
                      struct str *reply, struct err *err);

/* verify */
struct verify_request {
    bool logs;         /* neither logs nor checkpoints = everything */
    bool checkpoints;
    struct str anchor; /* file with chain heads kept elsewhere; absent = none */
    const struct str *public_keys; /* in hex: whose signatures count; count 0 = the store's own */
    uint32_t public_keys_count;
};

struct verify_finding {
    struct str kind;    /* "log", "checkpoint", "anchor", "regression", "store" */
    struct str subject; /* what was tampered with: an id, a sequence number, a table */
    struct str detail;  /* a sentence */
    struct uuid execution; /* whose log it is; nil = none */
    struct str task_id;    /* that the execution is of; absent = not known */
};

struct verify_count {
    struct str what; /* "log lines" */
    int64_t checked;
};

struct verify_report {
    const struct verify_finding *findings;
    uint32_t findings_count;
    const struct verify_count *counts;
    uint32_t counts_count;
    struct str public_key; /* of the main store, in hex; absent = it has none, or was not asked */
    struct str key_missed; /* why notes were not checked with the log key; absent = they were */
};

/* Findings are no error: 0 with findings_count > 0. */
int node_verify(const struct settings *settings, const struct verify_request *request,
                struct arena *arena, struct verify_report *report, struct err *err);

/* A key-encryption key in a new file that only its owner can read. */
int node_key_write(const char *path, struct err *err);

/* backup: a consistent copy of the store in file, which must not exist yet. */
int node_backup(const struct settings *settings, struct str file, int64_t *bytes, struct err *err);

/* copy: moves everything from one store to another of any kind; no other process may have them
 * open. Continues where an earlier run stopped. */
struct copy_request {
    struct str from;
    struct str to; /* made if it is not there; empty, or what a run before left */
    bool again;    /* also of a source that was moved elsewhere before */
    bool allow_network_fs;
    bool allow_changed_schema;
};

struct copy_step {
    const char *table;
    bool compares;     /* the second half: both stores are read again */
    bool begins;       /* the first word about this table */
    int64_t done;      /* rows of all tables */
    int64_t total;
    int64_t tasks;     /* copied so far by this run */
};

struct copy_sum {
    struct str name;   /* a table or a status */
    int64_t from_rows;
    int64_t to_rows;
    uint64_t from_hash; /* over all rows; tables only */
    uint64_t to_hash;
};

struct copy_report {
    const struct copy_sum *tables;
    uint32_t tables_count;
    const struct copy_sum *statuses;
    uint32_t statuses_count;
    uint32_t differences;
    bool resumed;
    struct str *left_behind; /* names of what is not Perdura's and stays in the source */
    uint32_t left_count;
    int64_t rows;  /* copied by this run */
    int64_t tasks;
    int64_t copy_us;
    int64_t compare_us;
};

/* What differs is no error: 0 with differences > 0. */
int node_copy(const struct copy_request *request,
              void (*tell)(void *ctx, const struct copy_step *step), void *tell_ctx,
              struct arena *arena, struct copy_report *report, struct err *err);

/* bench */
struct bench_request {
    struct str store;  /* absent = a temporary SQLite file in folder, removed afterwards */
    struct str folder; /* absent = the current one: the disk that is measured */
    int64_t tasks;
    int64_t batch;     /* 0 = the usual row of sizes */
    int64_t payload_bytes; /* 0 = a small one */
    bool encrypt;      /* with a key that is made for it and forgotten */
};

struct bench_row {
    struct str name;
    int64_t batch;
    int64_t tasks;
    int64_t duration_us;
    int64_t p50_us; /* -1 = not measured */
    int64_t p99_us;
};

struct bench_report {
    const struct bench_row *rows;
    uint32_t rows_count;
};

/* step is called before each measurement, so that the caller can show progress. */
int node_bench(const struct settings *settings, const struct bench_request *request,
               void (*step)(void *ctx, const char *name), void *step_ctx, struct arena *arena,
               struct bench_report *report, struct err *err);

/* What commands of the configuration could read or be used for. */
struct command_risks {
    uint32_t commands;   /* handlers that are commands */
    uint32_t shared;     /* of them, run as this process's own user */
    bool is_root;        /* who is root */
    bool is_open;        /* and clients of the API need no token to start them */
    bool is_readable;    /* they can read this program, so its memory from exec to main */
    struct str files;    /* secrets in files that those can read; absent = none */
    struct str refusal;  /* why a user cannot be changed to; absent = all can */
};

/* With a store: of a server; otherwise of a worker. Texts live in the arena. */
void node_command_risks(const struct settings *settings, bool has_store, struct arena *arena,
                        struct command_risks *risks);

#define NODE_SECRET_FILES_MAX 4

/* The files with secrets that every user of this machine may read; returns how many. */
uint32_t node_exposed_files(const struct settings *settings,
                            struct str files[NODE_SECRET_FILES_MAX]);

/* By what a process that starts here ends what handlers leave. */
struct str node_handler_ends(struct arena *arena);

/* Is the program of a handler's command (or validator) where its run would look for it? */
bool node_program_exists(const struct handler_rule *rule, char *const *command);

/* The statements that make the table of an inbox. */
int node_inbox_sql(bool postgres, struct str table, struct buf *out, struct err *err);

/* doctor */
enum doctor_verdict { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILURE };

struct doctor_check {
    enum doctor_verdict verdict;
    struct str name;
    struct str detail;
    struct str fix; /* what to do about it; absent when all is well */
    bool protects; /* of tokens: there are some, so no request goes without one */
};

/* Opens the store, looks at it (version, schema, integrity, who holds it, free space) and closes
 * it. What is wrong is a check, not an error. */
int node_doctor_store(const struct settings *settings, struct arena *arena,
                      struct doctor_check **checks, uint32_t *checks_count, struct err *err);

/* The same for the files of TLS, if there are any; returns how many checks. */
#define NODE_TLS_CHECKS_MAX 2
uint32_t node_doctor_tls(const struct settings *settings, struct arena *arena,
                         struct doctor_check checks[NODE_TLS_CHECKS_MAX]);

/* Each service of the configuration is tried once. *count of them, in arena. */
int node_doctor_services(const struct settings *settings, struct arena *arena,
                         struct doctor_check **checks, uint32_t *count, struct err *err);
/* Each inbox: can its rows be read and marked? */
int node_doctor_inboxes(const struct settings *settings, struct arena *arena,
                        struct doctor_check **checks, uint32_t *count, struct err *err);

/* The same for its brokers. */
int node_doctor_brokers(const struct settings *settings, struct arena *arena,
                        struct doctor_check **checks, uint32_t *count, struct err *err);

/* The same for the ways in that settings describe. */
#define NODE_ACCESS_CHECKS_MAX 4
uint32_t node_doctor_access(const struct settings *settings, struct arena *arena,
                            struct doctor_check checks[NODE_ACCESS_CHECKS_MAX]);

#endif
