/* What the configuration says, after flags, environment, file and defaults were joined. Filled by
 * cli/config, read by everything below; it does not change after the start. Pure data. */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include "core/access/address_range.h"
#include "core/access/scope.h"
#include "core/agent/agent_rules.h"
#include "core/broker/broker_rules.h"
#include "core/task/report.h"
#include "core/task/retry.h"

struct arena;

/* Defaults, as a configuration file would say them: those of its table and of the library. */
#define SETTINGS_LEASE "30s"
#define SETTINGS_LEADER_LEASE "30s"
#define SETTINGS_GRACE "5s"
#define SETTINGS_KEEP "30d" /* completed tasks, events, executions, logs */
#define SETTINGS_KEEP_FAILED "90d"
#define SETTINGS_KEEP_AUDIT "400d" /* a year, and time to look at it */

/* 0 = no limit. */
struct handler_limits {
    int64_t memory_bytes_max; /* of each process of the command */
    int64_t file_bytes_max;   /* of each file it writes */
    int64_t processes_max;    /* of the user it runs as */
};

/* One entry of `handlers:`; also the place of a type's defaults (retry, timeout, hash_input). */
struct handler_rule {
    struct str type;           /* exact, or a prefix ending in '*' */
    char *const *command;      /* process: argv, NULL-terminated, no shell; NULL = none */
    struct str service;        /* http / grpc target, absent = none */
    struct str method;
    struct str agent;          /* language-model agent, absent = none */
    char *const *environment;  /* "NAME=value" added to the allow-list, NULL-terminated or NULL */
    struct str user;           /* whom the command runs as, a name or a number; absent = as we do */
    struct str group;          /* absent = the user's */
    struct str directory;      /* working directory of the command, absent = the worker's */
    int64_t timeout_ms;        /* -1 = not set, here and below */
    int64_t grace_ms;
    int64_t max_retries;
    int64_t retry_delay_ms;
    int64_t max_retry_delay_ms;
    bool has_retry_policy;
    enum retry_policy retry_policy;
    bool hash_input;           /* A3: idempotent by input hash for the whole type */
    int64_t output_bytes_max;  /* stdout + stderr kept as logs per run; -1 = default */
    struct handler_limits limits;
    int64_t retention_ms;      /* ended tasks of this type are kept this long; -1 = not set */
    int64_t retention_logs_ms; /* lines of this type's runs; 0 = as long as all */
    int64_t stall_after_ms;    /* a handler silent this long is lost; -1 = not set */
    char *const *validate_command; /* asked before a lost task is put back; NULL = none */
    struct str validate_url;   /* the same over HTTP; absent = none */
    bool encrypt;              /* its tasks are encrypted, or ... */
    const struct str *encrypt_fields; /* ... these members of them: JSON pointers */
    uint32_t encrypt_fields_count;
    const struct str *queues;  /* beside `default`, where its tasks wait */
    uint32_t queues_count;
};

/* Never more than count starts within any per_ms. With a burst: count per per_ms on average, and up
 * to so many at once after a pause. */
struct rate_rule {
    int64_t count; /* 0 = no limit */
    int64_t per_ms;
    int64_t burst; /* 0 = none: strict */
};

/* An entry of `services:`: another party's program that runs tasks over HTTP or gRPC. */
struct service_header {
    struct str name;
    struct str value; /* a secret where it came from env or file, read when the file is read */
    struct str env;
    struct str file;
};

struct service_method {
    struct str name;
    struct str lookup; /* the method that is asked before a call is repeated; absent = none */
};

struct service_tls {
    struct str ca; /* files in PEM; absent = the system's CAs, no certificate */
    struct str cert;
    struct str key;
    struct str server_name; /* absent = the host of the URL */
    struct str spiffe_id;   /* the peer's certificate must have it; absent = its name counts */
};

struct service_rule {
    struct str name;
    struct str url;
    struct service_tls tls;
    struct str descriptor; /* gRPC: file with a FileDescriptorSet; absent = reflection */
    struct str package;    /* gRPC: "package.Service", so that methods are names */
    struct str clear_text; /* loopback, mesh, allowed: where http:// and grpc:// may go */
    int64_t timeout_ms;
    const struct service_header *headers;
    uint32_t headers_count;
    int64_t concurrency;   /* calls of a worker at once */
    struct rate_rule rate;
    int64_t breaker_failures; /* in a row; 0 = the breaker never opens */
    int64_t breaker_open_ms;
    struct str health_path; /* absent = only its calls show how it is */
    struct str health_method; /* gRPC: how it is asked */
    int64_t health_every_ms;
    const struct service_method *methods;
    uint32_t methods_count;
};

struct type_limit {
    struct str type;
    int64_t concurrency; /* 0 = no limit */
    struct rate_rule rate;
};

enum priority_order { ORDER_HIGH_FIRST, ORDER_LOW_FIRST };

/* A queue's settings: from the configuration at start, later by PATCH /v1/queues/{name}. */
struct queue_rule {
    struct str name;
    struct str store;            /* another store this queue lives in; absent = the main one */
    int64_t concurrency;         /* 0 = no limit */
    struct rate_rule rate;
    int64_t key_concurrency;
    struct rate_rule key_rate;
    const struct type_limit *type_limits;
    uint32_t type_limits_count;
    enum priority_order priority_order;
    int64_t ageing_ms;           /* one priority step is worth this much waiting; 0 = strict */
    int64_t stall_after_ms;      /* 0 = never */
    struct str dead_letter_queue; /* escalation: a copy goes there; absent = none */
    bool serve;                  /* the pool here takes its tasks, whatever its handlers say */
    struct str on_no_handler;    /* "wait", "fail"; absent = as the server says */
};

/* `rules:`: changes the priority of tasks that match when they are enqueued (C5). */
struct priority_rule {
    struct str type;            /* exact or prefix*; absent = any */
    struct str metadata_pointer; /* JSON pointer into metadata; absent = any */
    struct str metadata_equals;  /* JSON value it must equal */
    int64_t priority;
};

/* `redact:`: what is taken out of log lines before they are stored (D9). */
struct redact_rule {
    struct str pattern;       /* Perl-compatible; one of pattern and pointer */
    struct str pointer;       /* JSON pointer into the context */
    struct str replace;
    const struct str *fields; /* message, context; count 0 = both */
    uint32_t fields_count;
};

struct retention_rule { /* milliseconds; 0 = kept for ever */
    int64_t completed_ms;
    int64_t failed_ms;   /* failed, dead_letter, cancelled, partial */
    int64_t events_ms;
    int64_t executions_ms;
    int64_t logs_ms;
    int64_t audit_ms;    /* the audit trail */
    int64_t log_levels_ms[SEVERITY_COUNT]; /* what lines of a level say; 0 = as long as the line */
    struct str archive;  /* folder for JSON lines (.zst); absent = tasks are just removed */
};

/* Where spans are sent. */
struct tracing_settings {
    struct str otlp;         /* OTLP over HTTP; absent = nowhere */
    struct str headers;      /* of those requests, "name=value,…"; a secret. absent = none */
    struct str headers_file; /* a file with more of them; absent = none */
    int64_t ratio;           /* share of new traces that is sampled, in millionths */
};

/* The program's own log, and what proves logs of tasks. */
struct log_settings {
    struct str level;
    struct str format;       /* auto, text, json */
    struct str key;          /* file of the key that signs records; absent = STORE.log-key */
    struct str anchor;       /* file the signed records are appended to; absent = none */
    int64_t anchor_every_ms; /* 0 = the usual time */
    const struct redact_rule *redact;
    uint32_t redact_count;
};

/* Webhooks. */
struct callback_settings {
    const struct str *allow; /* URL prefixes */
    uint32_t allow_count;
    struct str secret; /* signs them; absent = the store's own random secret */
    struct str ca;     /* a file with CAs of receivers, besides the system's; absent = none */
};

/* TLS of the listener; no cert = clear text. */
struct tls_settings {
    struct str cert;
    struct str key;
    struct str client_ca;   /* absent = clients need no certificate */
    struct str min_version; /* "1.2", "1.3" */
    bool allow_clear_text;  /* beyond loopback: a proxy or a mesh encrypts instead */
};

/* `access.jwt`: whose JWTs are credentials. No issuer = none are. */
struct jwt_settings {
    struct str issuer;
    struct str audience;
    struct str jwks_url;        /* where its public keys are: one of these two */
    struct str jwks_file;
    struct str ca;              /* a file with CAs of jwks_url; absent = those of the system */
    struct str user_claim;      /* names of claims, or JSON pointers */
    struct str namespace_claim;
    struct str scopes_claim;
    struct str user_id_claim;   /* absent = the rows of all users */
};

/* An entry of `access.certificates`. */
struct certificate_rule {
    struct str san;            /* a URI or a DNS name, exact */
    struct str namespace_name; /* "*" = every namespace */
    scope_set scopes;
    struct str user;           /* absent = the rows of all users */
};

/* An entry of `access.proxy.groups`. */
struct group_rule {
    struct str name;
    scope_set scopes;
};

/* `access.proxy`: who may say in a header which person asks. */
struct proxy_settings {
    const struct address_range *from; /* none = no header is believed */
    uint32_t from_count;
    struct str user_header;
    struct str groups_header;
    struct str namespace_name; /* of all these people */
    const struct group_rule *groups;
    uint32_t groups_count;
};

/* `access.sql_roles`: the namespace of a role of the database, and what it may do there. */
struct sql_role_rule {
    struct str role;
    struct str namespace_name;
    const struct str *verbs; /* NULL = all that it was granted */
    uint32_t verbs_count;
    const struct str *types; /* of tasks, exact or a prefix ending in '*'; NULL = all */
    uint32_t types_count;
};

/* Who may ask, and what this node shows to others. */
struct access_settings {
    struct str token;         /* bearer token; never in the configuration file */
    struct str token_file;    /* a file with it; absent = none */
    struct str password_file; /* a file with the password of the store's database */
    const struct str *hosts;  /* names in Host that are accepted */
    uint32_t hosts_count;
    struct str sql_role;      /* of the database, for SQL from outside; empty = none */
    const struct sql_role_rule *sql_roles; /* those left out: default */
    uint32_t sql_roles_count;
    bool required;            /* no request without a credential, on loopback either */
    bool open_metrics;        /* /metrics need none, and then name no namespaces */
    struct rate_rule user_tasks; /* enqueued per user; count 0 = no limit */
    struct str revoked_tasks; /* of a token that was revoked: "hold", "run", "cancel" */
    struct jwt_settings jwt;
    const struct certificate_rule *certificates;
    uint32_t certificates_count;
    struct proxy_settings proxy;
};

/* The workers of a configuration. */
struct pool_settings {
    int64_t slots;                /* of the node's own; -1 = 4 where handlers are configured */
    const struct str *categories; /* count 0 = tasks of all categories */
    uint32_t categories_count;
    const struct service_rule *services; /* that its handlers and targets of jobs name */
    uint32_t services_count;
    const struct broker_rule *brokers; /* of the node, whose messages become tasks */
    uint32_t brokers_count;
    struct str public_url; /* where they reach the server; absent = where it listens */
    const struct str *namespaces; /* that the node's own serve, by turns; count 0 = default */
    uint32_t namespaces_count;
};

/* A key-encryption key: where it is read from, one of the three. */
struct encryption_key {
    struct str id;
    struct str file;
    struct str env;
    char *const *command; /* argv, NULL-terminated; NULL = none */
    struct str secret;    /* SEAL_KEY_BYTES; who takes it over wipes it. absent = not read */
};

/* Encryption at rest; no keys = there is none. */
struct encryption_settings {
    const struct encryption_key *keys;
    uint32_t keys_count;
    struct str current; /* the one that wraps new data keys; absent = nothing can be encrypted */
    bool per_user;      /* tasks with a user_id have data keys of that user */
    bool all;           /* every task is encrypted */
};

/* An entry of `inboxes:`: a table in another database, whose rows become tasks. */
struct inbox_rule {
    struct str name;
    struct str store;  /* postgres://… or sqlite:PATH; with its password, once that was read */
    struct str table;
    struct str namespace_name;
    struct str after;  /* what happens to a row that was taken: "mark", "delete" */
    struct str password_file; /* absent = none, as the next */
    struct str password_env;
    const struct str *queues; /* that its rows may name; count 0 = all, here and below */
    uint32_t queues_count;
    const struct str *types;
    uint32_t types_count;
};

/* What is enqueued: how urgent it is, and where it comes from besides requests. */
struct enqueue_settings {
    const struct priority_rule *rules;
    uint32_t rules_count;
    const struct inbox_rule *inboxes;
    uint32_t inboxes_count;
};

/* Tasks that no live worker takes. */
struct unclaimed_settings {
    struct str on_no_handler; /* of a type no live worker has: "wait" or "fail" */
    int64_t after_ms;         /* a task due for this long is an alert */
};

struct settings {
    struct str store;
    struct str listen;
    struct access_settings access;
    struct tls_settings tls;
    struct pool_settings pool;
    int64_t lease_ms;
    int64_t leader_lease_ms;
    int64_t worker_timeout_ms;      /* WORKER_TIMEOUT; -1 = 2 leases */
    int64_t grace_ms;
    const struct handler_rule *handlers;
    uint32_t handlers_count;
    const struct queue_rule *queues;
    uint32_t queues_count;
    struct enqueue_settings enqueue;
    struct agent_settings agents;
    struct callback_settings callbacks;
    struct retention_rule retention;
    bool demo;
    bool allow_network_fs;
    bool allow_changed_schema;
    bool again;                     /* a store that was moved elsewhere is served all the same */
    struct log_settings logs;
    struct tracing_settings tracing;
    int64_t writers;   /* of a node on a shared store, side by side; 0 = the usual number */
    struct encryption_settings encryption;
    struct str backup_dir;    /* folder POST /v1/backup writes into; absent = it writes nothing */
    struct unclaimed_settings unclaimed;
    int64_t check_every_ms; /* a check of the store against itself; 0 = none */
    struct str pooler; /* "transaction": PgBouncer in that mode is between us and PostgreSQL */
};

/* The defaults of what an engine needs; all else is absent. */
void settings_init(struct settings *settings);

/* The first exact match, else the longest matching prefix, else NULL. */
const struct handler_rule *settings_handler(const struct settings *settings, struct str type);

/* The queues a worker with this configuration serves: `default`, those of its handlers, those with
 * `serve: true`. NULL = out of memory. */
const struct str *settings_served_queues(const struct settings *settings, struct arena *arena,
                                         uint32_t *count);

/* Is it one of them? */
bool settings_serves_queue(const struct settings *settings, struct str queue);

/* Can a worker with this configuration run anything? Only handlers with a command can. */
bool settings_has_commands(const struct settings *settings);

/* The service of this name, or NULL. */
const struct service_rule *settings_service(const struct settings *settings, struct str name);

/* Does a task of this queue fail when no live worker has its type? */
bool settings_no_handler_fails(const struct settings *settings, struct str queue);

/* True when pattern (exact, or a prefix ending in '*') covers type. */
bool settings_type_matches(struct str pattern, struct str type);
/* The same for a list of patterns; NULL covers every type, an empty list none. */
bool settings_types_cover(const struct str *patterns, uint32_t count, struct str type);
/* Whether the configuration has a way in besides tokens, or asks for a credential: then a request
 * without one is never let in. */
bool settings_ask_for_credentials(const struct access_settings *access);

/* Is it one of these, to the letter? */
bool settings_types_name(const struct str *types, uint32_t count, struct str type);

#endif
