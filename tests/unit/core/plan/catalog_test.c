/* The words of the catalog, and what is read from the objects of categories and dependencies. */
#include "core/plan/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void every_word_is_read_back_as_what_it_stands_for(void **state)
{
    enum schedule_type type;
    enum misfire misfire;
    enum overlap overlap;
    enum dependency_mode mode;

    (void)state;
    for (int i = 0; i < SCHEDULE_TYPE_COUNT; i++) {
        assert_true(schedule_type_parse(str_of(schedule_type_word((enum schedule_type)i)), &type));
        assert_int_equal(type, i);
    }
    for (int i = 0; i < MISFIRE_COUNT; i++) {
        assert_true(misfire_parse(str_of(misfire_word((enum misfire)i)), &misfire));
        assert_int_equal(misfire, i);
    }
    for (int i = 0; i < OVERLAP_COUNT; i++) {
        assert_true(overlap_parse(str_of(overlap_word((enum overlap)i)), &overlap));
        assert_int_equal(overlap, i);
    }
    for (int i = 0; i < DEPENDENCY_MODE_COUNT; i++) {
        assert_true(dependency_mode_parse(str_of(dependency_mode_word((enum dependency_mode)i)),
                                          &mode));
        assert_int_equal(mode, i);
    }
}

static void other_words_are_none_of_them(void **state)
{
    static const char *const words[] = {"", "Cron", "cron ", "fire", "queued", "gates", "null"};
    enum schedule_type type = SCHEDULE_ONCE;
    enum misfire misfire;
    enum overlap overlap;
    enum dependency_mode mode;

    (void)state;
    for (size_t i = 0; i < ROWS(words); i++) {
        assert_false(schedule_type_parse(str_of(words[i]), &type));
        assert_false(misfire_parse(str_of(words[i]), &misfire));
        assert_false(overlap_parse(str_of(words[i]), &overlap));
        assert_false(dependency_mode_parse(str_of(words[i]), &mode));
    }
    assert_false(schedule_type_parse(STR_NONE, &type));
    assert_int_equal(type, SCHEDULE_ONCE);
}

static void assert_text(struct str found, const char *expected)
{
    assert_true(expected ? str_is(found, expected) : found.data == NULL);
}

static void d5_a_category_says_what_its_configuration_holds_and_nothing_else(void **state)
{
    static const struct {
        const char *configuration;
        const char *queue;
        const char *windows;
        const char *timezone;
        int64_t batch_size;
    } rows[] = {
        {NULL, NULL, NULL, NULL, 0},
        {"{}", NULL, NULL, NULL, 0},
        {"[1]", NULL, NULL, NULL, 0},
        {"{\"queue\":\"high-priority\"}", "high-priority", NULL, NULL, 0},
        {"{\"queue\":\"\\u0061b\"}", "ab", NULL, NULL, 0},
        {"{\"queue\":7,\"timezone\":null,\"allowed_windows\":\"02:00-06:00\"}", NULL, NULL, NULL,
         0},
        {"{\"queue\":\"\"}", NULL, NULL, NULL, 0},
        {"{\"allowed_windows\":[\"02:00-06:00\"],\"timezone\":\"Europe/Paris\"}", NULL,
         "[\"02:00-06:00\"]", "Europe/Paris", 0},
        {"{\"allowed_windows\":[]}", NULL, NULL, NULL, 0},
        {"{\"batch_size\":1000}", NULL, NULL, NULL, 1000},
        {"{\"batch_size\":0}", NULL, NULL, NULL, 0},
        {"{\"batch_size\":-1}", NULL, NULL, NULL, 0},
        {"{\"batch_size\":\"9\"}", NULL, NULL, NULL, 0},
        {"{\"batch_processing\":true}", NULL, NULL, NULL, 100},
        {"{\"batch_processing\":true,\"batch_size\":7}", NULL, NULL, NULL, 7},
        {"{\"batch_processing\":false,\"batch_size\":7}", NULL, NULL, NULL, 0},
        {"{\"service\":\"x\",\"mine\":{\"queue\":\"no\"}}", NULL, NULL, NULL, 0},
    };
    struct arena arena = ARENA_INIT(64 * 1024);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str configuration = str_of(rows[i].configuration);
        struct category_rules rules;

        if (configuration.data)
            assert_int_equal(json_check(configuration, NULL, NULL), 0);
        assert_int_equal(category_rules_read(configuration, &arena, &rules, NULL), 0);
        assert_text(rules.queue, rows[i].queue);
        assert_text(rules.allowed_windows, rows[i].windows);
        assert_text(rules.timezone, rows[i].timezone);
        assert_int_equal(rules.batch_size, rows[i].batch_size);
    }
    arena_deinit(&arena);
}

static void d7_a_dependency_is_a_gate_unless_its_config_says_trigger(void **state)
{
    static const struct {
        const char *config;
        const char *refused; /* the field, or NULL */
        enum dependency_mode mode;
        int64_t within_ms;
    } rows[] = {
        {NULL, NULL, DEPENDENCY_GATE, 0},
        {"{}", NULL, DEPENDENCY_GATE, 0},
        {"{\"mode\":null,\"within_ms\":null}", NULL, DEPENDENCY_GATE, 0},
        {"{\"mode\":\"gate\",\"within_ms\":5000}", NULL, DEPENDENCY_GATE, 5000},
        {"{\"mode\":\"trigger\",\"note\":\"mine\"}", NULL, DEPENDENCY_TRIGGER, 0},
        {"{\"mode\":\"\\u0074rigger\"}", NULL, DEPENDENCY_TRIGGER, 0},
        {"{\"mode\":\"both\"}", "dependency_config.mode", DEPENDENCY_GATE, 0},
        {"{\"mode\":1}", "dependency_config.mode", DEPENDENCY_GATE, 0},
        {"{\"within_ms\":-1}", "dependency_config.within_ms", DEPENDENCY_GATE, 0},
        {"{\"within_ms\":1.5}", "dependency_config.within_ms", DEPENDENCY_GATE, 0},
        {"{\"within_ms\":9e18}", "dependency_config.within_ms", DEPENDENCY_GATE, 0},
        {"[]", "dependency_config", DEPENDENCY_GATE, 0},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct job_dependency dependency = {.config = str_of(rows[i].config)};
        struct err err = {0};
        int rc = job_dependency_read(&dependency, &err);

        assert_int_equal(rc, rows[i].refused ? -ERR_INVALID : 0);
        assert_string_equal(err.field, rows[i].refused ? rows[i].refused : "");
        assert_int_equal(dependency.mode, rows[i].mode);
        assert_int_equal(dependency.within_ms, rows[i].within_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_is_read_back_as_what_it_stands_for),
        cmocka_unit_test(other_words_are_none_of_them),
        cmocka_unit_test(d5_a_category_says_what_its_configuration_holds_and_nothing_else),
        cmocka_unit_test(d7_a_dependency_is_a_gate_unless_its_config_says_trigger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
