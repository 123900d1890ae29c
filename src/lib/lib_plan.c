/* Planning: categories, jobs, schedules, patterns and dependencies, as JSON in and out. What is the
 * same on both sides: checks, ids, texts and times; the sides are in lib_plan_local.c and
 * lib_plan_remote.c. Any thread. */
#include "lib/lib_int.h"

#include <stdlib.h>

#include "base/clock.h"

#define NEXT_MAX 1000 /* as the API allows */

_Static_assert((int)PD_PLAN_CATEGORY == (int)CATALOG_CATEGORY &&
               (int)PD_PLAN_JOB == (int)CATALOG_JOB &&
               (int)PD_PLAN_SCHEDULE == (int)CATALOG_SCHEDULE &&
               (int)PD_PLAN_RECURRING == (int)CATALOG_RECURRING &&
               (int)PD_PLAN_DEPENDENCY == (int)CATALOG_DEPENDENCY, "kinds have the same numbers");

static int not_understood(struct err *err)
{
    return err_set(err, ERR_IO, "the server's answer is not understood; do library and server have "
                                "the same version?");
}

/* An id or a name of the caller's. */
static int check_name(const char *text, const char *field, struct str *to, struct err *err)
{
    TRY(lib_check_text(text, field, to, err));
    if (str_empty(*to))
        return err_set_field(err, ERR_INVALID, field, "'%s' must be an id or a name", field);
    if (to->len > BOUND_NAME_BYTES)
        return err_set_field(err, ERR_INVALID, field, "'%s' has more than %d bytes", field,
                             BOUND_NAME_BYTES);
    return 0;
}

static int check_object(const char *json, const char *field, struct str *to, struct err *err)
{
    TRY(lib_check_json(json, 0, field, to, err));
    if (!to->data || json_kind(*to) != JSON_OBJECT)
        return err_set_field(err, ERR_INVALID, field, "'%s' must be a JSON object", field);
    return 0;
}

static int ask(struct pd *pd, const struct plan_call *call, struct arena *arena, struct str *reply,
               struct err *err)
{
    *reply = STR_NONE;
    if (!pd->side)
        return err_set(err, ERR_INVALID, "the handle is not open");
    return pd->verbs->plan(pd, call, arena, reply, err);
}

static int end(struct pd *pd, const struct err *err)
{
    return err->code == ERR_NONE ? PD_OK : lib_fail(pd, err);
}

/* The id of what was made. */
static int copy_id(struct str reply, struct arena *arena, char *id, struct err *err)
{
    struct str value = reply.data && json_kind(reply) == JSON_OBJECT ? json_get(reply, STR("id"))
                                                                     : STR_NONE;
    struct uuid made;

    if (!value.data || json_kind(value) != JSON_STRING ||
        !uuid_parse(json_string(value, arena), &made))
        return not_understood(err);
    if (id)
        uuid_format(&made, id);
    return 0;
}

static int copy_text(struct str reply, char **json, struct err *err)
{
    if (!reply.data)
        return not_understood(err);
    *json = TRY_MEMORY(malloc(reply.len + 1));
    memcpy(*json, reply.data, reply.len);
    (*json)[reply.len] = '\0';
    return 0;
}

void pd_text_free(char *json)
{
    free(json);
}

static bool is_kind(enum pd_plan_kind kind, bool with_dependencies)
{
    return (unsigned)kind < PD_PLAN_DEPENDENCY ||
           (with_dependencies && kind == PD_PLAN_DEPENDENCY);
}

static int check_kind(enum pd_plan_kind kind, bool with_dependencies, struct err *err)
{
    if (is_kind(kind, with_dependencies))
        return 0;
    return err_set(err, ERR_INVALID, "this kind cannot be asked for here");
}

/* ---- making ---- */

static int create(struct pd *pd, enum catalog_kind kind, const char *job, bool of_job,
                  const char *json, char *id)
{
    struct plan_call call = {.op = PLAN_CREATE, .kind = kind};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    if ((!of_job || check_name(job, "job", &call.job, &err) == 0) &&
        check_object(json, "json", &call.json, &err) == 0 &&
        ask(pd, &call, &arena, &reply, &err) == 0)
        copy_id(reply, &arena, id, &err);
    return end(pd, &err);
}

int pd_category_create(struct pd *pd, const char *json, char *id)
{
    return create(pd, CATALOG_CATEGORY, NULL, false, json, id);
}

int pd_job_create(struct pd *pd, const char *json, char *id)
{
    return create(pd, CATALOG_JOB, NULL, false, json, id);
}

int pd_schedule_create(struct pd *pd, const char *job, const char *json, char *id)
{
    return create(pd, CATALOG_SCHEDULE, job, true, json, id);
}

int pd_recurring_create(struct pd *pd, const char *json, char *id)
{
    return create(pd, CATALOG_RECURRING, NULL, false, json, id);
}

int pd_dependency_create(struct pd *pd, const char *job, const char *json, char *id)
{
    return create(pd, CATALOG_DEPENDENCY, job, true, json, id);
}

/* ---- looking ---- */

int pd_plan_get(struct pd *pd, enum pd_plan_kind kind, const char *id, char **json)
{
    struct plan_call call = {.op = PLAN_GET, .kind = (enum catalog_kind)kind};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    *json = NULL;
    if (check_kind(kind, false, &err) == 0 && check_name(id, "id", &call.id, &err) == 0 &&
        ask(pd, &call, &arena, &reply, &err) == 0)
        copy_text(reply, json, &err);
    return end(pd, &err);
}

/* Dependencies are those of a job, which the filter names. */
static int take_job(struct plan_call *call, struct arena *arena, struct err *err)
{
    struct str value = json_get(call->json, STR("job_id"));

    if (call->kind != CATALOG_DEPENDENCY)
        return 0;
    if (value.data && json_kind(value) == JSON_STRING)
        call->job = json_string(value, arena);
    if (!str_empty(call->job))
        return 0;
    return err_set_field(err, ERR_INVALID, "job_id", "'job_id' must say whose dependencies");
}

int pd_plan_list(struct pd *pd, enum pd_plan_kind kind, const char *filter, char **json)
{
    struct plan_call call = {.op = PLAN_LIST, .kind = (enum catalog_kind)kind};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    *json = NULL;
    if (check_kind(kind, true, &err) == 0 &&
        check_object(filter ? filter : "{}", "filter", &call.json, &err) == 0 &&
        take_job(&call, &arena, &err) == 0 && ask(pd, &call, &arena, &reply, &err) == 0)
        copy_text(reply, json, &err);
    return end(pd, &err);
}

/* ---- changing ---- */

int pd_plan_update(struct pd *pd, enum pd_plan_kind kind, const char *id, const char *json)
{
    struct plan_call call = {.op = PLAN_UPDATE, .kind = (enum catalog_kind)kind};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    if (check_kind(kind, false, &err) == 0 && check_name(id, "id", &call.id, &err) == 0 &&
        check_object(json, "json", &call.json, &err) == 0)
        ask(pd, &call, &arena, &reply, &err);
    return end(pd, &err);
}

static int delete_one(struct pd *pd, struct plan_call *call, const char *id)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    call->op = PLAN_DELETE;
    if (check_name(id, "id", &call->id, &err) == 0)
        ask(pd, call, &arena, &reply, &err);
    return end(pd, &err);
}

int pd_plan_delete(struct pd *pd, enum pd_plan_kind kind, const char *id)
{
    struct plan_call call = {.kind = (enum catalog_kind)kind};
    struct err err = {0};

    if (check_kind(kind, false, &err) < 0)
        return lib_fail(pd, &err);
    return delete_one(pd, &call, id);
}

int pd_dependency_delete(struct pd *pd, const char *job, const char *id)
{
    struct plan_call call = {.kind = CATALOG_DEPENDENCY};
    struct err err = {0};

    if (check_name(job, "job", &call.job, &err) < 0)
        return lib_fail(pd, &err);
    return delete_one(pd, &call, id);
}

/* ---- running ---- */

int pd_job_run(struct pd *pd, const char *job, const char *payload, char *task_id)
{
    struct plan_call call = {.op = PLAN_RUN, .kind = CATALOG_JOB, .json = STR("{}")};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str value = STR_NONE;
    struct str reply;

    if (check_name(job, "job", &call.id, &err) < 0 ||
        (payload && lib_check_json(payload, 0, "payload", &value, &err) < 0))
        return end(pd, &err);
    if (value.data)
        call.json = arena_format(&arena, "{\"payload\":" STR_FMT "}", STR_ARG(value));
    if (!call.json.data)
        err_no_memory(&err);
    else if (ask(pd, &call, &arena, &reply, &err) == 0)
        copy_id(reply, &arena, task_id, &err);
    return end(pd, &err);
}

static int copy_times(struct str reply, struct arena *arena, int64_t *times_us, size_t *count,
                      struct err *err)
{
    struct str items = reply.data && json_kind(reply) == JSON_OBJECT
                           ? json_get(reply, STR("items")) : STR_NONE;
    size_t room = *count;
    struct json_iter iter;
    struct str item;

    *count = 0;
    if (!items.data || json_kind(items) != JSON_ARRAY)
        return not_understood(err);
    json_begin(items, &iter);
    while (*count < room && json_next_element(&iter, &item))
        if (json_kind(item) != JSON_STRING ||
            !clock_parse(json_string(item, arena), &times_us[(*count)++]))
            return not_understood(err);
    return 0;
}

int pd_plan_next(struct pd *pd, enum pd_plan_kind kind, const char *id, int64_t from_us,
                 int64_t *times_us, size_t *count)
{
    struct plan_call call = {.op = PLAN_NEXT, .kind = (enum catalog_kind)kind, .from_us = from_us};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct err err = {0};
    struct str reply;

    call.count = *count < NEXT_MAX ? (int64_t)*count : NEXT_MAX;
    if (kind != PD_PLAN_SCHEDULE && kind != PD_PLAN_RECURRING)
        err_set(&err, ERR_INVALID, "only schedules and recurring patterns fire");
    else if (call.count == 0 || from_us < 0 || from_us > CLOCK_MAX_US)
        err_set(&err, ERR_INVALID, "give room for one instant at least, and a time from 1970 to "
                "9999");
    else if (check_name(id, "id", &call.id, &err) == 0 &&
             ask(pd, &call, &arena, &reply, &err) == 0)
        copy_times(reply, &arena, times_us, count, &err);
    if (err.code != ERR_NONE)
        *count = 0;
    return end(pd, &err);
}
