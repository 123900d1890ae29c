/* What people do to an SQLite store by hand while no server has it open: changes through the view
 * `tasks` (E6), the migrations as plain SQL (A11), a newer program's store (F-A15), and damage,
 * which verify names. For this store only; what every store must do is in conformance_*.c. */
#include "conformance.h"

#include "core/task/order.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hand {
    struct conformance c; /* first: its helpers are used */
    char folder[64];
};

static void run_sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
    sqlite3_close(db);
}

/* On the closed store. */
static void by_hand(struct conformance *c, const char *text)
{
    store_close(c);
    run_sql(c->where, text);
    store_open_again(c);
}

static int setup(void **state)
{
    struct hand *hand = calloc(1, sizeof *hand);

    assert_non_null(hand);
    strcpy(hand->folder, "/tmp/perdura-hand-XXXXXX");
    assert_non_null(mkdtemp(hand->folder));
    snprintf(hand->c.where, sizeof hand->c.where, "%s/p.db", hand->folder);
    store_open_again(&hand->c);
    *state = hand;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"p.db", "p.db-wal", "p.db-shm", "p.db-lock",
                                        "p.db-ballast"};
    struct hand *hand = *state;
    char name[WHERE_BYTES];

    store_close(&hand->c);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", hand->folder, names[i]);
        unlink(name);
    }
    rmdir(hand->folder);
    arena_deinit(&hand->c.arena);
    free(hand);
    return 0;
}

/* E6 */
static void sql_on_the_view_raises_updated_at_and_version(void **state)
{
    struct conformance *c = *state;
    struct task *task, *other, *found;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    other = given_ready(c, "q", "t", 2);
    store_commit(c);
    by_hand(c, "UPDATE tasks SET state = 'by hand', progress = 7 WHERE order_key = 1");
    found = read_task(c, &task->id);
    then_str(found->state, STR("by hand"));
    assert_int_equal(found->progress, 7);
    assert_int_equal(found->version, 1);
    assert_true(found->updated_at_us > T0_US);
    assert_int_equal(found->status, STATUS_PENDING);
    assert_int_equal(found->previous_status, STATUS_NONE);
    found = read_task(c, &other->id);
    assert_int_equal(found->version, 0);
    assert_int_equal(found->updated_at_us, T0_US);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: the counts follow too, so that the store stays healthy. */
static void a_status_set_by_hand_is_counted(void **state)
{
    struct conformance *c = *state;
    struct task *taken[4];

    store_begin(c);
    for (int i = 0; i < 3; i++)
        given_ready(c, "q", "t", i);
    store_commit(c);
    by_hand(c, "UPDATE tasks SET status = 'cancelled' WHERE order_key < 2");
    assert_int_equal(count_of(c, "q", "t", STATUS_CANCELLED), 2);
    assert_int_equal(count_of(c, "q", "t", STATUS_PENDING), 1);
    assert_int_equal(ready_in(c, "q"), 1);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    assert_int_equal(take_from(c, "q", 4, taken), 1);
    assert_int_equal(taken[0]->order_key, 2);
    store_rollback(c);
    by_hand(c, "UPDATE tasks SET status = 'pending' WHERE status = 'cancelled'");
    assert_int_equal(ready_in(c, "q"), 3);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: a parked task that is cancelled by hand is no longer parked. */
static void a_parked_task_cancelled_by_hand_leaves_no_trace(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");

    task->spec.limit_key = STR("k");
    task->parked = true;
    store_begin(c);
    insert_task(c, task);
    store_commit(c);
    by_hand(c, "UPDATE tasks SET status = 'cancelled'");
    assert_false(read_task(c, &task->id)->parked);
    assert_int_equal(ready_in(c, "q"), 0);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: a task that a person ends by hand occupies no slot; a cancelled one until it stops. */
static void a_running_task_ended_by_hand_is_no_longer_held(void **state)
{
    struct conformance *c = *state;
    struct task *tasks[2], *found[4];
    uint32_t count;

    store_begin(c);
    for (int i = 0; i < 2; i++) {
        tasks[i] = given_ready(c, "q", "t", i);
        claim_task(tasks[i], "w");
        save_task(c, tasks[i]);
    }
    store_commit(c);
    by_hand(c, "UPDATE tasks SET status = 'failed' WHERE order_key = 0;"
               "UPDATE tasks SET status = 'cancelled' WHERE order_key = 1");
    OK(c, c->verbs->held_find(c->store, STR("w"), 0, 4, &c->arena, found, &count, &c->err));
    assert_int_equal(count, 1);
    then_id(found[0]->id, tasks[1]->id);
    assert_int_equal(found[0]->previous_status, STATUS_CLAIMED);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: nothing is passed over in silence, as on PostgreSQL. */
static void what_is_not_for_sql_is_refused(void **state)
{
    static const char *const refused[] = {
        "UPDATE tasks SET id = x'00112233445566778899aabbccddeeff'",
        "UPDATE tasks SET queue = 'other'",
        "UPDATE tasks SET payload = '{}', state = 'x'",
        "UPDATE tasks SET version = 7",
        "UPDATE tasks SET lease_token = 7",
        "UPDATE tasks SET status = 'running'",
        "UPDATE tasks SET status = 'nonsense'",
        "UPDATE tasks SET status = NULL",
        "UPDATE tasks SET state = NULL",
        "UPDATE tasks SET progress = NULL",
        "UPDATE tasks SET priority = 1001",
        "UPDATE tasks SET retry_count = NULL",
        "UPDATE tasks SET crash_count = -1",
        "UPDATE tasks SET error_details = replace(hex(zeroblob(33)), '0', '[') || replace(hex(zeroblob(33)), '0', ']')",
        "UPDATE tasks SET metadata = '{\"a\":1,\"b\":{\"c\":1,\"c\":2}}'",
        "UPDATE tasks SET recovery_metadata = '[1,-1e400]'",
        "UPDATE tasks SET metadata = '[1]'",
        "UPDATE tasks SET metadata = '{'",
        "UPDATE tasks SET error_details = '{'",
        "UPDATE tasks SET scheduled_at = '2030-01-01'",
        "UPDATE tasks SET scheduled_at = -1",
        "UPDATE tasks SET retry_count = 9223372036854775807",
        "UPDATE tasks SET retry_count = 1000001",
        "UPDATE tasks SET crash_count = 'many'",
        "UPDATE tasks SET crash_count = 1.5",
        "UPDATE tasks SET progress = 7.5",
        "UPDATE tasks SET priority = 0.5",
        "UPDATE tasks SET state = replace(hex(zeroblob(2500000)), '00', 'xx')",
        "UPDATE tasks SET state = replace(hex(zeroblob(51)), '0', 'ä')",
        "UPDATE tasks SET error = hex(zeroblob(2049))",
        "UPDATE tasks SET last_error = hex(zeroblob(2049))",
        "UPDATE tasks SET metadata = json_object('a', hex(zeroblob(8192)))",
        "UPDATE tasks SET error_details = json_quote(hex(zeroblob(8192)))",
        "UPDATE tasks SET recovery_metadata = json_quote(hex(zeroblob(8192)))",
        "UPDATE tasks SET status = 'completed' WHERE order_key = 2", /* another one waits for it */
        "UPDATE tasks SET status = 'cancelled' WHERE idempotency_key = 'k'",
    };
    struct conformance *c = *state;
    struct task *unique = given_task(c, "q", "t"), *first, *waits = given_task(c, "q", "t");
    struct task_dependency dependency;
    sqlite3 *db = NULL;

    unique->spec.idempotency_key = STR("k");
    unique->spec.unique_until = UNIQUE_ENDED;
    waits->status = STATUS_BLOCKED;
    waits->waits.open_dependencies = 1;
    store_begin(c);
    insert_task(c, unique);
    first = given_ready(c, "q", "t", 2);
    dependency = (struct task_dependency){.task_id = first->id, .kind = DEPENDENCY_SUCCESS};
    insert_task(c, waits);
    OK(c, c->verbs->dependencies_insert(c->store, &waits->id, &dependency, 1, &c->err));
    store_commit(c);
    store_close(c);
    assert_int_equal(sqlite3_open(c->where, &db), SQLITE_OK);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (sqlite3_exec(db, refused[i], NULL, NULL, NULL) != SQLITE_CONSTRAINT)
            fail_msg("not refused: %s", refused[i]);
    sqlite3_close(db);
    store_open_again(c);
    assert_int_equal(read_task(c, &first->id)->version, 0);
    assert_int_equal(read_task(c, &unique->id)->version, 0);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: up to the bounds of the API everything goes; what was beyond them stays, and hinders nothing. */
static void what_is_within_the_bounds_is_taken(void **state)
{
    struct conformance *c = *state;
    struct task *task, *found;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    by_hand(c, "UPDATE tasks SET retry_count = 1000000, crash_count = 0,"
               " state = hex(zeroblob(100)), error = hex(zeroblob(2048)),"
               " last_error = hex(zeroblob(2048)),"
               " error_details = json_quote(hex(zeroblob(8191))),"
               " metadata = json_object('a', hex(zeroblob(8188)))");
    found = read_task(c, &task->id);
    assert_int_equal(found->counts.retries, 1000000);
    assert_int_equal(found->state.len, 200);
    assert_int_equal(found->about.metadata.len, 16384);
    assert_int_equal(found->fault.details.len, 16384);
    by_hand(c, "UPDATE task_states SET state = hex(zeroblob(101));"
               "UPDATE task_details SET retry_count = 1000001;"
               "UPDATE tasks SET status = 'cancelled'");
    assert_int_equal(read_task(c, &task->id)->status, STATUS_CANCELLED);
    assert_int_equal(verify_findings(c), 0);
}

/* E6: its place in the line follows its priority. */
static void a_priority_set_by_hand_moves_a_task_in_its_line(void **state)
{
    struct conformance *c = *state;
    struct task *tasks[3], *taken[4];

    store_begin(c);
    for (int i = 0; i < 3; i++)
        tasks[i] = given_ready(c, "q", "t", order_key(0, T0_US + i, ORDER_HIGH_FIRST, 0));
    store_commit(c);
    by_hand(c, "UPDATE tasks SET priority = 5 WHERE order_key = (SELECT max(order_key) FROM tasks)");
    by_hand(c, "UPDATE tasks SET priority = -5 WHERE order_key ="
               " (SELECT min(order_key) FROM tasks WHERE priority = 0)");
    assert_int_equal(read_task(c, &tasks[2]->id)->order_key,
                     order_key(5, tasks[2]->spec.created_at_us, ORDER_HIGH_FIRST, 0));
    store_begin(c);
    assert_int_equal(take_from(c, "q", 4, taken), 3);
    then_id(taken[0]->id, tasks[2]->id);
    then_id(taken[1]->id, tasks[1]->id);
    then_id(taken[2]->id, tasks[0]->id);
    store_rollback(c);
    assert_int_equal(verify_findings(c), 0);
}

/* E6, C5: the trigger works without our program, so it states the rule of core/task/order.c again. */
static void a_priority_set_by_hand_gives_the_key_that_the_engine_gives(void **state)
{
    static const int64_t ageings_ms[] = {0, 1, 60000, INT64_C(86400000) * 3650, INT64_MAX / 2000};
    static const int64_t priorities[] = {7, -7, 1000, -1000, 0};
    struct conformance *c = *state;
    struct task *task;
    char text[512];

    store_begin(c);
    task = given_ready(c, "q", "t", order_key(0, T0_US, ORDER_HIGH_FIRST, 0));
    store_commit(c);
    for (size_t i = 0; i < 2 * sizeof ageings_ms / sizeof ageings_ms[0]; i++)
        for (size_t j = 0; j < sizeof priorities / sizeof priorities[0]; j++) {
            int64_t ageing_ms = ageings_ms[i / 2];
            enum priority_order order = i % 2 ? ORDER_LOW_FIRST : ORDER_HIGH_FIRST;

            snprintf(text, sizeof text,
                     "INSERT OR REPLACE INTO queues (name, priority_order, ageing_ms, created_at,"
                     " updated_at) VALUES ('q', '%s', %lld, 1, 1);"
                     "UPDATE tasks SET priority = %lld",
                     i % 2 ? "low_first" : "high_first", (long long)ageing_ms,
                     (long long)priorities[j]);
            by_hand(c, text);
            assert_int_equal(read_task(c, &task->id)->order_key,
                             order_key(priorities[j], task->spec.created_at_us, order, ageing_ms));
        }
}

/* E6: retention counts from the end, so an end by hand has a time; one that waits again has none. */
static void an_end_set_by_hand_has_its_time_and_loses_it_again(void **state)
{
    struct conformance *c = *state;
    struct task *task, *found;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    OK(c, c->verbs->result_put(c->store, &task->id, STR("1"), T0_US, &c->err));
    store_commit(c);
    by_hand(c, "UPDATE tasks SET status = 'failed'");
    found = read_task(c, &task->id);
    assert_int_equal(found->completed_at_us, found->updated_at_us);
    by_hand(c, "UPDATE tasks SET status = 'delayed'");
    found = read_task(c, &task->id);
    assert_int_equal(found->completed_at_us, 0);
    assert_true(found->scheduled_at_us > T0_US);
    by_hand(c, "UPDATE tasks SET status = 'pending'");
    found = read_task(c, &task->id);
    assert_int_equal(found->order_key, order_key(0, found->updated_at_us, ORDER_HIGH_FIRST, 0));
    assert_int_equal(verify_findings(c), 0);
    by_hand(c, "SELECT CASE WHEN count(*) THEN json('{') END FROM task_results"); /* it is gone */
}

/* A1: the names of the contract can be read with any SQLite shell. */
static void the_contract_tables_can_be_read(void **state)
{
    struct conformance *c = *state;

    store_begin(c);
    given_ready(c, "q", "t", 1);
    store_commit(c);
    by_hand(c, "SELECT id, type, queue, status, state, progress, version, payload, metadata,"
               " created_at, updated_at, worker_id, attempts, last_error, next_retry_at,"
               " claimed_at, started_at, completed_at FROM tasks;"
               "SELECT id, task_id, seq, status, state, detail, actor, created_at FROM task_events;"
               "SELECT task_id, payload, created_at FROM task_results;"
               "SELECT id, description, executed_at, checksum FROM schema_migrations;"
               "SELECT id, task_id, status, attempt_number FROM executions");
}

/* A11: applied with a shell, the program finds nothing left to do. */
static void the_migrations_by_hand_make_the_same_store(void **state)
{
    struct conformance *c = *state;
    struct buf text = BUF_INIT(1024 * 1024);
    struct store_options options = {.allow_network_fs = true, .no_migrate = true};

    OK(c, store_migration_sql(str_of(c->where), &text, &c->err));
    buf_byte(&text, '\0');
    store_close(c);
    assert_int_equal(unlink(c->where), 0);
    run_sql(c->where, text.data);
    buf_deinit(&text);
    OK(c, store_open(&c->store, str_of(c->where), &options, &c->err));
    c->verbs->close(c->store);
    store_open_again(c);
    store_begin(c);
    given_ready(c, "q", "t", 1);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
}

/* F-A15 */
static void a_store_of_a_newer_program_is_refused_with_one_clear_line(void **state)
{
    struct conformance *c = *state;
    struct store_options options = {.allow_network_fs = true};

    store_close(c);
    run_sql(c->where, "INSERT INTO schema_migrations (id, description, executed_at, checksum) "
                      "VALUES ('9000', 'from the future', 1, 'x')");
    assert_int_equal(store_open(&c->store, str_of(c->where), &options, &c->err), -ERR_CONFLICT);
    c->store = NULL;
    assert_non_null(strstr(c->err.text, "9000"));
    assert_null(strchr(c->err.text, '\n'));
    run_sql(c->where, "DELETE FROM schema_migrations WHERE id = '9000';"
                      "UPDATE schema_migrations SET checksum = 'other'");
    assert_int_equal(store_open(&c->store, str_of(c->where), &options, &c->err), -ERR_CONFLICT);
    c->store = NULL;
}

static int64_t progress_of(struct conformance *c, const struct uuid *id)
{
    struct task *task;

    store_begin(c);
    task = load_task(c, id, LOAD_SPEC);
    store_commit(c);
    assert_non_null(task);
    return task->progress;
}

/* The writer remembers what workers hold; the table stays the truth. */
static void what_is_remembered_of_a_held_task_follows_rollbacks_and_hands(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");

    store_begin(c);
    insert_task(c, task);
    claim_task(task, "w");
    task->progress = 5;
    save_task(c, task);
    store_commit(c);
    assert_int_equal(progress_of(c, &task->id), 5);
    store_begin(c);
    task->progress = 7;
    task->about.metadata = STR("{\"a\":1}");
    save_task(c, task);
    store_rollback(c);
    assert_int_equal(progress_of(c, &task->id), 5);
    by_hand(c, "UPDATE tasks SET progress = 9");
    assert_int_equal(progress_of(c, &task->id), 9);
    by_hand(c, "UPDATE task_states SET progress = 11");
    assert_int_equal(progress_of(c, &task->id), 11);
    assert_int_equal(verify_findings(c), 0);
}

static void given_everything(struct conformance *c)
{
    struct task *task = given_task(c, "q", "t"), *blocked = given_task(c, "q", "t");
    struct task_dependency dependency = {.task_id = task->id, .kind = DEPENDENCY_SUCCESS};
    struct execution execution;
    struct task_event event = {.id = uuid7_new(&c->ids, T0_US), .task_key = task->key, .seq = 1,
                               .status = STATUS_PENDING, .created_at_us = T0_US};
    struct checkpoint checkpoint = {.id = uuid7_new(&c->ids, T0_US), .name = STR("c"),
                                    .data = STR("{\"a\":1}"), .created_at_us = T0_US};
    struct log_entry log = {.id = uuid7_new(&c->ids, T0_US), .message = STR("line"),
                            .logged_at_us = T0_US};
    struct unique unique = {UNIQUE_KEY, STR("default"), STR("t"), STR("k"), task->key, {{0}}};

    task->event_seq = 2;
    task->spec.tags = STR("[\"red\"]");
    task->spec.idempotency_key = STR("k");
    task->spec.payload = STR("{\"b\":1}");
    task->data = STR("{}");
    task->has_data = true;
    claim_task(task, "w");
    execution = given_execution(c, task, T0_US);
    task->lease.execution_key = execution.key;
    log.execution_id = execution.id;
    blocked->status = STATUS_BLOCKED;
    blocked->waits.open_dependencies = 1;
    store_begin(c);
    insert_task(c, task);
    insert_task(c, blocked);
    given_ready(c, "q", "u", 1);
    OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    OK(c, c->verbs->dependencies_insert(c->store, &blocked->id, &dependency, 1, &c->err));
    OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    OK(c, c->verbs->checkpoint_insert(c->store, &task->id, &checkpoint, &c->err));
    OK(c, c->verbs->logs_insert(c->store, &log, 1, &c->err));
    OK(c, c->verbs->result_put(c->store, &task->id, STR("1"), T0_US, &c->err));
    store_commit(c);
}

/* E6: no other event ends its attempt; until then it does not wait again. */
static void an_attempt_ends_with_a_status_set_by_hand(void **state)
{
    struct conformance *c = *state;
    sqlite3 *db = NULL;

    given_everything(c);
    store_close(c);
    assert_int_equal(sqlite3_open(c->where, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE tasks SET status = 'pending' WHERE status = 'claimed'",
                                  NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sqlite3_close(db);
    store_open_again(c);
    by_hand(c, "UPDATE tasks SET status = 'orphaned' WHERE status = 'claimed';"
               "SELECT json('{') WHERE NOT EXISTS (SELECT 1 FROM executions WHERE"
               " status = 'failed' AND error_data = '{\"reason\":\"by_hand\"}');"
               "UPDATE tasks SET status = 'pending' WHERE status = 'orphaned'");
    assert_int_equal(verify_findings(c), 0);
}

/* F-D6 in words: each kind of damage is named. */
static void verify_names_each_kind_of_damage(void **state)
{
    static const char *const damages[] = {
        "UPDATE lane_counts SET tasks = tasks + 1",
        "INSERT INTO lane_counts VALUES (1, 'parked', 1)",
        "DELETE FROM lanes",
        "DELETE FROM task_specs WHERE task = 1",
        "DELETE FROM task_states WHERE task = 1",
        "UPDATE task_specs SET lane = 2 WHERE task = 1",
        "UPDATE task_states SET task = 77 WHERE task = 3",
        "UPDATE task_states SET held = NULL WHERE task = 1",
        "UPDATE task_states SET worker_id = NULL WHERE task = 1",
        "UPDATE task_states SET lease_token = 0 WHERE task = 1",
        "UPDATE task_states SET held = 1 WHERE task = 3",
        "UPDATE task_states SET parked = 'q' WHERE task = 1",
        "UPDATE task_states SET attempts = 0 WHERE task = 1",
        "UPDATE task_states SET event_seq = 1 WHERE task = 1",
        "UPDATE execution_rows SET claim_seq = 1",
        "DELETE FROM task_event_rows",
        "UPDATE task_states SET event_seq = 3 WHERE task = 1",
        "UPDATE task_details SET open_dependencies = 2 WHERE task = 2",
        "UPDATE task_details SET open_dependencies = 0 WHERE task = 2",
        "DELETE FROM task_details WHERE task = 2",
        "UPDATE task_states SET details = NULL WHERE task = 2",
        "INSERT INTO task_details (task) VALUES (99)",
        "DELETE FROM task_options WHERE task = 1",
        "UPDATE task_states SET has_data = coalesce(has_data, 0) <> 1 WHERE task = 1",
        "UPDATE task_checkpoints SET recoverable_data = '{\"a\":2}'",
        "UPDATE task_checkpoints SET checkpoint_name = 'd'",
        "DELETE FROM execution_rows",
        "INSERT INTO task_tags VALUES ('default', 'x', 99)",
        "INSERT INTO task_data VALUES (99, '{}')",
        "INSERT INTO task_uniques VALUES ('default', 'key', 't', 'z', 99)",
        "UPDATE task_results SET task_id = x'00112233445566778899aabbccddeeff'",
        "UPDATE task_uniques SET value = 'l'",
        "UPDATE task_specs SET payload_sum = payload_sum + 1",
        "UPDATE task_results SET payload_sum = payload_sum + 1",
    };
    struct conformance *c = *state;
    char save[WHERE_BYTES + 32];

    given_everything(c);
    assert_int_equal(verify_findings(c), 0);
    store_close(c);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        int64_t findings;

        snprintf(save, sizeof save, "VACUUM INTO '%s.new'", c->where);
        run_sql(c->where, save);
        run_sql(c->where, damages[i]);
        store_open_again(c);
        findings = verify_findings(c);
        store_close(c);
        if (findings == 0)
            fail_msg("not found: %s", damages[i]);
        snprintf(save, sizeof save, "%s.new", c->where);
        assert_int_equal(rename(save, c->where), 0);
    }
    store_open_again(c);
    assert_int_equal(verify_findings(c), 0);
}

#define HAND_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HAND_TEST(sql_on_the_view_raises_updated_at_and_version),
        HAND_TEST(a_status_set_by_hand_is_counted),
        HAND_TEST(a_parked_task_cancelled_by_hand_leaves_no_trace),
        HAND_TEST(a_running_task_ended_by_hand_is_no_longer_held),
        HAND_TEST(what_is_not_for_sql_is_refused),
        HAND_TEST(what_is_within_the_bounds_is_taken),
        HAND_TEST(a_priority_set_by_hand_moves_a_task_in_its_line),
        HAND_TEST(a_priority_set_by_hand_gives_the_key_that_the_engine_gives),
        HAND_TEST(an_end_set_by_hand_has_its_time_and_loses_it_again),
        HAND_TEST(the_contract_tables_can_be_read),
        HAND_TEST(the_migrations_by_hand_make_the_same_store),
        HAND_TEST(a_store_of_a_newer_program_is_refused_with_one_clear_line),
        HAND_TEST(what_is_remembered_of_a_held_task_follows_rollbacks_and_hands),
        HAND_TEST(an_attempt_ends_with_a_status_set_by_hand),
        HAND_TEST(verify_names_each_kind_of_damage),
    };

    return cmocka_run_group_tests_name("sqlite_by_hand", tests, NULL, NULL);
}
