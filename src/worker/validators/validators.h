/* Validators of task types (B6): before a lost task is put back, the validator of its type decides
 * whether that makes sense. It is a command, an HTTP target, or a function of the embedding
 * program. One thread takes entries of the recovery queue, asks outside of any transaction, and
 * reports the answer; each answer has 10 s. Only where some type has a validator: without any, the
 * queue works recoveries off by itself. */
#ifndef WORKER_VALIDATORS_VALIDATORS_H
#define WORKER_VALIDATORS_VALIDATORS_H

#include "engine/engine.h"
#include "worker/process/spawner.h"

#include <stdatomic.h>

#define VALIDATOR_TIMEOUT_MS 10000
#define VALIDATOR_REASON_BYTES 256

struct validators;

struct validator_answer {
    bool answered; /* false: it could not be asked, or took too long; it is asked again later */
    bool valid;
    char reason[VALIDATOR_REASON_BYTES]; /* of a refusal, or why there was no answer */
};

/* Functions of the embedding program; knows says whether it has one for this type. On the thread of
 * the validators, but for knows: on any. */
struct validator_functions {
    bool (*knows)(void *ctx, struct str type);
    void (*ask)(void *ctx, struct str type, const struct uuid *task_id, struct str task,
                struct validator_answer *answer);
    void *ctx;
};

/* Has this type a validator in the settings? */
bool validators_configured(const struct settings *settings, struct str type);
bool validators_any(const struct settings *settings);

/* Starts the thread. settings, spawner (NULL: no type has a command), functions (may be NULL) and
 * log live at least as long. */
struct validators *validators_start(struct engine *engine, const struct settings *settings,
                                    struct spawner *spawner,
                                    const struct validator_functions *functions,
                                    const struct log *log, struct err *err);
/* There may be new entries. Any thread, never blocks; also after halt. */
void validators_wake(struct validators *validators);
/* Ends the thread; a command under way is stopped, and its entry tried again by the next start. The
 * queue must still run. Afterwards wake does nothing. */
void validators_halt(struct validators *validators);
void validators_stop(struct validators *validators); /* halts if need be, frees; NULL is fine */

/* Settings that were read again; they live as long. Any thread. */
void validators_configure(struct validators *validators, const struct settings *settings);

/* One validator of the settings, on the caller's thread; stop and wake_fd as in process.h. */
void validator_ask(const struct handler_rule *rule, struct spawner *spawner,
                   const struct uuid *task_id, struct str type, struct str task,
                   const atomic_int *stop, int wake_fd, struct validator_answer *answer);

#endif
