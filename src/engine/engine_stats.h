/* Figures of a node: what its engines have counted since the start, and how things are now. */
#ifndef ENGINE_ENGINE_STATS_H
#define ENGINE_ENGINE_STATS_H

#include "core/task/report.h"
#include "core/task/status.h"

/* Counts since the start, summed over all writers and stores. */
enum engine_total {
    TOTAL_ENQUEUED,
    TOTAL_CLAIMED,
    TOTAL_COMPLETED,
    TOTAL_FAILED, /* failed, dead_letter */
    TOTAL_RETRIED,
    TOTAL_CANCELLED,
    TOTAL_DUPLICATES,
    TOTAL_LOST_LEASES,
    TOTAL_STALE_HEARTBEATS,
    TOTAL_TIMEOUTS,
    TOTAL_FIRED,     /* runs made by schedules and recurring patterns */
    TOTAL_MISSED,    /* instants too late for their policy, of one outage up to 100 */
    TOTAL_SKIPPED,   /* instants left out because an earlier run was still open */
    TOTAL_RECOVERED, /* lost, silent or partial tasks that were put back */
    TOTAL_WEBHOOKS_DELIVERED,
    TOTAL_WEBHOOKS_FAILED, /* calls; each is tried again until it expires */
    TOTAL_WEBHOOKS_GIVEN_UP,
    TOTAL_COMMITS,
    TOTAL_COMMIT_REQUESTS, /* requests over all commits: the batch size */
    TOTAL_COMMIT_US,       /* time spent in commits */
    TOTAL_BATCH_RETRIES,
    TOTAL_READ_ERRORS, /* of the disk: what met one was answered with an error */
    TOTAL_PRUNED,
    TOTAL_COUNT
};

struct engine_stats {
    int64_t counts[STATUS_COUNT]; /* now, by status */
    int64_t totals[TOTAL_COUNT];
    int64_t stale_reports[REPORT_OP_COUNT]; /* since the start, by what was reported */
    int64_t waiting_claims;
    int64_t waiting_waits;
    int64_t workers;
    int64_t started_at_us;
    int64_t webhooks_pending;
    int64_t log_pages;            /* of the store, not yet in its file */
    int64_t stores;               /* of a node with several: how many there are ... */
    int64_t stores_down;          /* ... and how many did not answer just now */
    bool storage_full;
    bool log_regression;          /* at the start the anchor file was ahead of the store */
    bool leads;                   /* this node, or it is the only one */
    bool no_leader;               /* as far as this node knows */
    int64_t clock_behind_us;      /* the wall clock behind the engine's: it was set back */
};

#endif
