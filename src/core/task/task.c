/* The words of task.h, each in one table, and copies of tasks. Pure; any thread. */
#include "core/task/task.h"

static const char *const actor_words[] = {
    [ACTOR_API] = "API",           [ACTOR_WORKER] = "WORKER", [ACTOR_SCHEDULER] = "SCHEDULER",
    [ACTOR_RECOVERY] = "RECOVERY", [ACTOR_LEADER] = "LEADER", [ACTOR_USER] = "USER",
};

static const char *const execution_words[EXECUTION_STATUS_COUNT] = {
    [EXECUTION_PENDING] = "pending",     [EXECUTION_RUNNING] = "running",
    [EXECUTION_COMPLETED] = "completed", [EXECUTION_FAILED] = "failed",
    [EXECUTION_CANCELLED] = "cancelled", [EXECUTION_TIMEOUT] = "timeout",
};

static const char *const unique_words[] = {
    [UNIQUE_FOREVER] = "forever",
    [UNIQUE_ENDED] = "ended",
};

static const char *const unsatisfied_words[] = {
    [UNSATISFIED_CANCEL] = "cancel",
    [UNSATISFIED_FAIL] = "fail",
    [UNSATISFIED_RUN] = "run",
};

static const size_t text_offsets[] = {offsetof(struct task, spec.namespace_name),
                                      offsetof(struct task, spec.type),
                                      offsetof(struct task, spec.queue),
                                      offsetof(struct task, spec.name),
                                      offsetof(struct task, spec.tags),
                                      offsetof(struct task, spec.user_id),
                                      offsetof(struct task, spec.external_id),
                                      offsetof(struct task, spec.context_key),
                                      offsetof(struct task, spec.correlation_id),
                                      offsetof(struct task, spec.trace.parent),
                                      offsetof(struct task, spec.trace.state),
                                      offsetof(struct task, spec.workflow_id),
                                      offsetof(struct task, spec.idempotency_key),
                                      offsetof(struct task, spec.input_hash),
                                      offsetof(struct task, spec.limit_key),
                                      offsetof(struct task, spec.callback_url),
                                      offsetof(struct task, spec.origin.ref),
                                      offsetof(struct task, state),
                                      offsetof(struct task, metadata),
                                      offsetof(struct task, lease.worker_id),
                                      offsetof(struct task, resume.checkpoint),
                                      offsetof(struct task, resume.from),
                                      offsetof(struct task, resume.metadata),
                                      offsetof(struct task, fault.error),
                                      offsetof(struct task, fault.last),
                                      offsetof(struct task, fault.details)};
_Static_assert(sizeof text_offsets / sizeof text_offsets[0] == TASK_TEXTS_COUNT, "texts");

struct str *task_text(struct task *task, size_t at)
{
    return (struct str *)(void *)((char *)task + text_offsets[at]);
}

struct task *task_copy(const struct task *task, struct arena *arena)
{
    struct task *copy = arena_copy(arena, task, sizeof *task);

    if (!copy)
        return NULL;
    for (size_t i = 0; i < TASK_TEXTS_COUNT; i++)
        *task_text(copy, i) = arena_str(arena, *task_text(copy, i));
    copy->spec.payload = arena_str(arena, task->spec.payload);
    copy->data = arena_str(arena, task->data);
    return copy;
}

#define FIND(words, word) find_word(words, (int)(sizeof(words) / sizeof *(words)), word)

/* The place of word among `count` words, or -1. */
static int find_word(const char *const *words, int count, struct str word)
{
    for (int i = 0; i < count; i++)
        if (str_is(word, words[i]))
            return i;
    return -1;
}

const char *actor_word(enum actor actor)
{
    return actor_words[actor];
}

const char *execution_status_word(enum execution_status status)
{
    return execution_words[status];
}

bool execution_status_parse(struct str word, enum execution_status *status)
{
    int found = FIND(execution_words, word);

    if (found >= 0)
        *status = (enum execution_status)found;
    return found >= 0;
}

const char *unique_until_word(enum unique_until until)
{
    return unique_words[until];
}

bool unique_until_parse(struct str word, enum unique_until *until)
{
    int found = FIND(unique_words, word);

    if (found >= 0)
        *until = (enum unique_until)found;
    return found >= 0;
}

const char *on_unsatisfied_word(enum on_unsatisfied what)
{
    return unsatisfied_words[what];
}

bool on_unsatisfied_parse(struct str word, enum on_unsatisfied *what)
{
    int found = FIND(unsatisfied_words, word);

    if (found >= 0)
        *what = (enum on_unsatisfied)found;
    return found >= 0;
}
