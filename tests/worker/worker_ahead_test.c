/* How many tasks a worker claims ahead of its slots by default: many where functions
 * are quick, one per slot where they are slow, and what is stuck behind a slow one goes back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "worker/worker.h"

#include "fake_source.h"

#define QUICK_TASKS 20000
#define STUCK_BEHIND 20

static int nothing(struct function_call *call, void *ctx)
{
    (void)call;
    (void)ctx;
    return FUNCTION_DONE;
}

static int slow(struct function_call *call, void *ctx)
{
    (void)call;
    (void)ctx;
    nanosleep(&(struct timespec){0, 30 * 1000000}, NULL);
    return FUNCTION_DONE;
}

/* Runs until the test opens the gate. */
static int stuck(struct function_call *call, void *ctx)
{
    struct fake *fake = ctx;

    (void)call;
    pthread_mutex_lock(&fake->lock);
    while (!fake->gate_open)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
    return FUNCTION_DONE;
}

static struct worker *start(struct fake *fake, const struct worker_config *config)
{
    struct err err = {0};
    struct worker *worker = worker_start(&fake->base, config, NULL, &err);

    if (!worker)
        fail_msg("%s", err.text);
    return worker;
}

static void stop(struct fake *fake, struct worker *worker)
{
    struct err err = {0};

    assert_int_equal(worker_stop(worker, 5000, &err), 0);
    worker_free(worker);
    fake_free(fake);
}

static uint32_t ended(const struct fake *fake, uint32_t first, enum task_status status)
{
    uint32_t count = 0;

    for (uint32_t i = first; i < fake->count; i++)
        count += fake->tasks[i].status == status;
    return count;
}

static void quick_functions_share_claims_without_any_setting(void **state)
{
    const struct function_handler function = {STR("noop"), nothing, NULL};
    const struct worker_config config = {.functions = &function, .functions_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker;

    (void)state;
    for (int i = 0; i < QUICK_TASKS; i++)
        add_task(fake, "noop");
    worker = start(fake, &config);
    WAIT_FOR(fake, fake->reports_count == 2 * QUICK_TASKS);
    assert_int_equal(ended(fake, 0, COMPLETED), QUICK_TASKS);
    assert_true(fake->largest_claim >= 32);
    assert_true(fake->claims < QUICK_TASKS / 8);
    stop(fake, worker);
}

static void slow_functions_get_one_task_per_slot(void **state)
{
    const struct function_handler function = {STR("slow"), slow, NULL};
    const struct worker_config config = {.slots = 2, .functions = &function, .functions_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker;

    (void)state;
    for (int i = 0; i < 12; i++)
        add_task(fake, "slow");
    worker = start(fake, &config);
    WAIT_FOR(fake, ended(fake, 0, COMPLETED) == 12);
    assert_true(fake->largest_claim <= 2);
    stop(fake, worker);
}

static void a_batch_of_one_means_that_none_waits(void **state)
{
    const struct function_handler function = {STR("noop"), nothing, NULL};
    const struct worker_config config = {.slots = 2, .batch = 1, .functions = &function,
                                         .functions_count = 1};
    struct fake *fake = fake_new();
    struct worker *worker;

    (void)state;
    for (int i = 0; i < 1000; i++)
        add_task(fake, "noop");
    worker = start(fake, &config);
    WAIT_FOR(fake, ended(fake, 0, COMPLETED) == 1000);
    assert_true(fake->largest_claim <= 2);
    stop(fake, worker);
}

static void tasks_stuck_behind_a_slow_one_are_given_back(void **state)
{
    struct fake *fake = fake_new();
    const struct function_handler functions[] = {{STR("noop"), nothing, NULL},
                                                 {STR("stuck"), stuck, fake}};
    const struct worker_config config = {.slots = 1, .functions = functions, .functions_count = 2};
    struct worker *worker;
    uint32_t first;

    (void)state;
    for (int i = 0; i < 2000; i++) /* they show that tasks are quick */
        add_task(fake, "noop");
    worker = start(fake, &config);
    WAIT_FOR(fake, ended(fake, 0, COMPLETED) == 2000);
    add_task(fake, "stuck");
    first = fake->count;
    for (int i = 0; i < STUCK_BEHIND; i++)
        add_task(fake, "noop");
    WAIT_FOR(fake, ended(fake, first, RELEASED) == STUCK_BEHIND);
    assert_int_equal(fake->tasks[first - 1].status == COMPLETED, 0);
    pthread_mutex_lock(&fake->lock);
    fake->gate_open = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    WAIT_FOR(fake, fake->tasks[first - 1].status == COMPLETED);
    assert_int_equal(worker_counts(worker).waiting, 0);
    stop(fake, worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_functions_share_claims_without_any_setting),
        cmocka_unit_test(slow_functions_get_one_task_per_slot),
        cmocka_unit_test(a_batch_of_one_means_that_none_waits),
        cmocka_unit_test(tasks_stuck_behind_a_slow_one_are_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
