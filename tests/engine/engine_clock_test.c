/* A wall clock that is set while schedules wait (F-C1, F-C2): forward, late instants go by the
 * misfire policy; back, nothing fires again and no timer spins; leases do not notice. On a
 * shared store plans go by the database's clock, and a node whose own is wrong fires nothing early
 * and nothing twice (F-C3). The clock is this program's: it stands before that of the system. */
#include "plan_fixture.h"

#include <stdatomic.h>
#include <sys/syscall.h>

#define YEAR_S (INT64_C(365) * 86400)
#define CPU_MS_MAX 50 /* in half a second of waiting, with sweeps: a tenth */

static _Atomic int64_t wall_ahead_s;

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, at);

    if (rc == 0 && clock == CLOCK_REALTIME)
        at->tv_sec += atomic_load(&wall_ahead_s);
    return rc;
}

static void set_wall(int64_t ahead_s)
{
    atomic_store(&wall_ahead_s, ahead_s);
}

static int clock_setup(void **state)
{
    struct fixture *fx;

    set_wall(0);
    fx_setup(state);
    fx = *state;
    fx_lease(fx, 1200); /* the sweep, every 0.2 s, notices that the clock was set */
    return 0;
}

static int clock_teardown(void **state)
{
    set_wall(0);
    return fx_teardown(state);
}

static int64_t cpu_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static struct uuid every_minute(struct fixture *fx, struct uuid job, const char *members)
{
    char text[300];

    snprintf(text, sizeof text, "\"schedule_type\":\"interval\",\"interval_seconds\":60,"
             "\"starts_at\":\"2020-01-01T00:00:00Z\"%s", members);
    return make_schedule(fx, job, text);
}

static void assert_rests(struct fixture *fx)
{
    int64_t commits = stats_of(fx).totals[TOTAL_COMMITS];
    int64_t began_ms = cpu_ms();

    fx_pause_ms(500); /* nothing is to happen: there is no event to wait for */
    assert_true(cpu_ms() - began_ms < CPU_MS_MAX);
    assert_true(stats_of(fx).totals[TOTAL_COMMITS] - commits < 10);
}

static void set_forward_late_instants_go_by_the_misfire_policy(void **state)
{
    static const struct {
        const char *members;
        int64_t ahead_s;
        uint32_t least, most;
    } cases[] = {
        {",\"misfire\":\"skip\"", 3600, 1, 2},
        {",\"misfire\":\"fire_once\"", 3600, 2, 3},
        {",\"misfire\":\"fire_all\",\"misfire_cap\":20", 3600, 21, 22},
        {",\"misfire\":\"fire_once\"", 5 * YEAR_S, 2, 3},
    };
    struct fixture *fx = *state;

    if (fx->store->shared)
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct uuid job = make_job(fx, "{\"name\":\"j\"}");
        struct uuid id = every_minute(fx, job, cases[i].members);

        set_wall(cases[i].ahead_s);
        wait_fired(fx, id);
        assert_in_range(count_tasks(fx, job), cases[i].least, cases[i].most);
        assert_int_equal(removed(fx, CATALOG_SCHEDULE, id), ERR_NONE);
        set_wall(0);
    }
}

static void set_back_nothing_fires_again_and_nobody_spins(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid id = every_minute(fx, job, "");
    uint32_t count;

    if (fx->store->shared)
        return;
    set_wall(3600);
    wait_fired(fx, id);
    count = count_tasks(fx, job);
    set_wall(0);
    fx_pause_ms(300); /* sweeps have looked */
    assert_rests(fx);
    assert_int_equal(count_tasks(fx, job), count);
    set_wall(3600 + 120);
    wait_until(count_tasks(fx, job) > count);
    wait_fired(fx, id);
    assert_int_equal(fx_ask(fx, "SELECT count(*) FROM schedule_fires"), count_tasks(fx, job));
}

/* F-C2 */
static void a_step_back_over_what_just_fired_makes_no_second_run(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct task *tasks;
    uint32_t count, before;

    if (fx->store->shared)
        return;
    make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    wait_until(count_tasks(fx, job) >= 2);
    before = count_tasks(fx, job);
    set_wall(-2);
    wait_until(count_tasks(fx, job) >= before + 2);
    tasks = tasks_of(fx, job, &count);
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(tasks[i].scheduled_at_us, tasks[i - 1].scheduled_at_us + SECOND_US);
}

static void leases_do_not_notice_the_wall(void **state)
{
    struct fixture *fx = *state;
    struct uuid id = enqueue(fx, "{\"type\":\"t\"}");
    struct task *held;

    worker(fx, "w", "default");
    held = claim_one(fx, "w")->task;
    for (int i = 0; i < 4; i++) {
        set_wall(i % 2 ? -3600 : 5 * YEAR_S);
        fx_pause_ms(250); /* a sweep has looked */
        heartbeat(fx, "w", NULL, 0);
    }
    report_ok(fx, "w", held, .op = REPORT_COMPLETE);
    assert_status(fx, id, STATUS_COMPLETED);
    assert_int_equal(stats_of(fx).totals[TOTAL_LOST_LEASES], 0);
}

/* F-C3 */
static void on_a_shared_store_a_nodes_own_clock_does_not_count(void **state)
{
    struct fixture *fx = *state;
    struct uuid job = make_job(fx, "{\"name\":\"j\"}");
    struct uuid every = make_job(fx, "{\"name\":\"every\"}");
    struct task *tasks;
    uint32_t count;

    if (!fx->store->shared)
        return;
    make_schedule(fx, job, "\"schedule_type\":\"interval\",\"interval_seconds\":3600");
    make_schedule(fx, every, "\"schedule_type\":\"interval\",\"interval_seconds\":1");
    for (int i = 0; i < 4; i++) {
        count = count_tasks(fx, every);
        set_wall(i % 2 ? -300 : 7200);
        wait_until(count_tasks(fx, every) > count);
    }
    tasks = tasks_of(fx, every, &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(tasks[i].status, STATUS_PENDING); /* none is put off, either */
        if (i > 0)
            assert_int_equal(tasks[i].scheduled_at_us, tasks[i - 1].scheduled_at_us + SECOND_US);
    }
    assert_int_equal(count_tasks(fx, job), 0);
}

#define CLOCK_TEST(name) cmocka_unit_test_setup_teardown(name, clock_setup, clock_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(set_forward_late_instants_go_by_the_misfire_policy),
        CLOCK_TEST(set_back_nothing_fires_again_and_nobody_spins),
        CLOCK_TEST(a_step_back_over_what_just_fired_makes_no_second_run),
        CLOCK_TEST(leases_do_not_notice_the_wall),
        CLOCK_TEST(on_a_shared_store_a_nodes_own_clock_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
