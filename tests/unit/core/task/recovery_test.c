/* core/recovery: the decisions about lost tasks, as tables (B4, B5, B6). */
#include "core/task/recovery.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void b6_the_first_reason_that_holds_is_given(void **state)
{
    const struct {
        struct recovery_facts facts;
        enum recovery_method method;
        const char *reason;
    } cases[] = {
        {{.found = false}, RECOVERY_RESUME_CHECKPOINT, "not_found"},
        {{.found = true, .status = STATUS_COMPLETED}, RECOVERY_RESUME_CHECKPOINT,
         "already_completed"},
        {{.found = true, .status = STATUS_DEAD_LETTER}, RECOVERY_RESUME_CHECKPOINT,
         "attempts_exhausted"},
        {{.found = true, .status = STATUS_FAILED}, RECOVERY_RESUME_CHECKPOINT, "ended"},
        {{.found = true, .status = STATUS_CANCELLED}, RECOVERY_RESTART_CLEAN, "ended"},
        {{.found = true, .status = STATUS_PENDING}, RECOVERY_RESUME_CHECKPOINT, "not_lost"},
        {{.found = true, .status = STATUS_RUNNING}, RECOVERY_RESUME_CHECKPOINT, "not_lost"},
        {{.found = true, .status = STATUS_PAUSED}, RECOVERY_RESUME_CHECKPOINT, "not_lost"},
        {{.found = true, .status = STATUS_RUNNING, .stalled = true}, RECOVERY_RESUME_CHECKPOINT,
         "valid"},
        {{.found = true, .status = STATUS_ORPHANED}, RECOVERY_RESUME_CHECKPOINT, "valid"},
        {{.found = true, .status = STATUS_PARTIAL}, RECOVERY_RESTART_CLEAN, "valid"},
        {{.found = true, .status = STATUS_ORPHANED, .poisoned = true, .damaged = true},
         RECOVERY_RESUME_CHECKPOINT, "attempts_exhausted"},
        {{.found = true, .status = STATUS_ORPHANED, .damaged = true, .handler_gone = true},
         RECOVERY_RESUME_CHECKPOINT, "checkpoint_damaged"},
        {{.found = true, .status = STATUS_ORPHANED, .damaged = true}, RECOVERY_VALIDATE_ONLY,
         "checkpoint_damaged"},
        {{.found = true, .status = STATUS_ORPHANED, .damaged = true}, RECOVERY_RESTART_CLEAN,
         "valid"},
        {{.found = true, .status = STATUS_ORPHANED, .handler_gone = true},
         RECOVERY_RESTART_CLEAN, "handler_gone"},
        {{.found = true, .status = STATUS_PARTIAL, .key_taken = true, .damaged = true},
         RECOVERY_RESUME_CHECKPOINT, "key_taken"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(
            recovery_reason_word(recovery_judge(&cases[i].facts, cases[i].method)),
            cases[i].reason);
}

static void b4_only_what_may_change_is_tried_again_and_not_for_ever(void **state)
{
    struct recovery_entry entry = {.max_attempts = 3, .attempts = 1};

    (void)state;
    assert_int_equal(recovery_decide(&entry, RECOVERY_VALID), RECOVERY_STEP_ACT);
    assert_int_equal(recovery_decide(&entry, RECOVERY_ALREADY_COMPLETED), RECOVERY_STEP_DONE);
    assert_int_equal(recovery_decide(&entry, RECOVERY_NOT_LOST), RECOVERY_STEP_DONE);
    assert_int_equal(recovery_decide(&entry, RECOVERY_HANDLER_GONE), RECOVERY_STEP_LATER);
    assert_int_equal(recovery_decide(&entry, RECOVERY_KEY_TAKEN), RECOVERY_STEP_LATER);
    assert_int_equal(recovery_decide(&entry, RECOVERY_CHECKPOINT_DAMAGED), RECOVERY_STEP_GIVE_UP);
    assert_int_equal(recovery_decide(&entry, RECOVERY_NOT_FOUND), RECOVERY_STEP_GIVE_UP);
    assert_int_equal(recovery_decide(&entry, RECOVERY_REFUSED), RECOVERY_STEP_GIVE_UP);
    entry.attempts = 3;
    assert_int_equal(recovery_decide(&entry, RECOVERY_HANDLER_GONE), RECOVERY_STEP_GIVE_UP);
    assert_int_equal(recovery_decide(&entry, RECOVERY_UNANSWERED), RECOVERY_STEP_GIVE_UP);
    entry.max_attempts = 0; /* of the sweep */
    assert_int_equal(recovery_decide(&entry, RECOVERY_HANDLER_GONE), RECOVERY_STEP_LATER);
    assert_int_equal(recovery_decide(&entry, RECOVERY_UNANSWERED), RECOVERY_STEP_LATER);
    assert_int_equal(recovery_decide(&entry, RECOVERY_REFUSED), RECOVERY_STEP_GIVE_UP);
    entry.method = RECOVERY_VALIDATE_ONLY;
    for (int reason = 0; reason < RECOVERY_REASON_COUNT; reason++)
        assert_int_equal(recovery_decide(&entry, (enum recovery_reason)reason),
                         RECOVERY_STEP_DONE);
}

static void b4_attempts_wait_longer_and_longer_but_never_more_than_a_minute(void **state)
{
    (void)state;
    assert_int_equal(recovery_delay_ms(1), 5000);
    assert_int_equal(recovery_delay_ms(2), 20000);
    for (int64_t attempts = 1; attempts < 100; attempts++) {
        assert_true(recovery_delay_ms(attempts) <= recovery_delay_ms(attempts + 1));
        assert_true(recovery_delay_ms(attempts) <= 60 * 1000);
    }
}

static void b5_a_running_task_without_a_sign_for_longer_than_allowed_is_stalled(void **state)
{
    struct task task = {.status = STATUS_RUNNING,
                        .lease.last_heartbeat_us = 1000 * CLOCK_SECOND_US};
    int64_t then_us = task.lease.last_heartbeat_us;

    (void)state;
    assert_false(recovery_is_stalled(&task, 0, then_us + 3600 * CLOCK_SECOND_US));
    assert_false(recovery_is_stalled(&task, 60000, then_us + 60 * CLOCK_SECOND_US));
    assert_true(recovery_is_stalled(&task, 60000, then_us + 60 * CLOCK_SECOND_US + 1));
    task.spec.stall_after_ms = 1000;
    assert_true(recovery_is_stalled(&task, 0, then_us + CLOCK_SECOND_US + 1));
    assert_true(recovery_is_stalled(&task, 60000, then_us + CLOCK_SECOND_US + 1));
    task.status = STATUS_CLAIMED; /* no handler that could give one */
    assert_false(recovery_is_stalled(&task, 60000, then_us + 3600 * CLOCK_SECOND_US));
}

static void words_are_read_back_as_they_are_written(void **state)
{
    (void)state;
    for (int i = 0; i < RECOVERY_METHOD_COUNT; i++) {
        enum recovery_method method;

        assert_true(recovery_method_parse(str_of(recovery_method_word((enum recovery_method)i)),
                                          &method));
        assert_int_equal(method, i);
    }
    for (int i = 0; i < RECOVERY_STATUS_COUNT; i++) {
        enum recovery_status status;

        assert_true(recovery_status_parse(str_of(recovery_status_word((enum recovery_status)i)),
                                          &status));
        assert_int_equal(status, i);
    }
    assert_false(recovery_method_parse(STR("resume"), &(enum recovery_method){0}));
    assert_false(recovery_status_parse(STR_NONE, &(enum recovery_status){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b6_the_first_reason_that_holds_is_given),
        cmocka_unit_test(b4_only_what_may_change_is_tried_again_and_not_for_ever),
        cmocka_unit_test(b4_attempts_wait_longer_and_longer_but_never_more_than_a_minute),
        cmocka_unit_test(b5_a_running_task_without_a_sign_for_longer_than_allowed_is_stalled),
        cmocka_unit_test(words_are_read_back_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
