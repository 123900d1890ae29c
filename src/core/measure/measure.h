/* What the engine did, counted where it commits: per queue, per lane (queue and type), per category
 * and per target. One thread at a time writes (the one that has the writer's turn), any thread
 * reads at any time without a lock: all figures only grow, and each is an atomic of its own. The
 * sets of names are bounded (D14): further names share one set of figures, "the others". Names live
 * as long as the measures. */
#ifndef CORE_MEASURE_MEASURE_H
#define CORE_MEASURE_MEASURE_H

#include "base/histogram.h"
#include "base/map.h"
#include "base/uuid7.h"
#include "core/measure/measure_names.h"

#include <stdatomic.h>

#define MEASURE_QUEUES_MAX 64     /* with a name of their own */
#define MEASURE_LANES_MAX 512
#define MEASURE_CATEGORIES_MAX 64
#define MEASURE_QUEUES_ALL (MEASURE_QUEUES_MAX + 1) /* the first one is the others */
#define MEASURE_LANES_ALL (MEASURE_LANES_MAX + MEASURE_QUEUES_ALL) /* and those of each queue */
#define MEASURE_CATEGORIES_ALL (MEASURE_CATEGORIES_MAX + 1) /* the first: none, or beyond */

enum measure_count {
    MEASURE_ENQUEUED,
    MEASURE_STARTED,
    MEASURE_TIMED_OUT,
    MEASURE_COMPLETED, /* from here on: what became of attempts and tasks */
    MEASURE_FAILED,
    MEASURE_DEAD_LETTER,
    MEASURE_PARTIAL,
    MEASURE_CANCELLED,
    MEASURE_RETRIED,
    MEASURE_CONTINUED,
    MEASURE_RELEASED,
    MEASURE_LOST,
    MEASURE_COUNTS
};
#define MEASURE_OUTCOMES_FIRST MEASURE_COMPLETED
const char *measure_count_word(enum measure_count what);

enum measure_span {
    MEASURE_WAIT,   /* due to started */
    MEASURE_RUN,    /* started to ended */
    MEASURE_COMMIT, /* an enqueue, from its arrival until it was durable */
    MEASURE_SPANS
};

/* Who does the work of a type, as the configuration says. */
enum measure_target {
    TARGET_WORKER,  /* workers elsewhere, functions of the program */
    TARGET_PROCESS,
    TARGET_SERVICE,
    TARGET_COUNT
};
const char *measure_target_word(enum measure_target target);

struct measures;
struct measure_queue;
struct measure_lane;
struct measure_category;

/* NULL without memory. `names` are those of the node, of whom it lives no longer; NULL = it is the
 * only one that counts. */
struct measures *measures_new(struct measure_names *names);
void measures_free(struct measures *measures);

/* "other", "*": what the others are called where they are shown. A name of that kind gets no place
 * of its own, or it would be there twice. */
bool measure_is_other(struct str name);

/* ---- the writer's ---- */

/* Never NULL: what finds no place is one of the others. `target` is asked for new lanes only. */
struct measure_lane *measures_lane(struct measures *measures, struct str queue, struct str type,
                                   enum measure_target (*target)(const void *ctx, struct str type),
                                   const void *ctx);
struct measure_queue *measures_queue(struct measures *measures, struct str queue);
struct measure_category *measures_category(struct measures *measures, const struct uuid *id);

void measure_add_count(struct measure_lane *lane, enum measure_count what);
void measure_add_wait(struct measure_lane *lane, int64_t us);
void measure_add_run(struct measures *measures, struct measure_lane *lane, int64_t us);
void measure_add_commit(struct measure_queue *queue, int64_t us);
void measure_add_execution(struct measure_category *category, bool successful, int64_t us);

/* ---- any thread: each adds what is there to what was there ---- */

struct measured_queue {
    struct str name; /* absent = the others */
    int64_t counts[MEASURE_COUNTS];
    struct histogram spans[MEASURE_SPANS];
};

struct measured {
    uint32_t queues_count; /* the others are always there, first */
    struct measured_queue queues[MEASURE_QUEUES_ALL];
    struct histogram targets[TARGET_COUNT]; /* how long attempts ran */
};
void measures_read(const struct measures *measures, struct measured *sum);
/* Of one that was read before; its part of the others when it has no place. */
struct measured_queue *measured_queue(struct measured *measured, struct str name);

struct measured_lane {
    struct str queue; /* absent = others, here and below */
    struct str type;
    enum measure_target target;
    uint64_t hash;
    int64_t counts[MEASURE_COUNTS];
};

struct measured_lanes {
    uint32_t count;
    struct measured_lane lanes[MEASURE_LANES_ALL];
};
void measures_read_lanes(const struct measures *measures, struct measured_lanes *sum);

struct measured_category {
    struct uuid id; /* nil = none, or beyond */
    int64_t successful;
    int64_t failed;
    int64_t duration_us;
};

struct measured_categories {
    uint32_t count;
    struct measured_category categories[MEASURE_CATEGORIES_ALL];
};
void measures_read_categories(const struct measures *measures, struct measured_categories *sum);

#endif
