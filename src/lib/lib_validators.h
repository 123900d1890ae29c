/* Validators of an embedded store: functions of the program that are asked before a lost task is
 * put back. */
#ifndef LIB_LIB_VALIDATORS_H
#define LIB_LIB_VALIDATORS_H

#include <stdatomic.h>

#include "lib/lib_int.h"
#include "worker/validators/validators.h"

#define LIB_VALIDATORS_MAX 256

struct lib_validator {
    struct str type; /* exact, or a prefix with a star; in the arena */
    pd_validate *validate;
    void *ctx;
};

struct lib_validators {
    pthread_mutex_t lock; /* of the list */
    struct arena arena;
    struct lib_validator list[LIB_VALIDATORS_MAX];
    uint32_t count;
    struct validator_functions functions;
    _Atomic(struct validators *) thread; /* NULL until the first validator is there */
};

void lib_validators_init(struct lib_validators *validators);
/* Of the queue's configuration. */
bool lib_validators_know(struct lib_validators *validators, struct str type);
void lib_validators_wake(struct lib_validators *validators);
int lib_validators_add(struct lib_validators *validators, struct engine *engine,
                       const struct settings *settings, const struct log *log, const char *type,
                       pd_validate *validate, void *ctx, struct err *err);
/* The queue still runs when halt is called, and has ended when deinit is. */
void lib_validators_halt(struct lib_validators *validators);
void lib_validators_deinit(struct lib_validators *validators);

#endif
