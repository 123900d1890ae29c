/* What a worker tells of its services arrives as it was, and what several tell is one (D13). */
#include "core/service/service_told.h"
#include "server/parse_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define WALL_US INT64_C(1800000000000000)

static struct services_told sent(struct service_view *view, const struct service_figures *before,
                                 struct arena *arena)
{
    struct buf out = BUF_INIT(1 << 16);
    struct services_told told;
    struct heartbeat_request request = {0};
    struct err err = {0};
    struct str body;

    buf_text(&out, "{\"services_serial\":5,\"services\":[");
    service_told_write(view, before, WALL_US, &out);
    buf_text(&out, "]}");
    body = arena_str(arena, buf_view(&out));
    buf_deinit(&out);
    assert_int_equal(parse_heartbeat(body, arena, &request, &told, &err), 0);
    assert_int_equal(told.serial, 5);
    assert_int_equal(told.count, 1);
    return told;
}

static void what_came_since_arrives_and_nothing_else(void **state)
{
    struct service_view view = {.name = STR("s"), .url = STR("http://s.example"), .status = "down",
                                .down_since_us = WALL_US - 3000000, .in_flight = 2,
                                .next_try_us = WALL_US + 5000000, .concurrency = 20};
    struct service_figures before = {.methods_count = 0}, *heard = calloc(1, sizeof *heard);
    struct arena arena = ARENA_INIT(0);
    struct services_told told;

    (void)state;
    service_figures_add(&view.figures, STR("A"), SERVICE_RESULT_DONE, 900, WALL_US);
    service_figures_add(&view.figures, STR("B"), SERVICE_RESULT_FAILED, 70000000000, WALL_US);
    told = sent(&view, &before, &arena);
    service_told_count(&told.list[0], WALL_US, heard);
    assert_string_equal(told.list[0].status, "down");
    assert_true(told.list[0].is_down);
    assert_int_equal(told.list[0].down_ms, 3000);
    assert_int_equal(told.list[0].next_try_ms, 5000);
    assert_int_equal(told.list[0].in_flight, 2);
    before = view.figures;
    service_figures_add(&view.figures, STR("A"), SERVICE_RESULT_DONE, 1, WALL_US);
    told = sent(&view, &before, &arena);
    assert_int_equal(told.list[0].methods_count, 1);
    service_told_count(&told.list[0], WALL_US, heard);
    assert_memory_equal(heard, &view.figures, sizeof *heard);
    told = sent(&view, &view.figures, &arena);
    assert_int_equal(told.list[0].methods_count, 0);
    assert_null(told.list[0].durations);
    arena_deinit(&arena);
    free(heard);
}

static void an_error_is_told_once_and_the_later_one_stays(void **state)
{
    struct service_view view = {.name = STR("s"), .url = STR(""), .status = "degraded"};
    struct service_figures none = {.methods_count = 0}, heard = {.methods_count = 0};
    struct arena arena = ARENA_INIT(0);
    struct services_told told;

    (void)state;
    snprintf(view.figures.last_error, sizeof view.figures.last_error, "service s is away");
    view.figures.last_error_us = WALL_US - 1000;
    told = sent(&view, &none, &arena);
    service_told_count(&told.list[0], WALL_US, &heard);
    assert_string_equal(heard.last_error, "service s is away");
    told.list[0].error = STR("older");
    told.list[0].error_ms = 60000;
    service_told_count(&told.list[0], WALL_US, &heard);
    assert_string_equal(heard.last_error, "service s is away");
    assert_null(sent(&view, &view.figures, &arena).list[0].error.data);
    arena_deinit(&arena);
}

static void views_of_several_callers_are_one(void **state)
{
    static const struct {
        const char *one, *other, *both;
    } cases[] = {{"up", "up", "up"},           {"unknown", "down", "down"}, {"up", "unknown", "up"},
                 {"up", "down", "degraded"},   {"down", "down", "down"},
                 {"degraded", "up", "degraded"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service_view to = {.status = cases[i].one, .in_flight = 3, .down_since_us = 9};
        struct service_view from = {.status = cases[i].other, .in_flight = 4, .concurrency = 20,
                                    .down_since_us = 7};

        for (int method = 0; method <= SERVICE_METHODS_MAX + 1; method++) {
            char name[] = {(char)('0' + method), '\0'};

            service_figures_add(&to.figures, str_of(name), SERVICE_RESULT_DONE, 5, WALL_US);
            service_figures_add(&from.figures, STR("0"), SERVICE_RESULT_FAILED, 5, WALL_US);
        }
        service_view_merge(&to, &from);
        assert_string_equal(to.status, cases[i].both);
        assert_int_equal(to.in_flight, 7);
        assert_int_equal(to.concurrency, 20);
        assert_int_equal(to.down_since_us, 7);
        assert_int_equal(to.figures.methods[0].calls[SERVICE_RESULT_FAILED], 34);
        assert_int_equal(to.figures.methods[SERVICE_METHODS_MAX].calls[SERVICE_RESULT_DONE], 2);
        assert_int_equal(histogram_count(&to.figures.seconds), 68);
        service_view_merge(&from, &to);
        assert_int_equal(from.figures.methods_count, SERVICE_METHODS_MAX + 1);
        assert_int_equal(from.figures.methods[SERVICE_METHODS_MAX].calls[SERVICE_RESULT_DONE], 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_since_arrives_and_nothing_else),
        cmocka_unit_test(an_error_is_told_once_and_the_later_one_stays),
        cmocka_unit_test(views_of_several_callers_are_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
