/* Queues of tasks with their limits, and what runs of each (limits.c, limits_parked.c;
 * limits_shared.c where nodes share a store). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LIMITS_LIMITS_H
#define ENGINE_LIMITS_LIMITS_H

#include "base/heap.h"
#include "base/map.h"
#include "core/rate.h"
#include "engine/engine.h"
#include "engine/limits/user_limits.h"
#include "engine/namespaces/namespaces.h"
#include "store/store.h"

struct batch;

/* One limit that is counted: of a queue, of a type in it, of a key in it. */
struct limit {
    struct str name; /* type or key; lives behind the struct */
    int64_t running;
    struct bucket bucket;
    struct heap_node wake; /* keys with a rate: when parked tasks may come back */
    struct queue_state *state;
    uint64_t seen_in;        /* shared stores: the batch that read these figures */
    char kind;               /* q, t or k */
    bool rated;              /* shared stores: its bucket counts */
    struct limit *next_used; /* its bucket is to be written */
};

/* A queue with its rules and what runs of it. */
struct queue_state {
    struct queue_row row; /* texts in arena */
    struct arena arena;
    struct limit whole;
    struct map types;        /* struct limit, only types with a limit */
    struct map keys;         /* struct limit, only while the queue limits keys */
    bool unpark_all;         /* every key of it gets its chance once */
    uint64_t wanted_in;      /* shared stores: the batch that may need its figures */
    uint64_t viewed_in;      /* the batch that asks for stats, and ... */
    struct queue_view *view; /* ... its place there */
    bool hot;                /* new ready tasks or free slots in this batch */
    bool has_older;          /* hot because of what may have been ready before this batch */
    struct queue_state *next_hot;
    bool heated; /* the same, by this batch itself: other nodes get a hint */
    struct queue_state *next_heated;
    uint64_t followed; /* the look at the store's rows that saw it last */
    struct queue_state *next_dropped;
};

/* A key whose slot a batch freed. */
struct freed_key {
    struct queue_state *state;
    struct str key;
};

struct limits {
    struct map queues;           /* struct queue_state */
    uint64_t followed;           /* how often the store's rows were read so far */
    struct queue_state *dropped; /* removed; freed when the next batch begins */
    int64_t next_idle_us;        /* when to look for empty queues again */
    struct heap wakes;           /* limits whose rate lets tasks back in later */
    bool unpark_some;            /* some queue has unpark_all set */
    struct namespaces namespaces;
    struct user_limits users;
};

int limits_load(struct engine *engine, struct err *err); /* queues, and what runs of them */
void limits_deinit(struct engine *engine);
int limits_follow(struct batch *batch, struct err *err); /* queues other nodes made or changed */
struct queue_state *limits_queue(struct engine *engine, struct str name); /* NULL = not there */
void limits_drop(struct engine *engine, struct queue_state *state);       /* out of the map */
void limits_bury(struct engine *engine); /* frees what was dropped */
int limits_queue_room(const struct batch *batch, struct str name, uint32_t more, struct err *err);
int limits_queue_make(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err);
enum admit limits_admit(void *batch, struct str queue, struct str type, struct str limit_key,
                        const struct uuid *category_id);
/* It was admitted, but is not taken after all. */
void limits_take_back(struct batch *batch, const struct task *task);
/* False if no task of the queue can be admitted now; the claim is then tried again in time. */
bool limits_open(struct batch *batch, struct queue_state *state);
/* figures of the database, for this batch */
bool limits_any(const struct queue_state *state);
int limits_look(struct batch *batch, struct queue_state *state, struct err *err);
int limits_look_key(struct batch *batch, struct limit *limit, struct err *err);
int limits_save(struct batch *batch, struct err *err); /* buckets, before the commit */
/* How full a limit is, for display only: takes no lock, so the answer may be out of date. `kind` is
 * q, t or k; name the type or the key. */
int limits_peek(struct batch *batch, struct queue_state *state, char kind, struct str name,
                const struct rate_rule *rate, int64_t *running, struct bucket *bucket,
                struct err *err);
const struct type_limit *limits_type_rule(const struct queue_state *state, struct str type);
struct limit *limits_type(struct queue_state *state, struct str type);
/* Tasks admitted and really taken, or held no longer. */
void limits_note(struct batch *batch, const struct task *task, int64_t by);
int limits_unpark(struct batch *batch, struct err *err);
int64_t limits_order_key(struct engine *engine, const struct task *task, int64_t eligible_us);
int64_t limits_eligible_us(struct engine *engine, const struct task *task); /* by its order key */
/* For limits_parked.c: whether the queue limits keys, and when to look again. */
bool limits_keys(const struct queue_state *state);
void limits_retry_at(struct engine *engine, int64_t when_us);
/* Wakes the key's parked tasks then, or earlier if that was planned. */
int limits_wake_at(struct engine *engine, struct limit *limit, int64_t when_us);
/* For queue_rules.c: */
int limits_count_all(struct engine *engine, struct err *err); /* what runs, again from the store */
int limits_replace_row(struct engine *engine, struct queue_state *state,
                       const struct queue_row *row, struct err *err);
/* The queue as the store has it now; another node may have made or changed it. */
int limits_follow_one(struct batch *batch, struct str name, struct queue_state **state,
                      struct err *err);
/* The settings have changed: takes the parts of each queue that only they hold. */
void limits_configured(struct engine *engine);
/* A rate limit has room again, or a claim continues: waiting claims of the queue look again. */
int limits_retry(struct batch *batch, int64_t *next_us, struct err *err);

#endif
