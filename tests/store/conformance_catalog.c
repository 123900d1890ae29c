/* Conformance: categories, jobs and what jobs depend on (D1, D5, D7, F-H11): what is put comes back,
 * what is in use stays, what belongs to a job goes with it, and lists keep to their filters. */
#include "conformance.h"

#include "base/json.h"

struct str member_of(struct str json, const char *name)
{
    return json_get(json, str_of(name));
}

struct category *given_category(struct conformance *c, const char *name)
{
    struct category *category = arena_alloc(&c->arena, sizeof *category);

    assert_non_null(category);
    *category = (struct category){.id = uuid7_new(&c->ids, T0_US),
                                  .namespace_name = STR("default"),
                                  .name = str_of(name),
                                  .default_priority = 10,
                                  .default_timeout_s = 60,
                                  .default_max_retries = 2,
                                  .configuration = STR("{\"queue\": \"q\"}"),
                                  .is_active = true,
                                  .created_at_us = T0_US,
                                  .updated_at_us = T0_US};
    OK(c, CATALOG(c)->category_put(c->store, category, &c->err));
    return category;
}

struct job *given_job(struct conformance *c, const char *name)
{
    struct job *job = arena_alloc(&c->arena, sizeof *job);

    assert_non_null(job);
    *job = (struct job){.id = uuid7_new(&c->ids, T0_US),
                        .namespace_name = STR("default"),
                        .name = str_of(name),
                        .is_active = true,
                        .created_at_us = T0_US,
                        .updated_at_us = T0_US};
    OK(c, CATALOG(c)->job_put(c->store, job, &c->err));
    return job;
}

struct schedule *given_schedule(struct conformance *c, const struct job *job, int64_t next_us)
{
    struct schedule *schedule = arena_alloc(&c->arena, sizeof *schedule);

    assert_non_null(schedule);
    *schedule = (struct schedule){.id = uuid7_new(&c->ids, T0_US),
                                  .namespace_name = STR("default"),
                                  .job_id = job->id,
                                  .type = SCHEDULE_INTERVAL,
                                  .interval_s = 60,
                                  .timezone = STR("UTC"),
                                  .is_active = true,
                                  .misfire = MISFIRE_FIRE_ONCE,
                                  .misfire_grace_ms = SCHEDULE_DEFAULT_GRACE_MS,
                                  .misfire_cap = SCHEDULE_DEFAULT_CAP,
                                  .next_fire_at_us = next_us,
                                  .created_at_us = T0_US,
                                  .updated_at_us = T0_US};
    OK(c, CATALOG(c)->schedule_put(c->store, schedule, &c->err));
    return schedule;
}

struct recurring *given_recurring(struct conformance *c, const struct job *job, int64_t next_us)
{
    struct recurring *recurring = arena_alloc(&c->arena, sizeof *recurring);

    assert_non_null(recurring);
    *recurring = (struct recurring){.id = uuid7_new(&c->ids, T0_US),
                                    .namespace_name = STR("default"),
                                    .name = STR("pattern"),
                                    .type = RECURRENCE_DAILY,
                                    .pattern_config = STR("{\"time\": \"09:00\"}"),
                                    .template_job_id = job->id,
                                    .next_generation_us = next_us,
                                    .is_active = true,
                                    .created_at_us = T0_US,
                                    .updated_at_us = T0_US};
    OK(c, CATALOG(c)->recurring_put(c->store, recurring, &c->err));
    return recurring;
}

struct job_dependency *given_dependency(struct conformance *c, const struct job *job,
                                        const struct job *depends_on, enum dependency kind)
{
    struct job_dependency *dependency = arena_alloc(&c->arena, sizeof *dependency);

    assert_non_null(dependency);
    *dependency = (struct job_dependency){.id = uuid7_new(&c->ids, T0_US),
                                          .namespace_name = STR("default"),
                                          .job_id = job->id,
                                          .depends_on_job_id = depends_on->id,
                                          .kind = kind,
                                          .config = STR("{}"),
                                          .created_at_us = T0_US};
    OK(c, CATALOG(c)->dependency_put(c->store, dependency, &c->err));
    return dependency;
}

struct job *load_job(struct conformance *c, const struct uuid *id)
{
    struct job *job = NULL;

    OK(c, CATALOG(c)->jobs_load(c->store, id, 1, false, &c->arena, &job, &c->err));
    return job;
}

static struct category *read_category(struct conformance *c, const struct uuid *id)
{
    struct category *category = NULL;

    OK(c, CATALOG(c)->read_category(c->reader, id, &c->arena, &category, &c->err));
    return category;
}

static const struct category *category_named(struct conformance *c, const char *name)
{
    struct category *categories;
    uint32_t count = 0;

    OK(c, CATALOG(c)->categories_load(c->store, &c->arena, &categories, &count, &c->err));
    for (uint32_t i = 0; i < count; i++)
        if (str_is(categories[i].name, name))
            return &categories[i];
    return NULL;
}

/* D5: the figures of the first rows. */
static void d5_a_new_store_has_the_first_categories(void **state)
{
    static const struct {
        const char *name, *queue;
        int64_t priority, timeout_s, max_retries;
    } wanted[] = {{"general", "default", 0, 300, 3},
                  {"messaging", "high-priority", 10, 30, 3},
                  {"notifications", "high-priority", 10, 15, 5},
                  {"maintenance", "medium-priority", 0, 600, 2},
                  {"cleanup", "low-priority", -10, 300, 2},
                  {"reports", "medium-priority", 0, 120, 1},
                  {"analytics", "low-priority", -10, 300, 1}};
    struct conformance *c = *state;
    struct category *categories;
    uint32_t count = 0;

    OK(c, CATALOG(c)->categories_load(c->store, &c->arena, &categories, &count, &c->err));
    assert_int_equal(count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct category *category = category_named(c, wanted[i].name);
        struct category_rules rules;

        assert_non_null(category);
        OK(c, category_rules_read(category->configuration, &c->arena, &rules, &c->err));
        then_str(rules.queue, str_of(wanted[i].queue));
        assert_int_equal(category->default_priority, wanted[i].priority);
        assert_int_equal(category->default_timeout_s, wanted[i].timeout_s);
        assert_int_equal(category->default_max_retries, wanted[i].max_retries);
        assert_true(category->is_active);
        assert_true(category->created_at_us > 0);
    }
    then_str(category_named(c, "analytics")->description, STR("Tasks of analytics"));
    then_str(member_of(category_named(c, "maintenance")->configuration, "allowed_windows"),
             STR("[\"02:00-06:00\"]"));
}

static void d1_a_category_comes_back_as_it_was_put(void **state)
{
    struct conformance *c = *state;
    struct category *category, *read;

    store_begin(c);
    category = given_category(c, "mine");
    category->description = STR("what it is for: 'é'");
    category->default_priority = 7; /* no word for it */
    category->configuration = STR("{\"batch_size\": 5}");
    category->is_active = false;
    category->updated_at_us = T0_US + 1;
    OK(c, CATALOG(c)->category_put(c->store, category, &c->err));
    store_commit(c);
    read = read_category(c, &category->id);
    assert_non_null(read);
    then_str(read->namespace_name, category->namespace_name);
    then_str(read->name, category->name);
    then_str(read->description, category->description);
    assert_int_equal(read->default_priority, 7);
    assert_int_equal(read->default_timeout_s, 60);
    assert_int_equal(read->default_max_retries, 2);
    then_str(member_of(read->configuration, "batch_size"), STR("5"));
    assert_false(read->is_active);
    assert_int_equal(read->created_at_us, T0_US);
    assert_int_equal(read->updated_at_us, T0_US + 1);
    assert_null(read_category(c, &(struct uuid){{1}}));
}

/* A refusal: the transaction continues. */
static void d1_two_categories_cannot_have_one_name(void **state)
{
    struct conformance *c = *state;
    struct category *first, *second;

    store_begin(c);
    first = given_category(c, "one");
    second = given_category(c, "two");
    second->name = STR("one");
    assert_int_equal(CATALOG(c)->category_put(c->store, second, &c->err), -ERR_CONFLICT);
    first->description = STR("its own name is no other");
    OK(c, CATALOG(c)->category_put(c->store, first, &c->err));
    store_commit(c);
    then_str(read_category(c, &second->id)->name, STR("two"));
}

static void d1_a_category_stays_while_a_job_uses_it(void **state)
{
    struct conformance *c = *state;
    struct category *category;
    struct job *job;

    store_begin(c);
    category = given_category(c, "used");
    job = given_job(c, "a");
    job->category_id = category->id;
    OK(c, CATALOG(c)->job_put(c->store, job, &c->err));
    assert_int_equal(CATALOG(c)->category_delete(c->store, &category->id, &c->err),
                     -ERR_CONFLICT);
    store_commit(c);
    assert_non_null(read_category(c, &category->id));
    store_begin(c);
    OK(c, CATALOG(c)->job_delete(c->store, &job->id, T0_US + 1, &c->err));
    OK(c, CATALOG(c)->category_delete(c->store, &category->id, &c->err));
    assert_int_equal(CATALOG(c)->category_delete(c->store, &category->id, &c->err),
                     -ERR_NOT_FOUND);
    store_commit(c);
    assert_null(read_category(c, &category->id));
    assert_true(uuid_is_nil(&load_job(c, &job->id)->category_id));
    assert_int_equal(verify_findings(c), 0);
}

static void then_same_job(const struct job *a, const struct job *b)
{
    then_id(a->id, b->id);
    then_str(a->namespace_name, b->namespace_name);
    then_str(a->name, b->name);
    then_str(a->description, b->description);
    then_id(a->category_id, b->category_id);
    then_str(a->task_type, b->task_type);
    then_str(a->queue, b->queue);
    then_str(a->target_service, b->target_service);
    then_str(a->target_method, b->target_method);
    then_str(a->payload, b->payload);
    assert_int_equal(a->has_priority, b->has_priority);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->has_max_retries, b->has_max_retries);
    assert_int_equal(a->max_retries, b->max_retries);
    assert_int_equal(a->has_timeout, b->has_timeout);
    assert_int_equal(a->timeout_s, b->timeout_s);
    assert_int_equal(a->max_concurrent, b->max_concurrent);
    then_str(a->callback_url, b->callback_url);
    then_str(a->callback_events, b->callback_events);
    assert_int_equal(a->is_active, b->is_active);
    then_str(a->created_by, b->created_by);
    assert_int_equal(a->created_at_us, b->created_at_us);
    assert_int_equal(a->updated_at_us, b->updated_at_us);
    assert_int_equal(a->deleted_at_us, b->deleted_at_us);
}

static struct job *read_job(struct conformance *c, const struct uuid *id)
{
    struct job *job = NULL;

    OK(c, CATALOG(c)->read_job(c->reader, id, &c->arena, &job, &c->err));
    return job;
}

static void d1_a_job_comes_back_as_it_was_put(void **state)
{
    struct conformance *c = *state;
    struct job *bare, *full;

    store_begin(c);
    bare = given_job(c, "bare");
    full = given_job(c, "full");
    full->description = STR("all of it");
    full->category_id = category_named(c, "reports")->id;
    full->task_type = STR("t");
    full->queue = STR("q");
    full->target_service = STR("s");
    full->target_method = STR("m");
    full->payload = STR("{\"b\" : 1, \"a\":\"\\u00e9\"}"); /* byte for byte */
    full->has_priority = full->has_max_retries = full->has_timeout = true;
    full->priority = 20;
    full->timeout_s = 9;
    full->max_concurrent = 3;
    full->callback_url = STR("https://example.test/");
    full->callback_events = STR("[\"failed\"]");
    full->is_active = false;
    full->created_by = STR("ada");
    full->updated_at_us = T0_US + 5;
    OK(c, CATALOG(c)->job_put(c->store, full, &c->err));
    store_commit(c);
    store_reopen(c);
    then_same_job(read_job(c, &bare->id), bare);
    then_same_job(read_job(c, &full->id), full);
    then_same_job(load_job(c, &full->id), full);
    assert_null(load_job(c, &(struct uuid){{1}}));
}

static void d7_how_the_last_run_ended_is_kept_apart_from_edits(void **state)
{
    struct conformance *c = *state;
    struct job *job, *read;

    store_begin(c);
    job = given_job(c, "a");
    assert_int_equal(load_job(c, &job->id)->last_status, STATUS_NONE);
    job->last_task_id = uuid7_new(&c->ids, T0_US);
    job->last_status = STATUS_DEAD_LETTER;
    job->last_ended_at_us = T0_US + 3;
    OK(c, CATALOG(c)->job_ended(c->store, job, &c->err));
    job->last_status = STATUS_NONE; /* an edit knows nothing of it */
    job->last_ended_at_us = 0;
    job->name = STR("b");
    OK(c, CATALOG(c)->job_put(c->store, job, &c->err));
    store_commit(c);
    read = read_job(c, &job->id);
    then_str(read->name, STR("b"));
    then_id(read->last_task_id, job->last_task_id);
    assert_int_equal(read->last_status, STATUS_DEAD_LETTER);
    assert_int_equal(read->last_ended_at_us, T0_US + 3);
}

static uint32_t list_jobs(struct conformance *c, struct catalog_filter filter, struct job **jobs)
{
    uint32_t count = 0;

    OK(c, CATALOG(c)->read_jobs(c->reader, &filter, &c->arena, jobs, &count, &c->err));
    return count;
}

static void d1_a_deleted_job_takes_its_schedules_and_dependencies_along(void **state)
{
    struct conformance *c = *state;
    struct job *first, *second, *third, *jobs;
    struct job_dependency *dependencies;
    struct schedule *schedules;
    uint32_t count = 0;

    store_begin(c);
    first = given_job(c, "first");
    second = given_job(c, "second");
    third = given_job(c, "third");
    given_schedule(c, first, T0_US);
    given_schedule(c, second, T0_US);
    given_dependency(c, first, second, DEPENDENCY_SUCCESS);
    given_dependency(c, third, first, DEPENDENCY_FAILURE);
    given_dependency(c, third, second, DEPENDENCY_COMPLETION);
    OK(c, CATALOG(c)->job_delete(c->store, &first->id, T0_US + 9, &c->err));
    assert_int_equal(CATALOG(c)->job_delete(c->store, &first->id, T0_US + 10, &c->err),
                     -ERR_NOT_FOUND);
    store_commit(c);
    assert_int_equal(load_job(c, &first->id)->deleted_at_us, T0_US + 9);
    assert_int_equal(load_job(c, &first->id)->updated_at_us, T0_US + 9);
    OK(c, CATALOG(c)->schedules_scan(c->store, NULL, 10, &c->arena, &schedules, &count, &c->err));
    assert_int_equal(count, 1);
    then_id(schedules[0].job_id, second->id);
    OK(c, CATALOG(c)->dependencies_load(c->store, &c->arena, &dependencies, &count, &c->err));
    assert_int_equal(count, 1);
    then_id(dependencies[0].depends_on_job_id, second->id);
    assert_int_equal(dependencies[0].kind, DEPENDENCY_COMPLETION);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1}, &jobs), 2);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1, .with_deleted = true},
                               &jobs), 3);
}

static void d1_d6_a_template_stays_while_a_pattern_uses_it(void **state)
{
    struct conformance *c = *state;
    struct recurring *recurring;
    struct job *job;

    store_begin(c);
    job = given_job(c, "template");
    recurring = given_recurring(c, job, T0_US);
    given_schedule(c, job, T0_US);
    assert_int_equal(CATALOG(c)->job_delete(c->store, &job->id, T0_US, &c->err), -ERR_CONFLICT);
    OK(c, CATALOG(c)->recurring_delete(c->store, &recurring->id, &c->err));
    assert_int_equal(CATALOG(c)->recurring_delete(c->store, &recurring->id, &c->err),
                     -ERR_NOT_FOUND);
    OK(c, CATALOG(c)->job_delete(c->store, &job->id, T0_US, &c->err));
    store_commit(c);
}

static void d1_lists_of_jobs_keep_to_their_filters_and_go_on_where_they_ended(void **state)
{
    struct conformance *c = *state;
    const struct category *reports = category_named(c, "reports");
    struct catalog_filter page = {.active = -1, .limit = 2};
    struct job *given[5], *jobs;

    store_begin(c);
    for (int i = 0; i < 5; i++) {
        given[i] = given_job(c, i % 2 ? "odd" : "even");
        given[i]->is_active = i < 2;
        given[i]->category_id = i == 3 ? reports->id : (struct uuid){{0}};
        OK(c, CATALOG(c)->job_put(c->store, given[i], &c->err));
    }
    store_commit(c);
    for (int i = 4; i >= 0; i -= 2) { /* newest first */
        uint32_t count = list_jobs(c, page, &jobs);

        assert_int_equal(count, i > 0 ? 2 : 1);
        then_id(jobs[0].id, given[i]->id);
        page.before_id = jobs[count - 1].id;
    }
    assert_int_equal(list_jobs(c, page, &jobs), 0);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = 1}, &jobs), 2);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = 0}, &jobs), 3);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1, .name = STR("odd")},
                               &jobs), 2);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1,
                                                          .category_id = reports->id}, &jobs), 1);
    then_id(jobs[0].id, given[3]->id);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1,
                                                          .namespace_name = STR("other")},
                               &jobs), 0);
    assert_int_equal(list_jobs(c, (struct catalog_filter){.active = -1, .name = STR("odd"),
                                                          .namespace_name = STR("default")},
                               &jobs), 2);
}

static void d1_lists_of_categories_keep_to_their_filters(void **state)
{
    struct conformance *c = *state;
    struct catalog_filter filter = {.active = -1, .name = STR("reports")};
    struct category *category, *categories;
    uint32_t count = 0;

    store_begin(c);
    category = given_category(c, "mine");
    category->is_active = false;
    OK(c, CATALOG(c)->category_put(c->store, category, &c->err));
    store_commit(c);
    OK(c, CATALOG(c)->read_categories(c->reader, &filter, &c->arena, &categories, &count,
                                      &c->err));
    assert_int_equal(count, 1);
    filter = (struct catalog_filter){.active = 0};
    OK(c, CATALOG(c)->read_categories(c->reader, &filter, &c->arena, &categories, &count,
                                      &c->err));
    assert_int_equal(count, 1);
    then_id(categories[0].id, category->id);
    filter = (struct catalog_filter){.active = -1, .limit = 3};
    OK(c, CATALOG(c)->read_categories(c->reader, &filter, &c->arena, &categories, &count,
                                      &c->err));
    assert_int_equal(count, 3);
    then_id(categories[0].id, category->id);
    filter.before_id = categories[2].id;
    filter.limit = 100;
    OK(c, CATALOG(c)->read_categories(c->reader, &filter, &c->arena, &categories, &count,
                                      &c->err));
    assert_int_equal(count, 5);
}

static uint32_t list_dependencies(struct conformance *c, const struct uuid *job_id,
                                  struct job_dependency **dependencies)
{
    struct catalog_filter filter = {.job_id = *job_id, .active = -1};
    uint32_t count = 0;

    OK(c, CATALOG(c)->read_dependencies(c->reader, &filter, &c->arena, dependencies, &count,
                                        &c->err));
    return count;
}

static void d7_dependencies_come_back_and_are_found_from_both_sides(void **state)
{
    struct conformance *c = *state;
    struct job_dependency *gate, *dependencies;
    struct job *a, *b, *d;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    d = given_job(c, "d");
    gate = given_dependency(c, a, b, DEPENDENCY_COMPLETION);
    gate->config = STR("{\"mode\": \"gate\", \"within_ms\": 5000}");
    OK(c, CATALOG(c)->dependency_put(c->store, gate, &c->err));
    given_dependency(c, a, b, DEPENDENCY_SUCCESS);
    given_dependency(c, d, a, DEPENDENCY_SUCCESS)->config = STR("{\"mode\": \"trigger\"}");
    store_commit(c);
    assert_int_equal(list_dependencies(c, &a->id, &dependencies), 3);
    assert_int_equal(list_dependencies(c, &d->id, &dependencies), 1);
    assert_int_equal(list_dependencies(c, &(struct uuid){{0}}, &dependencies), 3);
    assert_int_equal(list_dependencies(c, &b->id, &dependencies), 2);
    then_id(dependencies[1].id, gate->id);
    then_id(dependencies[1].job_id, a->id);
    then_id(dependencies[1].depends_on_job_id, b->id);
    assert_int_equal(dependencies[1].kind, DEPENDENCY_COMPLETION);
    assert_int_equal(dependencies[1].mode, DEPENDENCY_GATE);
    assert_int_equal(dependencies[1].within_ms, 5000);
    assert_int_equal(dependencies[1].created_at_us, T0_US);
}

static void d7_the_same_dependency_twice_is_refused(void **state)
{
    struct conformance *c = *state;
    struct job_dependency *first, again;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    first = given_dependency(c, a, b, DEPENDENCY_SUCCESS);
    again = *first;
    again.id = uuid7_new(&c->ids, T0_US);
    assert_int_equal(CATALOG(c)->dependency_put(c->store, &again, &c->err), -ERR_CONFLICT);
    again.kind = DEPENDENCY_FAILURE;
    OK(c, CATALOG(c)->dependency_put(c->store, &again, &c->err));
    OK(c, CATALOG(c)->dependency_delete(c->store, &first->id, &c->err));
    assert_int_equal(CATALOG(c)->dependency_delete(c->store, &first->id, &c->err),
                     -ERR_NOT_FOUND);
    store_commit(c);
    assert_int_equal(list_dependencies(c, &a->id, &first), 1);
}

static int64_t version_of(struct conformance *c)
{
    int64_t version = -1;

    OK(c, CATALOG(c)->version(c->store, &version, &c->err));
    return version;
}

static void f_h11_a_change_of_the_catalog_is_seen_in_its_version(void **state)
{
    struct conformance *c = *state;
    int64_t before = version_of(c);

    store_begin(c);
    OK(c, CATALOG(c)->lock(c->store, &c->err));
    store_commit(c);
    assert_int_equal(version_of(c), before + 1);
    store_begin(c);
    OK(c, CATALOG(c)->lock(c->store, &c->err));
    store_rollback(c);
    assert_int_equal(version_of(c), before + 1);
}

const struct conformance_test conformance_catalog_tests[] = {
    CONFORMANCE_TEST(d5_a_new_store_has_the_first_categories),
    CONFORMANCE_TEST(d1_a_category_comes_back_as_it_was_put),
    CONFORMANCE_TEST(d1_two_categories_cannot_have_one_name),
    CONFORMANCE_TEST(d1_a_category_stays_while_a_job_uses_it),
    CONFORMANCE_TEST(d1_a_job_comes_back_as_it_was_put),
    CONFORMANCE_TEST(d7_how_the_last_run_ended_is_kept_apart_from_edits),
    CONFORMANCE_TEST(d1_a_deleted_job_takes_its_schedules_and_dependencies_along),
    CONFORMANCE_TEST(d1_d6_a_template_stays_while_a_pattern_uses_it),
    CONFORMANCE_TEST(d1_lists_of_jobs_keep_to_their_filters_and_go_on_where_they_ended),
    CONFORMANCE_TEST(d1_lists_of_categories_keep_to_their_filters),
    CONFORMANCE_TEST(d7_dependencies_come_back_and_are_found_from_both_sides),
    CONFORMANCE_TEST(d7_the_same_dependency_twice_is_refused),
    CONFORMANCE_TEST(f_h11_a_change_of_the_catalog_is_seen_in_its_version),
    CONFORMANCE_END,
};
