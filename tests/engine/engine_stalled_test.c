/* No other worker gets a stalled task until its worker has stopped it, or has had a lease to do so:
 * its attempts never run beside each other (F-A19, F-I3, B4). */
#include "recovery_fixture.h"

#define STALL_MS 1000
#define LONG_LEASE_MS 6000 /* swept every second */

static struct task *hold_silent(struct fixture *fx, const char *fields)
{
    struct task *held;

    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"stall_after_ms\":%d%s}", STALL_MS, fields);
    worker(fx, "w", "q");
    worker(fx, "other", "q");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("half"), .progress = 50);
    return held;
}

/* Its worker names it until then, and learns that it lost it. */
static void stall(struct fixture *fx, struct task *held)
{
    struct heartbeat_request *beat;

    wait_until((beat = heartbeat(fx, "w", &held, 1), beat->lost_count == 1));
    assert_true(uuid_eq(&beat->lost[0], &held->id));
    assert_int_equal(beat->lost_tokens[0], held->lease.token);
    assert_status(fx, held->id, STATUS_ORPHANED);
    assert_true(get(fx, held->id)->lease.held);
    worker(fx, "other", "q");
    claim_none(fx, "other");
    fx_verify(fx);
}

static void assert_goes_on(struct fixture *fx, struct task *held)
{
    struct claimed *again;

    worker(fx, "other", "q"); /* its lease may be over meanwhile */
    again = claim_one(fx, "other");
    assert_true(uuid_eq(&again->task->id, &held->id));
    assert_true(again->task->lease.token > held->lease.token);
    assert_non_null(again->checkpoint);
    assert_int_equal(get(fx, held->id)->counts.crashes, 1);
    assert_int_equal(entry_of(fx, held->id)->status, RECOVERY_COMPLETED);
    assert_true(has_text(entry_of(fx, held->id)->result, "stalled"));
    report_ok(fx, "other", again->task, .op = REPORT_COMPLETE);
    assert_string_equal(story_of(fx, held->id), "pending claimed running running orphaned recovering "
                                                "pending claimed running completed");
    fx_verify(fx);
}

static void f_a19_a_stalled_task_goes_on_when_its_workers_heartbeat_names_it_no_more(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    int64_t began_ms;

    fx_lease(fx, LONG_LEASE_MS);
    held = hold_silent(fx, "");
    stall(fx, held);
    for (int i = 0; i < 3; i++) { /* as long as it is named it is not stopped */
        fx_pause_ms(100);
        assert_int_equal(heartbeat(fx, "w", &held, 1)->lost_count, 1);
        claim_none(fx, "other");
    }
    began_ms = fx_now_ms();
    heartbeat(fx, "w", &held, 0);
    assert_goes_on(fx, held);
    assert_in_range(fx_now_ms() - began_ms, 0, LONG_LEASE_MS);
}

static void f_i3_a_stalled_task_goes_on_when_its_worker_reports_its_end(void **state)
{
    static const enum report_op ends[] = {REPORT_COMPLETE, REPORT_FAIL, REPORT_RELEASE};
    struct fixture *fx = *state;

    fx_lease(fx, LONG_LEASE_MS);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct task *held = hold_silent(fx, "");

        stall(fx, held);
        assert_int_equal(report(fx, "w", held, .op = REPORT_PROGRESS, .progress = 60),
                         ERR_STALE_LEASE);
        claim_none(fx, "other"); /* it still runs */
        assert_int_equal(report(fx, "w", held, .op = ends[i]), ERR_STALE_LEASE);
        assert_goes_on(fx, held);
    }
}

/* The time it has is a lease and what a handler gets to stop by itself. */
static void f_a19_a_worker_that_cannot_stop_it_keeps_it_for_a_lease_only(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    int64_t lost_us;

    fx->wanted.settings.grace_ms = 500;
    fx_lease(fx, 1200);
    held = hold_silent(fx, "");
    stall(fx, held);
    lost_us = get(fx, held->id)->updated_at_us;
    wait_until((heartbeat(fx, "w", &held, 1), get(fx, held->id)->status == STATUS_PENDING));
    assert_true(get(fx, held->id)->updated_at_us - lost_us >= 1700 * CLOCK_MS_US);
    assert_goes_on(fx, held);
}

static void f_a19_a_worker_that_leaves_has_stopped_it(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    fx_lease(fx, LONG_LEASE_MS);
    held = hold_silent(fx, "");
    stall(fx, held);
    leave(fx, "w");
    assert_goes_on(fx, held);
}

static void b4_a_start_in_between_loses_neither_the_task_nor_its_recovery(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    fx_lease(fx, 1200);
    held = hold_silent(fx, "");
    stall(fx, held);
    reopen(fx);
    worker(fx, "other", "q");
    wait_until((heartbeat(fx, "other", NULL, 0), get(fx, held->id)->status == STATUS_PENDING));
    assert_goes_on(fx, held);
}

static void b4_what_a_user_recovers_waits_for_its_worker_too(void **state)
{
    struct fixture *fx = *state;
    struct uuid entry;
    struct task *held;

    fx_lease(fx, LONG_LEASE_MS);
    held = hold_silent(fx, ",\"auto_recovery\":false");
    stall(fx, held);
    assert_int_equal(control(fx, held->id, CONTROL_RETRY), ERR_TRANSITION);
    entry = put(fx, held->id, RECOVERY_RESTART_CLEAN);
    wait_until(has_text(entry_by_id(fx, entry)->error_message, "has not stopped"));
    assert_int_equal(entry_by_id(fx, entry)->attempts, 0);
    assert_int_equal(entry_by_id(fx, entry)->status, RECOVERY_PENDING);
    claim_none(fx, "other");
    heartbeat(fx, "w", &held, 0);
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    assert_null(claim_one(fx, "other")->checkpoint);
    fx_verify(fx);
}

static void b4_a_silent_task_that_a_user_recovers_is_stopped_first(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    fx_lease(fx, 90000); /* its sweep comes later than the user */
    held = hold_silent(fx, "");
    wait_until(str_is(str_of(reason_of(fx, held->id)), "valid"));
    assert_int_equal(control(fx, held->id, CONTROL_RECOVER), ERR_NONE);
    assert_status(fx, held->id, STATUS_ORPHANED);
    claim_none(fx, "other");
    assert_int_equal(heartbeat(fx, "w", &held, 1)->lost_count, 1);
    heartbeat(fx, "w", &held, 0);
    wait_status(fx, held->id, STATUS_PENDING);
    assert_int_equal(entry_of(fx, held->id)->status, RECOVERY_COMPLETED);
    fx_verify(fx);
}

static void a_stalled_task_that_is_cancelled_or_paused_obeys(void **state)
{
    struct fixture *fx = *state;
    struct task *held;

    fx_lease(fx, LONG_LEASE_MS);
    held = hold_silent(fx, "");
    assert_int_equal(control(fx, held->id, CONTROL_PAUSE), ERR_NONE);
    stall(fx, held);
    heartbeat(fx, "w", &held, 0);
    wait_status(fx, held->id, STATUS_PAUSED);
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    held = hold_silent(fx, "");
    stall(fx, held);
    assert_int_equal(control(fx, held->id, CONTROL_CANCEL), ERR_NONE);
    assert_true(get(fx, held->id)->lease.held);
    assert_int_equal(report(fx, "w", held, .op = REPORT_RELEASE), ERR_STALE_LEASE);
    assert_false(get(fx, held->id)->lease.held);
    assert_status(fx, held->id, STATUS_CANCELLED);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(f_a19_a_stalled_task_goes_on_when_its_workers_heartbeat_names_it_no_more),
        QUEUE_TEST(f_i3_a_stalled_task_goes_on_when_its_worker_reports_its_end),
        QUEUE_TEST(f_a19_a_worker_that_cannot_stop_it_keeps_it_for_a_lease_only),
        QUEUE_TEST(f_a19_a_worker_that_leaves_has_stopped_it),
        QUEUE_TEST(b4_a_start_in_between_loses_neither_the_task_nor_its_recovery),
        QUEUE_TEST(b4_what_a_user_recovers_waits_for_its_worker_too),
        QUEUE_TEST(b4_a_silent_task_that_a_user_recovers_is_stopped_first),
        QUEUE_TEST(a_stalled_task_that_is_cancelled_or_paused_obeys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
