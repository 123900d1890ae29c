/* Retention of logs by level and by type (D9, F-J8): lines that lose what they said stay proven,
 * lines that go leave a signed record, and nothing else is allowed to look like it. */
#include "engine_fixture.h"

#include "log_fixture.h"
#include "log_time_fixture.h"

static const char *begin(struct fixture *fx)
{
    const char *anchor = keep_anchor(fx);

    worker(fx, "w", "default");
    return anchor;
}

static struct task *start_one(struct fixture *fx, const char *spec)
{
    enqueue(fx, "%s", spec);
    return claim_one(fx, "w")->task;
}

/* Lines of all levels, one after the other. */
static void say(struct fixture *fx, struct task *held, int lines)
{
    struct report reports[100];
    struct report_request *request;

    assert_in_range(lines, 1, 100);
    for (int i = 0; i < lines; i++)
        reports[i] = REPORT(held, .op = REPORT_LOG, .level = (enum log_severity)(i % 5),
                            .message = arena_format(&fx->arena, "secret %d", i),
                            .context = STR("{\"n\":\"secret\"}"));
    request = report_prepare(fx, &fx->arena, "w", reports, (uint32_t)lines);
    assert_int_equal(engine_call(fx->engine, &request->base), 0);
}

static void log_one(struct fixture *fx, const char *spec, int lines)
{
    struct task *held = start_one(fx, spec);

    say(fx, held, lines);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
}

static int64_t emptied(struct fixture *fx)
{
    return fx_ask(fx, "SELECT count(*) FROM execution_logs WHERE removed_hash IS NOT NULL");
}

static void d9_lines_of_a_level_lose_what_they_said_and_stay_proven(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = begin(fx);
    struct task *held;

    log_one(fx, "{\"type\":\"t\"}", 5);
    held = start_one(fx, "{\"type\":\"t\"}"); /* more than one step has, and under way */
    for (int i = 0; i < 9; i++)
        say(fx, held, 100);
    wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_DEBUG] = 1;
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_WARN] = 1;
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_INFO] = 3600000; /* not yet */
    reopen(fx);
    while (emptied(fx) < 2 * 181)
        assert_whole(fx, NULL); /* at every step */
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM execution_logs"), 905);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM execution_logs WHERE removed_hash IS NOT NULL "
                                "AND (log_level NOT IN ('DEBUG', 'WARN') OR message <> '' OR "
                                "context IS NOT NULL OR chain_hash IS NULL)"), 0);
    worker(fx, "w", "default");
    say(fx, held, 100); /* the chain continues; these lines are due with their own record */
    wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
    reopen(fx);
    wait_until(emptied(fx) == 2 * 201);
    reopen(fx);
    assert_whole(fx, NULL);
    assert_whole(fx, anchor);
    assert_int_equal(log_fixture_check(fx, anchor).counts.emptied, 2 * 201);
    fx_verify(fx);
}

static void d9_what_is_done_is_not_looked_at_again(void **state)
{
    struct fixture *fx = *state;
    int64_t records;

    begin(fx);
    log_one(fx, "{\"type\":\"t\"}", 10);
    wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0 OR closed = ''") == 0);
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_DEBUG] = 1;
    reopen(fx);
    wait_until(emptied(fx) == 2);
    records = fx_ask(fx, "SELECT max(serial) FROM log_anchors");
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"blanks\"%'"), 1);
    reopen(fx);
    reopen(fx);
    assert_int_equal(fx_ask(fx, "SELECT max(serial) FROM log_anchors"), records);
    assert_true(fx_ask(fx, "SELECT count(*) FROM store_info WHERE name = 'log_level_DEBUG' AND "
                           "value <> '0 0 0 0'") == 1);
}

static void j5_what_retention_did_not_do_is_found(void **state)
{
    static const char *const changes[] = {
        "UPDATE execution_logs SET log_level = 'INFO' WHERE seq = 1",
        "UPDATE execution_logs SET message = 'forged' WHERE seq = 1",
        "UPDATE execution_logs SET message = 'forged', removed_hash = NULL WHERE seq = 1",
        "UPDATE execution_logs SET removed_hash = chain_hash WHERE seq = 1",
        "UPDATE execution_logs SET message = '', context = NULL, removed_hash = chain_hash "
        "WHERE seq = 2",
        "UPDATE execution_logs SET log_level = 'DEBUG', message = '', context = NULL, "
        "removed_hash = chain_hash WHERE seq = 2",
        "DELETE FROM log_anchors WHERE record LIKE '%\"kind\":\"blanks\"%'"};

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct fixture *fx = *state;

        if (i == 0) {
            begin(fx);
            log_one(fx, "{\"type\":\"t\"}", 10);
            wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
            fx->wanted.settings.retention.log_levels_ms[SEVERITY_DEBUG] = 1;
            reopen(fx);
            wait_until(emptied(fx) == 2);
            fx_sql(fx, "CREATE TABLE kept_lines AS SELECT * FROM execution_logs");
            fx_sql(fx, "CREATE TABLE kept_records AS SELECT * FROM log_anchors");
        }
        assert_whole(fx, NULL);
        fx_sql(fx, changes[i]);
        if (log_fixture_check(fx, NULL).findings == 0)
            fail_msg("not found: %s", changes[i]);
        fx_sql(fx, "DELETE FROM execution_logs; INSERT INTO execution_logs SELECT * FROM kept_lines; "
                   "DELETE FROM log_anchors; INSERT INTO log_anchors SELECT * FROM kept_records");
    }
}

/* Records of what was emptied go like others; what they say stays as long as the lines do. */
static void j8_old_records_of_emptied_lines_go_and_leave_them_proven(void **state)
{
    struct fixture *fx = *state;
    struct task *held;
    char later[160];

    if (pg_schema_wanted())
        skip(); /* time cannot be set there; the verbs are in the conformance suite */
    fx->wanted.settings.lease_ms = 90LL * 86400000; /* what runs is not lost meanwhile */
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_DEBUG] = 1;
    fx->wanted.settings.retention.log_levels_ms[SEVERITY_WARN] = 1;
    begin(fx);
    held = start_one(fx, "{\"type\":\"t\",\"timeout_ms\":7776000000}");
    for (int i = 1; i <= 3; i++) { /* several records of the same execution */
        say(fx, held, 10);
        wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
        reopen(fx);
        worker(fx, "w", "default");
        wait_until(emptied(fx) == 4 * i);
    }
    for (int i = 0; i < 60; i++) {
        enqueue(fx, "{\"type\":\"t\"}");
        struct task *other = claim_one(fx, "w")->task;

        say(fx, other, 1);
        report_ok(fx, "w", other, .op = REPORT_COMPLETE);
        assert_int_equal(control(fx, other->id, CONTROL_DELETE), ERR_NONE);
    }
    assert_true(fx_ask(fx, "SELECT max(serial) FROM log_anchors WHERE record LIKE "
                           "'%\"kind\":\"blanks\"%'") <= 50);
    fx->wanted.settings.retention.logs_ms = 86400000;
    fx_close(fx);
    fx_open(fx);
    snprintf(later, sizeof later, "INSERT OR REPLACE INTO store_info VALUES ('last_time_us', '%lld')",
             (long long)(clock_wall_us() + 40LL * 86400 * CLOCK_SECOND_US));
    wall_ahead_us = 41LL * 86400 * CLOCK_SECOND_US;
    fx_sql(fx, later);
    wait_until(fx_ask(fx, "SELECT min(serial) FROM log_anchors") == 51);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                                "'%\"kind\":\"blanks\"%'"), 0);
    assert_int_equal(emptied(fx), 12);
    assert_whole(fx, NULL);
    assert_int_equal(log_fixture_check(fx, NULL).counts.emptied, 12);
    fx_sql(fx, "UPDATE execution_logs SET message = '', context = NULL, removed_hash = chain_hash "
               "WHERE seq = 2");
    assert_true(log_fixture_check(fx, NULL).findings > 0); /* no setting says so of another level */
    wall_ahead_us = 0;
}

/* The most exact rule counts, the rest stays; of a run under way the last line carries the chain. */
static void d9_lines_of_a_type_go_after_their_own_time(void **state)
{
    struct fixture *fx = *state;
    const char *anchor = begin(fx);
    struct task *held;

    log_one(fx, "{\"type\":\"mail:kept\"}", 10);
    log_one(fx, "{\"type\":\"other\"}", 10);
    for (int i = 0; i < 5; i++)
        log_one(fx, "{\"type\":\"mail:a\"}", 100);
    held = start_one(fx, "{\"type\":\"mail:b\"}");
    say(fx, held, 100);
    wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
    fx->wanted.handlers[0] = (struct handler_rule){.type = STR("mail:*"), .retention_ms = -1,
                                                   .retention_logs_ms = 1};
    fx->wanted.handlers[1] = (struct handler_rule){.type = STR("mail:kept"), .retention_ms = -1};
    fx->wanted.settings.handlers_count = 2;
    reopen(fx);
    while (fx_ask(fx, "SELECT count(*) FROM execution_logs") > 21)
        assert_whole(fx, NULL);
    worker(fx, "w", "default");
    say(fx, held, 3);
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    wait_until(fx_ask(fx, "SELECT count(*) FROM log_heads WHERE lines > 0") == 0);
    reopen(fx);
    wait_until(fx_ask(fx, "SELECT count(*) FROM execution_logs") == 20);
    assert_true(fx_ask(fx, "SELECT count(*) FROM log_anchors WHERE record LIKE "
                           "'%\"kind\":\"cuts\"%retention%'") >= 1);
    reopen(fx);
    assert_whole(fx, anchor);
    fx_verify(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(d9_lines_of_a_level_lose_what_they_said_and_stay_proven),
        QUEUE_TEST(d9_what_is_done_is_not_looked_at_again),
        QUEUE_TEST(j5_what_retention_did_not_do_is_found),
        QUEUE_TEST(j8_old_records_of_emptied_lines_go_and_leave_them_proven),
        QUEUE_TEST(d9_lines_of_a_type_go_after_their_own_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
