/* Conformance: schedules and recurring patterns (D1, D4, D6): which are due and in what order, that
 * they advance only from where they stood, and that a planned instant is taken once. */
#include "conformance.h"

#define MANY 10000

static struct schedule *load_schedule(struct conformance *c, const struct uuid *id)
{
    struct schedule *schedule = NULL;

    OK(c, CATALOG(c)->schedules_load(c->store, id, 1, &c->arena, &schedule, &c->err));
    return schedule;
}

static struct recurring *load_recurring(struct conformance *c, const struct uuid *id)
{
    struct recurring *recurring = NULL;

    OK(c, CATALOG(c)->recurring_load(c->store, id, 1, &c->arena, &recurring, &c->err));
    return recurring;
}

static uint32_t due(struct conformance *c, int64_t wall_us, uint32_t limit,
                    struct schedule **schedules, int64_t *next_us)
{
    uint32_t count = 0;

    OK(c, CATALOG(c)->schedules_due(c->store, wall_us, limit, &c->arena, schedules, &count,
                                    next_us, &c->err));
    return count;
}

static void then_same_schedule(const struct schedule *a, const struct schedule *b)
{
    then_id(a->id, b->id);
    then_str(a->namespace_name, b->namespace_name);
    then_id(a->job_id, b->job_id);
    assert_int_equal(a->type, b->type);
    then_str(a->cron_expression, b->cron_expression);
    assert_int_equal(a->interval_s, b->interval_s);
    assert_int_equal(a->scheduled_at_us, b->scheduled_at_us);
    then_str(a->timezone, b->timezone);
    assert_int_equal(a->starts_at_us, b->starts_at_us);
    assert_int_equal(a->ends_at_us, b->ends_at_us);
    assert_int_equal(a->is_active, b->is_active);
    assert_int_equal(a->misfire, b->misfire);
    assert_int_equal(a->misfire_grace_ms, b->misfire_grace_ms);
    assert_int_equal(a->misfire_cap, b->misfire_cap);
    assert_int_equal(a->overlap, b->overlap);
    assert_int_equal(a->dst, b->dst);
    assert_int_equal(a->jitter_ms, b->jitter_ms);
    then_str(a->callback_url, b->callback_url);
    then_str(a->callback_events, b->callback_events);
    assert_int_equal(a->next_fire_at_us, b->next_fire_at_us);
    assert_int_equal(a->last_fire_at_us, b->last_fire_at_us);
    then_str(a->error, b->error);
    assert_int_equal(a->created_at_us, b->created_at_us);
    assert_int_equal(a->updated_at_us, b->updated_at_us);
}

static void d1_a_schedule_comes_back_as_it_was_put(void **state)
{
    struct conformance *c = *state;
    struct schedule *schedule, *read = NULL;

    store_begin(c);
    schedule = given_schedule(c, given_job(c, "a"), 0);
    then_same_schedule(load_schedule(c, &schedule->id), schedule);
    schedule->type = SCHEDULE_CRON;
    schedule->cron_expression = STR("0 9 * * 1-5");
    schedule->interval_s = 0;
    schedule->scheduled_at_us = T0_US + 1;
    schedule->timezone = STR("Europe/Paris");
    schedule->starts_at_us = T0_US + 2;
    schedule->ends_at_us = T0_US + 3;
    schedule->is_active = false;
    schedule->misfire = MISFIRE_FIRE_ALL;
    schedule->misfire_grace_ms = 0;
    schedule->misfire_cap = 7;
    schedule->overlap = OVERLAP_REPLACE;
    schedule->dst = DST_BOTH;
    schedule->jitter_ms = 250;
    schedule->callback_url = STR("https://example.test/");
    schedule->callback_events = STR("[\"failed\"]");
    schedule->next_fire_at_us = INT64_C(253402300799000000); /* the last second of year 9999 */
    schedule->last_fire_at_us = T0_US + 5;
    schedule->error = STR("its zone is not there");
    schedule->updated_at_us = T0_US + 6;
    OK(c, CATALOG(c)->schedule_put(c->store, schedule, &c->err));
    store_commit(c);
    store_reopen(c);
    OK(c, CATALOG(c)->read_schedule(c->reader, &schedule->id, &c->arena, &read, &c->err));
    then_same_schedule(read, schedule);
    store_begin(c);
    OK(c, CATALOG(c)->schedule_delete(c->store, &schedule->id, &c->err));
    assert_int_equal(CATALOG(c)->schedule_delete(c->store, &schedule->id, &c->err),
                     -ERR_NOT_FOUND);
    assert_null(load_schedule(c, &schedule->id));
    store_commit(c);
}

static void d6_a_pattern_comes_back_as_it_was_put(void **state)
{
    struct conformance *c = *state;
    struct recurring *recurring, *read = NULL;

    store_begin(c);
    recurring = given_recurring(c, given_job(c, "a"), T0_US);
    recurring->name = STR("other");
    recurring->type = RECURRENCE_RRULE;
    recurring->pattern_config = STR("{\"rrule\": \"FREQ=DAILY\"}");
    recurring->last_generated_us = T0_US - 5;
    recurring->next_generation_us = T0_US + 5;
    recurring->is_active = false;
    recurring->error = STR("why");
    recurring->updated_at_us = T0_US + 1;
    OK(c, CATALOG(c)->recurring_put(c->store, recurring, &c->err));
    store_commit(c);
    OK(c, CATALOG(c)->read_recurring_one(c->reader, &recurring->id, &c->arena, &read, &c->err));
    then_id(read->id, recurring->id);
    then_str(read->name, recurring->name);
    assert_int_equal(read->type, RECURRENCE_RRULE);
    then_str(member_of(read->pattern_config, "rrule"), STR("\"FREQ=DAILY\""));
    then_id(read->template_job_id, recurring->template_job_id);
    assert_int_equal(read->last_generated_us, T0_US - 5);
    assert_int_equal(read->next_generation_us, T0_US + 5);
    assert_false(read->is_active);
    then_str(read->error, recurring->error);
    assert_int_equal(read->created_at_us, T0_US);
    assert_int_equal(read->updated_at_us, T0_US + 1);
}

static void d4_due_ones_come_earliest_first_and_the_rest_says_when(void **state)
{
    struct conformance *c = *state;
    struct schedule *given[6], *schedules;
    struct job *job;
    int64_t next_us;

    store_begin(c);
    job = given_job(c, "a");
    for (int i = 0; i < 6; i++)
        given[i] = given_schedule(c, job, T0_US + 10 * ((i * 5) % 6)); /* 0 50 40 30 20 10 */
    given[3]->is_active = false;
    OK(c, CATALOG(c)->schedule_put(c->store, given[3], &c->err));
    given_schedule(c, job, 0); /* over */
    store_commit(c);
    assert_int_equal(due(c, T0_US - 1, 10, &schedules, &next_us), 0);
    assert_int_equal(next_us, T0_US);
    assert_int_equal(due(c, T0_US + 20, 10, &schedules, &next_us), 3);
    then_id(schedules[0].id, given[0]->id);
    then_id(schedules[1].id, given[5]->id);
    then_id(schedules[2].id, given[4]->id);
    assert_int_equal(next_us, T0_US + 40);
    assert_int_equal(due(c, T0_US + 20, 2, &schedules, &next_us), 2);
    assert_int_equal(next_us, T0_US + 20); /* one was left behind */
    assert_int_equal(due(c, T0_US + 100, 10, &schedules, &next_us), 5);
    assert_true(next_us == INT64_MAX);
    assert_int_equal(due(c, T0_US + 100, 5, &schedules, &next_us), 5);
    assert_true(next_us == INT64_MAX);
}

static void d4_schedules_of_deleted_jobs_are_never_due(void **state)
{
    struct conformance *c = *state;
    struct job *gone;
    struct schedule *schedule, *schedules;
    int64_t next_us;

    store_begin(c);
    gone = given_job(c, "gone");
    OK(c, CATALOG(c)->job_delete(c->store, &gone->id, T0_US, &c->err));
    given_schedule(c, gone, T0_US); /* as if by hand */
    schedule = given_schedule(c, given_job(c, "there"), T0_US + 1);
    store_commit(c);
    assert_int_equal(due(c, T0_US, 10, &schedules, &next_us), 0);
    assert_int_equal(next_us, T0_US + 1);
    assert_int_equal(due(c, T0_US + 1, 10, &schedules, &next_us), 1);
    then_id(schedules[0].id, schedule->id);
}

/* D4: among ten thousand only the due ones are given, and however many others there are, asking
 * costs the same: a hundred times takes no longer than a blink. */
static void d4_among_ten_thousand_schedules_only_due_ones_are_given(void **state)
{
    struct conformance *c = *state;
    struct schedule *schedules;
    struct job *job;
    int64_t next_us;

    store_begin(c);
    job = given_job(c, "a");
    for (int i = 0; i < MANY; i++)
        given_schedule(c, job, i % 1000 == 7 ? T0_US + i : T0_US + SECOND_US + i);
    store_commit(c);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(due(c, T0_US + MANY, 100, &schedules, &next_us), 10);
        assert_int_equal(next_us, T0_US + SECOND_US);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(schedules[i].next_fire_at_us, T0_US + 1000 * i + 7);
}

/* D4: a change made to the schedule meanwhile is not overwritten. */
static void d4_a_schedule_goes_on_only_from_where_it_stood(void **state)
{
    struct conformance *c = *state;
    struct schedule *first, *second;
    struct plan_step steps[4];
    struct schedule *read;

    store_begin(c);
    first = given_schedule(c, given_job(c, "a"), T0_US);
    second = given_schedule(c, given_job(c, "b"), T0_US);
    steps[0] = (struct plan_step){.id = first->id, .from_us = T0_US, .to_us = T0_US + 60,
                                  .fired_us = T0_US};
    steps[1] = (struct plan_step){.id = second->id, .from_us = T0_US + 1, .to_us = T0_US + 60};
    steps[2] = (struct plan_step){.id = {{9}}, .from_us = T0_US, .to_us = T0_US + 60};
    OK(c, CATALOG(c)->schedules_step(c->store, steps, 3, &c->err));
    assert_true(steps[0].moved);
    assert_false(steps[1].moved);
    assert_false(steps[2].moved);
    read = load_schedule(c, &first->id);
    assert_int_equal(read->next_fire_at_us, T0_US + 60);
    assert_int_equal(read->last_fire_at_us, T0_US);
    assert_int_equal(load_schedule(c, &second->id)->next_fire_at_us, T0_US);
    steps[0] = (struct plan_step){.id = first->id, .from_us = T0_US + 60, .to_us = 0,
                                  .error = STR("its zone is not there")};
    OK(c, CATALOG(c)->schedules_step(c->store, steps, 1, &c->err));
    read = load_schedule(c, &first->id);
    assert_true(steps[0].moved);
    assert_int_equal(read->next_fire_at_us, 0);
    assert_int_equal(read->last_fire_at_us, T0_US); /* kept */
    then_str(read->error, steps[0].error);
    steps[0] = (struct plan_step){.id = first->id, .from_us = 0, .to_us = T0_US + 9};
    OK(c, CATALOG(c)->schedules_step(c->store, steps, 1, &c->err));
    store_commit(c);
    read = load_schedule(c, &first->id);
    assert_int_equal(read->next_fire_at_us, T0_US + 9);
    assert_null(read->error.data);
}

static void d6_patterns_are_due_and_go_on_like_schedules(void **state)
{
    struct conformance *c = *state;
    struct recurring *early, *late, *found;
    struct plan_step step;
    uint32_t count = 0;
    int64_t next_us;
    struct job *job;

    store_begin(c);
    job = given_job(c, "a");
    late = given_recurring(c, job, T0_US + 20);
    early = given_recurring(c, job, T0_US + 10);
    given_recurring(c, job, 0);
    OK(c, CATALOG(c)->recurring_due(c->store, T0_US + 10, 10, &c->arena, &found, &count, &next_us,
                                    &c->err));
    assert_int_equal(count, 1);
    then_id(found[0].id, early->id);
    assert_int_equal(next_us, T0_US + 20);
    OK(c, CATALOG(c)->recurring_due(c->store, T0_US + 30, 1, &c->arena, &found, &count, &next_us,
                                    &c->err));
    assert_int_equal(count, 1);
    assert_int_equal(next_us, T0_US + 20);
    step = (struct plan_step){.id = early->id, .from_us = T0_US + 11, .to_us = T0_US + 30};
    OK(c, CATALOG(c)->recurring_step(c->store, &step, 1, &c->err));
    assert_false(step.moved);
    step = (struct plan_step){.id = early->id, .from_us = T0_US + 10, .to_us = T0_US + 30,
                              .fired_us = T0_US + 10};
    OK(c, CATALOG(c)->recurring_step(c->store, &step, 1, &c->err));
    assert_true(step.moved);
    store_commit(c);
    assert_int_equal(load_recurring(c, &early->id)->last_generated_us, T0_US + 10);
    OK(c, CATALOG(c)->recurring_due(c->store, T0_US + 30, 10, &c->arena, &found, &count, &next_us,
                                    &c->err));
    assert_int_equal(count, 2);
    then_id(found[0].id, late->id);
    then_id(found[1].id, early->id);
    assert_true(next_us == INT64_MAX);
}

static void f_c9_all_are_seen_once_by_going_through_them_page_by_page(void **state)
{
    struct conformance *c = *state;
    struct schedule *given[5], *schedules;
    struct recurring *recurring;
    struct uuid after = {{0}};
    uint32_t seen = 0;
    uint32_t count = 0;
    struct job *job;

    store_begin(c);
    job = given_job(c, "a");
    for (int i = 0; i < 5; i++)
        given[i] = given_schedule(c, job, 0);
    given_recurring(c, job, 0);
    store_commit(c);
    do {
        OK(c, CATALOG(c)->schedules_scan(c->store, &after, 2, &c->arena, &schedules, &count,
                                         &c->err));
        for (uint32_t i = 0; i < count; i++)
            then_id(schedules[i].id, given[seen++]->id);
        if (count)
            after = schedules[count - 1].id;
    } while (count);
    assert_int_equal(seen, 5);
    OK(c, CATALOG(c)->recurring_scan(c->store, NULL, 2, &c->arena, &recurring, &count, &c->err));
    assert_int_equal(count, 1);
    OK(c, CATALOG(c)->recurring_scan(c->store, &recurring[0].id, 2, &c->arena, &recurring, &count,
                                     &c->err));
    assert_int_equal(count, 0);
}

static void d4_a_planned_instant_is_taken_once(void **state)
{
    struct conformance *c = *state;
    struct uuid owner = uuid7_new(&c->ids, T0_US);
    struct fire fires[4];

    for (int i = 0; i < 4; i++)
        fires[i] = (struct fire){.owner_id = owner, .instant_us = T0_US + i % 3,
                                 .task_id = uuid7_new(&c->ids, T0_US)};
    fires[1].task_id = (struct uuid){{0}}; /* passed over */
    store_begin(c);
    OK(c, CATALOG(c)->fires_insert(c->store, false, fires, 3, &c->err));
    assert_false(fires[0].taken || fires[1].taken || fires[2].taken);
    store_commit(c);
    store_begin(c);
    fires[2].instant_us = T0_US + 7;
    OK(c, CATALOG(c)->fires_insert(c->store, false, fires, 3, &c->err));
    assert_true(fires[0].taken && fires[1].taken);
    assert_false(fires[2].taken);
    OK(c, CATALOG(c)->fires_insert(c->store, true, fires, 1, &c->err)); /* a table of its own */
    assert_false(fires[0].taken);
    store_commit(c);
    store_begin(c);
    fires[3].instant_us = T0_US + 8;
    OK(c, CATALOG(c)->fires_insert(c->store, false, &fires[3], 1, &c->err));
    store_rollback(c); /* F-A12: fired after all */
    store_begin(c);
    OK(c, CATALOG(c)->fires_insert(c->store, false, &fires[3], 1, &c->err));
    assert_false(fires[3].taken);
    store_commit(c);
}

static void d4_old_fires_are_removed_some_at_a_time(void **state)
{
    struct conformance *c = *state;
    struct fire fires[6];
    uint32_t removed;

    for (int i = 0; i < 6; i++)
        fires[i] = (struct fire){.owner_id = {{(uint8_t)(6 - i)}}, .instant_us = T0_US + i};
    store_begin(c);
    OK(c, CATALOG(c)->fires_insert(c->store, false, fires, 6, &c->err));
    OK(c, CATALOG(c)->fires_insert(c->store, true, fires, 6, &c->err));
    OK(c, CATALOG(c)->fires_prune(c->store, T0_US + 4, 3, &removed, &c->err));
    assert_int_equal(removed, 3);
    OK(c, CATALOG(c)->fires_prune(c->store, T0_US + 4, 100, &removed, &c->err));
    assert_int_equal(removed, 5);
    OK(c, CATALOG(c)->fires_prune(c->store, T0_US + 4, 100, &removed, &c->err));
    assert_int_equal(removed, 0);
    OK(c, CATALOG(c)->fires_insert(c->store, false, fires, 6, &c->err));
    store_commit(c);
    assert_false(fires[3].taken);
    assert_true(fires[4].taken && fires[5].taken);
}

static uint32_t list_schedules(struct conformance *c, struct catalog_filter filter)
{
    struct schedule *schedules;
    uint32_t count = 0;

    OK(c, CATALOG(c)->read_schedules(c->reader, &filter, &c->arena, &schedules, &count, &c->err));
    for (uint32_t i = 1; i < count; i++)
        assert_true(memcmp(&schedules[i].id, &schedules[i - 1].id, 16) < 0);
    return count;
}

static void d1_lists_of_schedules_keep_to_their_filters(void **state)
{
    struct conformance *c = *state;
    struct catalog_filter any = {.active = -1, .type = -1};
    struct catalog_filter filter = any;
    struct schedule *broken, *off;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    given_schedule(c, a, T0_US);
    given_schedule(c, a, T0_US + 10);
    broken = given_schedule(c, b, 0);
    broken->error = STR("why");
    broken->type = SCHEDULE_CRON;
    broken->cron_expression = STR("* * * * *");
    OK(c, CATALOG(c)->schedule_put(c->store, broken, &c->err));
    off = given_schedule(c, b, T0_US);
    off->is_active = false;
    OK(c, CATALOG(c)->schedule_put(c->store, off, &c->err));
    store_commit(c);
    assert_int_equal(list_schedules(c, any), 4);
    filter.job_id = b->id;
    assert_int_equal(list_schedules(c, filter), 2);
    filter.active = 1;
    assert_int_equal(list_schedules(c, filter), 1);
    filter = any;
    filter.errors_only = true;
    assert_int_equal(list_schedules(c, filter), 1);
    filter = any;
    filter.type = SCHEDULE_INTERVAL;
    assert_int_equal(list_schedules(c, filter), 3);
    filter.next_before_us = T0_US + 10;
    assert_int_equal(list_schedules(c, filter), 2);
    filter = any;
    filter.before_id = broken->id;
    assert_int_equal(list_schedules(c, filter), 2);
    filter.limit = 1;
    assert_int_equal(list_schedules(c, filter), 1);
    filter = any;
    filter.namespace_name = STR("other");
    assert_int_equal(list_schedules(c, filter), 0);
}

static uint32_t list_recurring(struct conformance *c, struct catalog_filter filter)
{
    struct recurring *recurring;
    uint32_t count = 0;

    OK(c, CATALOG(c)->read_recurring(c->reader, &filter, &c->arena, &recurring, &count, &c->err));
    return count;
}

static void d6_lists_of_patterns_keep_to_their_filters(void **state)
{
    struct conformance *c = *state;
    struct catalog_filter filter = {.active = -1};
    struct recurring *broken;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    given_recurring(c, a, T0_US);
    broken = given_recurring(c, b, 0);
    broken->name = STR("broken");
    broken->error = STR("why");
    broken->is_active = false;
    OK(c, CATALOG(c)->recurring_put(c->store, broken, &c->err));
    given_recurring(c, b, T0_US + 10);
    store_commit(c);
    assert_int_equal(list_recurring(c, filter), 3);
    filter.job_id = b->id;
    assert_int_equal(list_recurring(c, filter), 2);
    filter.name = STR("broken");
    assert_int_equal(list_recurring(c, filter), 1);
    filter = (struct catalog_filter){.active = -1, .errors_only = true};
    assert_int_equal(list_recurring(c, filter), 1);
    filter = (struct catalog_filter){.active = 1, .next_before_us = T0_US + 10};
    assert_int_equal(list_recurring(c, filter), 1);
    filter = (struct catalog_filter){.active = -1, .before_id = broken->id};
    assert_int_equal(list_recurring(c, filter), 1);
}

static void d1_the_next_instant_of_a_job_is_the_earliest_of_all_that_plan_it(void **state)
{
    struct conformance *c = *state;
    struct schedule *off;
    struct uuid ids[3];
    int64_t next_us[3];
    struct job *a, *b, *none;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    none = given_job(c, "none");
    given_schedule(c, a, T0_US + 30);
    given_schedule(c, a, T0_US + 20);
    given_schedule(c, a, 0);
    off = given_schedule(c, a, T0_US);
    off->is_active = false;
    OK(c, CATALOG(c)->schedule_put(c->store, off, &c->err));
    given_recurring(c, a, T0_US + 25);
    given_schedule(c, b, T0_US + 30);
    given_recurring(c, b, T0_US + 5);
    store_commit(c);
    ids[0] = b->id;
    ids[1] = none->id;
    ids[2] = a->id;
    OK(c, CATALOG(c)->read_next_fires(c->reader, ids, 3, next_us, &c->err));
    assert_int_equal(next_us[0], T0_US + 5);
    assert_int_equal(next_us[1], 0);
    assert_int_equal(next_us[2], T0_US + 20);
    OK(c, CATALOG(c)->read_next_fires(c->reader, ids, 0, next_us, &c->err));
}

const struct conformance_test conformance_plans_tests[] = {
    CONFORMANCE_TEST(d1_a_schedule_comes_back_as_it_was_put),
    CONFORMANCE_TEST(d6_a_pattern_comes_back_as_it_was_put),
    CONFORMANCE_TEST(d4_due_ones_come_earliest_first_and_the_rest_says_when),
    CONFORMANCE_TEST(d4_schedules_of_deleted_jobs_are_never_due),
    CONFORMANCE_TEST(d4_among_ten_thousand_schedules_only_due_ones_are_given),
    CONFORMANCE_TEST(d4_a_schedule_goes_on_only_from_where_it_stood),
    CONFORMANCE_TEST(d6_patterns_are_due_and_go_on_like_schedules),
    CONFORMANCE_TEST(f_c9_all_are_seen_once_by_going_through_them_page_by_page),
    CONFORMANCE_TEST(d4_a_planned_instant_is_taken_once),
    CONFORMANCE_TEST(d4_old_fires_are_removed_some_at_a_time),
    CONFORMANCE_TEST(d1_lists_of_schedules_keep_to_their_filters),
    CONFORMANCE_TEST(d6_lists_of_patterns_keep_to_their_filters),
    CONFORMANCE_TEST(d1_the_next_instant_of_a_job_is_the_earliest_of_all_that_plan_it),
    CONFORMANCE_END,
};
