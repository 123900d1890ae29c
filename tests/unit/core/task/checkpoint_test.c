/* The hash of a checkpoint covers every field that a resume depends on (B3). */
#include "core/bounds.h"
#include "core/task/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct uuid task_id = {{1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 10, 11, 12, 13, 14, 15, 16}};

static struct checkpoint sample(void)
{
    return (struct checkpoint){.seq = 3,
                               .name = STR("page"),
                               .progress = 40,
                               .description = STR("read page 4"),
                               .data = STR("{\"page\":4}"),
                               .database_state = STR("{\"rows\":12}"),
                               .file_state = STR("[]")};
}

static void assert_hash_differs(const struct uuid *id, const struct checkpoint *changed)
{
    struct checkpoint original = sample();
    char a[65];
    char b[65];

    checkpoint_hash(&task_id, &original, a);
    checkpoint_hash(id, changed, b);
    assert_int_equal(strlen(a), 64);
    assert_string_not_equal(a, b);
}

static void b3_every_covered_field_changes_the_hash(void **state)
{
    struct uuid other = task_id;
    struct checkpoint changed = sample();

    (void)state;
    other.bytes[15]++;
    assert_hash_differs(&other, &changed);
    changed.seq++;
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.name = STR("pagf");
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.progress++;
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.description = STR_NONE;
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.data = STR("{\"page\":5}");
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.database_state = STR_NONE;
    assert_hash_differs(&task_id, &changed);
    changed = sample();
    changed.file_state = STR("[1]");
    assert_hash_differs(&task_id, &changed);
}

static void b3_bytes_cannot_move_from_one_field_to_the_next(void **state)
{
    struct checkpoint moved = sample();

    (void)state;
    moved.name = STR("pageread");
    moved.description = STR(" page 4");
    assert_hash_differs(&task_id, &moved);
}

static void b3_an_absent_field_is_not_an_empty_one(void **state)
{
    struct checkpoint absent = sample();
    struct checkpoint empty = sample();
    char a[65];
    char b[65];

    (void)state;
    absent.file_state = STR_NONE;
    empty.file_state = STR("");
    checkpoint_hash(&task_id, &absent, a);
    checkpoint_hash(&task_id, &empty, b);
    assert_string_not_equal(a, b);
}

static void b3_a_damaged_checkpoint_is_not_intact(void **state)
{
    struct checkpoint checkpoint = sample();

    (void)state;
    checkpoint_hash(&task_id, &checkpoint, checkpoint.hash);
    assert_true(checkpoint_intact(&task_id, &checkpoint));
    checkpoint.data = STR("{\"page\":6}");
    assert_false(checkpoint_intact(&task_id, &checkpoint));
    checkpoint = sample();
    assert_false(checkpoint_intact(&task_id, &checkpoint));
}

/* As a store does it: one more each time, then one out. */
static void thin(int64_t *seqs, uint32_t *count, int64_t next)
{
    seqs[(*count)++] = next;
    if (*count > BOUND_CHECKPOINTS_KEPT) {
        uint32_t out = checkpoint_thin(seqs, *count);

        memmove(seqs + out, seqs + out + 1, (--*count - out) * sizeof *seqs);
    }
}

static void the_first_and_the_newest_checkpoints_stay_however_many_there_were(void **state)
{
    int64_t seqs[BOUND_CHECKPOINTS_KEPT + 1];
    uint32_t count = 0;

    (void)state;
    for (int64_t n = 1; n <= 100000; n++) {
        thin(seqs, &count, n);
        assert_true(count <= BOUND_CHECKPOINTS_KEPT);
        assert_int_equal(seqs[0], 1);
        for (uint32_t i = 0; i < CHECKPOINTS_DENSE && i < count; i++)
            assert_int_equal(seqs[count - 1 - i], n - i);
    }
}

static void older_checkpoints_lie_farther_apart_but_no_age_is_without_one(void **state)
{
    int64_t seqs[BOUND_CHECKPOINTS_KEPT + 1];
    uint32_t count = 0;

    (void)state;
    for (int64_t n = 1; n <= 20000; n++) {
        thin(seqs, &count, n);
        for (uint32_t i = 0; n > 1000 && i + 1 < count; i++) /* never as far apart as they are old */
            assert_true((seqs[i + 1] - seqs[i]) * 4 <= (n - seqs[i]) * 3 + 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b3_every_covered_field_changes_the_hash),
        cmocka_unit_test(b3_bytes_cannot_move_from_one_field_to_the_next),
        cmocka_unit_test(b3_an_absent_field_is_not_an_empty_one),
        cmocka_unit_test(b3_a_damaged_checkpoint_is_not_intact),
        cmocka_unit_test(the_first_and_the_newest_checkpoints_stay_however_many_there_were),
        cmocka_unit_test(older_checkpoints_lie_farther_apart_but_no_age_is_without_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
