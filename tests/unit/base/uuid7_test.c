/* UUIDv7: form, order within and across milliseconds, a clock that goes back, text both ways. */
#include "base/uuid7.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW_US INT64_C(1767323045678901)

static void ids_have_version_7_and_their_time(void **state)
{
    struct uuid7 generator = {0};
    struct uuid id = uuid7_new(&generator, NOW_US);
    char text[UUID_TEXT_BYTES];

    (void)state;
    assert_int_equal(id.bytes[6] >> 4, 7);
    assert_int_equal(id.bytes[8] >> 6, 2);
    assert_true(uuid7_time_ms(&id) == NOW_US / 1000);
    uuid_format(&id, text);
    assert_int_equal(strlen(text), 36);
    assert_int_equal(text[14], '7');
}

static void ids_of_one_generator_rise_whatever_the_clock_does(void **state)
{
    struct uuid7 generator = {0};
    struct uuid last = uuid7_new(&generator, NOW_US);

    (void)state;
    for (int i = 0; i < 200000; i++) {
        int64_t now_us = NOW_US + i / 1000 - (i % 7 == 0 ? 5000000 : 0);
        struct uuid id = uuid7_new(&generator, now_us);

        assert_true(memcmp(last.bytes, id.bytes, 16) < 0);
        assert_int_equal(id.bytes[6] >> 4, 7);
        assert_int_equal(id.bytes[8] >> 6, 2);
        last = id;
    }
}

static void the_counter_runs_over_into_the_next_millisecond(void **state)
{
    struct uuid7 generator = {.last_ms = NOW_US / 1000, .counter = 0x3FFFFFE};
    struct uuid a = uuid7_new(&generator, NOW_US);
    struct uuid b = uuid7_new(&generator, NOW_US);
    struct uuid c = uuid7_new(&generator, NOW_US);

    (void)state;
    assert_true(memcmp(a.bytes, b.bytes, 16) < 0);
    assert_true(memcmp(b.bytes, c.bytes, 16) < 0);
    assert_true(uuid7_time_ms(&a) == NOW_US / 1000);
    assert_true(uuid7_time_ms(&b) == NOW_US / 1000 + 1);
}

static void two_generators_make_different_ids(void **state)
{
    struct uuid7 one = {0}, two = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct uuid a = uuid7_new(&one, NOW_US), b = uuid7_new(&two, NOW_US);

        assert_false(uuid_eq(&a, &b));
    }
}

static void a_time_before_1970_counts_as_1970(void **state)
{
    struct uuid7 generator = {0};
    struct uuid id = uuid7_new(&generator, -5);

    (void)state;
    assert_true(uuid7_time_ms(&id) == 0);
    assert_false(uuid_is_nil(&id));
}

static void text_survives_a_round_trip_and_upper_case_is_read(void **state)
{
    struct uuid id, again;
    char text[UUID_TEXT_BYTES];

    (void)state;
    assert_true(uuid_parse(STR("0192F0C1-2345-7abc-8DEF-0123456789ab"), &id));
    uuid_format(&id, text);
    assert_string_equal(text, "0192f0c1-2345-7abc-8def-0123456789ab");
    assert_true(uuid_parse(str_of(text), &again));
    assert_true(uuid_eq(&id, &again));
    assert_true(uuid_parse(STR("00000000-0000-0000-0000-000000000000"), &id));
    assert_true(uuid_is_nil(&id));
}

static void what_is_not_a_uuid_is_refused(void **state)
{
    static const struct str rows[] = {
        {NULL, 0}, STR(""), STR("0192f0c1-2345-7abc-8def-0123456789a"),
        STR("0192f0c1-2345-7abc-8def-0123456789abc"), STR("0192f0c1x2345-7abc-8def-0123456789ab"),
        STR("0192f0c123457abc8def0123456789ab"), STR("0192f0c1-2345-7abc-8def-0123456789ag"),
        STR("{192f0c1-2345-7abc-8def-0123456789a}"), STR("0192f0c-12345-7abc-8def-0123456789ab"),
        STR("0192f0c1-2345-7abc-8def-0123456789\0b"), STR("-192f0c1-2345-7abc-8def-0123456789ab"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct uuid id;

        assert_false(uuid_parse(rows[i], &id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_have_version_7_and_their_time),
        cmocka_unit_test(ids_of_one_generator_rise_whatever_the_clock_does),
        cmocka_unit_test(the_counter_runs_over_into_the_next_millisecond),
        cmocka_unit_test(two_generators_make_different_ids),
        cmocka_unit_test(a_time_before_1970_counts_as_1970),
        cmocka_unit_test(text_survives_a_round_trip_and_upper_case_is_read),
        cmocka_unit_test(what_is_not_a_uuid_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
