/* D12: wrong tokens of an address wait for their answer, few at a time; right ones never do. */
#include "server/door/auth_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_US INT64_C(1000000)

static struct http_address address(uint8_t last)
{
    struct http_address made = {{0}};

    made.bytes[15] = last;
    return made;
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct auth_guard));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void fill(struct auth_guard *guard, const struct http_address *from, int64_t now_us)
{
    for (int i = 0; i < GUARD_FREE_MAX; i++)
        assert_int_equal(guard_wrong(guard, from, now_us, NULL), 0);
    for (int i = 0; i < GUARD_HELD_MAX; i++)
        assert_int_equal(guard_wrong(guard, from, now_us, NULL), GUARD_DELAY_US);
}

static void after_some_wrong_tokens_answers_wait_and_then_nobody_looks(void **state)
{
    struct auth_guard *guard = *state;
    struct http_address bad = address(1), other = address(2);

    fill(guard, &bad, SECOND_US);
    assert_true(guard_refuses(guard, &bad, SECOND_US));
    assert_false(guard_refuses(guard, &other, SECOND_US));
    assert_true(guard_refuses(guard, &bad, SECOND_US + SECOND_US / GUARD_HELD_MAX - 1));
    assert_false(guard_refuses(guard, &bad, SECOND_US + SECOND_US / GUARD_HELD_MAX));
    assert_int_equal(guard->wrong_total, GUARD_FREE_MAX + GUARD_HELD_MAX);
}

static void an_address_that_showed_a_right_token_is_still_looked_at(void **state)
{
    struct auth_guard *guard = *state;
    struct http_address proxy = address(1);

    guard_right(guard, &proxy, SECOND_US);
    fill(guard, &proxy, SECOND_US);
    assert_false(guard_refuses(guard, &proxy, SECOND_US));
    assert_int_equal(guard_wrong(guard, &proxy, SECOND_US, NULL), GUARD_DELAY_US);
    fill(guard, &proxy, 700 * SECOND_US);
    assert_true(guard_refuses(guard, &proxy, 700 * SECOND_US));
}

static void a_minute_later_all_is_forgotten(void **state)
{
    struct auth_guard *guard = *state;
    struct http_address bad = address(1);

    fill(guard, &bad, SECOND_US);
    assert_false(guard_refuses(guard, &bad, 62 * SECOND_US));
    assert_int_equal(guard_wrong(guard, &bad, 62 * SECOND_US, NULL), 0);
}

static void more_addresses_than_places_neither_fail_nor_lose_those_that_wait(void **state)
{
    struct auth_guard *guard = *state;
    struct http_address bad = address(1);

    fill(guard, &bad, SECOND_US);
    for (uint32_t i = 0; i < 100000; i++) {
        struct http_address from = {{0}};

        memcpy(from.bytes, &i, sizeof i);
        from.bytes[15] = 7;
        guard_wrong(guard, &from, SECOND_US, NULL);
    }
    assert_true(guard_refuses(guard, &bad, SECOND_US));
}

/* Else many addresses that guess together would make room for guesses without end. */
static void an_address_without_a_place_waits(void **state)
{
    struct auth_guard *guard = *state;
    struct http_address late = {{9, 9, 9}};

    for (uint32_t i = 0; i < 20000; i++) {
        struct http_address from = {{0}};

        memcpy(from.bytes, &i, sizeof i);
        from.bytes[15] = 7;
        for (int guess = 0; guess < GUARD_FREE_MAX + GUARD_HELD_MAX; guess++)
            guard_wrong(guard, &from, SECOND_US, NULL);
    }
    assert_int_equal(guard_wrong(guard, &late, SECOND_US, NULL), GUARD_DELAY_US);
    assert_int_equal(guard_wrong(guard, &late, 62 * SECOND_US, NULL), 0);
}

/* Any user of the machine has millions of loopback addresses to guess from. */
static void many_addresses_in_turn_have_no_more_free_guesses_than_there_are_places(void **state)
{
    struct auth_guard *guard = *state;
    int free_count = 0;

    for (int round = 0; round < 25; round++)
        for (uint32_t i = 0; i < 2100; i++) {
            struct http_address from = {{0}};

            memcpy(from.bytes, &i, sizeof i);
            from.bytes[15] = 7;
            free_count += guard_wrong(guard, &from, SECOND_US + round * SECOND_US / 2, NULL) == 0;
        }
    assert_in_range(free_count, 1, GUARD_ADDRESSES * GUARD_FREE_MAX);
}

/* Clients of one network differ in a few bits of their addresses. */
static void addresses_of_one_network_take_no_places_from_each_other(void **state)
{
    struct auth_guard *guard = *state;

    for (int step = 0; step < 3; step++) {
        uint32_t at_once = 0;

        memset(guard, 0, sizeof *guard);
        for (uint32_t i = 0; i < GUARD_ADDRESSES / 2; i++) {
            struct http_address from = {{[10] = 0xff, [11] = 0xff, [12] = 10}}; /* 10.0.0.0/8 */

            if (step == 2)
                from = (struct http_address){{0x20, 0x01, 0x0d, 0xb8}}; /* /64s of IPv6 */
            from.bytes[step == 2 ? 6 : 14 - step] = (uint8_t)(i >> 8);
            from.bytes[step == 2 ? 7 : 15 - step] = (uint8_t)i;
            at_once += guard_wrong(guard, &from, SECOND_US, NULL) == 0;
        }
        assert_in_range(at_once, GUARD_ADDRESSES / 2 - 20, GUARD_ADDRESSES / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(after_some_wrong_tokens_answers_wait_and_then_nobody_looks,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_that_showed_a_right_token_is_still_looked_at,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_minute_later_all_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(
            more_addresses_than_places_neither_fail_nor_lose_those_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_without_a_place_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(
            many_addresses_in_turn_have_no_more_free_guesses_than_there_are_places, setup, teardown),
        cmocka_unit_test_setup_teardown(addresses_of_one_network_take_no_places_from_each_other,
                                        setup, teardown),
    };

    return cmocka_run_group_tests_name("auth_guard", tests, NULL, NULL);
}
