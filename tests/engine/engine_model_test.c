/* Seeded random walks over the whole interface, several requests per commit, with workers that
 * vanish and a close of everything now and then. What must hold all the time is checked against a
 * small model, the rest (V1 to V7) by verify after every close. PERDURA_SEED sets the seed, which
 * is printed; PERDURA_STEPS makes a longer walk. */
#include "engine_fixture.h"

#define TASKS_MAX 4000
#define HELD_MAX 400
#define TOGETHER_MAX 8
#define STEPS_DEFAULT 700 /* commits with up to TOGETHER_MAX requests each */
#define WORKERS 3

static const char *const workers[WORKERS] = {"w0", "w1", "zombie"}; /* the last never reports */

/* What the model knows of a task. */
struct known {
    struct uuid id;
    struct uuid parents[3];
    uint32_t parents_count;
    int64_t token;   /* of the newest claim */
    bool gone;       /* deleted */
    bool forced;     /* retried or recovered by hand: runs whatever its parents do */
};

struct holding {
    uint32_t task;
    int64_t token;
    uint32_t worker;
};

/* One request of a commit under way. */
struct under_way {
    enum request_kind kind;
    struct request *request;
    struct engine_call call;
    struct arena arena;
    uint32_t task; /* whom it concerns, where it concerns one */
    uint32_t worker;
    struct uuid parents[3];
    uint32_t parents_count;
};

struct walk {
    struct fixture *fx;
    uint64_t seed;
    struct known tasks[TASKS_MAX];
    uint32_t tasks_count;
    struct holding held[HELD_MAX];
    uint32_t held_count;
    struct under_way ways[TOGETHER_MAX];
    uint32_t ways_count;
    uint32_t enqueued, duplicates, claimed, reported, stale, refused;
};

static uint32_t dice(struct walk *walk, uint32_t sides)
{
    walk->seed = walk->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(walk->seed >> 33) % sides;
}

static struct under_way *way_new(struct walk *walk, enum request_kind kind)
{
    struct under_way *way = &walk->ways[walk->ways_count++];

    arena_reset(&way->arena);
    way->kind = kind;
    way->task = TASKS_MAX;
    way->parents_count = 0;
    return way;
}

static void submit(struct walk *walk, struct under_way *way, struct request *request)
{
    way->request = request;
    engine_call_start(walk->fx->engine, request, &way->call);
}

static void write_parents(struct walk *walk, struct under_way *way, struct buf *text)
{
    static const char *const kinds[] = {"success", "completion", "failure"};
    char id[UUID_TEXT_BYTES];

    buf_text(text, ",\"depends_on\":[");
    for (uint32_t i = 1 + dice(walk, 3); i > 0; i--) {
        struct known *parent = &walk->tasks[dice(walk, walk->tasks_count)];
        bool twice = parent->gone;

        for (uint32_t k = 0; k < way->parents_count; k++)
            twice |= uuid_eq(&way->parents[k], &parent->id);
        if (twice)
            continue;
        uuid_format(&parent->id, id);
        buf_format(text, "%s{\"task\":\"%s\",\"type\":\"%s\"}", way->parents_count ? "," : "", id,
                   kinds[dice(walk, 3)]);
        way->parents[way->parents_count++] = parent->id;
    }
    buf_byte(text, ']');
}

static void start_enqueue(struct walk *walk)
{
    static const char *const policies[] = {"cancel", "fail", "run"};
    struct under_way *way = way_new(walk, REQUEST_ENQUEUE);
    struct buf text = BUF_INIT(64 * 1024);
    struct enqueue_request *request;

    buf_format(&text, "{\"type\":\"t%u\",\"max_retries\":%u,\"retry_delay_ms\":%u,\"priority\":%d,"
                      "\"on_unsatisfied\":\"%s\",\"auto_recovery\":%s,\"user_id\":\"u%u\"",
               dice(walk, 3), dice(walk, 2), dice(walk, 3), (int)dice(walk, 20) - 10,
               policies[dice(walk, 3)], dice(walk, 4) ? "true" : "false", dice(walk, 3));
    if (dice(walk, 3) == 0)
        buf_format(&text, ",\"limit_key\":\"k%u\"", dice(walk, 3));
    if (dice(walk, 5) == 0)
        buf_format(&text, ",\"delay_ms\":%u", dice(walk, 6));
    if (dice(walk, 6) == 0)
        buf_format(&text, ",\"idempotency_key\":\"i%u\",\"unique_until\":\"%s\"", dice(walk, 40),
                   dice(walk, 2) ? "ended" : "forever");
    if (walk->tasks_count && dice(walk, 3) == 0)
        write_parents(walk, way, &text);
    buf_byte(&text, '}');
    request = enqueue_prepare(walk->fx, &way->arena, arena_str(&way->arena, buf_view(&text)));
    buf_deinit(&text);
    submit(walk, way, &request->base);
}

static void start_claim(struct walk *walk)
{
    struct under_way *way = way_new(walk, REQUEST_CLAIM);

    way->worker = dice(walk, 12) ? dice(walk, 2) : 2;
    submit(walk, way, &claim_prepare(&way->arena, workers[way->worker], 1 + dice(walk, 3),
                                     dice(walk, 4) ? 0 : 3)->base);
}

static void start_report(struct walk *walk)
{
    static const enum report_op ops[] = {REPORT_START, REPORT_PROGRESS, REPORT_CHECKPOINT,
                                         REPORT_LOG, REPORT_SPAWN, REPORT_COMPLETE,
                                         REPORT_COMPLETE, REPORT_CONTINUE, REPORT_CONTINUE,
                                         REPORT_FAIL, REPORT_FAIL, REPORT_PARTIAL,
                                         REPORT_RELEASE};
    struct under_way *way;
    struct holding *holding;
    struct report one;

    if (walk->held_count == 0)
        return;
    way = way_new(walk, REQUEST_REPORT);
    holding = &walk->held[dice(walk, walk->held_count)];
    way->task = holding->task;
    one = (struct report){.task_id = walk->tasks[holding->task].id,
                          .lease_token = holding->token,
                          .op = ops[dice(walk, sizeof ops / sizeof ops[0])],
                          .progress = (int64_t)dice(walk, 101),
                          .state = dice(walk, 2) ? STR("Step") : STR_NONE,
                          .name = STR("c"),
                          .message = STR("m"),
                          .data = STR("{\"d\":1}"),
                          .tasks = STR("[{\"type\":\"t0\",\"ref\":\"a\",\"max_retries\":0},"
                                       "{\"type\":\"t1\"}]"),
                          .result = STR("1"),
                          .delay_ms = (int64_t)dice(walk, 3),
                          .wait_children = dice(walk, 2) == 0,
                          .retryable = dice(walk, 3) != 0};
    if (dice(walk, 10) == 0)
        one.lease_token -= 1; /* a zombie's */
    submit(walk, way, &report_prepare(walk->fx, &way->arena, workers[holding->worker], &one,
                                      1)->base);
}

static void start_control(struct walk *walk)
{
    static const enum control_op ops[] = {CONTROL_CANCEL, CONTROL_RETRY, CONTROL_RETRY,
                                          CONTROL_PAUSE, CONTROL_RESUME, CONTROL_RESUME,
                                          CONTROL_PRIORITIZE, CONTROL_RECOVER, CONTROL_RECOVER,
                                          CONTROL_DELETE};
    struct under_way *way;
    struct control_request *request;

    if (walk->tasks_count == 0)
        return;
    way = way_new(walk, REQUEST_CONTROL);
    way->task = dice(walk, walk->tasks_count);
    request = control_prepare(&way->arena, walk->tasks[way->task].id,
                              ops[dice(walk, sizeof ops / sizeof ops[0])]);
    request->priority = (int64_t)dice(walk, 20);
    submit(walk, way, &request->base);
}

static void start_heartbeat(struct walk *walk)
{
    struct under_way *way = way_new(walk, REQUEST_HEARTBEAT);
    struct heartbeat_request *request = arena_alloc(&way->arena, sizeof *request);

    way->worker = dice(walk, 2);
    *request = (struct heartbeat_request){.base = {.kind = REQUEST_HEARTBEAT,
                                                   .arena = &way->arena},
                                          .worker_id = str_of(workers[way->worker])};
    submit(walk, way, &request->base);
}

static void start_patch(struct walk *walk)
{
    static const struct type_limit limits[] = {{.type = STR("t1"), .concurrency = 3}};
    struct under_way *way = way_new(walk, REQUEST_QUEUE_PATCH);
    struct queue_patch_request *request = arena_alloc(&way->arena, sizeof *request);

    *request = (struct queue_patch_request){
        .base = {.kind = REQUEST_QUEUE_PATCH, .arena = &way->arena},
        .name = STR("default"),
        .rule = {.concurrency = dice(walk, 2) ? 0 : 20,
                 .key_concurrency = dice(walk, 3),
                 .key_rate = {.count = dice(walk, 3) ? 0 : 200, .per_ms = 1000, .burst = 2},
                 .type_limits = limits,
                 .type_limits_count = dice(walk, 2)},
        .set = QUEUE_SET_CONCURRENCY | QUEUE_SET_KEY_CONCURRENCY | QUEUE_SET_KEY_RATE |
               QUEUE_SET_TYPE_LIMITS};
    submit(walk, way, &request->base);
}

static struct known *know(struct walk *walk, const struct uuid *id)
{
    for (uint32_t i = walk->tasks_count; i-- > 0;)
        if (uuid_eq(&walk->tasks[i].id, id))
            return &walk->tasks[i];
    assert_true(walk->tasks_count < TASKS_MAX);
    walk->tasks[walk->tasks_count] = (struct known){.id = *id};
    return &walk->tasks[walk->tasks_count++];
}

static bool ended_once(struct fixture *fx, struct uuid id)
{
    const char *story = story_of(fx, id);

    return strstr(story, "completed") || strstr(story, "failed") || strstr(story, "cancelled") ||
           strstr(story, "dead_letter") || strstr(story, "partial");
}

static void take_claim(struct walk *walk, struct under_way *way)
{
    struct claim_request *request = (struct claim_request *)way->request;

    for (uint32_t i = 0; i < request->claimed_count; i++) {
        struct task *task = request->claimed[i].task;
        struct known *known = know(walk, &task->id);

        assert_true(task->lease.token > known->token); /* V5 */
        known->token = task->lease.token;
        walk->claimed++;
        for (uint32_t k = 0; k < known->parents_count && !known->forced; k++) /* V6 */
            assert_true(!get_or_null(walk->fx, known->parents[k]) ||
                        ended_once(walk->fx, known->parents[k]));
        if (way->worker == 2)
            continue; /* never heard of again */
        assert_true(walk->held_count < HELD_MAX);
        walk->held[walk->held_count++] =
            (struct holding){(uint32_t)(known - walk->tasks), task->lease.token, way->worker};
    }
}

static void take_report(struct walk *walk, struct under_way *way)
{
    struct report_request *request = (struct report_request *)way->request;
    struct report *one = &request->reports[0];
    bool gone = request->results[0].code == ERR_STALE_LEASE ||
                request->results[0].code == ERR_NOT_FOUND;

    walk->reported++;
    walk->stale += gone;
    if (one->lease_token != walk->tasks[way->task].token && one->op < REPORT_COMPLETE)
        assert_true(gone); /* F-B2; an outcome may be the very one that ended that lease (F-A9) */
    if (!gone && one->op < REPORT_COMPLETE)
        return;
    for (uint32_t i = 0; i < walk->held_count; i++)
        if (walk->held[i].task == way->task && walk->held[i].token == one->lease_token) {
            walk->held[i] = walk->held[--walk->held_count];
            return;
        }
}

static void take_answer(struct walk *walk, struct under_way *way)
{
    enum err_code code = way->request->err.code;

    walk->refused += code != ERR_NONE;
    if (code == ERR_NOT_FOUND && (way->kind == REQUEST_CLAIM || way->kind == REQUEST_REPORT ||
                                  way->kind == REQUEST_HEARTBEAT)) {
        for (int i = 0; i < WORKERS; i++) /* silent for too long: all register again */
            worker(walk->fx, workers[i], "default");
        return;
    }
    if (code == ERR_TRANSITION || code == ERR_NOT_FOUND || code == ERR_INVALID ||
        (code == ERR_CONFLICT && way->kind == REQUEST_CONTROL)) /* its key is another's now */
        return;
    if (code != ERR_NONE)
        fail_msg("kind %d: %s", (int)way->kind, way->request->err.text);
    if (way->kind == REQUEST_ENQUEUE) {
        struct enqueue_request *request = (struct enqueue_request *)way->request;
        struct known *known = know(walk, &request->tasks[0]->id);

        walk->enqueued++;
        walk->duplicates += request->duplicate[0];
        if (request->duplicate[0])
            return;
        memcpy(known->parents, way->parents, sizeof known->parents);
        known->parents_count = way->parents_count;
    } else if (way->kind == REQUEST_CLAIM) {
        take_claim(walk, way);
    } else if (way->kind == REQUEST_REPORT) {
        take_report(walk, way);
    } else if (way->kind == REQUEST_CONTROL) {
        struct control_request *request = (struct control_request *)way->request;

        walk->tasks[way->task].gone |= request->op == CONTROL_DELETE;
        walk->tasks[way->task].forced |= request->op == CONTROL_RETRY;
    }
}

static void step(struct walk *walk)
{
    static void (*const starts[])(struct walk *) = {
        start_enqueue, start_enqueue, start_enqueue, start_claim,   start_claim, start_report,
        start_report,  start_report,  start_report,  start_control, start_heartbeat};

    walk->ways_count = 0;
    fx_hold(walk->fx); /* one commit */
    for (uint32_t i = 1 + dice(walk, TOGETHER_MAX); i > 0; i--) {
        if (dice(walk, 60) == 0)
            start_patch(walk);
        else
            starts[dice(walk, sizeof starts / sizeof starts[0])](walk);
    }
    fx_let_go(walk->fx);
    /* all are committed before the first is looked at: what is read is later than all of them */
    for (uint32_t i = 0; i < walk->ways_count; i++)
        engine_call_finish(walk->ways[i].request, &walk->ways[i].call);
    for (uint32_t k = 0; k < 3; k++) /* retries of the same commit count for its claims */
        for (uint32_t i = 0; i < walk->ways_count; i++)
            if ((k == 0) == (walk->ways[i].kind == REQUEST_CONTROL) &&
                (k == 2) == (walk->ways[i].kind == REQUEST_CLAIM))
                take_answer(walk, &walk->ways[i]);
}

static void check_all_known(struct walk *walk) /* V1 */
{
    for (uint32_t i = 0; i < walk->tasks_count; i++)
        assert_true(walk->tasks[i].gone || get_or_null(walk->fx, walk->tasks[i].id));
}

/* No new work, no limits: everything comes to its end. */
static void drain(struct walk *walk)
{
    struct fixture *fx = walk->fx;
    struct engine_stats stats;
    int64_t deadline_ms = fx_now_ms() + 4 * DEADLINE_MS;

    patch(fx, "default", 127, (struct queue_rule){0});
    leave(fx, "w0");
    worker(fx, "w0", "default");
    for (;;) {
        struct claim_request *got = claim(fx, "w0", 100, 20);

        if (got->base.err.code == ERR_NOT_FOUND) /* its lease ended on a busy machine */
            worker(fx, "w0", "default");
        else
            assert_int_equal(got->base.err.code, ERR_NONE);
        for (uint32_t i = 0; i < got->claimed_count; i++) {
            enum err_code code = report(fx, "w0", got->claimed[i].task, .op = REPORT_COMPLETE);

            assert_true(code == ERR_NONE || code == ERR_STALE_LEASE); /* then it comes again */
        }
        stats = stats_of(fx);
        if (stats.counts[STATUS_PENDING] + stats.counts[STATUS_DELAYED] +
            stats.counts[STATUS_CLAIMED] + stats.counts[STATUS_RUNNING] == 0)
            break;
        assert_true(fx_now_ms() < deadline_ms);
    }
    assert_int_equal(stats.counts[STATUS_RECOVERING], 0);
    /* a task that is still blocked waits for one that is paused or orphaned, or for one that
     * does */
    assert_true(stats.counts[STATUS_BLOCKED] == 0 ||
                stats.counts[STATUS_PAUSED] + stats.counts[STATUS_ORPHANED] > 0);
}

static void run_walk(struct fixture *fx, uint64_t seed, uint32_t steps)
{
    struct walk *walk = calloc(1, sizeof *walk);

    assert_non_null(walk);
    walk->fx = fx;
    walk->seed = seed;
    fx_lease(fx, 400);
    for (int i = 0; i < WORKERS; i++)
        worker(fx, workers[i], "default");
    for (uint32_t i = 0; i < steps && walk->tasks_count < TASKS_MAX - 100; i++) {
        step(walk);
        if (i % 200 == 199) {
            fx_verify(fx);
            check_all_known(walk);
        }
        if (i % 50 == 49)
            arena_reset(&fx->arena);
    }
    drain(walk);
    check_all_known(walk);
    fx_verify(fx);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM task_states WHERE parked IS NOT NULL"), 0);
    print_message("seed %llu: %u enqueued (%u duplicates), %u claimed, %u reported (%u stale), "
                  "%u refused\n", (unsigned long long)seed, walk->enqueued, walk->duplicates,
                  walk->claimed, walk->reported, walk->stale, walk->refused);
    for (int i = 0; i < TOGETHER_MAX; i++)
        arena_deinit(&walk->ways[i].arena);
    free(walk);
}

static uint64_t given(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void a_random_walk_keeps_every_invariant(void **state) /* V1 to V7 */
{
    run_walk(*state, given("PERDURA_SEED", 1), (uint32_t)given("PERDURA_STEPS", STEPS_DEFAULT));
}

static void another_random_walk_keeps_every_invariant(void **state) /* V1 to V7 */
{
    run_walk(*state, given("PERDURA_SEED", 1) + 1000,
             (uint32_t)given("PERDURA_STEPS", STEPS_DEFAULT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_random_walk_keeps_every_invariant),
        QUEUE_TEST(another_random_walk_keeps_every_invariant),
    };

    return cmocka_run_group_tests_name("queue model", tests, NULL, NULL);
}
