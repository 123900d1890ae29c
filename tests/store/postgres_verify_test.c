/* Damage to a PostgreSQL store: verify names each kind of it (F-D6), as on SQLite, and besides rows
 * of what tasks wait for that do not fit their states. The damage is done within a transaction of
 * the store's own connection, looked at there and rolled back. For this store only; what every
 * store must do is in conformance_*.c. */
#include "conformance.h"

#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "pg_schema.h"

#include <stdlib.h>
#include <string.h>

/* Tasks 1 (held, with everything), 2 (blocked by 1), 3 (ready), 4 (parked), 5 (delayed). */
static void given_others(struct conformance *c)
{
    struct task *parked = given_task(c, "q", "t"), *delayed;

    parked->spec.limit_key = STR("k");
    parked->parked = true;
    insert_task(c, parked);
    delayed = given_task(c, "q", "t");
    delayed->status = STATUS_DELAYED;
    delayed->scheduled_at_us = T0_US + SECOND_US;
    insert_task(c, delayed);
}

static void given_history(struct conformance *c, const struct task *task,
                          const struct execution *execution)
{
    struct task_event event = {.id = uuid7_new(&c->ids, T0_US), .task_key = task->key, .seq = 1,
                               .status = STATUS_PENDING, .created_at_us = T0_US};
    struct checkpoint checkpoint = {.id = uuid7_new(&c->ids, T0_US), .name = STR("c"),
                                    .data = STR("{\"a\":1}"), .created_at_us = T0_US};
    struct log_entry log = {.id = uuid7_new(&c->ids, T0_US), .message = STR("line"),
                            .execution_id = execution->id, .logged_at_us = T0_US};

    OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
    OK(c, c->verbs->executions_insert(c->store, execution, 1, &c->err));
    OK(c, c->verbs->checkpoint_insert(c->store, &task->id, &checkpoint, &c->err));
    OK(c, c->verbs->logs_insert(c->store, &log, 1, &c->err));
    OK(c, c->verbs->result_put(c->store, &task->id, STR("1"), T0_US, &c->err));
}

static void given_everything(struct conformance *c)
{
    struct task *task, *blocked;
    struct task_dependency dependency = {.kind = DEPENDENCY_SUCCESS};
    struct execution execution;
    struct unique unique = {UNIQUE_KEY, STR("default"), STR("t"), STR("k"), 0, {{0}}};

    store_begin(c);
    task = given_task(c, "q", "t");
    task->event_seq = 2;
    task->spec.tags = STR("[\"red\"]");
    task->spec.idempotency_key = STR("k");
    task->spec.payload = STR("{\"b\":1}");
    task->data = STR("{}");
    task->has_data = true;
    claim_task(task, "w");
    execution = given_execution(c, task, T0_US);
    task->lease.execution_key = execution.key;
    task->lease.execution_id = execution.id;
    blocked = given_task(c, "q", "t");
    blocked->status = STATUS_BLOCKED;
    blocked->waits.open_dependencies = 1;
    dependency.task_id = task->id;
    unique.task_key = task->key;
    insert_task(c, task);
    insert_task(c, blocked);
    given_ready(c, "q", "u", 1);
    given_others(c);
    OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    OK(c, c->verbs->dependencies_insert(c->store, &blocked->id, &dependency, 1, &c->err));
    given_history(c, task, &execution);
    store_commit(c);
}

static int setup(void **state)
{
    struct conformance *c = calloc(1, sizeof *c);

    assert_non_null(c);
    pg_schema_make(c->where, sizeof c->where);
    store_open_again(c);
    given_everything(c);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct conformance *c = *state;

    store_close(c);
    pg_schema_drop(c->where);
    arena_deinit(&c->arena);
    free(c);
    return 0;
}

struct damage {
    const char *text;
    const char *told; /* part of a line that names it */
};

static const struct damage damages[] = {
    {"UPDATE lane_counts SET tasks = tasks + 1", "lane_counts: lane "},
    {"INSERT INTO lane_counts VALUES (1, 'parked', 1)", "status parked says 2 tasks, there are 1"},
    {"UPDATE lane_counts SET status = 'claimed' WHERE status = 'held'",
     "status held says 0 tasks, there are 1"},
    {"INSERT INTO key_counts VALUES ('q' || chr(31) || 'k', 1)",
     "key_counts: key k of queue q says 1 held tasks, there are 0"},
    {"DELETE FROM lanes", " has no row in lanes"},
    {"DELETE FROM task_specs WHERE task = 1", " has no row in task_specs"},
    {"DELETE FROM task_states WHERE task = 1", "task_specs: key 1 has no row in task_states"},
    {"UPDATE task_specs SET lane = 2 WHERE task = 1", " has another lane in task_specs"},
    {"UPDATE task_states SET id = '00112233-4455-6677-8899-aabbccddeeff' WHERE task = 3",
     " is stored under key 3, which its id does not carry"},
    {"UPDATE task_states SET held = NULL WHERE task = 1", " is claimed but not held"},
    {"UPDATE task_states SET worker_id = NULL WHERE task = 1", " and held without a worker"},
    {"UPDATE task_states SET lease_token = 0 WHERE task = 1", " and held without a lease"},
    {"UPDATE task_states SET held = true, worker_id = 'w', lease_token = 1 WHERE task = 3",
     " is pending but still held"},
    {"UPDATE task_states SET parked = true WHERE task = 2", " is blocked but parked"},
    {"UPDATE task_states SET attempts = 0 WHERE task = 1", " has 1 executions but only 0 attempts"},
    {"UPDATE task_states SET execution = 99 WHERE task = 1",
     " is held under execution 99, which is not one of its own"},
    {"UPDATE execution_rows SET execution = 99", "key 99, which its id does not carry"},
    {"INSERT INTO execution_rows (execution, id, task, status, attempt_number, lease_token, "
     "claim_seq, created_at) SELECT execution, '00000000-0000-7000-8000-000000400000', task, "
     "status, attempt_number, 9, 3, created_at FROM execution_rows", "key 1 is there 2 times"},
    {"INSERT INTO execution_rows (execution, id, task, status, attempt_number, lease_token, "
     "claim_seq, created_at) SELECT 2, '00000000-0000-7000-8000-000000800000', task, status, "
     "attempt_number, lease_token, 3, created_at FROM execution_rows", "had lease token 1 twice"},
    {"UPDATE task_states SET event_seq = 1 WHERE task = 1",
     " has an event with seq 2 beyond its last, 1"},
    {"UPDATE execution_rows SET claim_seq = 1", " has 2 events with seq 1"},
    {"DELETE FROM task_event_rows", " has not ended and lacks the event that opened it"},
    {"UPDATE task_states SET event_seq = 3 WHERE task = 1", " has only 2 of its 3 events"},
    {"UPDATE task_event_rows SET status = 'failed'",
     " is claimed at seq 2 after it ended as failed"},
    {"UPDATE task_states SET open_dependencies = 2 WHERE task = 2",
     " waits for 2 dependencies, 1 are open"},
    {"UPDATE task_states SET open_dependencies = NULL WHERE task = 2",
     " waits for 0 dependencies, 1 are open"},
    {"UPDATE task_states SET open_children = 1, waits_children = true WHERE task = 2",
     " waits for 1 children, 0 are open"},
    {"UPDATE task_states SET has_data = NULL WHERE task = 1", " and task_data do not agree"},
    {"UPDATE task_checkpoints SET recoverable_data = '{\"a\":2}'",
     "is damaged: its hash is another one"},
    {"UPDATE task_checkpoints SET checkpoint_name = 'd'", "is damaged: its hash is another one"},
    {"DELETE FROM execution_rows", "execution_logs: logs of execution "},
    {"INSERT INTO task_tags VALUES ('default', 'x', 99)", "task_tags: tag x of task key 99"},
    {"INSERT INTO task_data VALUES (99, '{}')", "task_data: data of task key 99"},
    {"INSERT INTO task_uniques VALUES ('default', 'key', 't', 'z', 99)",
     "task_uniques: key z of task key 99"},
    {"UPDATE task_results SET task_id = '00112233-4455-6677-8899-aabbccddeeff'",
     "task_results: result of task 00112233-4455-6677-8899-aabbccddeeff, which is not there"},
    {"UPDATE task_dependencies SET task_id = '00112233-4455-6677-8899-aabbccddeeff'",
     "task_dependencies: dependency of task 00112233-"},
    {"UPDATE task_uniques SET value = 'l'", "task_uniques: key l is not the one task key 1"},
    {"UPDATE task_specs SET payload = '{\"c\":1}' WHERE task = 1", "its sum is another one"},
    {"UPDATE task_results SET payload = '2'", "its sum is another one"},
    {"DELETE FROM ready_rows", " is pending but has no row in ready_rows"},
    {"UPDATE ready_rows SET order_key = 2", ", which is pending, does not fit its state"},
    {"INSERT INTO ready_rows VALUES (1, 1, 1)", ", which is claimed, does not fit its state"},
    {"INSERT INTO ready_rows VALUES (1, 1, 99)", "ready_rows: a row of task key 99"},
    {"DELETE FROM parked_rows", " is parked but has no row in parked_rows"},
    {"UPDATE parked_rows SET parked = 'q'", "parked_rows: a row of task "},
    {"DELETE FROM due_rows", " is delayed but has no row in due_rows"},
    {"UPDATE due_rows SET by_wall = true", ", which is delayed, does not fit its state"},
    {"UPDATE task_states SET scheduled_at = NULL WHERE task = 5",
     ", which is delayed, does not fit its state"},
    {"DELETE FROM held_rows", " is held but has no row in held_rows"},
    {"UPDATE held_rows SET worker_id = 'v'", " is held by another worker than v"},
    {"INSERT INTO held_rows VALUES ('w', 3)", ", which is pending and not held"},
    {"DELETE FROM settled_rows", " is blocked but has no row in settled_rows"},
    {"UPDATE settled_rows SET status = 'paused'", " says paused, but it is blocked"},
    {"INSERT INTO settled_rows VALUES ('pending', 3)", " says pending, but it is pending"},
};

static void note_line(void *ctx, const char *line)
{
    struct buf *lines = ctx;

    buf_text(lines, line);
    buf_byte(lines, '\n');
}

static void look(struct conformance *c, struct buf *lines, int64_t *findings)
{
    buf_reset(lines);
    OK(c, c->verbs->verify(c->store, note_line, lines, findings, &c->err));
    buf_byte(lines, '\0');
    assert_false(lines->failed);
}

static void verify_names_each_kind_of_damage(void **state)
{
    struct conformance *c = *state;
    struct buf lines = BUF_INIT(64 * 1024);
    int64_t findings;

    assert_int_equal(verify_findings(c), 0);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const struct pg_statement statement = {"damage", damages[i].text};

        store_begin(c);
        OK(c, conn_send(&pg_of(c->store)->conn, &statement, &c->err));
        look(c, &lines, &findings);
        store_rollback(c);
        if (findings == 0 || !strstr(lines.data, damages[i].told))
            fail_msg("not named after %s: %s\n%s", damages[i].text, damages[i].told, lines.data);
    }
    buf_deinit(&lines);
    assert_int_equal(verify_findings(c), 0);
}

/* A hundred lines of a kind are printed, and that there are more. */
static void verify_tells_at_most_a_hundred_of_a_kind(void **state)
{
    static const struct pg_statement statement = {
        "damage", "INSERT INTO task_data SELECT key, '{}' FROM generate_series(1000, 1200) AS key"};
    struct conformance *c = *state;
    struct buf lines = BUF_INIT(64 * 1024);
    int64_t findings;

    store_begin(c);
    OK(c, conn_send(&pg_of(c->store)->conn, &statement, &c->err));
    look(c, &lines, &findings);
    store_rollback(c);
    assert_int_equal(findings, 100);
    assert_non_null(strstr(lines.data, "there are more findings of the kind above"));
    buf_deinit(&lines);
}

/* More than are looked at in one go. */
static void every_sum_and_hash_of_a_large_store_is_looked_at(void **state)
{
    struct conformance *c = *state;
    struct buf lines = BUF_INIT(64 * 1024);
    int64_t findings;

    store_begin(c);
    for (int i = 0; i < 1500; i++) {
        struct task *task = given_task(c, "q", "t");
        struct checkpoint checkpoint = {.id = uuid7_new(&c->ids, T0_US), .name = STR("c"),
                                        .data = STR("{}"), .created_at_us = T0_US};

        task->spec.payload = text_of(c, "{\"i\": %d}", i);
        task->order_key = 10 + i;
        insert_task(c, task);
        OK(c, c->verbs->result_put(c->store, &task->id, task->spec.payload, T0_US, &c->err));
        OK(c, c->verbs->checkpoint_insert(c->store, &task->id, &checkpoint, &c->err));
    }
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    pg_schema_run(c->where,
                  "UPDATE task_specs SET payload = '0' WHERE task = (SELECT max(task) FROM "
                  "task_specs); UPDATE task_results SET payload = '0' WHERE task_id = (SELECT id "
                  "FROM task_states ORDER BY id DESC LIMIT 1); UPDATE task_checkpoints SET "
                  "checkpoint_name = 'd' WHERE task_id = (SELECT id FROM task_states ORDER BY id "
                  "DESC LIMIT 1)");
    look(c, &lines, &findings);
    buf_deinit(&lines);
    assert_int_equal(findings, 3);
}

#define VERIFY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void run_text(struct conformance *c, const char *text)
{
    OK(c, conn_text(&pg_of(c->store)->conn, text, &c->err));
}

static void a_statement_that_others_prepared_is_refused(void **state) /* F-J5 */
{
    struct conformance *c = *state;

    OK(c, pg_schema_check(pg_of(c->store), &c->err));
    run_text(c, "PREPARE foreign_one AS SELECT 1");
    assert_int_equal(pg_schema_check(pg_of(c->store), &c->err), -ERR_CONFLICT);
    assert_non_null(strstr(c->err.text, "prepared statement foreign_one"));
    run_text(c, "DEALLOCATE foreign_one");
    OK(c, pg_schema_check(pg_of(c->store), &c->err));
}

static void every_writer_looks_at_the_schema(void **state) /* F-J5 */
{
    struct conformance *c = *state;
    struct store *writer;

    OK(c, c->verbs->writer_open(c->store, &writer, &c->err));
    run_text(c, "CREATE INDEX added ON lanes (type)");
    assert_int_equal(writer->verbs->begin(writer, &c->err), -ERR_STORAGE);
    assert_non_null(strstr(c->err.text, "index added of lanes was added"));
    writer->verbs->rollback(writer);
    run_text(c, "DROP INDEX added");
    OK(c, writer->verbs->begin(writer, &c->err));
    writer->verbs->rollback(writer);
    writer->verbs->close(writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERIFY_TEST(verify_names_each_kind_of_damage),
        VERIFY_TEST(verify_tells_at_most_a_hundred_of_a_kind),
        VERIFY_TEST(a_statement_that_others_prepared_is_refused),
        VERIFY_TEST(every_writer_looks_at_the_schema),
        VERIFY_TEST(every_sum_and_hash_of_a_large_store_is_looked_at),
    };

    return cmocka_run_group_tests_name("postgres_verify", tests, NULL, NULL);
}
