/* The logs of a queue's store, verified as `perdura verify --logs` does it. */
#ifndef TESTS_LOG_FIXTURE_H
#define TESTS_LOG_FIXTURE_H

#include "log_check.h"
#include "engine_fixture.h"

/* The store by itself, without a server. */
static inline struct log_check log_fixture_check(struct fixture *fx, const char *anchor)
{
    struct store_options options = {.allow_network_fs = true, .no_lock = true, .no_migrate = true};
    struct log_check found;
    struct store *store;

    assert_int_equal(store_open(&store, str_of(fx->where), &options, &fx->err), 0);
    found = log_check_run(store, anchor);
    store->verbs->close(store);
    return found;
}

static inline void assert_whole(struct fixture *fx, const char *anchor)
{
    struct log_check found = log_fixture_check(fx, anchor);

    if (found.findings != 0)
        fail_msg("%s: %s: %s", found.kind, found.subject, found.detail);
}

#endif
