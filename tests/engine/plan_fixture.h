/* Short ways to plan on the queue of engine_fixture.h: categories, jobs, schedules and the like are
 * asked for as JSON, as the API does. Time is moved by moving what is planned: a schedule whose next
 * instant lies three days back is one that was down for three days. Included by test programs only;
 * all functions are static. */
#ifndef TESTS_PLAN_FIXTURE_H
#define TESTS_PLAN_FIXTURE_H

#include "engine_fixture.h"

#include "core/plan/catalog_parse.h"
#include "store/catalog_store.h"

#include <stdio.h>

#define SECOND_US CLOCK_SECOND_US
#define HOUR_US (3600 * SECOND_US)
#define TASKS_MAX 1000

static inline int plan_read(struct fixture *fx, struct catalog_request *request, struct str json)
{
    struct arena *arena = &fx->arena;
    struct err *err = &request->base.err;

    switch (request->kind) {
    case CATALOG_CATEGORY:
        category_init(&request->item.category);
        return category_read(json, arena, &request->item.category, &request->set, err);
    case CATALOG_JOB:
        job_init(&request->item.job);
        return job_read(json, arena, &request->item.job, &request->category, &request->set, err);
    case CATALOG_SCHEDULE:
        schedule_init(&request->item.schedule);
        return schedule_read(json, arena, &request->item.schedule, &request->set, NULL, err);
    case CATALOG_RECURRING:
        recurring_init(&request->item.recurring);
        return recurring_read(json, arena, &request->item.recurring, &request->set, err);
    default:
        job_dependency_init(&request->item.dependency);
        return job_dependency_parse(json, arena, &request->item.dependency, &request->set, err);
    }
}

static inline struct catalog_request *plan_prepare(struct fixture *fx, enum catalog_kind kind,
                                                   enum catalog_op op, struct uuid id,
                                                   struct str json)
{
    struct catalog_request *request = arena_alloc(&fx->arena, sizeof *request);

    assert_non_null(request);
    *request = (struct catalog_request){.base = {.kind = REQUEST_CATALOG, .arena = &fx->arena},
                                        .kind = kind, .op = op, .id = id};
    if (op != CATALOG_DELETE && plan_read(fx, request, json) < 0)
        fail_msg("%s: %s", json.data, request->base.err.text);
    return request;
}

/* Whatever the answer is. */
__attribute__((format(printf, 5, 6)))
static inline struct catalog_request *plan_ask(struct fixture *fx, enum catalog_kind kind,
                                               enum catalog_op op, struct uuid id,
                                               const char *format, ...)
{
    struct catalog_request *request;
    va_list args;

    va_start(args, format);
    request = plan_prepare(fx, kind, op, id, fx_format(fx, format, args));
    va_end(args);
    engine_call(fx->engine, &request->base);
    return request;
}

#define NO_ID ((struct uuid){{0}})

/* What must be done. */
#define plan_do(fx, kind, op, id, ...)                                                      \
    ({                                                                                      \
        struct catalog_request *done_ = plan_ask((fx), (kind), (op), (id), __VA_ARGS__);    \
        if (done_->base.err.code != ERR_NONE)                                               \
            fail_msg("%s", done_->base.err.text);                                           \
        done_;                                                                              \
    })

static inline struct uuid plan_id(const struct catalog_request *request)
{
    return request->kind == CATALOG_CATEGORY   ? request->item.category.id
           : request->kind == CATALOG_JOB      ? request->item.job.id
           : request->kind == CATALOG_SCHEDULE ? request->item.schedule.id
           : request->kind == CATALOG_RECURRING ? request->item.recurring.id
                                                : request->item.dependency.id;
}

#define plan_make(fx, kind, ...) plan_id(plan_do((fx), (kind), CATALOG_CREATE, NO_ID, __VA_ARGS__))
#define make_category(fx, ...) plan_make((fx), CATALOG_CATEGORY, __VA_ARGS__)
#define make_job(fx, ...) plan_make((fx), CATALOG_JOB, __VA_ARGS__)
#define make_pattern(fx, ...) plan_make((fx), CATALOG_RECURRING, __VA_ARGS__)
/* More members after the job's. */
#define make_schedule(fx, job_id, members)                                                  \
    plan_make((fx), CATALOG_SCHEDULE, "{\"job_id\":\"%s\",%s}", id_text((fx), (job_id)), (members))
#define change(fx, kind, id, ...) plan_do((fx), (kind), CATALOG_UPDATE, (id), __VA_ARGS__)
#define removed(fx, kind, id)                                                               \
    (plan_ask((fx), (kind), CATALOG_DELETE, (id), "%s", "")->base.err.code)

static inline struct catalog_request *depend(struct fixture *fx, struct uuid job, struct uuid on,
                                             const char *type, const char *config)
{
    return plan_ask(fx, CATALOG_DEPENDENCY, CATALOG_CREATE, NO_ID,
                    "{\"job_id\":\"%s\",\"depends_on_job_id\":\"%s\",\"dependency_type\":\"%s\","
                    "\"dependency_config\":%s}", id_text(fx, job), id_text(fx, on), type, config);
}

#define make_gate(fx, job, on, type)                                                        \
    assert_int_equal(depend((fx), (job), (on), (type), "{}")->base.err.code, ERR_NONE)
#define make_trigger(fx, job, on, type)                                                     \
    assert_int_equal(depend((fx), (job), (on), (type), "{\"mode\":\"trigger\"}")->base.err.code, \
                     ERR_NONE)

static inline struct job_run_request *run_ask(struct fixture *fx, struct uuid job_id)
{
    struct job_run_request *request = arena_alloc(&fx->arena, sizeof *request);

    *request = (struct job_run_request){.base = {.kind = REQUEST_JOB_RUN, .arena = &fx->arena},
                                        .job_id = job_id, .actor = ACTOR_API};
    engine_call(fx->engine, &request->base);
    return request;
}

static inline struct uuid run_now(struct fixture *fx, struct uuid job_id)
{
    struct job_run_request *request = run_ask(fx, job_id);

    if (request->base.err.code != ERR_NONE)
        fail_msg("%s", request->base.err.text);
    return request->task->id;
}

/* ---- reading ---- */

static inline struct schedule *get_schedule(struct fixture *fx, struct uuid id)
{
    struct schedule *schedule = NULL;

    assert_int_equal(fx->store->verbs->catalog->read_schedule(fx->reader, &id, &fx->arena,
                                                              &schedule, &fx->err), 0);
    assert_non_null(schedule);
    return schedule;
}

static inline struct recurring *get_pattern(struct fixture *fx, struct uuid id)
{
    struct recurring *pattern = NULL;

    assert_int_equal(fx->store->verbs->catalog->read_recurring_one(fx->reader, &id, &fx->arena,
                                                                   &pattern, &fx->err), 0);
    assert_non_null(pattern);
    return pattern;
}

static inline struct job *get_job(struct fixture *fx, struct uuid id)
{
    struct job *job = NULL;

    assert_int_equal(fx->store->verbs->catalog->read_job(fx->reader, &id, &fx->arena, &job,
                                                         &fx->err), 0);
    return job;
}

/* Of a job, oldest first. */
static inline struct task *tasks_of(struct fixture *fx, struct uuid job_id, uint32_t *count)
{
    struct task_filter filter = {.namespace_name = STR("default"), .job_id = job_id,
                                 .limit = TASKS_MAX};
    struct task *tasks;

    assert_int_equal(fx->store->verbs->read_tasks(fx->reader, &filter, &fx->arena, &tasks, count,
                                                  &fx->err), 0);
    for (uint32_t i = 0; i < *count / 2; i++) {
        struct task swap = tasks[i];

        tasks[i] = tasks[*count - 1 - i];
        tasks[*count - 1 - i] = swap;
    }
    return tasks;
}

static inline uint32_t count_tasks(struct fixture *fx, struct uuid job_id)
{
    uint32_t count;

    tasks_of(fx, job_id, &count);
    return count;
}

static inline uint32_t count_status(struct fixture *fx, struct uuid job_id, enum status status)
{
    uint32_t count, found = 0;
    struct task *tasks = tasks_of(fx, job_id, &count);

    for (uint32_t i = 0; i < count; i++)
        found += tasks[i].status == status;
    return found;
}

/* ---- time ---- */

/* Moves times of all rows of a table by so many seconds, while the queue is closed; the first look
 * after it is at once. */
static inline void move_times(struct fixture *fx, const char *table, const char *column,
                              int64_t seconds)
{
    char text[300];

    if (pg_schema_wanted())
        snprintf(text, sizeof text, "UPDATE %s SET %s = %s + interval '%lld seconds'", table,
                 column, column, (long long)seconds);
    else
        snprintf(text, sizeof text, "UPDATE %s SET %s = %s + %lld", table, column, column,
                 (long long)seconds * 1000000);
    fx_sql(fx, text);
}

static inline const char *time_text(struct fixture *fx, int64_t time_us)
{
    char *text = arena_alloc(&fx->arena, CLOCK_TEXT_BYTES);

    clock_format(time_us, text);
    return text;
}

/* Everything that was due when it is called has fired: a request behind the timers. */
#define wait_fired(fx, schedule_id)                                                         \
    wait_until(get_schedule((fx), (schedule_id))->next_fire_at_us == 0 ||                   \
               get_schedule((fx), (schedule_id))->next_fire_at_us > clock_wall_us())

#define PLAN_TEST(name) QUEUE_TEST(name)

static inline void copy_zone(const char *from, const char *to)
{
    char text[4096];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    size_t len;

    assert_non_null(in);
    assert_non_null(out);
    while ((len = fread(text, 1, sizeof text, in)) > 0)
        assert_int_equal(fwrite(text, 1, len, out), len);
    fclose(in);
    fclose(out);
}

#endif
