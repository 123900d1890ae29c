#include "core/task/status.h"

#include "base/enum_words.h"
#define BIT(status) (1u << (status))
#define WAITING (BIT(STATUS_PENDING) | BIT(STATUS_DELAYED) | BIT(STATUS_BLOCKED))
#define HELD (BIT(STATUS_CLAIMED) | BIT(STATUS_RUNNING))
#define ENDED                                                                              \
    (BIT(STATUS_PARTIAL) | BIT(STATUS_COMPLETED) | BIT(STATUS_FAILED) | BIT(STATUS_DEAD_LETTER) | \
     BIT(STATUS_CANCELLED))
#define NOT_ENDED                                                                          \
    (WAITING | HELD | BIT(STATUS_PAUSED) | BIT(STATUS_ORPHANED) | BIT(STATUS_RECOVERING))

static const struct {
    const char *word;
    bool ended;
    bool held;
} statuses[STATUS_COUNT] = {
    [STATUS_NONE] = {"", false, false},
#define X(name, word, ended, held) [name] = {word, ended, held},
    STATUS_TABLE(X)
#undef X
};

static const struct {
    unsigned from;
    unsigned to;
} moves[MOVE_COUNT] = {
    [MOVE_ENQUEUE] = {BIT(STATUS_NONE), WAITING},
    [MOVE_RELEASE_DEPENDENCY] = {BIT(STATUS_BLOCKED), BIT(STATUS_PENDING) | BIT(STATUS_DELAYED) |
                                                          BIT(STATUS_CANCELLED) |
                                                          BIT(STATUS_FAILED)},
    [MOVE_PROMOTE] = {BIT(STATUS_DELAYED), BIT(STATUS_PENDING)},
    [MOVE_POSTPONE] = {BIT(STATUS_PENDING), BIT(STATUS_DELAYED) | BIT(STATUS_BLOCKED)},
    [MOVE_CLAIM] = {BIT(STATUS_PENDING), BIT(STATUS_CLAIMED)},
    [MOVE_START] = {BIT(STATUS_CLAIMED), BIT(STATUS_RUNNING)},
    [MOVE_GIVE_BACK] = {HELD, BIT(STATUS_PENDING) | BIT(STATUS_PAUSED)},
    [MOVE_OUTCOME] = {HELD, BIT(STATUS_COMPLETED) | BIT(STATUS_PARTIAL) | BIT(STATUS_FAILED) |
                                BIT(STATUS_DELAYED) | BIT(STATUS_PENDING) |
                                BIT(STATUS_DEAD_LETTER)},
    [MOVE_WAIT_CHILDREN] = {HELD, BIT(STATUS_BLOCKED)},
    [MOVE_PAUSE] = {WAITING, BIT(STATUS_PAUSED)},
    [MOVE_RESUME] = {BIT(STATUS_PAUSED), WAITING},
    [MOVE_LOSE] = {HELD, BIT(STATUS_ORPHANED)},
    [MOVE_RECOVER] = {BIT(STATUS_ORPHANED) | BIT(STATUS_PARTIAL), BIT(STATUS_RECOVERING)},
    [MOVE_RECOVERED] = {BIT(STATUS_RECOVERING),
                        BIT(STATUS_PENDING) | BIT(STATUS_DELAYED) | BIT(STATUS_DEAD_LETTER) |
                            BIT(STATUS_FAILED) | BIT(STATUS_COMPLETED)},
    [MOVE_CANCEL] = {NOT_ENDED, BIT(STATUS_CANCELLED)},
    [MOVE_RETRY] = {ENDED | BIT(STATUS_ORPHANED), BIT(STATUS_PENDING)},
    [MOVE_NO_HANDLER] = {BIT(STATUS_PENDING), BIT(STATUS_FAILED)},
};

const char *status_word(enum status status)
{
    return statuses[status].word;
}

bool status_parse(struct str word, enum status *status)
{
    for (int i = 1; i < STATUS_COUNT; i++) {
        if (!str_is(word, statuses[i].word))
            continue;
        *status = (enum status)i;
        return true;
    }
    return false;
}

bool status_ended(enum status status)
{
    return statuses[status].ended;
}

bool status_held(enum status status)
{
    return statuses[status].held;
}

bool status_allows(enum status from, enum status to, enum move move)
{
    return (moves[move].from & BIT(from)) && (moves[move].to & BIT(to));
}

static const char *const dependency_words[DEPENDENCY_COUNT] = {"success", "completion", "failure"};

ENUM_WORDS(dependency, dependency_words);

bool dependency_met(enum dependency kind, enum status ended)
{
    switch (kind) {
    case DEPENDENCY_SUCCESS:
        return ended == STATUS_COMPLETED;
    case DEPENDENCY_FAILURE:
        return ended == STATUS_FAILED || ended == STATUS_DEAD_LETTER || ended == STATUS_PARTIAL;
    case DEPENDENCY_COMPLETION:
    case DEPENDENCY_COUNT:
        break;
    }
    return true;
}
