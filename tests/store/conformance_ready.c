/* Conformance: the ready line. A claim takes by order key, then by key, over several queues (E2,
 * C5), however long the line is and whatever happens to tasks at its head, middle and end. */
#include "conformance.h"
#include "core/queue_name.h"

#include "core/task/order.h"

#define MANY 2600 /* beyond any window a store may keep in memory */

static const char *const queue_q[] = {"q", NULL};

static void claim_all(struct conformance *c, struct task **tasks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        claim_task(tasks[i], "w");
        save_task(c, tasks[i]);
    }
}

/* E2, C5: high priority first, then age, then the order in which they came. */
static void tasks_are_taken_by_priority_then_age_then_key(void **state)
{
    static const struct {
        int64_t priority;
        int64_t age_us;
    } rows[] = {{0, 5}, {0, 9}, {10, 1}, {-10, 100}, {10, 3}, {0, 9}, {1000, 0}, {-1000, 500}};
    static const int wanted[] = {6, 4, 2, 1, 5, 0, 3, 7};
    enum { COUNT = sizeof rows / sizeof rows[0] };
    struct conformance *c = *state;
    struct task *given[COUNT], *taken[COUNT];

    store_begin(c);
    for (int i = 0; i < COUNT; i++)
        given[i] = given_ready(c, "q", i % 2 ? "t" : "u",
                               order_key(rows[i].priority, T0_US - rows[i].age_us,
                                         ORDER_HIGH_FIRST, 0));
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_from(c, "q", COUNT, taken), COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(taken[i]->key, given[wanted[i]]->key);
    store_rollback(c);
}

static void several_queues_are_one_line(void **state)
{
    struct conformance *c = *state;
    struct task *taken[16];

    store_begin(c);
    given_ready(c, "a", "t", 30);
    given_ready(c, "b", "t", 10);
    given_ready(c, "c", "t", 5); /* not asked for */
    given_ready(c, "b", "u", 20);
    given_ready(c, "a", "u", 15);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_ready(c, (const char *const[]){"a", "b", "none", NULL}, NULL, 16, NULL,
                                NULL, taken), 4);
    for (int i = 1; i < 4; i++)
        assert_true(taken[i - 1]->order_key < taken[i]->order_key);
    claim_all(c, taken, 4);
    store_commit(c);
    assert_int_equal(ready_in(c, "a"), 0);
    assert_int_equal(ready_in(c, "b"), 0);
    assert_int_equal(ready_in(c, "c"), 1);
}

/* E2: a queue named twice must not give a task twice. */
static void a_queue_named_twice_gives_each_task_once(void **state)
{
    struct conformance *c = *state;
    struct task *taken[8];

    store_begin(c);
    given_ready(c, "q", "t", 1);
    given_ready(c, "q", "t", 2);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_ready(c, (const char *const[]){"q", "p", "q", NULL}, NULL, 8, NULL, NULL,
                                taken), 2);
    assert_int_not_equal(taken[0]->key, taken[1]->key);
    claim_all(c, taken, 2);
    store_commit(c);
}

static void type_patterns_choose(void **state)
{
    static const struct {
        const char *types[3];
        uint32_t wanted;
    } rows[] = {{{NULL, NULL, NULL}, 4},        {{"mail.send", NULL, NULL}, 1},
                {{"mail.*", NULL, NULL}, 2},    {{"*", NULL, NULL}, 4},
                {{"none", NULL, NULL}, 0},      {{"mail.*", "pdf", NULL}, 3},
                {{"mail.*", "mail.send", NULL}, 2}};
    static const char *const types[] = {"mail.send", "mail.read", "mail", "pdf"};
    struct conformance *c = *state;
    struct task *taken[8];

    store_begin(c);
    for (int i = 0; i < 4; i++)
        given_ready(c, "q", types[i], i);
    store_commit(c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store_begin(c);
        assert_int_equal(take_ready(c, queue_q, rows[i].types[0] ? rows[i].types : NULL, 8, NULL,
                                    NULL, taken), rows[i].wanted);
        store_rollback(c);
    }
}

struct decide {
    enum admit t;       /* for type "t" */
    enum admit limited; /* for tasks with a limit key */
    uint32_t asked;
};

static enum admit decide(void *ctx, struct str queue, struct str type, struct str limit_key,
                         const struct uuid *category_id)
{
    struct decide *how = ctx;

    how->asked++;
    assert_true(uuid_is_nil(category_id));
    if (str_is(queue, "q") && str_is(type, "t"))
        return how->t;
    return limit_key.data ? how->limited : ADMIT_TAKE;
}

static struct task *given_limited(struct conformance *c, const char *queue, const char *type,
                                  const char *key, int64_t order)
{
    struct task *task = given_task(c, queue, type);

    task->spec.limit_key = str_of(key);
    task->order_key = order;
    insert_task(c, task);
    return task;
}

static void admit_may_skip_a_type_or_stop_a_queue(void **state)
{
    static const struct {
        enum admit answer;
        int64_t wanted[5];
        uint32_t count;
    } rows[] = {{ADMIT_TAKE, {1, 2, 3, 4, 5}, 5},
                {ADMIT_SKIP_TYPE, {2, 3, 5, 0, 0}, 3},
                {ADMIT_STOP_QUEUE, {3, 5, 0, 0, 0}, 2}};
    static const char *const queues[] = {"q", "r", NULL};
    struct conformance *c = *state;
    struct task *taken[8];

    store_begin(c);
    given_ready(c, "q", "t", 1);
    given_ready(c, "q", "u", 2);
    given_ready(c, "r", "t", 3);
    given_ready(c, "q", "t", 4);
    given_ready(c, "r", "u", 5);
    store_commit(c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct decide how = {rows[i].answer, ADMIT_TAKE, 0};

        store_begin(c);
        assert_int_equal(take_ready(c, queues, NULL, 8, decide, &how, taken), rows[i].count);
        for (uint32_t k = 0; k < rows[i].count; k++)
            assert_int_equal(taken[k]->order_key, rows[i].wanted[k]);
        store_rollback(c);
    }
    assert_int_equal(ready_in(c, "q"), 3);
}

/* C5 and the limits per key: parked tasks leave the line until they are unparked. */
static void parked_tasks_leave_the_line_and_come_back_in_order(void **state)
{
    struct conformance *c = *state;
    struct decide how = {ADMIT_TAKE, ADMIT_PARK, 0};
    struct task *limited[3], *taken[8];
    struct uuid *ids;
    uint32_t count;

    store_begin(c);
    for (int i = 0; i < 3; i++)
        limited[i] = given_limited(c, "q", "u", "key", 30 - 10 * i);
    given_ready(c, "q", "u", 40);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_ready(c, queue_q, NULL, 8, decide, &how, taken), 1);
    assert_int_equal(how.asked, 4);
    claim_all(c, taken, 1);
    store_commit(c);
    assert_int_equal(ready_in(c, "q"), 0);
    assert_int_equal(count_of(c, "q", "u", STATUS_PENDING), 3);
    assert_true(read_task(c, &limited[0]->id)->parked);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 8, taken), 0);
    OK(c, c->verbs->parked_find(c->store, STR("q"), STR("key"), 2, &c->arena, &ids, &count,
                                &c->err));
    assert_int_equal(count, 2);
    then_id(ids[0], limited[2]->id);
    then_id(ids[1], limited[1]->id);
    for (uint32_t i = 0; i < count; i++) {
        struct task *task = load_task(c, &ids[i], LOAD_SPEC);

        task->parked = false;
        save_task(c, task);
    }
    assert_int_equal(take_from(c, "q", 8, taken), 2);
    then_id(taken[0]->id, limited[2]->id);
    claim_all(c, taken, 2);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
}

/* A task that was taken and is saved as pending again, unchanged, is still in line. */
static void a_task_given_back_at_once_is_in_line_again(void **state)
{
    struct conformance *c = *state;
    struct task *taken[4];

    store_begin(c);
    given_ready(c, "q", "t", 1);
    given_ready(c, "q", "t", 2);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 4, taken), 2);
    save_task(c, taken[0]);
    claim_task(taken[1], "w");
    save_task(c, taken[1]);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 4, taken), 1);
    assert_int_equal(taken[0]->order_key, 1);
    store_rollback(c);
}

static void insert_many(struct conformance *c, uint32_t count, int64_t first_order)
{
    store_begin(c);
    for (uint32_t i = 0; i < count; i++)
        given_ready(c, "q", "t", first_order + 2 * (int64_t)i);
    store_commit(c);
}

/* Takes all, `step` at a time; every order key is above the one before. */
static uint32_t drain(struct conformance *c, uint32_t step)
{
    struct task *taken[1024];
    int64_t last = INT64_MIN;
    uint32_t all = 0, count;

    do {
        store_begin(c);
        count = take_from(c, "q", step, taken);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(taken[i]->order_key > last);
            assert_int_equal(taken[i]->status, STATUS_PENDING);
            last = taken[i]->order_key;
        }
        claim_all(c, taken, count);
        store_commit(c);
        all += count;
    } while (count > 0);
    assert_int_equal(ready_in(c, "q"), 0);
    return all;
}

static void a_long_line_is_taken_completely_and_in_order(void **state)
{
    static const uint32_t steps[] = {1000, 255, 257};
    struct conformance *c = *state;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        insert_many(c, MANY, 1000000);
        assert_int_equal(ready_in(c, "q"), MANY);
        assert_int_equal(drain(c, steps[i]), MANY);
    }
    assert_int_equal(verify_findings(c), 0);
}

/* New tasks in front of, inside and behind what was looked at already. */
static void tasks_that_come_while_a_long_line_is_taken_find_their_place(void **state)
{
    struct conformance *c = *state;
    struct task *taken[8];

    insert_many(c, MANY, 1000000);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 3, taken), 3); /* the head is in memory now */
    claim_all(c, taken, 3);
    for (int64_t i = 0; i < 1200; i++) {
        given_ready(c, "q", "t", 1000101 + 2 * i); /* inside, more than a window holds */
        given_ready(c, "q", "t", 100 + i);         /* in front */
    }
    given_ready(c, "q", "t", 99000000);
    store_commit(c);
    assert_int_equal(ready_in(c, "q"), MANY - 3 + 2 * 1200 + 1);
    assert_int_equal(drain(c, 300), MANY - 3 + 2 * 1200 + 1);
}

/* Cancelled, deleted and reprioritized (C5) at the head, inside and beyond the window. */
static void tasks_that_leave_a_long_line_are_not_taken(void **state)
{
    static const uint32_t places[] = {0, 1, 100, 255, 256, 257, 1023, 1024, 1500, MANY - 1};
    enum { PLACES = sizeof places / sizeof places[0] };
    struct conformance *c = *state;
    struct task *taken[8], *last = NULL;
    struct task **given = arena_alloc_array(&c->arena, MANY, sizeof *given);

    store_begin(c);
    for (uint32_t i = 0; i < MANY; i++)
        given[i] = given_ready(c, "q", "t", 1000000 + 2 * (int64_t)i);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 1, taken), 1);
    store_rollback(c);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 2, taken), 2); /* given[0] and [1] */
    taken[0]->status = STATUS_CANCELLED;
    save_task(c, taken[0]);
    OK(c, c->verbs->tasks_delete(c->store, &taken[1], 1, &c->err));
    for (uint32_t i = 2; i < PLACES; i++) {
        struct task *task = load_task(c, &given[places[i]]->id, LOAD_SPEC);

        if (i % 3 == 0) {
            task->status = STATUS_CANCELLED;
            save_task(c, task);
        } else if (i % 3 == 1) {
            OK(c, c->verbs->tasks_delete(c->store, &task, 1, &c->err));
        } else {
            task->order_key = 500 + i; /* to the front */
            save_task(c, task);
            last = task;
        }
    }
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 8, taken), 8);
    assert_int_equal(taken[0]->order_key, 502);
    assert_int_equal(taken[2]->order_key, last->order_key);
    store_rollback(c);
    assert_int_equal(drain(c, 500), MANY - 2 - 5);
}

static int64_t reversed(void *ctx, int64_t priority, int64_t old_key)
{
    ++*(int64_t *)ctx;
    return 100000000 + priority * 1000000 - old_key;
}

/* C5: a new order holds for what waits already, parked or not, also when the head was looked at. */
static void a_new_order_holds_for_all_that_waits(void **state)
{
    struct conformance *c = *state;
    struct task *taken[4], *low, *parked, *running;
    int64_t asked = 0;

    insert_many(c, MANY, 1000000);
    store_begin(c);
    low = given_task(c, "q", "u");
    low->priority = 50;
    low->order_key = 2;
    insert_task(c, low);
    parked = given_limited(c, "q", "u", "k", 1);
    parked->parked = true;
    save_task(c, parked);
    running = given_ready(c, "q", "t", 77);
    claim_task(running, "w");
    save_task(c, running);
    given_ready(c, "other", "t", 5);
    assert_int_equal(take_from(c, "q", 1, taken), 1);
    assert_int_equal(taken[0]->order_key, 2);
    save_task(c, taken[0]); /* given back */
    OK(c, c->verbs->ready_reorder(c->store, STR("q"), reversed, &asked, &c->err));
    store_commit(c);
    assert_int_equal(asked, MANY + 2);
    assert_int_equal(read_task(c, &parked->id)->order_key, 99999999);
    assert_int_equal(read_task(c, &running->id)->order_key, 77);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 2, taken), 2);
    assert_int_equal(taken[0]->order_key, 100000000 - (1000000 + 2 * (MANY - 1)));
    assert_int_equal(taken[1]->order_key, taken[0]->order_key + 2);
    assert_int_equal(take_from(c, "other", 1, taken), 1);
    assert_int_equal(taken[0]->order_key, 5);
    store_rollback(c);
    assert_int_equal(drain(c, 700), MANY + 1);
    assert_int_equal(verify_findings(c), 0);
}

static void namespaces_do_not_mix(void **state)
{
    struct conformance *c = *state;
    struct task *task, *taken[4];

    store_begin(c);
    task = given_task(c, "q", "t");
    task->spec.namespace_name = STR("other");
    task->spec.queue = queue_name_full(STR("other"), STR("q"), &c->arena);
    insert_task(c, task);
    store_commit(c);
    assert_int_equal(ready_in(c, "q"), 0);
    assert_int_equal(c->verbs->ready_count(c->store, task->spec.queue), 1);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 4, taken), 0);
    store_rollback(c);
    then_str(read_task(c, &task->id)->spec.namespace_name, STR("other"));
}

static struct task *given_of(struct conformance *c, const struct uuid *category, int64_t order_key)
{
    struct task *task = given_task(c, "q", "t");

    task->order_key = order_key;
    task->spec.category_id = *category;
    insert_task(c, task);
    return task;
}

static enum admit take_any(void *ctx, struct str queue, struct str type, struct str limit_key,
                           const struct uuid *category_id)
{
    (void)ctx;
    (void)queue;
    (void)type;
    (void)limit_key;
    (void)category_id;
    return ADMIT_TAKE;
}

static uint32_t take_of(struct conformance *c, const struct uuid *categories, uint32_t count,
                        struct task **taken)
{
    const struct str queue = STR("q");
    struct ready_want want = {.queues = &queue, .queues_count = 1, .categories = categories,
                              .categories_count = count, .max = 16, .admit = take_any};
    uint32_t found = 0;

    OK(c, c->verbs->ready_take(c->store, &want, &c->arena, taken, &found, &c->err));
    return found;
}

/* D12: a claim that names categories takes their tasks only, in the order of the line; the nil id
 * names those without one. Lanes and counts hold whatever becomes of the tasks, however little of
 * them was loaded. */
static void categories_choose(void **state)
{
    static const struct uuid none;
    static const int wanted[] = {1, 2, 4, 5};
    struct conformance *c = *state;
    struct uuid a, b, either[2] = {none, none};
    struct task *given[6], *taken[16], *task;

    store_begin(c);
    a = given_category(c, "cat-a")->id;
    b = given_category(c, "cat-b")->id;
    for (int i = 0; i < 6; i++)
        given[i] = given_of(c, i % 3 == 0 ? &a : i % 3 == 1 ? &b : &none, 10 + i);
    store_commit(c);
    assert_int_equal(count_of(c, "q", "t", STATUS_PENDING), 6);
    store_begin(c);
    assert_int_equal(take_of(c, &a, 0, taken), 0); /* none of those it names is there */
    either[0] = b;
    assert_int_equal(take_of(c, either, 2, taken), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(taken[i]->key, given[wanted[i]]->key);
    store_rollback(c);
    store_begin(c);
    assert_int_equal(take_of(c, &a, 1, taken), 2);
    claim_all(c, taken, 2);
    store_commit(c);
    store_begin(c);
    task = load_task(c, &given[0]->id, LOAD_STATE);
    task->status = STATUS_PENDING; /* given back, its spec not loaded */
    task->lease.held = false;
    save_task(c, task);
    task = load_task(c, &given[3]->id, LOAD_SPEC);
    OK(c, c->verbs->tasks_delete(c->store, &task, 1, &c->err));
    store_commit(c);
    assert_int_equal(ready_in(c, "q"), 5);
    store_begin(c);
    assert_int_equal(take_of(c, &b, 1, taken), 2);
    assert_int_equal(take_of(c, &a, 1, taken), 1);
    assert_int_equal(taken[0]->key, given[0]->key);
    assert_true(uuid_eq(&taken[0]->spec.category_id, &a));
    store_rollback(c);
    assert_int_equal(verify_findings(c), 0);
}

const struct conformance_test conformance_ready_tests[] = {
    CONFORMANCE_TEST(tasks_are_taken_by_priority_then_age_then_key),
    CONFORMANCE_TEST(several_queues_are_one_line),
    CONFORMANCE_TEST(a_queue_named_twice_gives_each_task_once),
    CONFORMANCE_TEST(type_patterns_choose),
    CONFORMANCE_TEST(admit_may_skip_a_type_or_stop_a_queue),
    CONFORMANCE_TEST(parked_tasks_leave_the_line_and_come_back_in_order),
    CONFORMANCE_TEST(a_task_given_back_at_once_is_in_line_again),
    CONFORMANCE_TEST(a_long_line_is_taken_completely_and_in_order),
    CONFORMANCE_TEST(tasks_that_come_while_a_long_line_is_taken_find_their_place),
    CONFORMANCE_TEST(tasks_that_leave_a_long_line_are_not_taken),
    CONFORMANCE_TEST(a_new_order_holds_for_all_that_waits),
    CONFORMANCE_TEST(namespaces_do_not_mix),
    CONFORMANCE_TEST(categories_choose),
    CONFORMANCE_END};
