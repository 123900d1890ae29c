/* Callbacks: takes due messages from the outbox, sends them signed, and reports the result to the
 * outbox. At least once: a message is removed only after its receiver said 2xx, and every try of it
 * carries the same event id. Failures are retried with exponential backoff and full jitter until
 * the message expires; then it is given up and kept. Runs on its own thread, which sleeps in one
 * place until something is due, a transfer moves, or webhooks_wake is called. */
#ifndef OUTBOUND_WEBHOOK_H
#define OUTBOUND_WEBHOOK_H

#include "base/log.h"
#include "engine/engine.h"

struct webhooks;

struct webhook_options { /* 0 = the default */
    int64_t first_delay_ms; /* most the first retry waits; doubles: 1 s */
    int64_t max_delay_ms;   /* 1 h */
    int64_t timeout_ms;     /* of one call: 10 s */
};

/* Starts the thread, which begins with what is due. settings, secret (the HMAC key) and log live at
 * least as long; options may be NULL. NULL with err: ERR_INVALID for an entry of callbacks.allow
 * that could never match or an empty secret, ERR_MEMORY. */
struct webhooks *webhooks_start(struct engine *engine, const struct settings *settings,
                                struct str secret, const struct webhook_options *options,
                                const struct log *log, struct err *err);

/* Settings that were read again: what callbacks.allow says holds from the next call on. They must
 * have passed webhooks_check and live as long as the thread. Any thread. */
int webhooks_check(const struct settings *settings, struct err *err);
void webhooks_configure(struct webhooks *webhooks, const struct settings *settings);

/* There may be new messages. Any thread, never blocks; also after halt. */
void webhooks_wake(struct webhooks *webhooks);

/* Ends the thread; transfers under way are cut off and sent again by the next start. The queue must
 * still run. Afterwards wake does nothing, so that the queue can be closed before stop. */
void webhooks_halt(struct webhooks *webhooks);

/* Halts if that was not done, and frees; webhooks_wake may not be called any more. NULL is
 * allowed. */
void webhooks_stop(struct webhooks *webhooks);

#endif
