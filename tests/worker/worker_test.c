/* The worker against an in-memory source: slots, reports in order, heartbeats, orders to stop, the
 * drain (C3, C6, D13, F-A18, F-B4, F-B8, F-B9). */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "core/bounds.h"
#include "worker/process/control_line.h"

#include "worker_fixture.h"

/* ---- no handler ---- */

/* Only a source that gives it what it did not ask for brings that about. */
static void task_without_handler_is_given_back_with_the_reason(void **state)
{
    char *const command[] = {"/bin/true", NULL};
    struct handler_rule rule = rule_of("known", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "unknown");
    struct worker *worker = start(fake, &config);

    (void)state;
    WAIT_FOR(fake, task->status == RELEASED);
    assert_string_equal(task->error, "no_handler");
    assert_int_equal(fake->types_count, 1);
    assert_string_equal(fake->type, "known");
    stop(worker, 0);
    fake_free(fake);
}

/* B6: what it cannot run it does not register, and without handlers that is every type. */
static void a_worker_without_a_command_registers_no_type(void **state)
{
    struct handler_rule rule = rule_of("known", NULL);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker = start(fake, &config);

    (void)state;
    assert_true(fake->types_given);
    assert_int_equal(fake->types_count, 0);
    stop(worker, 0);
    fake_free(fake);
}

/* ---- orders to stop ---- */

static void stopped_by_order(bool fake_task_flag_is_cancel, bool pause, enum task_status status)
{
    char *const command[] = {"/bin/sh", "-c", "echo up; exec sleep 300", NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "sh");
    struct worker *worker;

    fake->heartbeat_ms = 50;
    worker = start(fake, &config);
    WAIT_FOR(fake, task->logs == 1);
    pthread_mutex_lock(&fake->lock);
    task->cancel = fake_task_flag_is_cancel;
    task->pause = pause;
    task->lose = !fake_task_flag_is_cancel && !pause;
    pthread_mutex_unlock(&fake->lock);
    WAIT_FOR(fake, worker_counts(worker).held == 0);
    assert_int_equal(task->status, status);
    stop(worker, 0);
    fake_free(fake);
}

static void cancelled_handler_is_stopped_and_reports_nothing_more(void **state)
{
    (void)state;
    stopped_by_order(true, false, STARTED);
}

static void paused_handler_is_stopped_and_given_back(void **state)
{
    (void)state;
    stopped_by_order(false, true, RELEASED);
}

static void handler_of_a_lost_lease_is_killed_F_B4(void **state)
{
    (void)state;
    stopped_by_order(false, false, STARTED);
}

static void stale_report_kills_the_handler_F_B4(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "while :; do echo tick; sleep 0.02; done", NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "sh");
    struct worker *worker = start(fake, &config); /* no heartbeat comes in this test */

    (void)state;
    WAIT_FOR(fake, task->logs >= 1);
    pthread_mutex_lock(&fake->lock);
    task->lose = true;
    pthread_mutex_unlock(&fake->lock);
    WAIT_FOR(fake, task->status == LOST);
    for (int64_t end_us = clock_boot_us() + DEADLINE_S * CLOCK_SECOND_US;
         (worker_counts(worker).held || worker_counts(worker).running) &&
         clock_boot_us() < end_us;)
        usleep(1000);
    assert_int_equal(worker_counts(worker).held, 0);
    assert_int_equal(worker_counts(worker).running, 0);
    stop(worker, 0);
    fake_free(fake);
}

static void claim_whose_lease_ran_out_on_the_way_is_not_started_F_B9(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "echo started", NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "sh");
    struct fake_task *second;
    struct worker *worker;

    (void)state;
    fake->lease_ms = 100;
    fake->reply_delay_ms = 150;
    worker = start(fake, &config);
    WAIT_FOR(fake, task->status == HELD);
    second = add_task(fake, "sh");
    WAIT_FOR(fake, second->status == HELD); /* the slot is free again, so the first was dropped */
    fake->reply_delay_ms = 0;
    stop(worker, 1000);
    assert_int_equal(task->starts, 0);
    assert_int_equal(task->status, HELD);
    assert_int_equal(task->logs, 0);
    fake_free(fake);
}

/* ---- source in trouble ---- */

static void unknown_worker_registers_again_and_continues(void **state)
{
    char *const command[] = {"/bin/true", NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker = start(fake, &config);
    struct fake_task *task;

    (void)state;
    pthread_mutex_lock(&fake->lock);
    fake->unknown = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    WAIT_FOR(fake, fake->registered >= 2);
    task = add_task(fake, "sh");
    WAIT_FOR(fake, task->status == COMPLETED);
    stop(worker, 0);
    assert_int_equal(fake->left, 1);
    fake_free(fake);
}

static void reports_wait_for_a_server_that_is_away_and_keep_their_order(void **state)
{
    char *const command[] = {"/bin/sh", "-c",
                             "echo one; read x; echo two; echo '{\"result\":2}' >&3", NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "sh");
    struct worker *worker;
    int calls;

    (void)state;
    worker = start(fake, &config);
    WAIT_FOR(fake, fake->claims >= 1);
    pthread_mutex_lock(&fake->lock);
    fake->down = true;
    calls = fake->reports_calls;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    for (int64_t end_us = clock_boot_us() + DEADLINE_S * CLOCK_SECOND_US;
         clock_boot_us() < end_us;) {
        bool enough;

        pthread_mutex_lock(&fake->lock);
        enough = fake->reports_calls >= calls + 2 || task->status > STARTED;
        pthread_mutex_unlock(&fake->lock);
        if (enough)
            break;
        usleep(1000);
    }
    pthread_mutex_lock(&fake->lock);
    fake->down = false;
    pthread_mutex_unlock(&fake->lock);
    WAIT_FOR(fake, task->status == COMPLETED);
    assert_string_equal(task->log, "INFO one\nINFO two\n");
    assert_string_equal(task->result, "2");
    assert_false(fake->unordered);
    stop(worker, 0);
    fake_free(fake);
}

static int large_result(struct function_call *call, void *ctx)
{
    struct err err = {0};

    (void)ctx;
    /* The bound is checked before anything is queued. */
    assert_int_equal(function_call_result(call, STR("nonsense"), &err), -ERR_MALFORMED);
    assert_int_equal(function_call_progress(call, 40, STR("s"), &err), 0);
    assert_int_equal(function_call_log(call, SEVERITY_ERROR, STR("said"), STR_NONE, &err), 0);
    assert_int_equal(function_call_result(call, STR("{\"r\":1}"), &err), 0);
    return FUNCTION_DONE;
}

static int failing(struct function_call *call, void *ctx)
{
    (void)ctx;
    function_call_fail(call, false, STR("broken"));
    return FUNCTION_FAIL;
}

static int continuing(struct function_call *call, void *ctx)
{
    (void)ctx;
    function_call_delay(call, 77, false);
    return FUNCTION_CONTINUE;
}

static int until_cancelled(struct function_call *call, void *ctx)
{
    struct timespec pause = {0, 1000000};

    atomic_fetch_add((atomic_int *)ctx, 1);
    while (!function_call_cancelled(call))
        nanosleep(&pause, NULL);
    return FUNCTION_CONTINUE;
}

static void functions_report_and_end_C3(void **state)
{
    const struct function_handler functions[] = {
        {STR("large"), large_result, NULL}, {STR("fail*"), failing, NULL},
        {STR("more"), continuing, NULL}};
    struct worker_config config = {.slots = 2, .functions = functions, .functions_count = 3};
    struct fake *fake = fake_new();
    struct fake_task *done = add_task(fake, "large");
    struct fake_task *failed = add_task(fake, "fail:now");
    struct fake_task *more = add_task(fake, "more");
    struct worker *worker = start(fake, &config);

    (void)state;
    WAIT_FOR(fake, done->status > STARTED && failed->status > STARTED && more->status > STARTED);
    assert_int_equal(done->status, COMPLETED);
    assert_string_equal(done->result, "{\"r\":1}");
    assert_int_equal(done->progress, 40);
    assert_string_equal(done->log, "ERROR said\n");
    assert_int_equal(failed->status, FAILED);
    assert_string_equal(failed->error, "broken");
    assert_false(failed->retryable);
    assert_int_equal(more->status, CONTINUED);
    assert_int_equal(more->delay_ms, 77);
    assert_false(fake->wanted_json);
    stop(worker, 0);
    fake_free(fake);
}

static void function_past_its_timeout_is_told_and_reported_D13(void **state)
{
    atomic_int calls = 0;
    const struct function_handler function = {STR("slow"), until_cancelled, &calls};
    struct worker_config config = {.slots = 1, .functions = &function, .functions_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "slow");
    struct worker *worker;

    (void)state;
    task->timeout_ms = 150;
    worker = start(fake, &config);
    WAIT_FOR(fake, task->status == FAILED);
    assert_true(task->timed_out);
    assert_string_equal(task->error, "timeout after 150ms");
    stop(worker, 0);
    fake_free(fake);
}

/* ---- isolation and heartbeats ---- */

static void hanging_and_crashing_handlers_harm_no_other_C6(void **state)
{
    char *const crash[] = {"/bin/sh", "-c", "kill -SEGV $$", NULL};
    char *const hang[] = {"/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done", NULL};
    char *const good[] = {"/bin/true", NULL};
    struct handler_rule rules[] = {rule_of("crash", crash), rule_of("hang", hang),
                                   rule_of("good", good)};
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = rules,
                                   .rules_count = 3};
    struct fake *fake = fake_new();
    struct fake_task *hanging = add_task(fake, "hang");
    struct fake_task *last = NULL;
    struct worker *worker = start(fake, &config);

    (void)state;
    for (int i = 0; i < 10; i++) {
        add_task(fake, "crash");
        last = add_task(fake, "good");
    }
    WAIT_FOR(fake, last->status == COMPLETED);
    assert_int_equal(hanging->status, STARTED);
    stop(worker, 0);
    assert_int_equal(hanging->status, RELEASED);
    for (uint32_t i = 1; i < fake->count; i++)
        assert_int_equal(fake->tasks[i].status, i % 2 ? FAILED : COMPLETED);
    fake_free(fake);
}

static int burn(struct function_call *call, void *ctx)
{
    volatile uint64_t turns = 0;

    (void)ctx;
    while (!function_call_cancelled(call))
        turns = turns + 1;
    return FUNCTION_CONTINUE;
}

static void heartbeats_come_while_handlers_burn_all_processors_F_B8(void **state)
{
    const struct function_handler function = {STR("burn"), burn, NULL};
    struct worker_config config = {.slots = 4, .functions = &function, .functions_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker;
    int64_t began_us;

    (void)state;
    fake->heartbeat_ms = 50;
    for (int i = 0; i < 4; i++)
        add_task(fake, "burn");
    worker = start(fake, &config);
    WAIT_FOR(fake, fake->tasks[3].starts == 1);
    began_us = clock_boot_us();
    WAIT_FOR(fake, fake->heartbeats >= 10);
    assert_true(clock_boot_us() - began_us < 30 * CLOCK_SECOND_US);
    stop(worker, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fake->tasks[i].status, RELEASED);
    fake_free(fake);
}

static void quarantined_slot_leaves_the_others_at_work_F_I4(void **state)
{
    char *const stuck[] = {"/bin/sh", "-c", "echo $PPID; kill -STOP $PPID; exec sleep 300", NULL};
    char *const good[] = {"/bin/true", NULL};
    struct handler_rule rules[] = {rule_of("stuck", stuck), rule_of("good", good)};
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = rules,
                                   .rules_count = 2};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "stuck");
    struct fake_task *other;
    struct worker *worker;
    int shim;

    (void)state;
    rules[0].grace_ms = 50;
    task->timeout_ms = 2000;
    worker = start(fake, &config);
    WAIT_FOR(fake, task->status == FAILED);
    assert_true(task->timed_out);
    assert_string_equal(task->error, "timeout after 2s; the process cannot be killed");
    other = add_task(fake, "good");
    WAIT_FOR(fake, other->status == COMPLETED);
    assert_int_equal(worker_counts(worker).quarantined, 1);
    assert_int_equal(sscanf(task->log, "INFO %d", &shim), 1);
    kill(shim, SIGCONT);
    for (int64_t end_us = clock_boot_us() + DEADLINE_S * CLOCK_SECOND_US;
         worker_counts(worker).running && clock_boot_us() < end_us;)
        usleep(1000);
    assert_int_equal(worker_counts(worker).quarantined, 0);
    stop(worker, 0);
    fake_free(fake);
}

/* ---- the drain ---- */

static void drain_lets_handlers_finish_and_gives_the_rest_back_F_A18(void **state)
{
    char *const quick[] = {"/bin/sh", "-c", "echo up; sleep 0.3; echo '{\"result\":1}' >&3", NULL};
    char *const slow[] = {"/bin/sh", "-c", "echo up; exec sleep 300", NULL};
    struct handler_rule rules[] = {rule_of("quick", quick), rule_of("slow", slow)};
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = rules,
                                   .rules_count = 2};
    struct fake *fake = fake_new();
    struct fake_task *finishing = add_task(fake, "quick");
    struct fake_task *running = add_task(fake, "slow");
    struct fake_task *waiting;
    struct worker *worker = start(fake, &config);

    (void)state;
    WAIT_FOR(fake, finishing->logs == 1 && running->logs == 1);
    waiting = add_task(fake, "quick");
    stop(worker, 5000);
    assert_int_equal(finishing->status, COMPLETED);
    assert_string_equal(finishing->result, "1");
    assert_int_equal(running->status, RELEASED);
    assert_int_equal(waiting->status, WAITING);
    assert_int_equal(fake->left, 1);
    fake_free(fake);
}

static void drain_with_the_server_away_ends_all_the_same(void **state)
{
    char *const flood[] = {"/bin/sh", "-c", "yes x", NULL};
    struct handler_rule rule = rule_of("flood", flood);
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct err err = {0};
    struct worker *worker;
    int64_t began_us;

    (void)state;
    add_task(fake, "flood");
    add_task(fake, "flood");
    worker = start(fake, &config);
    WAIT_FOR(fake, fake->tasks[1].starts == 1);
    pthread_mutex_lock(&fake->lock);
    fake->down = true;
    pthread_mutex_unlock(&fake->lock);
    began_us = clock_boot_us();
    while (worker_stop(worker, 100, &err) < 0) /* handlers die slowly where all else is busy */
        assert_true(clock_boot_us() - began_us < 60 * CLOCK_SECOND_US);
    worker_free(worker);
    fake_free(fake);
}

/* ---- speed ---- */

static int nothing(struct function_call *call, void *ctx)
{
    (void)call;
    (void)ctx;
    return FUNCTION_DONE;
}

static void many_quick_functions_share_claims_and_reports(void **state)
{
    const struct function_handler function = {STR("noop"), nothing, NULL};
    struct worker_config config = {.slots = 4, .batch = 64, .functions = &function,
                                   .functions_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker;
    int64_t began_us;
    int64_t took_us;

    (void)state;
    for (int i = 0; i < TASKS_MAX; i++)
        add_task(fake, "noop");
    began_us = clock_boot_us();
    worker = start(fake, &config);
    WAIT_FOR(fake, fake->reports_count == 2 * TASKS_MAX);
    took_us = clock_boot_us() - began_us;
    stop(worker, 0);
    for (int i = 0; i < TASKS_MAX; i++) {
        assert_int_equal(fake->tasks[i].status, COMPLETED);
        assert_int_equal(fake->tasks[i].starts, 1);
    }
    assert_false(fake->unordered);
    assert_true(fake->largest_claim >= 32);
    assert_true(fake->claims < TASKS_MAX / 4);
    print_message("%d no-op tasks: %.2f us each, %d claims, %d reports calls\n", TASKS_MAX,
                  (double)took_us / TASKS_MAX, fake->claims, fake->reports_calls);
    fake_free(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_without_handler_is_given_back_with_the_reason),
        cmocka_unit_test(a_worker_without_a_command_registers_no_type),
        cmocka_unit_test(cancelled_handler_is_stopped_and_reports_nothing_more),
        cmocka_unit_test(paused_handler_is_stopped_and_given_back),
        cmocka_unit_test(handler_of_a_lost_lease_is_killed_F_B4),
        cmocka_unit_test(stale_report_kills_the_handler_F_B4),
        cmocka_unit_test(claim_whose_lease_ran_out_on_the_way_is_not_started_F_B9),
        cmocka_unit_test(unknown_worker_registers_again_and_continues),
        cmocka_unit_test(reports_wait_for_a_server_that_is_away_and_keep_their_order),
        cmocka_unit_test(functions_report_and_end_C3),
        cmocka_unit_test(function_past_its_timeout_is_told_and_reported_D13),
        cmocka_unit_test(hanging_and_crashing_handlers_harm_no_other_C6),
        cmocka_unit_test(heartbeats_come_while_handlers_burn_all_processors_F_B8),
        cmocka_unit_test(quarantined_slot_leaves_the_others_at_work_F_I4),
        cmocka_unit_test(drain_lets_handlers_finish_and_gives_the_rest_back_F_A18),
        cmocka_unit_test(drain_with_the_server_away_ends_all_the_same),
        cmocka_unit_test(many_quick_functions_share_claims_and_reports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
