/* The heap: order, removal and change of keys at any place, flat memory. */
#include "base/heap.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TIMERS 3000

struct timer {
    int id;
    struct heap_node node;
};

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return *random >> 8;
}

static void push(struct heap *heap, struct timer *timer, int64_t key)
{
    timer->node = HEAP_NODE_INIT;
    timer->node.key = key;
    assert_int_equal(heap_push(heap, &timer->node), 0);
    assert_true(heap_contains(&timer->node));
}

static void assert_ordered(const struct heap *heap)
{
    for (uint32_t i = 0; i < heap->count; i++) {
        assert_int_equal(heap->nodes[i]->index, i);
        assert_true(i == 0 || heap->nodes[(i - 1) / 2]->key <= heap->nodes[i]->key);
    }
}

static void an_empty_heap_has_no_smallest(void **state)
{
    struct heap heap = HEAP_INIT;
    struct heap_node node = HEAP_NODE_INIT;

    (void)state;
    assert_null(heap_peek(&heap));
    assert_false(heap_contains(&node));
    heap_remove(&heap, &node);
    assert_int_equal(heap.count, 0);
    heap_deinit(&heap);
}

static void the_smallest_key_comes_first_also_at_the_ends_of_the_range(void **state)
{
    static const int64_t keys[] = {5, INT64_MAX, -3, 0, INT64_MIN, 5, 7};
    static const int64_t sorted[] = {INT64_MIN, -3, 0, 5, 5, 7, INT64_MAX};
    struct heap heap = HEAP_INIT;
    struct timer timers[7];

    (void)state;
    for (int i = 0; i < 7; i++) {
        timers[i].id = i;
        push(&heap, &timers[i], keys[i]);
    }
    for (int i = 0; i < 7; i++) {
        struct heap_node *node = heap_peek(&heap);
        struct timer *timer = HEAP_ENTRY(node, struct timer, node);

        assert_true(node->key == sorted[i]);
        assert_true(keys[timer->id] == sorted[i]);
        heap_remove(&heap, node);
        assert_int_equal(node->index, UINT32_MAX);
    }
    assert_null(heap_peek(&heap));
    heap_deinit(&heap);
}

static void random_work_keeps_the_order(void **state)
{
    struct heap heap = HEAP_INIT;
    struct timer *timers = calloc(TIMERS, sizeof *timers);
    uint32_t random = 3;

    (void)state;
    assert_non_null(timers);
    for (int i = 0; i < TIMERS; i++)
        timers[i].node = HEAP_NODE_INIT;
    for (int round = 0; round < 60000; round++) {
        struct timer *timer = &timers[next_random(&random) % TIMERS];
        int64_t key = (int64_t)(next_random(&random) % 1000) - 500;

        if (!heap_contains(&timer->node))
            push(&heap, timer, key);
        else if (next_random(&random) % 2)
            heap_update(&heap, &timer->node, key);
        else
            heap_remove(&heap, &timer->node);
        if (round % 500 == 0)
            assert_ordered(&heap);
    }
    assert_ordered(&heap);
    for (int64_t last = INT64_MIN; heap_peek(&heap);) {
        struct heap_node *node = heap_peek(&heap);

        assert_true(node->key >= last);
        last = node->key;
        heap_remove(&heap, node);
    }
    heap_deinit(&heap);
    free(timers);
}

static void every_place_can_be_removed(void **state)
{
    (void)state;
    for (int which = 0; which < 40; which++) {
        struct heap heap = HEAP_INIT;
        struct timer timers[40];

        for (int i = 0; i < 40; i++)
            push(&heap, &timers[i], i * 17 % 40);
        heap_remove(&heap, &timers[which].node);
        assert_false(heap_contains(&timers[which].node));
        assert_int_equal(heap.count, 39);
        assert_ordered(&heap);
        heap_deinit(&heap);
    }
}

static void memory_goes_back_when_the_heap_empties(void **state)
{
    struct heap heap = HEAP_INIT;
    struct timer *timers = calloc(TIMERS, sizeof *timers);

    (void)state;
    assert_non_null(timers);
    for (int i = 0; i < TIMERS; i++)
        push(&heap, &timers[i], TIMERS - i);
    assert_true(heap.cap >= TIMERS);
    for (int i = 0; i < TIMERS; i++)
        heap_remove(&heap, &timers[i].node);
    assert_true(heap.cap <= 16);
    push(&heap, &timers[0], 1);
    assert_ptr_equal(heap_peek(&heap), &timers[0].node);
    heap_deinit(&heap);
    assert_null(heap_peek(&heap));
    free(timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_smallest),
        cmocka_unit_test(the_smallest_key_comes_first_also_at_the_ends_of_the_range),
        cmocka_unit_test(random_work_keeps_the_order),
        cmocka_unit_test(every_place_can_be_removed),
        cmocka_unit_test(memory_goes_back_when_the_heap_empties),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
