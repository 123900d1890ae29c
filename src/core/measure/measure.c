/* Counting: one writer, who finds lanes by a map of its own and adds with plain loads and stores of
 * atomics. Readers walk lists that only grow, up to a count that is published last. */
#include "core/measure/measure.h"

#include "base/hash.h"
#include "core/bounds.h"

#include <stdlib.h>

#define SEPARATOR '\x1f'
#define KEY_BYTES_MAX (2 * BOUND_NAME_BYTES + 1)

struct live_histogram {
    _Atomic int64_t counts[HISTOGRAM_BUCKETS];
    _Atomic int64_t sum_us;
};

struct measure_lane {
    struct measure_queue *queue;
    struct str type; /* absent = the others */
    enum measure_target target;
    uint64_t hash;
    _Atomic int64_t counts[MEASURE_COUNTS];
    size_t key_len;
    char key[];      /* queue, separator, type */
};

struct measure_queue {
    struct str name; /* absent = the others; lies behind the struct */
    struct measure_lane *rest; /* types of it that have no lane of their own */
    _Atomic int64_t counts[MEASURE_COUNTS];
    struct live_histogram spans[MEASURE_SPANS];
};

struct measure_category {
    struct uuid id;
    _Atomic int64_t successful;
    _Atomic int64_t failed;
    _Atomic int64_t duration_us;
};

struct measures {
    struct measure_names *names;
    struct map queues, lanes; /* the writer's */
    struct measure_lane *last_lane;
    struct measure_category *last_category;
    atomic_uint queues_count, lanes_count, categories_count;
    struct measure_queue *queue_list[MEASURE_QUEUES_ALL];
    struct measure_lane *lane_list[MEASURE_LANES_ALL];
    uint32_t own_lanes;
    struct measure_category categories[MEASURE_CATEGORIES_ALL];
    struct live_histogram targets[TARGET_COUNT];
};

const char *measure_count_word(enum measure_count what)
{
    static const char *const words[MEASURE_COUNTS] = {
        "enqueued", "started", "timed_out", "completed", "failed", "dead_letter", "partial",
        "cancelled", "retried", "continued", "released", "lost"};

    return words[what];
}

const char *measure_target_word(enum measure_target target)
{
    static const char *const words[TARGET_COUNT] = {"worker", "process", "service"};

    return words[target];
}

/* Only one thread writes: what it read cannot have changed. */
static void grow(_Atomic int64_t *figure, int64_t by)
{
    atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

static int64_t look(const _Atomic int64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

/* ---- names ---- */

static struct measure_lane *lane_new(struct measures *measures, struct measure_queue *queue,
                                     struct str type, enum measure_target target)
{
    size_t key_len = queue->name.len + 1 + type.len;
    struct measure_lane *lane = calloc(1, sizeof *lane + key_len + 1);
    uint32_t count = atomic_load_explicit(&measures->lanes_count, memory_order_relaxed);

    if (!lane)
        return NULL;
    lane->queue = queue;
    lane->target = target;
    lane->key_len = key_len;
    if (queue->name.len)
        memcpy(lane->key, queue->name.data, queue->name.len);
    lane->key[queue->name.len] = SEPARATOR;
    if (type.data) {
        memcpy(lane->key + queue->name.len + 1, type.data, type.len);
        lane->type = str_span(lane->key + queue->name.len + 1, type.len);
    }
    lane->hash = hash_bytes64(lane->key, key_len, type.data ? 1 : 0);
    measures->lane_list[count] = lane;
    atomic_store_explicit(&measures->lanes_count, count + 1, memory_order_release);
    return lane;
}

static struct measure_queue *queue_new_named(struct measures *measures, struct str name)
{
    struct measure_queue *queue = calloc(1, sizeof *queue + name.len + 1);
    uint32_t count = atomic_load_explicit(&measures->queues_count, memory_order_relaxed);

    if (!queue)
        return NULL;
    if (name.data) {
        memcpy(queue + 1, name.data, name.len);
        queue->name = str_span((const char *)(queue + 1), name.len);
    }
    if (name.data && map_put(&measures->queues, queue->name, queue) < 0) {
        free(queue);
        return NULL;
    }
    queue->rest = lane_new(measures, queue, STR_NONE, TARGET_WORKER);
    if (!queue->rest) {
        if (name.data)
            map_remove(&measures->queues, queue->name);
        free(queue);
        return NULL;
    }
    measures->queue_list[count] = queue;
    atomic_store_explicit(&measures->queues_count, count + 1, memory_order_release);
    return queue;
}

struct measures *measures_new(struct measure_names *names)
{
    struct measures *measures = calloc(1, sizeof *measures);

    if (!measures)
        return NULL;
    measures->names = names;
    atomic_store(&measures->categories_count, 1); /* the nil one */
    measures->last_category = &measures->categories[0];
    if (!queue_new_named(measures, STR_NONE)) {
        free(measures);
        return NULL;
    }
    return measures;
}

void measures_free(struct measures *measures)
{
    if (!measures)
        return;
    for (uint32_t i = 0; i < atomic_load(&measures->lanes_count); i++)
        free(measures->lane_list[i]);
    for (uint32_t i = 0; i < atomic_load(&measures->queues_count); i++)
        free(measures->queue_list[i]);
    map_deinit(&measures->queues);
    map_deinit(&measures->lanes);
    free(measures);
}

bool measure_is_other(struct str name)
{
    return str_is(name, "other") || str_is(name, "*");
}

static bool has_place(struct measures *measures, enum measure_names_kind kind, struct str name)
{
    return !measures->names || measure_names_take(measures->names, kind, name);
}

struct measure_queue *measures_queue(struct measures *measures, struct str name)
{
    struct measure_queue *queue = map_get(&measures->queues, name);

    if (!queue && name.data && name.len <= BOUND_NAME_BYTES && !measure_is_other(name) &&
        atomic_load_explicit(&measures->queues_count, memory_order_relaxed) < MEASURE_QUEUES_ALL &&
        has_place(measures, NAMES_QUEUES, name))
        queue = queue_new_named(measures, name);
    return queue ? queue : measures->queue_list[0];
}

static bool is_lane(const struct measure_lane *lane, struct str queue, struct str type)
{
    return lane->key_len == queue.len + 1 + type.len && lane->key[queue.len] == SEPARATOR &&
           memcmp(lane->key, queue.data, queue.len) == 0 &&
           memcmp(lane->key + queue.len + 1, type.data, type.len) == 0;
}

struct measure_lane *measures_lane(struct measures *measures, struct str queue, struct str type,
                                   enum measure_target (*target)(const void *ctx, struct str type),
                                   const void *ctx)
{
    struct measure_lane *lane = measures->last_lane;
    struct measure_queue *of;
    char key[KEY_BYTES_MAX];
    size_t key_len = queue.len + 1 + type.len;

    if (!queue.data || !type.data || key_len > sizeof key)
        return measures->queue_list[0]->rest;
    if (lane && is_lane(lane, queue, type))
        return lane;
    memcpy(key, queue.data, queue.len);
    key[queue.len] = SEPARATOR;
    memcpy(key + queue.len + 1, type.data, type.len);
    lane = map_get(&measures->lanes, str_span(key, key_len));
    if (lane) {
        measures->last_lane = lane;
        return lane;
    }
    of = measures_queue(measures, queue);
    if (!of->name.data || measure_is_other(type) || measures->own_lanes == MEASURE_LANES_MAX ||
        !has_place(measures, NAMES_LANES, str_span(key, key_len)))
        return of->rest;
    lane = lane_new(measures, of, type, target ? target(ctx, type) : TARGET_WORKER);
    if (!lane)
        return of->rest;
    measures->own_lanes++;
    (void)map_put(&measures->lanes, str_span(lane->key, lane->key_len), lane);
    return lane;
}

struct measure_category *measures_category(struct measures *measures, const struct uuid *id)
{
    uint32_t count = atomic_load_explicit(&measures->categories_count, memory_order_relaxed);
    struct measure_category *category;

    if (uuid_eq(&measures->last_category->id, id))
        return measures->last_category;
    for (uint32_t i = 0; i < count; i++) {
        if (!uuid_eq(&measures->categories[i].id, id))
            continue;
        measures->last_category = &measures->categories[i];
        return measures->last_category;
    }
    if (count == MEASURE_CATEGORIES_ALL ||
        !has_place(measures, NAMES_CATEGORIES, str_span((const char *)id->bytes,
                                                        sizeof id->bytes)))
        return &measures->categories[0];
    category = &measures->categories[count];
    category->id = *id;
    atomic_store_explicit(&measures->categories_count, count + 1, memory_order_release);
    return category;
}

/* ---- counting ---- */

static void add_time(struct live_histogram *histogram, int64_t us)
{
    us = us < 0 ? 0 : us;
    grow(&histogram->counts[histogram_bucket(us)], 1);
    grow(&histogram->sum_us, us);
}

void measure_add_count(struct measure_lane *lane, enum measure_count what)
{
    grow(&lane->counts[what], 1);
    grow(&lane->queue->counts[what], 1);
}

void measure_add_wait(struct measure_lane *lane, int64_t us)
{
    add_time(&lane->queue->spans[MEASURE_WAIT], us);
}

void measure_add_run(struct measures *measures, struct measure_lane *lane, int64_t us)
{
    struct live_histogram *both[] = {&lane->queue->spans[MEASURE_RUN],
                                     &measures->targets[lane->target]};
    uint32_t bucket;

    us = us < 0 ? 0 : us;
    bucket = histogram_bucket(us);
    for (int i = 0; i < 2; i++) {
        grow(&both[i]->counts[bucket], 1);
        grow(&both[i]->sum_us, us);
    }
}

void measure_add_commit(struct measure_queue *queue, int64_t us)
{
    add_time(&queue->spans[MEASURE_COMMIT], us);
}

void measure_add_execution(struct measure_category *category, bool successful, int64_t us)
{
    grow(successful ? &category->successful : &category->failed, 1);
    grow(&category->duration_us, us < 0 ? 0 : us);
}

/* ---- reading ---- */

static void read_histogram(const struct live_histogram *from, struct histogram *to)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->counts[i] += look(&from->counts[i]);
    to->sum_us += look(&from->sum_us);
}

struct measured_queue *measured_queue(struct measured *measured, struct str name)
{
    for (uint32_t i = 1; name.data && i < measured->queues_count; i++)
        if (str_eq(measured->queues[i].name, name))
            return &measured->queues[i];
    return &measured->queues[0];
}

/* The one to add to: several writers may know other names than each other. */
static struct measured_queue *place_for(struct measured *sum, struct str name)
{
    struct measured_queue *queue = measured_queue(sum, name);

    if (queue != &sum->queues[0] || !name.data || sum->queues_count == MEASURE_QUEUES_ALL)
        return queue;
    queue = &sum->queues[sum->queues_count++];
    *queue = (struct measured_queue){.name = name};
    return queue;
}

void measures_read(const struct measures *measures, struct measured *sum)
{
    uint32_t count = atomic_load_explicit(&measures->queues_count, memory_order_acquire);

    sum->queues_count = sum->queues_count ? sum->queues_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct measure_queue *from = measures->queue_list[i];
        struct measured_queue *to = place_for(sum, from->name);

        for (int what = 0; what < MEASURE_COUNTS; what++)
            to->counts[what] += look(&from->counts[what]);
        for (int span = 0; span < MEASURE_SPANS; span++)
            read_histogram(&from->spans[span], &to->spans[span]);
    }
    for (int target = 0; target < TARGET_COUNT; target++)
        read_histogram(&measures->targets[target], &sum->targets[target]);
}

static struct measured_lane *lane_for(struct measured_lanes *sum, const struct measure_lane *lane)
{
    struct measured_lane *to;

    for (uint32_t i = 0; i < sum->count; i++) {
        to = &sum->lanes[i];
        if (to->hash == lane->hash && str_eq(to->queue, lane->queue->name) &&
            str_eq(to->type, lane->type))
            return to;
    }
    if (sum->count == MEASURE_LANES_ALL)
        return &sum->lanes[0];
    to = &sum->lanes[sum->count++];
    *to = (struct measured_lane){.queue = lane->queue->name, .type = lane->type,
                                 .target = lane->target, .hash = lane->hash};
    return to;
}

/* The first lane of all is that of the other queues: what finds no place is added there. */
void measures_read_lanes(const struct measures *measures, struct measured_lanes *sum)
{
    uint32_t count = atomic_load_explicit(&measures->lanes_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        const struct measure_lane *from = measures->lane_list[i];
        struct measured_lane *to = lane_for(sum, from);

        for (int what = 0; what < MEASURE_COUNTS; what++)
            to->counts[what] += look(&from->counts[what]);
    }
}

void measures_read_categories(const struct measures *measures, struct measured_categories *sum)
{
    uint32_t count = atomic_load_explicit(&measures->categories_count, memory_order_acquire);

    sum->count = sum->count ? sum->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct measure_category *from = &measures->categories[i];
        uint32_t at = 0;

        while (at < sum->count && !uuid_eq(&sum->categories[at].id, &from->id))
            at++;
        if (at == MEASURE_CATEGORIES_ALL)
            at = 0;
        if (at == sum->count)
            sum->categories[sum->count++] = (struct measured_category){.id = from->id};
        sum->categories[at].successful += look(&from->successful);
        sum->categories[at].failed += look(&from->failed);
        sum->categories[at].duration_us += look(&from->duration_us);
    }
}
