/* Conformance: thousands of random operations on a store and on a model of it that is nothing but
 * an array. After every transaction both must say the same: what is ready and in which order, how
 * many tasks there are of each status, what is parked, due and held. Seeds are fixed. */
#include "conformance.h"

#include <stdlib.h>

#define TASKS_MAX 12000
#define QUEUES 3
#define TYPES 2
#define KEYS 3 /* the first means none */

static const char *const queue_names[] = {"q0", "q1", "q2", NULL};
static const char *const type_names[] = {"a.x", "b.y"};
static const char *const key_names[] = {NULL, "k1", "k2"};

struct entry {
    struct uuid id;
    int64_t key;
    enum status status; /* STATUS_NONE = deleted */
    int64_t order_key;
    int64_t scheduled_us;
    int queue, type, limit;
    bool parked, held, by_wall;
};

struct model {
    struct conformance *c;
    unsigned seed;
    struct entry now[TASKS_MAX];
    struct entry committed[TASKS_MAX];
    uint32_t count, committed_count;
    enum admit lanes[QUEUES][TYPES]; /* what admit answers */
    bool park[KEYS];
};

static int pick(struct model *model, int below)
{
    return rand_r(&model->seed) % below;
}

static bool entry_ready(const struct entry *entry)
{
    return entry->status == STATUS_PENDING && !entry->parked;
}

static void insert_some(struct model *model)
{
    struct conformance *c = model->c;
    int some = pick(model, 25) ? 1 + pick(model, 5) : 400; /* at times a flood */
    int queue = pick(model, QUEUES), type = pick(model, TYPES);

    for (int i = 0; i < some && model->count < TASKS_MAX; i++) {
        struct entry *entry = &model->now[model->count++];
        struct task *task = given_task(c, queue_names[queue], type_names[type]);

        *entry = (struct entry){.id = task->id, .key = task->key, .status = STATUS_PENDING,
                                .order_key = pick(model, 5000), .queue = queue, .type = type,
                                .limit = pick(model, KEYS)};
        if (pick(model, 6) == 0) {
            entry->status = STATUS_DELAYED;
            entry->scheduled_us = T0_US + pick(model, 1000);
            entry->by_wall = pick(model, 2);
        }
        task->spec.limit_key = str_of(key_names[entry->limit]);
        task->order_key = entry->order_key;
        task->status = entry->status;
        task->scheduled_at_us = entry->scheduled_us;
        task->by_wall = entry->by_wall;
        insert_task(c, task);
    }
}

static void write_entry(struct model *model, const struct entry *entry, struct task *task)
{
    task->status = entry->status;
    task->order_key = entry->order_key;
    task->parked = entry->parked;
    task->scheduled_at_us = entry->scheduled_us;
    task->by_wall = entry->by_wall;
    task->lease.held = entry->held;
    if (entry->held) {
        task->lease.worker_id = STR("w");
        task->lease.token++;
    }
    save_task(model->c, task);
}

/* Cancels, completes, delays, promotes, reorders or deletes any task. */
static void change_one(struct model *model)
{
    static const enum status ends[] = {STATUS_COMPLETED, STATUS_FAILED, STATUS_CANCELLED,
                                       STATUS_PAUSED, STATUS_BLOCKED};
    struct entry *entry = model->count ? &model->now[pick(model, (int)model->count)] : NULL;
    struct task *task;

    if (!entry || entry->status == STATUS_NONE)
        return;
    task = load_task(model->c, &entry->id, pick(model, 2) ? LOAD_SPEC : LOAD_ALL);
    assert_non_null(task);
    assert_int_equal(task->status, entry->status);
    assert_int_equal(task->order_key, entry->order_key);
    switch (pick(model, 5)) {
    case 0:
        entry->status = STATUS_NONE;
        entry->parked = entry->held = false;
        OK(model->c, model->c->verbs->tasks_delete(model->c->store, &task, 1, &model->c->err));
        return;
    case 1:
        entry->status = STATUS_DELAYED;
        entry->scheduled_us = T0_US + pick(model, 1000);
        entry->parked = entry->held = false;
        break;
    case 2:
        entry->status = STATUS_PENDING;
        entry->held = false;
        entry->order_key = pick(model, 5000);
        break;
    case 3:
        entry->order_key = pick(model, 5000); /* a new priority */
        break;
    default:
        entry->status = ends[pick(model, 5)];
        entry->parked = entry->held = false;
    }
    write_entry(model, entry, task);
}

static enum admit answer(void *ctx, struct str queue, struct str type, struct str limit_key,
                         const struct uuid *category_id)
{
    struct model *model = ctx;

    (void)category_id;
    for (int k = 1; k < KEYS; k++)
        if (str_is(limit_key, key_names[k]) && model->park[k])
            return ADMIT_PARK;
    return model->lanes[queue.data[1] - '0'][str_is(type, type_names[1])];
}

/* The first ready entry of the lanes that are still open; -1 = none. */
static int first_ready(const struct model *model, bool open[QUEUES][TYPES])
{
    int best = -1;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct entry *entry = &model->now[i];

        if (!entry_ready(entry) || !open[entry->queue][entry->type])
            continue;
        if (best < 0 || entry->order_key < model->now[best].order_key)
            best = (int)i; /* among equals the lower key, which comes first in the array */
    }
    return best;
}

/* What a take must give, decided as the seam says. */
static uint32_t expect_take(struct model *model, int queues, uint32_t max, int *expected)
{
    bool open[QUEUES][TYPES];
    uint32_t count = 0;
    int at;

    for (int q = 0; q < QUEUES; q++)
        for (int t = 0; t < TYPES; t++)
            open[q][t] = q < queues;
    while (count < max && (at = first_ready(model, open)) >= 0) {
        struct entry *entry = &model->now[at];
        enum admit what = model->park[entry->limit] ? ADMIT_PARK
                                                    : model->lanes[entry->queue][entry->type];

        if (what == ADMIT_PARK) {
            entry->parked = true;
        } else if (what == ADMIT_SKIP_TYPE) {
            open[entry->queue][entry->type] = false;
        } else if (what == ADMIT_STOP_QUEUE) {
            for (int t = 0; t < TYPES; t++)
                open[entry->queue][t] = false;
        } else {
            entry->status = STATUS_RUNNING;
            entry->held = true;
            expected[count++] = at;
        }
    }
    return count;
}

static void take_some(struct model *model)
{
    enum { MAX = 64 };
    const char *queues[QUEUES + 1] = {queue_names[0], NULL, NULL, NULL};
    int expected[MAX], asked = 1 + pick(model, QUEUES);
    struct task *taken[MAX];
    uint32_t max = (uint32_t)(1 + pick(model, MAX)), count;

    for (int q = 0; q < QUEUES; q++) {
        queues[q] = q < asked ? queue_names[q] : NULL;
        for (int t = 0; t < TYPES; t++)
            model->lanes[q][t] = pick(model, 8)   ? ADMIT_TAKE
                                 : pick(model, 2) ? ADMIT_SKIP_TYPE
                                                  : ADMIT_STOP_QUEUE;
    }
    for (int k = 1; k < KEYS; k++)
        model->park[k] = pick(model, 10) == 0;
    count = take_ready(model->c, queues, NULL, max, answer, model, taken);
    assert_int_equal(count, expect_take(model, asked, max, expected));
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *entry = &model->now[expected[i]];

        then_id(taken[i]->id, entry->id);
        write_entry(model, entry, taken[i]);
    }
}

static void unpark_some(struct model *model)
{
    struct conformance *c = model->c;
    int queue = pick(model, QUEUES), limit = 1 + pick(model, KEYS - 1);
    struct uuid *ids;
    uint32_t count, at = 0;
    int64_t last = INT64_MIN;

    OK(c, c->verbs->parked_find(c->store, str_of(queue_names[queue]), str_of(key_names[limit]), 40,
                                &c->arena, &ids, &count, &c->err));
    for (uint32_t i = 0; i < count; i++) {
        struct task *task = load_task(c, &ids[i], LOAD_SPEC);

        assert_true(task && task->parked && task->order_key >= last);
        last = task->order_key;
        for (at = 0; !uuid_eq(&model->now[at].id, &ids[i]); at++)
            assert_true(at + 1 < model->count);
        assert_true(model->now[at].parked && model->now[at].queue == queue &&
                    model->now[at].limit == limit);
        model->now[at].parked = false;
        write_entry(model, &model->now[at], task);
    }
    if (count == 40)
        return;
    for (at = 0; at < model->count; at++) /* then there is no other one */
        assert_false(model->now[at].parked && model->now[at].queue == queue &&
                     model->now[at].limit == limit);
}

static int64_t mirrored(void *ctx, int64_t priority, int64_t old_key)
{
    (void)ctx;
    return priority + 5000 - old_key;
}

static void reorder_queue(struct model *model)
{
    struct conformance *c = model->c;
    int queue = pick(model, QUEUES);

    OK(c, c->verbs->ready_reorder(c->store, str_of(queue_names[queue]), mirrored,
                                  NULL, &c->err));
    for (uint32_t i = 0; i < model->count; i++)
        if (model->now[i].queue == queue && model->now[i].status == STATUS_PENDING)
            model->now[i].order_key = 5000 - model->now[i].order_key;
}

static void then_same_ready(struct model *model)
{
    int64_t ready[QUEUES] = {0};

    for (uint32_t i = 0; i < model->count; i++)
        ready[model->now[i].queue] += entry_ready(&model->now[i]);
    for (int q = 0; q < QUEUES; q++)
        assert_int_equal(ready_in(model->c, queue_names[q]), ready[q]);
}

static void then_same_counts(struct model *model)
{
    struct conformance *c = model->c;
    int64_t counts[QUEUES][TYPES][STATUS_COUNT] = {{{0}}};
    struct lane_count *found;
    uint32_t count;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct entry *entry = &model->now[i];

        counts[entry->queue][entry->type][entry->status] += entry->status != STATUS_NONE;
    }
    OK(c, c->verbs->counts_load(c->store, &c->arena, &found, &count, &c->err));
    for (uint32_t i = 0; i < count; i++)
        if (found[i].status != STATUS_NONE) /* parked ones are counted beside their status */
            counts[found[i].queue.data[1] - '0'][str_is(found[i].type, type_names[1])]
                  [found[i].status] -= found[i].tasks;
    for (int q = 0; q < QUEUES; q++)
        for (int t = 0; t < TYPES; t++)
            for (int s = 0; s < STATUS_COUNT; s++)
                assert_int_equal(counts[q][t][s], 0);
}

static void then_same_due_and_held(struct model *model)
{
    struct conformance *c = model->c;
    int64_t now_us = T0_US + pick(model, 1000), wall_us = T0_US + pick(model, 1000);
    int64_t next_in_us, next_model_us = INT64_MAX;
    uint32_t due = 0, held = 0, count;
    struct task **tasks = arena_alloc_array(&c->arena, TASKS_MAX, sizeof *tasks);
    struct uuid *ids;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct entry *entry = &model->now[i];
        int64_t clock_us = entry->by_wall ? wall_us : now_us;

        held += entry->held && entry->status != STATUS_NONE;
        if (entry->status != STATUS_DELAYED)
            continue;
        due += entry->scheduled_us <= clock_us;
        if (entry->scheduled_us - clock_us < next_model_us)
            next_model_us = entry->scheduled_us - clock_us;
    }
    OK(c, c->verbs->due_find(c->store, now_us, wall_us, TASKS_MAX, &c->arena, &ids, &count,
                             &next_in_us, &c->err));
    assert_int_equal(count, due);
    assert_true(next_in_us == next_model_us);
    OK(c, c->verbs->held_find(c->store, STR("w"), 0, TASKS_MAX, &c->arena, tasks, &count, &c->err));
    assert_int_equal(count, held);
}

static void end_transaction(struct model *model)
{
    if (pick(model, 8) == 0) {
        store_rollback(model->c);
        memcpy(model->now, model->committed, sizeof model->now);
        model->count = model->committed_count;
        return;
    }
    store_commit(model->c);
    memcpy(model->committed, model->now, sizeof model->now);
    model->committed_count = model->count;
}

/* What the layer that encrypts could do otherwise shows in fewer turns. */
static void run_model(struct conformance *c, unsigned seed)
{
    int transactions = c->kind->sealed ? 150 : 700;
    struct model *model = calloc(1, sizeof *model);

    assert_non_null(model);
    model->c = c;
    model->seed = seed;
    for (int turn = 0; turn < transactions; turn++) {
        store_begin(c);
        for (int i = 1 + pick(model, 8); i > 0; i--) {
            int what = pick(model, 10);

            if (what < 3)
                insert_some(model);
            else if (what < 6)
                change_one(model);
            else if (what < 9)
                take_some(model);
            else if (pick(model, 5))
                unpark_some(model);
            else
                reorder_queue(model);
        }
        end_transaction(model);
        then_same_ready(model);
        if (turn % 10 == 0) {
            then_same_counts(model);
            then_same_due_and_held(model);
        }
        if (turn % 100 == 99) {
            assert_int_equal(verify_findings(c), 0);
            store_reopen(c);
        }
        arena_reset(&c->arena);
    }
    assert_int_equal(verify_findings(c), 0);
    free(model);
}

static void random_operations_leave_what_the_model_says(void **state)
{
    run_model(*state, 1);
}

static void other_random_operations_leave_it_too(void **state)
{
    run_model(*state, 77);
}

const struct conformance_test conformance_model_tests[] = {
    CONFORMANCE_TEST(random_operations_leave_what_the_model_says),
    CONFORMANCE_TEST(other_random_operations_leave_it_too), CONFORMANCE_END};
