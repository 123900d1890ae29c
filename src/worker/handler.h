/* What runs a task: a command, a function, later a service. The worker finds a handler by the type
 * of the task and calls it on a slot's thread; the handler reports through the run it is given and
 * leaves the outcome there. Handlers know nothing of slots, leases or the network. */
#ifndef WORKER_HANDLER_H
#define WORKER_HANDLER_H

#include <stdatomic.h>

#include "base/log.h"
#include "worker/process/process.h"
#include "worker/sources/source.h"

/* Why a handler shall stop; a greater one replaces a smaller one. */
enum stop_reason { STOP_NONE, STOP_PAUSE, STOP_SHUTDOWN, STOP_CANCEL, STOP_LOST };

struct handler_run {
    const struct work *work;
    struct arena *arena;     /* of this run: outcome texts live here */
    const atomic_int *stop;  /* enum stop_reason */
    const atomic_int *at_once; /* non-zero: a handler that shall stop gets no grace */
    int wake_fd;             /* eventfd, written when one of them was set */
    int64_t grace_ms;        /* where the handler's rule has none */
    bool started;            /* its start was reported already */
    const struct log *log;
    /* Queues a report (task, lease and seq are filled in; texts are copied). Not waiting: false
     * when there is no room. A report of a lost lease is dropped, which counts as taken. */
    bool (*report)(struct handler_run *run, const struct report *report, bool wait);
    /* Waits until everything it reported so far is stored. False: it is not, or it will not be: the
     * lease is lost, a checkpoint was refused, or the run shall stop. */
    bool (*stored)(struct handler_run *run);
    /* What the worker's heartbeat tells has changed: it comes soon. */
    void (*beat)(struct handler_run *run);
    /* Left by the handler: the outcome, op REPORT_OP_COUNT = none (cancelled or lost), and what
     * could not be killed. */
    struct report outcome;
    struct process_leftover leftover;
};

struct handler;

struct handler_verbs {
    void (*run)(const struct handler *handler, struct handler_run *run);
    bool wants_json; /* the whole task as one line is needed */
    bool in_process; /* a crash of it takes the worker down */
};

struct handler {
    struct str type; /* exact, or a prefix ending in '*' */
    const struct handler_verbs *verbs;
    const void *what; /* the rule or the function */
    /* Commands only: */
    struct spawner *spawner;
    char *const *environment; /* what the allow-list took from the worker's, or its user's */
    struct process_identity identity;
};

#endif
