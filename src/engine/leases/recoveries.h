/* The recovery queue: makes, judges and applies entries (recoveries.c), and skips failed ones for a
 * while (recovery_faults.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LEASES_RECOVERIES_H
#define ENGINE_LEASES_RECOVERIES_H

#include "base/uuid7.h"
#include "engine/engine.h"

struct batch;

#define RECOVERY_FAULTS_MAX 32
/* A recovery that failed for an unexpected reason (recovery_faults.c). */
struct recovery_fault {
    struct uuid entry_id;
    int64_t fails;
    int64_t until_us; /* no new try before this */
    bool told;        /* its entry says so */
    char text[256];
};

struct recoveries {
    struct recovery_fault faults[RECOVERY_FAULTS_MAX];
    uint32_t faults_count;
};

bool recovery_validates(const struct engine *engine, struct str type);
/* A user's :recover: applied at once, unless a validator must be asked first. */
int recovery_now(struct batch *batch, struct task *task, struct control_request *request);
int recovery_apply(struct batch *batch, struct request *base);
int recovery_work(struct batch *batch, struct request *base);
int recovery_run(struct batch *batch, int64_t *next_us, struct err *err); /* the timer */
void recovery_fault_note(struct batch *batch, const struct recovery_entry *entry,
                         const struct err *err);
/* Is the entry still skipped? If so, *next_us becomes at most the time until which it is. */
bool recovery_fault_holds(struct batch *batch, const struct recovery_entry *entry,
                          int64_t *next_us);
void recovery_fault_forget(struct engine *engine, const struct uuid *entry_id);
int recovery_faults_tell(struct batch *batch, struct err *err);

#endif
