/* The day of an agent over all processes: sums only grow, whatever comes twice, late or at the same
 * moment (C9). */
#include "core/agent/agent_days.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define A STR("aaaaaaaaaaaaaaaa")
#define B STR("bbbbbbbbbbbbbbbb")

struct fact {
    char text[2 * AGENT_DAY_BYTES];
};

static bool put(struct fact *fact, struct str process, int64_t day, int64_t calls)
{
    struct buf out = BUF_INIT(2 * AGENT_DAY_BYTES);
    struct agent_day told = {STR("a"), day, {.calls = calls, .cost = 10 * calls}};
    bool changed;

    agent_day_put(str_of(fact->text), process, &told, &out, &changed);
    assert_false(out.failed);
    if (changed)
        snprintf(fact->text, sizeof fact->text, STR_FMT, STR_ARG(buf_view(&out)));
    buf_deinit(&out);
    return changed;
}

static int64_t others(const struct fact *fact, struct str process, int64_t day)
{
    struct agent_usage used = agent_day_others(str_of(fact->text), process, day);

    assert_int_equal(used.cost, 10 * used.calls);
    return used.calls;
}

static void each_process_hears_the_sum_of_all_others(void **state) /* C9 */
{
    struct fact fact = {""};

    (void)state;
    assert_true(put(&fact, A, 7, 3));
    assert_true(put(&fact, B, 7, 4));
    assert_int_equal(others(&fact, A, 7), 4);
    assert_int_equal(others(&fact, B, 7), 3);
    assert_int_equal(others(&fact, STR("cccccccccccccccc"), 7), 7);
}

static void what_is_told_twice_or_late_changes_nothing(void **state)
{
    struct fact fact = {""};

    (void)state;
    assert_true(put(&fact, A, 7, 3));
    assert_false(put(&fact, A, 7, 3));
    assert_false(put(&fact, A, 7, 2));
    assert_int_equal(others(&fact, B, 7), 3);
}

static void a_new_day_begins_with_nothing_and_yesterday_is_over(void **state)
{
    struct fact fact = {""};

    (void)state;
    put(&fact, A, 7, 3);
    assert_true(put(&fact, B, 8, 1));
    assert_false(put(&fact, A, 7, 9));
    assert_int_equal(others(&fact, A, 8), 1);
    assert_int_equal(others(&fact, A, 7), 0);
}

static void of_many_processes_the_oldest_are_one_and_none_is_lost(void **state)
{
    struct fact fact = {""};
    char name[AGENT_PROCESS_CHARS + 1];

    (void)state;
    for (int i = 0; i < 3 * AGENT_DAY_PROCESSES; i++) {
        snprintf(name, sizeof name, "%016x", (unsigned)i);
        assert_true(put(&fact, str_of(name), 7, 1));
        assert_int_equal(others(&fact, A, 7), i + 1);
    }
    assert_true(strlen(fact.text) < AGENT_DAY_BYTES);
}

static void a_damaged_text_counts_for_what_can_be_read(void **state)
{
    struct fact fact = {"7\nnonsense\n\naaaaaaaaaaaaaaaa 3 0 0 30 0\nbbbb 1 2\n"};

    (void)state;
    assert_int_equal(others(&fact, B, 7), 3);
    assert_true(put(&fact, B, 7, 1));
    assert_int_equal(others(&fact, B, 7), 3);
    snprintf(fact.text, sizeof fact.text, "?");
    assert_true(put(&fact, B, 7, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_hears_the_sum_of_all_others),
        cmocka_unit_test(what_is_told_twice_or_late_changes_nothing),
        cmocka_unit_test(a_new_day_begins_with_nothing_and_yesterday_is_over),
        cmocka_unit_test(of_many_processes_the_oldest_are_one_and_none_is_lost),
        cmocka_unit_test(a_damaged_text_counts_for_what_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
