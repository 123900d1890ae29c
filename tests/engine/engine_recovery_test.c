/* The recovery queue over real stores: what the sweep writes, what people ask for, discovery and
 * validation (B4, B5, B6, B9), and tasks whose handler gives no sign. */
#include "recovery_fixture.h"

static void b4_a_lost_task_that_is_taken_back_leaves_an_entry_that_is_completed(void **state)
{
    struct fixture *fx = *state;

    fx_lease(fx, LEASE_MS);
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        struct uuid id = lost_task(fx, ",\"recovery_priority\":7", checkpoint);
        struct recovery_entry *entry = entry_of(fx, id);
        struct claimed *claimed;

        assert_int_equal(entry->method, checkpoint ? RECOVERY_RESUME_CHECKPOINT
                                                   : RECOVERY_RESTART_CLEAN);
        assert_int_equal(entry->status, RECOVERY_COMPLETED);
        assert_int_equal(entry->priority, 7);
        assert_int_equal(entry->attempts, 1);
        assert_int_equal(entry->max_attempts, 3);
        assert_true(entry->processing_completed_us >= entry->processing_started_us);
        assert_true(has_text(entry->result, "worker_lost"));
        assert_null(entry->error_message.data);
        assert_true(has_text(get(fx, id)->resume.metadata,
                             checkpoint ? "resume_checkpoint" : "restart_clean"));
        worker(fx, "next", "q");
        claimed = claim_one(fx, "next");
        assert_true((claimed->checkpoint != NULL) == (checkpoint == 1));
        if (checkpoint)
            assert_true(str_is(get(fx, id)->resume.from, "half")); /* B7 */
        report_ok(fx, "next", claimed->task, .op = REPORT_COMPLETE);
    }
    fx_verify(fx);
}

static void h2_a_task_that_is_poison_leaves_an_entry_that_failed(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    id = lost_task(fx, ",\"max_crashes\":1", false);
    assert_status(fx, id, STATUS_DEAD_LETTER);
    assert_int_equal(entry_of(fx, id)->status, RECOVERY_FAILED);
    assert_true(has_text(entry_of(fx, id)->error_message, "attempts_exhausted"));
    assert_string_equal(reason_of(fx, id), "attempts_exhausted");
    fx_verify(fx);
}

static void b9_an_orphan_has_no_entry_until_somebody_recovers_it(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;
    uint32_t count;

    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", true);
    entries_of(fx, id, &count);
    assert_int_equal(count, 0);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
    assert_status(fx, id, STATUS_PENDING);
    assert_int_equal(entry_of(fx, id)->status, RECOVERY_COMPLETED);
    assert_string_equal(story_of(fx, id),
                        "pending claimed running running orphaned recovering pending");
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_TRANSITION);
    fx_verify(fx);
}

static void b4_an_entry_puts_its_task_back_in_its_way(void **state)
{
    struct fixture *fx = *state;
    const enum recovery_method methods[] = {RECOVERY_RESUME_CHECKPOINT, RECOVERY_RESTART_CLEAN,
                                            RECOVERY_VALIDATE_ONLY};

    fx_lease(fx, LEASE_MS);
    for (int i = 0; i < 3; i++) {
        struct uuid id = orphan(fx, "", true);
        struct uuid entry = put(fx, id, methods[i]);
        struct claimed *claimed;

        wait_entry(fx, entry, RECOVERY_COMPLETED);
        assert_int_equal(entry_by_id(fx, entry)->attempts, 1);
        assert_true(has_text(entry_by_id(fx, entry)->result, "\"valid\":"));
        worker(fx, "next", "q");
        if (methods[i] == RECOVERY_VALIDATE_ONLY) {
            assert_status(fx, id, STATUS_ORPHANED); /* said, and not touched */
            claim_none(fx, "next");
            continue;
        }
        claimed = claim_one(fx, "next");
        assert_true(uuid_eq(&claimed->task->id, &id));
        assert_true((claimed->checkpoint != NULL) == (i == 0));
        report_ok(fx, "next", claimed->task, .op = REPORT_COMPLETE);
        leave(fx, "next");
    }
    fx_verify(fx);
}

static void b4_nothing_is_resumed_from_before_a_clean_restart(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id, entry;

    fx_lease(fx, LEASE_MS);
    id = orphan(fx, ",\"max_crashes\":9", true);
    entry = put(fx, id, RECOVERY_RESTART_CLEAN); /* once: the wait asks again and again */
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    held = lose(fx, id, true);
    assert_int_equal(held->progress, 0);
    fx_sql(fx, "UPDATE task_checkpoints SET checkpoint_name = 'evil' WHERE seq = 2");
    assert_string_equal(reason_of(fx, id), "checkpoint_damaged");
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_checkpoints"), 2);
}

/* Ids of events grow, also from task to task. */
static bool recovered_before(struct fixture *fx, struct uuid id, struct uuid other_id)
{
    uint32_t count, other_count;
    struct task_event *events = events_of(fx, id, &count);
    struct task_event *others = events_of(fx, other_id, &other_count);

    return memcmp(events[count - 1].id.bytes, others[other_count - 1].id.bytes, 16) < 0;
}

static void b4_entries_are_worked_off_by_priority_and_not_before_their_time(void **state)
{
    struct fixture *fx = *state;
    struct uuid ids[4], entries[4];
    const int64_t priorities[] = {1, 9, 5, 7};

    fx_lease(fx, LEASE_MS);
    for (int i = 0; i < 4; i++)
        ids[i] = orphan(fx, "", false);
    fx_hold(fx); /* all of them are there when the first is looked at */
    struct recovery_request requests[4];
    struct engine_call calls[4];
    for (int i = 0; i < 4; i++) {
        requests[i] = (struct recovery_request){
            .base = {.kind = REQUEST_RECOVERY, .arena = &fx->arena},
            .task_id = ids[i],
            .method = RECOVERY_RESUME_CHECKPOINT,
            .has_priority = true,
            .priority = priorities[i],
            .scheduled_for_us = i == 3 ? engine_now_us(fx->engine) + 3600 * CLOCK_SECOND_US : 0};
        engine_call_start(fx->engine, &requests[i].base, &calls[i]);
    }
    fx_let_go(fx);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(engine_call_finish(&requests[i].base, &calls[i]), 0);
        entries[i] = requests[i].entry.id;
    }
    for (int i = 0; i < 3; i++)
        wait_entry(fx, entries[i], RECOVERY_COMPLETED);
    assert_int_equal(entry_by_id(fx, entries[3])->status, RECOVERY_PENDING);
    assert_status(fx, ids[3], STATUS_ORPHANED);
    assert_true(recovered_before(fx, ids[1], ids[2]));
    assert_true(recovered_before(fx, ids[2], ids[0]));
    fx_verify(fx);
}

static void b4_an_entry_is_worked_off_by_the_next_start(void **state)
{
    struct fixture *fx = *state;
    struct uuid id, entry;
    char text[300];

    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", false);
    entry = put(fx, id, RECOVERY_VALIDATE_ONLY);
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    /* as if the server that processed it had been killed before it could end */
    snprintf(text, sizeof text, "UPDATE recovery_queue SET status = 'processing', "
             "recovery_method = 'resume_checkpoint', processing_started = %s",
             pg_schema_wanted() ? "'2020-01-01'" : "1000");
    fx_sql(fx, text);
    wait_entry(fx, entry, RECOVERY_COMPLETED);
    assert_int_equal(entry_by_id(fx, entry)->attempts, 2);
    assert_status(fx, id, STATUS_PENDING);
    snprintf(text, sizeof text, "UPDATE recovery_queue SET status = 'processing', attempts = 3, "
             "processing_started = %s", pg_schema_wanted() ? "'2020-01-01'" : "1000");
    fx_sql(fx, text);
    wait_entry(fx, entry, RECOVERY_FAILED);
}

static void b6_a_task_is_judged_with_a_reason(void **state)
{
    struct fixture *fx = *state;
    struct uuid nobody = {{1}}, done, id;
    struct task *held;

    fx_lease(fx, LEASE_MS);
    assert_string_equal(reason_of(fx, nobody), "not_found");
    done = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    assert_string_equal(reason_of(fx, done), "not_lost");
    worker(fx, "w", "q");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    assert_string_equal(reason_of(fx, done), "already_completed");
    id = orphan(fx, "", true);
    assert_string_equal(reason_of(fx, id), "valid");
    fx_sql(fx, "UPDATE task_checkpoints SET checkpoint_name = 'evil'");
    assert_string_equal(reason_of(fx, id), "checkpoint_damaged");
    assert_int_equal(ask(fx, id, RECOVERY_OP_VALIDATE, RECOVERY_RESTART_CLEAN)->reason,
                     RECOVERY_VALID);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_CONFLICT);
    assert_status(fx, id, STATUS_ORPHANED);
    assert_string_equal(reason_of(fx, partial_task(fx, "")), "valid");
    assert_string_equal(reason_of(fx, partial_task(fx, ",\"max_crashes\":0")), "valid");
}

static void b6_an_older_checkpoint_that_is_whole_is_enough(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"auto_recovery\":false}");
    worker(fx, "lost", "q");
    struct task *held = claim_one(fx, "lost")->task;
    for (int i = 1; i <= 3; i++)
        report_ok(fx, "lost", held, .op = REPORT_CHECKPOINT, .name = STR("c"), .progress = i);
    wait_status(fx, id, STATUS_ORPHANED);
    fx_sql(fx, "UPDATE task_checkpoints SET progress_percent = 99 WHERE seq > 1");
    struct recovery_request *request = ask(fx, id, RECOVERY_OP_VALIDATE,
                                           RECOVERY_RESUME_CHECKPOINT);
    assert_int_equal(request->reason, RECOVERY_VALID);
    assert_true(has_text(request->verdict, "\"checkpoint\":{\"seq\":1"));
    assert_true(has_text(request->verdict, "\"checkpoints_damaged\":2"));
    if (pg_schema_wanted()) {
        char text[200];

        snprintf(text, sizeof text, "SELECT (validate_task_recovery('%s')->'detail'->>"
                 "'checkpoints_damaged')::int", id_text(fx, id));
        assert_int_equal(fx_ask(fx, text), 2);
    }
}

static void b6_a_handler_is_gone_only_where_all_live_workers_say_what_they_run(void **state)
{
    struct fixture *fx = *state;
    struct uuid id, entry;

    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", false);
    wait_until(fx_ask(fx, "SELECT count(*) FROM workers WHERE id = 'lost'") == 0);
    fx_lease(fx, 60000);
    assert_string_equal(reason_of(fx, id), "valid"); /* no worker is there: unknown */
    typed_worker(fx, "a", "other");
    assert_string_equal(reason_of(fx, id), "handler_gone");
    entry = put(fx, id, RECOVERY_RESUME_CHECKPOINT);
    wait_until(entry_by_id(fx, entry)->attempts == 1);
    assert_int_equal(entry_by_id(fx, entry)->status, RECOVERY_PENDING); /* it may come back */
    assert_true(entry_by_id(fx, entry)->scheduled_for_us >
                engine_now_us(fx->engine) + CLOCK_SECOND_US);
    assert_status(fx, id, STATUS_ORPHANED);
    typed_worker(fx, "b", "t*");
    assert_string_equal(reason_of(fx, id), "valid");
    leave(fx, "b");
    assert_string_equal(reason_of(fx, id), "handler_gone");
    if (pg_schema_wanted())
        assert_int_equal(fx_ask(fx, "SELECT count(*) FROM tasks WHERE "
                                    "validate_task_recovery(id)->>'reason' = 'handler_gone'"), 1);
    leave(fx, "a");
    assert_string_equal(reason_of(fx, id), "valid");
    typed_worker(fx, "none", ""); /* it says that it runs nothing */
    assert_string_equal(reason_of(fx, id), "handler_gone");
    if (pg_schema_wanted())
        assert_int_equal(fx_ask(fx, "SELECT count(*) FROM tasks WHERE "
                                    "validate_task_recovery(id)->>'reason' = 'handler_gone'"), 1);
    typed_worker(fx, "c", NULL);
    assert_string_equal(reason_of(fx, id), "valid");
    fx_verify(fx);
}

static struct recovery_candidate *candidates(struct fixture *fx, struct candidate_filter filter,
                                             uint32_t *count)
{
    struct recovery_candidate *found;

    filter.stall_after_ms = RECOVERY_STALL_AFTER_MS;
    if (!filter.now_us)
        filter.now_us = engine_now_us(fx->engine);
    assert_int_equal(verbs(fx)->read_candidates(fx->reader, &filter, &fx->arena, &found, count,
                                                &fx->err), 0);
    return found;
}

static void b5_discovery_finds_what_is_lost_partial_or_silent_by_priority(void **state)
{
    struct fixture *fx = *state;
    struct recovery_candidate *found;
    struct uuid low, high, first, second, silent;
    struct task *held;
    uint32_t count;

    fx_lease(fx, LEASE_MS);
    first = partial_task(fx, "");
    second = partial_task(fx, "");
    low = partial_task(fx, ",\"recovery_priority\":-3");
    high = orphan(fx, ",\"recovery_priority\":8", false);
    fx_lease(fx, 60000);
    silent = enqueue(fx, "{\"type\":\"s\",\"queue\":\"s\"}");
    worker(fx, "s", "s");
    held = claim_one(fx, "s")->task;
    report_ok(fx, "s", held, .op = REPORT_START);
    found = candidates(fx, (struct candidate_filter){.auto_recovery = 1, .limit = 10}, &count);
    assert_int_equal(count, 3);
    assert_true(uuid_eq(&found[0].task->id, &first));
    assert_true(uuid_eq(&found[1].task->id, &second));
    assert_true(uuid_eq(&found[2].task->id, &low));
    assert_string_equal(found[0].reason, "partial");
    assert_true(str_is(found[0].task->spec.queue, "p"));
    found = candidates(fx, (struct candidate_filter){.auto_recovery = -1, .limit = 10}, &count);
    assert_int_equal(count, 4);
    assert_true(uuid_eq(&found[0].task->id, &high));
    assert_string_equal(found[0].reason, "orphaned");
    found = candidates(fx, (struct candidate_filter){.auto_recovery = 0, .limit = 10}, &count);
    assert_int_equal(count, 1);
    found = candidates(
        fx,
        (struct candidate_filter){.auto_recovery = 1,
                                  .limit = 10,
                                  .now_us = engine_now_us(fx->engine) + 601 * CLOCK_SECOND_US},
        &count);
    assert_int_equal(count, 4);
    assert_true(uuid_eq(&found[2].task->id, &silent));
    assert_string_equal(found[2].reason, "stalled");
    if (pg_schema_wanted()) {
        assert_int_equal(fx_ask(fx, "SELECT count(*) FROM discover_recoverable_tasks()"), 3);
        assert_int_equal(fx_ask(fx, "SELECT recovery_priority FROM discover_recoverable_tasks() "
                                    "OFFSET 2"), -3);
    }
}

static void b5_candidates_are_paged_without_gap_or_repeat(void **state)
{
    struct fixture *fx = *state;
    struct candidate_filter filter = {.auto_recovery = 1, .limit = 3};
    struct uuid seen[20];
    uint32_t total = 0, count;

    for (int i = 0; i < 10; i++)
        partial_task(fx, i % 3 == 0 ? ",\"recovery_priority\":2" : "");
    do {
        struct recovery_candidate *page = candidates(fx, filter, &count);

        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < total; j++)
                assert_false(uuid_eq(&seen[j], &page[i].task->id));
            seen[total++] = page[i].task->id;
            filter.goes_on = true;
            filter.after_priority = page[i].task->spec.recovery_priority;
            filter.after_updated_us = page[i].task->updated_at_us;
            filter.after_id = page[i].task->id;
        }
    } while (count == 3);
    assert_int_equal(total, 10);
}

static void a_handler_that_gives_no_sign_loses_its_task_where_that_is_asked_for(void **state)
{
    struct fixture *fx = *state;
    struct uuid quick, slow;
    struct task *held, *other;
    uint32_t count;

    fx_lease(fx, 3000); /* swept every 500 ms */
    worker(fx, "w", "q");
    quick = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"stall_after_ms\":2000}");
    held = claim_one(fx, "w")->task;
    slow = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    other = claim_one(fx, "w")->task;
    report_ok(fx, "w", other, .op = REPORT_START);
    for (int i = 0; i < 12; i++) { /* its signs keep it, whichever they are */
        fx_pause_ms(250);
        heartbeat(fx, "w", NULL, 0);
        if (i % 3 == 0)
            report_ok(fx, "w", held, .op = REPORT_LOG, .message = STR("here"));
        else if (i % 3 == 1)
            report_ok(fx, "w", held, .op = REPORT_PROGRESS, .progress = i);
        else
            report_ok(fx, "w", held, .op = REPORT_CHECKPOINT, .name = STR("c"));
    }
    assert_status(fx, quick, STATUS_RUNNING);
    wait_until((heartbeat(fx, "w", NULL, 0), get(fx, quick)->status == STATUS_PENDING));
    assert_true(str_is(get(fx, quick)->fault.last, "stalled"));
    assert_int_equal(get(fx, quick)->counts.crashes, 1);
    assert_int_equal(entry_of(fx, quick)->method, RECOVERY_RESUME_CHECKPOINT);
    assert_true(has_text(entry_of(fx, quick)->result, "stalled"));
    assert_int_equal(report(fx, "w", held, .op = REPORT_COMPLETE), ERR_STALE_LEASE); /* B4 */
    assert_status(fx, slow, STATUS_RUNNING); /* never asked for */
    entries_of(fx, slow, &count);
    assert_int_equal(count, 0);
    fx_verify(fx);
}

static void f_b6_who_could_not_be_heard_is_not_silent(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;

    fx_lease(fx, 1800); /* swept every 300 ms */
    worker(fx, "w", "q");
    id = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"stall_after_ms\":3000}");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    fx_close(fx);
    fx_pause_ms(3100);
    fx_open(fx);
    for (int i = 0; i < 5; i++) {
        heartbeat(fx, "w", NULL, 0);
        fx_pause_ms(180);
    }
    assert_status(fx, id, STATUS_RUNNING);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    fx_verify(fx);
}

static void stall_after_comes_from_the_task_its_type_or_its_queue(void **state)
{
    struct fixture *fx = *state;

    fx->wanted.rules[0] = (struct queue_rule){.name = STR("q"), .stall_after_ms = 1000};
    fx->wanted.settings.queues_count = 1;
    fx->wanted.handlers[0] = (struct handler_rule){.type = STR("typed"), .timeout_ms = -1,
        .max_retries = -1, .retry_delay_ms = -1, .max_retry_delay_ms = -1, .retention_ms = -1,
        .stall_after_ms = 2000};
    fx->wanted.settings.handlers_count = 1;
    reopen(fx);
    assert_int_equal(get(fx, enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}"))
                         ->spec.stall_after_ms, 1000);
    assert_int_equal(get(fx, enqueue(fx, "{\"type\":\"typed\",\"queue\":\"q\"}"))
                         ->spec.stall_after_ms, 2000);
    assert_int_equal(get(fx, enqueue(fx, "{\"type\":\"typed\",\"queue\":\"q\","
                                         "\"stall_after_ms\":3000}"))->spec.stall_after_ms, 3000);
    assert_int_equal(get(fx, enqueue(fx, "{\"type\":\"t\",\"queue\":\"r\"}"))
                         ->spec.stall_after_ms, 0);
}

/* ---- validators ---- */

static void b6_a_lost_task_of_a_type_with_a_validator_waits_for_its_word(void **state)
{
    struct fixture *fx = *state;
    const struct {
        bool answered, valid;
        const char *reason;
        enum recovery_status entry;
        enum status task;
    } cases[] = {
        {true, true, NULL, RECOVERY_COMPLETED, STATUS_PENDING},
        {true, false, "the invoice is gone", RECOVERY_FAILED, STATUS_ORPHANED},
        {true, false, "already_completed", RECOVERY_COMPLETED, STATUS_COMPLETED},
        {false, false, "it took longer than 10 s", RECOVERY_PENDING, STATUS_ORPHANED},
    };

    fx->validates = validates_t;
    fx_lease(fx, LEASE_MS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct uuid id = lost_task(fx, "", true);
        struct recovery_result result = {.answered = cases[i].answered, .valid = cases[i].valid,
                                         .reason = str_of(cases[i].reason)};
        struct recovery_work given;

        assert_status(fx, id, STATUS_ORPHANED);
        assert_int_equal(entry_of(fx, id)->status, RECOVERY_PENDING);
        given = work_one(fx);
        assert_true(uuid_eq(&given.task_id, &id));
        assert_true(str_is(given.type, "t"));
        assert_int_equal(entry_of(fx, id)->status, RECOVERY_PROCESSING);
        assert_int_equal(work(fx, NULL, 10)->works_count, 0); /* one has it */
        result.entry_id = given.entry_id;
        result.attempts = given.attempts;
        work(fx, &result, 0);
        assert_int_equal(entry_of(fx, id)->status, cases[i].entry);
        assert_status(fx, id, cases[i].task);
        if (!cases[i].valid && !str_is(result.reason, "already_completed"))
            assert_true(has_text(entry_of(fx, id)->error_message, cases[i].reason));
        work(fx, &result, 0); /* said twice is said once */
        assert_status(fx, id, cases[i].task);
        if (cases[i].task == STATUS_PENDING) {
            struct task *held;

            worker(fx, "next", "q");
            held = claim_one(fx, "next")->task;
            report_ok(fx, "next", held, .op = REPORT_COMPLETE);
            leave(fx, "next");
        }
    }
    fx_verify(fx);
}

static void b6_a_user_who_recovers_waits_for_the_validator_too(void **state)
{
    struct fixture *fx = *state;
    struct recovery_work given;
    struct uuid id;

    fx->validates = validates_t;
    fx_lease(fx, LEASE_MS);
    id = orphan(fx, "", false);
    assert_int_equal(control(fx, id, CONTROL_RECOVER), ERR_NONE);
    assert_status(fx, id, STATUS_ORPHANED);
    given = work_one(fx);
    work(fx, &(struct recovery_result){.entry_id = given.entry_id, .attempts = given.attempts,
                                       .answered = true, .valid = true}, 0);
    assert_status(fx, id, STATUS_PENDING);
    assert_true(ask(fx, id, RECOVERY_OP_VALIDATE, RECOVERY_RESUME_CHECKPOINT)->validates);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(b4_a_lost_task_that_is_taken_back_leaves_an_entry_that_is_completed),
        QUEUE_TEST(h2_a_task_that_is_poison_leaves_an_entry_that_failed),
        QUEUE_TEST(b9_an_orphan_has_no_entry_until_somebody_recovers_it),
        QUEUE_TEST(b4_an_entry_puts_its_task_back_in_its_way),
        QUEUE_TEST(b4_nothing_is_resumed_from_before_a_clean_restart),
        QUEUE_TEST(b4_entries_are_worked_off_by_priority_and_not_before_their_time),
        QUEUE_TEST(b4_an_entry_is_worked_off_by_the_next_start),
        QUEUE_TEST(b6_a_task_is_judged_with_a_reason),
        QUEUE_TEST(b6_an_older_checkpoint_that_is_whole_is_enough),
        QUEUE_TEST(b6_a_handler_is_gone_only_where_all_live_workers_say_what_they_run),
        QUEUE_TEST(b5_discovery_finds_what_is_lost_partial_or_silent_by_priority),
        QUEUE_TEST(b5_candidates_are_paged_without_gap_or_repeat),
        QUEUE_TEST(a_handler_that_gives_no_sign_loses_its_task_where_that_is_asked_for),
        QUEUE_TEST(f_b6_who_could_not_be_heard_is_not_silent),
        QUEUE_TEST(stall_after_comes_from_the_task_its_type_or_its_queue),
        QUEUE_TEST(b6_a_lost_task_of_a_type_with_a_validator_waits_for_its_word),
        QUEUE_TEST(b6_a_user_who_recovers_waits_for_the_validator_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
