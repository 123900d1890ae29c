/* The event loop: posting from other threads, timers, signals, stopping. */
#include "net/loop.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define POSTS_PER_THREAD 5000

struct post {
    struct loop_item item;
    struct fixture *fixture;
    int thread;
    int number;
};

struct fixture {
    struct loop *loop;
    struct post posts[THREADS][POSTS_PER_THREAD];
    int next[THREADS]; /* the number expected next, touched on the loop thread only */
    int total;
    int disorder;
    int fired;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct err err;

    if (!fixture)
        return -1;
    fixture->loop = loop_new(&err);
    *state = fixture;
    return fixture->loop ? 0 : -1;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    loop_free(fixture->loop);
    free(fixture);
    return 0;
}

static void count_post(struct loop_item *item)
{
    struct post *post = (struct post *)item;
    struct fixture *fixture = post->fixture;

    fixture->disorder += fixture->next[post->thread] != post->number;
    fixture->next[post->thread] = post->number + 1;
    if (++fixture->total == THREADS * POSTS_PER_THREAD)
        loop_stop(fixture->loop);
}

static void *post_all(void *ctx)
{
    struct post *posts = ctx;

    for (int i = 0; i < POSTS_PER_THREAD; i++)
        loop_post(posts[i].fixture->loop, &posts[i].item);
    return NULL;
}

static void posts_of_many_threads_all_run_in_each_threads_order(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[THREADS];

    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < POSTS_PER_THREAD; i++)
            fixture->posts[t][i] = (struct post){{NULL, count_post}, fixture, t, i};
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, post_all, fixture->posts[t]), 0);
    assert_int_equal(loop_run(fixture->loop), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(fixture->total, THREADS * POSTS_PER_THREAD);
    assert_int_equal(fixture->disorder, 0);
}

static void post_again(struct loop_item *item)
{
    struct post *post = (struct post *)item;

    if (++post->number < 100)
        loop_post(post->fixture->loop, item);
    else
        loop_stop(post->fixture->loop);
}

static void an_item_may_post_itself_again(void **state)
{
    struct fixture *fixture = *state;
    struct post *post = &fixture->posts[0][0];

    *post = (struct post){{NULL, post_again}, fixture, 0, 0};
    loop_post(fixture->loop, &post->item);
    assert_int_equal(loop_run(fixture->loop), 0);
    assert_int_equal(post->number, 100);
}

static void a_stop_before_the_run_ends_it_at_once(void **state)
{
    struct fixture *fixture = *state;

    loop_stop(fixture->loop);
    assert_int_equal(loop_run(fixture->loop), 0);
}

static void *stop_from_thread(void *ctx)
{
    loop_stop(ctx);
    return NULL;
}

static void another_thread_stops_the_loop_and_it_can_run_again(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 50; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, stop_from_thread, fixture->loop), 0);
        assert_int_equal(loop_run(fixture->loop), 0);
        pthread_join(thread, NULL);
    }
}

static void fire(void *ctx)
{
    struct fixture *fixture = ctx;

    fixture->fired++;
}

static void fire_and_stop(void *ctx)
{
    struct fixture *fixture = ctx;

    fixture->fired += 100;
    loop_stop(fixture->loop);
}

static void timers_fire_once_can_be_moved_and_stopped(void **state)
{
    struct fixture *fixture = *state;
    struct loop_timer *once = loop_timer_new(fixture->loop, fire, fixture);
    struct loop_timer *never = loop_timer_new(fixture->loop, fire, fixture);
    struct loop_timer *last = loop_timer_new(fixture->loop, fire_and_stop, fixture);
    int64_t start_us = clock_boot_us();

    loop_timer_set(once, -5);
    loop_timer_set(never, 1000);
    loop_timer_stop(never);
    loop_timer_set(last, INT64_MAX); /* clamped, then moved forward */
    loop_timer_set(last, 30000);
    assert_int_equal(loop_run(fixture->loop), 0);
    assert_int_equal(fixture->fired, 101);
    assert_true(clock_boot_us() - start_us >= 30000 - 5000);
    loop_timer_free(once);
    loop_timer_free(never);
    loop_timer_free(last);
    loop_timer_free(NULL);
}

static void stop_on_signal(int signo, void *ctx)
{
    struct fixture *fixture = ctx;

    fixture->fired = signo;
    loop_stop(fixture->loop);
}

static void a_signal_runs_on_the_loop_and_may_stop_it(void **state)
{
    struct fixture *fixture = *state;
    struct err err;

    assert_int_equal(loop_signal_add(fixture->loop, SIGUSR1, stop_on_signal, fixture, &err), 0);
    kill(getpid(), SIGUSR1);
    assert_int_equal(loop_run(fixture->loop), 0);
    assert_int_equal(fixture->fired, SIGUSR1);
}

static void writing_to_a_closed_pipe_does_not_kill_the_process(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    close(ends[1]);
}

int main(void)
{
#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_LOOP(posts_of_many_threads_all_run_in_each_threads_order),
        WITH_LOOP(an_item_may_post_itself_again),
        WITH_LOOP(a_stop_before_the_run_ends_it_at_once),
        WITH_LOOP(another_thread_stops_the_loop_and_it_can_run_again),
        WITH_LOOP(timers_fire_once_can_be_moved_and_stopped),
        WITH_LOOP(a_signal_runs_on_the_loop_and_may_stop_it),
        WITH_LOOP(writing_to_a_closed_pipe_does_not_kill_the_process),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
