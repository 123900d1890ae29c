/* Whose turn it is: a caller runs its own batch when the queue rests, all others go through the
 * thread, and whatever the mix, every request is decided once (E2) and timers are kept. */
#include "engine_fixture.h"

#include <stdatomic.h>

#define CALLERS 6
#define CALLS 300
#define TRIES_MAX 1000

static void on_notes(void *ctx, const struct task_note *notes, uint32_t count)
{
    pthread_t *decided_by = ctx;

    (void)notes;
    (void)count;
    *decided_by = pthread_self();
}

static void watch(struct fixture *fx, pthread_t *decided_by)
{
    struct engine_config config = {
        .settings = &fx->in_force.settings, .on_notes = on_notes, .ctx = decided_by};

    engine_close(fx->engine);
    assert_int_equal(engine_open(&fx->engine, fx->store, &config, &fx->err), 0);
}

static void a_caller_runs_its_own_batch_when_the_queue_rests(void **state)
{
    struct fixture *fx = *state;
    pthread_t decided_by = 0;
    int tries = 0;

    watch(fx, &decided_by);
    do { /* the thread may not have come to rest yet */
        struct timespec rest = {.tv_nsec = 1000000};

        assert_true(tries++ < TRIES_MAX);
        nanosleep(&rest, NULL);
        enqueue(fx, "{\"type\":\"t\"}");
    } while (!pthread_equal(decided_by, pthread_self()));
}

struct calling_thread {
    struct fixture *fx;
    pthread_t thread;
    struct arena arena;
    int number;
    int stored;
    atomic_int calls;
};

/* Every second request goes to the thread: the two ways meet at every point. */
static void *call_often(void *ctx)
{
    struct calling_thread *caller = ctx;

    for (int i = 0; i < CALLS; i++) {
        struct enqueue_request *request;
        struct engine_call call;
        char text[128];

        snprintf(text, sizeof text, "{\"type\":\"t\",\"idempotency_key\":\"%d-%d\"}",
                 caller->number % 2, i);
        request = enqueue_prepare(caller->fx, &caller->arena,
                                  arena_str(&caller->arena, str_of(text)));
        if (i % 2) {
            engine_call_start(caller->fx->engine, &request->base, &call);
            engine_call_finish(&request->base, &call);
        } else {
            engine_call(caller->fx->engine, &request->base);
        }
        if (request->base.err.code == ERR_NONE && !request->duplicate[0])
            caller->stored++;
        arena_reset(&caller->arena);
    }
    return NULL;
}

static void calls_and_the_thread_never_decide_twice(void **state) /* E2 */
{
    struct fixture *fx = *state;
    struct calling_thread callers[CALLERS] = {{0}};
    int stored = 0;

    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct calling_thread){.fx = fx, .number = i};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        stored += callers[i].stored;
        arena_deinit(&callers[i].arena);
    }
    assert_int_equal(stored, 2 * CALLS); /* two sets of keys */
    fx_verify(fx);
}

static void a_deadline_that_a_caller_made_is_kept_by_the_thread(void **state)
{
    struct fixture *fx = *state;
    struct claim_request *request;
    int64_t began_ms;

    worker(fx, "w", "default");
    began_ms = fx_now_ms();
    request = claim(fx, "w", 1, 50); /* parked by the caller's batch, no other request comes */
    assert_int_equal(request->claimed_count, 0);
    assert_in_range(fx_now_ms() - began_ms, 45, DEADLINE_MS);
    enqueue(fx, "{\"type\":\"t\",\"delay_ms\":60}");
    assert_non_null(claim_one(fx, "w"));
    assert_in_range(fx_now_ms() - began_ms, 100, DEADLINE_MS);
}

static void *call_until_cancelled(void *ctx)
{
    struct calling_thread *caller = ctx;

    for (int i = 0;; i++) {
        char text[128];
        struct enqueue_request *request;

        snprintf(text, sizeof text, "{\"type\":\"t\",\"idempotency_key\":\"c-%d-%d\"}",
                 caller->number, i);
        request = enqueue_prepare(caller->fx, &caller->arena,
                                  arena_str(&caller->arena, str_of(text)));
        engine_call(caller->fx->engine, &request->base);
        atomic_fetch_add(&caller->calls, 1);
        arena_reset(&caller->arena);
        pthread_testcancel();
    }
    return NULL;
}

/* The thread is the program's: it may be cancelled at any time, but not with the turn in its hand. */
static void a_cancelled_caller_leaves_the_turn_to_others(void **state)
{
    struct fixture *fx = *state;

    for (int i = 0; i < 20; i++) {
        struct calling_thread caller = {.fx = fx, .number = i};
        struct timespec rest = {.tv_nsec = 3000000 + i * 100000};

        assert_int_equal(pthread_create(&caller.thread, NULL, call_until_cancelled, &caller), 0);
        nanosleep(&rest, NULL);
        pthread_cancel(caller.thread);
        pthread_join(caller.thread, NULL);
        enqueue(fx, "{\"type\":\"t\"}"); /* is answered */
        arena_deinit(&caller.arena);
    }
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_caller_runs_its_own_batch_when_the_queue_rests),
        QUEUE_TEST(calls_and_the_thread_never_decide_twice),
        QUEUE_TEST(a_cancelled_caller_leaves_the_turn_to_others),
        QUEUE_TEST(a_deadline_that_a_caller_made_is_kept_by_the_thread),
    };

    return cmocka_run_group_tests_name("queue turns", tests, NULL, NULL);
}
