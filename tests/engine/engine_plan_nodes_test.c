/* Planning on a store that two nodes share: only the current leader fires, and nothing is missed or
 * doubled when it changes (D4, F-F2); what one node plans the other knows at once; two edits at
 * once cannot make a cycle (F-H11); an end on one node and a run on the other never miss each other
 * (D7). On SQLite there is one node, and nothing to test. */
#include "plan_fixture.h"

#include <pthread.h>

#define ROUNDS 20
#define EDITS 400
#define DEADLOCKS_OF_OTHERS 4 /* tests beside this one may use the same database */

/* A second node: a store and a queue of its own. */
struct node {
    struct store *store;
    struct engine *engine;
};

static bool one_node(struct fixture *fx)
{
    if (!fx->store->shared)
        print_message("one node only\n");
    return !fx->store->shared;
}

static void node_open(struct fixture *fx, struct node *node)
{
    struct store_options options = {.allow_network_fs = true};
    struct engine_config config = {.settings = &fx->in_force.settings, .zones = fx->zones};

    if (store_open(&node->store, str_of(fx->where), &options, &fx->err) < 0 ||
        engine_open(&node->engine, node->store, &config, &fx->err) < 0)
        fail_msg("%s", fx->err.text);
}

static void node_close(struct node *node)
{
    engine_close(node->engine);
    node->store->verbs->close(node->store);
}

/* The fixture's calls go to the other node until it is called again. */
static void swap(struct fixture *fx, struct node *node)
{
    struct engine *engine = fx->engine;

    fx->engine = node->engine;
    node->engine = engine;
}

static void short_leader_lease(struct fixture *fx)
{
    fx->wanted.settings.leader_lease_ms = 1000;
    reopen(fx);
}

static int64_t doubled(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) - count(DISTINCT scheduled_at) FROM tasks");
}

/* F-F2: the leader stops cleanly, the other node takes over, and every second has its run. */
static void nothing_is_missed_or_doubled_when_the_leader_changes(void **state)
{
    struct fixture *fx = *state;
    struct uuid job;
    struct task *tasks;
    uint32_t count;

    if (one_node(fx))
        return;
    short_leader_lease(fx);
    job = make_job(fx, "{\"name\":\"j\"}");
    make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    for (int round = 0; round < 3; round++) {
        struct node node;
        uint32_t before;

        node_open(fx, &node);
        swap(fx, &node);
        before = count_tasks(fx, job);
        engine_close(node.engine); /* the one that led */
        node.engine = fx->engine;
        wait_until(count_tasks(fx, job) >= before + 2);
        /* from here on the fixture's own node again */
        fx->engine = NULL;
        {
            struct engine_config config = {.settings = &fx->in_force.settings, .zones = fx->zones};

            assert_int_equal(engine_open(&fx->engine, fx->store, &config, &fx->err), 0);
        }
        before = count_tasks(fx, job);
        node_close(&node);
        wait_until(count_tasks(fx, job) >= before + 2);
    }
    tasks = tasks_of(fx, job, &count);
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(tasks[i].scheduled_at_us, tasks[i - 1].scheduled_at_us + SECOND_US);
    assert_int_equal(doubled(fx), 0);
}

/* Planned at a node that does not lead, fired by the one that does, and soon. */
static void what_one_node_plans_the_leader_fires(void **state)
{
    struct fixture *fx = *state;
    struct node node;
    struct uuid job;
    int64_t began_ms;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    swap(fx, &node);
    job = make_job(fx, "{\"name\":\"j\"}");
    began_ms = fx_now_ms();
    make_schedule(fx, job, "\"schedule_type\":\"immediate\"");
    wait_until(count_tasks(fx, job) == 1);
    print_message("after %lld ms\n", (long long)(fx_now_ms() - began_ms));
    swap(fx, &node);
    node_close(&node);
}

/* The hint got lost, and another decision has read the catalog again meanwhile: the leader finds
 * the plan by polling. */
static void a_plan_nobody_told_of_is_fired(void **state)
{
    struct fixture *fx = *state;
    struct uuid job;

    if (one_node(fx))
        return;
    job = make_job(fx, "{\"name\":\"j\"}");
    make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":3600,"
                           "\"starts_at\":\"2020-01-01T00:00:00Z\",\"is_active\":false");
    stats_of(fx); /* by now there is nothing to come */
    pg_schema_run(fx->where, "UPDATE schedules SET is_active = true, next_fire_at = "
                  "date_trunc('hour', now()); UPDATE store_info SET value = value::bigint + 1 "
                  "WHERE name = 'catalog_version'");
    run_now(fx, job); /* reads the catalog */
    wait_until(count_tasks(fx, job) == 2);
}

/* An edit of a schedule takes the job's row before the schedule's, and so does firing. */
static void edits_and_fires_do_not_wait_for_each_other(void **state)
{
    struct fixture *fx = *state;
    int64_t deadlocks, slowest_ms = 0;
    struct node node;
    struct uuid job, id;

    if (one_node(fx))
        return;
    deadlocks = fx_ask(fx, "SELECT deadlocks FROM pg_stat_database WHERE datname = "
                       "current_database()");
    node_open(fx, &node);
    job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":5}");
    id = make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":1,"
                                "\"starts_at\":\"2020-01-01T00:00:00Z\"");
    swap(fx, &node);
    for (int i = 0; i < EDITS; i++) {
        int64_t began_ms = fx_now_ms();

        if (i % 4 == 0)
            pg_schema_run(fx->where, "UPDATE schedules SET next_fire_at = "
                          "date_trunc('second', now()) - interval '5 seconds'");
        change(fx, CATALOG_SCHEDULE, id, "{\"jitter_ms\":%d}", i);
        if (fx_now_ms() - began_ms > slowest_ms)
            slowest_ms = fx_now_ms() - began_ms;
    }
    swap(fx, &node);
    node_close(&node);
    reopen(fx); /* what was counted is written down */
    print_message("%d edits, slowest %lld ms\n", EDITS, (long long)slowest_ms);
    deadlocks = fx_ask(fx, "SELECT deadlocks FROM pg_stat_database WHERE datname = "
                       "current_database()") - deadlocks;
    assert_in_range(deadlocks, 0, DEADLOCKS_OF_OTHERS);
}

static void a_category_made_on_one_node_is_known_to_all(void **state)
{
    struct fixture *fx = *state;
    struct node node;
    struct uuid category, job;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    for (int i = 0; i < ROUNDS; i++) {
        category = make_category(fx, "{\"name\":\"c%d\",\"default_timeout\":7}", i);
        job = make_job(fx, "{\"name\":\"j\",\"category\":\"c%d\"}", i);
        swap(fx, &node);
        assert_int_equal(get(fx, enqueue(fx, "{\"type\":\"t\",\"category\":\"c%d\"}", i))
                             ->spec.timeout_ms, 7000);
        change(fx, CATALOG_CATEGORY, category, "{\"is_active\":false}");
        swap(fx, &node);
        assert_int_equal(run_ask(fx, job)->base.err.code, ERR_CONFLICT);
    }
    node_close(&node);
}

struct edit {
    struct engine *engine;
    struct catalog_request *request;
    pthread_t thread;
};

static void *make_edit(void *ctx)
{
    struct edit *edit = ctx;

    engine_call(edit->engine, &edit->request->base);
    return NULL;
}

/* F-H11: each node sees no cycle before the other has committed. */
static void two_nodes_cannot_make_a_cycle_together(void **state)
{
    struct fixture *fx = *state;
    struct node node;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    for (int i = 0; i < ROUNDS; i++) {
        struct uuid jobs[2] = {make_job(fx, "{\"name\":\"a\"}"), make_job(fx, "{\"name\":\"b\"}")};
        struct edit edits[2];
        int refused = 0;

        for (int e = 0; e < 2; e++) {
            struct str json = arena_format(
                &fx->arena, "{\"job_id\":\"%s\",\"depends_on_job_id\":\"%s\"}",
                id_text(fx, jobs[e]), id_text(fx, jobs[1 - e]));

            edits[e].engine = e ? node.engine : fx->engine;
            edits[e].request = plan_prepare(fx, CATALOG_DEPENDENCY, CATALOG_CREATE, NO_ID, json);
            edits[e].request->base.arena = calloc(1, sizeof(struct arena));
        }
        for (int e = 0; e < 2; e++)
            assert_int_equal(pthread_create(&edits[e].thread, NULL, make_edit, &edits[e]), 0);
        for (int e = 0; e < 2; e++) {
            pthread_join(edits[e].thread, NULL);
            refused += edits[e].request->base.err.code == ERR_INVALID;
            if (edits[e].request->base.err.code != ERR_NONE)
                assert_non_null(strstr(edits[e].request->base.err.text, " -> "));
            arena_deinit(edits[e].request->base.arena);
            free(edits[e].request->base.arena);
        }
        assert_int_equal(refused, 1);
    }
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_dependencies"), ROUNDS);
    node_close(&node);
}

/* An end at one node, a gate and a trigger made or used at the other: whichever comes first, the
 * run waits and is let go, or does not wait; it never waits for ever. */
struct ending {
    struct fixture *fx;
    struct engine *engine;
    struct task *task;
    pthread_t thread;
};

static void *end_it(void *ctx)
{
    struct ending *ending = ctx;
    struct arena arena = ARENA_INIT(0);
    struct report_request *request =
        report_prepare(ending->fx, &arena, "w", &REPORT(ending->task, .op = REPORT_COMPLETE), 1);

    engine_call(ending->engine, &request->base);
    arena_deinit(&arena);
    return NULL;
}

static void an_end_and_a_run_on_two_nodes_never_miss_each_other(void **state)
{
    struct fixture *fx = *state;
    struct uuid other, job;
    struct node node;
    int waited = 0;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    worker(fx, "w", "work");
    other = make_job(fx, "{\"name\":\"other\",\"queue\":\"work\"}");
    job = make_job(fx, "{\"name\":\"j\",\"queue\":\"idle\"}");
    make_gate(fx, job, other, "success");
    for (int i = 0; i < ROUNDS; i++) {
        struct ending ending = {.fx = fx, .engine = node.engine};
        struct uuid run;

        run_now(fx, other);
        ending.task = claim_one(fx, "w")->task;
        assert_int_equal(pthread_create(&ending.thread, NULL, end_it, &ending), 0);
        run = run_now(fx, job);
        waited += get(fx, run)->status == STATUS_BLOCKED;
        pthread_join(ending.thread, NULL);
        wait_status(fx, run, STATUS_PENDING);
    }
    print_message("%d of %d waited\n", waited, ROUNDS);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_waits"), 0);
    node_close(&node);
    fx_verify(fx);
}

static void a_trigger_made_on_one_node_works_on_the_other(void **state)
{
    struct fixture *fx = *state;
    struct uuid other, job;
    struct node node;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    worker(fx, "w", "work");
    other = make_job(fx, "{\"name\":\"other\",\"queue\":\"work\"}");
    for (int i = 0; i < ROUNDS; i++) {
        struct task *held;

        run_now(fx, other);
        held = claim_one(fx, "w")->task;
        job = make_job(fx, "{\"name\":\"j\",\"queue\":\"idle\"}");
        make_trigger(fx, job, other, "success");
        swap(fx, &node); /* which did not hear of it, perhaps */
        report_ok(fx, "w", held, .op = REPORT_COMPLETE);
        swap(fx, &node);
        assert_int_equal(count_tasks(fx, job), 1);
    }
    node_close(&node);
    fx_verify(fx);
}

/* Slots of a job are counted over all nodes. */
struct runner {
    struct engine *engine;
    struct job_run_request requests[ROUNDS];
    struct arena arena;
    pthread_t thread;
};

static void *run_many(void *ctx)
{
    struct runner *runner = ctx;

    for (int i = 0; i < ROUNDS; i++)
        engine_call(runner->engine, &runner->requests[i].base);
    return NULL;
}

static void a_limit_of_runs_holds_over_all_nodes(void **state)
{
    struct fixture *fx = *state;
    struct runner runners[2];
    struct uuid job;
    struct node node;

    if (one_node(fx))
        return;
    node_open(fx, &node);
    job = make_job(fx, "{\"name\":\"j\",\"max_concurrent\":3}");
    for (int r = 0; r < 2; r++) {
        runners[r] = (struct runner){.engine = r ? node.engine : fx->engine};
        for (int i = 0; i < ROUNDS; i++)
            runners[r].requests[i] = (struct job_run_request){
                .base = {.kind = REQUEST_JOB_RUN, .arena = &runners[r].arena}, .job_id = job};
    }
    for (int r = 0; r < 2; r++)
        assert_int_equal(pthread_create(&runners[r].thread, NULL, run_many, &runners[r]), 0);
    for (int r = 0; r < 2; r++) {
        pthread_join(runners[r].thread, NULL);
        for (int i = 0; i < ROUNDS; i++)
            assert_int_equal(runners[r].requests[i].base.err.code, ERR_NONE);
        arena_deinit(&runners[r].arena);
    }
    assert_int_equal(count_tasks(fx, job), 2 * ROUNDS);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), 3);
    worker(fx, "w", "default");
    for (int i = 0; i < 2 * ROUNDS; i++) {
        struct task *task = claim_one(fx, "w")->task;

        if (i % 2)
            swap(fx, &node);
        report_ok(fx, "w", task, .op = REPORT_COMPLETE);
        if (i % 2)
            swap(fx, &node);
    }
    assert_int_equal(count_status(fx, job, STATUS_COMPLETED), 2 * ROUNDS);
    node_close(&node);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(nothing_is_missed_or_doubled_when_the_leader_changes),
        QUEUE_TEST(what_one_node_plans_the_leader_fires),
        QUEUE_TEST(a_plan_nobody_told_of_is_fired),
        QUEUE_TEST(edits_and_fires_do_not_wait_for_each_other),
        QUEUE_TEST(a_category_made_on_one_node_is_known_to_all),
        QUEUE_TEST(two_nodes_cannot_make_a_cycle_together),
        QUEUE_TEST(an_end_and_a_run_on_two_nodes_never_miss_each_other),
        QUEUE_TEST(a_trigger_made_on_one_node_works_on_the_other),
        QUEUE_TEST(a_limit_of_runs_holds_over_all_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
