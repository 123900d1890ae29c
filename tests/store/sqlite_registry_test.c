/* Workers, queues, outbox, facts and counts of the SQLite store come back as they were put, and a
 * task is read with everything that belongs to it (A10). */
#include "sqlite_fixture.h"

#include "store/rows/rows_verbs.h"
#include "store/rows/rows_registry.h"

static void a_queue_comes_back_with_all_its_limits(void **state)
{
    struct fixture *fixture = *state;
    const struct type_limit limits[] = {{STR("mail.\"send\""), 3, {10, 1000, 20}},
                                        {STR("x"), 0, {0, 0, 0}}};
    struct queue_row put = {.namespace_name = STR("default"),
                            .rule = {.name = STR("mail"),
                                     .concurrency = 7,
                                     .rate = {1, 2, 3},
                                     .key_concurrency = 4,
                                     .key_rate = {5, 6, 7},
                                     .type_limits = limits,
                                     .type_limits_count = 2,
                                     .priority_order = ORDER_LOW_FIRST,
                                     .ageing_ms = 9},
                            .paused_at_us = NOW_US,
                            .created_at_us = 1,
                            .updated_at_us = 2};
    struct queue_row *queues;
    uint32_t count;

    fixture_begin(fixture);
    assert_int_equal(rows_queue_put(fixture->store, &put, &fixture->err), 0);
    put.updated_at_us = 3;
    assert_int_equal(rows_queue_put(fixture->store, &put, &fixture->err), 0);
    fixture_commit(fixture);
    assert_int_equal(rows_queues_load(fixture->store, &fixture->arena, &queues, &count,
                                        &fixture->err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(queues[0].paused_at_us, NOW_US);
    assert_int_equal(queues[0].updated_at_us, 3);
    assert_int_equal(queues[0].rule.rate.burst, 3);
    assert_int_equal(queues[0].rule.key_rate.count, 5);
    assert_int_equal(queues[0].rule.priority_order, ORDER_LOW_FIRST);
    assert_int_equal(queues[0].rule.type_limits_count, 2);
    assert_true(str_is(queues[0].rule.type_limits[0].type, "mail.\"send\""));
    assert_int_equal(queues[0].rule.type_limits[0].rate.burst, 20);
    assert_int_equal(queues[0].rule.type_limits[0].concurrency, 3);
}

static void a_worker_is_put_changed_and_deleted(void **state)
{
    struct fixture *fixture = *state;
    struct worker_row worker = {.id = STR("w1"),
                                .hostname = STR("h"),
                                .queues = STR("[\"a\"]"),
                                .pool_size = 4,
                                .lease_until_us = NOW_US,
                                .is_leader = true,
                                .errored = true};
    struct worker_row *workers;
    uint32_t count;

    fixture_begin(fixture);
    assert_int_equal(rows_worker_put(fixture->store, &worker, &fixture->err), 0);
    worker.pool_size = 5;
    assert_int_equal(rows_worker_put(fixture->store, &worker, &fixture->err), 0);
    assert_int_equal(rows_workers_load(fixture->store, &fixture->arena, &workers, &count,
                                         &fixture->err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(workers[0].pool_size, 5);
    assert_true(workers[0].is_leader);
    assert_true(workers[0].errored);
    assert_null(workers[0].types.data);
    assert_int_equal(rows_worker_delete(fixture->store, STR("w1"), &fixture->err), 0);
    assert_int_equal(rows_workers_load(fixture->store, &fixture->arena, &workers, &count,
                                         &fixture->err), 0);
    assert_int_equal(count, 0);
    fixture_commit(fixture);
}

static void the_outbox_gives_what_is_due_and_says_when_the_next_is(void **state)
{
    struct fixture *fixture = *state;
    struct outbox_message *due;
    int64_t next_us;
    uint32_t count;

    fixture_begin(fixture);
    for (int i = 0; i < 3; i++) {
        struct outbox_message message = {.id = uuid7_new(&fixture->ids, NOW_US),
                                         .kind = STR("webhook"),
                                         .target = STR("http://127.0.0.1/"),
                                         .task_id = uuid7_new(&fixture->ids, NOW_US),
                                         .body = STR("{}"),
                                         .next_at_us = NOW_US + i * 10};

        assert_int_equal(rows_outbox_insert(fixture->store, &message, 1, &fixture->err), 0);
    }
#define DUE(now, limit)                                                                       \
    assert_int_equal(rows_outbox_due(fixture->store, (now), (limit), &fixture->arena, &due, \
                                       &count, &next_us, &fixture->err), 0)
    DUE(NOW_US + 10, 10);
    assert_int_equal(count, 2);
    assert_int_equal(next_us, NOW_US + 20);
    assert_int_equal(rows_outbox_save(fixture->store, &due[0], true, &fixture->err), 0);
    due[1].next_at_us = 0;
    due[1].last_error = STR("refused");
    assert_int_equal(rows_outbox_save(fixture->store, &due[1], false, &fixture->err), 0);
    DUE(NOW_US + 10, 10);
    assert_int_equal(count, 0);
    DUE(NOW_US + 20, 1);
    assert_int_equal(count, 1);
    assert_int_equal(next_us, NOW_US + 20);
    assert_int_equal(rows_outbox_save(fixture->store, &due[0], true, &fixture->err), 0);
    DUE(NOW_US + 20, 1);
    assert_int_equal(count, 0);
    assert_true(next_us == INT64_MAX);
#undef DUE
    fixture_commit(fixture);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM outbox WHERE last_error = "
                                          "'refused' AND next_at IS NULL"), 1);
}

static void facts_and_counts_come_back(void **state)
{
    struct fixture *fixture = *state;
    struct task *task = fixture_task(fixture, "q", "t", NOW_US);
    struct lane_count *counts;
    struct str value;
    uint32_t count;

    fixture_begin(fixture);
    assert_int_equal(fixture->store->verbs->tasks_insert(fixture->store, &task, 1, &fixture->err),
                     0);
    assert_int_equal(rows_info_put(fixture->store, "a", STR("1"), &fixture->err), 0);
    assert_int_equal(rows_info_put(fixture->store, "a", STR("2"), &fixture->err), 0);
    fixture_commit(fixture);
    assert_int_equal(rows_info_get(fixture->store, "a", &fixture->arena, &value, &fixture->err),
                     0);
    assert_true(str_is(value, "2"));
    assert_int_equal(rows_info_get(fixture->store, "b", &fixture->arena, &value, &fixture->err),
                     0);
    assert_null(value.data);
    assert_int_equal(rows_counts_load(fixture->store, &fixture->arena, &counts, &count,
                                        &fixture->err), 0);
    assert_int_equal(count, 1);
    assert_true(str_is(counts[0].queue, "q"));
    assert_int_equal(counts[0].status, STATUS_PENDING);
    assert_int_equal(counts[0].tasks, 1);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_true(fixture->store->last_time_us >= NOW_US);
    assert_int_equal(fixture->store->verbs->task_key_next(fixture->store), task->key + 1);
}

static void a10_a_task_is_read_with_data_result_parents_and_the_lease_that_counts(void **state)
{
    struct fixture *fixture = *state;
    const struct store_verbs *verbs = fixture->store->verbs;
    struct task *parent = fixture_task(fixture, "q", "t", NOW_US);
    struct task *task = fixture_task(fixture, "q", "t", NOW_US);
    struct task_dependency dependency = {.task_id = parent->id, .kind = DEPENDENCY_COMPLETION};
    struct worker_row worker = {.id = STR("w1"), .lease_until_us = NOW_US + 500};
    struct task *tasks[] = {parent, task};
    struct task_dependency *dependencies;
    struct output *outputs;
    struct task *read;
    struct uuid other;
    struct str payload;
    int64_t created_us;
    uint32_t count;

    parent->status = STATUS_COMPLETED;
    parent->spec.origin.ref = STR("first");
    task->status = STATUS_RUNNING;
    task->lease.held = true;
    task->lease.worker_id = STR("w1");
    task->lease.token = 1;
    task->lease.until_us = NOW_US + 100;
    task->data = STR("{\"d\":1}");
    task->has_data = true;
    fixture_begin(fixture);
    assert_int_equal(verbs->tasks_insert(fixture->store, tasks, 2, &fixture->err), 0);
    assert_int_equal(verbs->dependencies_insert(fixture->store, &task->id, &dependency, 1,
                                                &fixture->err), 0);
    assert_int_equal(verbs->result_put(fixture->store, &parent->id, STR("41"), NOW_US,
                                       &fixture->err), 0);
    assert_int_equal(verbs->result_put(fixture->store, &parent->id, STR("42"), NOW_US + 1,
                                       &fixture->err), 0);
    assert_int_equal(verbs->worker_put(fixture->store, &worker, &fixture->err), 0);
    fixture_commit(fixture);
    assert_int_equal(verbs->read_task(fixture->reader, &task->id, &fixture->arena, &read,
                                      &fixture->err), 0);
    assert_non_null(read);
    assert_true(str_is(read->data, "{\"d\":1}"));
    assert_true(str_is(read->spec.queue, "q"));
    assert_int_equal(read->lease.until_us, NOW_US + 500);
    assert_int_equal(verbs->read_dependencies(fixture->reader, &task->id, &fixture->arena,
                                              &dependencies, &count, &fixture->err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(dependencies[0].kind, DEPENDENCY_COMPLETION);
    assert_int_equal(verbs->read_outputs(fixture->reader, &task->id, false, 0, 10,
                                         &fixture->arena, &outputs, &count, &fixture->err), 0);
    assert_int_equal(count, 1);
    assert_true(str_is(outputs[0].ref, "first"));
    assert_true(str_is(outputs[0].result, "42"));
    assert_int_equal(verbs->read_result(fixture->reader, &parent->id, &fixture->arena, &payload,
                                        &created_us, &fixture->err), 0);
    assert_true(str_is(payload, "42"));
    assert_int_equal(created_us, NOW_US + 1);
    other = task->id;
    other.bytes[0] ^= 1;
    assert_int_equal(verbs->read_task(fixture->reader, &other, &fixture->arena, &read,
                                      &fixture->err), 0);
    assert_null(read);
}

static void a_reader_cannot_write(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(sqlite3_exec(fixture->reader->sql.db, "DELETE FROM lanes", NULL, NULL, NULL),
                     SQLITE_READONLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_queue_comes_back_with_all_its_limits),
        STORE_TEST(a_worker_is_put_changed_and_deleted),
        STORE_TEST(the_outbox_gives_what_is_due_and_says_when_the_next_is),
        STORE_TEST(facts_and_counts_come_back),
        STORE_TEST(a10_a_task_is_read_with_data_result_parents_and_the_lease_that_counts),
        STORE_TEST(a_reader_cannot_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
