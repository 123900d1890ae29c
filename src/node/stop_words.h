/* What a server or a worker prints when it is stopping: what it waits for, and what another signal
 * would do. Any thread. */
#ifndef NODE_STOP_WORDS_H
#define NODE_STOP_WORDS_H

#include "base/log.h"
#include "worker/worker.h"

/* signals: how many came, with this one. worker may be NULL. */
void stop_words_tell(const struct log *log, const char *event, int signo, unsigned signals,
                     struct worker *worker, int64_t grace_ms);

#endif
