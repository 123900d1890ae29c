/* Conformance: finding tasks by what they wait for: parked, due, held, settled, relatives. */
#include "conformance.h"

static void parked_keys_come_one_by_one_and_in_order(void **state)
{
    static const char *const limit_keys[] = {"b", "a", "b", "c", "a"};
    struct conformance *c = *state;
    struct str *keys, after = STR_NONE, before = STR_NONE;
    uint32_t count, all = 0;

    store_begin(c);
    for (int i = 0; i < 5; i++) {
        struct task *task = given_task(c, i == 3 ? "q2" : "q", "t");

        task->spec.limit_key = str_of(limit_keys[i]);
        task->parked = true;
        insert_task(c, task);
    }
    store_commit(c);
    do {
        OK(c, c->verbs->parked_keys(c->store, after, 2, &c->arena, &keys, &count, &c->err));
        for (uint32_t i = 0; i < count; i++, all++) {
            assert_true(!before.data || str_compare(before, keys[i]) < 0);
            assert_true(str_starts(keys[i], all < 2 ? STR("q\x1f") : STR("q2\x1f")));
            before = after = keys[i];
        }
    } while (count == 2);
    assert_int_equal(all, 3); /* q: a, b; q2: c */
}

static struct uuid given_delayed(struct conformance *c, int64_t at_us, bool by_wall)
{
    struct task *task = given_task(c, "q", "t");

    task->status = STATUS_DELAYED;
    task->scheduled_at_us = at_us;
    task->by_wall = by_wall;
    insert_task(c, task);
    return task->id;
}

static uint32_t find_due(struct conformance *c, int64_t now_us, int64_t wall_us, uint32_t limit,
                         struct uuid **ids, int64_t *next_in_us)
{
    uint32_t count = 0;

    OK(c, c->verbs->due_find(c->store, now_us, wall_us, limit, &c->arena, ids, &count, next_in_us,
                             &c->err));
    return count;
}

/* Times that were asked for follow the wall clock, delays the engine's. */
static void due_tasks_are_found_by_their_own_clock(void **state)
{
    struct conformance *c = *state;
    struct uuid early, late, wall, *ids;
    int64_t next_in_us;

    assert_int_equal(find_due(c, T0_US, T0_US, 10, &ids, &next_in_us), 0);
    assert_true(next_in_us == INT64_MAX);
    store_begin(c);
    late = given_delayed(c, T0_US + 20, false);
    early = given_delayed(c, T0_US + 10, false);
    wall = given_delayed(c, T0_US + 15, true);
    store_commit(c);
    assert_int_equal(find_due(c, T0_US, T0_US, 10, &ids, &next_in_us), 0);
    assert_int_equal(next_in_us, 10);
    assert_int_equal(find_due(c, T0_US, T0_US + 14, 10, &ids, &next_in_us), 0);
    assert_int_equal(next_in_us, 1);
    assert_int_equal(find_due(c, T0_US, T0_US + 15, 10, &ids, &next_in_us), 1);
    then_id(ids[0], wall);
    assert_int_equal(find_due(c, T0_US + 10, T0_US, 10, &ids, &next_in_us), 1);
    then_id(ids[0], early);
    assert_true(next_in_us <= 0);
    assert_int_equal(find_due(c, T0_US + 20, T0_US, 10, &ids, &next_in_us), 2);
    then_id(ids[0], early);
    then_id(ids[1], late);
    assert_int_equal(find_due(c, T0_US + 99, T0_US + 99, 10, &ids, &next_in_us), 3);
}

static void due_tasks_beyond_the_limit_come_with_the_next_look(void **state)
{
    struct conformance *c = *state;
    struct uuid *ids;
    int64_t next_in_us;
    uint32_t all = 0, count;

    store_begin(c);
    for (int i = 0; i < 25; i++)
        given_delayed(c, T0_US + i, false);
    do {
        count = find_due(c, T0_US + 100, T0_US, 10, &ids, &next_in_us);
        for (uint32_t i = 0; i < count; i++) {
            struct task *task = load_task(c, &ids[i], LOAD_SPEC);

            task->status = STATUS_PENDING;
            save_task(c, task);
        }
        all += count;
    } while (count > 0);
    assert_int_equal(all, 25);
    assert_true(next_in_us == INT64_MAX);
    store_commit(c);
}

static uint32_t count_held(struct conformance *c, struct str worker, uint32_t limit)
{
    struct task *tasks[64];
    int64_t after = 0;
    uint32_t all = 0, count;

    do {
        OK(c, c->verbs->held_find(c->store, worker, after, limit, &c->arena, tasks, &count,
                                  &c->err));
        for (uint32_t i = 0; i < count; i++) {
            assert_true(tasks[i]->key > after);
            assert_true(tasks[i]->lease.held && tasks[i]->has_spec);
            assert_true(!worker.data || str_eq(tasks[i]->lease.worker_id, worker));
            after = tasks[i]->key;
        }
        all += count;
    } while (count == limit);
    return all;
}

static void held_tasks_are_found_by_worker_page_by_page(void **state)
{
    struct conformance *c = *state;
    struct task *task = NULL;

    store_begin(c);
    for (int i = 0; i < 30; i++) {
        task = given_ready(c, "q", "t", i);
        if (i % 3 == 2)
            continue;
        claim_task(task, i % 3 ? "w1" : "w0");
        save_task(c, task);
    }
    task = given_ready(c, "q", "t", 99);
    claim_task(task, "w0");
    task->status = STATUS_CANCELLED; /* its handler still runs */
    save_task(c, task);
    store_commit(c);
    for (uint32_t limit = 3; limit < 60; limit += 20) {
        assert_int_equal(count_held(c, STR_NONE, limit), 21);
        assert_int_equal(count_held(c, STR("w0"), limit), 11);
        assert_int_equal(count_held(c, STR("w1"), limit), 10);
        assert_int_equal(count_held(c, STR("w"), limit), 0);
    }
}

static void settled_tasks_are_found_by_status_page_by_page(void **state)
{
    static const enum status settled[] = {STATUS_BLOCKED,   STATUS_PAUSED,    STATUS_ORPHANED,
                                          STATUS_RECOVERING, STATUS_PARTIAL,  STATUS_COMPLETED,
                                          STATUS_FAILED,    STATUS_DEAD_LETTER, STATUS_CANCELLED};
    struct conformance *c = *state;
    struct task *tasks[8];

    store_begin(c);
    for (int i = 0; i < 7 * 9; i++) {
        struct task *task = given_task(c, i % 2 ? "q" : "r", "t");

        task->status = settled[i % 9];
        insert_task(c, task);
    }
    store_commit(c);
    for (int s = 0; s < 9; s++) {
        int64_t after = 0;
        uint32_t all = 0, count;

        do {
            OK(c, c->verbs->status_find(c->store, settled[s], after, 3, &c->arena, tasks, &count,
                                        &c->err));
            for (uint32_t i = 0; i < count; i++) {
                assert_true(tasks[i]->key > after && tasks[i]->has_spec);
                assert_int_equal(tasks[i]->status, settled[s]);
                after = tasks[i]->key;
            }
            all += count;
        } while (count == 3);
        assert_int_equal(all, 7);
    }
}

/* C4 */
static void dependents_are_found_page_by_page_with_their_kind(void **state)
{
    struct conformance *c = *state;
    struct task *parent;
    struct dependent *found;
    struct uuid after = {{0}};
    uint32_t all = 0, kinds[DEPENDENCY_COUNT] = {0}, count;

    store_begin(c);
    parent = given_ready(c, "q", "t", 1);
    for (uint32_t i = 0; i < 25; i++) {
        struct task_dependency dependency = {.task_id = parent->id,
                                             .kind = (enum dependency)(i % 3)};
        struct task *task = given_task(c, "q", "t");

        task->status = STATUS_BLOCKED;
        task->waits.open_dependencies = 1;
        insert_task(c, task);
        OK(c, c->verbs->dependencies_insert(c->store, &task->id, &dependency, 1, &c->err));
    }
    store_commit(c);
    do {
        OK(c, c->verbs->dependents_find(c->store, &parent->id, &after, 10, &c->arena, &found,
                                        &count, &c->err));
        for (uint32_t i = 0; i < count; i++) {
            assert_true(memcmp(found[i].task_id.bytes, after.bytes, 16) > 0);
            after = found[i].task_id;
            kinds[found[i].kind]++;
        }
        all += count;
    } while (count == 10);
    assert_int_equal(all, 25);
    assert_int_equal(kinds[DEPENDENCY_SUCCESS], 9);
    assert_int_equal(kinds[DEPENDENCY_FAILURE], 8);
    assert_int_equal(verify_findings(c), 0);
    store_reopen(c);
    assert_true(c->store->has_dependencies);
}

static void then_outputs(struct conformance *c, const struct uuid *id, bool children, bool reader)
{
    struct output *outputs;
    int64_t after = 0;
    uint32_t all = 0, count;

    do {
        OK(c, reader ? c->verbs->read_outputs(c->reader, id, children, after, 10, &c->arena,
                                              &outputs, &count, &c->err)
                     : c->verbs->outputs_find(c->store, id, children, after, 10, &c->arena,
                                              &outputs, &count, &c->err));
        for (uint32_t i = 0; i < count; i++, all++) {
            assert_true(outputs[i].key > after);
            after = outputs[i].key;
            assert_int_equal(outputs[i].status, all % 2 ? STATUS_FAILED : STATUS_COMPLETED);
            then_str(outputs[i].ref, text_of(c, "r%u", all));
            then_str(outputs[i].result, all % 2 ? STR_NONE : text_of(c, "{\"n\":%u}", all));
        }
    } while (count == 10);
    assert_int_equal(all, 25);
}

/* C4 */
static void outputs_of_parents_and_children_come_in_order_and_completely(void **state)
{
    struct conformance *c = *state;
    struct task *task;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    for (uint32_t i = 0; i < 50; i++) {
        struct task *relative = given_task(c, "q", "t");
        struct task_dependency dependency = {.task_id = relative->id,
                                             .kind = DEPENDENCY_COMPLETION};

        relative->spec.origin.ref = text_of(c, "r%u", i % 25);
        relative->status = i % 25 % 2 ? STATUS_FAILED : STATUS_COMPLETED;
        if (i >= 25)
            relative->spec.origin.parent_id = task->id;
        insert_task(c, relative);
        if (i < 25)
            OK(c, c->verbs->dependencies_insert(c->store, &task->id, &dependency, 1, &c->err));
        if (relative->status == STATUS_COMPLETED)
            OK(c, c->verbs->result_put(c->store, &relative->id,
                                       text_of(c, "{\"n\":%u}", i % 25), T0_US, &c->err));
    }
    store_commit(c);
    for (int i = 0; i < 4; i++)
        then_outputs(c, &task->id, i / 2, i % 2);
}

const struct conformance_test conformance_find_tests[] = {
    CONFORMANCE_TEST(parked_keys_come_one_by_one_and_in_order),
    CONFORMANCE_TEST(due_tasks_are_found_by_their_own_clock),
    CONFORMANCE_TEST(due_tasks_beyond_the_limit_come_with_the_next_look),
    CONFORMANCE_TEST(held_tasks_are_found_by_worker_page_by_page),
    CONFORMANCE_TEST(settled_tasks_are_found_by_status_page_by_page),
    CONFORMANCE_TEST(dependents_are_found_page_by_page_with_their_kind),
    CONFORMANCE_TEST(outputs_of_parents_and_children_come_in_order_and_completely),
    CONFORMANCE_END};
