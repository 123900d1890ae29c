/* What task a fork is (core/fork): the original's spec without what is the original's alone, what was
 * wished for instead, and where it came from. */
#include "base/json.h"
#include "core/bounds.h"
#include "core/spec/fork.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct uuid first_id = {{0xab, 1}}, parent_id = {{0xcd, 2}};

static struct task original(void)
{
    struct task task = {.id = first_id,
                        .has_spec = true,
                        .has_data = true,
                        .status = STATUS_DEAD_LETTER,
                        .counts.attempts = 3,
                        .priority = 7,
                        .data = STR("{\"n\":1}"),
                        .about.metadata = STR("{\"a\":[1, 2],\"forked_from\":\"x\",\"b\\u0063\":null}"),
                        .spec = {.type = STR("report"),
                                 .queue = STR("slow"),
                                 .name = STR("Report of May"),
                                 .payload = STR("{\"month\": 5}"),
                                 .tags = STR("[\"x\"]"),
                                 .user_id = STR("ada"),
                                 .external_id = STR("celery-1"),
                                 .idempotency_key = STR("may"),
                                 .input_hash = STR("ff"),
                                 .limit_key = STR("k"),
                                 .origin.ref = STR("r"),
                                 .origin.job_id = {{1}},
                                 .origin.schedule_id = {{2}},
                                 .origin.recurring_job_id = {{3}},
                                 .category_id = {{4}},
                                 .origin.parent_id = {{5}},
                                 .timeout_ms = 1234,
                                 .max_crashes = 9,
                                 .run_at_us = 77,
                                 .retry = {.max_retries = 8}}};

    return task;
}

static void a_fork_is_the_same_task_without_what_is_the_originals_alone(void **state)
{
    const struct task_dependency dependencies[] = {
        {.task_id = parent_id, .kind = DEPENDENCY_COMPLETION}};
    const struct checkpoint checkpoint = {.seq = 4};
    const struct fork_wish wish = {.has_payload = false};
    struct arena arena = ARENA_INIT(0);
    struct task task = original();
    struct task_input input;
    struct err err = {0};

    (void)state;
    assert_int_equal(fork_input(&task, dependencies, 1, &checkpoint, &wish, &arena, &input, &err),
                     0);
    assert_true(str_is(input.spec.type, "report") && str_is(input.spec.queue, "slow"));
    assert_true(str_is(input.spec.payload, "{\"month\": 5}"));
    assert_true(str_is(input.data, "{\"n\":1}"));
    assert_int_equal(input.priority, 7);
    assert_int_equal(input.spec.timeout_ms, 1234);
    assert_int_equal(input.spec.retry.max_retries, 8);
    assert_int_equal(input.spec.max_crashes, 9);
    assert_true(str_is(input.spec.user_id, "ada") && str_is(input.spec.limit_key, "k"));
    assert_false(uuid_is_nil(&input.spec.category_id));
    assert_null(input.spec.idempotency_key.data);
    assert_null(input.spec.input_hash.data);
    assert_null(input.spec.external_id.data);
    assert_null(input.spec.origin.ref.data);
    assert_true(uuid_is_nil(&input.spec.origin.job_id) &&
                uuid_is_nil(&input.spec.origin.schedule_id));
    assert_true(uuid_is_nil(&input.spec.origin.recurring_job_id) &&
                uuid_is_nil(&input.spec.origin.parent_id));
    assert_int_equal(input.spec.run_at_us, 0);
    assert_int_equal(input.depends_on_count, 1);
    assert_true(uuid_eq(&input.depends_on[0].task_id, &parent_id));
    assert_int_equal(input.depends_on[0].kind, DEPENDENCY_COMPLETION);
    assert_int_equal(input.spec.on_unsatisfied, UNSATISFIED_RUN); /* it has run before */
    assert_true(uuid_eq(&input.forked_from, &first_id));
    assert_ptr_equal(input.checkpoint, &checkpoint);
    arena_deinit(&arena);
}

static void metadata_says_whence_it_came_and_keeps_the_rest_byte_for_byte(void **state)
{
    const struct fork_wish wish = {.has_payload = false};
    struct arena arena = ARENA_INIT(0);
    struct task task = original();
    struct task_input input;
    struct err err = {0};

    (void)state;
    assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err), 0);
    assert_int_equal(json_check(input.about.metadata, NULL, &err), 0);
    assert_true(str_is(input.about.metadata, "{\"forked_from\":\"ab010000-0000-0000-0000-000000000000\","
                                       "\"a\":[1, 2],\"b\\u0063\":null}"));
    task.about.metadata = STR_NONE;
    assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err), 0);
    assert_true(str_is(input.about.metadata,
                       "{\"forked_from\":\"ab010000-0000-0000-0000-000000000000\"}"));
    arena_deinit(&arena);
}

static void what_was_wished_for_takes_the_place_of_what_was(void **state)
{
    const struct fork_wish wish = {.has_payload = true, .payload = STR("[]"), .has_data = true,
                                   .data = STR_NONE, .has_priority = true, .priority = -3,
                                   .queue = STR("quick"), .name = STR("Again")};
    struct arena arena = ARENA_INIT(0);
    struct task task = original();
    struct task_input input;
    struct err err = {0};

    (void)state;
    task.counts.attempts = 0;
    assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err), 0);
    assert_true(str_is(input.spec.payload, "[]"));
    assert_null(input.data.data);
    assert_int_equal(input.priority, -3);
    assert_true(str_is(input.spec.queue, "quick") && str_is(input.spec.name, "Again"));
    assert_int_equal(input.spec.on_unsatisfied, UNSATISFIED_CANCEL); /* as the original */
    arena_deinit(&arena);
}

static void wishes_beyond_the_bounds_are_refused(void **state)
{
    struct fork_wish wish = {.queue = STR("a\nb")};
    struct arena arena = ARENA_INIT(0);
    struct task task = original();
    struct task_input input;
    struct err err = {0};

    (void)state;
    assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err), -ERR_INVALID);
    assert_string_equal(err.field, "queue");
    wish = (struct fork_wish){.has_payload = true,
                              .payload = {arena_alloc(&arena, BOUND_PAYLOAD_BYTES + 1),
                                          BOUND_PAYLOAD_BYTES + 1}};
    assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err),
                     -ERR_TOO_LARGE);
    assert_string_equal(err.field, "payload");
    arena_deinit(&arena);
}

static void a_fork_may_have_metadata_at_its_bound_and_says_whence_it_came_on_top(void **state)
{
    const struct fork_wish wish = {.has_payload = false};
    struct arena arena = ARENA_INIT(0);
    char *text = arena_alloc(&arena, BOUND_METADATA_BYTES);
    struct task task = original();
    struct task_input input;
    struct err err = {0};

    (void)state;
    memset(text, 'x', BOUND_METADATA_BYTES);
    memcpy(text, "{\"m\":\"", 6);
    memcpy(text + BOUND_METADATA_BYTES - 2, "\"}", 2);
    task.about.metadata = str_span(text, BOUND_METADATA_BYTES);
    for (int i = 0; i < 2; i++) { /* and a fork of that one */
        assert_int_equal(fork_input(&task, NULL, 0, NULL, &wish, &arena, &input, &err), 0);
        task.about.metadata = input.about.metadata;
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_is_the_same_task_without_what_is_the_originals_alone),
        cmocka_unit_test(metadata_says_whence_it_came_and_keeps_the_rest_byte_for_byte),
        cmocka_unit_test(what_was_wished_for_takes_the_place_of_what_was),
        cmocka_unit_test(a_fork_may_have_metadata_at_its_bound_and_says_whence_it_came_on_top),
        cmocka_unit_test(wishes_beyond_the_bounds_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
