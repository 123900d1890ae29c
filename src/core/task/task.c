/* The words of task.h, each in one table. Pure; any thread. */
#include "core/task/task.h"

#include "base/enum_words.h"
static const char *const actor_words[] = {
    [ACTOR_API] = "API",           [ACTOR_WORKER] = "WORKER", [ACTOR_SCHEDULER] = "SCHEDULER",
    [ACTOR_RECOVERY] = "RECOVERY", [ACTOR_LEADER] = "LEADER", [ACTOR_USER] = "USER",
    [ACTOR_ACCESS] = "ACCESS",
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

const char *actor_word(enum actor actor)
{
    return actor_words[actor];
}

ENUM_WORDS(execution_status, execution_words);
ENUM_WORDS(unique_until, unique_words);
ENUM_WORDS(on_unsatisfied, unsatisfied_words);

