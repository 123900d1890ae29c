/* Every maximum of the domain in one place, each with its reason. Beyond them the API answers 413
 * (size) or 422 (meaning). Limits of the HTTP connection itself are in net/http.h. */
#ifndef CORE_BOUNDS_H
#define CORE_BOUNDS_H

#define BOUND_ARRAY 10000                /* tasks of one enqueue: one transaction of about 0.2 s */
#define BOUND_REPORT_ELEMENTS 10000      /* the same for reports */
#define BOUND_PAYLOAD_BYTES (1024 * 1024) /* larger inputs belong into external storage */
#define BOUND_DATA_BYTES (1024 * 1024)   /* data, checkpoint parts: rewritten while a task runs */
#define BOUND_METADATA_BYTES (16 * 1024) /* shown in lists, so small */
#define BOUND_FORKED_FROM_BYTES 64 /* "forked_from":"…", which a fork has more of it */
#define BOUND_RESULT_BYTES (256 * 1024)  /* handed to dependents, so light */
#define BOUND_LOG_LINE_BYTES (64 * 1024) /* longer lines are cut with a marker */
#define BOUND_LOG_LINES_PER_EXECUTION 100000 /* a log flood must not fill the disk */
#define BOUND_LOG_LINES_TEXT \
    "further lines of this execution are not kept: it has reached the limit"
#define BOUND_EVENTS_TOLD 100000         /* per task: events beyond it are of its statuses only */
#define BOUND_EVENTS_TEXT \
    "further states and checkpoints of this task are not kept as events: it has reached the limit"
#define BOUND_DEPENDS_ON 1000            /* per task: decided one by one when it is enqueued */
#define BOUND_TAGS 16
#define BOUND_NAME_BYTES 200             /* names, types, queues, worker ids */
#define BOUND_SERVICE_BYTES 90           /* a target: both are in the type of its runs */
#define BOUND_METHOD_BYTES 100
#define BOUND_KEY_BYTES 256              /* keys and outside ids: they are indexed */
#define BOUND_ERROR_BYTES 4096           /* an error text is a sentence, not a core dump */
#define BOUND_EDIT_BYTES 1024            /* what people may change: every change is an event */
#define BOUND_URL_BYTES 2048
#define BOUND_DESCRIPTION_BYTES 4096     /* of categories and jobs: shown in lists */
#define BOUND_PATTERN_BYTES (64 * 1024)  /* pattern_config: an rrule with 1,000 dates fits */
#define BOUND_MISFIRE_CAP 1000           /* fired of one schedule in one commit */
#define BOUND_MISFIRE_GRACE_MS (INT64_C(30) * 86400 * 1000) /* a month: older work is history */
#define BOUND_JITTER_MS (INT64_C(86400) * 1000) /* a day: beyond it the next one is meant */
#define BOUND_JOB_CONCURRENT 100000      /* runs of one job at once */
#define BOUND_PREVIEW 1000               /* instants of one preview */
#define BOUND_CLAIM_MAX 1000             /* tasks of one claim */
#define BOUND_CLAIM_BYTES (32 * 1024 * 1024) /* loaded by one claim; it gets fewer tasks then */
#define BOUND_CLAIM_QUEUES 256           /* queues named by one claim or worker */
#define BOUND_CLAIM_TYPES 1024           /* a worker registers one for each of its handlers */
#define BOUND_WAIT_MS 60000              /* longest long-poll: proxies cut at about a minute */
#define BOUND_LIST_LIMIT 1000
#define BOUND_LIST_LIMIT_DEFAULT 100
#define BOUND_EVENTS_LIST 100            /* A10 */
#define BOUND_DELAY_MS (INT64_C(10) * 365 * 86400 * 1000) /* ten years */
#define BOUND_RETRIES 1000000
#define BOUND_PRIORITY 1000              /* -1000 ... 1000 */
#define BOUND_OUTPUTS_BYTES (1024 * 1024) /* data.dependencies and data.children of one claim */
#define BOUND_CHECKPOINTS_KEPT 20        /* per task: older ones are thinned out */
#define BOUND_QUEUES 10000               /* queues come into being on first use */
#define BOUND_NAMESPACES 1000            /* made by hand; all of them are kept in memory */
#define BOUND_TYPE_LIMITS 256            /* per queue */
#define BOUND_TOKEN_TASKS 1000000000     /* what max_tasks of one may be */
#define BOUND_TOKENS 100000              /* API tokens of a store, revoked ones too */
#define BOUND_WORKERS 32000              /* more than there are connections, also with restarts */
#define BOUND_WORKERS_BYTES (64 * 1024 * 1024) /* of memory for all of them */
#define BOUND_WAITERS 20000              /* parked long-polls of all kinds */
#define BOUND_BATCH_REQUESTS 512         /* requests of one commit */
#define BOUND_BATCH_TASKS 20000          /* tasks touched by one commit, where requests allow it */
#define BOUND_CHORE_ROWS 500             /* rows one chore touches per commit, so it never blocks */
#define BOUND_DUE_STEP 100               /* delayed tasks promoted per commit: others wait 1 ms */
#define BOUND_RECOVERY_STEP 100          /* recovery entries decided per commit: the same */
#define BOUND_DEPENDENTS_STEP 1000       /* dependents released per step of one commit */

#endif
