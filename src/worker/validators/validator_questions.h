/* Questions of people to the validators of task types (POST /v1/recovery/validate): answered one
 * after the other on a thread of its own, beside the one that works lost tasks off (validators.h):
 * whoever asks holds up no recovery. Nothing is stored. Only where some type has a validator. */
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
/* Those that wait are told that nobody was asked; a command under way is stopped. Afterwards every
 * question is refused. NULL is fine. */
void validator_questions_halt(struct validator_questions *questions);
void validator_questions_free(struct validator_questions *questions); /* halts if need be */

#endif
