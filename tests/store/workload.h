/* A fixed but varied load on a real queue over a real store, with a memory of what was asked for and
 * what was acknowledged, and the check that a store found later keeps every acknowledged word. The
 * programs that break disks and memory share it. Requests go one at a time, so that at most one is
 * under way when something breaks. Main thread; the queue has its own. */
#ifndef TESTS_STORE_WORKLOAD_H
#define TESTS_STORE_WORKLOAD_H

#include "engine/engine.h"

#include <stdatomic.h>

#define WORKLOAD_TASKS_MAX 1024
#define WORKLOAD_HELD_MAX 64
#define NEVER INT64_MAX

/* What was asked of one task and what was acknowledged, each with the position it happened at. */
struct promise {
    struct uuid id;          /* nil = not known yet */
    uint32_t unit;           /* its request: all of its tasks or none */
    size_t payload_bytes;
    int64_t asked, stored;
    int64_t end_asked, ended;
    enum status end;
    int64_t remove_asked, removed;
    bool split;              /* its children were made */
    bool brief;              /* retention may remove it as soon as it ended */
};

struct held {
    uint32_t task;
    int64_t lease_token;
};

struct workload {
    char folder[64];
    char path[96];
    char archive[96];
    unsigned seed;
    struct settings settings;
    struct handler_rule rule;
    struct store *store;
    struct engine *engine;
    struct promise promises[WORKLOAD_TASKS_MAX];
    uint32_t count, units;
    struct held held[WORKLOAD_HELD_MAX];
    uint32_t held_count;
    struct str worker_id;
    char worker_text[64];
    uint32_t large_bytes;    /* a large payload now and then; 0 = none */
    atomic_bool fatal;
    uint32_t acknowledged;   /* requests */
    uint32_t refused;        /* requests answered with an error */
    char finding[400];       /* the first thing that is not as it must be; "" = none */
    struct arena arena;
    struct err err;
    /* Where in time we are; NULL: a count of requests. */
    int64_t (*position)(void *ctx);
    /* Called around calls into the store and queue that may fail; may be NULL. */
    void (*inside)(void *ctx, bool inside);
    void *ctx;
};

/* In a folder of its own in memory (/dev/shm) where there is one. */
void workload_init(struct workload *w, unsigned seed);
void workload_deinit(struct workload *w); /* removes the folder */

/* False: w->err says why, nothing is open. */
bool workload_open(struct workload *w);
void workload_close(struct workload *w);

/* One round: a batch is enqueued, tasks are claimed, reported on, split into children, cancelled,
 * deleted. False when the queue has stopped. */
bool workload_round(struct workload *w, uint32_t turn);
/* Opened, so many rounds, closed once after one of them, so that checkpoint, close and start meet the
 * fault too. False: it stopped, or (opened = false) could not be opened. */
bool workload_life(struct workload *w, uint32_t rounds, uint32_t reopen_after, bool *opened);

/* Notes the first thing that is wrong; later ones are its consequences. */
void workload_find(struct workload *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Compares the store at `path` with what was promised until `position`; w->finding says what is
 * wrong. Opens the store (not the queue), reads everything, verifies, and closes. */
bool workload_check(struct workload *w, const char *path, int64_t position);
/* The same for a store that is open. */
bool workload_check_open(struct workload *w, struct store *store, int64_t position);

#endif
