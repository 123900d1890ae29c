/* Schedules and recurring patterns fire (D2, D4, D6): every planned instant once, late ones by the
 * misfire policy, overlapping ones by the overlap policy, and no surprises after a change, a pause
 * or a restart. Time is moved by moving what is planned. */
#include "plan_fixture.h"

#define MINUTES_DOWN 4320 /* three days (F-H10) */
#define MANY 10000        /* schedules at one instant (F-H9) */

/* Every minute since long ago, so that every minute of the past is an instant of it. */
#define EVERY_MINUTE \
    "\"schedule_type\":\"interval\",\"interval_seconds\":60,\"starts_at\":\"2020-01-01T00:00:00Z\""

static struct uuid plain_job(struct fixture *fx)
{
    return make_job(fx, "{\"name\":\"j\"}");
}

/* As if the queue had been down for so many minutes. */
static void go_down(struct fixture *fx, struct uuid schedule, int64_t minutes)
{
    move_times(fx, "schedules", "next_fire_at", -60 * minutes);
    wait_fired(fx, schedule);
}

static int64_t fires_of(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM schedule_fires");
}

static void an_immediate_schedule_fires_at_once_and_once(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"immediate\"");
    struct task *task;
    uint32_t count;

    wait_until(count_tasks(fx, job) == 1);
    wait_fired(fx, id);
    task = tasks_of(fx, job, &count);
    assert_int_equal(task->status, STATUS_PENDING);
    assert_true(uuid_eq(&task->spec.origin.schedule_id, &id));
    assert_int_equal(task->scheduled_at_us, get_schedule(fx, id)->created_at_us);
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us, 0);
    assert_int_equal(get_schedule(fx, id)->last_fire_at_us, task->scheduled_at_us);
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":false}");
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":true}");
    reopen(fx);
    stats_of(fx);
    assert_int_equal(count_tasks(fx, job), 1);
    fx_verify(fx);
}

static void once_fires_at_its_time(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    int64_t at_us = clock_wall_us() + 300 * CLOCK_MS_US;
    struct uuid id = plan_make(fx, CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"once\","
                               "\"scheduled_at\":\"%s\"}", id_text(fx, job), time_text(fx, at_us));
    uint32_t count;

    assert_int_equal(get_schedule(fx, id)->next_fire_at_us, at_us);
    assert_int_equal(count_tasks(fx, job), 0);
    wait_until(count_tasks(fx, job) == 1);
    assert_true(clock_wall_us() >= at_us);
    assert_int_equal(tasks_of(fx, job, &count)->scheduled_at_us, at_us);
    assert_true(tasks_of(fx, job, &count)->spec.created_at_us >= at_us);
}

/* A little late is accepted, and fires with the instant it was planned for. */
static void once_a_moment_ago_fires_at_once(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    int64_t at_us = clock_wall_us() - 5 * SECOND_US;
    uint32_t count;

    plan_make(fx, CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"once\","
              "\"scheduled_at\":\"%s\"}", id_text(fx, job), time_text(fx, at_us));
    wait_until(count_tasks(fx, job) == 1);
    assert_int_equal(tasks_of(fx, job, &count)->scheduled_at_us, at_us);
}

static void a_schedule_fires_each_of_its_instants_once(void **state) /* V4 */
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"interval\","
                                            "\"interval_seconds\":1");
    struct task *tasks;
    uint32_t count;

    wait_until(count_tasks(fx, job) >= 2);
    reopen(fx); /* in the middle */
    wait_until(count_tasks(fx, job) >= 4);
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":false}");
    tasks = tasks_of(fx, job, &count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tasks[i].scheduled_at_us,
                         get_schedule(fx, id)->created_at_us + (i + 1) * SECOND_US);
    assert_int_equal(fires_of(fx), count);
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us, 0);
    assert_int_equal(get_schedule(fx, id)->last_fire_at_us, tasks[count - 1].scheduled_at_us);
    fx_verify(fx);
}

static void the_first_event_says_which_instant_and_how_late(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE);
    struct task_event *events;
    struct task *task;
    uint32_t count;

    go_down(fx, id, 10); /* fire_once: the last one of the late */
    task = tasks_of(fx, job, &count);
    events = events_of(fx, task->id, &count);
    assert_int_equal(events[0].actor, ACTOR_SCHEDULER);
    assert_true(has_text(events[0].detail, id_text(fx, id)));
    assert_true(has_text(events[0].detail, time_text(fx, task->scheduled_at_us)));
    assert_true(has_text(events[0].detail, "\"late_ms\":"));
}

/* V4, F-H10, F-A12: after three days nothing iterates, and each policy does what it says. */
static void late_instants_fire_by_the_misfire_policy(void **state)
{
    static const struct {
        const char *members;
        uint32_t least, most; /* the last minute is within the grace, or a little more */
    } cases[] = {
        {"\"misfire\":\"skip\"", 1, 2},
        {"\"misfire\":\"fire_once\"", 2, 3},
        {"\"misfire\":\"fire_all\",\"misfire_cap\":50", 51, 52},
        {"\"misfire\":\"fire_all\",\"misfire_cap\":1000", 1001, 1002}, /* several commits */
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char members[300];
        struct uuid job = plain_job(fx);
        struct uuid id;
        struct task *tasks;
        uint32_t count;

        snprintf(members, sizeof members, EVERY_MINUTE ",%s", cases[i].members);
        id = make_schedule(fx, job, members);
        go_down(fx, id, MINUTES_DOWN);
        tasks = tasks_of(fx, job, &count);
        assert_in_range(fx_ask(fx, "SELECT count(*) FROM schedule_fires"), cases[i].least,
                        cases[i].most);
        for (uint32_t t = 1; t < count; t++)
            assert_true(tasks[t].scheduled_at_us > tasks[t - 1].scheduled_at_us);
        assert_int_equal(removed(fx, CATALOG_SCHEDULE, id), ERR_NONE);
        fx_sql(fx, "DELETE FROM schedule_fires");
    }
    fx_verify(fx);
}

/* V4, F-C2: a clock that went back, or whatever else makes an instant come again, fires nothing. */
static void an_instant_that_comes_again_fires_nothing(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");
    uint32_t count;

    go_down(fx, id, 30);
    count = count_tasks(fx, job);
    assert_true(count >= 30);
    go_down(fx, id, 20);
    assert_int_equal(count_tasks(fx, job), count);
    go_down(fx, id, 40); /* ten more lie before those */
    assert_int_equal(count_tasks(fx, job), count + 10);
}

static void jitter_delays_a_run_and_keeps_its_instant(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"jitter_ms\":3000000");
    struct task *task;
    uint32_t count;
    int64_t instant_us;

    go_down(fx, id, 10);
    task = tasks_of(fx, job, &count);
    assert_int_equal(count >= 1, 1);
    instant_us = get_schedule(fx, id)->last_fire_at_us;
    task = &task[count - 1];
    assert_true(task->scheduled_at_us >= instant_us);
    assert_true(task->scheduled_at_us <= instant_us + 3000 * SECOND_US);
    assert_true(task->status == STATUS_DELAYED ||
                task->scheduled_at_us <= clock_wall_us());
    assert_int_equal(instant_us % (60 * SECOND_US), 0);
}

/* ---- overlap ---- */

static struct uuid overlapping(struct fixture *fx, struct uuid job, const char *overlap)
{
    char members[300];

    snprintf(members, sizeof members, EVERY_MINUTE ",\"misfire\":\"fire_all\",\"overlap\":\"%s\"",
             overlap);
    return make_schedule(fx, job, members);
}

static void overlap_skip_writes_the_instant_down_and_makes_no_task(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = overlapping(fx, job, "skip");
    struct task *held;
    int64_t fires, last_us;
    uint32_t count;

    go_down(fx, id, 5);
    assert_int_equal(count_tasks(fx, job), 1);
    assert_true(fires_of(fx) >= 5);
    last_us = get_schedule(fx, id)->last_fire_at_us; /* what made a task, and nothing else */
    assert_int_equal(last_us, tasks_of(fx, job, &count)->scheduled_at_us);
    assert_true(stats_of(fx).totals[TOTAL_SKIPPED] >= 4);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM schedule_fires WHERE task_id IS NOT NULL"),
                     1);
    go_down(fx, id, 8); /* it is open all the while */
    assert_int_equal(get_schedule(fx, id)->last_fire_at_us, last_us);
    assert_int_equal(count_tasks(fx, job), 1);
    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    fires = fires_of(fx);
    go_down(fx, id, 15); /* nothing is open any more: of those not yet fired one runs */
    assert_int_equal(count_tasks(fx, job), 2);
    assert_true(fires_of(fx) > fires);
    fx_verify(fx);
}

static void overlap_queue_runs_one_after_the_other(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = overlapping(fx, job, "queue");
    struct task *tasks;
    uint32_t count;

    go_down(fx, id, 4);
    tasks = tasks_of(fx, job, &count);
    assert_true(count >= 4);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), 1);
    assert_int_equal(count_status(fx, job, STATUS_BLOCKED), count - 1);
    worker(fx, "w", "default");
    for (uint32_t i = 0; i < count; i++) {
        struct task *task = claim_one(fx, "w")->task;

        assert_true(uuid_eq(&task->id, &tasks[i].id)); /* oldest first */
        claim_none(fx, "w");
        if (i == 1)
            reopen(fx);
        report_ok(fx, "w", task, .op = REPORT_COMPLETE);
    }
    claim_none(fx, "w");
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_runs"), 0);
    fx_verify(fx);
}

static void overlap_replace_cancels_what_is_open(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = overlapping(fx, job, "replace");
    struct task *held;
    uint32_t count;

    go_down(fx, id, 3);
    count = count_tasks(fx, job);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), 1);
    assert_int_equal(count_status(fx, job, STATUS_CANCELLED), count - 1);
    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    report_ok(fx, "w", held, .op = REPORT_START);
    go_down(fx, id, 8);
    assert_status(fx, held->id, STATUS_CANCELLED);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), 1);
    assert_true(has_text(events_of(fx, held->id, &count)[3].detail, "overlap_replaced"));
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM job_runs"), 1);
    fx_verify(fx);
}

static void overlap_allow_runs_all_of_them(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = overlapping(fx, job, "allow");

    go_down(fx, id, 4);
    assert_true(count_tasks(fx, job) >= 4);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), count_tasks(fx, job));
}

/* ---- not active, changed ---- */

static void instants_of_an_inactive_job_pass(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");

    change(fx, CATALOG_JOB, job, "{\"is_active\":false}");
    go_down(fx, id, 5);
    assert_int_equal(count_tasks(fx, job), 0);
    assert_int_equal(fires_of(fx), 0);
    change(fx, CATALOG_JOB, job, "{\"is_active\":true}");
    stats_of(fx);
    assert_int_equal(count_tasks(fx, job), 0);
    go_down(fx, id, 2);
    assert_true(count_tasks(fx, job) >= 2);
}

static void instants_of_an_inactive_category_pass(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"c\",\"is_active\":false}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"category\":\"c\"}");
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");

    go_down(fx, id, 5);
    assert_int_equal(count_tasks(fx, job), 0);
    change(fx, CATALOG_CATEGORY, category, "{\"is_active\":true}");
    go_down(fx, id, 2);
    assert_true(count_tasks(fx, job) >= 2);
}

/* The activation comes before the engine has looked at what passed: still nothing of it fires. */
static void what_passed_while_a_job_was_inactive_never_fires(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");
    struct catalog_request *request;
    struct engine_call call;

    change(fx, CATALOG_JOB, job, "{\"is_active\":false}");
    request = plan_prepare(fx, CATALOG_JOB, CATALOG_UPDATE, job, STR("{\"is_active\":true}"));
    move_times(fx, "schedules", "next_fire_at", -600);
    engine_call_start(fx->engine, &request->base, &call); /* likely in the first commit */
    assert_int_equal(engine_call_finish(&request->base, &call), 0);
    wait_fired(fx, id);
    assert_int_equal(count_tasks(fx, job), 0);
}

static void a_paused_schedule_has_no_late_surprises(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE);
    int64_t next_us = get_schedule(fx, id)->next_fire_at_us;

    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":false}");
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us, 0);
    move_times(fx, "schedules", "last_fire_at", 0);
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":true}");
    assert_in_range(get_schedule(fx, id)->next_fire_at_us, (uintmax_t)next_us,
                    (uintmax_t)(next_us + 60 * SECOND_US));
    assert_int_equal(count_tasks(fx, job), 0);
}

static void a_changed_schedule_goes_on_from_now(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"cron\","
                                   "\"cron_expression\":\"0 3 * * *\",\"timezone\":\"UTC\"");
    int64_t utc_us = get_schedule(fx, id)->next_fire_at_us;
    int64_t tokyo_us;

    assert_int_equal(utc_us % (24 * HOUR_US), 3 * HOUR_US);
    change(fx, CATALOG_SCHEDULE, id, "{\"timezone\":\"Asia/Tokyo\"}");
    tokyo_us = get_schedule(fx, id)->next_fire_at_us;
    assert_int_equal(tokyo_us % (24 * HOUR_US), 18 * HOUR_US);
    assert_in_range(tokyo_us, (uintmax_t)clock_wall_us(),
                    (uintmax_t)(clock_wall_us() + 24 * HOUR_US));
    change(fx, CATALOG_SCHEDULE, id, "{\"cron_expression\":\"30 4 * * *\"}");
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US),
                     19 * HOUR_US + HOUR_US / 2);
    change(fx, CATALOG_SCHEDULE, id, "{\"overlap\":\"skip\",\"jitter_ms\":5}");
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US),
                     19 * HOUR_US + HOUR_US / 2);
    assert_int_equal(count_tasks(fx, job), 0);
}

/* Resuming what is not paused, or writing the same values again, changes nothing. */
static void an_edit_that_changes_no_times_loses_nothing_that_is_due(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":"
                                   "\"0 3 * * *\",\"misfire\":\"fire_all\"");
    struct uuid pattern = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"rrule\","
                                       "\"pattern_config\":{\"rrule\":\"DTSTART:20200101T030000Z"
                                       "\\nRRULE:FREQ=DAILY\"},\"template_job_id\":\"%s\"}",
                                       id_text(fx, job));

    move_times(fx, "schedules", "next_fire_at", -3 * 86400);
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":true,\"cron_expression\":\"0 3 * * *\"}");
    wait_until(count_tasks(fx, job) == 3);
    move_times(fx, "recurring_jobs", "created_at", -3 * 86400); /* nothing of it is older */
    move_times(fx, "recurring_jobs", "next_generation", -2 * 86400);
    change(fx, CATALOG_RECURRING, pattern, "{\"is_active\":true}");
    wait_until(count_tasks(fx, job) == 5);
    wait_fired(fx, id);
    assert_int_equal(count_tasks(fx, job), 5);
}

static void a_schedule_ends_when_it_says(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    char members[300];
    struct uuid id;

    snprintf(members, sizeof members, "\"schedule_type\":\"interval\",\"interval_seconds\":1,"
             "\"ends_at\":\"%s\"", time_text(fx, clock_wall_us() + 1500 * CLOCK_MS_US));
    id = make_schedule(fx, job, members);
    wait_until(get_schedule(fx, id)->next_fire_at_us == 0);
    assert_int_equal(count_tasks(fx, job), 1);
}

static void a_removed_schedule_fires_no_more(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = overlapping(fx, job, "queue");

    go_down(fx, id, 3);
    assert_int_equal(count_status(fx, job, STATUS_PENDING), 1);
    assert_int_equal(removed(fx, CATALOG_SCHEDULE, id), ERR_NONE);
    assert_int_equal(count_status(fx, job, STATUS_BLOCKED), 0); /* nothing holds them back any
                                                                 * more */
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM schedules"), 0);
    fx_verify(fx);
}

/* ---- recurring ---- */

static void a_pattern_makes_every_one_of_its_runs(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"rrule\","
                                  "\"pattern_config\":{\"rrule\":\"FREQ=SECONDLY\"},"
                                  "\"template_job_id\":\"%s\"}", id_text(fx, job));
    struct task *tasks;
    uint32_t count;

    wait_until(count_tasks(fx, job) >= 2);
    reopen(fx);
    wait_until(count_tasks(fx, job) >= 4);
    move_times(fx, "recurring_jobs", "next_generation", -100); /* taken: made before, or not */
    wait_until(get_pattern(fx, id)->next_generation_us > clock_wall_us());
    change(fx, CATALOG_RECURRING, id, "{\"is_active\":false}");
    tasks = tasks_of(fx, job, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(uuid_eq(&tasks[i].spec.origin.recurring_job_id, &id));
        for (uint32_t j = 0; j < i; j++) /* no double */
            assert_int_not_equal(tasks[i].scheduled_at_us, tasks[j].scheduled_at_us);
    }
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM recurring_fires"), count);
    fx_verify(fx);
}

static void a_pattern_has_no_gap_after_a_time_without_anybody(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"rrule\","
                                  "\"pattern_config\":{\"rrule\":\"FREQ=HOURLY\","
                                  "\"starts_at\":\"2020-01-01T00:00:00Z\"},"
                                  "\"template_job_id\":\"%s\"}", id_text(fx, job));
    struct task *tasks;
    uint32_t count;

    move_times(fx, "recurring_jobs", "next_generation", -3600 * 48);
    wait_until(get_pattern(fx, id)->next_generation_us > clock_wall_us());
    tasks = tasks_of(fx, job, &count);
    assert_in_range(count, 47, 49);
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(tasks[i].scheduled_at_us, tasks[i - 1].scheduled_at_us + HOUR_US);
    assert_int_equal(get_pattern(fx, id)->last_generated_us, tasks[count - 1].scheduled_at_us);
}

/* ---- zones ---- */

/* A folder of zones of its own, with one zone. */
static void own_zone(struct fixture *fx, const char *like)
{
    char path[160], from[160];

    snprintf(fx->zoneinfo, sizeof fx->zoneinfo, "%s/zones", fx->folder);
    mkdir(fx->zoneinfo, 0700);
    snprintf(path, sizeof path, "%s/Town", fx->zoneinfo);
    snprintf(from, sizeof from, "/usr/share/zoneinfo/%s", like);
    if (like)
        copy_zone(from, path);
    else
        unlink(path);
}

static void with_own_zone(struct fixture *fx, const char *like)
{
    fx_close(fx);
    zones_free(fx->zones);
    fx->zones = NULL;
    own_zone(fx, like);
    fx_open(fx);
}

/* F-C9 */
static void a_zone_that_changed_moves_the_next_instant(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id;

    fx->wanted.settings.lease_ms = 600; /* sweeps look at clocks and zones */
    with_own_zone(fx, "Asia/Tokyo");
    id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":\"0 3 * * *\","
                                "\"timezone\":\"Town\"");
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US), 18 * HOUR_US);
    own_zone(fx, "Asia/Kolkata");
    zones_check(fx->zones, clock_wall_us());
    wait_until(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US) ==
               21 * HOUR_US + HOUR_US / 2);
    with_own_zone(fx, "Asia/Tokyo"); /* also while no server ran */
    wait_until(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US) == 18 * HOUR_US);
    assert_int_equal(count_tasks(fx, job), 0);
}

/* F-C9 */
static void a_schedule_whose_zone_vanished_says_so_and_others_go_on(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct uuid id;
    uint32_t count;

    fx->wanted.settings.lease_ms = 600;
    with_own_zone(fx, "Asia/Tokyo");
    id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":\"0 3 * * *\","
                                "\"timezone\":\"Town\"");
    make_schedule(fx, other, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    own_zone(fx, NULL);
    zones_check(fx->zones, clock_wall_us());
    wait_until(get_schedule(fx, id)->error.data != NULL);
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us, 0);
    count = count_tasks(fx, other);
    wait_until(count_tasks(fx, other) > count + 1);
    own_zone(fx, "Asia/Tokyo");
    zones_check(fx->zones, clock_wall_us());
    wait_until(get_schedule(fx, id)->error.data == NULL);
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US), 18 * HOUR_US);
    assert_int_equal(count_tasks(fx, job), 0);
}

/* ---- many ---- */

/* F-H9: none is missing, none comes twice, and claims continue in between. */
static void ten_thousand_schedules_at_one_instant_all_fire(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    int64_t at_us = clock_wall_us() + 3600 * SECOND_US;
    struct engine_call *calls = calloc(MANY, sizeof *calls);
    struct catalog_request **requests = calloc(MANY, sizeof(struct catalog_request *));
    struct str json = arena_format(&fx->arena, "{\"job_id\":\"%s\",\"schedule_type\":\"once\","
                                   "\"scheduled_at\":\"%s\"}", id_text(fx, job),
                                   time_text(fx, at_us));
    int64_t slowest_ms = 0, began_ms;

    assert_true(calls && requests);
    for (int i = 0; i < MANY; i++) {
        requests[i] = plan_prepare(fx, CATALOG_SCHEDULE, CATALOG_CREATE, NO_ID, json);
        engine_call_start(fx->engine, &requests[i]->base, &calls[i]);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(engine_call_finish(&requests[i]->base, &calls[i]), 0);
    worker(fx, "w", "other");
    move_times(fx, "schedules", "next_fire_at", -3600);
    began_ms = fx_now_ms();
    while (stats_of(fx).totals[TOTAL_FIRED] < MANY) {
        int64_t asked_ms = fx_now_ms();

        heartbeat(fx, "w", NULL, 0);
        if (fx_now_ms() - asked_ms > slowest_ms)
            slowest_ms = fx_now_ms() - asked_ms;
        assert_true(fx_now_ms() - began_ms < 60000);
    }
    print_message("%d fired in %lld ms; slowest heartbeat %lld ms\n", MANY,
                  (long long)(fx_now_ms() - began_ms), (long long)slowest_ms);
    assert_int_equal(fires_of(fx), MANY);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM tasks"), MANY);
    assert_int_equal(fx_ask(fx, "SELECT count(DISTINCT task_id) FROM schedule_fires"), MANY);
    assert_int_equal(stats_of(fx).workers, 1);
    free(calls);
    free(requests);
}

static void old_fires_are_removed_and_no_others(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");
    uint32_t count;

    go_down(fx, id, 10);
    change(fx, CATALOG_SCHEDULE, id, "{\"is_active\":false}"); /* no minute begins meanwhile */
    count = count_tasks(fx, job);
    move_times(fx, "schedule_fires", "fire_at", -29 * 86400);
    stats_of(fx);
    assert_int_equal(fires_of(fx), count);
    move_times(fx, "schedule_fires", "fire_at", -2 * 86400);
    wait_until(fires_of(fx) == 0);
    assert_int_equal(count_tasks(fx, job), count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(an_immediate_schedule_fires_at_once_and_once),
        QUEUE_TEST(once_fires_at_its_time),
        QUEUE_TEST(once_a_moment_ago_fires_at_once),
        QUEUE_TEST(a_schedule_fires_each_of_its_instants_once),
        QUEUE_TEST(the_first_event_says_which_instant_and_how_late),
        QUEUE_TEST(late_instants_fire_by_the_misfire_policy),
        QUEUE_TEST(an_instant_that_comes_again_fires_nothing),
        QUEUE_TEST(jitter_delays_a_run_and_keeps_its_instant),
        QUEUE_TEST(overlap_skip_writes_the_instant_down_and_makes_no_task),
        QUEUE_TEST(overlap_queue_runs_one_after_the_other),
        QUEUE_TEST(overlap_replace_cancels_what_is_open),
        QUEUE_TEST(overlap_allow_runs_all_of_them),
        QUEUE_TEST(instants_of_an_inactive_job_pass),
        QUEUE_TEST(instants_of_an_inactive_category_pass),
        QUEUE_TEST(what_passed_while_a_job_was_inactive_never_fires),
        QUEUE_TEST(a_paused_schedule_has_no_late_surprises),
        QUEUE_TEST(a_changed_schedule_goes_on_from_now),
        QUEUE_TEST(an_edit_that_changes_no_times_loses_nothing_that_is_due),
        QUEUE_TEST(a_schedule_ends_when_it_says),
        QUEUE_TEST(a_removed_schedule_fires_no_more),
        QUEUE_TEST(a_pattern_makes_every_one_of_its_runs),
        QUEUE_TEST(a_pattern_has_no_gap_after_a_time_without_anybody),
        QUEUE_TEST(a_zone_that_changed_moves_the_next_instant),
        QUEUE_TEST(a_schedule_whose_zone_vanished_says_so_and_others_go_on),
        QUEUE_TEST(ten_thousand_schedules_at_one_instant_all_fire),
        QUEUE_TEST(old_fires_are_removed_and_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
