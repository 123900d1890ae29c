/* What worker.c (claiming, heartbeats, life) and worker_slots.c (running tasks) share. One lock
 * guards everything here that is not marked otherwise; no call to the source is made under it. */
#ifndef WORKER_WORKER_INT_H
#define WORKER_WORKER_INT_H

#include <pthread.h>

#include "worker/handler.h"
#include "worker/reporter.h"
#include "worker/worker.h"

#define WORKER_HANDLERS_MAX BOUND_CLAIM_TYPES /* it registers them */

/* The memory of one claim, shared by its tasks. */
struct claim {
    struct arena arena;
    uint32_t users; /* tasks that still need it */
    struct claim *next;
};

/* One held task, from the claim until its outcome was answered. Never freed before the worker, so
 * that a late answer finds at most a run with another serial. */
struct run {
    struct reporter_task task; /* first: hooks get a pointer to it */
    struct work work;
    struct claim *claim;
    uint64_t serial;
    int64_t sent_us;      /* boot time when the claim was sent: the lease counts from here */
    int64_t accepted_us;
    struct slot *slot;    /* NULL = waits; kept after its end: a wake too many does no harm */
    uint32_t held_index;
    bool replaced;        /* its outcome was refused and a failure sent instead */
    atomic_int stop;      /* enum stop_reason; any thread */
    bool start_stored;    /* its start was answered */
    int64_t answered_seq; /* the last of its reports that was */
    bool refused;         /* a checkpoint of it was */
    struct run *next;
};

struct slot {
    struct worker *worker;
    pthread_t thread;
    int wake_fd;
    struct arena arena; /* of the run; the slot's thread only */
    bool suspect;       /* what it runs is counted among the suspects; likewise */
    bool suspect_last;  /* and among those whose next time would be the last */
};

/* The handlers of one configuration. Earlier ones stay until the worker ends: runs and lookups may
 * still use them. Never changed once it is worker->handlers. */
struct handler_set {
    struct arena arena;
    struct handler *handlers;
    uint32_t count;
    bool wants_json;
    int64_t grace_ms;         /* where a rule has none */
    int64_t grace_ms_longest; /* of these and all before */
    const struct str *types;  /* as registered; an empty list = none */
    uint32_t types_count;
    struct handler_set *older;
};

/* Claimed tasks that wait for a slot, and the slots that wait for them. */
struct worker_line {
    pthread_cond_t come; /* slots wait */
    struct run *first;
    struct run *last;
    uint32_t count;
    uint32_t running_count;
    uint32_t idle_count;
    uint32_t watching_count; /* slots that are awake: a task is being written for one ... */
    bool coming;             /* ... and no slot watches for it yet */
    atomic_uint arrivals;    /* what they watch */
    int64_t arrived_us;      /* the last one */
};

/* All runs and claims, and those that are held (worker_runs.c). */
struct worker_runs {
    uint32_t max;
    uint32_t count;
    struct run *blocks[32]; /* of doubling size, to free them */
    uint32_t blocks_count;
    struct run *free_first;
    struct claim *free_claims;
    struct run **held;
    uint32_t held_count;
    uint64_t next_serial;
    uint32_t quarantined_count;
    pthread_cond_t answers_come; /* runs wait until they are stored */
    uint32_t awaiting_count;
};

/* Tasks that were lost with their worker before (worker_suspects.c). */
struct worker_suspects {
    pthread_cond_t start_come; /* slots wait */
    uint32_t count;            /* that run */
    uint32_t last_count;       /* of those: whose next loss would be the last */
    int64_t since_us;          /* when the last of them began */
};

/* How many tasks are claimed ahead of the slots (worker_ahead.c). */
struct worker_ahead {
    bool adaptive;       /* the batch follows how long handlers take */
    uint32_t capacity;   /* tasks waiting and running */
    int64_t run_mean_us; /* how long the last handlers took */
};

struct worker_claims {
    pthread_t thread;
    bool started;
    bool named;               /* the types to claim were given, not taken from the handlers */
    pthread_cond_t room_come; /* the claimer waits */
    bool room_news;           /* of a dispatch, since it was asked what it wants */
    struct claim *asking;     /* the claim under way ... */
    int64_t asked_us;         /* ... and when it was sent */
};

/* Registering and heartbeats (worker_heartbeat.c). */
struct worker_beats {
    pthread_t thread;
    bool started;
    pthread_cond_t due; /* the heartbeat waits */
    bool over;
    bool soon; /* a task was stopped that is no longer ours: the next beat says so */
    int64_t every_ms;
    int64_t lease_ms;
    atomic_int_least64_t renewed_us; /* boot time when the last answered heartbeat was sent */
    pthread_mutex_t registering;
    uint64_t registrations;
};

/* How the worker stops. */
struct worker_end {
    pthread_cond_t calm; /* worker_stop waits */
    bool stopping;       /* no more claims */
    bool stopped;
    uint32_t finished;    /* outcomes stored since it began to stop ... */
    uint32_t handed_back; /* ... and tasks that are in line again */
    atomic_int ending;    /* slots shall end; any thread */
    atomic_int hurried;   /* no grace for any handler; any thread */
};

struct worker {
    struct source *source;
    struct worker_config config; /* registration: under `registering`; rules: see handlers */
    const struct log *log;
    struct arena arena; /* id */
    struct str id;
    _Atomic(struct handler_set *) handlers;
    struct reporter *reporter;
    struct slot *slots;
    uint32_t slots_started;
    uint32_t slots_opened; /* their descriptors; closed at the very end */
    pthread_mutex_t lock;
    struct worker_line line;
    struct worker_runs runs;
    struct worker_suspects suspects;
    struct worker_ahead ahead;
    struct worker_claims claims;
    struct worker_beats beats;
    struct worker_end end;
};

/* worker_dispatch.c */
void *worker_dispatch_main(void *worker); /* the claimer of a worker without slots */
void worker_dispatch_accept(struct worker *worker, struct run *run); /* the lock is held */

/* worker_handlers.c */
int worker_handlers_set(struct worker *worker, const struct handler_rule *rules,
                        uint32_t rules_count, int64_t grace_ms, struct err *err);
void worker_handlers_deinit(struct worker *worker);

/* worker_slots.c */
void *worker_slot_main(void *slot);
/* Its lease may be over: a machine that slept finds it so. */
bool worker_lease_gone(const struct worker *worker, const struct run *run);

/* worker_runs.c; the lock is held. */
struct claim *worker_claim_new(struct worker *worker);
void worker_claim_release(struct worker *worker, struct claim *claim);
struct run *worker_run_new(struct worker *worker); /* NULL at the maximum or without memory */
void worker_run_end(struct worker *worker, struct run *run);
void worker_run_stop(struct run *run, enum stop_reason reason);
void worker_runs_deinit(struct worker *worker);

/* worker_ahead.c; the lock is held, but for init. */
uint32_t worker_ahead_init(struct worker *worker); /* the capacity; returns how large it may get */
void worker_ahead_ran(struct worker *worker, int64_t duration_us);
void worker_ahead_give_back(struct worker *worker);
int64_t worker_ahead_look_ms(const struct worker *worker); /* when to look for stuck ones again */

/* worker_suspects.c */
/* Before a function is called. False: it shall not be called; it was stopped while it waited, or
 * the worker stops. *started: its start was reported. */
bool worker_suspect_begin(struct worker *worker, struct run *run, bool *started);
void worker_suspect_end(struct slot *slot); /* when its outcome was handed to the reporter */
void worker_start_answered(struct worker *worker, struct run *run); /* the lock is held */

/* worker_claims.c */
/* After a claim that the source answered with rc: registers again if the source does not know the
 * worker (`seen` was its registration), and pauses after a failure, or if `early`: the claim
 * neither waited nor brought a task. *pause_ms, 0 at first, grows with failures. False when
 * stopping. */
bool worker_claim_end(struct worker *worker, int rc, uint64_t seen, bool early, int64_t *pause_ms,
                      struct err *err);
bool worker_is_stopping(struct worker *worker);
void *worker_claimer_main(void *worker);
void worker_arrived(void *worker, const struct work *works, uint32_t count); /* source.arrived */
void worker_answered(void *worker, const struct report *reports,
                     const struct reporter_entry *entries, const struct report_result *results,
                     uint32_t count);

void worker_coming(void *worker); /* source.coming */

/* worker_heartbeat.c */
int worker_register(struct worker *worker, uint64_t seen, struct err *err);
uint64_t worker_registrations(struct worker *worker);
/* What the worker registers with; and registers with something else, or keeps the old one. */
struct source_worker worker_registration(struct worker *worker);
int worker_register_as(struct worker *worker, const struct source_worker *registration,
                       struct err *err);
int worker_unknown(void *worker); /* the source does not know us: registers again */
void *worker_heartbeat_main(void *worker);

#endif
