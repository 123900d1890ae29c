/* Tasks as they were (core/replay, A10): tasks are driven through random lives, a snapshot is taken
 * after every step, and the events up to there must give the same again: status, previous status,
 * state, progress, attempts, holder, checkpoint, note and times. */
#include "engine_fixture.h"

#include "core/task/replay.h"

#define LIVES 40
#define STEPS 30
#define LEASE_MS 600

struct life {
    struct fixture *fx;
    uint64_t random;
    struct uuid id;
    struct task *held;     /* as claimed; NULL = no worker has it */
    bool progress_untold;  /* changed by a report that made no event */
    struct task *seen[STEPS + 2]; /* what it was after each step */
    bool untold[STEPS + 2];
    uint32_t seen_count;
};

static uint32_t dice(struct life *life, uint32_t sides)
{
    life->random ^= life->random << 13;
    life->random ^= life->random >> 7;
    life->random ^= life->random << 17;
    return (uint32_t)(life->random >> 33) % sides;
}

static void look(struct life *life)
{
    life->seen[life->seen_count] = get(life->fx, life->id);
    life->untold[life->seen_count++] = life->progress_untold;
}

/* ---- steps ---- */

static void tell(struct life *life)
{
    static const struct str states[] = {STR("Reading"), STR("Writing"), STR("Running")};
    static const struct str details[] = {STR("{\"checkpoint\":9,\"pause_requested\":true}"),
                                         STR("[1]"), STR("{\"progress\":1,\"more\":2}"),
                                         STR("{\"progress\":77}"), STR("{ \"progress\": 78 }"),
                                         {NULL, 0}};
    uint32_t at = dice(life, 6);
    int64_t progress = (int64_t)dice(life, 102) - 1; /* -1: says nothing of it */
    struct str state = dice(life, 2) ? states[dice(life, 3)] : STR_NONE;
    const struct task *task = get(life->fx, life->id);
    bool event = state.data && !str_eq(state, task->status == STATUS_CLAIMED ? STR("Running")
                                                                             : task->state);

    report_ok(life->fx, "w", life->held, .op = REPORT_PROGRESS, .progress = progress,
              .state = state, .detail = details[at]);
    if (progress >= 0)
        life->progress_untold = !event || details[at].data != NULL;
}

static void save(struct life *life)
{
    static const struct str names[] = {STR("one"), STR("tw\"o\n"), {NULL, 0}};
    int64_t progress = (int64_t)dice(life, 102) - 1;

    report_ok(life->fx, "w", life->held, .op = REPORT_CHECKPOINT, .name = names[dice(life, 3)],
              .progress = progress);
    life->progress_untold = false;
}

static void end(struct life *life)
{
    struct fixture *fx = life->fx;
    struct task *held = life->held;

    switch (dice(life, 7)) {
    case 0:
        report_ok(fx, "w", held, .op = REPORT_COMPLETE);
        life->progress_untold = false;
        break;
    case 1:
        report_ok(fx, "w", held, .op = REPORT_PARTIAL, .result = STR("1"));
        break;
    case 2:
        report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("no"), .retryable = false);
        break;
    case 3:
        report_ok(fx, "w", held, .op = REPORT_FAIL, .error = STR("released"));
        break;
    case 4:
        report_ok(fx, "w", held, .op = REPORT_CONTINUE, .delay_ms = dice(life, 2) * 3600000);
        break;
    default:
        report_ok(fx, "w", held, .op = REPORT_RELEASE);
    }
    life->held = NULL;
}

static void note(struct life *life)
{
    static const struct str notes[] = {STR("seen"), STR("wa\"it\xc3\xa4"), {NULL, 0}};
    struct control_request *request = control_prepare(&life->fx->arena, life->id, CONTROL_UPDATE);

    assert_int_equal(change_add(&request->change, 0, notes[dice(life, 3)], &life->fx->err), 0);
    assert_int_equal(engine_call(life->fx->engine, &request->base), 0);
}

/* Its worker falls silent. */
static void lose(struct life *life)
{
    wait_until(!status_held(get(life->fx, life->id)->status));
    life->held = NULL;
    worker(life->fx, "w", "default");
}

static void step_held(struct life *life)
{
    uint32_t what = dice(life, 20);

    if (what < 6)
        tell(life);
    else if (what < 11)
        save(life);
    else if (what < 12)
        report_ok(life->fx, "w", life->held, .op = REPORT_START);
    else if (what < 14)
        control(life->fx, life->id, dice(life, 2) ? CONTROL_PAUSE : CONTROL_RESUME);
    else if (what < 15)
        note(life);
    else if (what < 16 && dice(life, 3) == 0)
        lose(life);
    else
        end(life);
}

static void claim_it(struct life *life)
{
    struct claim_request *request = claim(life->fx, "w", 1, 0);

    if (request->base.err.code == ERR_NOT_FOUND)
        worker(life->fx, "w", "default");
    life->held = request->claimed_count ? request->claimed[0].task : NULL;
}

/* Most of these are refused, depending on the status: then nothing happens. */
static void step_free(struct life *life)
{
    static const enum control_op ops[] = {CONTROL_RETRY, CONTROL_PAUSE, CONTROL_RESUME,
                                          CONTROL_CANCEL};
    struct task *task = get(life->fx, life->id);
    uint32_t what = dice(life, 10);

    if (what < 5 && task->status == STATUS_PENDING) {
        claim_it(life);
    } else if (what == 5) {
        struct control_request *request = control_prepare(&life->fx->arena, life->id,
                                                          CONTROL_RECOVER);

        request->method = dice(life, 2) ? RECOVERY_RESTART_CLEAN : RECOVERY_RESUME_CHECKPOINT;
        engine_call(life->fx->engine, &request->base);
        if (request->base.err.code == ERR_NONE && request->method == RECOVERY_RESTART_CLEAN)
            life->progress_untold = false;
    } else if (what == 7) {
        note(life);
    } else if (what == 6) {
        prioritize(life->fx, life->id, (int64_t)dice(life, 9));
    } else {
        enum control_op op = ops[dice(life, status_ended(task->status) ? 1 : 4)];

        if (control(life->fx, life->id, op) == ERR_NONE && op == CONTROL_RETRY)
            life->progress_untold = false;
    }
}

/* ---- comparing ---- */

static void replay_until(struct life *life, const struct task_event *events, uint32_t count,
                         int64_t seq, struct replay *replay)
{
    *replay = REPLAY_INIT;
    for (uint32_t i = 0; i < count && events[i].seq <= seq; i++)
        replay_event(replay, &events[i], &life->fx->arena);
    assert_true(replay->whole);
}

static void compare(const struct task *was, const struct replay *replay, bool untold)
{
    assert_string_equal(status_word(replay->status), status_word(was->status));
    assert_int_equal(replay->previous_status, was->previous_status);
    assert_true(str_eq(replay->state, was->state));
    assert_true(str_eq(replay->about.note, was->about.note));
    assert_int_equal(replay->attempts, was->counts.attempts);
    assert_true(str_eq(replay->worker_id, was->lease.worker_id));
    assert_int_equal(replay->lease_token, was->lease.token);
    assert_int_equal(replay->pause_requested, was->lease.pause_requested);
    assert_int_equal(replay->claimed_at_us, was->lease.claimed_at_us);
    assert_int_equal(replay->started_at_us, was->lease.started_at_us);
    assert_int_equal(replay->completed_at_us, was->completed_at_us);
    assert_int_equal(replay->checkpoint_seq != 0, was->resume.checkpoint.data != NULL);
    if (!untold)
        assert_int_equal(replay->progress, was->progress);
}

static void compare_checkpoint(struct fixture *fx, const struct task *was,
                               const struct replay *replay)
{
    struct str data = was->resume.checkpoint;
    int64_t number;

    if (!data.data)
        return;
    assert_true(json_int64(json_get(data, STR("seq")), &number));
    assert_int_equal(replay->checkpoint_seq, number);
    assert_true(json_int64(json_get(data, STR("progress")), &number));
    assert_int_equal(replay->checkpoint_progress, number);
    assert_true(str_eq(replay->checkpoint_name,
                       json_string(json_get(data, STR("name")), &fx->arena)));
}

static void check_life(struct life *life)
{
    struct buf text = BUF_INIT(1024 * 1024);
    struct replay replay;
    uint32_t count;
    struct task_event *events = events_of(life->fx, life->id, &count);

    for (uint32_t i = 0; i < life->seen_count; i++) {
        replay_until(life, events, count, life->seen[i]->event_seq, &replay);
        compare(life->seen[i], &replay, life->untold[i]);
        compare_checkpoint(life->fx, life->seen[i], &replay);
        buf_reset(&text);
        replay_render(&text, &replay, life->seen[i], 1, false);
        assert_int_equal(json_check(buf_view(&text), NULL, &life->fx->err), 0);
    }
    buf_deinit(&text);
}

static void a10_every_prefix_of_the_events_gives_the_task_as_it_was(void **state)
{
    struct fixture *fx = *state;
    uint32_t statuses[STATUS_COUNT] = {0};

    fx_lease(fx, LEASE_MS);
    worker(fx, "w", "default");
    for (uint32_t i = 0; i < LIVES; i++) {
        struct life life = {.fx = fx, .random = 88172645463325252ULL + i * 7919};

        life.id = enqueue(fx, "{\"type\":\"t\",\"max_crashes\":9,\"max_retries\":99,"
                          "\"retry_delay_ms\":%u,\"auto_recovery\":%s%s%s}", i % 2 ? 3600000 : 0,
                          i % 3 ? "true" : "false", i % 5 ? "" : ",\"delay_ms\":3600000",
                          i % 4 ? "" : ",\"note\":\"as asked\"");
        look(&life);
        for (uint32_t step = 0; step < STEPS; step++) {
            if (life.held && status_held(get(fx, life.id)->status))
                step_held(&life);
            else
                step_free(&life);
            look(&life);
            statuses[life.seen[life.seen_count - 1]->status]++;
        }
        check_life(&life);
        if (life.held)
            control(fx, life.id, CONTROL_CANCEL);
        control(fx, life.id, CONTROL_CANCEL);
        leave(fx, "w"); /* lets go of what was cancelled */
        worker(fx, "w", "default");
    }
    for (enum status status = STATUS_DELAYED; status < STATUS_COUNT; status++)
        if (status != STATUS_RECOVERING && status != STATUS_DEAD_LETTER && statuses[status] == 0)
            fail_msg("no life came to %s", status_word(status));
}

static void a_history_without_its_beginning_says_so(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct replay replay = REPLAY_INIT;
    struct task_event *events;
    uint32_t count;

    worker(fx, "w", "default");
    claim_one(fx, "w");
    events = events_of(fx, id, &count);
    assert_int_equal(count, 2);
    replay_event(&replay, &events[1], &fx->arena);
    assert_false(replay.whole);
    assert_int_equal(replay.status, STATUS_CLAIMED);
    assert_true(str_is(replay.worker_id, "w"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a10_every_prefix_of_the_events_gives_the_task_as_it_was),
        QUEUE_TEST(a_history_without_its_beginning_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
