/* Starts and stops a worker on the source of fake_source.h. Included by test programs only; all
 * functions are static. */
#ifndef TESTS_WORKER_FIXTURE_H
#define TESTS_WORKER_FIXTURE_H

#include <sys/wait.h>

#include "worker/worker.h"

#include "fake_source.h"
#include "spawner_fixture.h"

static inline struct handler_rule rule_of(const char *type, char *const *command)
{
    return (struct handler_rule){.type = str_of(type), .command = command, .timeout_ms = -1,
                                 .grace_ms = 200, .max_retries = -1, .retry_delay_ms = -1,
                                 .max_retry_delay_ms = -1, .output_bytes_max = -1,
                                 .retention_ms = -1};
}

static inline struct worker *start(struct fake *fake, const struct worker_config *config)
{
    struct err err = {0};
    struct worker *worker = worker_start(&fake->base, config, NULL, &err);

    if (!worker)
        fail_msg("%s", err.text);
    return worker;
}

static inline void stop(struct worker *worker, int64_t grace_ms)
{
    struct err err = {0};

    if (worker_stop(worker, grace_ms, &err) < 0)
        fail_msg("%s", err.text);
    worker_free(worker);
    assert_true(waitpid(-1, NULL, WNOHANG) <= 0); /* no dead child; the spawner lives */
}

#endif
