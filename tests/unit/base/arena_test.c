/* Arenas: alignment, zeroing, the maximum, sizes near the end of the address space, reset. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    struct arena arena = ARENA_INIT(0);
    unsigned char *blocks[500];

    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < 500; i++) {
            blocks[i] = arena_alloc(&arena, i * 7);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 16, 0);
            for (size_t k = 0; k < i * 7; k++)
                assert_int_equal(blocks[i][k], 0);
            memset(blocks[i], (int)(i & 0xFF) | 1, i * 7);
        }
        for (size_t i = 0; i < 500; i++)
            for (size_t k = 0; k < i * 7; k++)
                assert_int_equal(blocks[i][k], (i & 0xFF) | 1);
        arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
    arena_deinit(&arena);
}

static void the_maximum_holds_until_a_reset(void **state)
{
    struct arena arena = ARENA_INIT(64);

    (void)state;
    assert_null(arena_alloc(&arena, 65));
    assert_non_null(arena_alloc(&arena, 48));
    assert_non_null(arena_alloc(&arena, 16));
    assert_null(arena_alloc(&arena, 1));
    assert_null(arena_str(&arena, STR("x")).data);
    assert_null(arena_format(&arena, "%d", 1).data);
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 64));
    arena_deinit(&arena);
}

static void absurd_sizes_are_refused(void **state)
{
    static const size_t sizes[] = {SIZE_MAX,      SIZE_MAX - 1,  SIZE_MAX - 15, SIZE_MAX - 16,
                                   SIZE_MAX - 31, SIZE_MAX - 47, SIZE_MAX / 2};
    struct arena plain = ARENA_INIT(0);
    struct arena bounded = ARENA_INIT(1 << 20);

    (void)state;
    assert_non_null(arena_alloc(&bounded, 16));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_null(arena_alloc(&bounded, sizes[i]));
    assert_null(arena_alloc(&plain, SIZE_MAX));
    assert_null(arena_alloc(&plain, SIZE_MAX - 16));
    assert_null(arena_alloc_array(&plain, SIZE_MAX / 2, 3));
    assert_null(arena_alloc_array(&plain, 3, SIZE_MAX / 2));
    assert_non_null(arena_alloc_array(&plain, 0, 8));
    assert_non_null(arena_alloc_array(&plain, 10, 8));
    arena_deinit(&plain);
    arena_deinit(&bounded);
}

static void copies_are_terminated_and_absent_stays_absent(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct str text = arena_str(&arena, STR("hello"));

    (void)state;
    assert_string_equal(text.data, "hello");
    assert_int_equal(text.len, 5);
    assert_null(arena_str(&arena, STR_NONE).data);
    assert_non_null(arena_str(&arena, STR("")).data);
    assert_string_equal(arena_cstr(&arena, STR_NONE), "");
    assert_string_equal(arena_cstr(&arena, str_span("abcdef", 3)), "abc");
    assert_memory_equal(arena_copy(&arena, "a\0b", 3), "a\0b", 3);
    assert_non_null(arena_copy(&arena, NULL, 0));
    text = arena_format(&arena, "%s-%d", "task", 17);
    assert_string_equal(text.data, "task-17");
    assert_int_equal(text.len, 7);
    arena_deinit(&arena);
}

static void large_and_small_pieces_live_together(void **state)
{
    struct arena arena = ARENA_INIT(0);

    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        char *large = arena_alloc(&arena, 3 << 20);
        char *small = arena_alloc(&arena, 10);

        assert_non_null(large);
        assert_non_null(small);
        memset(large, 1, 3 << 20);
        memset(small, 2, 10);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    assert_null(arena.head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(the_maximum_holds_until_a_reset),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(copies_are_terminated_and_absent_stays_absent),
        cmocka_unit_test(large_and_small_pieces_live_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
