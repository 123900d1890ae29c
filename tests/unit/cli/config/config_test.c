/* The configuration: YAML with lines in its refusals, and flag over environment over file over
 * default (A12 for the parts of the database address; C5, C8, A3, A9 for what the file can say). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/config/config.h"

struct pair {
    const char *name;
    const char *value;
};

/* ctx is a list of pairs that ends with a NULL name. */
static struct str lookup(const void *ctx, const char *name)
{
    for (const struct pair *pair = ctx; pair && pair->name; pair++)
        if (strcmp(pair->name, name) == 0)
            return str_of(pair->value);
    return STR_NONE;
}

static int load(struct config *config, const char *file, const struct pair *flags,
                const struct pair *environment, struct err *err)
{
    struct config_inputs inputs = {.file = file, .flag = lookup, .flag_ctx = flags,
                                   .environment = lookup, .environment_ctx = environment};

    return config_load(config, &inputs, err);
}

static int parse(struct config *config, const char *text, struct err *err)
{
    assert_int_equal(config_init_defaults(config, err), 0);
    return config_parse(config, str_of(text), "perdura.yaml", err);
}

static void assert_text(struct str text, const char *expected)
{
    assert_non_null(text.data);
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);
}

static const struct config_value_origin *origin_of(const struct config *config, const char *key)
{
    for (uint32_t i = 0; config_root.fields[i].key; i++)
        if (strcmp(config_root.fields[i].key, key) == 0)
            return &config->origins[i];
    return NULL;
}

static void the_library_has_the_defaults_of_the_table(void **state)
{
    struct settings settings;
    struct config config;
    struct err err;

    (void)state;
    settings_init(&settings);
    assert_int_equal(config_init_defaults(&config, &err), 0);
    assert_int_equal(settings.pool.slots, config.settings.pool.slots);
    assert_int_equal(settings.lease_ms, config.settings.lease_ms);
    assert_int_equal(settings.leader_lease_ms, config.settings.leader_lease_ms);
    assert_int_equal(settings.worker_timeout_ms, config.settings.worker_timeout_ms);
    assert_int_equal(settings.grace_ms, config.settings.grace_ms);
    assert_memory_equal(&settings.retention, &config.settings.retention,
                        offsetof(struct retention_rule, archive));
    config_deinit(&config);
}

static void without_anything_every_setting_has_its_default(void **state)
{
    struct config config;
    struct err err;

    (void)state;
    assert_int_equal(parse(&config, "", &err), 0);
    assert_text(config.settings.store, "perdura.db");
    assert_text(config.settings.listen, "127.0.0.1:7070");
    assert_int_equal(config.settings.pool.slots, -1);
    assert_int_equal(config.settings.lease_ms, 30000);
    assert_int_equal(config.settings.leader_lease_ms, 30000);
    assert_int_equal(config.settings.worker_timeout_ms, -1);
    assert_int_equal(config.settings.grace_ms, 5000);
    assert_int_equal(config.settings.retention.completed_ms, INT64_C(30) * 86400000);
    assert_int_equal(config.settings.callbacks.allow_count, 0);
    assert_false(config.settings.demo);
    config_deinit(&config);
}

static const char *const whole =
    "store: tasks.db\n"
    "listen: 127.0.0.1:7171\n"
    "allowed_hosts: [perdura.local]\n"
    "workers: 8\n"
    "lease: 10s\n"
    "grace: 500ms\n"
    "handlers:\n"
    "  - type: \"email:send\"\n"
    "    command: [\"/usr/local/bin/send-mail\", \"--json\"]\n"
    "    environment: {SMTP_HOST: 127.0.0.1, DEBUG: \"1\"}\n"
    "    directory: /tmp\n"
    "    timeout: 30s\n"
    "    grace: 2s\n"
    "    retry_policy: exponential\n"
    "    retry_delay: 2s\n"
    "    max_retry_delay: 5m\n"
    "    max_retries: 5\n"
    "    hash_input: true\n"
    "    output_max: 64KiB\n"
    "    retention: 7d\n"
    "    queues: [mail, bulk]\n"
    "  - type: \"report:*\"\n"
    "    service: user-service\n"
    "    method: GenerateReport\n"
    "services:\n"
    "  - {name: user-service, url: \"http://127.0.0.1:8080/tasks\"}\n"
    "queues:\n"
    "  - name: default\n"
    "    concurrency: 50\n"
    "    rate: 100/s\n"
    "    key_concurrency: 5\n"
    "    key_rate: {count: 10, per: 1m, burst: 3}\n"
    "    priority_order: low_first\n"
    "    ageing: 30s\n"
    "    stall_after: 10m\n"
    "    dead_letter_queue: dead\n"
    "    serve: true\n"
    "    on_no_handler: fail\n"
    "    type_limits:\n"
    "      - {type: \"email:send\", concurrency: 2, rate: 20/m}\n"
    "rules:\n"
    "  - {type: \"email:*\", metadata: {/tenant: gold}, priority: critical}\n"
    "  - {metadata: {/paid: true}, priority: -5}\n"
    "callbacks:\n"
    "  allow: [\"http://127.0.0.1\", \"https://example.org/\"]\n"
    "  secret: shhh\n"
    "retention:\n"
    "  completed: 1d\n"
    "  failed: 0\n"
    "  archive: archive/\n";

static void handlers_come_with_all_their_keys(void **state)
{
    const struct handler_rule *rule;
    struct config config;
    struct err err;

    (void)state;
    assert_int_equal(parse(&config, whole, &err), 0);
    assert_int_equal(config.settings.handlers_count, 2);
    rule = &config.settings.handlers[0];
    assert_text(rule->type, "email:send");
    assert_string_equal(rule->command[0], "/usr/local/bin/send-mail");
    assert_string_equal(rule->command[1], "--json");
    assert_null(rule->command[2]);
    assert_string_equal(rule->environment[0], "SMTP_HOST=127.0.0.1");
    assert_string_equal(rule->environment[1], "DEBUG=1");
    assert_null(rule->environment[2]);
    assert_text(rule->directory, "/tmp");
    assert_int_equal(rule->timeout_ms, 30000);
    assert_int_equal(rule->grace_ms, 2000);
    assert_true(rule->has_retry_policy);
    assert_int_equal(rule->retry_policy, RETRY_EXPONENTIAL);
    assert_int_equal(rule->max_retries, 5);
    assert_int_equal(rule->retry_delay_ms, 2000);
    assert_int_equal(rule->max_retry_delay_ms, 300000);
    assert_true(rule->hash_input);
    assert_int_equal(rule->output_bytes_max, 65536);
    assert_int_equal(rule->retention_ms, INT64_C(7) * 86400000);
    rule = &config.settings.handlers[1];
    assert_text(rule->service, "user-service");
    assert_text(rule->method, "GenerateReport");
    assert_null(rule->command);
    assert_null(rule->environment);
    assert_int_equal(rule->timeout_ms, -1);
    assert_int_equal(rule->max_retries, -1);
    assert_false(rule->has_retry_policy);
    config_deinit(&config);
}

static void queues_rules_and_groups_come_with_all_their_keys(void **state)
{
    const struct queue_rule *queue;
    struct config config;
    struct err err;

    (void)state;
    assert_int_equal(parse(&config, whole, &err), 0);
    assert_int_equal(config.settings.queues_count, 1);
    queue = &config.settings.queues[0];
    assert_int_equal(queue->concurrency, 50);
    assert_int_equal(queue->rate.count, 100);
    assert_int_equal(queue->rate.per_ms, 1000);
    assert_int_equal(queue->key_concurrency, 5);
    assert_int_equal(queue->key_rate.count, 10);
    assert_int_equal(queue->key_rate.per_ms, 60000);
    assert_int_equal(queue->key_rate.burst, 3);
    assert_int_equal(queue->priority_order, ORDER_LOW_FIRST);
    assert_int_equal(queue->ageing_ms, 30000);
    assert_int_equal(queue->stall_after_ms, 600000);
    assert_text(queue->dead_letter_queue, "dead");
    assert_true(queue->serve);
    assert_text(queue->on_no_handler, "fail");
    assert_int_equal(queue->type_limits_count, 1);
    assert_int_equal(queue->type_limits[0].concurrency, 2);
    assert_int_equal(queue->type_limits[0].rate.per_ms, 60000);
    assert_int_equal(config.settings.enqueue.rules_count, 2);
    assert_text(config.settings.enqueue.rules[0].metadata_pointer, "/tenant");
    assert_text(config.settings.enqueue.rules[0].metadata_equals, "\"gold\"");
    assert_int_equal(config.settings.enqueue.rules[0].priority, 20);
    assert_text(config.settings.enqueue.rules[1].metadata_equals, "true");
    assert_int_equal(config.settings.enqueue.rules[1].priority, -5);
    assert_int_equal(config.settings.callbacks.allow_count, 2);
    assert_int_equal(config.settings.retention.completed_ms, 86400000);
    assert_int_equal(config.settings.retention.failed_ms, 0);
    assert_text(config.settings.retention.archive, "archive/");
    assert_int_equal(config.settings.pool.services_count, 1);
    assert_text(config.settings.pool.services[0].url, "http://127.0.0.1:8080/tasks");
    config_deinit(&config);
}

static void refusals_name_the_file_the_line_and_the_way_out(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } table[] = {
        {"queues:\n  - name: a\n    conccurency: 5\n",
         "perdura.yaml:3: unknown key 'conccurency' in queues; did you mean 'concurrency'?"},
        {"lesae: 5s\n", "perdura.yaml:1: unknown key 'lesae'; did you mean 'lease'?"},
        {"retention:\n  compleeted: 1d\n",
         "perdura.yaml:2: unknown key 'compleeted' in retention; did you mean 'completed'?"},
        {"\n\nlease: 5\n", "perdura.yaml:3: lease is '5'; it must be a duration"},
        {"lease: 1ms\n", "perdura.yaml:1: lease is '1ms'; it must be from 100 to"},
        {"lease: [1s]\n", "perdura.yaml:1: lease must be one value"},
        {"lease:\n", "perdura.yaml:1: lease must be given a value"},
        {"workers: four\n", "perdura.yaml:1: workers is 'four'; it must be a whole number"},
        {"workers: -1\n", "perdura.yaml:1: workers is '-1'; it must be from 0 to 1024"},
        {"lease: 1s\nlease: 2s\n", "perdura.yaml:2: key 'lease' is given twice"},
        {"token: abc\n", "perdura.yaml:1: 'token' is not read from a file; use PERDURA_TOKEN"},
        {"demo: true\n", "perdura.yaml:1: 'demo' is not read from a file; use --demo"},
        {"listen: 7070\n", "perdura.yaml:1: listen is '7070'; it must be an address and a port"},
        {"listen: ::1:7070\n", "perdura.yaml:1: listen is '::1:7070'"},
        {"log_level: loud\n", "perdura.yaml:1: log_level is 'loud'; it must be one of debug"},
        {"handlers:\n  - command: [a]\n", "perdura.yaml:2: this entry of handlers has no 'type'"},
        {"handlers:\n  - {type: a, command: a}\n", "perdura.yaml:2: command must be a list"},
        {"handlers:\n  - {type: a, command: []}\n",
         "perdura.yaml:2: command must be a list that starts with a program"},
        {"handlers:\n  - {type: \"*a\", command: [a]}\n", "perdura.yaml:2: type '*a' must be"},
        {"handlers:\n  - {type: a, command: [a], service: b}\n",
         "perdura.yaml:2: handler 'a' has both command and service"},
        {"handlers:\n  - {type: a, service: b}\n", "names the service 'b'"},
        {"handlers:\n  - {type: a}\n  - {type: a}\n", "two handlers have the type 'a'"},
        {"retention:\n  log_levels: {debgu: 1d}\n",
         "perdura.yaml:2: unknown key 'debgu' in retention.log_levels; did you mean 'debug'?"},
        {"retention:\n  logs: 2d\n  log_levels: {debug: 3d}\n",
         "the time of DEBUG in retention.log_levels is longer than retention.logs"},
        {"retention:\n  log_levels: {debug: 0}\n", "perdura.yaml:2: retention.log_levels.debug"},
        {"handlers:\n  - {type: a, retention_logs: 31d}\n",
         "retention_logs of handler 'a' is longer than retention.logs"},
        {"handlers:\n  - {type: a, hash_input: yes}\n", "it must be true or false"},
        {"handlers:\n  - {type: a, retry_policy: often}\n", "it must be polynomial, exponential"},
        {"handlers:\n  - {type: a, environment: {\"A=B\": c}}\n", "names are variable names"},
        {"handlers: {type: a}\n", "perdura.yaml:1: handlers must be a list"},
        {"queues:\n  - {name: a, rate: fast}\n", "rate is 'fast'; it must be a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: 0/s}\n", "rate is '0/s'"},
        {"queues:\n  - {name: a, rate: {per: 1s}}\n", "this entry of rate has no 'count'"},
        {"queues:\n  - {name: a}\n  - {name: a}\n", "two entries of queues have the name 'a'"},
        {"rules:\n  - {priority: high}\n", "perdura.yaml:2: a rule needs type or metadata"},
        {"rules:\n  - {type: a, priority: 2000}\n", "it must be a number from -1000 to 1000"},
        {"rules:\n  - {metadata: {tenant: gold}, priority: 1}\n", "a JSON pointer such as /tenant"},
        {"rules:\n  - {metadata: {/a: 1, /b: 2}, priority: 1}\n", "one pair such as"},
        {"[a, b]\n", "perdura.yaml:1: the file must be made of 'key: value' lines"},
        {"a: [\n", "perdura.yaml:2: "},
        {"lease: 1s\n---\nlease: 2s\n", "perdura.yaml:2: a second document"},
        {"store: \"a\\0b\"\n", "store must be text"},
        {"a: &a [*a]\n", "nested deeper than"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct config config;
        struct err err = {0};

        assert_true(parse(&config, table[i].text, &err) < 0);
        if (!strstr(err.text, table[i].message))
            fail_msg("'%s' does not contain '%s'", err.text, table[i].message);
        config_deinit(&config);
    }
}

static void aliases_cannot_multiply_beyond_the_bound(void **state)
{
    struct config config;
    struct err err;

    (void)state;
    assert_true(parse(&config,
                      "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                      "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                      "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n", &err) < 0);
    assert_non_null(strstr(err.text, "more than 50000 values"));
    config_deinit(&config);
}

/* libyaml alone takes minutes for this. */
static void deep_nesting_is_refused_before_it_costs_time(void **state)
{
    static const char *const openings[] = {"[", "{a: ", "- ", "? ", "[a: "};
    char *text = malloc(CONFIG_BYTES_MAX);

    (void)state;
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        size_t step = strlen(openings[i]);
        struct config config;
        struct err err;

        for (size_t at = 0; at < CONFIG_BYTES_MAX; at++)
            text[at] = openings[i][at % step];
        assert_int_equal(config_init_defaults(&config, &err), 0);
        assert_true(config_parse(&config, str_span(text, CONFIG_BYTES_MAX), "deep", &err) < 0);
        assert_string_equal(err.text, "deep:1: nested deeper than 16 levels");
        config_deinit(&config);
    }
    free(text);
}

static void a_file_beyond_one_mebibyte_is_refused(void **state)
{
    size_t len = CONFIG_BYTES_MAX + 1;
    char *text = malloc(len);
    struct config config;
    struct err err;

    (void)state;
    memset(text, '#', len);
    assert_int_equal(config_init_defaults(&config, &err), 0);
    assert_int_equal(config_parse(&config, str_span(text, len), "big.yaml", &err), -ERR_TOO_LARGE);
    config_deinit(&config);
    free(text);
}

/* A file that is removed by the caller. */
static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void flag_beats_environment_beats_file_beats_default(void **state)
{
    char path[] = "/tmp/perdura-config-XXXXXX";
    const struct pair flags[] = {{"store", "flag.db"}, {"demo", ""}, {NULL, NULL}};
    const struct pair environment[] = {{"PERDURA_STORE", "environment.db"},
                                       {"PERDURA_LISTEN", "127.0.0.1:2"},
                                       {"WORKER_TIMEOUT", "90"},
                                       {"PERDURA_TOKEN", "t0ken"},
                                       {NULL, NULL}};
    struct config config;
    struct err err;

    (void)state;
    write_file(path, "store: file.db\nlisten: 127.0.0.1:1\nlease: 7s\n");
    assert_int_equal(load(&config, path, flags, environment, &err), 0);
    unlink(path);
    assert_text(config.settings.store, "flag.db");
    assert_text(config.settings.listen, "127.0.0.1:2");
    assert_int_equal(config.settings.lease_ms, 7000);
    assert_int_equal(config.settings.grace_ms, 5000);
    assert_int_equal(config.settings.worker_timeout_ms, 90000);
    assert_text(config.settings.access.token, "t0ken");
    assert_true(config.settings.demo);
    assert_int_equal(origin_of(&config, "store")->origin, ORIGIN_FLAG);
    assert_text(origin_of(&config, "store")->where, "--store");
    assert_int_equal(origin_of(&config, "listen")->origin, ORIGIN_ENVIRONMENT);
    assert_text(origin_of(&config, "listen")->where, "PERDURA_LISTEN");
    assert_int_equal(origin_of(&config, "lease")->origin, ORIGIN_FILE);
    assert_non_null(strstr(origin_of(&config, "lease")->where.data, ":3"));
    assert_int_equal(origin_of(&config, "grace")->origin, ORIGIN_DEFAULT);
    config_deinit(&config);
}

static void a_file_that_was_named_must_exist(void **state)
{
    struct config config;
    struct err err;

    (void)state;
    assert_int_equal(load(&config, "/nonexistent/p.yaml", NULL, NULL, &err), -ERR_IO);
    config_deinit(&config);
}

/* A12 */
static void database_variables_fall_back_one_by_one_and_lose_to_addresses(void **state)
{
    static const struct {
        struct pair flags[2];
        struct pair environment[8];
        const char *store;
    } table[] = {
        {.store = "perdura.db"},
        {.environment = {{"DB_PASSWORD", "alone"}}, .store = "perdura.db"},
        {.environment = {{"DB_HOST", "db"}, {"DB_PORT", "5433"}, {"DB_NAME", "app"},
                         {"DB_USER", "me"}, {"DB_PASSWORD", "p@ss:/w"}},
         .store = "postgres://me:p%40ss%3A%2Fw@db:5433/app"},
        {.environment = {{"API_PG_DB_HOST", "other"}, {"API_PG_DB_NAME", "app"},
                         {"DB_NAME", "mine"}, {"API_PG_DB_USER", "u"}},
         .store = "postgres://u@other/mine"},
        {.environment = {{"DB_HOST", "::1"}, {"DB_NAME", "a"}}, .store = "postgres://[::1]/a"},
        {.environment = {{"DB_HOST", "/run/postgresql"}, {"DB_NAME", "a"}},
         .store = "postgres://%2Frun%2Fpostgresql/a"},
        {.environment = {{"DB_HOST", "db"}, {"DATABASE_URL", "postgres://x/y"}},
         .store = "postgres://x/y"},
        {.environment = {{"DATABASE_URL", "postgres://x/y"}, {"PERDURA_STORE", "z.db"}},
         .store = "z.db"},
        {.flags = {{"store", "f.db"}},
         .environment = {{"DATABASE_URL", "postgres://x/y"}, {"DB_HOST", "db"}}, .store = "f.db"},
        {.environment = {{"DB_HOST", "db"}, {"DB_NAME", "a"}, {"DB_SCHEMA", "tasks"}},
         .store = "postgres://db/a?schema=tasks"},
        {.environment = {{"DATABASE_URL", "postgres://x/y?sslmode=require"},
                         {"API_PG_DB_SCHEMA", "tasks"}},
         .store = "postgres://x/y?sslmode=require&schema=tasks"},
        {.environment = {{"DB_SCHEMA", "tasks"}}, .store = "perdura.db"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct config config;
        struct err err;

        assert_int_equal(load(&config, "/dev/null", table[i].flags, table[i].environment, &err), 0);
        assert_text(config.settings.store, table[i].store);
        config_deinit(&config);
    }
}

static void wrong_values_from_outside_name_where_they_came_from(void **state)
{
    const struct pair flags[] = {{"lease", "soon"}, {NULL, NULL}};
    const struct pair environment[] = {{"WORKER_TIMEOUT", "never"}, {NULL, NULL}};
    const struct pair schema[] = {{"DATABASE_URL", "postgres://x/y"}, {"DB_SCHEMA", "a;b"},
                                  {NULL, NULL}};
    struct config config;
    struct err err;

    (void)state;
    assert_int_equal(load(&config, "/dev/null", flags, NULL, &err), -ERR_USAGE);
    assert_non_null(strstr(err.text, "--lease: lease is 'soon'"));
    config_deinit(&config);
    assert_int_equal(load(&config, "/dev/null", NULL, environment, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "WORKER_TIMEOUT: worker_timeout is 'never'"));
    config_deinit(&config);
    assert_int_equal(load(&config, "/dev/null", NULL, schema, &err), -ERR_INVALID);
    config_deinit(&config);
}

static void a_password_file_completes_the_address_of_the_database(void **state)
{
    char path[] = "/tmp/perdura-password-XXXXXX";
    int fd = mkstemp(path);
    const struct pair environment[] = {{"DB_PASSWORD_FILE", path}, {NULL, NULL}};
    static const struct {
        const char *given;
        const char *made;
    } table[] = {
        {"postgres://me@db/app", "postgres://me@db/app?password=a%40b"},
        {"postgres://me@db/app?sslmode=require&schema=s",
         "postgres://me@db/app?sslmode=require&schema=s&password=a%40b"},
        {"postgres://me:own@db/app", "postgres://me:own@db/app"}, /* what is given stays */
        {"postgres://me@db/app?password=own", "postgres://me@db/app?password=own"},
        {"perdura.db", "perdura.db"},
    };

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a@b\n", 4), 4);
    close(fd);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct pair flags[] = {{"store", table[i].given}, {NULL, NULL}};
        struct config config;
        struct err err;

        assert_int_equal(load(&config, "/dev/null", flags, environment, &err), 0);
        assert_text(config.settings.store, table[i].made);
        config_deinit(&config);
    }
    unlink(path);
}

static void shown_values_hide_passwords_and_tokens(void **state)
{
    static const struct {
        const char *store;
        const char *shown;
    } table[] = {
        {"postgres://me:secret@db:5432/app", "postgres://me@db:5432/app"},
        {"postgres://me:se%40cret@db/app", "postgres://me@db/app"},
        {"postgres://me:se@cret@db/app", "postgres://…"}, /* libpq ends it at the first '@' */
        {"postgres://me:se/cret@db/app", "postgres://…"},
        {"postgres://me:se%zzcret@db/app", "postgres://…"},
        {"postgres:/me:secret@db/app", "…"},
        {"host=db user=me password=secret", "…"},
        {"postgres://db/app?user=me&password=secret", "postgres://me@db/app"},
        {"postgres://db/app?user=me&password=a&passwor%64=secret", "postgres://me@db/app"},
        {"postgres://a:1@db/app?password=secret&password=secret", "postgres://a@db/app"},
        {"postgresql://db/app?sslmode=require&sslpassword=secret&schema=s",
         "postgres://db/app?schema=s"},
        {"postgres://me:secret@a:1,b:2/app", "postgres://me@a:1,b:2/app"},
        {"postgres://db/app?password=secret&x=1", "postgres://…"},
        {"mysql://me:secret@db/app", "…"},
        {"postgres://db:5432/app", "postgres://db:5432/app"},
        {"perdura.db", "perdura.db"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct pair flags[] = {{"store", table[i].store}, {NULL, NULL}};
        const struct pair environment[] = {{"PERDURA_TOKEN", "hush"}, {NULL, NULL}};
        struct buf out = BUF_INIT(4096);
        struct config config;
        struct err err;

        assert_int_equal(load(&config, "/dev/null", flags, environment, &err), 0);
        config_show(&config, &config_root.fields[0], &out);
        assert_text(buf_view(&out), table[i].shown);
        for (const struct config_field *field = config_root.fields; field->key; field++) {
            buf_reset(&out);
            config_show(&config, field, &out);
            buf_byte(&out, '\0');
            assert_null(strstr(out.data, "hush"));
        }
        buf_deinit(&out);
        config_deinit(&config);
    }
}

static void rates_and_priorities_read_as_people_write_them(void **state)
{
    struct rate_rule rate;
    int64_t priority;

    (void)state;
    assert_true(config_rate_parse(STR("20/m"), &rate));
    assert_int_equal(rate.count, 20);
    assert_int_equal(rate.per_ms, 60000);
    assert_int_equal(rate.burst, 0);
    assert_true(config_rate_parse(STR("5/s burst 10"), &rate));
    assert_true(rate.count == 5 && rate.per_ms == 1000 && rate.burst == 10);
    assert_false(config_rate_parse(STR("5/s burst 0"), &rate));
    assert_false(config_rate_parse(STR("5/s burst"), &rate));
    assert_false(config_rate_parse(STR("5/s burst ten"), &rate));
    assert_false(config_rate_parse(STR("5/s bursts 10"), &rate));
    assert_true(config_rate_parse(STR("5/10s"), &rate));
    assert_int_equal(rate.per_ms, 10000);
    assert_true(config_rate_parse(STR("none"), &rate));
    assert_int_equal(rate.count, 0);
    assert_false(config_rate_parse(STR("5"), &rate));
    assert_false(config_rate_parse(STR("/s"), &rate));
    assert_false(config_rate_parse(STR("5/"), &rate));
    assert_false(config_rate_parse(STR("5/week"), &rate));
    assert_true(config_priority_parse(STR("low"), &priority));
    assert_int_equal(priority, -10);
    assert_true(config_priority_parse(STR("-1000"), &priority));
    assert_false(config_priority_parse(STR("1001"), &priority));
    assert_false(config_priority_parse(STR("urgent"), &priority));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_anything_every_setting_has_its_default),
        cmocka_unit_test(the_library_has_the_defaults_of_the_table),
        cmocka_unit_test(handlers_come_with_all_their_keys),
        cmocka_unit_test(queues_rules_and_groups_come_with_all_their_keys),
        cmocka_unit_test(refusals_name_the_file_the_line_and_the_way_out),
        cmocka_unit_test(aliases_cannot_multiply_beyond_the_bound),
        cmocka_unit_test(deep_nesting_is_refused_before_it_costs_time),
        cmocka_unit_test(a_file_beyond_one_mebibyte_is_refused),
        cmocka_unit_test(flag_beats_environment_beats_file_beats_default),
        cmocka_unit_test(a_file_that_was_named_must_exist),
        cmocka_unit_test(database_variables_fall_back_one_by_one_and_lose_to_addresses),
        cmocka_unit_test(wrong_values_from_outside_name_where_they_came_from),
        cmocka_unit_test(a_password_file_completes_the_address_of_the_database),
        cmocka_unit_test(shown_values_hide_passwords_and_tokens),
        cmocka_unit_test(rates_and_priorities_read_as_people_write_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
