/* Tamper-evident logs, on every store: chains that are written with their lines, chains
 * that wait for a record, records, and cuts (D9, F-J5, F-J8, F-J9, F-A17, V7). */
#include "conformance.h"

#include "core/bounds.h"
#include "log_check.h"

#define LOGS(c) ((c)->verbs->logs)

static struct execution put_execution(struct conformance *c, struct task **task)
{
    struct execution execution;

    *task = given_ready(c, "q", "t", 1);
    execution = given_execution(c, *task, T0_US);
    OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    return execution;
}

static void put_lines(struct conformance *c, const struct execution *execution, int count)
{
    for (int i = 0; i < count; i++) {
        struct log_entry entry = {.id = uuid7_new(&c->ids, T0_US),
                                  .execution_id = execution->id,
                                  .task_id = execution->task_id,
                                  .level = SEVERITY_INFO,
                                  .message = text_of(c, "line %d é \xf0\x9f\x98\x80", i),
                                  .context = i % 2 ? STR("{\"k\": 1.50}") : STR_NONE,
                                  .logged_at_us = T0_US + 7 * i + 1};

        OK(c, c->verbs->logs_insert(c->store, &entry, 1, &c->err));
    }
}

static void then_verified(struct conformance *c, int64_t lines)
{
    struct log_check check = log_check_run(c->store, NULL);

    if (check.findings != 0)
        fail_msg("%s: %s: %s", check.kind, check.subject, check.detail);
    assert_int_equal(check.counts.lines, lines);
}

/* As the queue does it: a record of what waits. */
static uint32_t put_record(struct conformance *c, enum anchor_kind kind,
                           const struct log_part *items, uint32_t count)
{
    struct anchor anchor = {.kind = kind, .at_us = T0_US};
    struct buf text = BUF_INIT(ANCHOR_BYTES_MAX);
    struct anchor_row last, row;

    OK(c, LOGS(c)->anchor_last(c->store, &c->arena, &last, &c->err));
    anchor.serial = last.serial + 1;
    if (last.serial > 0)
        assert_true(hash_from_hex(str_of(last.hash), anchor.previous, HASH_BYTES));
    assert_int_equal(anchor_make(&anchor, items, count, NULL, &text, &row), 0);
    OK(c, LOGS(c)->anchor_insert(c->store, &row, &c->err));
    buf_deinit(&text);
    return count;
}

static uint32_t take_heads(struct conformance *c, uint32_t limit, struct log_part **heads)
{
    struct log_note *notes;
    struct log_part *parts;
    uint32_t count;

    OK(c, LOGS(c)->heads_take(c->store, limit, &c->arena, &notes, &parts, &count, &c->err));
    for (uint32_t i = 0; i < count; i++)
        assert_memory_equal(&parts[i].head, &notes[i].part.head, sizeof parts[i].head);
    *heads = parts;
    return count;
}

static uint32_t record_heads(struct conformance *c)
{
    struct log_part *heads;
    uint32_t count = take_heads(c, ANCHOR_ITEMS_MAX, &heads);

    return count ? put_record(c, ANCHOR_HEADS, heads, count) : 0;
}

/* V7, F-A17: a line and its place in the chain come together or not at all. */
static void v7_lines_are_chained_as_they_are_written(void **state)
{
    struct conformance *c = *state;
    struct execution executions[3];
    struct task *task;

    store_begin(c);
    for (int i = 0; i < 3; i++) {
        executions[i] = put_execution(c, &task);
        put_lines(c, &executions[i], 5);
    }
    store_commit(c);
    then_verified(c, 15);
    store_begin(c);
    put_lines(c, &executions[1], 3);
    store_rollback(c);
    then_verified(c, 15);
    store_reopen(c);
    store_begin(c);
    put_lines(c, &executions[1], 3); /* continues from what is stored */
    store_commit(c);
    then_verified(c, 18);
}

static void d9_chains_wait_for_a_record_until_they_are_taken(void **state)
{
    struct conformance *c = *state;
    struct execution a, b;
    struct log_part *heads;
    struct task *task;
    uint32_t count;

    store_begin(c);
    a = put_execution(c, &task);
    b = put_execution(c, &task);
    put_lines(c, &a, 4);
    put_lines(c, &b, 2);
    store_commit(c);
    store_begin(c);
    assert_int_equal(take_heads(c, 10, &heads), 2);
    store_rollback(c); /* they were not */
    store_begin(c);
    count = take_heads(c, 1, &heads);
    assert_int_equal(count, 1);
    then_id(heads[0].head.execution_id, a.id);
    assert_int_equal(heads[0].head.seq, 4);
    assert_int_equal(heads[0].lines, 4);
    put_record(c, ANCHOR_HEADS, heads, count);
    put_lines(c, &a, 1);
    store_commit(c);
    then_verified(c, 7);
    store_begin(c);
    assert_int_equal(record_heads(c), 2);
    assert_int_equal(record_heads(c), 0);
    store_commit(c);
    then_verified(c, 7);
}

static void d9_records_are_read_in_their_order(void **state)
{
    struct conformance *c = *state;
    struct anchor_row *rows, last;
    uint32_t count;

    store_begin(c);
    OK(c, LOGS(c)->anchor_last(c->store, &c->arena, &last, &c->err));
    assert_int_equal(last.serial, 0);
    for (int i = 0; i < 5; i++)
        put_record(c, ANCHOR_HEADS, NULL, 0);
    store_commit(c);
    OK(c, LOGS(c)->anchors_read(c->store, 2, 2, &c->arena, &rows, &count, &c->err));
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].serial, 3);
    assert_int_equal(rows[1].serial, 4);
    assert_int_equal(rows[0].created_at_us, T0_US);
    OK(c, LOGS(c)->anchors_read(c->store, 5, 2, &c->arena, &rows, &count, &c->err));
    assert_int_equal(count, 0);
    then_verified(c, 0);
}

/* F-J8: removed lines leave a record of where the chain stood there. */
static void j8_removed_lines_are_told_as_cuts(void **state)
{
    struct conformance *c = *state;
    struct log_cuts cuts = {.arena = &c->arena};
    struct execution kept, gone, old;
    struct task *kept_task, *gone_task, *old_task;
    int64_t cursor = 0;
    uint32_t removed;

    store_begin(c);
    kept = put_execution(c, &kept_task);
    gone = put_execution(c, &gone_task);
    old = put_execution(c, &old_task);
    old.status = EXECUTION_COMPLETED;
    old.completed_at_us = T0_US + 1;
    OK(c, c->verbs->executions_save(c->store, &old, 1, &c->err));
    put_lines(c, &kept, 2);
    put_lines(c, &gone, 3);
    put_lines(c, &old, 10);
    store_commit(c);
    store_begin(c);
    record_heads(c);
    store_commit(c);
    c->store->cuts = &cuts;
    store_begin(c);
    gone_task = load_task(c, &gone_task->id, LOAD_SPEC);
    OK(c, c->verbs->tasks_delete(c->store, &gone_task, 1, &c->err));
    assert_int_equal(cuts.count, 1);
    then_id(cuts.items[0].head.execution_id, gone.id);
    assert_int_equal(cuts.items[0].head.seq, 3);
    assert_int_equal(cuts.items[0].lines, 3);
    OK(c, c->verbs->history_prune(c->store, INT64_MIN, INT64_MIN, T0_US + SECOND_US, 4, &cursor,
                                  &removed, &c->err));
    assert_int_equal(removed, 4);
    assert_int_equal(cuts.count, 2);
    then_id(cuts.items[1].head.execution_id, old.id);
    assert_int_equal(cuts.items[1].head.seq, 4);
    assert_true(cuts.items[1].head.hashed);
    put_record(c, ANCHOR_CUTS, cuts.items, cuts.count);
    store_commit(c);
    c->store->cuts = NULL;
    then_verified(c, 8);
}

static void j8_records_are_trimmed_and_living_executions_known(void **state)
{
    struct conformance *c = *state;
    struct log_part *heads;
    struct anchor_row *rows;
    struct execution execution;
    struct task *task;
    bool alive[2] = {false, true};
    uint32_t count;

    store_begin(c);
    execution = put_execution(c, &task);
    put_lines(c, &execution, 1);
    for (int i = 0; i < 4; i++)
        put_record(c, ANCHOR_HEADS, NULL, 0);
    assert_int_equal(take_heads(c, 2, &heads), 1);
    heads[1].head.execution_id.bytes[0] = 9; /* of no execution */
    OK(c, LOGS(c)->heads_alive(c->store, heads, 2, alive, &c->err));
    assert_true(alive[0]);
    assert_false(alive[1]);
    OK(c, LOGS(c)->anchors_trim(c->store, 3, &c->err));
    store_commit(c);
    OK(c, LOGS(c)->anchors_read(c->store, 0, 10, &c->arena, &rows, &count, &c->err));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].serial, 4);
}

static void j5_removed_lines_that_nobody_told_of_are_found(void **state)
{
    struct conformance *c = *state;
    struct execution execution;
    struct log_check check;
    struct task *task;

    store_begin(c);
    execution = put_execution(c, &task);
    put_lines(c, &execution, 3);
    record_heads(c);
    store_commit(c);
    store_begin(c);
    task = load_task(c, &task->id, LOAD_SPEC);
    OK(c, c->verbs->tasks_delete(c->store, &task, 1, &c->err));
    store_commit(c);
    check = log_check_run(c->store, NULL);
    assert_int_equal(check.findings, 1);
    assert_non_null(strstr(check.subject, "line 1"));
}

/* The marker that ends a flood is a line like any. */
static void d9_the_marker_of_a_flood_is_in_the_chain(void **state)
{
    struct conformance *c = *state;
    const int many = 5000;
    struct log_entry *entries = arena_alloc_array(&c->arena, (size_t)many, sizeof *entries);
    struct execution execution;
    struct task *task;

    store_begin(c);
    execution = put_execution(c, &task);
    for (int64_t seq = 0; seq <= BOUND_LOG_LINES_PER_EXECUTION; seq += many) {
        for (int i = 0; i < many; i++)
            entries[i] = (struct log_entry){.id = uuid7_new(&c->ids, T0_US),
                                            .execution_id = execution.id,
                                            .task_id = execution.task_id,
                                            .message = STR("x"),
                                            .logged_at_us = T0_US};
        OK(c, c->verbs->logs_insert(c->store, entries, (uint32_t)many, &c->err));
    }
    assert_int_equal(entries[0].seq, 0); /* of the last round nothing was kept */
    record_heads(c);
    store_commit(c);
    then_verified(c, BOUND_LOG_LINES_PER_EXECUTION);
}

const struct conformance_test conformance_logs_tests[] = {
    CONFORMANCE_TEST(v7_lines_are_chained_as_they_are_written),
    CONFORMANCE_TEST(d9_chains_wait_for_a_record_until_they_are_taken),
    CONFORMANCE_TEST(d9_records_are_read_in_their_order),
    CONFORMANCE_TEST(j8_removed_lines_are_told_as_cuts),
    CONFORMANCE_TEST(j8_records_are_trimmed_and_living_executions_known),
    CONFORMANCE_TEST(j5_removed_lines_that_nobody_told_of_are_found),
    CONFORMANCE_TEST(d9_the_marker_of_a_flood_is_in_the_chain),
    CONFORMANCE_END,
};
