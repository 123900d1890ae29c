/* The user and group a handler runs as (`user:`, `group:`), looked up by name or number at the
 * start, so that a wrong name stops the start and not the first task. */
#ifndef WORKER_PROCESS_IDENTITY_H
#define WORKER_PROCESS_IDENTITY_H

#include "base/arena.h"
#include "core/settings.h"
#include "worker/process/process_plan.h"

struct identity {
    struct process_identity ids; /* not set: the rule names no user, or the one we are */
    const char *name;            /* NULL = the user has no entry */
    const char *home;
    const char *shell;
};

/* Texts live in the arena. Refused where there is no such user or group, or this process may not
 * become it. */
int identity_of_rule(const struct handler_rule *rule, struct arena *arena,
                     struct identity *identity, struct err *err);

#endif
