/* The words of task.h, each in one table. Pure; any thread. */
#include "core/task/task.h"

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
