/* The hash map: every operation against a plain reference, iteration with removal, flat memory. */
#include "base/map.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ITEMS 20000

struct item {
    char key[32];
    bool in;
    bool seen;
};

static struct item *new_items(void)
{
    struct item *items = calloc(ITEMS, sizeof *items);

    assert_non_null(items);
    for (int i = 0; i < ITEMS; i++)
        snprintf(items[i].key, sizeof items[i].key, "%s%d", i % 2 ? "long-key-number-" : "k", i);
    return items;
}

static void put(struct map *map, struct item *item)
{
    assert_int_equal(map_put(map, str_of(item->key), item), 0);
    item->in = true;
}

static void an_empty_map_holds_nothing(void **state)
{
    struct map map = MAP_INIT;
    uint32_t cursor = 0;

    (void)state;
    assert_null(map_get(&map, STR("a")));
    assert_null(map_remove(&map, STR("a")));
    assert_null(map_next(&map, &cursor));
    assert_int_equal(map_count(&map), 0);
    map_deinit(&map);
}

static void keys_are_bytes_and_the_empty_key_is_one(void **state)
{
    struct map map = MAP_INIT;
    int a, b, c, d;

    (void)state;
    assert_int_equal(map_put(&map, STR(""), &a), 0);
    assert_int_equal(map_put(&map, STR("x\0y"), &b), 0);
    assert_int_equal(map_put(&map, STR("x\0z"), &c), 0);
    assert_int_equal(map_put(&map, STR("x"), &d), 0);
    assert_ptr_equal(map_get(&map, STR_NONE), &a);
    assert_ptr_equal(map_get(&map, STR("x\0y")), &b);
    assert_ptr_equal(map_get(&map, STR("x\0z")), &c);
    assert_ptr_equal(map_get(&map, STR("x")), &d);
    assert_int_equal(map_count(&map), 4);
    map_deinit(&map);
}

static void putting_again_replaces_the_value_and_its_key_bytes(void **state)
{
    struct map map = MAP_INIT;
    struct item first = {.key = "same"}, second = {.key = "same"};

    (void)state;
    put(&map, &first);
    put(&map, &second);
    memset(&first, 'x', sizeof first); /* its bytes are no longer the map's */
    assert_int_equal(map_count(&map), 1);
    assert_ptr_equal(map_get(&map, STR("same")), &second);
    assert_ptr_equal(map_remove(&map, STR("same")), &second);
    assert_int_equal(map_count(&map), 0);
    map_deinit(&map);
}

static void random_work_agrees_with_a_reference(void **state)
{
    struct map map = MAP_INIT;
    struct item *items = new_items();
    uint32_t random = 7, count = 0;

    (void)state;
    for (int round = 0; round < 400000; round++) {
        /* the share of puts swings, so that the table grows and shrinks many times */
        bool mostly_put = round / 40000 % 2 == 0;
        struct item *item;

        random = random * 1664525 + 1013904223;
        item = &items[(random >> 8) % ITEMS];
        random = random * 1664525 + 1013904223;
        assert_ptr_equal(map_get(&map, str_of(item->key)), item->in ? item : NULL);
        if ((random >> 24) % 8 == 0 ? !mostly_put : mostly_put) {
            count += !item->in;
            put(&map, item);
        } else {
            assert_ptr_equal(map_remove(&map, str_of(item->key)), item->in ? item : NULL);
            count -= item->in;
            item->in = false;
        }
        assert_int_equal(map_count(&map), count);
    }
    for (int i = 0; i < ITEMS; i++)
        assert_ptr_equal(map_get(&map, str_of(items[i].key)), items[i].in ? &items[i] : NULL);
    map_deinit(&map);
    free(items);
}

static void iteration_gives_each_value_once_even_when_it_is_removed_meanwhile(void **state)
{
    static const uint32_t remove_every[] = {1, 2, 3, 1000000};

    (void)state;
    for (size_t row = 0; row < 4; row++) {
        struct map map = MAP_INIT;
        struct item *items = new_items();
        struct item *item;
        uint32_t cursor = 0, seen = 0, removed = 0;

        for (int i = 0; i < ITEMS; i++)
            put(&map, &items[i]);
        while ((item = map_next(&map, &cursor))) {
            assert_false(item->seen);
            item->seen = true;
            if (seen++ % remove_every[row] == 0) {
                assert_ptr_equal(map_remove(&map, str_of(item->key)), item);
                memset(item->key, 'x', sizeof item->key);
                removed++;
            }
        }
        assert_int_equal(seen, ITEMS);
        assert_int_equal(map_count(&map), ITEMS - removed);
        map_deinit(&map);
        free(items);
    }
}

static void memory_is_flat_after_mass_removal_and_under_churn(void **state)
{
    struct map map = MAP_INIT;
    struct item *items = new_items();

    (void)state;
    for (int i = 0; i < ITEMS; i++)
        put(&map, &items[i]);
    for (int i = 10; i < ITEMS; i++)
        assert_ptr_equal(map_remove(&map, str_of(items[i].key)), &items[i]);
    put(&map, &items[10]);
    assert_true(map.cap <= 64);
    for (int i = 0; i < 11; i++)
        assert_ptr_equal(map_remove(&map, str_of(items[i].key)), &items[i]);
    assert_int_equal(map.cap == 0 || map.cap <= 16, 1);
    for (int i = 0; i < 200000; i++) { /* a queue: one in, one out, always other keys */
        put(&map, &items[i % ITEMS]);
        if (i >= 5)
            assert_non_null(map_remove(&map, str_of(items[(i - 5) % ITEMS].key)));
        assert_true(map.cap <= 64);
    }
    map_deinit(&map);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_holds_nothing),
        cmocka_unit_test(keys_are_bytes_and_the_empty_key_is_one),
        cmocka_unit_test(putting_again_replaces_the_value_and_its_key_bytes),
        cmocka_unit_test(random_work_agrees_with_a_reference),
        cmocka_unit_test(iteration_gives_each_value_once_even_when_it_is_removed_meanwhile),
        cmocka_unit_test(memory_is_flat_after_mass_removal_and_under_churn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
