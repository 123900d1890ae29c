/* The settings as a table: the configuration file, `doctor`, the manual page and the joining of
 * flags and environment all read it. Constant data and the checks that span several keys. */
#include "cli/config/config.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/log/redact.h"
#include "core/seal/envelope.h"
#include "core/seal/seal_members.h"
#include "core/task/search.h"

#define DAY_MS INT64_C(86400000)
#define AT(type, member) .offset = offsetof(struct type, member)
#define SETTING(member) .offset = offsetof(struct config, settings.member)
#define SETTING_LIST(member)                                                            \
    .offset = offsetof(struct config, settings.member),                                 \
    .count_offset = offsetof(struct config, settings.member##_count)

#define LOG_LEVEL(word, level)                                                            \
    {.key = "retention.log_levels." word, .live = true, .kind = CONFIG_DURATION,            \
     SETTING(retention.log_levels_ms[level]), .min = 1, .max = BOUND_DELAY_MS,              \
     .help = "what " word " lines say; the line stays, emptied (default: retention.logs)"}

bool config_type_pattern_valid(struct str type)
{
    const char *star = type.len ? memchr(type.data, '*', type.len) : NULL;

    return type.len > 0 && (!star || star == type.data + type.len - 1);
}

static bool is_queue_name(struct str name, struct err *err)
{
    if (!search_is_pattern(name))
        return true;
    err_set(err, ERR_INVALID, "'" STR_FMT "' is not a valid queue name: it must not begin or end "
            "with '*', patterns do not work here", STR_ARG(name));
    return false;
}

static int check_pointers(const struct handler_rule *rule, struct err *err)
{
    for (uint32_t i = 0; i < rule->encrypt_fields_count; i++)
        if (rule->encrypt_fields[i].len == 0 || !json_pointer_valid(rule->encrypt_fields[i]) ||
            rule->encrypt_fields[i].len > SEAL_POINTER_BYTES)
            return err_set(err, ERR_INVALID, "encrypt_fields of handler '" STR_FMT "' must be JSON "
                           "pointers such as /card/number, at most %d bytes each",
                           STR_ARG(rule->type), SEAL_POINTER_BYTES);
    if (rule->encrypt && rule->encrypt_fields_count)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has both encrypt and "
                       "encrypt_fields; keep one of them", STR_ARG(rule->type));
    return 0;
}

static int check_handler(const void *record, struct err *err)
{
    const struct handler_rule *rule = record;

    TRY(check_pointers(rule, err));

    if (!config_type_pattern_valid(rule->type))
        return err_set(err, ERR_INVALID, "type '" STR_FMT "' must be exact, or a prefix with one "
                       "'*' at its end", STR_ARG(rule->type));
    for (uint32_t i = 0; i < rule->queues_count; i++)
        if (!is_queue_name(rule->queues[i], err))
            return -(int)err->code;
    if (rule->command && rule->service.data)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has both command and service; "
                       "keep one of them", STR_ARG(rule->type));
    if (rule->agent.data && (rule->command || rule->service.data))
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has an agent and a command or "
                       "service; keep one of them", STR_ARG(rule->type));
    if (rule->validate_command && rule->validate_url.data)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has two validators, a command and "
                       "a url; keep one of them", STR_ARG(rule->type));
    if (rule->validate_url.data && !str_starts(rule->validate_url, STR("http://")) &&
        !str_starts(rule->validate_url, STR("https://")))
        return err_set(err, ERR_INVALID, "validate.url of handler '" STR_FMT "' must begin with "
                       "http:// or https://", STR_ARG(rule->type));
    if (rule->group.data && !rule->user.data)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has a group but no user",
                       STR_ARG(rule->type));
    if (rule->method.data && !rule->service.data)
        return err_set(err, ERR_INVALID, "handler '" STR_FMT "' has a method but no service",
                       STR_ARG(rule->type));
    return 0;
}

static int check_queue(const void *record, struct err *err)
{
    const struct queue_rule *rule = record;

    return is_queue_name(rule->name, err) && is_queue_name(rule->dead_letter_queue, err)
               ? 0 : -(int)err->code;
}

static int check_rule(const void *record, struct err *err)
{
    const struct priority_rule *rule = record;

    if (!rule->type.data && !rule->metadata_pointer.data)
        return err_set(err, ERR_INVALID, "a rule needs type or metadata to say what it matches");
    if (rule->type.data && !config_type_pattern_valid(rule->type))
        return err_set(err, ERR_INVALID, "type '" STR_FMT "' must be exact, or a prefix with one "
                       "'*' at its end", STR_ARG(rule->type));
    return 0;
}

static const struct config_field handler_fields[] = {
    {.key = "type", .kind = CONFIG_TEXT, AT(handler_rule, type), .max = BOUND_NAME_BYTES,
     .required = true, .help = "task type, exact or a prefix such as \"email:*\""},
    {.key = "command", .kind = CONFIG_ARGV, AT(handler_rule, command), .max = 256,
     .help = "program and arguments, run without a shell"},
    {.key = "service", .kind = CONFIG_TEXT, AT(handler_rule, service), .max = BOUND_NAME_BYTES,
     .help = "target service, one of services"},
    {.key = "method", .kind = CONFIG_TEXT, AT(handler_rule, method), .max = BOUND_NAME_BYTES,
     .help = "method of the target service"},
    {.key = "agent", .kind = CONFIG_TEXT, AT(handler_rule, agent), .max = AGENT_ID_BYTES,
     .help = "language-model agent, one of agents"},
    {.key = "environment", .kind = CONFIG_VARIABLES, AT(handler_rule, environment), .max = 256,
     .help = "additional environment variables of the command"},
    {.key = "user", .kind = CONFIG_TEXT, AT(handler_rule, user), .max = BOUND_NAME_BYTES,
     .help = "user the command runs as, a name or a number (default: the worker's own)"},
    {.key = "group", .kind = CONFIG_TEXT, AT(handler_rule, group), .max = BOUND_NAME_BYTES,
     .help = "its group (default: the user's)"},
    {.key = "directory", .kind = CONFIG_TEXT, AT(handler_rule, directory),
     .help = "working directory of the command (default: the worker's)"},
    {.key = "timeout", .kind = CONFIG_DURATION, AT(handler_rule, timeout_ms), .absent = -1,
     .min = 1, .max = BOUND_DELAY_MS, .help = "longest run of one attempt"},
    {.key = "grace", .kind = CONFIG_DURATION, AT(handler_rule, grace_ms), .absent = -1,
     .max = 3600000, .help = "time between SIGTERM and SIGKILL"},
    {.key = "max_retries", .kind = CONFIG_INT, AT(handler_rule, max_retries), .absent = -1,
     .max = BOUND_RETRIES, .help = "retries after the first attempt"},
    {.key = "retry_policy", .kind = CONFIG_POLICY, AT(handler_rule, retry_policy),
     .help = "polynomial, exponential, linear or fixed"},
    {.key = "retry_delay", .kind = CONFIG_DURATION, AT(handler_rule, retry_delay_ms), .absent = -1,
     .max = BOUND_DELAY_MS, .help = "base of the delay between attempts"},
    {.key = "max_retry_delay", .kind = CONFIG_DURATION, AT(handler_rule, max_retry_delay_ms),
     .absent = -1, .max = BOUND_DELAY_MS, .help = "longest delay between attempts"},
    {.key = "hash_input", .kind = CONFIG_BOOL, AT(handler_rule, hash_input), .fallback = "false",
     .help = "equal payloads of this type are one task"},
    {.key = "encrypt", .kind = CONFIG_BOOL, AT(handler_rule, encrypt), .fallback = "false",
     .help = "tasks of this type are stored encrypted"},
    {.key = "encrypt_fields", .kind = CONFIG_TEXTS, AT(handler_rule, encrypt_fields),
     .count_offset = offsetof(struct handler_rule, encrypt_fields_count), .max = SEAL_POINTERS_MAX,
     .help = "JSON pointers: of payload, data and result only these members are encrypted"},
    {.key = "output_max", .kind = CONFIG_BYTES, AT(handler_rule, output_bytes_max), .absent = -1,
     .max = INT64_C(1) << 30,
     .help = "bytes kept per run of its output and of logs and states on descriptor 3"},
    {.key = "memory_max", .kind = CONFIG_BYTES, AT(handler_rule, limits.memory_bytes_max),
     .min = 1024 * 1024, .max = INT64_C(1) << 50,
     .help = "memory each process of the command may ask for (default: no limit)"},
    {.key = "file_max", .kind = CONFIG_BYTES, AT(handler_rule, limits.file_bytes_max), .min = 1,
     .max = INT64_C(1) << 50, .help = "size of each file the command may write"},
    {.key = "processes_max", .kind = CONFIG_INT, AT(handler_rule, limits.processes_max), .min = 1,
     .max = 4194304,
     .help = "most processes and threads of its user; does not limit root"},
    {.key = "retention", .kind = CONFIG_DURATION, AT(handler_rule, retention_ms), .absent = -1,
     .max = BOUND_DELAY_MS, .help = "how long ended tasks of this type are kept; 0 = forever"},
    {.key = "retention_logs", .kind = CONFIG_DURATION, AT(handler_rule, retention_logs_ms),
     .min = 1, .max = BOUND_DELAY_MS,
     .help = "how long log lines of this type are kept (default: retention.logs)"},
    {.key = "stall_after", .kind = CONFIG_DURATION, AT(handler_rule, stall_after_ms), .absent = -1,
     .max = BOUND_DELAY_MS, .help = "a handler silent this long counts as lost, and its task is "
                                    "recovered"},
    {.key = "queues", .kind = CONFIG_TEXTS, AT(handler_rule, queues),
     .count_offset = offsetof(struct handler_rule, queues_count), .max = BOUND_CLAIM_QUEUES,
     .help = "queues that workers with this handler serve, besides default"},
    {.key = "validate.command", .kind = CONFIG_ARGV, AT(handler_rule, validate_command), .max = 256,
     .help = "command that decides whether a lost task is recovered: gets the task, exits 0 for "
             "yes"},
    {.key = "validate.url", .kind = CONFIG_TEXT, AT(handler_rule, validate_url),
     .max = BOUND_URL_BYTES, .help = "the same over HTTP: a POST of the task"},
    {0}};
static const struct config_record handler_record = {"handlers", sizeof(struct handler_rule),
                                                    handler_fields, check_handler};

static const struct config_field type_limit_fields[] = {
    {.key = "type", .kind = CONFIG_TEXT, AT(type_limit, type), .max = BOUND_NAME_BYTES,
     .required = true, .help = "task type"},
    {.key = "concurrency", .kind = CONFIG_INT, AT(type_limit, concurrency), .max = 1000000,
     .help = "tasks of this type that run at once; 0 = no limit"},
    {.key = "rate", .kind = CONFIG_RATE, AT(type_limit, rate), .help = "starts per time"},
    {0}};
static const struct config_record type_limit_record = {"type_limits", sizeof(struct type_limit),
                                                       type_limit_fields, NULL};

static const struct config_field queue_fields[] = {
    {.key = "name", .kind = CONFIG_TEXT, AT(queue_rule, name), .max = BOUND_NAME_BYTES,
     .required = true, .help = "name of the queue"},
    {.key = "store", .kind = CONFIG_TEXT, AT(queue_rule, store),
     .help = "store this queue lives in (default: the main one)"},
    {.key = "concurrency", .kind = CONFIG_INT, AT(queue_rule, concurrency), .max = 1000000,
     .help = "tasks that run at once; 0 = no limit"},
    {.key = "rate", .kind = CONFIG_RATE, AT(queue_rule, rate), 
     .help = "most starts per period: 100/s; 5/s burst 10 = up to 10 at once"},
    {.key = "key_concurrency", .kind = CONFIG_INT, AT(queue_rule, key_concurrency), .max = 1000000,
     .help = "tasks of one limit_key that run at once; 0 = no limit"},
    {.key = "key_rate", .kind = CONFIG_RATE, AT(queue_rule, key_rate),
     .help = "most starts per period of one limit_key"},
    {.key = "type_limits", .kind = CONFIG_LIST, AT(queue_rule, type_limits),
     .count_offset = offsetof(struct queue_rule, type_limits_count), .max = BOUND_TYPE_LIMITS,
     .record = &type_limit_record, .help = "limits per task type"},
    {.key = "priority_order", .kind = CONFIG_ORDER, AT(queue_rule, priority_order),
     .fallback = "high_first", .help = "high_first or low_first"},
    {.key = "ageing", .kind = CONFIG_DURATION, AT(queue_rule, ageing_ms), .max = BOUND_DELAY_MS,
     .help = "waiting this long is worth one priority step; 0 = strict"},
    {.key = "stall_after", .kind = CONFIG_DURATION, AT(queue_rule, stall_after_ms),
     .max = BOUND_DELAY_MS, .help = "a handler silent this long is stalled; 0 = never"},
    {.key = "dead_letter_queue", .kind = CONFIG_TEXT, AT(queue_rule, dead_letter_queue),
     .max = BOUND_NAME_BYTES, .help = "queue that gets a copy of dead tasks"},
    {.key = "serve", .kind = CONFIG_BOOL, AT(queue_rule, serve), .fallback = "false",
     .help = "workers with this configuration take its tasks; a limit alone is not enough"},
    {.key = "on_no_handler", .kind = CONFIG_WORD, AT(queue_rule, on_no_handler),
     .choices = "wait|fail", .help = "what happens to a type that no live worker has (default: the "
                                     "server's setting)"},
    {0}};
static const struct config_record queue_record = {"queues", sizeof(struct queue_rule), queue_fields,
                                                  check_queue};

static const struct config_field rule_fields[] = {
    {.key = "type", .kind = CONFIG_TEXT, AT(priority_rule, type), .max = BOUND_NAME_BYTES,
     .help = "task type, exact or a prefix; left out = any"},
    {.key = "metadata", .kind = CONFIG_METADATA, AT(priority_rule, metadata_pointer),
     .help = "one JSON pointer into metadata and the value it must have"},
    {.key = "priority", .kind = CONFIG_PRIORITY, AT(priority_rule, priority), .required = true,
     .help = "priority of matching tasks, number or level"},
    {0}};
static const struct config_record rule_record = {"rules", sizeof(struct priority_rule), rule_fields,
                                                 check_rule};

static int check_redact(const void *record, struct err *err)
{
    return redact_rule_check(record, err);
}

static const struct config_field redact_fields[] = {
    {.key = "pattern", .kind = CONFIG_TEXT, AT(redact_rule, pattern),
     .max = REDACT_PATTERN_BYTES_MAX, .help = "regular expression (Perl-compatible)"},
    {.key = "pointer", .kind = CONFIG_TEXT, AT(redact_rule, pointer),
     .help = "JSON pointer into the context, in place of a pattern"},
    {.key = "replace", .kind = CONFIG_TEXT, AT(redact_rule, replace), .fallback = "***",
     .max = REDACT_REPLACE_BYTES_MAX, .help = "what is stored instead"},
    {.key = "fields", .kind = CONFIG_TEXTS, AT(redact_rule, fields),
     .count_offset = offsetof(struct redact_rule, fields_count), .max = 2,
     .help = "where a pattern is searched: message, context (default: both)"},
    {0}};
static const struct config_record redact_record = {"redact", sizeof(struct redact_rule),
                                                   redact_fields, check_redact};

static int check_encryption_key(const void *record, struct err *err)
{
    const struct encryption_key *key = record;

    for (size_t i = 0; i < key->id.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
                    key->id.data[i]))
            return err_set(err, ERR_INVALID, "the id '" STR_FMT "' of an encryption key must be of "
                           "letters, digits, '.', '_' and '-'", STR_ARG(key->id));
    if (key->id.len == 0 ||
        (key->file.data != NULL) + (key->env.data != NULL) + (key->command != NULL) != 1)
        return err_set(err, ERR_INVALID, "the encryption key '" STR_FMT "' needs an id and one of "
                       "file, env and command", STR_ARG(key->id));
    return 0;
}

static const struct config_field encryption_key_fields[] = {
    {.key = "id", .kind = CONFIG_TEXT, AT(encryption_key, id), .max = 64, .required = true,
     .help = "name of the key, stored beside what it wraps"},
    {.key = "file", .kind = CONFIG_TEXT, AT(encryption_key, file),
     .help = "file with 32 bytes in base64 or hex, mode 600"},
    {.key = "env", .kind = CONFIG_TEXT, AT(encryption_key, env), .max = BOUND_NAME_BYTES,
     .help = "environment variable with the key; the server removes it from its environment"},
    {.key = "command", .kind = CONFIG_ARGV, AT(encryption_key, command), .max = 256,
     .help = "program and arguments that print the key, such as the client of a key store"},
    {0}};
static const struct config_record encryption_key_record = {
    "encryption.keys", sizeof(struct encryption_key), encryption_key_fields, check_encryption_key};

static const struct config_field root_fields[] = {
    {.key = "store", .kind = CONFIG_TEXT, SETTING(store), .fallback = "perdura.db", .flag = "store",
     .env = "PERDURA_STORE", .help = "a file path, sqlite:PATH or postgres://…"},
    {.key = "pooler", .kind = CONFIG_WORD, SETTING(pooler), .fallback = "none",
     .choices = "none|transaction",
     .help = "pooler in front of PostgreSQL: PgBouncer in transaction mode, or none"},
    {.key = "writers", .kind = CONFIG_INT, SETTING(writers), .fallback = "3", .min = 1, .max = 4,
     .help = "connections of a node that write to PostgreSQL in parallel"},
    {.key = "listen", .kind = CONFIG_ADDRESS, SETTING(listen), .fallback = "127.0.0.1:7070",
     .flag = "listen", .env = "PERDURA_LISTEN", .max = 300, .help = "address and port of the API"},
    {.key = "public_url", .kind = CONFIG_URL, SETTING(pool.public_url), .max = BOUND_URL_BYTES,
     .env = "PERDURA_PUBLIC_URL",
     .help = "where services reach the server to say how a call ended: https://perdura.example.com "
             "(default: where it listens)"},
    {.key = "tls.cert", .kind = CONFIG_TEXT, SETTING(tls.cert), .flag = "tls-cert",
     .env = "PERDURA_TLS_CERT",
     .help = "PEM file of the server's certificate and its chain; the API then speaks only TLS"},
    {.key = "tls.key", .kind = CONFIG_TEXT, SETTING(tls.key), .flag = "tls-key",
     .env = "PERDURA_TLS_KEY", .help = "PEM file of its private key"},
    {.key = "tls.client_ca", .kind = CONFIG_TEXT, SETTING(tls.client_ca), .flag = "tls-client-ca",
     .env = "PERDURA_TLS_CLIENT_CA",
     .help = "PEM file of CAs; every client must show a certificate that one of them signed"},
    {.key = "tls.min_version", .kind = CONFIG_WORD, SETTING(tls.min_version), .fallback = "1.2",
     .choices = "1.2|1.3", .help = "oldest version of TLS that is spoken"},
    {.key = "allow_clear_text", .kind = CONFIG_BOOL, SETTING(tls.allow_clear_text),
     .fallback = "false", .flag = "allow-clear-text", .env = "PERDURA_ALLOW_CLEAR_TEXT",
     .help = "allow listening beyond loopback without TLS, behind a proxy or mesh that does it"},
    {.key = "token", .kind = CONFIG_TEXT, SETTING(access.token), .env = "PERDURA_TOKEN",
     .outside_file = true, .help = "bearer token; needed to listen beyond loopback"},
    {.key = "token_file", .kind = CONFIG_TEXT, SETTING(access.token_file),
     .env = "PERDURA_TOKEN_FILE",
     .help = "a file with the bearer token (default: systemd's credential perdura.token)"},
    {.key = "password_file", .kind = CONFIG_TEXT, SETTING(access.password_file),
     .env = "DB_PASSWORD_FILE",
     .help = "a file with the database's password (default: the credential perdura.db-password)"},
    {.key = "access.required", .live = true, .kind = CONFIG_BOOL, SETTING(access.required),
     .fallback = "false", .env = "PERDURA_ACCESS_REQUIRED",
     .help = "every request needs a credential, on loopback too and before the first token exists"},
    {.key = "access.open_metrics", .live = true, .kind = CONFIG_BOOL,
     SETTING(access.open_metrics), .fallback = "false", .env = "PERDURA_ACCESS_OPEN_METRICS",
     .help = "/metrics need no credential; without one they show no namespace but default"},
    {.key = "access.sql_role", .kind = CONFIG_TEXT, SETTING(access.sql_role),
     .fallback = "authenticated_users", .max = 63,
     .help = "role of PostgreSQL that sees its own rows only, for SQL past the server"},
    {.key = "access.sql_roles", .live = true, .kind = CONFIG_GROUPS,
     SETTING_LIST(access.sql_roles), .max = 1024, .record = &config_sql_role_record,
     .help = "what roles of PostgreSQL may do with SQL: {shop: web}, or {shop: {namespace: web, "
             "verbs: [enqueue], types: ['order:*']}}"},
    {.key = "allowed_hosts", .live = true, .kind = CONFIG_TEXTS, SETTING_LIST(access.hosts),
     .max = 256, .help = "additional values of the Host header that the server accepts"},
    {.key = "access.jwt.issuer", .live = true, .kind = CONFIG_TEXT, SETTING(access.jwt.issuer),
     .max = 1024, .help = "issuer (iss) whose JWTs are credentials"},
    {.key = "access.jwt.audience", .live = true, .kind = CONFIG_TEXT, SETTING(access.jwt.audience),
     .max = 1024, .help = "audience (aud) that they must name"},
    {.key = "access.jwt.jwks_url", .live = true, .kind = CONFIG_URL, SETTING(access.jwt.jwks_url),
     .max = BOUND_URL_BYTES, .help = "where the issuer's public keys are (JWKS), https://"},
    {.key = "access.jwt.jwks_file", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.jwt.jwks_file), .help = "a file with them, in place of jwks_url"},
    {.key = "access.jwt.ca", .live = true, .kind = CONFIG_TEXT, SETTING(access.jwt.ca),
     .help = "PEM file of the CAs that sign jwks_url's certificate, in place of the system's"},
    {.key = "access.jwt.claims.user", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.jwt.user_claim), .fallback = "sub", .max = BOUND_NAME_BYTES,
     .help = "claim, or JSON pointer, with the name of who asks"},
    {.key = "access.jwt.claims.namespace", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.jwt.namespace_claim), .fallback = "namespace", .max = BOUND_NAME_BYTES,
     .help = "claim with the namespace; a JWT without it belongs to the namespace default"},
    {.key = "access.jwt.claims.scopes", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.jwt.scopes_claim), .fallback = "scope", .max = BOUND_NAME_BYTES,
     .help = "claim with scopes or roles: a text with spaces between, or an array"},
    {.key = "access.user_limits.tasks", .live = true, .kind = CONFIG_RATE,
     SETTING(access.user_tasks), .env = "PERDURA_ACCESS_USER_TASKS",
     .help = "tasks that requests may enqueue for one user, per time: 1000/h"},
    {.key = "access.revoked_tasks", .live = true, .kind = CONFIG_WORD,
     SETTING(access.revoked_tasks), .fallback = "hold", .choices = "hold|run|cancel",
     .env = "PERDURA_ACCESS_REVOKED_TASKS",
     .help = "tasks of a token that was revoked: paused when their turn comes, run, or cancelled"},
    {.key = "access.jwt.claims.user_id", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.jwt.user_id_claim), .max = BOUND_NAME_BYTES,
     .help = "claim with the user whose rows it is limited to (default: all users)"},
    {.key = "access.certificates", .live = true, .kind = CONFIG_LIST,
     SETTING_LIST(access.certificates), .max = 1024, .record = &config_certificate_record,
     .help = "rights of client certificates, by their names"},
    {.key = "access.proxy.from", .live = true, .kind = CONFIG_RANGES,
     SETTING_LIST(access.proxy.from), .max = 64,
     .help = "addresses of proxies that may name the person who asks"},
    {.key = "access.proxy.user_header", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.proxy.user_header), .max = BOUND_NAME_BYTES,
     .help = "header with the person's name, such as X-Forwarded-User"},
    {.key = "access.proxy.groups_header", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.proxy.groups_header), .max = BOUND_NAME_BYTES,
     .help = "header with the person's groups, with commas between"},
    {.key = "access.proxy.namespace", .live = true, .kind = CONFIG_TEXT,
     SETTING(access.proxy.namespace_name), .fallback = "default", .max = BOUND_NAME_BYTES,
     .help = "namespace of these people; * is every one"},
    {.key = "access.proxy.groups", .live = true, .kind = CONFIG_GROUPS,
     SETTING_LIST(access.proxy.groups), .max = 1024, .record = &config_group_record,
     .help = "scopes or roles of each group"},
    {.key = "workers", .kind = CONFIG_INT, SETTING(pool.slots), .absent = -1, .max = 1024,
     .flag = "workers", .help = "in-process worker slots (default: 4 where there are handlers)"},
    {.key = "worker.categories", .kind = CONFIG_TEXTS, SETTING_LIST(pool.categories),
     .max = BOUND_CLAIM_TYPES,
     .help = "workers of this configuration take only tasks of these categories (default: all)"},
    {.key = "worker.namespaces", .kind = CONFIG_TEXTS, SETTING_LIST(pool.namespaces), .max = 64,
     .help = "namespaces whose tasks the server's own workers take, by turns (default: default)"},
    {.key = "lease", .kind = CONFIG_DURATION, SETTING(lease_ms), .fallback = SETTINGS_LEASE,
     .min = 100, .max = DAY_MS, .flag = "lease",
     .help = "a worker that does not renew its lease within this time loses its tasks"},
    {.key = "leader_lease", .kind = CONFIG_DURATION, SETTING(leader_lease_ms),
     .fallback = SETTINGS_LEADER_LEASE, .min = 100, .max = DAY_MS, .flag = "leader-lease",
     .help = "lease of the leading node"},
    {.key = "worker_timeout", .kind = CONFIG_DURATION, SETTING(worker_timeout_ms), .absent = -1,
     .min = 100, .max = 30 * DAY_MS, .env = "WORKER_TIMEOUT",
     .help = "a worker silent this long is removed (default: two leases)"},
    {.key = "on_no_handler", .live = true, .kind = CONFIG_WORD, SETTING(unclaimed.on_no_handler),
     .fallback = "wait", .choices = "wait|fail",
     .help = "what happens to tasks whose type no live worker of their queue handles: they "
             "wait, or fail as no_handler"},
    {.key = "unclaimed_after", .live = true, .kind = CONFIG_DURATION, SETTING(unclaimed.after_ms),
     .fallback = "5m", .min = 1000, .max = BOUND_DELAY_MS,
     .help = "raise an alert when a task has been due this long and no live worker can take it"},
    {.key = "grace", .live = true, .kind = CONFIG_DURATION, SETTING(grace_ms),
     .fallback = SETTINGS_GRACE, .max = 3600000, .help = "time between SIGTERM and SIGKILL"},
    {.key = "log_level", .live = true, .kind = CONFIG_WORD, SETTING(logs.level), .fallback = "info",
     .flag = "log-level", .choices = "debug|info|warn|error",
     .help = "lowest level that is logged"},
    {.key = "log_format", .kind = CONFIG_WORD, SETTING(logs.format), .fallback = "auto",
     .flag = "log-format", .choices = "auto|text|json",
     .help = "how events are logged; auto is text on a terminal and JSON otherwise"},
    {.key = "log_key", .kind = CONFIG_TEXT, SETTING(logs.key),
     .help = "file of the key that signs log records (default: STORE.log-key beside a store file)"},
    {.key = "backup_dir", .kind = CONFIG_TEXT, SETTING(backup_dir), .max = 4000,
     .help = "folder that POST /v1/backup writes into (default: none, it is refused)"},
    {.key = "log_anchor", .kind = CONFIG_TEXT, SETTING(logs.anchor),
     .help = "file that gets every signed record about logs; best on another disk or host"},
    {.key = "log_anchor_every", .kind = CONFIG_DURATION, SETTING(logs.anchor_every_ms),
     .fallback = "10s", .min = 100, .max = DAY_MS,
     .help = "how often lines that were written get a signed record"},
    {.key = "check_every", .kind = CONFIG_DURATION, SETTING(check_every_ms), .fallback = "60s",
     .max = BOUND_DELAY_MS,
     .help = "how often a part of the store is checked against itself, as 'perdura verify' checks "
             "all of it; 0 = never"},
    {.key = "tracing.otlp", .kind = CONFIG_URL, SETTING(tracing.otlp), .max = 1024,
     .env = "OTEL_EXPORTER_OTLP_ENDPOINT",
     .help = "where spans are sent, OTLP over HTTP: http://127.0.0.1:4318"},
    {.key = "tracing.headers", .kind = CONFIG_TEXT, SETTING(tracing.headers),
     .env = "OTEL_EXPORTER_OTLP_HEADERS",
     .help = "headers of these requests: name=value,name=value; never shown or logged"},
    {.key = "tracing.headers_file", .kind = CONFIG_TEXT, SETTING(tracing.headers_file),
     .help = "file with such headers, one \"name: value\" per line, read at the start"},
    {.key = "tracing.ratio", .kind = CONFIG_RATIO, SETTING(tracing.ratio), .fallback = "1",
     .env = "OTEL_TRACES_SAMPLER_ARG",
     .help = "share of new traces to sample, 0 to 1; traces of a caller keep its choice"},
    {.key = "allow_network_fs", .kind = CONFIG_BOOL, SETTING(allow_network_fs), .fallback = "false",
     .flag = "allow-network-fs", .help = "allow a SQLite store on a network file system"},
    {.key = "allow_changed_schema", .kind = CONFIG_BOOL, SETTING(allow_changed_schema),
     .fallback = "false", .flag = "allow-changed-schema",
     .help = "allow a store whose schema others changed"},
    {.key = "demo", .kind = CONFIG_BOOL, SETTING(demo), .fallback = "false", .flag = "demo",
     .outside_file = true, .help = "fill the store with a demonstration"},
    {.key = "again", .kind = CONFIG_BOOL, SETTING(again), .fallback = "false", .flag = "again",
     .outside_file = true, .help = "serve a store even if it was moved elsewhere"},
    {.key = "callbacks.allow", .live = true, .kind = CONFIG_TEXTS, SETTING_LIST(callbacks.allow),
     .max = 256,
     .help = "URL prefixes that callbacks may go to (default: loopback, for those who may do "
             "everything)"},
    {.key = "callbacks.secret", .kind = CONFIG_TEXT, SETTING(callbacks.secret),
     .help = "signs webhooks (default: the store's own random secret)"},
    {.key = "callbacks.ca", .kind = CONFIG_TEXT, SETTING(callbacks.ca),
     .help = "PEM file of CAs that sign certificates of receivers, besides those of the system"},
    {.key = "retention.completed", .live = true, .kind = CONFIG_DURATION,
     SETTING(retention.completed_ms), .fallback = SETTINGS_KEEP, .max = BOUND_DELAY_MS,
     .help = "completed tasks; 0 = forever"},
    {.key = "retention.failed", .live = true, .kind = CONFIG_DURATION, SETTING(retention.failed_ms),
     .fallback = SETTINGS_KEEP_FAILED, .max = BOUND_DELAY_MS,
     .help = "failed, dead_letter, cancelled and partial tasks; 0 = forever"},
    {.key = "retention.events", .live = true, .kind = CONFIG_DURATION, SETTING(retention.events_ms),
     .fallback = SETTINGS_KEEP, .max = BOUND_DELAY_MS,
     .help = "events of ended tasks; 0 = forever"},
    {.key = "retention.executions", .live = true, .kind = CONFIG_DURATION,
     SETTING(retention.executions_ms), .fallback = SETTINGS_KEEP, .max = BOUND_DELAY_MS,
     .help = "executions; 0 = forever"},
    {.key = "retention.logs", .live = true, .kind = CONFIG_DURATION, SETTING(retention.logs_ms),
     .fallback = SETTINGS_KEEP, .max = BOUND_DELAY_MS, .help = "logs of executions; 0 = forever"},
    {.key = "retention.audit", .live = true, .kind = CONFIG_DURATION, SETTING(retention.audit_ms),
     .fallback = SETTINGS_KEEP_AUDIT, .max = BOUND_DELAY_MS,
     .help = "the audit trail; 0 = forever"},
    LOG_LEVEL("debug", SEVERITY_DEBUG),
    LOG_LEVEL("info", SEVERITY_INFO),
    LOG_LEVEL("warn", SEVERITY_WARN),
    LOG_LEVEL("error", SEVERITY_ERROR),
    LOG_LEVEL("fatal", SEVERITY_FATAL),
    {.key = "retention.archive", .kind = CONFIG_TEXT, SETTING(retention.archive),
     .help = "folder for JSON lines of removed tasks"},
    {.key = "handlers", .live = true, .kind = CONFIG_LIST, SETTING_LIST(handlers), .max = 4096,
     .record = &handler_record, .help = "what runs tasks, by type"},
    {.key = "services", .live = true, .kind = CONFIG_LIST, SETTING_LIST(pool.services), .max = 1024,
     .record = &config_service_record,
     .help = "programs of others that run tasks, over HTTP or gRPC"},
    {.key = "inboxes", .live = true, .kind = CONFIG_LIST, SETTING_LIST(enqueue.inboxes), .max = 256,
     .record = &config_inbox_record,
     .help = "tables of other databases whose rows become tasks"},
    {.key = "brokers", .kind = CONFIG_LIST, SETTING_LIST(pool.brokers), .max = 16,
     .record = &config_broker_record, .help = "RabbitMQ brokers whose messages become tasks"},
    {.key = "models", .live = true, .kind = CONFIG_LIST, SETTING_LIST(agents.models), .max = 64,
     .record = &config_model_record, .help = "language models that agents call"},
    {.key = "agents", .live = true, .kind = CONFIG_LIST, SETTING_LIST(agents.agents), .max = 64,
     .record = &config_agent_record, .help = "tasks that a language model works on"},
    {.key = "tools", .live = true, .kind = CONFIG_LIST, SETTING_LIST(agents.tools), .max = 256,
     .record = &config_tool_record, .help = "what agents may do"},
    {.key = "queues", .live = true, .kind = CONFIG_LIST, SETTING_LIST(queues), .max = BOUND_QUEUES,
     .record = &queue_record, .help = "limits and order of queues"},
    {.key = "rules", .live = true, .kind = CONFIG_LIST, SETTING_LIST(enqueue.rules), .max = 1024,
     .record = &rule_record,
     .help = "priorities by type and metadata, applied when a task is enqueued"},
    {.key = "encryption.keys", .live = true, .kind = CONFIG_LIST, SETTING_LIST(encryption.keys),
     .max = 32, .record = &encryption_key_record,
     .help = "keys that wrap the data keys of what is stored encrypted"},
    {.key = "encryption.current", .live = true, .kind = CONFIG_TEXT, SETTING(encryption.current),
     .max = 64, .help = "id of the key that wraps new data keys"},
    {.key = "encryption.per_user", .live = true, .kind = CONFIG_BOOL, SETTING(encryption.per_user),
     .fallback = "false", .help = "tasks with a user_id are encrypted with a key of that user"},
    {.key = "encryption.all", .live = true, .kind = CONFIG_BOOL, SETTING(encryption.all),
     .fallback = "false", .help = "store every task encrypted, not only those that ask for it"},
    {.key = "redact", .kind = CONFIG_LIST, SETTING_LIST(logs.redact), .max = REDACT_RULES_MAX,
     .record = &redact_record, .help = "what to remove from log lines before they are stored"},
    {0}};
const struct config_record config_root = {"", sizeof(struct config), root_fields, NULL};

_Static_assert(sizeof root_fields / sizeof root_fields[0] - 1 <= CONFIG_SETTINGS_MAX,
               "every setting has a place for its origin");
