/* See the header. */
#include "node/stop_words.h"

#include <stdio.h>

void stop_words_tell(const struct log *log, const char *event, int signo, unsigned signals,
                     struct worker *worker, int64_t grace_ms)
{
    uint32_t running = worker ? worker_counts(worker).running : 0;
    char hint[240] = "";

    if (running && signals == 1)
        snprintf(hint, sizeof hint, "waits up to %gs for running tasks to end, then sends SIGTERM; "
                 "kills what has not ended %gs after that, or its handler's 'grace', and hands the "
                 "tasks back; a second Ctrl-C or SIGTERM hands them back now",
                 (double)grace_ms / 1000.0, (double)grace_ms / 1000.0);
    else if (running && signals == 2)
        snprintf(hint, sizeof hint, "running tasks are handed back now; a third Ctrl-C or SIGTERM "
                 "does not wait for that");
    LOG(log, LOG_INFO, event, KI("signal", signo), KI("running", running),
        KS("hint", hint[0] ? str_of(hint) : STR_NONE));
}
