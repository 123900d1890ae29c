/* The gate: in either order, the waiting thread goes through once it is open. */
#include "base/gate.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define TURNS 20000

struct pair {
    struct gate *_Atomic there;
    _Atomic int opened;
};

static void *opener(void *ctx)
{
    struct pair *pair = ctx;

    for (int i = 0; i < TURNS; i++) {
        struct gate *gate;

        while (!(gate = atomic_exchange(&pair->there, NULL)))
            ;
        atomic_fetch_add(&pair->opened, 1);
        gate_open(gate);
    }
    return NULL;
}

static void an_open_gate_does_not_hold(void **state)
{
    struct gate gate;

    (void)state;
    gate_shut(&gate);
    gate_open(&gate);
    gate_wait(&gate);
}

/* The memory is given back at once each time: ASan and TSan would see a late touch. */
static void who_waits_goes_through_once_it_is_open_and_may_free_it(void **state)
{
    struct pair pair = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, opener, &pair), 0);
    for (int i = 0; i < TURNS; i++) {
        struct gate *gate = malloc(sizeof *gate);

        assert_non_null(gate);
        gate_shut(gate);
        atomic_store(&pair.there, gate);
        gate_wait(gate);
        assert_int_equal(atomic_load(&pair.opened), i + 1);
        free(gate);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_gate_does_not_hold),
        cmocka_unit_test(who_waits_goes_through_once_it_is_open_and_may_free_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
