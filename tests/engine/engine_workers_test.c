/* Workers and their leases: registration, heartbeats, tasks that come back from workers that are
 * gone (E5, F-A5, F-A6), poison (F-H2), tokens (V5), what a restart finds, and workers without end
 * (F-H17). */
#include "engine_fixture.h"

#define LEASE_MS 900 /* a busy machine keeps it */
#define VANISH_COUNT 10000
#define VANISH_STEP 250

static struct workers_request *workers_of(struct fixture *fx, const char *id)
{
    struct workers_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct workers_request){.base = {.kind = REQUEST_WORKERS, .arena = &fx->arena},
                                        .id = str_of(id)};
    engine_call(fx->engine, &request->base);
    return request;
}

static void a_worker_registers_and_is_listed(void **state) /* E3 */
{
    struct fixture *fx = *state;
    struct register_request *made = register_as(fx, NULL, "q", false);
    struct workers_request *list;
    char id[200];

    assert_int_equal(made->lease_ms, 30000);
    assert_int_equal(made->heartbeat_ms, 10000);
    assert_true(str_starts(made->id, STR("host-")));
    assert_true(made->id.len >= 5 + 16); /* host and 64 random bits (F-B10) */
    snprintf(id, sizeof id, STR_FMT, STR_ARG(made->id));
    list = workers_of(fx, id);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->workers[0].status, "idle");
    assert_true(str_is(list->workers[0].row.queues, "[\"q\"]"));
    enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\"}");
    claim_one(fx, id);
    list = workers_of(fx, id);
    assert_string_equal(list->workers[0].status, "working");
    assert_int_equal(list->workers[0].tasks_count, 1);
    reopen(fx);
    assert_int_equal(workers_of(fx, id)->count, 1);
    assert_int_equal(workers_of(fx, "nobody")->base.err.code, ERR_NOT_FOUND);
}

static void a_heartbeat_names_what_is_lost(void **state)
{
    struct fixture *fx = *state;
    struct task *held[3], wrong;
    struct heartbeat_request *beat;

    worker(fx, "w", "default");
    for (int i = 0; i < 3; i++) {
        enqueue(fx, "{\"type\":\"t\"}");
        held[i] = claim_one(fx, "w")->task;
    }
    report_ok(fx, "w", held[0], .op = REPORT_COMPLETE);
    wrong = *held[1];
    wrong.lease.token += 5;
    held[1] = &wrong;
    beat = heartbeat(fx, "w", held, 3);
    assert_int_equal(beat->base.err.code, ERR_NONE);
    assert_int_equal(beat->lost_count, 2);
    assert_true(uuid_eq(&beat->lost[0], &held[0]->id));
    assert_true(uuid_eq(&beat->lost[1], &held[1]->id));
    assert_int_equal(beat->lost_tokens[1], held[1]->lease.token);
    beat = heartbeat(fx, "w", NULL, 0);
    assert_int_equal(beat->lost_count + beat->cancel_count + beat->pause_count, 0);
    assert_int_equal(stats_of(fx).totals[TOTAL_STALE_HEARTBEATS], 2);
}

static void any_sign_of_a_worker_renews_all_its_leases(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;
    struct task *held;
    int64_t until_ms;

    fx_lease(fx, 2 * LEASE_MS);
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    held = claim_one(fx, "w")->task;
    for (int kind = 0; kind < 3; kind++) { /* heartbeat, claim, report of something else */
        until_ms = fx_now_ms() + 3 * LEASE_MS;
        while (fx_now_ms() < until_ms) {
            if (kind == 0)
                heartbeat(fx, "w", NULL, 0);
            else if (kind == 1)
                claim(fx, "w", 1, 20);
            else
                assert_int_equal(report(fx, "w", held, .op = REPORT_PROGRESS,
                                        .lease_token = 99), ERR_STALE_LEASE);
            fx_pause_ms(10);
        }
        assert_status(fx, id, STATUS_CLAIMED);
    }
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
}

static void a_long_waiting_claim_keeps_its_worker_alive(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    claim_one(fx, "w");
    assert_int_equal(claim(fx, "w", 1, 3 * LEASE_MS)->claimed_count, 0);
    assert_status(fx, id, STATUS_CLAIMED);
}

static void a_lost_lease_brings_the_task_back_in_one_transaction(void **state) /* E5 */
{
    struct fixture *fx = *state;
    struct uuid id;
    struct task *held, *task;
    uint32_t count;
    struct task_event *events;
    struct execution *executions;

    fx_lease(fx, LEASE_MS);
    worker(fx, "lost", "default");
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\",\"max_retries\":0}"); /* a crash uses no retry */
    held = claim_one(fx, "lost")->task;
    report_ok(fx, "lost", held, .op = REPORT_CHECKPOINT, .name = STR("c"), .data = STR("1"));
    held = claim_one(fx, "w")->task;
    task = get(fx, id);
    events = events_of(fx, id, &count);
    assert_string_equal(story_of(fx, id), "pending claimed running running orphaned recovering "
                                          "pending claimed");
    for (int i = 4; i <= 6; i++) {
        assert_int_equal(events[i].created_at_us, events[4].created_at_us);
        assert_int_equal(events[i].actor, ACTOR_RECOVERY);
    }
    assert_int_equal(task->counts.crashes, 1);
    assert_int_equal(task->counts.retries, 0);
    assert_true(str_is(held->resume.from, "c"));
    executions = executions_of(fx, id, &count);
    assert_int_equal(executions[1].status, EXECUTION_FAILED);
    assert_true(has_text(executions[1].error_data, "\"reason\":\"worker_lost\""));
    assert_int_equal(stats_of(fx).totals[TOTAL_LOST_LEASES], 1);
    fx_verify(fx);
}

static void a_pause_asked_for_holds_when_the_worker_is_lost(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    worker(fx, "lost", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    claim_one(fx, "lost");
    assert_int_equal(control(fx, id, CONTROL_PAUSE), ERR_NONE);
    wait_status(fx, id, STATUS_PAUSED);
    assert_int_equal(get(fx, id)->counts.crashes, 1);
}

static void what_only_waited_in_a_lost_worker_is_not_to_blame(void **state) /* C6, F-H2 */
{
    struct fixture *fx = *state;
    struct claim_request *taken;
    struct uuid ids[3];

    fx_lease(fx, LEASE_MS);
    worker(fx, "lost", "default");
    for (int i = 0; i < 3; i++)
        ids[i] = enqueue(fx, "{\"type\":\"t\"}");
    taken = claim(fx, "lost", 3, DEADLINE_MS);
    assert_int_equal(taken->claimed_count, 3);
    report_ok(fx, "lost", taken->claimed[1].task, .op = REPORT_START);
    for (int i = 0; i < 3; i++)
        wait_status(fx, ids[i], STATUS_PENDING);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(fx, ids[i])->counts.crashes, i == 1);
        assert_int_equal(get(fx, ids[i])->counts.attempts, 1);
    }
    assert_int_equal(stats_of(fx).totals[TOTAL_LOST_LEASES], 3);
    fx_verify(fx);
}

static void the_third_crash_is_poison(void **state) /* F-H2 */
{
    struct fixture *fx = *state;
    struct uuid id, other;

    fx_lease(fx, 900);
    id = enqueue(fx, "{\"type\":\"t\",\"priority\":5}");
    for (int crash = 0; crash < 3; crash++) {
        worker(fx, "lost", "default");
        assert_int_equal(claim_one(fx, "lost")->task->counts.crashes, crash);
        wait_until(get(fx, id)->counts.crashes == crash + 1);
    }
    assert_status(fx, id, STATUS_DEAD_LETTER);
    assert_true(str_is(get(fx, id)->fault.error, "poison"));
    assert_int_equal(get(fx, id)->counts.retries, 0);
    other = enqueue(fx, "{\"type\":\"t\"}"); /* others are not affected */
    worker(fx, "lost", "default");
    assert_true(uuid_eq(&claim_one(fx, "lost")->task->id, &other));
    assert_int_equal(control(fx, id, CONTROL_RETRY), ERR_NONE);
    assert_int_equal(get(fx, id)->counts.crashes, 0);
    fx_verify(fx);
}

static void a_task_the_holder_does_not_know_of_comes_back(void **state) /* F-A5 */
{
    struct fixture *fx = *state;
    struct task *known;
    struct uuid unknown;

    fx_lease(fx, LEASE_MS);
    worker(fx, "w", "default");
    enqueue(fx, "{\"type\":\"t\"}");
    known = claim_one(fx, "w")->task;
    unknown = enqueue(fx, "{\"type\":\"t\"}");
    claim_one(fx, "w"); /* its answer got lost on the way */
    wait_until(heartbeat(fx, "w", &known, 1)->lost_count == 0 &&
               get(fx, unknown)->status == STATUS_PENDING);
    assert_int_equal(get(fx, unknown)->counts.crashes, 1);
    assert_status(fx, known->id, STATUS_CLAIMED);
    fx_verify(fx);
}

static void a_worker_that_leaves_gives_its_tasks_back(void **state)
{
    struct fixture *fx = *state;
    struct uuid ids[3];

    worker(fx, "w", "default");
    for (int i = 0; i < 3; i++)
        ids[i] = enqueue(fx, "{\"type\":\"t\"}");
    assert_int_equal(claim(fx, "w", 3, 0)->claimed_count, 3);
    assert_int_equal(control(fx, ids[1], CONTROL_CANCEL), ERR_NONE);
    assert_int_equal(control(fx, ids[2], CONTROL_PAUSE), ERR_NONE);
    leave(fx, "w");
    assert_status(fx, ids[0], STATUS_PENDING);
    assert_status(fx, ids[1], STATUS_CANCELLED);
    assert_false(get(fx, ids[1])->lease.held);
    assert_status(fx, ids[2], STATUS_PAUSED);
    assert_int_equal(get(fx, ids[0])->counts.attempts + get(fx, ids[0])->counts.crashes, 0);
    assert_int_equal(claim(fx, "w", 1, 0)->base.err.code, ERR_NOT_FOUND);
    fx_verify(fx);
}

/* B1: also by the first heartbeat after it, which another writer answers. */
static void a_worker_that_was_removed_is_told_so_at_once(void **state)
{
    struct fixture *fx = *state;
    struct uuid id;

    worker(fx, "w", "default");
    for (int i = 0; i < 3; i++) {
        struct task *held;

        id = enqueue(fx, "{\"type\":\"t\"}");
        held = claim_one(fx, "w")->task;
        assert_int_equal(heartbeat(fx, "w", NULL, 0)->base.err.code, ERR_NONE);
        report_ok(fx, "w", held, .op = REPORT_START);
        leave(fx, "w");
        assert_int_equal(heartbeat(fx, "w", NULL, 0)->base.err.code, ERR_NOT_FOUND);
        assert_int_equal(claim(fx, "w", 1, 0)->base.err.code, ERR_NOT_FOUND);
        assert_status(fx, id, STATUS_PENDING);
        assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
        worker(fx, "w", "default");
    }
}

/* E3: not a process of the server, which must not be killed for it. */
static void an_id_made_for_a_worker_names_its_own_process_or_none(void **state)
{
    struct fixture *fx = *state;
    struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = &fx->arena},
                                       .worker = {.hostname = STR("box"), .pool_size = 1}};
    const struct str queue = STR("default");
    char mine[32];

    snprintf(mine, sizeof mine, "-%ld-", (long)getpid());
    request.queues = &queue;
    request.queues_count = 1;
    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    assert_true(str_starts(request.id, STR("box-")));
    assert_false(has_text(request.id, mine));
    request.pid = 4711;
    assert_int_equal(engine_call(fx->engine, &request.base), 0);
    assert_true(str_starts(request.id, STR("box-4711-")));
}

/* F-B6, F-B7: no worker is declared dead before live ones had one lease to say so. */
static void a_queue_that_stalled_takes_nothing_from_workers_that_live(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    struct uuid id;

    fx_lease(fx, LEASE_MS);
    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\"}");
    held = claim_one(fx, "w")->task;
    fx_hold(fx);
    fx_pause_ms(3 * LEASE_MS);
    fx_let_go(fx);
    stats_of(fx); /* the sweep, long due, would be part of this commit at the latest */
    assert_int_equal(heartbeat(fx, "w", &held, 1)->lost_count, 0);
    assert_status(fx, id, STATUS_CLAIMED);
    wait_status(fx, id, STATUS_PENDING); /* it fell silent: one lease later it is gone */
    assert_int_equal(get(fx, id)->counts.crashes, 1);
    fx_verify(fx);
}

/* The lease ends while the queue is busy, and the claim that renews it meets the sweep in one
 * commit. Tried again where the machine was too slow for such a moment. */
static void a_claim_that_meets_the_sweep_keeps_what_its_worker_holds(void **state) /* F-B1 */
{
    struct fixture *fx = *state;
    int64_t lease_ms = 600, deadline_ms = fx_now_ms() + DEADLINE_MS, until_ms;
    struct claim_request *request;
    struct engine_call call;
    struct uuid id;

    fx_lease(fx, lease_ms);
    worker(fx, "w", "default");
    do {
        fx_let_go(fx);
        id = enqueue(fx, "{\"type\":\"t\"}");
        until_ms = fx_now_ms() + lease_ms;
        while (!uuid_eq(&claim_one(fx, "w")->task->id, &id))
            continue; /* one that an earlier try lost */
        fx_pause_ms(until_ms - 120 - fx_now_ms());
        fx_hold(fx);
    } while (fx_now_ms() > until_ms - 20 && fx_now_ms() < deadline_ms);
    fx_pause_ms(until_ms + 40 - fx_now_ms()); /* too short for a stall, a third of the lease */
    request = claim_prepare(&fx->arena, "w", 1, 0);
    engine_call_start(fx->engine, &request->base, &call);
    fx_let_go(fx);
    engine_call_finish(&request->base, &call);
    assert_status(fx, id, STATUS_CLAIMED);
    assert_int_equal(get(fx, id)->counts.crashes, 0);
}

static void silent_workers_are_removed(void **state)
{
    struct fixture *fx = *state;

    fx_lease(fx, 900);
    worker(fx, "silent", "default");
    worker(fx, "loud", "default");
    wait_until(heartbeat(fx, "loud", NULL, 0)->base.err.code == ERR_NONE &&
               workers_of(fx, "silent")->base.err.code == ERR_NOT_FOUND);
    assert_int_equal(claim(fx, "silent", 1, 0)->base.err.code, ERR_NOT_FOUND);
    assert_int_equal(workers_of(fx, "loud")->count, 1);
}

static void the_pool_of_a_dead_process_loses_its_tasks_at_once(void **state) /* F-A5, D13 */
{
    struct fixture *fx = *state;
    struct register_request *pool = register_as(fx, NULL, "default", true);
    char id[200];
    struct uuid task;
    uint32_t count;

    if (fx->store->shared) { /* what it held is found by its lease */
        skip();
        return;
    }
    snprintf(id, sizeof id, STR_FMT, STR_ARG(pool->id));
    task = enqueue(fx, "{\"type\":\"t\"}");
    claim_one(fx, id);
    reopen(fx);
    wait_status(fx, task, STATUS_PENDING); /* though the lease of 30 s is far from over */
    assert_int_equal(get(fx, task)->counts.crashes, 1);
    assert_true(has_text(executions_of(fx, task, &count)[0].error_data, "service_restart"));
    assert_string_equal(story_of(fx, task), "pending claimed orphaned recovering pending");
    fx_verify(fx);
}

static void workers_elsewhere_get_one_lease_after_a_restart(void **state) /* F-A5, F-A6 */
{
    struct fixture *fx = *state;
    struct task *lives, *dies;
    int64_t opened_ms;

    fx_lease(fx, LEASE_MS);
    worker(fx, "lives", "default");
    worker(fx, "dies", "default");
    enqueue(fx, "{\"type\":\"t\"}");
    enqueue(fx, "{\"type\":\"t\"}");
    lives = claim_one(fx, "lives")->task;
    dies = claim_one(fx, "dies")->task;
    fx_close(fx);
    fx_pause_ms(LEASE_MS + 50); /* longer than a lease: the server was away */
    opened_ms = fx_now_ms();
    fx_open(fx);
    wait_until(heartbeat(fx, "lives", &lives, 1)->lost_count == 0 &&
               get(fx, dies->id)->status == STATUS_PENDING);
    assert_true(fx_now_ms() - opened_ms >= LEASE_MS - 20);
    assert_int_equal(get(fx, dies->id)->counts.crashes, 1);
    assert_status(fx, lives->id, STATUS_CLAIMED);
    report_ok(fx, "lives", lives, .op = REPORT_COMPLETE); /* the same token still counts */
    fx_verify(fx);
}

static void tokens_grow_and_never_repeat(void **state) /* V5, F-B9 */
{
    struct fixture *fx = *state;
    struct uuid id;
    int64_t attempts = 0;

    worker(fx, "w", "default");
    id = enqueue(fx, "{\"type\":\"t\",\"retry_delay_ms\":1,\"max_retries\":100}");
    for (int64_t token = 1; token <= 12; token++) {
        struct task *held = claim_one(fx, "w")->task;

        assert_true(uuid_eq(&held->id, &id));
        assert_int_equal(held->lease.token, token);
        switch (token % 6) {
        case 0:
            report_ok(fx, "w", held, .op = REPORT_RELEASE);
            break;
        case 1:
            report_ok(fx, "w", held, .op = REPORT_FAIL);
            break;
        case 2:
            report_ok(fx, "w", held, .op = REPORT_CONTINUE);
            break;
        case 3:
            assert_int_equal(control(fx, id, CONTROL_CANCEL), ERR_NONE);
            assert_int_equal(control(fx, id, CONTROL_RETRY), ERR_NONE);
            break;
        case 4:
            report_ok(fx, "w", held, .op = REPORT_COMPLETE);
            assert_int_equal(control(fx, id, CONTROL_RETRY), ERR_NONE);
            break;
        default:
            leave(fx, "w");
            worker(fx, "w", "default");
        }
        assert_true(get(fx, id)->counts.attempts >= attempts);
        attempts = get(fx, id)->counts.attempts;
        if (token % 4 == 0)
            reopen(fx);
        /* every lease but the last is dead */
        assert_int_equal(report(fx, "w", held, .op = REPORT_LOG, .message = STR("late")),
                         ERR_STALE_LEASE);
    }
    fx_verify(fx);
}

static void workers_that_register_and_vanish_are_pruned(void **state) /* F-H17 */
{
    struct fixture *fx = *state;
    struct arena arenas[VANISH_STEP] = {{0}};
    struct register_request requests[VANISH_STEP];
    struct engine_call calls[VANISH_STEP];
    struct str queue = STR("default");

    fx_lease(fx, 900);
    for (int done = 0; done < VANISH_COUNT; done += VANISH_STEP) {
        for (int i = 0; i < VANISH_STEP; i++) {
            requests[i] = (struct register_request){
                .base = {.kind = REQUEST_REGISTER, .arena = &arenas[i]},
                .worker = {.hostname = STR("h")},
                .queues = &queue,
                .queues_count = 1};
            engine_call_start(fx->engine, &requests[i].base, &calls[i]);
        }
        for (int i = 0; i < VANISH_STEP; i++) {
            assert_int_equal(engine_call_finish(&requests[i].base, &calls[i]), 0);
            arena_reset(&arenas[i]);
        }
    }
    for (int i = 0; i < VANISH_STEP; i++)
        arena_deinit(&arenas[i]);
    wait_until(fx_ask(fx, "SELECT count(*) FROM workers") <= 1); /* the node itself stays */
    assert_int_equal(stats_of(fx).workers, 0);
}

/* Each names as many queues as it may: the memory of all has a bound of its own. */
static void workers_with_many_names_are_refused_before_they_fill_the_memory(void **state) /* F-H17 */
{
    struct fixture *fx = *state;
    struct str queues[256];
    char name[200];
    int made = 0;
    int rc = 0;

    memset(name, 'n', sizeof name);
    for (int i = 0; i < 256; i++)
        queues[i] = str_span(name, sizeof name);
    while (rc == 0 && made < 32000) {
        struct arena arena = ARENA_INIT(0);
        struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = &arena},
                                           .worker = {.hostname = STR("h")},
                                           .queues = queues,
                                           .queues_count = 256};

        rc = engine_call(fx->engine, &request.base);
        made += rc == 0;
        arena_deinit(&arena);
    }
    assert_int_equal(rc, -ERR_RATE);
    assert_in_range(made, 300, 1300);
}

static struct heartbeat_request *tell_day(struct fixture *fx, const char *process, int64_t day,
                                          const char *const *agents, uint32_t count)
{
    struct heartbeat_request *request = arena_alloc(&fx->arena, sizeof *request);
    struct agent_day *days = arena_alloc_array(&fx->arena, count, sizeof *days);

    *request = (struct heartbeat_request){.base = {.kind = REQUEST_HEARTBEAT, .arena = &fx->arena},
                                          .worker_id = STR("w"), .process = str_of(process),
                                          .days = days, .days_count = count};
    for (uint32_t i = 0; i < count; i++)
        days[i] = (struct agent_day){.agent = str_of(agents[i]), .day = day, .used.calls = 3};
    engine_call(fx->engine, &request->base);
    assert_int_equal(request->base.err.code, ERR_NONE);
    return request;
}

static int64_t calls_of_others(struct fixture *fx, int64_t day, const char *agent)
{
    return tell_day(fx, "bbbbbbbbbbbbbbbb", day, &agent, 1)->others[0].used.calls;
}

static void names_of_agents_that_a_client_makes_up_are_bounded(void **state) /* C9, F-H4 */
{
    struct fixture *fx = *state;
    int64_t today = clock_wall_us() / AGENT_DAY_US;
    const char *names[AGENT_DAYS_MAX];

    worker(fx, "w", "default");
    for (int at = 0; at < 2 * AGENT_DAYS_NAMESPACE; at += AGENT_DAYS_MAX) {
        for (int i = 0; i < AGENT_DAYS_MAX; i++)
            names[i] = arena_cstr(&fx->arena, arena_format(&fx->arena, "agent%d", at + i));
        tell_day(fx, "aaaaaaaaaaaaaaaa", today - 1, names, AGENT_DAYS_MAX);
    }
    assert_int_equal(calls_of_others(fx, today - 1, "agent0"), 3);
    assert_int_equal(calls_of_others(fx, today - 1, "agent255"), 3);
    assert_int_equal(calls_of_others(fx, today - 1, "agent256"), 0);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM store_info WHERE name LIKE 'agent_day:%'"),
                     AGENT_DAYS_NAMESPACE);
}

static void days_that_are_over_make_room_for_agents_of_today(void **state) /* C9 */
{
    struct fixture *fx = *state;
    int64_t today = clock_wall_us() / AGENT_DAY_US;
    const char *name = "new";

    worker(fx, "w", "default");
    for (int i = 0; i < AGENT_DAYS_NAMESPACE; i++)
        fx_sql(fx, arena_cstr(&fx->arena, arena_format(&fx->arena,
            "INSERT INTO store_info (name, value) VALUES ('agent_day:default/old%d', '%lld')", i,
            (long long)(today - 2 - i))));
    tell_day(fx, "aaaaaaaaaaaaaaaa", today, &name, 1);
    assert_int_equal(calls_of_others(fx, today, name), 3);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM store_info WHERE name LIKE 'agent_day:%'"),
                     1);
}

static void no_process_ends_the_day_of_the_others(void **state) /* C9, F-H4 */
{
    struct fixture *fx = *state;
    int64_t today = clock_wall_us() / AGENT_DAY_US;
    const char *name = "writer";

    worker(fx, "w", "default");
    tell_day(fx, "cccccccccccccccc", today + 30000, &name, 1);
    tell_day(fx, "aaaaaaaaaaaaaaaa", today, &name, 1);
    tell_day(fx, "dddddddddddddddd", INT64_MAX, &name, 1);
    assert_int_equal(calls_of_others(fx, today, name), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(names_of_agents_that_a_client_makes_up_are_bounded),
        QUEUE_TEST(days_that_are_over_make_room_for_agents_of_today),
        QUEUE_TEST(no_process_ends_the_day_of_the_others),
        QUEUE_TEST(a_worker_registers_and_is_listed),
        QUEUE_TEST(a_heartbeat_names_what_is_lost),
        QUEUE_TEST(any_sign_of_a_worker_renews_all_its_leases),
        QUEUE_TEST(a_long_waiting_claim_keeps_its_worker_alive),
        QUEUE_TEST(a_lost_lease_brings_the_task_back_in_one_transaction),
        QUEUE_TEST(a_pause_asked_for_holds_when_the_worker_is_lost),
        QUEUE_TEST(what_only_waited_in_a_lost_worker_is_not_to_blame),
        QUEUE_TEST(the_third_crash_is_poison),
        QUEUE_TEST(a_task_the_holder_does_not_know_of_comes_back),
        QUEUE_TEST(a_worker_that_leaves_gives_its_tasks_back),
        QUEUE_TEST(a_worker_that_was_removed_is_told_so_at_once),
        QUEUE_TEST(an_id_made_for_a_worker_names_its_own_process_or_none),
        QUEUE_TEST(a_queue_that_stalled_takes_nothing_from_workers_that_live),
        QUEUE_TEST(a_claim_that_meets_the_sweep_keeps_what_its_worker_holds),
        QUEUE_TEST(silent_workers_are_removed),
        QUEUE_TEST(the_pool_of_a_dead_process_loses_its_tasks_at_once),
        QUEUE_TEST(workers_elsewhere_get_one_lease_after_a_restart),
        QUEUE_TEST(tokens_grow_and_never_repeat),
        QUEUE_TEST(workers_that_register_and_vanish_are_pruned),
        QUEUE_TEST(workers_with_many_names_are_refused_before_they_fill_the_memory),
    };

    return cmocka_run_group_tests_name("queue workers", tests, NULL, NULL);
}
