/* A wait that begins in the very commit in which its task ends (C7): answered once, and never
 * touched again, because its owner may have freed it by then. */
#include "engine_fixture.h"

#include <stdatomic.h>

static void count_answer(struct request *request)
{
    atomic_int *answers = request->ctx;

    atomic_fetch_add(answers, 1);
}

/* Cancel stands for any end: both requests are in one batch, the wait first. */
static void a_wait_in_the_commit_of_the_end_is_answered_once(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    atomic_int answers = 0;
    struct wait_request wait = {.base = {.kind = REQUEST_WAIT,
                                         .arena = &fx->arena,
                                         .done = count_answer,
                                         .ctx = &answers},
                                .task_id = id,
                                .timeout_ms = DEADLINE_MS};
    struct control_request cancel = {.base = {.kind = REQUEST_CONTROL, .arena = &fx->arena},
                                     .task_id = id,
                                     .op = CONTROL_CANCEL,
                                     .actor = ACTOR_USER,
                                     .if_version = -1};
    struct engine_call call;

    fx_hold(fx);
    engine_submit(fx->engine, &wait.base);
    engine_call_start(fx->engine, &cancel.base, &call);
    fx_let_go(fx);
    assert_int_equal(engine_call_finish(&cancel.base, &call), 0);
    assert_status(fx, id, STATUS_CANCELLED); /* a later commit: nothing of this one is left */
    assert_int_equal(stats_of(fx).waiting_waits, 0);
    assert_int_equal(atomic_load(&answers), 1);
    assert_true(wait.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_wait_in_the_commit_of_the_end_is_answered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
