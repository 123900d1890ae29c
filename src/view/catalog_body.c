/* From a body to a request of the queue: the readers of core/plan/catalog_parse.h by kind, and what
 * a creation must name. A schedule without a type has the one its only time field belongs to. */
#include "view/catalog_body.h"

#include "base/json.h"
#include "core/bounds.h"

/* The job that the path names is not moved by the body. */
static int take_job(const struct uuid *job_id, uint64_t field, uint64_t *set, struct uuid *to,
                    struct err *err)
{
    if (!job_id)
        return 0;
    if ((*set & field) && !uuid_eq(job_id, to))
        return err_set_field(err, ERR_INVALID, "job_id",
                             "'job_id' is another job than the one in the path; leave it out");
    *to = *job_id;
    *set |= field;
    return 0;
}

static int require_job(const struct uuid *job_id, struct err *err)
{
    if (!uuid_is_nil(job_id))
        return 0;
    return err_set_field(err, ERR_INVALID, "job_id", "'job_id' is missing; it says of which job");
}

static int read_category(struct catalog_request *request, struct str object, struct arena *arena,
                         struct err *err)
{
    category_init(&request->item.category);
    TRY(category_read(object, arena, &request->item.category, &request->set, err));
    if (request->op == CATALOG_CREATE)
        TRY(category_check(&request->item.category, err));
    return 0;
}

static int read_job(struct catalog_request *request, struct str object, struct arena *arena,
                    struct err *err)
{
    job_init(&request->item.job);
    TRY(job_read(object, arena, &request->item.job, &request->category, &request->set, err));
    if (request->op == CATALOG_CREATE)
        TRY(job_check(&request->item.job, err));
    return 0;
}

/* The type that the only time field belongs to. */
static void guess_type(struct schedule *schedule, uint64_t *set)
{
    static const struct {
        uint64_t field;
        enum schedule_type type;
    } guesses[] = {{SCHEDULE_FIELD_CRON_EXPRESSION, SCHEDULE_CRON},
                   {SCHEDULE_FIELD_INTERVAL, SCHEDULE_INTERVAL},
                   {SCHEDULE_FIELD_SCHEDULED_AT, SCHEDULE_ONCE}};
    enum schedule_type type = SCHEDULE_TYPE_COUNT;
    uint32_t found = 0;

    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
        if (*set & guesses[i].field) {
            type = guesses[i].type;
            found++;
        }
    if ((*set & SCHEDULE_FIELD_TYPE) || found != 1)
        return;
    schedule->type = type;
    *set |= SCHEDULE_FIELD_TYPE;
}

static int read_schedule(struct catalog_request *request, const struct uuid *job_id,
                         struct str object, struct arena *arena, struct err *err)
{
    struct schedule *schedule = &request->item.schedule;

    schedule_init(schedule);
    TRY(schedule_read(object, arena, schedule, &request->set, NULL, err));
    if (request->op == CATALOG_UPDATE && request->set & SCHEDULE_FIELD_JOB_ID)
        return err_set_field(err, ERR_INVALID, "job_id",
                             "a schedule stays with its job; make another one for this job");
    if (request->op == CATALOG_UPDATE)
        return 0;
    TRY(take_job(job_id, SCHEDULE_FIELD_JOB_ID, &request->set, &schedule->job_id, err));
    TRY(require_job(&schedule->job_id, err));
    guess_type(schedule, &request->set);
    return schedule_check(schedule, err);
}

static int read_recurring(struct catalog_request *request, struct str object, struct arena *arena,
                          struct err *err)
{
    recurring_init(&request->item.recurring);
    TRY(recurring_read(object, arena, &request->item.recurring, &request->set, err));
    if (request->op == CATALOG_CREATE)
        TRY(recurring_check(&request->item.recurring, err));
    return 0;
}

static int read_dependency(struct catalog_request *request, const struct uuid *job_id,
                           struct str object, struct arena *arena, struct err *err)
{
    struct job_dependency *dependency = &request->item.dependency;

    job_dependency_init(dependency);
    TRY(job_dependency_parse(object, arena, dependency, &request->set, err));
    TRY(take_job(job_id, DEPENDENCY_FIELD_JOB, &request->set, &dependency->job_id, err));
    TRY(require_job(&dependency->job_id, err));
    return job_dependency_check(dependency, err);
}

int catalog_body_read(struct catalog_request *request, const struct uuid *job_id,
                      struct str object, struct arena *arena, struct err *err)
{
    request->set = 0;
    switch (request->kind) {
    case CATALOG_CATEGORY:
        return read_category(request, object, arena, err);
    case CATALOG_JOB:
        return read_job(request, object, arena, err);
    case CATALOG_SCHEDULE:
        return read_schedule(request, job_id, object, arena, err);
    case CATALOG_RECURRING:
        return read_recurring(request, object, arena, err);
    case CATALOG_DEPENDENCY:
        return read_dependency(request, job_id, object, arena, err);
    case CATALOG_KIND_COUNT:
        break;
    }
    ASSERT(false);
    return -(int)ERR_INTERNAL;
}

int catalog_body_preview(struct str object, struct arena *arena, struct schedule *schedule,
                         struct preview_wish *wish, struct err *err)
{
    uint64_t set = 0;

    schedule_init(schedule);
    TRY(schedule_read(object, arena, schedule, &set, wish, err));
    guess_type(schedule, &set);
    return 0;
}

int catalog_body_run(struct str object, struct str *payload, struct err *err)
{
    struct json_member member;
    struct json_iter iter;

    *payload = STR_NONE;
    if (json_kind(object) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the body must be an object");
    json_begin(object, &iter);
    while (json_next_member(&iter, &member)) {
        if (!json_key_is(member.key, STR("payload"))) {
            char name[sizeof err->field];

            snprintf(name, sizeof name, STR_FMT, STR_ARG(member.key));
            return err_set_field(err, ERR_INVALID, name, "there is no field '%s' here", name);
        }
        *payload = member.value;
    }
    if (payload->len > BOUND_PAYLOAD_BYTES)
        return err_set_field(err, ERR_TOO_LARGE, "payload", "'payload' has more than %d bytes",
                             BOUND_PAYLOAD_BYTES);
    return 0;
}
