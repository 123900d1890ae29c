/* Lists of tasks: whatever filters are given and whatever way they choose, the same tasks come back
 * as by looking at each task (A10, F-H20). */
#include "sqlite_fixture.h"
#include "core/queue_name.h"

#include "core/bounds.h"
#include "store/sqlite/sqlite_read.h"

#define TASKS_COUNT 3000
#define FILTERS_COUNT 3000
#define CLOCK_STEP_US 1000000 /* between two tasks */

struct table {
    struct task *tasks[TASKS_COUNT];
};

static uint32_t seed = 12345;

static uint32_t dice(uint32_t sides)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % sides;
}

static struct str numbered(struct fixture *fixture, const char *prefix, uint32_t number)
{
    return arena_format(&fixture->arena, "%s%u", prefix, number);
}

static struct uuid plain_id(uint32_t number)
{
    struct uuid id = {{7, 7, 7, 7, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}};

    id.bytes[15] = (uint8_t)(number + 1);
    return id;
}

static void give_status(struct task *task, uint32_t roll)
{
    static const enum status often[] = {STATUS_COMPLETED, STATUS_COMPLETED, STATUS_PENDING,
                                        STATUS_DELAYED, STATUS_RUNNING};

    task->status = roll < 90 ? often[roll % 5] : (enum status)(1 + roll % (STATUS_COUNT - 1));
    task->lease.held = status_held(task->status);
    task->lease.worker_id = task->lease.held ? STR("w1") : STR_NONE;
    task->lease.token = 1;
    task->scheduled_at_us = task->status == STATUS_DELAYED ? NOW_US : 0;
    task->parked = task->status == STATUS_PENDING && dice(4) == 0;
}

static struct task *random_task(struct fixture *fixture, uint32_t number)
{
    static const char *const queues[] = {"default", "mail", "rare"};
    char queue[16];
    char type[16];
    struct task *task;

    snprintf(queue, sizeof queue, "%s", queues[dice(100) == 0 ? 2 : dice(2)]);
    snprintf(type, sizeof type, "type%u", dice(10) == 0 ? dice(30) : dice(2));
    task = fixture_task(fixture, arena_cstr(&fixture->arena, str_of(queue)),
                        arena_cstr(&fixture->arena, str_of(type)),
                        NOW_US + (int64_t)number * CLOCK_STEP_US);
    if (dice(10) == 0) {
        task->spec.namespace_name = STR("other");
        task->spec.queue = queue_name_full(STR("other"), task->spec.queue, &fixture->arena);
    }
    task->spec.limit_key = STR("k");
    if (dice(3) == 0)
        task->spec.user_id = numbered(fixture, "u", dice(20));
    if (dice(3) == 0)
        task->spec.context_key = numbered(fixture, "c", dice(50));
    if (dice(3) == 0)
        task->spec.workflow_id = numbered(fixture, "f", dice(50));
    if (dice(3) == 0)
        task->spec.correlation_id = numbered(fixture, "r", dice(50));
    if (dice(3) == 0)
        task->spec.external_id = numbered(fixture, "x", number);
    if (dice(3) == 0)
        task->spec.tags = arena_format(&fixture->arena, "[\"t%u\",\"t%u\"]", dice(5), 5 + dice(5));
    if (dice(4) == 0)
        task->spec.origin.job_id = plain_id(dice(20));
    if (dice(4) == 0)
        task->spec.origin.schedule_id = plain_id(dice(20));
    if (dice(4) == 0)
        task->spec.origin.parent_id = plain_id(dice(20));
    give_status(task, dice(100));
    return task;
}

static void reserve_external(struct fixture *fixture, const struct task *task)
{
    struct unique unique = {.kind = UNIQUE_EXTERNAL,
                            .namespace_name = task->spec.namespace_name,
                            .type = STR(""),
                            .value = task->spec.external_id,
                            .task_key = task->key};

    if (task->spec.external_id.data)
        assert_int_equal(fixture->store->verbs->uniques_reserve(fixture->store, &unique, 1,
                                                                &fixture->err), 0);
}

static struct table *fill(struct fixture *fixture)
{
    struct table *table = arena_alloc(&fixture->arena, sizeof *table);

    assert_non_null(table);
    fixture_begin(fixture);
    for (uint32_t i = 0; i < TASKS_COUNT; i++) {
        table->tasks[i] = random_task(fixture, i);
        assert_int_equal(fixture->store->verbs->tasks_insert(fixture->store, &table->tasks[i], 1,
                                                             &fixture->err), 0);
        reserve_external(fixture, table->tasks[i]);
    }
    fixture_commit(fixture);
    return table;
}

static struct str maybe(struct fixture *fixture, uint32_t odds, const char *prefix, uint32_t sides)
{
    return dice(odds) ? STR_NONE : numbered(fixture, prefix, dice(sides));
}

static struct task_filter random_filter(struct fixture *fixture)
{
    struct task_filter filter = {.limit = 1 + dice(30)};

    filter.namespace_name = dice(20) == 0 ? STR_NONE : dice(8) ? STR("default") : STR("other");
    filter.status = dice(2) ? (enum status)dice(STATUS_COUNT) : STATUS_NONE;
    filter.type = maybe(fixture, 3, "type", 32);
    if (dice(3) == 0)
        filter.queue = dice(2) ? STR("mail") : dice(2) ? STR("rare") : STR("none");
    filter.tag = maybe(fixture, 6, "t", 10);
    filter.user_id = maybe(fixture, 8, "u", 20);
    filter.external_id = maybe(fixture, 20, "x", TASKS_COUNT);
    filter.context_key = maybe(fixture, 12, "c", 50);
    filter.workflow_id = maybe(fixture, 12, "f", 50);
    filter.correlation_id = maybe(fixture, 12, "r", 50);
    if (dice(12) == 0)
        filter.job_id = plain_id(dice(20));
    if (dice(12) == 0)
        filter.schedule_id = plain_id(dice(20));
    if (dice(12) == 0)
        filter.parent_id = plain_id(dice(20));
    if (dice(4) == 0)
        filter.created_after_us = NOW_US + (int64_t)dice(TASKS_COUNT) * CLOCK_STEP_US;
    if (dice(4) == 0)
        filter.created_before_us = NOW_US + (int64_t)dice(TASKS_COUNT) * CLOCK_STEP_US;
    if (dice(4) == 0)
        filter.before_key = 1 + dice(TASKS_COUNT);
    filter.oldest_first = dice(2);
    return filter;
}

static bool text_fits(struct str wanted, struct str value)
{
    return !wanted.data || (value.data && str_eq(wanted, value));
}

static bool id_fits(const struct uuid *wanted, const struct uuid *value)
{
    return uuid_is_nil(wanted) || uuid_eq(wanted, value);
}

static bool tag_fits(struct str wanted, struct str tags)
{
    char quoted[64];

    snprintf(quoted, sizeof quoted, "\"%.*s\"", STR_ARG(wanted));
    return !wanted.data || (tags.data && memmem(tags.data, tags.len, quoted, strlen(quoted)));
}

static bool fits(const struct task_filter *filter, const struct task *task)
{
    const struct task_spec *spec = &task->spec;

    return text_fits(filter->namespace_name, spec->namespace_name) &&
           (filter->status == STATUS_NONE || filter->status == task->status) &&
           text_fits(filter->type, spec->type) && text_fits(filter->queue, queue_name_plain(spec->queue)) &&
           tag_fits(filter->tag, spec->tags) && text_fits(filter->user_id, spec->user_id) &&
           text_fits(filter->external_id, spec->external_id) &&
           text_fits(filter->context_key, spec->context_key) &&
           text_fits(filter->workflow_id, spec->workflow_id) &&
           text_fits(filter->correlation_id, spec->correlation_id) &&
           id_fits(&filter->job_id, &spec->origin.job_id) &&
           id_fits(&filter->schedule_id, &spec->origin.schedule_id) &&
           id_fits(&filter->parent_id, &spec->origin.parent_id) &&
           (!filter->created_after_us || spec->created_at_us >= filter->created_after_us) &&
           (!filter->created_before_us || spec->created_at_us < filter->created_before_us) &&
           (!filter->before_key || (filter->oldest_first ? task->key > filter->before_key
                                                         : task->key < filter->before_key));
}

static uint32_t check_filter(struct fixture *fixture, const struct table *table,
                             const struct task_filter *filter)
{
    struct arena arena = ARENA_INIT(0);
    struct task *found = NULL;
    uint32_t count = 0;
    uint32_t at = 0;

    assert_int_equal(fixture->store->verbs->read_tasks(fixture->reader, filter, &arena, &found,
                                                       &count, &fixture->err), 0);
    for (uint32_t i = TASKS_COUNT; i > 0 && at < filter->limit; i--) {
        const struct task *task =
            table->tasks[filter->oldest_first ? TASKS_COUNT - i : i - 1];

        if (!fits(filter, task))
            continue;
        assert_true(at < count);
        assert_true(uuid_eq(&found[at].id, &task->id));
        assert_true(found[at].status == task->status);
        assert_true(str_eq(found[at].spec.queue, task->spec.queue));
        at++;
    }
    assert_int_equal(at, count);
    arena_deinit(&arena);
    return count;
}

static void every_combination_of_filters_finds_what_looking_at_each_task_finds(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = fill(fixture);
    uint32_t not_empty = 0;

    for (uint32_t i = 0; i < FILTERS_COUNT; i++) {
        struct task_filter filter = random_filter(fixture);

        not_empty += check_filter(fixture, table, &filter) > 0;
    }
    assert_true(not_empty > FILTERS_COUNT / 20);
}

static void every_single_status_is_listed_whole_page_by_page(void **state)
{
    struct fixture *fixture = *state;
    struct table *table = fill(fixture);

    for (int status = 0; status < STATUS_COUNT; status++) {
        for (int lane = 0; lane < 3; lane++) {
            struct task_filter filter = {.status = (enum status)status, .limit = 1000};

            filter.namespace_name = STR("default");
            filter.queue = lane == 1 ? STR("rare") : STR_NONE;
            filter.type = lane == 2 ? STR("type1") : STR_NONE;
            check_filter(fixture, table, &filter);
            filter.before_key = TASKS_COUNT / 2;
            check_filter(fixture, table, &filter);
            filter.oldest_first = true;
            check_filter(fixture, table, &filter);
        }
    }
}

static void f_h20_a_huge_limit_is_cut(void **state)
{
    struct fixture *fixture = *state;
    struct task_filter filter = {.limit = 1000000000};
    struct task *found = NULL;
    uint32_t count = 0;

    fill(fixture);
    assert_int_equal(fixture->store->verbs->read_tasks(fixture->reader, &filter, &fixture->arena,
                                                       &found, &count, &fixture->err), 0);
    assert_int_equal(count, BOUND_LIST_LIMIT);
}

static void f_h20_a_query_over_its_time_is_given_up_and_the_next_one_works(void **state)
{
    struct fixture *fixture = *state;
    struct sqlite_sql *sql = &fixture->reader->sql;
    sqlite3_stmt *stmt = sql_prepare(sql, STR("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT "
                                              "i + 1 FROM n) SELECT max(i) FROM n"),
                                     &fixture->err);
    struct task_filter filter = {.limit = 1};
    struct task *found = NULL;
    uint32_t count = 0;

    assert_non_null(stmt);
    reader_begin(fixture->reader);
    ((struct timed_reader *)fixture->reader)->deadline_us = 1; /* long ago */
    assert_int_equal(sql_step(sql, stmt, &fixture->err), -ERR_UNAVAILABLE);
    assert_non_null(strstr(fixture->err.text, "narrow its filters"));
    assert_int_equal(reader_end(fixture->reader, 0), 0);
    sqlite3_finalize(stmt);
    assert_int_equal(fixture->store->verbs->read_tasks(fixture->reader, &filter, &fixture->arena,
                                                       &found, &count, &fixture->err), 0);
}

static void an_answer_that_does_not_fit_its_memory_is_refused_not_cut(void **state)
{
    struct fixture *fixture = *state;
    struct arena small = ARENA_INIT(300 * 1024);
    struct task *task = fixture_task(fixture, "default", "big", NOW_US);
    struct task_filter filter = {.limit = 10};
    char *text = arena_alloc(&fixture->arena, 400 * 1024);
    struct task *found = NULL;
    uint32_t count = 0;

    memset(text, '1', 400 * 1024);
    task->spec.payload = str_span(text, 400 * 1024);
    fixture_begin(fixture);
    assert_int_equal(fixture->store->verbs->tasks_insert(fixture->store, &task, 1, &fixture->err),
                     0);
    fixture_commit(fixture);
    assert_int_equal(fixture->store->verbs->read_tasks(fixture->reader, &filter, &small, &found,
                                                       &count, &fixture->err), -ERR_TOO_LARGE);
    arena_deinit(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(every_combination_of_filters_finds_what_looking_at_each_task_finds),
        STORE_TEST(every_single_status_is_listed_whole_page_by_page),
        STORE_TEST(f_h20_a_huge_limit_is_cut),
        STORE_TEST(f_h20_a_query_over_its_time_is_given_up_and_the_next_one_works),
        STORE_TEST(an_answer_that_does_not_fit_its_memory_is_refused_not_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
