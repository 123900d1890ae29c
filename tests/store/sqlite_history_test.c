/* What a task leaves behind, how it is read, pruned, verified and backed up (A9, A10, B3, D9,
 * F-D6, F-D14). */
#include "sqlite_fixture.h"

#include "core/bounds.h"
#include "core/task/checkpoint.h"

#include <sys/stat.h>

#define DAY_US (86400 * INT64_C(1000000))

static struct task *stored_task(struct fixture *fixture, enum status status, int64_t created_us)
{
    struct task *task = fixture_task(fixture, "default", "t", created_us);

    task->status = status;
    task->counts.attempts = 3;
    task->event_seq = 100;
    assert_int_equal(fixture->store->verbs->tasks_insert(fixture->store, &task, 1, &fixture->err),
                     0);
    return task;
}

static void add_event(struct fixture *fixture, const struct task *task, int64_t seq,
                      enum status status, int64_t at_us)
{
    struct task_event event = {.id = uuid7_new(&fixture->ids, at_us),
                               .task_key = task->key,
                               .seq = seq,
                               .status = status,
                               .state = STR("s"),
                               .detail = STR("{\"a\":1}"),
                               .actor = ACTOR_SCHEDULER,
                               .created_at_us = at_us};

    assert_int_equal(fixture->store->verbs->events_insert(fixture->store, &event, 1,
                                                          &fixture->err), 0);
}

static struct execution add_execution(struct fixture *fixture, const struct task *task,
                                      int64_t claim_seq, enum execution_status status,
                                      int64_t at_us)
{
    struct execution execution = {.key = fixture->store->verbs->execution_key_next(fixture->store, 0),
                                  .task_key = task->key,
                                  .status = status,
                                  .attempt_number = claim_seq,
                                  .lease_token = claim_seq,
                                  .worker_id = STR("w1"),
                                  .claim_seq = claim_seq,
                                  .start_seq = claim_seq + 1,
                                  .created_at_us = at_us,
                                  .started_at_us = at_us + 5};

    execution.id = uuid7_new_keyed(&fixture->ids, at_us, execution.key);
    execution.id.bytes[15] = 0;
    assert_int_equal(fixture->store->verbs->executions_insert(fixture->store, &execution, 1,
                                                              &fixture->err), 0);
    return execution;
}

static void add_logs(struct fixture *fixture, const struct execution *execution, uint32_t count)
{
    struct log_entry entries[8] = {{.seq = 0}};

    assert_true(count <= 8);
    for (uint32_t i = 0; i < count; i++) {
        entries[i].id = uuid7_new(&fixture->ids, execution->created_at_us);
        entries[i].execution_id = execution->id;
        entries[i].level = (enum log_severity)(i % SEVERITY_COUNT);
        entries[i].message = arena_format(&fixture->arena, "line %u of 100%%", i);
        entries[i].logged_at_us = execution->created_at_us + i;
    }
    assert_int_equal(fixture->store->verbs->logs_insert(fixture->store, entries, count,
                                                        &fixture->err), 0);
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(entries[i].seq, entries[i - 1].seq + 1);
}

static void a10_events_come_newest_first_with_those_the_executions_tell(void **state)
{
    struct fixture *fixture = *state;
    struct task_event *events;
    struct uuid stranger;
    struct task *task;
    uint32_t count;

    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_COMPLETED, NOW_US);
    add_event(fixture, task, 1, STATUS_PENDING, NOW_US);
    add_execution(fixture, task, 2, EXECUTION_FAILED, NOW_US + 10);
    add_event(fixture, task, 4, STATUS_PENDING, NOW_US + 20);
    add_execution(fixture, task, 5, EXECUTION_COMPLETED, NOW_US + 30);
    add_event(fixture, task, 7, STATUS_COMPLETED, NOW_US + 40);
    fixture_commit(fixture);
    assert_int_equal(fixture->store->verbs->read_events(fixture->reader, &task->id, 0, 100,
                                                        &fixture->arena, &events, &count,
                                                        &fixture->err), 0);
    assert_int_equal(count, 7);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(events[i].seq, 7 - i);
    assert_int_equal(events[1].status, STATUS_RUNNING);
    assert_int_equal(events[2].status, STATUS_CLAIMED);
    assert_true(str_is(events[2].detail, "{\"worker_id\":\"w1\",\"lease_token\":5,\"attempt\":5}"));
    assert_int_equal(events[0].actor, ACTOR_SCHEDULER);
    assert_int_equal(events[1].id.bytes[15], 1);
    assert_int_equal(fixture->store->verbs->read_events(fixture->reader, &task->id, 5, 2,
                                                        &fixture->arena, &events, &count,
                                                        &fixture->err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(events[0].seq, 4);
    assert_int_equal(events[1].seq, 3);
    stranger = task->id;
    stranger.bytes[15] ^= 1;
    assert_int_equal(fixture->store->verbs->read_events(fixture->reader, &stranger, 0, 100,
                                                        &fixture->arena, &events, &count,
                                                        &fixture->err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 7);
}

static void an_execution_is_saved_and_read_back_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    struct execution execution;
    struct execution *read;
    struct task *task;
    uint32_t count;

    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_RUNNING, NOW_US);
    execution = add_execution(fixture, task, 2, EXECUTION_RUNNING, NOW_US);
    add_execution(fixture, task, 4, EXECUTION_RUNNING, NOW_US);
    execution.status = EXECUTION_TIMEOUT;
    execution.failed_at_us = NOW_US + 7;
    execution.error_data = STR("{}");
    assert_int_equal(fixture->store->verbs->executions_save(fixture->store, &execution, 1,
                                                            &fixture->err), 0);
    assert_int_equal(fixture->store->verbs->execution_load(fixture->store, execution.key,
                                                           &fixture->arena, &read, &fixture->err),
                     0);
    fixture_commit(fixture);
    assert_true(uuid_eq(&read->id, &execution.id));
    assert_true(uuid_eq(&read->task_id, &task->id));
    assert_int_equal(read->status, EXECUTION_TIMEOUT);
    assert_int_equal(read->failed_at_us, NOW_US + 7);
    assert_int_equal(read->start_seq, 3);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM executions WHERE duration_ms = 0"),
                     1);
    assert_int_equal(fixture->store->verbs->read_executions(fixture->reader, &task->id, 0, 10,
                                                            &fixture->arena, &read, &count,
                                                            &fixture->err), 0);
    assert_int_equal(count, 2);
    assert_true(uuid_eq(&read[1].id, &execution.id));
    assert_true(str_is(read[1].error_data, "{}"));
}

static struct checkpoint add_checkpoint(struct fixture *fixture, const struct task *task)
{
    struct checkpoint checkpoint = {.id = uuid7_new(&fixture->ids, NOW_US),
                                    .name = STR("page"),
                                    .progress = 10,
                                    .data = STR("{\"n\":1}"),
                                    .created_at_us = NOW_US};

    assert_int_equal(fixture->store->verbs->checkpoint_insert(fixture->store, &task->id,
                                                              &checkpoint, &fixture->err), 0);
    return checkpoint;
}

static void b3_checkpoints_count_up_are_thinned_and_step_back_over_invalid_ones(void **state)
{
    struct fixture *fixture = *state;
    const struct store_verbs *verbs = fixture->store->verbs;
    struct checkpoint *read;
    struct task *task;
    uint32_t count;

    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_RUNNING, NOW_US);
    for (int64_t i = 1; i <= BOUND_CHECKPOINTS_KEPT + 5; i++)
        assert_int_equal(add_checkpoint(fixture, task).seq, i);
    assert_int_equal(verbs->checkpoint_newest(fixture->store, &task->id, &fixture->arena, &read,
                                              &fixture->err), 0);
    assert_int_equal(read->seq, BOUND_CHECKPOINTS_KEPT + 5);
    assert_true(checkpoint_intact(&task->id, read));
    assert_int_equal(verbs->checkpoint_invalidate(fixture->store, &task->id, read->seq,
                                                  &fixture->err), 0);
    assert_int_equal(verbs->checkpoint_newest(fixture->store, &task->id, &fixture->arena, &read,
                                              &fixture->err), 0);
    assert_int_equal(read->seq, BOUND_CHECKPOINTS_KEPT + 4);
    fixture_commit(fixture);
    assert_int_equal(verbs->read_checkpoints(fixture->reader, &task->id, 0, 100, &fixture->arena,
                                             &read, &count, &fixture->err), 0);
    assert_int_equal(count, BOUND_CHECKPOINTS_KEPT);
    assert_false(read[0].valid);
    assert_true(read[1].valid);
    assert_int_equal(read[count - 1].seq, 1);
}

static void d9_logs_are_found_by_level_time_and_text_over_all_executions(void **state)
{
    struct fixture *fixture = *state;
    const struct store_verbs *verbs = fixture->store->verbs;
    struct log_filter filter = {.limit = 100};
    struct log_entry *entries;
    struct execution first;
    struct execution second;
    struct task *task;
    uint32_t count;

    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_RUNNING, NOW_US);
    first = add_execution(fixture, task, 2, EXECUTION_FAILED, NOW_US);
    second = add_execution(fixture, task, 5, EXECUTION_RUNNING, NOW_US + DAY_US);
    add_logs(fixture, &second, 5);
    add_logs(fixture, &first, 5);
    add_logs(fixture, &second, 3);
    fixture_commit(fixture);
#define READ_LOGS()                                                                           \
    assert_int_equal(verbs->read_logs(fixture->reader, &task->id, &filter, &fixture->arena,   \
                                      &entries, &count, &fixture->err), 0)
    READ_LOGS();
    assert_int_equal(count, 13);
    assert_true(uuid_eq(&entries[0].execution_id, &first.id));
    assert_int_equal(entries[0].attempt_number, 2);
    assert_int_equal(entries[12].seq, 8);
    filter.limit = 7;
    filter.after_execution = first.id;
    filter.after_seq = 3;
    READ_LOGS();
    assert_int_equal(count, 7);
    assert_int_equal(entries[0].seq, 4);
    assert_int_equal(entries[2].seq, 1);
    filter = (struct log_filter){.level_min = SEVERITY_ERROR};
    READ_LOGS();
    assert_int_equal(count, 4);
    filter = (struct log_filter){.text = STR("line 0 of 100%")};
    READ_LOGS();
    assert_int_equal(count, 3);
    filter = (struct log_filter){.before_us = NOW_US + DAY_US, .after_us = NOW_US + 2};
    READ_LOGS();
    assert_int_equal(count, 3);
#undef READ_LOGS
}

static void a_log_flood_ends_with_one_line_that_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct execution execution;
    struct task *task;

    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_RUNNING, NOW_US);
    execution = add_execution(fixture, task, 2, EXECUTION_RUNNING, NOW_US);
    add_logs(fixture, &execution, 1);
    fixture_exec(fixture, "UPDATE execution_logs SET seq = 99998");
    add_logs(fixture, &execution, 2);
    for (int i = 0; i < 3; i++)
        add_logs(fixture, &execution, 1);
    fixture_commit(fixture);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_logs"), 3);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_logs WHERE seq = 100000 "
                                          "AND message LIKE '%not kept%'"), 1);
}

static void prune_all(struct fixture *fixture, int64_t events_us, int64_t executions_us,
                      int64_t logs_us, uint32_t limit)
{
    int64_t cursor = 0;
    int steps = 0;

    do {
        uint32_t removed = 0;

        fixture_begin(fixture);
        assert_int_equal(fixture->store->verbs->history_prune(fixture->store, events_us,
                                                              executions_us, logs_us, limit,
                                                              &cursor, &removed, &fixture->err),
                         0);
        fixture_commit(fixture);
        assert_true(removed <= limit);
        assert_true(++steps < 1000);
    } while (cursor != 0);
}

static void fill_history(struct fixture *fixture)
{
    fixture_begin(fixture);
    for (int i = 0; i < 12; i++) {
        int64_t at_us = NOW_US + i * DAY_US;
        struct task *task = stored_task(fixture, i % 3 ? STATUS_COMPLETED : STATUS_PENDING, at_us);
        struct execution execution;

        add_event(fixture, task, 1, STATUS_PENDING, at_us);
        execution = add_execution(fixture, task, 2,
                                  i % 3 ? EXECUTION_COMPLETED : EXECUTION_RUNNING, at_us);
        add_logs(fixture, &execution, 4);
        add_event(fixture, task, 4, i % 3 ? STATUS_COMPLETED : STATUS_PENDING, at_us + 10);
    }
    fixture_exec(fixture, "UPDATE task_states SET event_seq = 4");
    fixture_commit(fixture);
}

static void a9_old_history_goes_but_that_of_tasks_not_ended_stays(void **state)
{
    struct fixture *fixture = *state;
    const int64_t middle_us = NOW_US + 6 * DAY_US;

    fill_history(fixture);
    prune_all(fixture, middle_us, middle_us, middle_us, 3);
    /* Of tasks 0 to 5 only 0 and 3 had not ended. */
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_event_rows"), 2 * 8);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_rows"), 8);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_logs"), 4 * 8);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 4 * 8);
    prune_all(fixture, middle_us, middle_us, middle_us, 500);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 4 * 8);
}

static void a9_each_kind_of_history_has_its_own_window(void **state)
{
    struct fixture *fixture = *state;
    const int64_t end_us = NOW_US + 100 * DAY_US;

    fill_history(fixture);
    prune_all(fixture, 0, 0, end_us, 5); /* only logs */
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_logs"), 4 * 4);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 4 * 12);
    prune_all(fixture, 0, end_us, 0, 5); /* executions: the events they told stay */
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_rows"), 4);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 4 * 12);
    prune_all(fixture, end_us, 0, 0, 5);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_events"), 4 * 4);
}

static void a9_an_execution_stays_as_long_as_its_logs(void **state)
{
    struct fixture *fixture = *state;

    fill_history(fixture);
    prune_all(fixture, 0, NOW_US + 100 * DAY_US, 0, 50);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM execution_rows"), 12);
}

static void tell(void *ctx, const char *line)
{
    struct buf *lines = ctx;

    buf_text(lines, line);
    buf_byte(lines, '\n');
}

static int64_t verify(struct fixture *fixture, struct buf *lines)
{
    int64_t findings = -1;

    buf_reset(lines);
    assert_int_equal(fixture->store->verbs->verify(fixture->store, tell, lines, &findings,
                                                   &fixture->err), 0);
    buf_byte(lines, '\0');
    return findings;
}

static void f_d6_verify_names_the_table_and_the_id_of_what_is_wrong(void **state)
{
    static const struct {
        const char *damage;
        const char *line;
    } cases[] = {
        {"UPDATE lane_counts SET tasks = tasks + 1 WHERE status = 'pending'",
         "lane_counts: lane 1"},
        {"DELETE FROM task_specs WHERE task = 2", "has no row in task_specs"},
        {"DELETE FROM task_states WHERE task = 2", "task_specs: key 2 has no row"},
        {"UPDATE task_states SET status = 'running' WHERE task = 1", "is running but not held"},
        {"UPDATE task_states SET held = 1, worker_id = 'w', lease_token = 1 WHERE task = 2",
         "is completed but still held"},
        {"UPDATE task_states SET parked = 'x' WHERE task = 2", "is completed but parked"},
        {"UPDATE task_states SET attempts = 0 WHERE task = 2", "has 1 executions but only 0"},
        {"UPDATE execution_rows SET claim_seq = 1 WHERE task = 2", "has 2 events with seq 1"},
        {"UPDATE task_states SET event_seq = 3 WHERE task = 2", "seq 4 beyond its last, 3"},
        {"DELETE FROM task_event_rows WHERE task = 2 AND seq = 4", "has only 3 of its 4 events"},
        {"DELETE FROM task_event_rows WHERE task = 1 AND seq > 1", "has only 3 of its 4 events"},
        {"DELETE FROM task_event_rows WHERE task = 1", "lacks its last event, 4"},
        {"DELETE FROM task_event_rows WHERE task = 1; "
         "UPDATE task_states SET event_seq = 3 WHERE task = 1", "lacks the event that opened it"},
        {"INSERT INTO task_event_rows VALUES (2, 5, x'00', 'running', NULL, NULL, 'API', 1, "
         "NULL)",
         "is running at seq 5 after it ended as completed"},
        {"INSERT INTO task_event_rows VALUES (2, 5, x'00', 'completed', NULL, "
         "'{\"reason\":\"x\"}', 'USER', 1, NULL)", "is completed at seq 5 after it ended as completed"},
        {"INSERT INTO task_event_rows VALUES (2, 5, x'00', 'failed', NULL, "
         "'{\"note\":\"x\"}', 'USER', 1, NULL)", "is failed at seq 5 after it ended as completed"},
        {"UPDATE task_states SET status = 'blocked', details = 1 WHERE task = 1; "
         "INSERT OR REPLACE INTO task_details (task, open_dependencies) VALUES (1, 1)",
         "waits for 1 dependencies, 0 are open"},
        {"UPDATE task_states SET status = 'blocked', details = 1 WHERE task = 1; INSERT OR REPLACE "
         "INTO task_details (task, waits_children, open_children) VALUES (1, 1, 2)", "waits for 2 children, 0 are open"},
        {"INSERT INTO task_data VALUES (99, '{}')", "task_data: data of task key 99"},
        {"INSERT INTO task_tags VALUES ('default', 'x', 99)", "task_tags: tag x of task key 99"},
        {"INSERT INTO task_results (task_id, payload, created_at) VALUES (zeroblob(16), '1', 1)",
         "task_results: result of task 00000000-0000-0000-0000-000000000000"},
        {"UPDATE task_checkpoints SET recoverable_data = '{\"n\":2}'",
         "task_checkpoints: checkpoint 1 of task"},
        {"DELETE FROM execution_rows WHERE task = 2", "execution_logs: logs of execution"},
    };
    struct fixture *fixture = *state;
    struct buf lines = BUF_INIT(65536);
    struct task *task;

    fill_history(fixture);
    fixture_begin(fixture);
    task = stored_task(fixture, STATUS_RUNNING, NOW_US + 50 * DAY_US);
    add_checkpoint(fixture, task);
    fixture_exec(fixture, "UPDATE task_states SET held = 1, worker_id = 'w', lease_token = 1, "
                          "event_seq = 0 WHERE status = 'running'");
    fixture_commit(fixture);
    assert_int_equal(verify(fixture, &lines), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_exec(fixture, "BEGIN");
        fixture_exec(fixture, cases[i].damage);
        assert_true(verify(fixture, &lines) > 0);
        if (!strstr(lines.data, cases[i].line))
            fail_msg("'%s' told: %s", cases[i].damage, lines.data);
        fixture_exec(fixture, "ROLLBACK");
    }
    assert_int_equal(verify(fixture, &lines), 0);
    buf_deinit(&lines);
}

static void f_d6_a_flipped_bit_is_found(void **state)
{
    struct fixture *fixture = *state;
    struct buf lines = BUF_INIT(65536);
    int64_t findings = 0;
    int64_t page;
    int count;
    FILE *file;
    int rc;

    fill_history(fixture);
    page = fixture_ask(fixture, "SELECT rootpage FROM sqlite_master WHERE name = "
                                "'task_event_rows'");
    fixture_close(fixture);
    file = fopen(fixture->path, "r+b");
    assert_non_null(file);
    fseek(file, 4096 * (page - 1) + 4, SEEK_SET); /* how many cells the page has */
    count = fgetc(file);
    fseek(file, 4096 * (page - 1) + 4, SEEK_SET);
    fputc(count ^ 0x40, file);
    fclose(file);
    fixture_open(fixture);
    rc = fixture->store->verbs->verify(fixture->store, tell, &lines, &findings, &fixture->err);
    assert_true(rc < 0 || findings > 0);
    buf_deinit(&lines);
}

static void count_progress(void *ctx, int64_t done, int64_t total)
{
    assert_true(done <= total);
    ++*(int *)ctx;
}

/* More pages than one step copies. */
static void fill_pages(struct fixture *fixture)
{
    char *text = arena_alloc(&fixture->arena, BOUND_PAYLOAD_BYTES);

    assert_non_null(text);
    memset(text, '1', BOUND_PAYLOAD_BYTES);
    fixture_begin(fixture);
    for (int i = 0; i < 12; i++) {
        struct task *task = fixture_task(fixture, "default", "big", NOW_US + 40 * DAY_US);

        task->spec.payload = str_span(text, BOUND_PAYLOAD_BYTES);
        assert_int_equal(fixture->store->verbs->tasks_insert(fixture->store, &task, 1,
                                                             &fixture->err), 0);
    }
    fixture_commit(fixture);
}

/* Writes while the copy is being made: it must neither start over nor see it. */
static void write_meanwhile(void *ctx, int64_t done, int64_t total)
{
    struct fixture *fixture = ctx;

    (void)done;
    (void)total;
    fixture_begin(fixture);
    stored_task(fixture, STATUS_PENDING, NOW_US + 60 * DAY_US);
    fixture_commit(fixture);
}

static void f_d14_a_backup_is_whole_private_and_has_an_epoch_of_its_own(void **state)
{
    struct fixture *fixture = *state;
    const struct store_verbs *verbs = fixture->store->verbs;
    struct buf lines = BUF_INIT(65536);
    struct str epoch;
    struct stat info;
    int64_t tasks;
    char copy[128];
    char kept[160];
    int reports = 0;

    fill_history(fixture);
    fill_pages(fixture);
    fixture_begin(fixture);
    assert_int_equal(verbs->info_put(fixture->store, "store_epoch", STR("17"), &fixture->err), 0);
    fixture_commit(fixture);
    tasks = fixture_ask(fixture, "SELECT count(*) FROM task_states");
    snprintf(copy, sizeof copy, "%s/copy.db", fixture->folder);
    assert_int_equal(verbs->backup(fixture->reader, copy, write_meanwhile, fixture,
                                   &fixture->err), 0);
    assert_true(fixture_ask(fixture, "SELECT count(*) FROM task_states") >= tasks + 3);
    assert_int_equal(verbs->backup(fixture->reader, copy, count_progress, &reports,
                                   &fixture->err), -ERR_CONFLICT);
    assert_int_equal(stat(copy, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    snprintf(kept, sizeof kept, "%s.tmp", copy);
    assert_int_not_equal(access(kept, F_OK), 0);
    fixture_close(fixture);
    snprintf(fixture->path, sizeof fixture->path, "%.60s/copy.db", fixture->folder);
    fixture_open(fixture);
    verbs = fixture->store->verbs;
    assert_int_equal(verify(fixture, &lines), 0);
    assert_int_equal(fixture_ask(fixture, "SELECT count(*) FROM task_states"), tasks);
    assert_int_equal(verbs->info_get(fixture->store, "store_epoch", &fixture->arena, &epoch,
                                     &fixture->err), 0);
    assert_true(epoch.len > 2);
    buf_deinit(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a10_events_come_newest_first_with_those_the_executions_tell),
        STORE_TEST(an_execution_is_saved_and_read_back_as_it_was),
        STORE_TEST(b3_checkpoints_count_up_are_thinned_and_step_back_over_invalid_ones),
        STORE_TEST(d9_logs_are_found_by_level_time_and_text_over_all_executions),
        STORE_TEST(a_log_flood_ends_with_one_line_that_says_so),
        STORE_TEST(a9_old_history_goes_but_that_of_tasks_not_ended_stays),
        STORE_TEST(a9_each_kind_of_history_has_its_own_window),
        STORE_TEST(a9_an_execution_stays_as_long_as_its_logs),
        STORE_TEST(f_d6_verify_names_the_table_and_the_id_of_what_is_wrong),
        STORE_TEST(f_d6_a_flipped_bit_is_found),
        STORE_TEST(f_d14_a_backup_is_whole_private_and_has_an_epoch_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
