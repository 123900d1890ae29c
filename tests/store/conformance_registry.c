/* Conformance: the small tables around the tasks: outbox, workers, queues, counts, facts. */
#include "conformance.h"

static struct outbox_message given_message(struct conformance *c, int64_t next_at_us)
{
    struct task *task = given_ready(c, "q", "t", 1);

    return (struct outbox_message){.id = uuid7_new(&c->ids, T0_US),
                                   .kind = STR("webhook"),
                                   .target = STR("https://example.test/"),
                                   .task_id = task->id,
                                   .body = STR("{\"a\": 1}"),
                                   .next_at_us = next_at_us,
                                   .expires_at_us = T0_US + 1000,
                                   .created_at_us = T0_US};
}

static uint32_t due(struct conformance *c, int64_t now_us, uint32_t limit,
                    struct outbox_message **messages, int64_t *next_at_us)
{
    uint32_t count = 0;

    OK(c, c->verbs->outbox_due(c->store, now_us, limit, &c->arena, messages, &count, next_at_us,
                               &c->err));
    return count;
}

static int64_t pending_messages(struct conformance *c)
{
    int64_t pending = -1;

    OK(c, c->verbs->outbox_count(c->store, &pending, &c->err));
    return pending;
}

/* A2: a message is kept until it was delivered. */
static void messages_come_when_they_are_due_until_they_are_removed(void **state)
{
    struct conformance *c = *state;
    struct outbox_message given[3], *messages;
    int64_t next_at_us;
    uint32_t removed;

    store_begin(c);
    for (int i = 0; i < 3; i++)
        given[i] = given_message(c, T0_US + 10 * (i + 1));
    OK(c, c->verbs->outbox_insert(c->store, given, 3, &c->err));
    store_commit(c);
    store_reopen(c);
    assert_int_equal(pending_messages(c), 3);
    assert_int_equal(due(c, T0_US, 10, &messages, &next_at_us), 0);
    assert_int_equal(next_at_us, T0_US + 10);
    assert_int_equal(due(c, T0_US + 30, 2, &messages, &next_at_us), 2);
    assert_true(next_at_us <= T0_US + 30); /* one was left behind */
    assert_int_equal(due(c, T0_US + 20, 10, &messages, &next_at_us), 2);
    assert_int_equal(next_at_us, T0_US + 30);
    then_id(messages[0].id, given[0].id);
    then_str(messages[0].kind, given[0].kind);
    then_str(messages[0].target, given[0].target);
    then_id(messages[0].task_id, given[0].task_id);
    then_str(messages[0].body, given[0].body);
    assert_int_equal(messages[0].attempts, 0);
    then_str(messages[0].last_error, STR_NONE);
    assert_int_equal(messages[0].expires_at_us, T0_US + 1000);
    assert_int_equal(messages[0].created_at_us, T0_US);
    store_begin(c);
    messages[0].attempts = 1;
    messages[0].last_error = STR("refused");
    messages[0].next_at_us = T0_US + 50;
    OK(c, c->verbs->outbox_save(c->store, &messages[0], false, &c->err));
    OK(c, c->verbs->outbox_save(c->store, &messages[1], true, &c->err));
    store_commit(c);
    assert_int_equal(due(c, T0_US + 99, 10, &messages, &next_at_us), 2);
    then_id(messages[0].id, given[2].id);
    then_id(messages[1].id, given[0].id);
    assert_int_equal(messages[1].attempts, 1);
    then_str(messages[1].last_error, STR("refused"));
    assert_true(next_at_us == INT64_MAX);
    store_begin(c);
    messages[1].next_at_us = 0; /* given up */
    OK(c, c->verbs->outbox_save(c->store, &messages[1], false, &c->err));
    store_commit(c);
    assert_int_equal(due(c, T0_US + 99, 10, &messages, &next_at_us), 1);
    assert_int_equal(pending_messages(c), 1);
    store_begin(c); /* A9: what was given up goes by its age, what still waits stays */
    OK(c, c->verbs->outbox_prune(c->store, T0_US, 10, &removed, &c->err));
    assert_int_equal(removed, 0);
    OK(c, c->verbs->outbox_prune(c->store, T0_US + 1, 10, &removed, &c->err));
    assert_int_equal(removed, 1);
    store_commit(c);
    assert_int_equal(pending_messages(c), 1);
}

static void workers_are_put_replaced_and_removed(void **state)
{
    struct conformance *c = *state;
    struct worker_row rows[] = {
        {.id = STR("a"), .hostname = STR("host"), .version = STR("1.0"), .queues = STR("[\"q\"]"),
         .types = STR("[\"t*\"]"), .categories = STR("[\"c\"]"), .pool_size = 4,
         .started_at_us = T0_US, .last_heartbeat_us = T0_US + 1, .lease_until_us = T0_US + 2,
         .is_leader = true, .leader_until_us = T0_US + 3, .errored = true},
        {.id = STR("b"), .hostname = STR(""), .queues = STR("[]"), .started_at_us = T0_US}};
    struct worker_row *found;
    uint32_t count;

    store_begin(c);
    for (int i = 1; i >= 0; i--)
        OK(c, c->verbs->worker_put(c->store, &rows[i], &c->err));
    rows[1].lease_until_us = T0_US + 77;
    OK(c, c->verbs->worker_put(c->store, &rows[1], &c->err));
    store_commit(c);
    store_reopen(c);
    OK(c, c->verbs->workers_load(c->store, &c->arena, &found, &count, &c->err));
    assert_int_equal(count, 2);
    for (int i = 0; i < 2; i++) {
        then_str(found[i].id, rows[i].id);
        then_str(found[i].hostname, rows[i].hostname);
        then_str(found[i].version, rows[i].version);
        then_str(found[i].queues, rows[i].queues);
        then_str(found[i].types, rows[i].types);
        then_str(found[i].categories, rows[i].categories);
        assert_int_equal(found[i].pool_size, rows[i].pool_size);
        assert_int_equal(found[i].started_at_us, rows[i].started_at_us);
        assert_int_equal(found[i].last_heartbeat_us, rows[i].last_heartbeat_us);
        assert_int_equal(found[i].lease_until_us, rows[i].lease_until_us);
        assert_int_equal(found[i].is_leader, rows[i].is_leader);
        assert_int_equal(found[i].leader_until_us, rows[i].leader_until_us);
        assert_int_equal(found[i].errored, rows[i].errored);
    }
    store_begin(c);
    OK(c, c->verbs->worker_delete(c->store, STR("a"), &c->err));
    OK(c, c->verbs->worker_delete(c->store, STR("nobody"), &c->err));
    store_commit(c);
    OK(c, c->verbs->workers_load(c->store, &c->arena, &found, &count, &c->err));
    assert_int_equal(count, 1);
}

/* The holder's lease counts while it lists the task. */
static void a_reader_sees_the_later_of_both_leases(void **state)
{
    static const struct {
        int64_t worker_us;
        bool unlisted;
        int64_t wanted_us;
    } rows[] = {{50, false, 50}, {50, true, 30}, {10, false, 30}};
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    struct worker_row worker = {.id = STR("w"), .hostname = STR("h"), .queues = STR("[]")};

    claim_task(task, "w");
    task->lease.until_us = T0_US + 30;
    store_begin(c);
    insert_task(c, task);
    store_commit(c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store_begin(c);
        worker.lease_until_us = T0_US + rows[i].worker_us;
        OK(c, c->verbs->worker_put(c->store, &worker, &c->err));
        task->lease.unlisted = rows[i].unlisted;
        save_task(c, task);
        store_commit(c);
        assert_int_equal(read_task(c, &task->id)->lease.until_us, T0_US + rows[i].wanted_us);
    }
}

static void then_same_rate(const struct rate_rule *a, const struct rate_rule *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->per_ms, b->per_ms);
    assert_int_equal(a->burst, b->burst);
}

/* C5: the order and the limits of a queue, also per type. */
static void queues_come_back_with_their_limits(void **state)
{
    struct conformance *c = *state;
    struct type_limit limits[] = {{STR("t \"1\""), 2, {3, 4, 5}}, {STR("u\xc3\xa4"), 0, {0, 0, 0}}};
    struct queue_row row = {.namespace_name = STR("default"),
                            .rule = {.name = STR("q"), .concurrency = 1, .rate = {2, 3, 4},
                                     .key_concurrency = 5, .key_rate = {6, 7, 8},
                                     .type_limits = limits, .type_limits_count = 2,
                                     .priority_order = ORDER_LOW_FIRST, .ageing_ms = 9},
                            .paused_at_us = T0_US, .created_at_us = T0_US,
                            .updated_at_us = T0_US + 1};
    struct queue_row *found;
    uint32_t count;

    for (int turn = 0; turn < 2; turn++) {
        store_begin(c);
        OK(c, c->verbs->queue_put(c->store, &row, &c->err));
        store_commit(c);
        store_reopen(c);
        OK(c, c->verbs->queues_load(c->store, &c->arena, &found, &count, &c->err));
        assert_int_equal(count, 1);
        then_str(found->namespace_name, row.namespace_name);
        then_str(found->rule.name, row.rule.name);
        assert_int_equal(found->rule.concurrency, row.rule.concurrency);
        then_same_rate(&found->rule.rate, &row.rule.rate);
        assert_int_equal(found->rule.key_concurrency, row.rule.key_concurrency);
        then_same_rate(&found->rule.key_rate, &row.rule.key_rate);
        assert_int_equal(found->rule.priority_order, row.rule.priority_order);
        assert_int_equal(found->rule.ageing_ms, row.rule.ageing_ms);
        assert_int_equal(found->paused_at_us, row.paused_at_us);
        assert_int_equal(found->created_at_us, T0_US);
        assert_int_equal(found->updated_at_us, row.updated_at_us);
        assert_int_equal(found->rule.type_limits_count, row.rule.type_limits_count);
        for (uint32_t i = 0; i < row.rule.type_limits_count; i++) {
            then_str(found->rule.type_limits[i].type, limits[i].type);
            assert_int_equal(found->rule.type_limits[i].concurrency, limits[i].concurrency);
            then_same_rate(&found->rule.type_limits[i].rate, &limits[i].rate);
        }
        row.rule = (struct queue_rule){.name = STR("q")};
        row.paused_at_us = 0;
        row.updated_at_us = T0_US + 2;
    }
}

static void facts_are_put_and_found(void **state)
{
    struct conformance *c = *state;
    struct str value;

    OK(c, c->verbs->info_get(c->store, "a fact", &c->arena, &value, &c->err));
    then_str(value, STR_NONE);
    for (int i = 0; i < 2; i++) {
        store_begin(c);
        OK(c, c->verbs->info_put(c->store, "a fact", i ? STR("") : STR("one"), &c->err));
        store_commit(c);
        store_reopen(c);
        OK(c, c->verbs->info_get(c->store, "a fact", &c->arena, &value, &c->err));
        then_str(value, i ? STR("") : STR("one"));
    }
    store_begin(c);
    OK(c, c->verbs->info_put(c->store, "a fact", STR("lost"), &c->err));
    store_rollback(c);
    OK(c, c->verbs->info_get(c->store, "a fact", &c->arena, &value, &c->err));
    then_str(value, STR(""));
}

static void of_two_secrets_the_first_counts(void **state)
{
    struct conformance *c = *state;
    struct str value;

    for (int i = 0; i < 2; i++) {
        store_begin(c);
        OK(c, c->verbs->info_put(c->store, "call_secret", i ? STR("two") : STR("one"), &c->err));
        store_commit(c);
        OK(c, c->verbs->info_get(c->store, "call_secret", &c->arena, &value, &c->err));
        then_str(value, STR("one"));
    }
}

static void the_newest_time_is_found_at_the_open(void **state)
{
    struct conformance *c = *state;

    store_begin(c);
    OK(c, c->verbs->info_put(c->store, "last_time_us", text_of(c, "%lld", (long long)T0_US + 77),
                             &c->err));
    store_commit(c);
    store_reopen(c);
    assert_int_equal(c->store->last_time_us, T0_US + 77);
}

const struct conformance_test conformance_registry_tests[] = {
    CONFORMANCE_TEST(messages_come_when_they_are_due_until_they_are_removed),
    CONFORMANCE_TEST(workers_are_put_replaced_and_removed),
    CONFORMANCE_TEST(a_reader_sees_the_later_of_both_leases),
    CONFORMANCE_TEST(queues_come_back_with_their_limits),
    CONFORMANCE_TEST(facts_are_put_and_found),
    CONFORMANCE_TEST(of_two_secrets_the_first_counts),
    CONFORMANCE_TEST(the_newest_time_is_found_at_the_open), CONFORMANCE_END};
