/* Functions that were lost with their worker before: their start is stored before they are called,
 * they begin one after the other, and whatever comes while one of them waits - a lost lease, a
 * cancel, a pause, the end of the worker - it is obeyed and the function not called (C6, F-B4). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "worker/worker.h"

#include "fake_source.h"

struct calls {
    struct fake *fake;
    uint32_t count;
    uint32_t unstored; /* called before their start was stored */
    uint32_t beside;   /* called before the end of the first was stored */
    int64_t at_us[2];
    bool hold;         /* the first one runs on until this is over ... */
    bool hold_long;    /* ... also when others are called meanwhile */
};

static int note_call(struct function_call *call, void *ctx)
{
    struct calls *calls = ctx;
    struct fake *fake = calls->fake;
    uint32_t index = index_of(&function_call_work(call)->id);

    pthread_mutex_lock(&fake->lock);
    if (calls->count < 2)
        calls->at_us[calls->count] = clock_boot_us();
    calls->unstored += fake->tasks[index].starts != 1;
    calls->beside += index > 0 && fake->tasks[0].status != COMPLETED;
    if (calls->count++ == 0)
        while (calls->hold && fake->tasks[1].status != RELEASED &&
               (calls->hold_long || calls->count == 1))
            pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return FUNCTION_DONE;
}

static struct fake_task *add_blamed(struct fake *fake, int64_t times)
{
    struct fake_task *task;

    pthread_mutex_lock(&fake->lock);
    task = &fake->tasks[fake->count];
    task->attempt = 2;
    task->crash_count = times;
    pthread_mutex_unlock(&fake->lock);
    return add_task(fake, "suspect");
}

static struct fake_task *add_suspect(struct fake *fake)
{
    return add_blamed(fake, 1);
}

static struct worker *start(struct calls *calls, struct function_handler *function)
{
    struct worker_config config = {.slots = 3, .functions = function, .functions_count = 1};
    struct worker *worker;
    struct err err = {0};

    *function = (struct function_handler){STR("suspect"), note_call, calls};
    worker = worker_start(&calls->fake->base, &config, NULL, &err);
    if (!worker)
        fail_msg("%s", err.text);
    return worker;
}

static void let_go(struct calls *calls)
{
    pthread_mutex_lock(&calls->fake->lock);
    calls->hold = false;
    pthread_cond_broadcast(&calls->fake->changed);
    pthread_mutex_unlock(&calls->fake->lock);
}

static void stop(struct calls *calls, struct worker *worker)
{
    struct err err = {0};

    assert_int_equal(worker_stop(worker, 5000, &err), 0);
    assert_int_equal(calls->unstored, 0);
    assert_false(calls->fake->unordered);
    worker_free(worker);
}

static void suspects_begin_one_after_the_other_with_their_start_stored(void **state)
{
    struct calls calls = {.fake = fake_new(), .hold = true};
    struct function_handler function;
    struct worker *worker;

    (void)state;
    add_suspect(calls.fake);
    add_suspect(calls.fake);
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.count == 2);
    assert_true(calls.at_us[1] - calls.at_us[0] >= 900 * CLOCK_MS_US);
    stop(&calls, worker);
    fake_free(calls.fake);
}

static void one_blamed_twice_waits_for_all_that_began_before_it(void **state)
{
    struct calls calls = {.fake = fake_new(), .hold = true, .hold_long = true};
    struct function_handler function;
    struct worker *worker;

    (void)state;
    add_suspect(calls.fake);
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.count == 1);
    add_suspect(calls.fake);
    WAIT_FOR(calls.fake, calls.fake->tasks[1].status == COMPLETED);
    add_blamed(calls.fake, 2);
    WAIT_FOR(calls.fake, worker_counts(worker).running == 2);
    nanosleep(&(struct timespec){0, 300000000}, NULL); /* enough to begin, if it were its turn */
    assert_int_equal(calls.count, 2);
    let_go(&calls);
    WAIT_FOR(calls.fake, calls.count == 3);
    stop(&calls, worker);
    fake_free(calls.fake);
}

/* Its third time would make it poison, whichever of them killed the process. */
static void beside_one_blamed_twice_none_begins_until_its_end_is_stored(void **state)
{
    struct calls calls = {.fake = fake_new(), .hold = true, .hold_long = true};
    struct function_handler function;
    struct worker *worker;

    (void)state;
    add_blamed(calls.fake, 2);
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.count == 1);
    add_suspect(calls.fake);
    add_blamed(calls.fake, 0); /* lost before, and not blamed for it */
    WAIT_FOR(calls.fake, worker_counts(worker).running == 3);
    nanosleep(&(struct timespec){1, 500000000}, NULL); /* longer than a suspect has for itself */
    assert_int_equal(calls.count, 1);
    let_go(&calls);
    WAIT_FOR(calls.fake, calls.count == 3);
    assert_int_equal(calls.beside, 0);
    stop(&calls, worker);
    fake_free(calls.fake);
}

static void a_suspect_whose_start_is_stale_is_not_called_F_B4(void **state)
{
    struct calls calls = {.fake = fake_new()};
    struct function_handler function;
    struct worker *worker;

    (void)state;
    add_suspect(calls.fake)->lose = true;
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.fake->tasks[0].status == LOST);
    stop(&calls, worker);
    assert_int_equal(calls.count, 0);
    fake_free(calls.fake);
}

/* The first holds the turn; the order for the second comes with a heartbeat while it waits. False:
 * the machine was so slow that its turn had come before. */
static bool try_order(bool lose, bool cancel, bool pause, enum task_status status)
{
    struct calls calls = {.fake = fake_new(), .hold = true};
    struct function_handler function;
    struct fake_task *second;
    struct worker *worker;
    bool in_time;

    calls.fake->heartbeat_ms = 20; /* they also make WAIT_FOR look again */
    add_suspect(calls.fake);
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.count == 1);
    second = add_suspect(calls.fake);
    WAIT_FOR(calls.fake, worker_counts(worker).running == 2);
    pthread_mutex_lock(&calls.fake->lock);
    second->lose = lose;
    second->cancel = cancel;
    second->pause = pause;
    pthread_mutex_unlock(&calls.fake->lock);
    WAIT_FOR(calls.fake, worker_counts(worker).held <= 1);
    let_go(&calls);
    stop(&calls, worker);
    in_time = second->starts == 0 && second->status != LOST;
    if (in_time) {
        assert_int_equal(calls.count, 1);
        assert_int_equal(second->status, status);
    }
    fake_free(calls.fake);
    return in_time;
}

static void ordered_while_waiting(bool lose, bool cancel, bool pause, enum task_status status)
{
    int tries = 5;

    while (tries-- && !try_order(lose, cancel, pause, status))
        ;
    assert_true(tries >= 0);
}

static void a_suspect_lost_while_it_waits_is_not_called_F_B4(void **state)
{
    (void)state;
    ordered_while_waiting(true, false, false, HELD);
}

static void a_suspect_cancelled_while_it_waits_is_not_called(void **state)
{
    (void)state;
    ordered_while_waiting(false, true, false, HELD);
}

static void a_suspect_paused_while_it_waits_is_given_back(void **state)
{
    (void)state;
    ordered_while_waiting(false, false, true, RELEASED);
}

/* The one that runs ends only when the other was given back or, wrongly, called. */
static void a_suspect_that_waits_when_the_worker_stops_is_given_back_F_A18(void **state)
{
    struct calls calls = {.fake = fake_new(), .hold = true};
    struct function_handler function;
    struct worker *worker;

    (void)state;
    calls.fake->heartbeat_ms = 20;
    add_suspect(calls.fake);
    worker = start(&calls, &function);
    WAIT_FOR(calls.fake, calls.count == 1);
    add_suspect(calls.fake);
    WAIT_FOR(calls.fake, worker_counts(worker).running == 2);
    stop(&calls, worker);
    assert_int_equal(calls.count, 1);
    assert_int_equal(calls.fake->tasks[0].status, COMPLETED);
    assert_int_equal(calls.fake->tasks[1].status, RELEASED);
    fake_free(calls.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suspects_begin_one_after_the_other_with_their_start_stored),
        cmocka_unit_test(one_blamed_twice_waits_for_all_that_began_before_it),
        cmocka_unit_test(beside_one_blamed_twice_none_begins_until_its_end_is_stored),
        cmocka_unit_test(a_suspect_whose_start_is_stale_is_not_called_F_B4),
        cmocka_unit_test(a_suspect_lost_while_it_waits_is_not_called_F_B4),
        cmocka_unit_test(a_suspect_cancelled_while_it_waits_is_not_called),
        cmocka_unit_test(a_suspect_paused_while_it_waits_is_given_back),
        cmocka_unit_test(a_suspect_that_waits_when_the_worker_stops_is_given_back_F_A18),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
