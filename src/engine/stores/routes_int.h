/* Inside of the routes; only their files include it. A call is one request at the front. A lent
 * call passes the caller's own request to one part after the other. A spread call sends copies
 * (shares) to several parts at once. Shares have memory of their own, so no call waits for a part
 * that hangs: a late answer goes back to its part. */
#ifndef ENGINE_STORES_ROUTES_INT_H
#define ENGINE_STORES_ROUTES_INT_H

#include "engine/engine_state.h"
#include "engine/stores/routes.h"

#define ROUTES_HINTS 65536 /* tasks whose part is remembered: 512 KiB */

struct part {
    struct routes *routes;
    uint32_t index;
    struct engine *engine;
    struct engine_config given;
    struct arena arena;         /* settings with an archive of its own */
    char where[256];            /* as it may be shown */
    atomic_bool failed;         /* for good: nothing is asked of it until the next start */
    atomic_uint under_way;      /* requests that do not mean to wait, ... */
    _Atomic int64_t moved_us;   /* ... and when the first of them came or the last was answered */
    _Atomic int64_t refused_us; /* when it last was out of reach; 0 = it answers */
};

/* Where the tasks of a queue are, if not just in the main store. */
struct place {
    uint32_t owner; /* new ones */
    uint32_t mask;  /* and those from before it was routed there */
    char name[];
};

struct routes {
    uint32_t count;
    struct part parts[ROUTES_MAX];
    struct map places;        /* struct place; never changes after the open */
    char node_id[128];
    atomic_uint turn;         /* claims begin with another part each time */
    uint64_t seed;
    struct measure_names *names; /* of what is measured, the same in all parts */
    struct makers *makers; /* of the first store, whose tokens count in all */
    _Atomic uint64_t *hints;  /* where tasks are, by their ids: guesses, checked by who is asked */
    pthread_mutex_t mutex;    /* the calls that may wait, all of their shares */
    struct call *waiting;
};

/* Settings as a part has them, in its arena; NULL with err. */
const struct settings *routes_part_settings(struct part *part, const struct settings *settings,
                                            struct err *err);

struct share {
    union {
        struct request base;
        struct claim_request claim;
        struct report_request report;
        struct heartbeat_request heartbeat;
        struct leave_request leave;
        struct workers_request workers;
        struct queues_request queues;
        struct queue_patch_request patch;
        struct purge_request purge;
        struct stats_request stats;
        struct configure_request configure;
        struct keys_request keys;
        struct namespace_request namespaces;
    } as;
    struct call *call;
    struct part *part;
    uint32_t *elements;  /* of a report: which ones of the whole it has */
    uint32_t again;      /* of a claim: how often it came back too early */
    struct arena arena;
};

struct call {
    struct routes *routes;
    struct request *request; /* the caller's; NULL once it is answered */
    void (*done)(struct request *request); /* the caller's, while the request is lent */
    void *ctx;
    uint32_t left;           /* parts still to be asked */
    uint32_t part;           /* that has the request */
    bool any;                /* some part did it */
    struct err err;          /* of the first part that could not */
    atomic_uint pending;     /* shares under way */
    struct share *shares[ROUTES_MAX];
    /* of claims and waits: */
    struct call *next, **link;
    bool forgotten;
    bool spread;             /* waits in several parts at once; ends when all shares are back */
    uint32_t mask;
    int64_t wait_ms;
    int64_t deadline_us;
    uint32_t missing;        /* parts that did not answer: they are not waited in */
    /* of reports: */
    uint8_t *tried;          /* per element, the parts that were asked */
};

/* routes.c */
void part_submit(struct part *part, struct request *request);
void part_answered(struct part *part, const struct request *request);
bool part_hangs(const struct part *part);   /* it has not answered anything for a while */
bool part_ails(const struct part *part);    /* or it was out of reach just now */
bool is_out_of_reach(enum err_code code);
uint32_t routes_owner(const struct routes *routes, struct str queue);
uint32_t routes_mask(const struct routes *routes, struct str queue);
void hint_put(struct routes *routes, const struct uuid *id, uint32_t part);
uint32_t hint_get(const struct routes *routes, const struct uuid *id); /* ROUTES_MAX = none */
void call_answer(struct call *call); /* hands the request back and frees the call */
void call_refuse(struct call *call, const struct err *err);
void call_lend(struct call *call, uint32_t part, void (*done)(struct request *request));
struct call *call_take_back(struct request *request); /* it is the caller's again */
static inline uint32_t routes_all(const struct routes *routes)
{
    return (1u << routes->count) - 1;
}
static inline uint32_t first_part(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

/* routes_spread.c: to several parts at once */
struct share *share_new(struct call *call, uint32_t part);
void share_free(struct share *share);
void call_spread(struct call *call, uint32_t mask);
void call_submit_shares(struct call *call); /* that are made */
/* routes_merge.c: their answers in one */
void merge_answers(struct call *call);
void merge_heartbeats(struct call *call);
/* routes_report.c */
void report_begin(struct call *call);
void report_merge(struct call *call);
/* routes_claim.c */
void claim_begin(struct call *call);
void claim_forget(struct routes *routes, struct request *request);
void claim_part_is_back(struct routes *routes, uint32_t part);
void call_park(struct call *call); /* among those that may wait */
bool call_unpark(struct call *call); /* true when it was forgotten meanwhile */

#endif
