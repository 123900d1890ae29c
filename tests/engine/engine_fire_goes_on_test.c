/* What goes wrong with one schedule, or with firing as a whole, does not hold up the others: zones
 * that cannot be read, payloads of half a megabyte, a store that refuses what fires, a clock that
 * was years ahead (D4, F-C1, F-C9, F-H9). Time is moved by moving what is planned. */
#include "plan_fixture.h"

#define LARGE_BYTES 600000
#define LARGE_FIRES 60 /* 36 MB: more than one commit takes */
#define MANY 1100      /* more than one page of what is due */

#define EVERY_MINUTE \
    "\"schedule_type\":\"interval\",\"interval_seconds\":60,\"starts_at\":\"2020-01-01T00:00:00Z\""

static struct uuid plain_job(struct fixture *fx)
{
    return make_job(fx, "{\"name\":\"j\"}");
}

/* ---- zones ---- */

/* Town is a zone, or a link to itself, which cannot be opened (as without the rights to it). */
static void start_with_town(struct fixture *fx, bool readable)
{
    char path[160];

    fx_close(fx);
    zones_free(fx->zones);
    fx->zones = NULL;
    snprintf(fx->zoneinfo, sizeof fx->zoneinfo, "%s/zones", fx->folder);
    mkdir(fx->zoneinfo, 0700);
    snprintf(path, sizeof path, "%s/Town", fx->zoneinfo);
    unlink(path);
    if (readable)
        copy_zone("/usr/share/zoneinfo/Asia/Tokyo", path);
    else
        assert_int_equal(symlink("Town", path), 0);
    fx_open(fx);
}

/* F-C9: the others fire, delayed tasks come, and a request for the zone gets the reason. */
static void a_zone_that_cannot_be_read_holds_up_nobody(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid other = make_job(fx, "{\"name\":\"other\"}");
    struct catalog_request *request;
    struct uuid id, pattern, delayed;
    uint32_t count;

    fx->wanted.settings.lease_ms = 600;
    start_with_town(fx, true);
    id = make_schedule(fx, job, "\"schedule_type\":\"cron\",\"cron_expression\":\"0 3 * * *\","
                                "\"timezone\":\"Town\"");
    pattern = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"rrule\",\"pattern_config\":"
                           "{\"rrule\":\"FREQ=DAILY\",\"timezone\":\"Town\"},"
                           "\"template_job_id\":\"%s\"}", id_text(fx, job));
    make_schedule(fx, other, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    start_with_town(fx, false);
    delayed = enqueue(fx, "{\"type\":\"t\",\"delay_ms\":100}");
    wait_until(get_schedule(fx, id)->error.data != NULL);
    assert_true(has_text(get_schedule(fx, id)->error, "cannot be read"));
    wait_until(get_pattern(fx, pattern)->error.data != NULL);
    count = count_tasks(fx, other);
    wait_until(count_tasks(fx, other) > count + 1);
    wait_until(get(fx, delayed)->status == STATUS_PENDING);
    request = plan_ask(fx, CATALOG_SCHEDULE, CATALOG_UPDATE, id, "{\"is_active\":true}");
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_string_equal(request->base.err.field, "timezone");
    start_with_town(fx, true);
    wait_until(get_schedule(fx, id)->error.data == NULL);
    assert_int_equal(get_schedule(fx, id)->next_fire_at_us % (24 * HOUR_US), 18 * HOUR_US);
    assert_int_equal(count_tasks(fx, job), 0);
}

/* ---- a store that refuses ---- */

/* Workers that are lost are found and delayed tasks come while nothing can fire. */
static void firing_that_fails_undoes_no_other_chore(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE);
    struct uuid delayed, held;
    struct task *task;

    fx->wanted.settings.lease_ms = 600;
    fx->wanted.settings.allow_changed_schema = true;
    fx_sql(fx, pg_schema_wanted()
                   ? "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'refused'; END $$ "
                     "LANGUAGE plpgsql; CREATE TRIGGER refuse BEFORE INSERT ON schedule_fires "
                     "FOR EACH ROW EXECUTE FUNCTION refuse()"
                   : "CREATE TRIGGER refuse BEFORE INSERT ON schedule_fires BEGIN "
                     "SELECT RAISE(ABORT, 'refused'); END");
    move_times(fx, "schedules", "next_fire_at", -120);
    delayed = enqueue(fx, "{\"type\":\"t\",\"queue\":\"q\",\"delay_ms\":300}");
    worker(fx, "w", "default");
    held = enqueue(fx, "{\"type\":\"t\",\"max_crashes\":5}");
    task = claim_one(fx, "w")->task;
    assert_true(uuid_eq(&task->id, &held));
    wait_until(get(fx, delayed)->status == STATUS_PENDING);
    wait_until(get(fx, held)->status != STATUS_CLAIMED);
    assert_true(stats_of(fx).totals[TOTAL_BATCH_RETRIES] > 0);
    assert_int_equal(count_tasks(fx, job), 0);
    fx_sql(fx, pg_schema_wanted() ? "DROP TRIGGER refuse ON schedule_fires"
                                  : "DROP TRIGGER refuse");
    wait_fired(fx, id);
    assert_true(count_tasks(fx, job) > 0);
    fx_verify(fx);
}

/* ---- large payloads ---- */

/* F-H9: a commit ends also by what its tasks weigh, in the middle of a schedule's instants. */
static void large_payloads_come_in_several_commits(void **state)
{
    struct fixture *fx = *state;
    char *payload = malloc(LARGE_BYTES + 1);
    struct task *tasks;
    struct uuid job, id;
    int64_t most;
    uint32_t count;

    assert_non_null(payload);
    memset(payload, 'x', LARGE_BYTES);
    payload[LARGE_BYTES] = '\0';
    job = make_job(fx, "{\"name\":\"j\",\"payload\":\"%s\"}", payload);
    id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\",\"misfire_cap\":1000");
    move_times(fx, "schedules", "next_fire_at", -60 * LARGE_FIRES);
    wait_fired(fx, id);
    tasks = tasks_of(fx, job, &count);
    assert_in_range(count, LARGE_FIRES, LARGE_FIRES + 2);
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(tasks[i].scheduled_at_us, tasks[i - 1].scheduled_at_us + 60 * SECOND_US);
    most = fx_ask(fx, pg_schema_wanted()
                          ? "SELECT max(n) FROM (SELECT count(*) AS n FROM tasks GROUP BY "
                            "created_at) AS c"
                          : "SELECT max(n) FROM (SELECT count(*) AS n FROM tasks GROUP BY "
                            "created_at)");
    assert_in_range(most, 2, 28); /* 16 MiB of them */
    fx_verify(fx);
    free(payload);
}

/* ---- clocks ---- */

/* F-C1: it was years ahead when the schedule fired, and is right again. */
static void a_schedule_that_fired_in_the_future_is_not_silent_until_then(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE);
    struct uuid pattern = make_pattern(fx, "{\"name\":\"p\",\"pattern_type\":\"rrule\","
                                       "\"pattern_config\":{\"rrule\":\"FREQ=HOURLY\","
                                       "\"starts_at\":\"2020-01-01T00:00:00Z\"},"
                                       "\"template_job_id\":\"%s\"}", id_text(fx, job));
    int64_t soon_us;

    move_times(fx, "schedules", "next_fire_at", -600);
    wait_fired(fx, id);
    assert_true(get_schedule(fx, id)->last_fire_at_us > 0);
    move_times(fx, "schedules", "next_fire_at", 2 * 365 * 86400);
    move_times(fx, "schedules", "last_fire_at", 2 * 365 * 86400);
    move_times(fx, "recurring_jobs", "next_generation", 2 * 365 * 86400);
    soon_us = clock_wall_us() + 2 * HOUR_US;
    wait_until(get_schedule(fx, id)->next_fire_at_us < soon_us);
    wait_until(get_pattern(fx, pattern)->next_generation_us < soon_us);
    change(fx, CATALOG_SCHEDULE, id, "{\"interval_seconds\":120}");
    assert_true(get_schedule(fx, id)->next_fire_at_us < soon_us);
    assert_true(get_schedule(fx, id)->next_fire_at_us > clock_wall_us() - SECOND_US);
}

/* ---- changes ---- */

static void once_is_not_moved_into_the_past(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = plain_job(fx);
    struct uuid id = plan_make(fx, CATALOG_SCHEDULE, "{\"job_id\":\"%s\",\"schedule_type\":\"once\","
                               "\"scheduled_at\":\"%s\"}", id_text(fx, job),
                               time_text(fx, clock_wall_us()));
    struct catalog_request *request;

    wait_until(count_tasks(fx, job) == 1); /* also one that has fired */
    request = plan_ask(fx, CATALOG_SCHEDULE, CATALOG_UPDATE, id,
                       "{\"scheduled_at\":\"2020-01-01T00:00:00Z\"}");
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_string_equal(request->base.err.field, "scheduled_at");
    change(fx, CATALOG_SCHEDULE, id, "{\"scheduled_at\":\"%s\"}",
           time_text(fx, clock_wall_us() + HOUR_US));
    assert_true(get_schedule(fx, id)->next_fire_at_us > clock_wall_us());
    request = plan_ask(fx, CATALOG_SCHEDULE, CATALOG_UPDATE, id,
                       "{\"scheduled_at\":\"2020-01-01T00:00:00Z\"}");
    assert_int_equal(request->base.err.code, ERR_INVALID);
    assert_int_equal(count_tasks(fx, job), 1);
}

/* However many others are due before it: what passed fires nothing when it is active again. */
static void what_passed_among_many_never_fires(void **state)
{
    struct fixture *fx = *state;
    struct uuid category = make_category(fx, "{\"name\":\"c\",\"is_active\":false}");
    struct uuid busy = make_job(fx, "{\"name\":\"busy\"}");
    struct uuid job = make_job(fx, "{\"name\":\"j\",\"category\":\"c\"}");
    struct uuid id = make_schedule(fx, job, EVERY_MINUTE ",\"misfire\":\"fire_all\"");
    struct catalog_request *request;
    struct engine_call call;

    for (int i = 0; i < MANY; i++)
        make_schedule(fx, busy, EVERY_MINUTE ",\"misfire\":\"skip\"");
    fx_sql(fx, pg_schema_wanted()
                   ? "UPDATE schedules SET next_fire_at = next_fire_at - interval '900 seconds' "
                     "WHERE misfire = 'skip'"
                   : "UPDATE schedules SET next_fire_at = next_fire_at - 900000000 "
                     "WHERE misfire = 'skip'");
    request = plan_prepare(fx, CATALOG_CATEGORY, CATALOG_UPDATE, category,
                           STR("{\"is_active\":true}"));
    move_times(fx, "schedules", "next_fire_at", -600);
    engine_call_start(fx->engine, &request->base, &call); /* likely in the first commit */
    assert_int_equal(engine_call_finish(&request->base, &call), 0);
    wait_fired(fx, id);
    assert_int_equal(count_tasks(fx, job), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(a_zone_that_cannot_be_read_holds_up_nobody),
        QUEUE_TEST(firing_that_fails_undoes_no_other_chore),
        QUEUE_TEST(large_payloads_come_in_several_commits),
        QUEUE_TEST(a_schedule_that_fired_in_the_future_is_not_silent_until_then),
        QUEUE_TEST(once_is_not_moved_into_the_past),
        QUEUE_TEST(what_passed_among_many_never_fires),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
