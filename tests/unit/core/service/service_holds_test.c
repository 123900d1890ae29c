/* What workers found out about services counts for all of their namespace, and for no other (D10). */
#include "core/service/service_holds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND_US INT64_C(1000000)
#define HOLD_OF(name, ms) ((struct service_hold){.service = (name), .wait_ms = (ms)})
#define HOLD(name, ms, down) ((struct service_hold){.service = STR(name), .wait_ms = (ms), .is_down = (down)})

static uint32_t count_of(const struct service_holds *holds, const char *within, int64_t now_us)
{
    struct service_hold hold;
    uint32_t at = 0, count = 0;

    while (service_holds_next(holds, str_of(within), now_us, &at, &hold))
        count++;
    return count;
}

static void a_later_end_counts_and_an_earlier_one_does_not(void **state)
{
    struct service_holds holds = {0};
    struct service_hold hold;
    uint32_t at = 0;

    (void)state;
    assert_true(service_holds_put(&holds, STR("default"), &HOLD("s", 5000, false), SECOND_US));
    assert_false(service_holds_put(&holds, STR("default"), &HOLD("s", 5000, false), SECOND_US));
    assert_false(service_holds_put(&holds, STR("default"), &HOLD("s", 5100, false), SECOND_US));
    assert_false(service_holds_put(&holds, STR("default"), &HOLD("s", 100, true), SECOND_US));
    assert_true(service_holds_put(&holds, STR("default"), &HOLD("s", 9000, true), SECOND_US));
    assert_true(service_holds_next(&holds, STR("default"), SECOND_US, &at, &hold));
    assert_true(str_is(hold.service, "s"));
    assert_int_equal(hold.wait_ms, 9000);
    assert_true(hold.is_down);
    assert_int_equal(count_of(&holds, "default", 11 * SECOND_US), 0);
}

static void nothing_holds_longer_than_an_hour_or_not_at_all(void **state)
{
    struct service_holds holds = {0};

    (void)state;
    assert_false(service_holds_put(&holds, STR("default"), &HOLD("s", 0, false), SECOND_US));
    assert_true(service_holds_put(&holds, STR("default"), &HOLD("s", INT64_MAX, false), SECOND_US));
    assert_int_equal(count_of(&holds, "default", 3600 * SECOND_US), 1);
    assert_int_equal(count_of(&holds, "default", 3602 * SECOND_US), 0);
}

static void namespaces_do_not_see_each_other(void **state)
{
    struct service_holds holds = {0};

    (void)state;
    service_holds_put(&holds, STR("a"), &HOLD("s", 5000, false), SECOND_US);
    service_holds_put(&holds, STR("ab"), &HOLD("s", 5000, false), SECOND_US);
    assert_int_equal(count_of(&holds, "a", SECOND_US), 1);
    assert_int_equal(count_of(&holds, "b", SECOND_US), 0);
    assert_int_equal(count_of(&holds, "", SECOND_US), 0);
}

static void a_full_list_takes_the_place_of_one_that_is_over(void **state)
{
    struct service_holds holds = {0};
    char name[16];

    (void)state;
    for (int i = 0; i < SERVICE_HOLDS_MAX + 5; i++) {
        struct service_hold hold = {.wait_ms = 5000 + i};

        snprintf(name, sizeof name, "s%d", i);
        hold.service = str_of(name);
        assert_int_equal(service_holds_put(&holds, STR("n"), &hold, SECOND_US),
                         i < SERVICE_HOLDS_MAX);
    }
    assert_true(service_holds_put(&holds, STR("n"), &HOLD("late", 5000, false), 10 * SECOND_US));
    assert_int_equal(count_of(&holds, "n", 10 * SECOND_US), 1);
}

static void a_namespace_that_fills_the_list_makes_room_for_others_D12(void **state)
{
    struct service_holds holds = {0};
    char name[16];

    (void)state;
    for (int i = 0; i < SERVICE_HOLDS_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        service_holds_put(&holds, STR("many"), &HOLD_OF(str_of(name), 5000),
                          SECOND_US);
    }
    for (int i = 0; i < SERVICE_HOLDS_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        service_holds_put(&holds, i % 2 ? STR("one") : STR("two"),
                          &(struct service_hold){.service = str_of(name), 5000, false}, SECOND_US);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"one", "two", "many"};

        assert_in_range(count_of(&holds, names[i], SECOND_US), SERVICE_HOLDS_MAX / 3 - 1,
                        SERVICE_HOLDS_MAX / 3 + 1);
    }
}

static void other_nodes_read_what_one_wrote_and_no_nonsense(void **state)
{
    static const char *const wrong[] = {"", "\n\n", "n/s", "n/s x 1\n", "n/s 99999999999999999999 1\n",
                                        "n/s 9000000000000000000 1\n", "n/s -5 1\n"};
    struct service_holds holds = {0}, read = {0};
    BUF_AUTO struct buf text = BUF_INIT(SERVICE_HOLDS_BYTES);

    (void)state;
    service_holds_put(&holds, STR("n"), &HOLD("s", 5000, true), SECOND_US);
    service_holds_put(&holds, STR("n"), &HOLD("t", 7000, false), SECOND_US);
    service_holds_write(&holds, SECOND_US, &text);
    service_holds_read(&read, buf_view(&text), SECOND_US);
    assert_int_equal(count_of(&read, "n", SECOND_US), 2);
    assert_int_equal(count_of(&read, "n", 7 * SECOND_US), 1);
    read = (struct service_holds){0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        service_holds_read(&read, str_of(wrong[i]), SECOND_US);
    assert_int_equal(count_of(&read, "n", SECOND_US), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_end_counts_and_an_earlier_one_does_not),
        cmocka_unit_test(nothing_holds_longer_than_an_hour_or_not_at_all),
        cmocka_unit_test(namespaces_do_not_see_each_other),
        cmocka_unit_test(a_full_list_takes_the_place_of_one_that_is_over),
        cmocka_unit_test(a_namespace_that_fills_the_list_makes_room_for_others_D12),
        cmocka_unit_test(other_nodes_read_what_one_wrote_and_no_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
