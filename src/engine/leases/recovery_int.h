/* Shared by recoveries.c and recovery_findings.c. Runs on the thread that has the turn. */
#ifndef ENGINE_LEASES_RECOVERY_INT_H
#define ENGINE_LEASES_RECOVERY_INT_H

#include "engine/batch.h"
#include "store/recovery_store.h"

struct findings {
    struct recovery_facts facts;
    struct str checkpoint; /* the one it would resume from, in short */
    uint32_t damaged;      /* newer ones that are not whole */
};

/* The facts about a task (NULL = there is none) to be recovered by this method. */
int recovery_gather(struct batch *batch, const struct task *task, enum recovery_method method,
                    struct findings *found, struct err *err);
/* {"valid":…,"reason":…,"detail":{…}}; `said` is the reason that a validator gave. */
struct str recovery_verdict(const struct task *task, const struct findings *found,
                            enum recovery_reason reason, struct str said, struct arena *arena);

#endif
