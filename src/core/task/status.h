/* The statuses of a task and the one table of allowed transitions. Pure. */
#ifndef CORE_TASK_STATUS_H
#define CORE_TASK_STATUS_H

#include "base/str.h"

#define STATUS_TABLE(X)                                      \
    X(STATUS_BLOCKED, "blocked", false, false)               \
    X(STATUS_DELAYED, "delayed", false, false)               \
    X(STATUS_PENDING, "pending", false, false)               \
    X(STATUS_CLAIMED, "claimed", false, true)                \
    X(STATUS_RUNNING, "running", false, true)                \
    X(STATUS_PAUSED, "paused", false, false)                 \
    X(STATUS_ORPHANED, "orphaned", false, false)             \
    X(STATUS_RECOVERING, "recovering", false, false)         \
    X(STATUS_PARTIAL, "partial", true, false)                \
    X(STATUS_COMPLETED, "completed", true, false)            \
    X(STATUS_FAILED, "failed", true, false)                  \
    X(STATUS_DEAD_LETTER, "dead_letter", true, false)        \
    X(STATUS_CANCELLED, "cancelled", true, false)

enum status {
    STATUS_NONE, /* not stored yet */
#define X(name, word, ended, held) name,
    STATUS_TABLE(X)
#undef X
        STATUS_COUNT
};

const char *status_word(enum status status);
bool status_parse(struct str word, enum status *status);
bool status_ended(enum status status); /* wait answers, retention counts, dependents are decided */
bool status_held(enum status status);  /* a worker has it under a lease */

/* What moves a task; with the status it decides whether the move is allowed. */
enum move {
    MOVE_ENQUEUE,
    MOVE_RELEASE_DEPENDENCY, /* dependencies or children ended */
    MOVE_PROMOTE,            /* its time came */
    MOVE_POSTPONE,           /* its window closed, its key or a dependency is missing */
    MOVE_CLAIM,
    MOVE_START,
    MOVE_GIVE_BACK,          /* release by the worker */
    MOVE_OUTCOME,
    MOVE_WAIT_CHILDREN,
    MOVE_PAUSE,
    MOVE_RESUME,
    MOVE_LOSE,               /* lease over */
    MOVE_RECOVER,
    MOVE_RECOVERED,
    MOVE_CANCEL,
    MOVE_RETRY,
    MOVE_NO_HANDLER,         /* no live worker has its type, and it shall not wait for one */
    MOVE_COUNT
};

bool status_allows(enum status from, enum status to, enum move move);

/* Dependency kinds and whether a parent that ended as `ended` satisfies one. */
enum dependency { DEPENDENCY_SUCCESS, DEPENDENCY_COMPLETION, DEPENDENCY_FAILURE, DEPENDENCY_COUNT };

const char *dependency_word(enum dependency kind);
bool dependency_parse(struct str word, enum dependency *kind);
bool dependency_met(enum dependency kind, enum status ended);

#endif
