/* The worker: claims tasks from a source as slots get free, runs their handlers on the slots'
 * threads, reports, keeps the leases alive. Several workers can live in one process.
 * Threads: one claims, one reports, one sends heartbeats, one per slot. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "base/log.h"
#include "core/settings.h"
#include "worker/handlers/handler_function.h"
#include "worker/sources/source.h"
#include "worker/process/spawner.h"

#define WORKER_SLOTS_MAX 1024
#define WORKER_BATCH_MAX 256
#define WORKER_CLAIM_WAIT_MS_DEFAULT 30000
#define WORKER_STACK_BYTES_DEFAULT (256 * 1024)
#define WORKER_GRACE_MS_DEFAULT 5000

/* Who runs rules with an agent, so that a program without agents needs nothing of them. */
struct worker_agents {
    const struct handler_verbs *verbs;
    const void *(*find)(void *ctx, struct str agent); /* what the verbs get; NULL = not there */
    void *ctx;
};

/* Everything it points to lives until worker_free. Zero in a number means its default. */
struct worker_dispatch;

struct worker_config {
    struct source_worker registration; /* pool_size is set from slots; hostname when absent */
    uint32_t slots;                    /* tasks run at once; default 4 */
    uint32_t batch;                    /* tasks claimed ahead per slot, 1 = none waits; default 1
                                          for processes, for functions by what they take */
    int64_t claim_wait_ms;             /* long-poll */
    int64_t grace_ms;                  /* where a handler's rule has none; -1 = default */
    size_t stack_bytes;                /* of a slot's thread */
    struct spawner *spawner;           /* starts commands; NULL where no rule has one */
    const struct handler_rule *rules;  /* those with a command are used */
    uint32_t rules_count;
    const struct function_handler *functions;
    uint32_t functions_count;
    const struct worker_agents *agents;     /* rules with an agent are used; NULL = they are not */
    const struct worker_dispatch *dispatch; /* runs all tasks instead of slots; NULL = none */
};

struct worker;

/* Registers and begins to claim. The source stays the caller's; log may be NULL. NULL with err when
 * the source cannot be reached or refuses. */
struct worker *worker_start(struct source *source, const struct worker_config *config,
                            const struct log *log, struct err *err);

/* Stops claiming at once; gives running handlers grace_ms to end by themselves, then asks them to
 * stop (SIGTERM, SIGKILL after their grace) and gives their tasks back; leaves the source.
 * -ERR_UNAVAILABLE when a function still runs: it cannot be killed, its task stays leased. */
int worker_stop(struct worker *worker, int64_t grace_ms, struct err *err);

/* Shortens the shutdown, while worker_stop runs on another thread or before it: handlers that shall
 * stop are killed at once and their tasks given back. Any thread. */
void worker_hurry(struct worker *worker);

/* What a configuration that was read again says: other rules, queues and grace, from the next task
 * on; what runs is left alone. The worker registers again. What it points to lives until
 * worker_free. Not beside worker_stop. On failure everything stays as it was. */
struct worker_rules {
    const struct handler_rule *rules;
    uint32_t rules_count;
    const struct str *queues; /* count 0 = as before */
    uint32_t queues_count;
    int64_t grace_ms;
};
int worker_configure(struct worker *worker, const struct worker_rules *rules, struct err *err);

/* Stops if need be, waits for the last function to return, frees. worker may be NULL. */
void worker_free(struct worker *worker);

/* The id the source knows it by; lives as long as the worker. */
struct str worker_id(const struct worker *worker);

struct worker_counts {
    uint32_t running;     /* slots at work, also quarantined ones */
    uint32_t quarantined; /* slots whose process could not be killed */
    uint32_t waiting;     /* claimed, no slot yet */
    uint32_t held;        /* all leases, also those whose outcome is on its way */
    uint32_t finished;    /* since worker_stop began: ended by themselves, ... */
    uint32_t handed_back; /* ... given back */
};
struct worker_counts worker_counts(struct worker *worker);

#endif
