/* What starts commands for tests. cmocka.h comes before it. */
#ifndef TESTS_SPAWNER_FIXTURE_H
#define TESTS_SPAWNER_FIXTURE_H

#include "worker/process/spawner.h"

/* One for all runs of the program; ends with it. */
static inline struct spawner *test_spawner(void)
{
    static struct spawner *spawner;
    struct err err = {0};

    if (!spawner)
        spawner = spawner_open(false, &err);
    assert_non_null(spawner);
    assert_int_equal(spawner_ready(spawner, &err), 0);
    return spawner;
}

#endif
