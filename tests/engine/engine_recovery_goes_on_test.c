/* What goes wrong with one recovery holds up neither other recoveries nor other requests, and what
 * can be recovered later is not given up (B4, B6, F-A7). */
#include "plan_fixture.h"
#include "recovery_fixture.h"

/* Entries that are put off are due now. */
static void make_due(struct fixture *fx)
{
    fx_sql(fx, pg_schema_wanted() ? "UPDATE recovery_queue SET scheduled_for = '2020-01-01' "
                                    "WHERE status = 'pending'"
                                  : "UPDATE recovery_queue SET scheduled_for = 1000 "
                                    "WHERE status = 'pending'");
}

static void complete_one(struct fixture *fx, const char *worker_id, const char *queue)
{
    struct task *held;

    worker(fx, worker_id, queue);
    held = claim_one(fx, worker_id)->task;
    report_ok(fx, worker_id, held, .op = REPORT_COMPLETE);
    leave(fx, worker_id);
}

/* ---- a key that was taken again ---- */

static void b4_a_task_whose_key_was_taken_again_waits_until_it_is_free(void **state)
{
    struct fixture *fx = *state;
    const char *key = ",\"idempotency_key\":\"k\",\"unique_until\":\"ended\"";
    struct uuid id, entry, delayed;

    fx_lease(fx, LEASE_MS);
    id = partial_task(fx, key);
    assert_string_equal(reason_of(fx, id), "valid");
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"other\"%s}", key);
    assert_string_equal(reason_of(fx, id), "key_taken");
    if (pg_schema_wanted())
        assert_int_equal(fx_ask(fx, "SELECT count(*) FROM tasks WHERE status = 'partial' AND "
                                    "validate_task_recovery(id)->>'reason' = 'key_taken'"), 1);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_CONFLICT);
    entry = put(fx, id, RECOVERY_RESUME_CHECKPOINT);
    wait_until(entry_by_id(fx, entry)->attempts == 1);
    assert_int_equal(entry_by_id(fx, entry)->status, RECOVERY_PENDING);
    assert_true(has_text(entry_by_id(fx, entry)->error_message, "key_taken"));
    delayed = enqueue(fx, "{\"type\":\"t\",\"queue\":\"late\",\"delay_ms\":50}");
    wait_status(fx, delayed, STATUS_PENDING);
    lost_task(fx, "", false); /* is found, and taken back */
    assert_int_equal(stats_of(fx).totals[TOTAL_BATCH_RETRIES], 0);
    complete_one(fx, "o", "other");
    make_due(fx);
    reopen(fx); /* which looks at them */
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    assert_status(fx, id, STATUS_PENDING);
    assert_true(enqueue_json(fx, "{\"type\":\"t\",\"queue\":\"other\"%s}", key)->duplicate[0]);
    fx_verify(fx);
}

/* ---- a store that refuses ---- */

/* The sweep finds lost workers, delayed tasks come and schedules fire meanwhile. */
static void recoveries_that_fail_undo_no_other_chore(void **state)
{
    struct fixture *fx = *state;
    struct uuid id, entry, delayed, job, schedule;
    int64_t began_ms;

    fx->wanted.settings.allow_changed_schema = true;
    fx_lease(fx, LEASE_MS);
    job = make_job(fx, "{\"name\":\"j\"}");
    id = orphan(fx, "", false);
    fx_sql(fx, pg_schema_wanted()
                   ? "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'refused'; END $$ "
                     "LANGUAGE plpgsql; CREATE TRIGGER refuse BEFORE UPDATE ON recovery_queue "
                     "FOR EACH ROW EXECUTE FUNCTION refuse()"
                   : "CREATE TRIGGER refuse BEFORE UPDATE ON recovery_queue BEGIN "
                     "SELECT RAISE(ABORT, 'refused'); END");
    began_ms = fx_now_ms();
    entry = put(fx, id, RECOVERY_RESUME_CHECKPOINT);
    wait_until(stats_of(fx).totals[TOTAL_BATCH_RETRIES] > 0);
    delayed = enqueue(fx, "{\"type\":\"t\",\"queue\":\"late\",\"delay_ms\":100}");
    schedule = make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    lost_task(fx, "", false);
    wait_status(fx, delayed, STATUS_PENDING);
    wait_until(count_tasks(fx, job) > 1);
    assert_true(get_schedule(fx, schedule)->next_fire_at_us > 0);
    assert_status(fx, id, STATUS_ORPHANED);
    assert_in_range(stats_of(fx).totals[TOTAL_BATCH_RETRIES], 1, /* about one in a second */
                    40 + 2 * (fx_now_ms() - began_ms) / 1000);
    fx_sql(fx, pg_schema_wanted() ? "DROP TRIGGER refuse ON recovery_queue"
                                  : "DROP TRIGGER refuse");
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    assert_status(fx, id, STATUS_PENDING);
    fx_verify(fx);
}

/* The first of two cannot be written: it is retried with growing delays, and the second
 * continues. */
static void refuse_the_first(struct fixture *fx, struct uuid ids[2])
{
    fx->wanted.settings.allow_changed_schema = true;
    fx_lease(fx, LEASE_MS);
    ids[0] = orphan(fx, ",\"priority\":77,\"recovery_priority\":9", false);
    ids[1] = orphan(fx, "", false);
    fx_sql(fx, pg_schema_wanted()
                   ? "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN IF NEW.status = 'pending' "
                     "AND NEW.priority = 77 THEN RAISE 'refused'; END IF; RETURN NEW; END $$ "
                     "LANGUAGE plpgsql; CREATE TRIGGER refuse BEFORE UPDATE ON task_states "
                     "FOR EACH ROW EXECUTE FUNCTION refuse()"
                   : "CREATE TRIGGER refuse BEFORE UPDATE ON task_states WHEN NEW.status = 'pending' "
                     "AND NEW.priority = 77 BEGIN SELECT RAISE(ABORT, 'refused'); END");
}

static void assert_put_off(struct fixture *fx, struct uuid entry)
{
    wait_until(entry_by_id(fx, entry)->attempts == 1);
    assert_int_equal(entry_by_id(fx, entry)->status, RECOVERY_PENDING);
    assert_true(has_text(entry_by_id(fx, entry)->error_message, "it failed"));
    assert_true(entry_by_id(fx, entry)->scheduled_for_us >
                entry_by_id(fx, entry)->created_at_us + 4 * CLOCK_SECOND_US);
    fx_sql(fx, pg_schema_wanted() ? "DROP TRIGGER refuse ON task_states" : "DROP TRIGGER refuse");
}

static void b4_a_recovery_that_fails_holds_up_none_behind_it(void **state)
{
    struct fixture *fx = *state;
    struct uuid ids[2], first, second;

    refuse_the_first(fx, ids);
    first = put(fx, ids[0], RECOVERY_RESUME_CHECKPOINT);
    second = put(fx, ids[1], RECOVERY_RESUME_CHECKPOINT);
    wait_entry(fx, second, RECOVERY_COMPLETED);
    assert_status(fx, ids[0], STATUS_ORPHANED);
    assert_put_off(fx, first);
    wait_entry(fx, first, RECOVERY_COMPLETED); /* by itself, when its time has come */
    assert_status(fx, ids[0], STATUS_PENDING);
    fx_verify(fx);
}

/* Of types without a validator, where others have one: the thread that asks those handles all of
 * them. */
static bool validates_other(void *ctx, struct str type)
{
    (void)ctx;
    return !type.data || str_is(type, "other");
}

static void b6_a_recovery_that_fails_holds_up_no_validator(void **state)
{
    struct fixture *fx = *state;
    struct uuid ids[2], first, second;

    fx->validates = validates_other;
    refuse_the_first(fx, ids);
    first = put(fx, ids[0], RECOVERY_RESUME_CHECKPOINT);
    second = put(fx, ids[1], RECOVERY_RESUME_CHECKPOINT);
    work(fx, NULL, 1);
    assert_int_equal(entry_by_id(fx, second)->status, RECOVERY_COMPLETED);
    assert_status(fx, ids[0], STATUS_ORPHANED);
    work(fx, NULL, 1);
    assert_put_off(fx, first);
    wait_until((work(fx, NULL, 1), entry_by_id(fx, first)->status == RECOVERY_COMPLETED));
    fx_verify(fx);
}

/* Put there by one node while another removed the task. */
static void b4_an_entry_whose_task_is_gone_goes_too(void **state)
{
    struct fixture *fx = *state;
    struct uuid id, entry;

    fx->validates = validates_other; /* only this test handles them */
    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", false);
    entry = put(fx, id, RECOVERY_RESUME_CHECKPOINT);
    fx_sql(fx, pg_schema_wanted() ? "UPDATE recovery_queue SET task_id = gen_random_uuid()"
                                  : "UPDATE recovery_queue SET task_id = randomblob(16)");
    assert_non_null(entry_by_id(fx, entry));
    work(fx, NULL, 1);
    assert_null(entry_by_id(fx, entry));
    assert_status(fx, id, STATUS_ORPHANED);
    fx_verify(fx);
}

/* ---- found done ---- */

static struct recovery_result answer_to(struct recovery_work given, bool answered, bool valid,
                                        const char *reason)
{
    return (struct recovery_result){.entry_id = given.entry_id, .attempts = given.attempts,
                                    .answered = answered, .valid = valid,
                                    .reason = str_of(reason)};
}

static void b6_a_run_that_is_found_done_needs_no_slot_of_its_job(void **state)
{
    struct fixture *fx = *state;
    struct recovery_result result;
    struct uuid job, first, second;
    struct task *held;

    fx->validates = validates_t;
    reopen(fx);
    job = make_job(fx, "{\"name\":\"j\",\"task_type\":\"t\",\"max_concurrent\":1}");
    first = run_now(fx, job);
    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_PARTIAL, .result = STR("1"));
    second = run_now(fx, job);
    put(fx, first, RECOVERY_RESUME_CHECKPOINT);
    result = answer_to(work_one(fx), true, false, "already_completed");
    work(fx, &result, 0);
    assert_status(fx, first, STATUS_COMPLETED);
    assert_int_equal(entry_of(fx, first)->status, RECOVERY_COMPLETED);
    assert_status(fx, second, STATUS_PENDING); /* and no task got a slot for it */
    fx_verify(fx);
}

static void b6_a_silent_task_that_is_found_done_is_completed_and_lost_to_its_worker(void **state)
{
    struct fixture *fx = *state;
    struct recovery_result result;
    struct task *held;
    struct uuid id;

    fx->validates = validates_t;
    fx_lease(fx, 90000); /* swept every 15 s */
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"stall_after_ms\":50,\"max_crashes\":1}");
    worker(fx, "w", "q");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    wait_until(str_is(str_of(reason_of(fx, id)), "valid")); /* before the sweep sees it */
    put(fx, id, RECOVERY_RESUME_CHECKPOINT);
    result = answer_to(work_one(fx), true, false, "already_completed");
    work(fx, &result, 0);
    assert_status(fx, id, STATUS_COMPLETED);
    assert_int_equal(get(fx, id)->counts.crashes, 0);
    assert_int_equal(report(fx, "w", held, .op = REPORT_COMPLETE), ERR_STALE_LEASE);
    assert_string_equal(story_of(fx, id),
                        "pending claimed running orphaned recovering completed");
    fx_verify(fx);
}

/* ---- a validator that is away ---- */

static void b6_what_the_sweep_lost_is_asked_for_until_its_validator_answers(void **state)
{
    struct fixture *fx = *state;
    struct recovery_result result;
    struct uuid id;

    fx->validates = validates_t;
    fx_lease(fx, LEASE_MS);
    id = lost_task(fx, "", true);
    fx_sql(fx, "UPDATE task_checkpoints SET checkpoint_name = 'evil'"); /* none is whole */
    assert_int_equal(entry_of(fx, id)->max_attempts, 0);
    for (int i = 1; i <= 5; i++) {
        result = answer_to(work_one(fx), false, false, "it took longer than 10 s");
        work(fx, &result, 0);
        assert_int_equal(entry_of(fx, id)->status, RECOVERY_PENDING);
        assert_int_equal(entry_of(fx, id)->attempts, i);
        assert_true(has_text(entry_of(fx, id)->error_message, "did not answer"));
        make_due(fx);
    }
    work_one(fx); /* the asking thread is killed meanwhile */
    fx_sql(fx, pg_schema_wanted() ? "UPDATE recovery_queue SET processing_started = '2020-01-01'"
                                  : "UPDATE recovery_queue SET processing_started = 1000");
    result = answer_to(work_one(fx), true, true, NULL);
    work(fx, &result, 0);
    assert_int_equal(entry_of(fx, id)->status, RECOVERY_COMPLETED);
    assert_status(fx, id, STATUS_PENDING);
    worker(fx, "next", "q");
    assert_null(claim_one(fx, "next")->checkpoint);
}

static void b6_what_a_user_asked_for_is_given_up_when_its_validator_stays_away(void **state)
{
    struct fixture *fx = *state;
    struct recovery_result result;
    struct uuid id;

    fx->validates = validates_t;
    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", false);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
    for (int i = 1; i <= 3; i++) {
        result = answer_to(work_one(fx), false, false, "it took longer than 10 s");
        work(fx, &result, 0);
        make_due(fx);
    }
    assert_int_equal(entry_of(fx, id)->status, RECOVERY_FAILED);
    assert_status(fx, id, STATUS_ORPHANED);
}

/* ---- a pause that was asked for ---- */

/* By the sweep, by a user, or when the validator of its type has answered. */
static void a_pause_that_was_asked_for_holds_however_a_lost_task_comes_back(void **state)
{
    static const char *const kinds[] = {"\"type\":\"u\"", "\"type\":\"u\",\"auto_recovery\":false",
                                        "\"type\":\"t\""};
    struct fixture *fx = *state;
    struct recovery_result result;
    struct task *held;
    struct uuid id;

    fx->validates = validates_t;
    fx_lease(fx, LEASE_MS);
    for (int i = 0; i < 3; i++) {
        id = enqueue(fx, "{%s,\"queue\":\"q\"}", kinds[i]);
        worker(fx, "lost", "q");
        held = claim_one(fx, "lost")->task;
        report_ok(fx, "lost", held, .op = REPORT_START);
        assert_int_equal(control(fx, id, CONTROL_PAUSE), ERR_NONE);
        wait_until(!get(fx, id)->lease.held);
        if (i > 0) {
            assert_status(fx, id, STATUS_ORPHANED);
            assert_true(get(fx, id)->lease.pause_requested);
        }
        if (i == 1)
            assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
        if (i == 2) {
            result = answer_to(work_one(fx), true, true, NULL);
            work(fx, &result, 0);
        }
        assert_status(fx, id, STATUS_PAUSED);
        assert_false(get(fx, id)->lease.pause_requested);
        assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_NONE);
        assert_status(fx, id, STATUS_PENDING);
        complete_one(fx, "next", "q");
    }
    fx_verify(fx);
}

static void a_pause_of_a_lost_task_can_be_taken_back(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"auto_recovery\":false}");
    worker(fx, "lost", "q");
    held = claim_one(fx, "lost")->task;
    report_ok(fx, "lost", held, .op = REPORT_START);
    assert_int_equal(control(fx, id, CONTROL_PAUSE), ERR_NONE);
    wait_status(fx, id, STATUS_ORPHANED);
    assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_NONE);
    assert_int_equal(control(fx, id, CONTROL_RESUME), ERR_TRANSITION);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
    assert_status(fx, id, STATUS_PENDING);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(b4_a_task_whose_key_was_taken_again_waits_until_it_is_free),
        QUEUE_TEST(recoveries_that_fail_undo_no_other_chore),
        QUEUE_TEST(b4_a_recovery_that_fails_holds_up_none_behind_it),
        QUEUE_TEST(b6_a_recovery_that_fails_holds_up_no_validator),
        QUEUE_TEST(b4_an_entry_whose_task_is_gone_goes_too),
        QUEUE_TEST(b6_a_run_that_is_found_done_needs_no_slot_of_its_job),
        QUEUE_TEST(b6_a_silent_task_that_is_found_done_is_completed_and_lost_to_its_worker),
        QUEUE_TEST(b6_what_the_sweep_lost_is_asked_for_until_its_validator_answers),
        QUEUE_TEST(b6_what_a_user_asked_for_is_given_up_when_its_validator_stays_away),
        QUEUE_TEST(a_pause_that_was_asked_for_holds_however_a_lost_task_comes_back),
        QUEUE_TEST(a_pause_of_a_lost_task_can_be_taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
