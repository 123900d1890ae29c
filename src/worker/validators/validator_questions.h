/* Users' questions to the validators of task types (POST /v1/recovery/validate). A separate thread
 * answers them one after the other, beside the one that recovers lost tasks (validators.h), so a
 * question does not hold up a recovery. Nothing is stored. Only where some type has a validator. */
#ifndef WORKER_VALIDATORS_VALIDATOR_QUESTIONS_H
#define WORKER_VALIDATORS_VALIDATOR_QUESTIONS_H

#include "core/task/recovery.h"
#include "core/settings.h"
#include "worker/process/spawner.h"

struct validator_questions;

/* Starts the thread; settings and spawner live at least as long. */
struct validator_questions *validator_questions_start(const struct settings *settings,
                                                      struct spawner *spawner, struct err *err);
/* Any thread, never blocks. False: too many wait already, or it was halted. Otherwise done is
 * called once, on the thread, and the question is the thread's until then. */
bool validator_questions_ask(void *questions, struct recovery_question *question);
/* Settings that were read again; they live as long. Any thread. */
void validator_questions_configure(struct validator_questions *questions,
                                   const struct settings *settings);
/* Waiting questions end unanswered; a command under way is stopped. Afterwards every
 * question is refused. NULL is fine. */
void validator_questions_halt(struct validator_questions *questions);
void validator_questions_free(struct validator_questions *questions); /* halts if need be */

#endif
