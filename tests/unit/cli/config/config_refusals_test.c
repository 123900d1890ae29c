/* What a configuration file may not say, kind of value by kind of value: every refusal names the
 * file, the line and what is allowed, and the bounds of lists and texts hold (C5, C8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cli/config/config.h"
#include "core/bounds.h"

static void expect_refusal(const char *text, const char *sentence)
{
    struct config config;
    struct err err = {0};
    int rc;

    assert_int_equal(config_init_defaults(&config, &err), 0);
    rc = config_parse(&config, str_of(text), "c.yaml", &err);
    if (rc == 0)
        fail_msg("accepted: %.200s", text);
    if (!strstr(err.text, sentence))
        fail_msg("'%s' is not in '%s'", sentence, err.text);
    config_deinit(&config);
}

static void values_of_another_kind_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *sentence;
    } rows[] = {
        {"handlers:\n  - {type: a, command: [[a]]}\n", "c.yaml:2: command must be a list of texts"},
        {"handlers:\n  - {type: a, command: [\"\"]}\n", "command"},
        {"handlers:\n  - {type: a, environment: [A]}\n", "a mapping of names to texts"},
        {"handlers:\n  - {type: a, environment: {A: [b]}}\n", "a mapping of names to texts"},
        {"handlers:\n  - {type: a, environment: {[A]: b}}\n", "variable names"},
        {"handlers:\n  - {type: a, environment: {1A: b}}\n", "variable names"},
        {"handlers:\n  - {type: a, environment: {\"\": b}}\n", "variable names"},
        {"handlers:\n  - {type: a, environment: {A: \"x\\0y\"}}\n", "a mapping of names to texts"},
        {"handlers:\n  - {type: a, output_max: lots}\n", "a size such as 4096, 64KiB or 1MiB"},
        {"handlers:\n  - {type: a, output_max: -1KiB}\n", "a size such as 4096"},
        {"handlers:\n  - {type: a, output_max: xKiB}\n", "a size such as 4096"},
        {"handlers:\n  - {type: a, output_max: 9007199254740993KiB}\n", "a size such as 4096"},
        {"handlers:\n  - {type: a, output_max: -1}\n", "it must be from 0 to"},
        {"handlers:\n  - {type: a, memory_max: 64KiB}\n", "it must be from 1048576 to"},
        {"handlers:\n  - {type: a, file_max: 0}\n", "it must be from 1 to"},
        {"handlers:\n  - {type: a, processes_max: many}\n", "a whole number"},
        {"handlers:\n  - {type: a, output_max: 2GiB}\n", "it must be from 0 to"},
        {"handlers:\n  - {type: a, timeout: 0}\n", "it must be from 1 to"},
        {"handlers:\n  - 3\n", "c.yaml:2: "},
        {"handlers:\n  - {type: [a]}\n", "type must be one value"},
        {"queues:\n  - {name: a, priority_order: sideways}\n", "high_first or low_first"},
        {"queues:\n  - {name: a, rate: 5/}\n", "a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: 5/11111111111111111111111111s}\n", "a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: 5/-1s}\n", "a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: 2000000000/s}\n", "a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: 5/99999d}\n", "a rate such as 100/s"},
        {"queues:\n  - {name: a, rate: {count: 5, per: 1s, burst: x}}\n", "burst"},
        {"queues:\n  - {name: a, rate: {count: 5, colour: 1}}\n", "unknown key 'colour'"},
        {"queues:\n  - {name: a, rate: [5]}\n", "rate"},
        {"queues:\n  - {name: a, type_limits: {type: b}}\n", "must be a list"},
        {"queues:\n  - {name: a, type_limits: [{concurrency: 1}]}\n", "has no 'type'"},
        {"queues:\n  - {name: a, concurrency: 1000001}\n", "it must be from 0 to 1000000"},
        {"rules:\n  - {metadata: [1], priority: 1}\n", "one pair such as"},
        {"rules:\n  - {metadata: {[a]: 1}, priority: 1}\n", "a JSON pointer"},
        {"rules:\n  - {metadata: {\"\": 1}, priority: 1}\n", "a JSON pointer"},
        {"rules:\n  - {metadata: {/a: [1]}, priority: 1}\n", "a text, number, true, false or null"},
        {"rules:\n  - {type: a, priority: urgent}\n", "low, medium, high, critical"},
        {"callbacks: {allow: http://a}\n", "allow"},
        {"callbacks: {allow: [[]]}\n", "a list of texts"},
        {"callbacks: 5\n", "callbacks"},
        {"callbacks: {allow: [a], allow: [b]}\n", "given twice"},
        {"retention: [1]\n", "retention"},
        {"\ntracing: {otlp: \"127.0.0.1:4318\"}\n",
         "c.yaml:2: tracing.otlp must be an address such as http://127.0.0.1:4318"},
        {"tracing: {otlp: \"http://\"}\n", "tracing.otlp must be an address"},
        {"tracing: {otlp: \"http://a b\"}\n", "tracing.otlp must be an address"},
        {"listen: \"\"\n", "listen"},
        {"listen: \"a:70000\"\n", "an address and a port"},
        {"listen: \":7070\"\n", "an address and a port"},
        {"listen: \"[]:7070\"\n", "an address and a port"},
        {"listen: \"[a:7070\"\n", "an address and a port"},
        {"listen: \"[::1:70\"\n", "an address and a port"},
        {"listen: \"::1]:70\"\n", "an address and a port"},
        {"allow_network_fs: maybe\n", "true or false"},
        {"[a]: b\n", "c.yaml:1: "},
        {"services:\n  - {name: s}\n", "has no 'url'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refusal(rows[i].text, rows[i].sentence);
}

/* A text with `piece` so many times between front and back. */
static char *repeated(const char *front, const char *piece, size_t count, const char *back)
{
    size_t len = strlen(front) + count * strlen(piece) + strlen(back) + 1;
    char *text = malloc(len);
    char *at = text;

    assert_non_null(text);
    at = stpcpy(at, front);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, piece);
    stpcpy(at, back);
    return text;
}

static void texts_and_lists_beyond_their_bounds_are_refused(void **state)
{
    const struct {
        const char *front, *piece;
        size_t count;
        const char *back, *sentence;
    } rows[] = {
        {"store: ", "x", CONFIG_TEXT_BYTES_MAX + 1, "\n", "store"},
        {"queues:\n  - name: ", "x", BOUND_NAME_BYTES + 1, "\n", "at most 200 are allowed"},
        {"handlers:\n  - {type: a, command: [", "x,", 5000, "x]}\n", "command"},
        {"handlers:\n  - {type: a, command: [a, \"", "x", CONFIG_TEXT_BYTES_MAX + 1, "\"]}\n",
         "a list of texts"},
        {"queues:\n  - name: a\n    type_limits: [", "{type: a},", BOUND_TYPE_LIMITS,
         "{type: a}]\n", "a shorter list"},
        {"handlers:\n  - {type: a, environment: {\"", "X", BOUND_NAME_BYTES + 1, "\": b}}\n",
         "variable names"},
        {"\"", "k", 5000, "\": 1\n", "c.yaml:1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = repeated(rows[i].front, rows[i].piece, rows[i].count, rows[i].back);

        expect_refusal(text, rows[i].sentence);
        free(text);
    }
}

static void everything_a_file_can_say_is_understood(void **state)
{
    static const char text[] =
        "handlers:\n"
        "  - {type: a, command: [x, y], environment: {A_1: b, _b: ''}, output_max: 64KiB,\n"
        "     timeout: 5s, retry_policy: fixed, hash_input: true, directory: /tmp}\n"
        "queues:\n"
        "  - {name: a, rate: {count: 5, per: 2s}, key_rate: 7/m, priority_order: low_first,\n"
        "     type_limits: [{type: t, concurrency: 2, rate: {count: 1, per: 1s, burst: 9}}]}\n"
        "  - {name: b, rate: none, type_limits: }\n"
        "rules:\n"
        "  - {metadata: {/tenant: gold}, priority: high}\n"
        "  - {metadata: {/n: 5}, type: 'a*', priority: -3}\n"
        "  - {metadata: {/s: \"5\"}, priority: 1}\n"
        "  - {metadata: {/x: null}, priority: 1}\n"
        "callbacks: {allow: [http://a, https://b/c]}\n"
        "retention:\n";
    struct config config;
    struct err err = {0};
    const struct settings *settings = &config.settings;

    (void)state;
    assert_int_equal(config_init_defaults(&config, &err), 0);
    if (config_parse(&config, STR(text), "c.yaml", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(settings->handlers[0].output_bytes_max, 64 * 1024);
    assert_string_equal(settings->handlers[0].command[1], "y");
    assert_string_equal(settings->handlers[0].environment[0], "A_1=b");
    assert_string_equal(settings->handlers[0].environment[1], "_b=");
    assert_int_equal(settings->queues[0].rate.burst, 0);
    assert_int_equal(settings->queues[0].rate.per_ms, 2000);
    assert_int_equal(settings->queues[0].key_rate.per_ms, 60000);
    assert_int_equal(settings->queues[0].type_limits[0].rate.burst, 9);
    assert_int_equal(settings->queues[1].rate.count, 0);
    assert_true(str_is(settings->enqueue.rules[0].metadata_equals, "\"gold\""));
    assert_true(str_is(settings->enqueue.rules[1].metadata_equals, "5"));
    assert_true(str_is(settings->enqueue.rules[2].metadata_equals, "\"5\""));
    assert_true(str_is(settings->enqueue.rules[3].metadata_equals, "null"));
    assert_int_equal(settings->callbacks.allow_count, 2);
    config_deinit(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_another_kind_are_refused),
        cmocka_unit_test(texts_and_lists_beyond_their_bounds_are_refused),
        cmocka_unit_test(everything_a_file_can_say_is_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
