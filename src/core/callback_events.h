/* Of which moments of a task its callback tells (`callback_events`): a list of words, stored as
 * JSON text in the order below; absent = the end alone. Pure. */
#ifndef CORE_CALLBACK_EVENTS_H
#define CORE_CALLBACK_EVENTS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum callback_event {
    CALLBACK_STARTED, /* an attempt began to run */
    CALLBACK_FAILED,  /* an attempt failed, or its worker was lost */
    CALLBACK_TIMEOUT, /* an attempt ran into the timeout */
    CALLBACK_ENDED,   /* the task ended */
    CALLBACK_EVENTS
};

const char *callback_event_word(enum callback_event event);

/* `value` is JSON of a request. */
int callback_events_read(struct str value, struct arena *arena, struct str *events,
                         struct err *err);

bool callback_events_have(struct str events, enum callback_event event);

#endif
