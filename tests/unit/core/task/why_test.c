/* Why a task does not run (core/why): for every reason one row of facts, which reason comes first,
 * what else holds, and words its sentence must have; and that all of it is JSON. */
#include "base/clock.h"
#include "base/json.h"
#include "core/task/why.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW_US (INT64_C(1800000000) * CLOCK_SECOND_US)
#define SOON_US (NOW_US + 90 * CLOCK_SECOND_US)

static const struct rate_rule ten_a_minute = {.count = 10, .per_ms = 60000};

struct row {
    struct task task;
    struct why_facts facts;
    enum why_reason reason;
    const char *also;  /* words with commas */
    const char *words; /* of the sentence, separated by | */
};

#define A_WORKER .workers.live = 1, .workers.of_queue = 1, .workers.of_type = 1, \
                 .workers.of_category = 1

static const struct row rows[] = {
    /* ended */
    {{.status = STATUS_COMPLETED,
      .completed_at_us = NOW_US - 5 * CLOCK_SECOND_US,
      .fault.last = STR("exit code 3")},
     {0},
     WHY_COMPLETED,
     "",
     "Ended as completed|5.0s ago"},
    {{.status = STATUS_FAILED, .fault.error = STR("no_handler"), .completed_at_us = NOW_US},
     {0},
     WHY_FAILED,
     "",
     "Ended as failed|: no_handler (no worker of its queue has a handler"},
    {{.status = STATUS_DEAD_LETTER,
      .fault.error = STR("poison"),
      .fault.last = STR("worker_lost"),
      .completed_at_us = NOW_US - 86400 * CLOCK_SECOND_US},
     {0},
     WHY_DEAD_LETTER,
     "",
     "dead_letter|1d 0h ago|: poison (it lost its worker|the last attempt failed: worker_lost"},
    {{.status = STATUS_PARTIAL, .fault.error = STR("partial")}, {0}, WHY_PARTIAL, "", "partial"},
    {{.status = STATUS_CANCELLED, .fault.error = STR("cancelled"), .lease.held = true},
     {0},
     WHY_CANCELLED,
     "",
     "cancelled|has not stopped yet"},
    /* held */
    {{.status = STATUS_RUNNING,
      .lease.worker_id = STR("w-1"),
      .state = STR("Step 3"),
      .progress = 30,
      .lease.started_at_us = NOW_US - 3700 * CLOCK_SECOND_US},
     {0},
     WHY_RUNNING,
     "",
     "Running on w-1|1h 01m ago|30 %|Step 3"},
    {{.status = STATUS_RUNNING, .lease.worker_id = STR("w-1"), .lease.pause_requested = true},
     {0},
     WHY_RUNNING,
     "",
     "pause was requested"},
    {{.status = STATUS_CLAIMED, .lease.worker_id = STR("w-1"), .lease.claimed_at_us = NOW_US},
     {0},
     WHY_CLAIMED,
     "",
     "Claimed by w-1|not started"},
    /* stopped */
    {{.status = STATUS_PAUSED},
     {.pause.at_us = NOW_US - CLOCK_SECOND_US,
      .pause.by = ACTOR_USER,
      .pause.reason = STR("month end")},
     WHY_PAUSED,
     "",
     "Paused by USER|1.0s ago|month end|resume"},
    {{.status = STATUS_PAUSED, .updated_at_us = NOW_US}, {0}, WHY_PAUSED, "", "Paused since|resume"},
    {{.status = STATUS_ORPHANED, .lease.worker_id = STR("w-1")},
     {0},
     WHY_ORPHANED,
     "",
     "Lost its worker w-1|auto_recovery is off|recover or retry"},
    {{.status = STATUS_ORPHANED, .spec = {.auto_recovery = true}},
     {0},
     WHY_ORPHANED,
     "",
     "waiting for recovery"},
    {{.status = STATUS_ORPHANED, .spec = {.auto_recovery = true}},
     {.recovery.refused = true, .recovery.error = STR("order 7 is closed")},
     WHY_ORPHANED,
     "",
     "could not be recovered: order 7 is closed|recover or retry"},
    {{.status = STATUS_ORPHANED, .spec = {.auto_recovery = true}},
     {.recovery.waits = true, .recovery.at_us = SOON_US, .recovery.error = STR("no answer")},
     WHY_ORPHANED,
     "",
     "next recovery attempt is at 2027-01-15T08:01:30.000000Z (in 1m 30s)|no answer"},
    {{.status = STATUS_ORPHANED}, {.recovery.waits = true}, WHY_ORPHANED, "", "waiting for recovery"},
    {{.status = STATUS_RECOVERING}, {0}, WHY_RECOVERING, "", "Recovering since"},
    /* blocked */
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 1},
     {A_WORKER, .waits_for_count = 1, .waits_for_total = 1,
      .waits_for = {{.id = {{0xab}}, .status = STATUS_RUNNING}}},
     WHY_DEPENDENCY,
     "",
     "Waiting for task ab000000-|(running)"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 12},
     {.waits_for_count = 4,
      .waits_for_total = 12,
      .queue_paused_at_us = NOW_US,
      .waits_for = {{.status = STATUS_RUNNING},
                    {.status = STATUS_PAUSED},
                    {.status = STATUS_PENDING},
                    {.status = STATUS_ORPHANED}}},
     WHY_DEPENDENCY,
     "queue_paused,no_worker",
     "Waiting for tasks|(paused)|(pending) and 9 more"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 2},
     {A_WORKER},
     WHY_DEPENDENCY,
     "",
     "(2)"},
    {{.status = STATUS_BLOCKED, .waits.for_children = true, .waits.open_children = 1},
     {A_WORKER, .waits_for_count = 1, .waits_for_total = 1,
      .waits_for = {{.status = STATUS_DELAYED}}},
     WHY_CHILDREN,
     "",
     "Waiting for its child|(delayed)"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 3},
     {A_WORKER, .waits_for_count = 1, .waits_for_total = 1, .gates_count = 1, .waits_slot = true,
      .gates = {{.name = STR("load")}}},
     WHY_DEPENDENCY,
     "job,job_slot",
     "Waiting for task"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 2},
     {A_WORKER, .gates_count = 2,
      .gates = {{.name = STR("load")}, {.name = STR("clean"), .kind = DEPENDENCY_FAILURE}}},
     WHY_JOB,
     "",
     "the job 'load' to complete|the job 'clean' to fail"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 1},
     {A_WORKER, .waits_slot = true, .job_name = STR("load"), .job_slots = 2, .job_going = 2},
     WHY_JOB_SLOT,
     "",
     "a slot of its job 'load'|2 of 2 runs"},
    {{.status = STATUS_BLOCKED, .waits.open_dependencies = 1},
     {A_WORKER, .waits_slot = true, .job_name = STR("load")},
     WHY_JOB_SLOT,
     "",
     "the previous run|'load'"},
    /* delayed */
    {{.status = STATUS_DELAYED,
      .counts.next_retry_at_us = SOON_US,
      .counts.retries = 2,
      .fault.last = STR("exit code 3"),
      .spec = {.retry = {.max_retries = 3}}},
     {A_WORKER},
     WHY_RETRY,
     "",
     "Will retry (2 of 3)|2027-01-15T08:01:30.000000Z|in 1m 30s|exit code 3"},
    {{.status = STATUS_DELAYED, .scheduled_at_us = SOON_US},
     {0},
     WHY_DELAYED,
     "no_worker",
     "Scheduled to run at 2027-01-15T08:01:30.000000Z (in 1m 30s)"},
    {{.status = STATUS_DELAYED, .scheduled_at_us = SOON_US, .counts.continuations = 2},
     {A_WORKER},
     WHY_DELAYED,
     "",
     "Will continue at"},
    {{.status = STATUS_DELAYED, .scheduled_at_us = SOON_US, .by_wall = true},
     {A_WORKER, .window_state = true},
     WHY_WINDOW,
     "",
     "window|opens at 2027-01-15T08:01:30"},
    /* pending */
    {{.status = STATUS_PENDING},
     {.queue_paused_at_us = NOW_US - 60 * CLOCK_SECOND_US},
     WHY_QUEUE_PAUSED,
     "no_worker",
     "The queue 'mail' has been paused since|1m 00s ago"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .window_opens_us = SOON_US},
     WHY_WINDOW,
     "",
     "opens at 2027-01-15T08:01:30"},
    {{.status = STATUS_PENDING}, {0}, WHY_NO_WORKER, "", "No worker is running"},
    {{.status = STATUS_PENDING},
     {.workers.live = 3},
     WHY_NO_WORKER,
     "",
     "No worker serves the queue 'mail' (3 workers serve other queues)"},
    {{.status = STATUS_PENDING},
     {.workers.live = 3, .workers.of_queue = 2},
     WHY_NO_WORKER,
     "",
     "No worker of the queue 'mail' has a handler for the type 'send' (2 workers serve the queue)"},
    {{.status = STATUS_PENDING},
     {.workers.live = 3, .workers.of_queue = 2, .workers.of_type = 2,
      .workers.category = {"reports", 7}},
     WHY_NO_WORKER,
     "",
     "No live worker takes category \"reports\" in queue \"mail\" (2 workers have a handler for"},
    {{.status = STATUS_PENDING},
     {.workers.live = 1, .workers.of_queue = 1, .workers.of_type = 1},
     WHY_NO_WORKER,
     "",
     "The category of the task was deleted, and no live worker takes all categories in queue"},
    {{.status = STATUS_PENDING}, {.workers.claim_waits = true}, WHY_READY, "", "Ready"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .queue = {.running = 5, .concurrency = 5}},
     WHY_QUEUE_CONCURRENCY,
     "",
     "The queue 'mail' is at its limit: 5 of 5 running"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .queue = {.running = 4, .concurrency = 5}},
     WHY_READY,
     "",
     "Ready"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .queue = {.rate = {.count = 10, .per_ms = 60000}, .open_at_us = SOON_US}},
     WHY_QUEUE_RATE,
     "",
     "The queue 'mail' is at its rate limit: 10 every 1m 00s|08:01:30.000000Z"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .type = {.running = 2,
                         .concurrency = 2,
                         .rate = {.count = 1, .per_ms = 1000},
                         .open_at_us = SOON_US}},
     WHY_TYPE_CONCURRENCY,
     "type_rate",
     "The type 'send' of the queue 'mail' is at its limit"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .type = {.rate = {.count = 1, .per_ms = 1500}, .open_at_us = SOON_US}},
     WHY_TYPE_RATE,
     "",
     "The type 'send'|at its rate limit: 1 every 1.5s"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .key = {.running = 1, .concurrency = 1}},
     WHY_KEY_CONCURRENCY,
     "",
     "The key 'ada' of the queue 'mail' is at its limit: 1 of 1 running"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .key = {.rate = {.count = 1, .per_ms = 1000}, .open_at_us = SOON_US}},
     WHY_KEY_RATE,
     "",
     "The key 'ada'|rate"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .service = {.name = STR("mail"), .down_since_us = NOW_US, .next_try_us = SOON_US}},
     WHY_SERVICE_DOWN,
     "",
     "service mail is down since |, next try "},
    {{.status = STATUS_PENDING},
     {A_WORKER, .service = {.name = STR("mail"), .wait_until_us = SOON_US}},
     WHY_SERVICE_WAIT,
     "",
     "service mail asked not to be called before "},
    {{.status = STATUS_PENDING},
     {A_WORKER, .workers.slots = 4, .workers.slots_taken = 4},
     WHY_WORKERS_BUSY,
     "",
     "All 4 slots of the 1 worker that could run it are in use"},
    {{.status = STATUS_PENDING},
     {A_WORKER, .workers.slots = 4, .workers.slots_taken = 3, .line = 7},
     WHY_READY,
     "",
     "Ready|7 tasks are ready"},
    {{.status = STATUS_PENDING},
     {.queue_paused_at_us = NOW_US,
      .window_opens_us = SOON_US,
      .queue = {.running = 1,
                .concurrency = 1,
                .rate = {.count = 1, .per_ms = 1},
                .open_at_us = SOON_US},
      .type = {.running = 1,
               .concurrency = 1,
               .rate = {.count = 1, .per_ms = 1},
               .open_at_us = SOON_US},
      .key = {.running = 1,
              .concurrency = 1,
              .rate = {.count = 1, .per_ms = 1},
              .open_at_us = SOON_US},
      .workers.slots = 1,
      .workers.slots_taken = 1},
     WHY_QUEUE_PAUSED,
     "window,no_worker,queue_concurrency,queue_rate,type_concurrency,type_rate,key_concurrency,"
     "key_rate,workers_busy",
     "paused"},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* The row with the names that all of them share. */
static struct why_facts facts_of(const struct row *row, struct task *task)
{
    struct why_facts facts = row->facts;

    *task = row->task;
    task->spec.queue = STR("mail");
    task->spec.type = STR("send");
    task->spec.limit_key = STR("ada");
    if (!task->state.data)
        task->state = STR("Queued");
    facts.task = task;
    facts.now_us = facts.wall_us = NOW_US;
    return facts;
}

static void assert_words(struct str text, const char *words, size_t row)
{
    for (const char *at = words; *at;) {
        size_t len = strcspn(at, "|");

        if (!memmem(text.data, text.len, at, len))
            fail_msg("row %zu: '%.*s' is not in: %.*s", row, (int)len, at, STR_ARG(text));
        at += len + (at[len] == '|');
    }
}

static void every_reason_is_found_and_told(void **state)
{
    bool told[WHY_COUNT] = {false};

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        struct arena arena = ARENA_INIT(0);
        struct err err = {0};
        struct task task;
        struct why_facts facts = facts_of(&rows[i], &task);
        struct buf also = BUF_INIT(1024);
        struct why why;

        assert_int_equal(why_decide(&facts, &arena, &why, &err), 0);
        if (why.reason != rows[i].reason)
            fail_msg("row %zu: %s, not %s", i, why_word(why.reason), why_word(rows[i].reason));
        told[why.reason] = true;
        for (uint32_t j = 0; j < why.also_count; j++)
            buf_format(&also, "%s%s", j ? "," : "", why_word(why.also[j]));
        if (!str_is(buf_view(&also), rows[i].also))
            fail_msg("row %zu: also '%.*s'", i, STR_ARG(buf_view(&also)));
        assert_words(why.text, rows[i].words, i);
        assert_null(memchr(why.text.data, '\n', why.text.len)); /* one line */
        assert_int_equal(json_check(why.detail, NULL, &err), 0);
        assert_true(json_get(why.detail, STR("status")).len > 2);
        assert_int_equal(json_count(json_get(why.detail, STR("also"))), why.also_count);
        buf_deinit(&also);
        arena_deinit(&arena);
    }
    for (int i = 0; i < WHY_COUNT; i++)
        if (!told[i])
            fail_msg("no row is about %s", why_word((enum why_reason)i));
}

static void names_of_users_cannot_break_the_details(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct task task = {.status = STATUS_PENDING,
                        .spec = {.queue = STR("a\"b\\"), .type = STR("t\n"),
                                 .limit_key = STR("\x01")}};
    struct why_facts facts = {.task = &task, .now_us = NOW_US, A_WORKER,
                              .key = {.rate = ten_a_minute, .open_at_us = SOON_US}};
    struct why why;

    (void)state;
    assert_int_equal(why_decide(&facts, &arena, &why, &err), 0);
    assert_int_equal(json_check(why.detail, NULL, &err), 0);
    assert_true(str_is(json_string(json_get(why.detail, STR("queue")), &arena), "a\"b\\"));
    assert_true(str_is(json_get(why.detail, STR("per_ms")), "60000"));
    arena_deinit(&arena);
}

static void a_long_error_does_not_make_a_long_sentence(void **state)
{
    struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    char long_text[4000];
    struct task task = {.status = STATUS_FAILED, .fault.error = {long_text, sizeof long_text}};
    struct why_facts facts = {.task = &task, .now_us = NOW_US};
    struct why why;

    (void)state;
    memset(long_text, 'x', sizeof long_text);
    assert_int_equal(why_decide(&facts, &arena, &why, &err), 0);
    assert_true(why.text.len < 500);
    assert_true(why.detail.len > 4000); /* the whole is there */
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_is_found_and_told),
        cmocka_unit_test(names_of_users_cannot_break_the_details),
        cmocka_unit_test(a_long_error_does_not_make_a_long_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
