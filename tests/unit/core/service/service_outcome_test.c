/* What every status means for a task, and when a breaker opens (D10, F-G8). */
#include "core/service/breaker.h"
#include "core/service/service_outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_US INT64_C(1000000)

static void every_status_has_one_meaning(void **state)
{
    static const struct {
        int status;
        enum service_end plain, with_retry_after;
        bool is_down;
    } rows[] = {
        {200, SERVICE_DONE, SERVICE_DONE, false},
        {201, SERVICE_DONE, SERVICE_DONE, false},
        {202, SERVICE_DONE, SERVICE_DONE, false},
        {204, SERVICE_DONE, SERVICE_DONE, false},
        {301, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {302, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {400, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {401, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {404, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {408, SERVICE_RETRY, SERVICE_RETRY, true},
        {409, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {425, SERVICE_RETRY, SERVICE_RETRY, false},
        {429, SERVICE_RETRY, SERVICE_WAIT, false},
        {499, SERVICE_REFUSED, SERVICE_REFUSED, false},
        {500, SERVICE_RETRY, SERVICE_RETRY, true},
        {502, SERVICE_RETRY, SERVICE_RETRY, true},
        {504, SERVICE_RETRY, SERVICE_RETRY, true},
        {599, SERVICE_RETRY, SERVICE_RETRY, true},
        {100, SERVICE_RETRY, SERVICE_RETRY, true},
        {0, SERVICE_RETRY, SERVICE_RETRY, true},
        {999, SERVICE_RETRY, SERVICE_RETRY, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct service_verdict plain = service_judge(rows[i].status, false, false);

        assert_int_equal(plain.end, rows[i].plain);
        assert_int_equal(plain.is_down, rows[i].is_down);
        assert_int_equal(service_judge(rows[i].status, true, false).end, rows[i].with_retry_after);
    }
    assert_int_equal(service_judge(503, false, false).end, SERVICE_RETRY);
    assert_true(service_judge(503, false, false).is_down);
    assert_int_equal(service_judge(503, true, false).end, SERVICE_WAIT);
    assert_false(service_judge(503, true, false).is_down); /* it is there, and busy */
    assert_int_equal(service_judge(202, false, true).end, SERVICE_ACCEPTED);
    assert_int_equal(service_judge(200, false, true).end, SERVICE_DONE);
}

static void lookups_that_know_nothing_are_no_answer(void **state)
{
    (void)state;
    assert_int_equal(service_judge_lookup(200), SERVICE_FOUND);
    assert_int_equal(service_judge_lookup(404), SERVICE_NOT_THERE);
    assert_int_equal(service_judge_lookup(410), SERVICE_NOT_THERE);
    assert_int_equal(service_judge_lookup(204), SERVICE_NOT_THERE);
    assert_int_equal(service_judge_lookup(401), SERVICE_NOT_KNOWN);
    assert_int_equal(service_judge_lookup(500), SERVICE_NOT_KNOWN);
    assert_int_equal(service_judge_lookup(302), SERVICE_NOT_KNOWN);
}

static void waits_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(service_wait_ms(0), SERVICE_WAIT_MS_MIN);
    assert_int_equal(service_wait_ms(-5), SERVICE_WAIT_MS_MIN);
    assert_int_equal(service_wait_ms(3), 3000);
    assert_int_equal(service_wait_ms(INT64_MAX), SERVICE_WAIT_MS_MAX);
}

static void breaker_opens_after_failures_in_a_row_and_tries_one_call(void **state)
{
    const struct breaker_rule rule = {3, 60 * SECOND_US};
    struct breaker breaker = {0};

    (void)state;
    breaker_end(&breaker, &rule, true, SECOND_US);
    breaker_end(&breaker, &rule, true, SECOND_US);
    breaker_end(&breaker, &rule, false, SECOND_US); /* in a row only */
    breaker_end(&breaker, &rule, true, SECOND_US);
    breaker_end(&breaker, &rule, true, SECOND_US);
    assert_int_equal(breaker_room(&breaker, 20, SECOND_US), 20);
    assert_true(breaker_end(&breaker, &rule, true, 2 * SECOND_US));
    assert_int_equal(breaker_room(&breaker, 20, 3 * SECOND_US), 0);
    assert_false(breaker_end(&breaker, &rule, true, 50 * SECOND_US)); /* it began before */
    assert_int_equal(breaker.open_until_us, 62 * SECOND_US);
    assert_int_equal(breaker_room(&breaker, 20, 62 * SECOND_US), 1);
    breaker_begin(&breaker);
    assert_int_equal(breaker_room(&breaker, 20, 62 * SECOND_US), 0);
    assert_false(breaker_end(&breaker, &rule, true, 63 * SECOND_US)); /* it stays open ... */
    assert_int_equal(breaker.since_us, 2 * SECOND_US);
    assert_int_equal(breaker_room(&breaker, 20, 122 * SECOND_US), 0);
    assert_int_equal(breaker_room(&breaker, 20, 123 * SECOND_US), 1);
    breaker_begin(&breaker);
    breaker_undo(&breaker); /* it was not made: another one is tried */
    assert_int_equal(breaker_room(&breaker, 20, 123 * SECOND_US), 1);
    breaker_begin(&breaker);
    assert_true(breaker_end(&breaker, &rule, false, 124 * SECOND_US));
    assert_int_equal(breaker_room(&breaker, 20, 124 * SECOND_US), 20);
}

static void breaker_without_a_number_never_opens(void **state)
{
    const struct breaker_rule rule = {0, 60 * SECOND_US};
    struct breaker breaker = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_false(breaker_end(&breaker, &rule, true, SECOND_US));
    assert_int_equal(breaker_room(&breaker, 20, SECOND_US), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_one_meaning),
        cmocka_unit_test(lookups_that_know_nothing_are_no_answer),
        cmocka_unit_test(waits_are_bounded),
        cmocka_unit_test(breaker_opens_after_failures_in_a_row_and_tries_one_call),
        cmocka_unit_test(breaker_without_a_number_never_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
