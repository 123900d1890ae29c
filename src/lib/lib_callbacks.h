/* The callbacks of an embedded store: a POST to a task's callback_url when it has ended, signed
 * with the store's own secret. */
#ifndef LIB_LIB_CALLBACKS_H
#define LIB_LIB_CALLBACKS_H

#include <stdatomic.h>

#include "lib/lib_int.h"

struct webhooks;

struct callbacks {
    struct arena arena;
    struct str *allow; /* URL prefixes */
    struct str secret;
    _Atomic(struct webhooks *) webhooks;
};

/* Before the queue opens: fills the settings and loads the secret, made at the first time. */
int lib_callbacks_init(struct callbacks *callbacks, struct store *store, struct settings *settings,
                       const struct pd_options *options, struct err *err);
int lib_callbacks_start(struct callbacks *callbacks, struct engine *engine,
                        const struct settings *settings, const struct log *log, struct err *err);
void lib_callbacks_wake(struct callbacks *callbacks); /* from the queue's thread */
/* The queue still runs when halt is called, and has ended when deinit is. */
void lib_callbacks_halt(struct callbacks *callbacks);
void lib_callbacks_deinit(struct callbacks *callbacks);

#endif
