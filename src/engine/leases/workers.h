/* Live workers and their leases (workers.c, worker_views.c, worker_categories.c, heartbeats.c), and
 * what the sweep remembers of them (sweep.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LEASES_WORKERS_H
#define ENGINE_LEASES_WORKERS_H

#include "base/arena.h"
#include "base/map.h"
#include "core/bounds.h"
#include "engine/engine.h"
#include "engine/tasks/declined.h"
#include "store/store.h"

struct batch;

/* A live worker. */
struct worker_state {
    struct worker_row row; /* texts in arena */
    struct arena arena;
    struct str *queues;
    uint32_t queues_count;
    struct str *namespaces; /* of its queues, each once; it claims from them by turns */
    uint32_t namespaces_count;
    uint32_t turn;
    struct str *types; /* NULL = any, an empty list = none */
    uint32_t types_count;
    struct str *categories; /* count 0 = any */
    uint32_t categories_count;
    bool in_process;
    int64_t lease_written_us; /* the lease_until the store has */
    bool led;                 /* as its row says, of this node's own */
    int64_t known_us;         /* further writers: when its row was read, ... */
    unsigned known_gone;      /* ... how many workers had left this node by then, ... */
    int64_t told_us;          /* ... and when the first writer learnt that it lives */
    uint64_t followed;        /* the look at the store's rows that saw it last */
};

/* A worker that lost some of its tasks in this pass of the sweep. */
struct lost_worker {
    bool ran; /* it had started some of them */
    char id[];
};

/* A service that tasks wait for and that is not known. */
#define MISSING_SERVICES_MAX 16
struct missing_service {
    char name[BOUND_SERVICE_BYTES + 1]; /* "" = a free place */
    int64_t since_us;
    int64_t seen_us; /* the last look that found it missing */
};

struct leases {
    struct map workers;        /* struct worker_state */
    size_t workers_bytes;      /* memory of all of them */
    struct declined *declined; /* of the first writer: what workers gave back */
    struct map lost_workers;   /* struct lost_worker, of one pass of the sweep */
    int64_t sweep_after;       /* key of the last held task the sweep saw; 0 = a new pass */
    int64_t heard_since_us;    /* no worker could reach us before: a start, a stall, a lost store */
    bool restarted;            /* the first sweep has not run yet ... */
    bool awaits_worker;        /* ... and waits for a worker, or for one lease */
    int64_t base;              /* valid lease tokens are above this; a restore raises it */
    struct str dead_node;      /* the previous run of this node: what it held is lost */
    uint32_t pools;            /* in-process workers beside the node's own */
    uint64_t follows;          /* how often all rows of workers were read */
    int64_t followed_us;       /* the last time */
    _Atomic bool calls_wait;   /* tasks of services may be pending; of the first writer */
    int64_t services_looked_us;
    struct missing_service missing[MISSING_SERVICES_MAX];
    struct service_holds holds;
    int64_t holds_read_us; /* from a shared store */
    int64_t days_warned_us; /* that a namespace has too many agents */
};

int workers_load(struct engine *engine, struct err *err);
int workers_adopt(struct engine *engine, const struct worker_row *row, struct worker_state **out,
                  struct err *err);
void workers_forget(struct engine *engine, struct worker_state *worker); /* in memory only */
void workers_deinit(struct engine *engine);
struct worker_state *workers_get(struct engine *engine, struct str id);
/* The same; one that registered at another node is looked up. */
int workers_find(struct batch *batch, struct str id, struct worker_state **worker, struct err *err);
/* The same, for a request: a worker of another namespace is none. */
int workers_find_of(struct batch *batch, const struct request *request, struct str id,
                    struct worker_state **worker, struct err *err);
int workers_follow(struct batch *batch, struct err *err); /* leases as the store has them */
int workers_register(struct batch *batch, struct request *base);
int workers_heartbeat(struct batch *batch, struct request *base);
int workers_leave(struct batch *batch, struct request *base);
int workers_share_holds(struct batch *batch, struct heartbeat_request *request);
/* 1 where workers of a namespace found that the service is not to be called now, 0 where not. The
 * text is the engine's. */
int workers_held_off(struct batch *batch, struct str within, struct str service,
                     struct service_hold *hold, struct err *err);
int workers_share_days(struct batch *batch, struct heartbeat_request *request);
/* Whether it has queues in this namespace. */
bool workers_are_in(const struct worker_state *worker, struct str namespace_name);
bool workers_serve(const struct worker_state *worker, struct str queue);
/* Does it take tasks of this category (nil: without one, which are in `general`)? Names are looked
 * up when they are needed: a category may be made, or renamed, while the worker lives. */
bool workers_take_category(struct batch *batch, const struct worker_state *worker,
                           const struct uuid *category_id);
/* The ids of those of its categories that exist now, in a namespace (absent = in all of its own);
 * NULL = it takes all. */
int workers_categories(struct batch *batch, const struct worker_state *worker, struct str within,
                       const struct uuid **ids, uint32_t *count, struct err *err);
/* The names of those that do not exist (yet), as a JSON array in arena; absent if all exist.
 * Without a catalog *unknown keeps its value. */
int workers_unknown_categories(struct batch *batch, const struct worker_state *worker,
                               struct arena *arena, struct str *unknown, struct err *err);
/* A live worker that would get a task of this queue and type if the category fits. */
bool workers_take(const struct batch *batch, const struct worker_state *worker, struct str queue,
                  struct str type);
/* Whether the caller of the request may act as this worker (NULL = there is none). */
bool workers_usable(const struct worker_state *worker, const struct request *base);
int workers_unknown(struct err *err); /* the refusal otherwise */
int workers_list(struct batch *batch, struct request *base);
struct str workers_names_json(const struct str *names, uint32_t count, struct arena *arena);
/* Renews the lease in memory, which is the one that counts; workers_renew writes the row. */
void workers_touch(struct batch *batch, struct worker_state *worker);
int workers_renew(struct batch *batch, struct worker_state *worker, struct err *err);
void workers_grant_grace(struct engine *engine, int64_t now_us); /* after a stall or a start */
int workers_drop(struct batch *batch, struct worker_state *worker, struct err *err);
/* The node's own row: made at the start, renewed by the sweep, gone after a clean stop. */
void workers_name_node(struct engine *engine);
int workers_enter_node(struct batch *batch, struct err *err);
int workers_renew_node(struct batch *batch, struct err *err);
int workers_leave_node(struct engine *engine, struct err *err);

#endif
