/* Where a worker gets tasks and where its reports go: the engine in this process (source_local),
 * or a server over HTTP (source_remote). The calls block and may come from several threads at
 * once (claim, report and heartbeat each have a thread of their own). */
#ifndef WORKER_SOURCES_SOURCE_H
#define WORKER_SOURCES_SOURCE_H

#include "base/arena.h"
#include "core/agent/agent_days.h"
#include "core/service/service_holds.h"
#include "core/task/report.h"

/* One claimed task. Texts live in the arena given to claim. */
struct work {
    struct uuid id;
    int64_t lease_token;
    int64_t lease_ms;
    int64_t attempt;        /* = attempts */
    int64_t crash_count;    /* of these, lost with their worker */
    int64_t timeout_ms;
    int64_t retry_delay_ms;
    struct str type;
    struct str queue;
    struct str payload;     /* JSON; "null" when there is none */
    struct str data;        /* JSON with dependencies and children put in; "null" when none */
    struct str metadata;    /* JSON object */
    struct str correlation_id;
    struct str traceparent; /* W3C trace context for its handler; both may be absent */
    struct str tracestate;
    struct str checkpoint_name;  /* absent = no checkpoint */
    int64_t checkpoint_progress;
    struct str checkpoint_data;  /* JSON, absent = no checkpoint */
    struct str namespace_name; /* absent where the source proves its calls (the next two) */
    struct str complete_token; /* of a call: the end of the URL that says how it ended, ... */
    struct str identity;       /* ... and who calls, as a JWT; absent where they are made here */
    struct str json;        /* the whole task with its checkpoint, one line, as the API shows it */
};

struct source_worker {
    struct str id;          /* absent: the source makes one (host-pid-random) */
    struct str hostname;
    struct str version;
    int64_t pool_size;
    const struct str *queues;
    uint32_t queues_count;
    const struct str *types; /* exact or prefixes ending in '*'; NULL = all, empty = none */
    uint32_t types_count;
    const struct str *categories; /* count 0 = any */
    uint32_t categories_count;
};

/* What the source says of a worker that registered. */
struct source_registration {
    struct str id;
    int64_t heartbeat_ms;
    int64_t lease_ms;
    struct str unknown_categories; /* JSON array of those that are not there (yet); or absent */
};

/* What a claim asks for: up to max tasks; waits up to wait_ms for the first. */
struct source_want {
    uint32_t max;
    int64_t wait_ms;
    bool json;               /* work.json is wanted */
    const struct str *types; /* count 0: those it registered */
    uint32_t types_count;
    const struct str *services; /* that tasks of each type go to; NULL = to none */
};

struct held {
    struct uuid task_id;
    int64_t lease_token;
};

/* Answer to a heartbeat: indices into the held tasks that were sent. */
struct heartbeat_answer {
    uint32_t *cancel;
    uint32_t cancel_count;
    uint32_t *pause;
    uint32_t pause_count;
    uint32_t *lost;
    uint32_t lost_count;
};

/* What a worker that calls services tells and hears with its heartbeats. Any thread. */
struct source_holds {
    void *ctx;
    uint32_t (*tell)(void *ctx, struct service_hold *out, uint32_t max);
    void (*hear)(void *ctx, const struct service_hold *holds, uint32_t count);
};

/* What a worker that calls services tells a server elsewhere of them: members of its heartbeat, as
 * JSON, the same ones until the server has heard them; absent = none. The heartbeat's thread. */
struct source_figures {
    void *ctx;
    struct str (*tell)(void *ctx);
    void (*heard)(void *ctx);
};

/* What a worker that runs agents tells and hears of their days, with its heartbeats. Any thread. */
struct source_days {
    void *ctx;
    struct str process;
    uint32_t (*tell)(void *ctx, struct agent_day *out, uint32_t max);
    void (*hear)(void *ctx, const struct agent_day *others, uint32_t count);
};

/* All return 0 or a negative error. -ERR_NOT_FOUND from claim, report or heartbeat: the server does
 * not know this worker (any more): register again. -ERR_UNAVAILABLE / -ERR_IO: try again later;
 * nothing is known about what was sent, sending the same report again is safe. */
struct source {
    const struct source_verbs *verbs;
    /* If set, sources that can do so pass claimed tasks to it on the thread that brings them, one
     * change of threads earlier: claim then leaves *works NULL. Must be quick. */
    void (*arrived)(void *ctx, const struct work *works, uint32_t count);
    /* Some are being written and will arrive soon, unless that fails; may be NULL. */
    void (*coming)(void *ctx);
    void *arrived_ctx; /* of both */
    const struct source_holds *holds; /* NULL = it calls no services */
    const struct source_figures *figures; /* NULL = it calls no services */
    const struct source_days *days;   /* NULL = it runs no agents */
};

struct source_verbs {
    int (*register_worker)(struct source *source, const struct source_worker *worker,
                           struct arena *arena, struct source_registration *registered,
                           struct err *err);
    int (*claim)(struct source *source, const struct source_want *want, struct arena *arena,
                 struct work **works, uint32_t *count, struct err *err);
    int (*report)(struct source *source, const struct report *reports, uint32_t count,
                  struct report_result *results, struct err *err);
    int (*heartbeat)(struct source *source, const struct held *held, uint32_t count,
                     struct arena *arena, struct heartbeat_answer *answer, struct err *err);
    int (*leave)(struct source *source, struct err *err);
    /* The claim under way and all later ones return -ERR_UNAVAILABLE; reports, heartbeats and
     * leave still work. For shutdown. */
    void (*interrupt)(struct source *source);
    /* The claim under way comes back soon, with what it has; may be NULL: then it comes back when
     * its wait is over. */
    void (*hasten)(struct source *source);
    void (*free)(struct source *source);
};

#endif
