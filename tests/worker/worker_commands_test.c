/* What a worker makes of a command: exit codes, lines it prints, its environment, its timeout (C3,
 * D13, F-H16, F-I7). The source is in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker_fixture.h"

/* Runs one script as the handler of one task to its end. */
static struct fake_task *run_script(struct fake *fake, const char *script)
{
    char *const command[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    struct handler_rule rule = rule_of("sh", command);
    struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct worker *worker = start(fake, &config);
    struct fake_task *task = add_task(fake, "sh");

    WAIT_FOR(fake, task->status > STARTED);
    stop(worker, 1000);
    return task;
}

static void exit_codes_and_words_become_outcomes_C3(void **state)
{
    static const struct {
        const char *script;
        enum task_status status;
        const char *result;
        const char *error;
        const char *details;
        bool retryable;
        int64_t delay_ms;
    } cases[] = {
        {"true", COMPLETED, "", "", "", true, -1},
        {"echo '{\"result\":{\"a\":1}}' >&3", COMPLETED, "{\"a\":1}", "", "", true, -1},
        {"echo '{\"continue\":{\"delay_ms\":5}}' >&3", CONTINUED, "", "", "", true, 5},
        {"exit 75", CONTINUED, "", "", "", true, 1234},
        {"echo '{\"partial\":[1]}' >&3", PARTIAL, "[1]", "", "", true, -1},
        {"echo '{\"fail\":{\"error\":\"no\",\"retryable\":false}}' >&3", FAILED, "", "no", "",
         false, -1},
        {"echo '{\"fail\":{\"error\":\"no\",\"retryable\":false}}' >&3; exit 1", FAILED, "", "no",
         "", false, -1},
        {"echo '{\"result\":1}' >&3; exit 3", FAILED, "", "exit code 3", "{\"exit_code\":3}", true,
         -1},
        {"exit 127", FAILED, "", "exit code 127 (command not found)", "{\"exit_code\":127}", true,
         -1},
        {"exit 255", FAILED, "", "exit code 255", "{\"exit_code\":255}", true, -1},
        {"ulimit -c 0; kill -SEGV $$", FAILED, "", "killed by SIGSEGV", "{\"signal\":\"SIGSEGV\"}",
         true, -1},
        {"echo '{\"result\":1,\"x\":2}' >&3", FAILED, "",
         "a control line's 'result' must stand alone; write one line each", "", true, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake *fake = fake_new();
        struct fake_task *task = run_script(fake, cases[i].script);

        assert_int_equal(task->status, cases[i].status);
        assert_string_equal(task->result, cases[i].result);
        assert_string_equal(task->error, cases[i].error);
        assert_string_equal(task->details, cases[i].details);
        assert_int_equal(task->retryable, cases[i].retryable);
        assert_int_equal(task->delay_ms, cases[i].delay_ms);
        assert_int_equal(task->starts, 1);
        assert_false(fake->unordered);
        fake_free(fake);
    }
}

static void lines_become_logs_and_progress_in_order(void **state)
{
    struct fake *fake = fake_new();
    struct fake_task *task;

    (void)state;
    task = run_script(fake, "echo out; echo >&3; echo nonsense >&3; "
                            "echo '{\"progress\":70,\"state\":\"s\"}' >&3");
    assert_int_equal(task->status, COMPLETED);
    assert_int_equal(task->progress, 70);
    assert_non_null(strstr(task->log, "INFO out\n"));
    assert_non_null(strstr(task->log, "WARN a control line is not JSON"));
    assert_int_equal(task->logs, 2);
    assert_true(fake->wanted_json);
    fake_free(fake);
}

static void dropped_output_is_told_at_the_end_F_H16(void **state)
{
    struct fake *fake = fake_new();
    struct fake_task *task = run_script(fake, "head -c 70000 /dev/zero");

    (void)state;
    assert_int_equal(task->status, COMPLETED);
    assert_int_equal(task->logs, 2);
    fake_free(fake);
}

/* Lines on the control descriptor are stored as well: one limit holds for all of them together. */
static void control_lines_count_towards_the_output_F_H16(void **state)
{
    static const char *const scripts[] = {
        "yes '{\"log\":\"a line of the control descriptor\"}' | head -n 100000 >&3",
        "yes '{\"log\":{\"message\":\"m\",\"context\":{\"long\":\"some more of it\"}}}' | "
        "head -n 100000 >&3",
        "yes 'no word that is known' | head -n 50000 >&3",
        "yes out | head -n 5000; yes '{\"log\":\"and control\"}' | head -n 5000 >&3",
        "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); "
        "echo \"{\\\"progress\\\":7,\\\"state\\\":\\\"number $i\\\"}\"; done >&3",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char script[512];
        char *const command[] = {"/bin/sh", "-c", script, NULL};
        struct handler_rule rule = rule_of("sh", command);
        struct worker_config config = {.slots = 1, .spawner = test_spawner(), .rules = &rule,
                                       .rules_count = 1};
        struct fake *fake = fake_new();
        struct fake_task *task;
        struct worker *worker;

        snprintf(script, sizeof script,
                 "%s; echo '{\"progress\":50}' >&3; echo '{\"result\":{\"a\":1}}' >&3", scripts[i]);
        rule.output_bytes_max = 20000;
        worker = start(fake, &config);
        task = add_task(fake, "sh");
        WAIT_FOR(fake, task->status > STARTED);
        stop(worker, 1000);
        assert_int_equal(task->status, COMPLETED);
        assert_string_equal(task->result, "{\"a\":1}"); /* what it came to counts in any case */
        assert_int_equal(task->progress, 50);
        assert_true(task->log_bytes <= 20000 + 100); /* and the mark */
        assert_true(task->log_bytes > 25); /* the mark at least */
        assert_true(task->states < 1000);
        fake_free(fake);
    }
}

static void environment_names_the_task_and_no_token_F_I7(void **state)
{
    struct fake *fake = fake_new();
    struct fake_task *task;

    (void)state;
    setenv("PERDURA_TOKEN", "secret", 1);
    setenv("SOMETHING_ELSE", "x", 1);
    task = run_script(fake, "echo \"$PERDURA_TYPE/$PERDURA_ATTEMPT/$PERDURA_LEASE_TOKEN/"
                            "$PERDURA_TOKEN/$SOMETHING_ELSE/${PERDURA_CHECKPOINT-unset}\"");
    assert_string_equal(task->log, "INFO sh/1/1///\n");
    unsetenv("PERDURA_TOKEN");
    unsetenv("SOMETHING_ELSE");
    fake_free(fake);
}

static void timeout_is_a_failure_that_says_so_D13(void **state)
{
    char *const command[] = {"/bin/sh", "-c", "exec sleep 300", NULL};
    struct handler_rule rule = rule_of("slow*", command);
    struct worker_config config = {.slots = 2, .spawner = test_spawner(), .rules = &rule,
                                   .rules_count = 1};
    struct fake *fake = fake_new();
    struct fake_task *task = add_task(fake, "slow:one");
    struct worker *worker;

    (void)state;
    task->timeout_ms = 1000;
    worker = start(fake, &config);
    WAIT_FOR(fake, task->status == FAILED);
    assert_true(task->timed_out);
    assert_true(task->retryable);
    assert_string_equal(task->error, "timeout after 1s");
    stop(worker, 0);
    fake_free(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_and_words_become_outcomes_C3),
        cmocka_unit_test(lines_become_logs_and_progress_in_order),
        cmocka_unit_test(dropped_output_is_told_at_the_end_F_H16),
        cmocka_unit_test(control_lines_count_towards_the_output_F_H16),
        cmocka_unit_test(environment_names_the_task_and_no_token_F_I7),
        cmocka_unit_test(timeout_is_a_failure_that_says_so_D13),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
