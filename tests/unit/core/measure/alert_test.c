/* Which facts are worth an alert (D14). */
#include "core/measure/alert.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define AFTER_US (INT64_C(300) * 1000000)
#define QUEUE(...) ((struct alert_queue){.name = STR("q"), .dead_before = -1, __VA_ARGS__})
#pragma GCC diagnostic ignored "-Woverride-init"

/* "store_full no_worker": the codes in their order. */
static const char *codes_of(const struct alert_facts *facts)
{
    static char codes[4096];
    struct buf out = BUF_INIT(1024 * 1024);
    struct json_iter iter;
    struct str item;

    codes[0] = '\0';
    alerts_render(facts, &out);
    assert_int_equal(json_check(buf_view(&out), NULL, &(struct err){0}), 0);
    json_begin(buf_view(&out), &iter);
    while (json_next_element(&iter, &item)) {
        struct str code = json_get(item, STR("code"));

        snprintf(codes + strlen(codes), sizeof codes - strlen(codes), "%s%.*s",
                 codes[0] ? " " : "", (int)code.len - 2, code.data + 1);
    }
    buf_deinit(&out);
    return codes;
}

static const char *codes_of_queue(struct alert_queue queue)
{
    return codes_of(&(struct alert_facts){.queues = &queue, .queues_count = 1,
                                          .unclaimed_after_us = AFTER_US});
}

static void a_queue_is_told_of_when_it_needs_somebody(void **state)
{
    const struct {
        struct alert_queue queue;
        const char *codes;
    } cases[] = {
        {QUEUE(.waits_us = 0), ""},
        {QUEUE(.waits_us = AFTER_US), "no_worker"},
        {QUEUE(.waits_us = AFTER_US - 1), ""},
        {QUEUE(.waits_us = 10 * AFTER_US, .served = true), ""},
        {QUEUE(.waits_us = 10 * AFTER_US, .paused = true), ""},
        {QUEUE(.served = true, .unclaimed_us = AFTER_US, .unclaimed_type = STR("t")), "unclaimed"},
        {QUEUE(.served = true, .unclaimed_us = AFTER_US - 1, .unclaimed_type = STR("t")), ""},
        {QUEUE(.served = true, .unclaimed_us = AFTER_US, .unclaimed_type = STR("t"),
               .paused = true), ""},
        {QUEUE(.completed = 9, .failed = 11), "failure_rate"},
        {QUEUE(.completed = 10, .failed = 10), ""},
        {QUEUE(.failed = 19), ""},
        {QUEUE(.failed = 20), "failure_rate"},
        {QUEUE(.dead_before = -1, .dead_now = 7), ""},
        {QUEUE(.dead_before = 7, .dead_now = 7), ""},
        {QUEUE(.dead_before = 6, .dead_now = 7), "dead_letters"},
        {QUEUE(.dead_before = 8, .dead_now = 7), ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(codes_of_queue(cases[i].queue), cases[i].codes);
}

static void the_server_is_told_of_when_it_ails_and_the_worst_comes_first(void **state)
{
    const struct alert_queue queue = QUEUE(.waits_us = AFTER_US, .failed = 30);
    const struct alert_facts facts = {.queues = &queue,
                                      .queues_count = 1,
                                      .unclaimed_after_us = AFTER_US,
                                      .no_leader = true,
                                      .clock_behind_us = ALERT_CLOCK_US,
                                      .storage_full = true,
                                      .stores_down = 1,
                                      .log_regression = true,
                                      .read_errors = 2,
                                      .schedules_in_error = 3};

    (void)state;
    assert_string_equal(codes_of(&(struct alert_facts){.unclaimed_after_us = AFTER_US}), "");
    assert_string_equal(codes_of(&(struct alert_facts){.clock_behind_us = ALERT_CLOCK_US - 1}),
                        "");
    assert_string_equal(codes_of(&facts), "store_full no_leader store_down log_regression "
                        "read_errors no_worker clock_back schedules_in_error failure_rate");
}

static void new_dead_letters_are_told_of_in_plain_words(void **state)
{
    const struct {
        double before, now;
        const char *sentence;
    } cases[] = {
        {0, 1, "\"1 new dead letter in the last hour: perdura task list --status dead_letter shows "
               "it.\""},
        {3, 5, "\"2 new dead letters in the last hour: perdura task list --status dead_letter shows "
               "them.\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct alert_queue queue = QUEUE(.dead_before = cases[i].before, .dead_now = cases[i].now);
        struct buf out = BUF_INIT(1024 * 1024);

        alerts_render(&(struct alert_facts){.queues = &queue, .queues_count = 1}, &out);
        buf_byte(&out, '\0');
        assert_non_null(strstr(out.data, cases[i].sentence));
        buf_deinit(&out);
    }
}

/* For those who say it in other words. */
static void the_numbers_of_a_sentence_stand_beside_it(void **state)
{
    const struct alert_queue queue = QUEUE(.completed = 1, .failed = 29);
    struct buf out = BUF_INIT(1024 * 1024);

    (void)state;
    alerts_render(&(struct alert_facts){.queues = &queue, .queues_count = 1, .read_errors = 2,
                                        .storage_full = true}, &out);
    buf_byte(&out, '\0');
    assert_non_null(strstr(out.data, "check the disk.\",\"n\":2}"));
    assert_non_null(strstr(out.data, "failed.\",\"queue\":\"q\",\"n\":29,\"of\":30}"));
    assert_non_null(strstr(out.data, "continues by itself.\"}"));
    buf_deinit(&out);
}

static void no_more_than_the_bound_are_shown(void **state)
{
    struct alert_queue queues[ALERTS_MAX + 20];
    struct buf out = BUF_INIT(1024 * 1024);
    struct json_iter iter;
    struct str item;
    int count = 0;

    (void)state;
    for (int i = 0; i < ALERTS_MAX + 20; i++)
        queues[i] = QUEUE(.waits_us = AFTER_US);
    alerts_render(&(struct alert_facts){.queues = queues, .queues_count = ALERTS_MAX + 20}, &out);
    json_begin(buf_view(&out), &iter);
    while (json_next_element(&iter, &item))
        count++;
    assert_int_equal(count, ALERTS_MAX);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_is_told_of_when_it_needs_somebody),
        cmocka_unit_test(the_server_is_told_of_when_it_ails_and_the_worst_comes_first),
        cmocka_unit_test(new_dead_letters_are_told_of_in_plain_words),
        cmocka_unit_test(the_numbers_of_a_sentence_stand_beside_it),
        cmocka_unit_test(no_more_than_the_bound_are_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
