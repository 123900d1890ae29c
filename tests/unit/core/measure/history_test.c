/* The rings of the last hour and day (C7). Time is handed in. */
#include "core/measure/history.h"

#include "base/clock.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_US (INT64_C(1800000000) * CLOCK_SECOND_US) /* a whole minute */

struct bench {
    struct history *history;
    struct measures *measures;
    struct measured *measured;
    int64_t now_us;
    struct buf out;
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);

    bench->now_us = START_US;
    bench->history = history_new(bench->now_us);
    bench->measures = measures_new(NULL);
    bench->measured = calloc(1, sizeof *bench->measured);
    bench->out = BUF_INIT(64 * 1024 * 1024);
    assert_non_null(bench->history);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    history_free(bench->history);
    measures_free(bench->measures);
    free(bench->measured);
    buf_deinit(&bench->out);
    free(bench);
    return 0;
}

static void count(struct bench *bench, const char *queue, enum measure_count what, int times)
{
    struct measure_lane *lane = measures_lane(bench->measures, str_of(queue), STR("t"), NULL,
                                              NULL);

    for (int i = 0; i < times; i++)
        measure_add_count(lane, what);
}

/* So many seconds later, with what was counted meanwhile. */
static void pass(struct bench *bench, int64_t seconds, const struct history_now *now,
                 uint32_t now_count)
{
    bench->now_us += seconds * CLOCK_SECOND_US;
    memset(bench->measured, 0, sizeof *bench->measured);
    measures_read(bench->measures, bench->measured);
    history_add(bench->history, bench->now_us, bench->measured, now, now_count);
}

/* The value of a series `back` steps before the newest, as text; queue NULL = the total. */
static const char *value(struct bench *bench, enum history_window window, const char *queue,
                         const char *series, int back)
{
    static char text[64];
    struct str whole, list = STR_NONE, item;
    struct json_iter iter;
    int64_t count_all = 0;

    buf_reset(&bench->out);
    history_render(bench->history, window, false, STR_NONE, &bench->out);
    assert_false(bench->out.failed);
    assert_int_equal(json_check(buf_view(&bench->out), NULL, &(struct err){0}), 0);
    whole = buf_view(&bench->out);
    if (!queue) {
        list = json_get(whole, STR("total"));
    } else {
        whole = json_get(whole, STR("queues"));
        json_begin(whole, &iter);
        while (json_next_element(&iter, &item)) {
            struct str name = json_get(item, STR("queue"));

            snprintf(text, sizeof text, "\"%s\"", queue);
            if (str_is(name, text))
                list = item;
        }
    }
    if (!list.data)
        return "absent";
    list = json_get(list, str_of(series));
    assert_non_null(list.data);
    json_begin(list, &iter);
    while (json_next_element(&iter, &item))
        count_all++;
    json_begin(list, &iter);
    for (int64_t i = 0; i < count_all - back; i++)
        if (!json_next_element(&iter, &item))
            fail();
    snprintf(text, sizeof text, STR_FMT, STR_ARG(item));
    return text;
}

static void a_step_has_what_came_in_it(void **state)
{
    struct bench *bench = *state;
    const struct history_now now[] = {{STR("q"), 7, 2, 1}, {STR("r"), 3, 0, 0}};

    count(bench, "q", MEASURE_ENQUEUED, 5);
    count(bench, "q", MEASURE_COMPLETED, 4);
    count(bench, "q", MEASURE_FAILED, 1);
    count(bench, "r", MEASURE_DEAD_LETTER, 2);
    pass(bench, 5, now, 2);
    assert_string_equal(value(bench, WINDOW_15M, "q", "enqueued", 0), "5");
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 0), "4");
    assert_string_equal(value(bench, WINDOW_15M, "r", "failed", 0), "2");
    assert_string_equal(value(bench, WINDOW_15M, NULL, "failed", 0), "3");
    assert_string_equal(value(bench, WINDOW_15M, NULL, "waiting", 0), "10");
    assert_string_equal(value(bench, WINDOW_15M, "q", "running", 0), "2");
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 1), "null");
    pass(bench, 5, now, 2);
    assert_string_equal(value(bench, WINDOW_1H, "q", "completed", 0), "0");
    assert_string_equal(value(bench, WINDOW_1H, "q", "completed", 1), "4");
}

/* Also when the step's own end was missed: what was looked at counts once. */
static void what_was_looked_at_in_a_step_under_way_counts_once(void **state)
{
    struct bench *bench = *state;
    const struct history_now none[1] = {{STR("q"), 0, 0, 0}};

    count(bench, "q", MEASURE_COMPLETED, 4);
    measures_read(bench->measures, bench->measured);
    history_look(bench->history, bench->measured);
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 0), "null");
    buf_reset(&bench->out);
    history_render(bench->history, WINDOW_15M, true, STR_NONE, &bench->out);
    buf_byte(&bench->out, '\0');
    assert_non_null(strstr(bench->out.data, ",4],\"failed\""));
    pass(bench, 15, none, 1);
    assert_true(history_sum(bench->history, 1, HISTORY_COMPLETED, 60) == 4);
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 0), "4");
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 2), "null");
}

static void times_of_a_step_are_its_own(void **state)
{
    struct bench *bench = *state;
    struct measure_lane *lane = measures_lane(bench->measures, STR("q"), STR("t"), NULL, NULL);
    const struct history_now none[1] = {{STR("q"), 0, 0, 0}};

    for (int i = 0; i < 100; i++)
        measure_add_wait(lane, 1000000);
    pass(bench, 5, none, 1);
    for (int i = 0; i < 100; i++)
        measure_add_wait(lane, 1000);
    pass(bench, 5, none, 1);
    assert_true(atof(value(bench, WINDOW_15M, "q", "wait_p99_ms", 1)) > 700);
    assert_true(atof(value(bench, WINDOW_15M, "q", "wait_p99_ms", 0)) <= 1);
    assert_string_equal(value(bench, WINDOW_15M, "q", "run_p50_ms", 0), "null");
}

static void a_stall_leaves_a_gap_and_loses_nothing(void **state)
{
    struct bench *bench = *state;
    const struct history_now none[1] = {{STR("q"), 0, 0, 0}};

    pass(bench, 5, none, 1);
    count(bench, "q", MEASURE_COMPLETED, 9);
    pass(bench, 30, none, 1);
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 0), "9");
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 1), "null");
    assert_string_equal(value(bench, WINDOW_15M, "q", "completed", 6), "0");
}

static void a_store_that_does_not_answer_leaves_its_counts_open(void **state)
{
    struct bench *bench = *state;

    count(bench, "q", MEASURE_COMPLETED, 1);
    pass(bench, 5, NULL, 0);
    assert_string_equal(value(bench, WINDOW_15M, NULL, "waiting", 0), "null");
    assert_string_equal(value(bench, WINDOW_15M, NULL, "completed", 0), "1");
}

static void minutes_are_summed_up_for_a_day_and_rings_go_round(void **state)
{
    struct bench *bench = *state;
    const struct history_now none[1] = {{STR("q"), 0, 0, 0}};

    for (int i = 0; i < 3 * 720; i++) { /* three hours */
        count(bench, "q", MEASURE_COMPLETED, 1);
        pass(bench, 5, none, 1);
    }
    assert_string_equal(value(bench, WINDOW_6H, "q", "completed", 0), "12");
    assert_string_equal(value(bench, WINDOW_24H, "q", "completed", 100), "12");
    assert_string_equal(value(bench, WINDOW_24H, "q", "completed", 200), "null");
    assert_string_equal(value(bench, WINDOW_1H, "q", "completed", 719), "1");
    assert_true(history_sum(bench->history, 1, HISTORY_COMPLETED, 300) == 60);
    assert_true(history_sum(bench->history, 1, HISTORY_COMPLETED, 86400) == 720);
}

static void queues_beyond_the_bound_are_shown_together(void **state)
{
    struct bench *bench = *state;
    struct history_now now[100];
    char names[100][16];

    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "queue-%d", i);
        now[i] = (struct history_now){.queue = str_of(names[i]), .waiting = 1};
    }
    pass(bench, 5, now, 100);
    assert_string_equal(value(bench, WINDOW_15M, "queue-63", "waiting", 0), "1");
    assert_string_equal(value(bench, WINDOW_15M, "queue-64", "waiting", 0), "absent");
    assert_string_equal(value(bench, WINDOW_15M, "*", "waiting", 0), "36");
    assert_string_equal(value(bench, WINDOW_15M, NULL, "waiting", 0), "100");
}

static void the_fewest_dead_letters_of_the_last_hour_are_known(void **state)
{
    struct bench *bench = *state;
    const int64_t dead[] = {5, 3, 8};

    assert_true(history_least(bench->history, 0, HISTORY_DEAD, 3600) == -1);
    for (int i = 0; i < 3; i++) {
        const struct history_now now[] = {{STR("q"), 0, 0, dead[i]}};

        pass(bench, 5, now, 1);
    }
    assert_string_equal(history_queue(bench->history, 1).data, "q");
    assert_true(history_least(bench->history, 1, HISTORY_DEAD, 3600) == 3);
    assert_true(history_least(bench->history, 1, HISTORY_DEAD, 5) == 8);
}

static void only_the_windows_there_are_are_understood(void **state)
{
    enum history_window window;

    (void)state;
    assert_true(history_window_parse(STR("6h"), &window));
    assert_int_equal(window, WINDOW_6H);
    assert_false(history_window_parse(STR("2h"), &window));
    assert_false(history_window_parse(STR(""), &window));
}

#define HISTORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HISTORY_TEST(a_step_has_what_came_in_it),
        HISTORY_TEST(what_was_looked_at_in_a_step_under_way_counts_once),
        HISTORY_TEST(times_of_a_step_are_its_own),
        HISTORY_TEST(a_stall_leaves_a_gap_and_loses_nothing),
        HISTORY_TEST(a_store_that_does_not_answer_leaves_its_counts_open),
        HISTORY_TEST(minutes_are_summed_up_for_a_day_and_rings_go_round),
        HISTORY_TEST(queues_beyond_the_bound_are_shown_together),
        HISTORY_TEST(the_fewest_dead_letters_of_the_last_hour_are_known),
        cmocka_unit_test(only_the_windows_there_are_are_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
