/* Conformance: what readers list. Pages by cursor are complete and without duplicates, every filter
 * finds exactly what fits, alone and together with others (A10). */
#include "conformance.h"
#include "core/queue_name.h"

#include <stdlib.h>

#define TASKS 240

static const enum status statuses[] = {STATUS_PENDING,   STATUS_DELAYED,  STATUS_CLAIMED,
                                       STATUS_RUNNING,   STATUS_BLOCKED,  STATUS_COMPLETED,
                                       STATUS_CANCELLED, STATUS_PENDING};

struct world {
    struct task *tasks[TASKS];
    struct uuid job, schedule, parent;
};

/* Every feature has a period of its own, so that all combinations occur. */
static struct task *given_varied(struct conformance *c, struct world *world, int i)
{
    struct task *task = given_task(c, i % 3 ? "q0" : "q1", i % 2 ? "t0" : "t1");

    task->spec.created_at_us = T0_US + i * SECOND_US;
    if (i % 11 == 10) {
        task->spec.namespace_name = STR("other");
        task->spec.queue = queue_name_full(STR("other"), task->spec.queue, &c->arena);
    }
    task->spec.tags = i % 5 == 0 ? STR("[\"red\",\"big\"]") : i % 5 == 1 ? STR("[\"red\"]")
                                                                         : STR_NONE;
    task->spec.user_id = i % 4 == 0 ? STR("u0") : i % 4 == 1 ? STR("u1") : STR_NONE;
    task->spec.context_key = i % 6 == 0 ? STR("ctx") : STR_NONE;
    task->spec.workflow_id = i % 7 == 0 ? STR("flow") : STR_NONE;
    task->spec.correlation_id = i % 8 == 0 ? STR("cor") : STR_NONE;
    task->spec.external_id = i % 9 == 0 ? text_of(c, "x%d", i) : STR_NONE;
    if (i % 10 == 0)
        task->spec.origin.job_id = world->job;
    if (i % 12 == 0)
        task->spec.origin.schedule_id = world->schedule;
    if (i % 13 == 0)
        task->spec.origin.parent_id = world->parent;
    task->status = statuses[i % 8];
    if (task->status == STATUS_PENDING && i % 16 > 8) {
        task->parked = true;
        task->spec.limit_key = STR("k");
    }
    if (status_held(task->status)) {
        enum status held = task->status;

        claim_task(task, "w");
        task->status = held;
    }
    insert_task(c, task);
    if (task->spec.external_id.data) {
        struct unique unique = {UNIQUE_EXTERNAL, task->spec.namespace_name, STR(""),
                                task->spec.external_id, task->key, {{0}}};

        OK(c, c->verbs->uniques_reserve(c->store, &unique, 1, &c->err));
    }
    return task;
}

static struct world *given_world(struct conformance *c)
{
    struct world *world = arena_alloc(&c->arena, sizeof *world);

    world->job = uuid7_new(&c->ids, T0_US);
    world->schedule = uuid7_new(&c->ids, T0_US);
    world->parent = uuid7_new(&c->ids, T0_US);
    store_begin(c);
    for (int i = 0; i < TASKS; i++)
        world->tasks[i] = given_varied(c, world, i);
    store_commit(c);
    return world;
}

static bool text_fits(struct str wanted, struct str has)
{
    return !wanted.data || (has.data && str_eq(wanted, has));
}

static bool id_fits(const struct uuid *wanted, const struct uuid *has)
{
    return uuid_is_nil(wanted) || uuid_eq(wanted, has);
}

static bool fits(const struct task_filter *filter, const struct task *task)
{
    const struct task_spec *spec = &task->spec;
    char quoted[64];

    snprintf(quoted, sizeof quoted, "\"%.*s\"", STR_ARG(filter->tag));
    return text_fits(filter->namespace_name, spec->namespace_name) &&
           (filter->status == STATUS_NONE || filter->status == task->status) &&
           text_fits(filter->type, spec->type) && text_fits(filter->queue, queue_name_plain(spec->queue)) &&
           (!filter->tag.data || (spec->tags.data && strstr(spec->tags.data, quoted))) &&
           text_fits(filter->user_id, spec->user_id) &&
           text_fits(filter->external_id, spec->external_id) &&
           text_fits(filter->context_key, spec->context_key) &&
           text_fits(filter->workflow_id, spec->workflow_id) &&
           text_fits(filter->correlation_id, spec->correlation_id) &&
           id_fits(&filter->job_id, &spec->origin.job_id) &&
           id_fits(&filter->schedule_id, &spec->origin.schedule_id) &&
           id_fits(&filter->parent_id, &spec->origin.parent_id) &&
           (!filter->created_after_us || spec->created_at_us >= filter->created_after_us) &&
           (!filter->created_before_us || spec->created_at_us < filter->created_before_us);
}

/* The next task of the world that fits, from *at on in the order of the filter; NULL behind the last. */
static const struct task *next_fitting(const struct world *world, const struct task_filter *filter,
                                       int *at)
{
    while (*at < TASKS) {
        const struct task *task =
            world->tasks[filter->oldest_first ? *at : TASKS - 1 - *at];

        (*at)++;
        if (fits(filter, task))
            return task;
    }
    return NULL;
}

/* All pages of the filter against what is known of the world. */
static uint32_t then_lists_in_order(struct conformance *c, const struct world *world,
                                    struct task_filter filter)
{
    struct task *found;
    int at = 0;
    uint32_t count, all = 0;

    do {
        OK(c, c->verbs->read_tasks(c->reader, &filter, &c->arena, &found, &count, &c->err));
        assert_true(count <= filter.limit);
        for (uint32_t i = 0; i < count; i++, all++) {
            const struct task *task = next_fitting(world, &filter, &at);

            assert_non_null(task);
            assert_int_equal(found[i].key, task->key);
            assert_true(found[i].has_spec && found[i].has_data);
            filter.before_key = found[i].key;
        }
    } while (count == filter.limit);
    assert_null(next_fitting(world, &filter, &at));
    return all;
}

/* The newest first, then the oldest. */
static uint32_t then_lists(struct conformance *c, const struct world *world,
                           struct task_filter filter)
{
    uint32_t all = then_lists_in_order(c, world, filter);

    filter.oldest_first = true;
    assert_int_equal(then_lists_in_order(c, world, filter), all);
    return all;
}

/* The i-th single filter, set in `filter`; false when there is none. */
static bool set_filter(const struct world *world, int i, struct task_filter *filter)
{
    switch (i) {
    case 0: filter->namespace_name = STR("default"); return true;
    case 1: filter->status = STATUS_PENDING; return true;
    case 2: filter->type = STR("t0"); return true;
    case 3: filter->queue = STR("q1"); return true;
    case 4: filter->tag = STR("red"); return true;
    case 5: filter->user_id = STR("u0"); return true;
    case 6: filter->external_id = STR("x9"); return true;
    case 7: filter->context_key = STR("ctx"); return true;
    case 8: filter->workflow_id = STR("flow"); return true;
    case 9: filter->correlation_id = STR("cor"); return true;
    case 10: filter->job_id = world->job; return true;
    case 11: filter->schedule_id = world->schedule; return true;
    case 12: filter->parent_id = world->parent; return true;
    case 13: filter->created_after_us = T0_US + 40 * SECOND_US; return true;
    case 14: filter->created_before_us = T0_US + 200 * SECOND_US; return true;
    default: return false;
    }
}

static void every_filter_alone_and_in_pairs_lists_what_fits(void **state)
{
    struct conformance *c = *state;
    const struct world *world = given_world(c);
    struct task_filter none = {.limit = 50};

    assert_int_equal(then_lists(c, world, none), TASKS);
    for (int i = 0; i < 15; i++)
        for (int k = i; k < 15; k++) {
            struct task_filter filter = {.limit = 50};

            assert_true(set_filter(world, i, &filter));
            assert_true(set_filter(world, k, &filter));
            then_lists(c, world, filter);
        }
}

static void every_status_is_listed_with_and_without_lane(void **state)
{
    struct conformance *c = *state;
    const struct world *world = given_world(c);

    for (int status = STATUS_BLOCKED; status < STATUS_COUNT; status++)
        for (int lane = 0; lane < 4; lane++) {
            struct task_filter filter = {.status = (enum status)status, .limit = 7,
                                         .queue = lane & 1 ? STR("q0") : STR_NONE,
                                         .type = lane & 2 ? STR("t1") : STR_NONE};

            then_lists(c, world, filter);
        }
}

static void random_filters_list_what_fits(void **state)
{
    struct conformance *c = *state;
    const struct world *world = given_world(c);
    unsigned seed = 20260101;
    uint32_t found = 0;

    for (int turn = 0; turn < 300; turn++) {
        struct task_filter filter = {.limit = (uint32_t)(rand_r(&seed) % 40 + 1)};

        for (int i = 0; i < 15; i++)
            if (rand_r(&seed) % 5 == 0)
                set_filter(world, i, &filter);
        if (filter.status)
            filter.status = statuses[rand_r(&seed) % 8];
        found += then_lists(c, world, filter);
    }
    assert_true(found > 1000); /* the filters are not all empty */
}

static void a_filter_on_what_is_not_there_lists_nothing(void **state)
{
    struct conformance *c = *state;
    const struct world *world = given_world(c);
    struct task_filter filters[] = {{.queue = STR("none")},        {.type = STR("none")},
                                    {.tag = STR("re")},            {.user_id = STR("")},
                                    {.namespace_name = STR("no")}, {.external_id = STR("x")},
                                    {.status = STATUS_PAUSED},     {.created_after_us = T0_US * 2},
                                    {.created_before_us = T0_US}};

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        filters[i].limit = 10;
        assert_int_equal(then_lists(c, world, filters[i]), 0);
    }
}

/* A10: events, executions, checkpoints of one task, page by page. */
static void pages_of_a_task_are_complete(void **state)
{
    struct conformance *c = *state;
    struct task *task = given_task(c, "q", "t");
    int64_t before = 0;
    uint32_t count, all = 0;

    task->event_seq = 0;
    store_begin(c);
    for (int i = 0; i < 130; i++) {
        struct task_event event = {.id = uuid7_new(&c->ids, T0_US), .task_key = task->key,
                                   .seq = ++task->event_seq, .status = STATUS_PENDING,
                                   .created_at_us = T0_US};
        struct execution execution;

        OK(c, c->verbs->events_insert(c->store, &event, 1, &c->err));
        task->event_seq++;
        task->counts.attempts++;
        task->lease.token++;
        execution = given_execution(c, task, T0_US + i);
        OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
    }
    insert_task(c, task);
    store_commit(c);
    do {
        struct task_event *events;

        OK(c, c->verbs->read_events(c->reader, &task->id, before, 100, &c->arena, &events, &count,
                                    &c->err));
        for (uint32_t i = 0; i < count; i++, all++)
            assert_int_equal(events[i].seq, 260 - all);
        before = count ? events[count - 1].seq : 0;
    } while (count == 100);
    assert_int_equal(all, 260);
    before = 0;
    all = 0;
    do {
        struct execution *executions;

        OK(c, c->verbs->read_executions(c->reader, &task->id, before, 50, &c->arena, &executions,
                                        &count, &c->err));
        for (uint32_t i = 0; i < count; i++, all++) {
            assert_int_equal(executions[i].attempt_number, 130 - all);
            before = executions[i].key;
        }
    } while (count == 50);
    assert_int_equal(all, 130);
}

static struct task *given_logs(struct conformance *c, uint32_t runs, uint32_t lines)
{
    struct task *task = given_ready(c, "q", "t", 1);

    for (uint32_t run = 0; run < runs; run++) {
        struct execution execution = given_execution(c, task, T0_US + run);

        execution.attempt_number = run + 1;
        OK(c, c->verbs->executions_insert(c->store, &execution, 1, &c->err));
        for (uint32_t i = 0; i < lines; i++) {
            struct log_entry entry = {.id = uuid7_new(&c->ids, T0_US),
                                      .execution_id = execution.id,
                                      .level = (enum log_severity)(i % SEVERITY_COUNT),
                                      .message = text_of(c, "run %u line %u end", run, i),
                                      .logged_at_us = T0_US + run * 1000 + i};

            OK(c, c->verbs->logs_insert(c->store, &entry, 1, &c->err));
        }
    }
    return task;
}

static uint32_t count_logs(struct conformance *c, const struct task *task,
                           struct log_filter filter)
{
    struct log_entry *entries;
    int64_t run = 0, seq = 0;
    uint32_t count, all = 0;

    do {
        OK(c, c->verbs->read_logs(c->reader, &task->id, &filter, &c->arena, &entries, &count,
                                  &c->err));
        for (uint32_t i = 0; i < count; i++, all++) {
            assert_true(entries[i].attempt_number > run ||
                        (entries[i].attempt_number == run && entries[i].seq > seq));
            assert_true(entries[i].level >= filter.level_min);
            run = entries[i].attempt_number;
            seq = entries[i].seq;
            filter.after_execution = entries[i].execution_id;
            filter.after_seq = seq;
        }
    } while (count == filter.limit);
    return all;
}

static void given_many_logs(struct conformance *c, const struct execution *execution,
                            uint32_t lines)
{
    struct log_entry some[100];

    for (uint32_t i = 0; i < lines; i++) {
        some[i % 100] = (struct log_entry){.id = uuid7_new(&c->ids, T0_US),
                                           .execution_id = execution->id,
                                           .level = SEVERITY_INFO,
                                           .message = i % 500 == 7 ? STR("a needle") : STR("hay"),
                                           .logged_at_us = T0_US + i};
        if (i % 100 == 99)
            OK(c, c->verbs->logs_insert(c->store, some, 100, &c->err));
    }
}

/* As a caller that continues where a look gave up. */
static uint32_t count_in_looks(struct conformance *c, const struct task *task,
                               const struct execution *execution, struct log_filter filter,
                               uint32_t *looks)
{
    struct log_entry *entries;
    struct log_stop stop;
    uint32_t count, all = 0;

    *looks = 0;
    filter.stop = &stop;
    do {
        stop.early = false;
        if (execution)
            OK(c, c->verbs->catalog->read_execution_logs(c->reader, &execution->id, &filter,
                                                         &c->arena, &entries, &count, &c->err));
        else
            OK(c, c->verbs->read_logs(c->reader, &task->id, &filter, &c->arena, &entries, &count,
                                      &c->err));
        for (uint32_t i = 0; i < count; i++)
            then_str(entries[i].message, STR("a needle"));
        all += count;
        filter.after_execution = count == filter.limit ? entries[count - 1].execution_id
                                                       : stop.execution_id;
        filter.after_seq = count == filter.limit ? entries[count - 1].seq : stop.seq;
        ++*looks;
    } while (stop.early || count == filter.limit);
    return all;
}

/* B5: a look for few lines among many gives up in time and continues where it was. */
static void a_look_for_log_lines_gives_up_in_time_and_misses_none(void **state)
{
    struct conformance *c = *state;
    struct log_filter filter = {.limit = 100, .text = STR("needle"), .look_until_us = 1};
    const atomic_bool cancelled = true;
    struct execution executions[2];
    struct task *task;
    uint32_t looks;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    for (int i = 0; i < 2; i++) {
        executions[i] = given_execution(c, task, T0_US + i);
        executions[i].attempt_number = i + 1;
        OK(c, c->verbs->executions_insert(c->store, &executions[i], 1, &c->err));
        given_many_logs(c, &executions[i], 2500);
    }
    store_commit(c);
    assert_int_equal(count_in_looks(c, task, NULL, filter, &looks), 10);
    assert_in_range(looks, 2, 5000);
    assert_int_equal(count_in_looks(c, task, &executions[1], filter, &looks), 5);
    assert_in_range(looks, 2, 2500);
    filter.limit = 3;
    assert_int_equal(count_in_looks(c, task, NULL, filter, &looks), 10);
    filter.look_until_us = 0;
    filter.cancelled = &cancelled;
    assert_int_equal(count_in_looks(c, task, NULL, filter, &looks), 10);
    filter.cancelled = NULL;
    assert_int_equal(count_in_looks(c, task, NULL, filter, &looks), 10);
    assert_in_range(looks, 4, 5); /* pages of three */
}

static void logs_are_filtered_and_paged_over_runs(void **state)
{
    struct conformance *c = *state;
    struct task *task;

    store_begin(c);
    task = given_logs(c, 5, 20);
    store_commit(c);
    for (uint32_t limit = 1; limit < 200; limit += 19) {
        assert_int_equal(count_logs(c, task, (struct log_filter){.limit = limit}), 100);
        assert_int_equal(count_logs(c, task, (struct log_filter){.limit = limit,
                                                                 .level_min = SEVERITY_ERROR}),
                         40);
        assert_int_equal(count_logs(c, task, (struct log_filter){.limit = limit,
                                                                 .text = STR("line 1 end")}), 5);
        assert_int_equal(count_logs(c, task, (struct log_filter){.limit = limit,
                                                                 .after_us = T0_US + 1000,
                                                                 .before_us = T0_US + 2010}), 30);
        assert_int_equal(count_logs(c, task, (struct log_filter){.limit = limit,
                                                                 .text = STR("100%")}), 0);
    }
}

static void dependencies_and_dependents_of_a_task_are_read(void **state)
{
    struct conformance *c = *state;
    struct task *task, *parents[3];
    struct task_dependency given[3], *found;
    uint32_t count;

    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    for (int i = 0; i < 3; i++) {
        parents[i] = given_ready(c, "q", "t", 1);
        given[i] = (struct task_dependency){.task_id = parents[i]->id, .kind = (enum dependency)i};
    }
    OK(c, c->verbs->dependencies_insert(c->store, &task->id, given, 3, &c->err));
    store_commit(c);
    OK(c, c->verbs->read_dependencies(c->reader, &task->id, &c->arena, &found, &count, &c->err));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        then_id(found[i].task_id, given[i].task_id);
        assert_int_equal(found[i].kind, given[i].kind);
    }
    OK(c, c->verbs->read_dependencies(c->reader, &parents[0]->id, &c->arena, &found, &count,
                                      &c->err));
    assert_int_equal(count, 0);
    for (int i = 0; i < 3; i++) {
        OK(c, c->verbs->read_dependents(c->reader, &parents[i]->id, &c->arena, &found, &count,
                                        &c->err));
        assert_int_equal(count, 1);
        then_id(found[0].task_id, task->id);
        assert_int_equal(found[0].kind, given[i].kind);
    }
    OK(c, c->verbs->read_dependents(c->reader, &task->id, &c->arena, &found, &count, &c->err));
    assert_int_equal(count, 0);
}

static void two_readers_see_the_same_committed_state(void **state)
{
    struct conformance *c = *state;
    struct store_reader *second = c->verbs->reader_open(c->store, &c->err);
    struct task *task, *found;

    assert_non_null(second);
    store_begin(c);
    task = given_ready(c, "q", "t", 1);
    store_commit(c);
    store_begin(c);
    task->state = STR("changed");
    save_task(c, task);
    OK(c, c->verbs->read_task(second, &task->id, &c->arena, &found, &c->err));
    then_str(found->state, STR("Queued"));
    store_commit(c);
    OK(c, c->verbs->read_task(second, &task->id, &c->arena, &found, &c->err));
    then_str(found->state, STR("changed"));
    then_str(read_task(c, &task->id)->state, STR("changed"));
    c->verbs->reader_close(second);
}

const struct conformance_test conformance_read_tests[] = {
    CONFORMANCE_TEST(every_filter_alone_and_in_pairs_lists_what_fits),
    CONFORMANCE_TEST(every_status_is_listed_with_and_without_lane),
    CONFORMANCE_TEST(random_filters_list_what_fits),
    CONFORMANCE_TEST(a_filter_on_what_is_not_there_lists_nothing),
    CONFORMANCE_TEST(pages_of_a_task_are_complete),
    CONFORMANCE_TEST(logs_are_filtered_and_paged_over_runs),
    CONFORMANCE_TEST(a_look_for_log_lines_gives_up_in_time_and_misses_none),
    CONFORMANCE_TEST(dependencies_and_dependents_of_a_task_are_read),
    CONFORMANCE_TEST(two_readers_see_the_same_committed_state), CONFORMANCE_END};
