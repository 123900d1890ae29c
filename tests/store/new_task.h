/* A task with a key, an id and defaults, not stored yet. */
#ifndef TESTS_NEW_TASK_H
#define TESTS_NEW_TASK_H

#include "store/store.h"

static inline struct task *new_task(struct store *store, struct uuid7 *ids, struct arena *arena,
                                    const char *queue, const char *type, int64_t created_us)
{
    struct task *task = arena_alloc(arena, sizeof *task);

    assert_non_null(task);
    task->key = store->verbs->task_key_next(store);
    task->id = uuid7_new_keyed(ids, created_us, task->key);
    task->spec.namespace_name = STR("default");
    task->spec.queue = str_of(queue);
    task->spec.type = str_of(type);
    task->spec.retry = (struct retry_rule){RETRY_POLYNOMIAL, TASK_DEFAULT_MAX_RETRIES,
                                           TASK_DEFAULT_RETRY_DELAY_MS,
                                           TASK_DEFAULT_MAX_RETRY_DELAY_MS};
    task->spec.max_crashes = TASK_DEFAULT_MAX_CRASHES;
    task->spec.max_continuations = TASK_DEFAULT_MAX_CONTINUATIONS;
    task->spec.timeout_ms = TASK_DEFAULT_TIMEOUT_MS;
    task->spec.auto_recovery = true;
    task->spec.created_at_us = created_us;
    task->has_spec = true;
    task->status = STATUS_PENDING;
    task->state = STR("Queued");
    task->updated_at_us = created_us;
    task->order_key = created_us;
    task->event_seq = 0; /* none is stored with it */
    return task;
}

#endif
