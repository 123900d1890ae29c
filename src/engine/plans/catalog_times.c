/* Schedules and recurring patterns: made, changed, removed; each change of their times computes the
 * next instant again from now, so that nothing fires late and no future firing is lost. An edit
 * that does not change the times does not change what is due either. Called by catalog_change.c,
 * under the same lock. */
#include "base/fault.h"
#include "core/callback_allow.h"
#include "core/plan/catalog_parse.h"
#include "core/plan/plan.h"
#include "engine/access/rights.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/catalog_change.h"
#include "engine/plans/categories.h"
#include "engine/plans/fire.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"

static const struct catalog_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->catalog;
}

/* ---- schedules ---- */

static bool is_single(const struct schedule *schedule)
{
    return schedule->type == SCHEDULE_ONCE || schedule->type == SCHEDULE_IMMEDIATE;
}

/* One that fires once: late by the grace at most when it is new, never a second time. */
static int plan_single(struct batch *batch, struct schedule *schedule, const struct plan *plan,
                       bool is_new, struct err *err)
{
    int64_t grace_us = schedule->misfire_grace_ms * CLOCK_MS_US;
    int64_t instant_us;
    bool past, fired;

    if (!plan_next(plan, INT64_MIN, &instant_us))
        return 0;
    past = schedule->type == SCHEDULE_ONCE && instant_us < batch->wall_us - grace_us;
    if (past && is_new)
        return err_set_field(err, ERR_INVALID, "scheduled_at", "\"scheduled_at\" lies in the past");
    fired = is_new && schedule->type == SCHEDULE_ONCE
                ? instant_us == schedule->last_fire_at_us
                : instant_us <= schedule->last_fire_at_us;
    if (!past && !fired)
        schedule->next_fire_at_us = instant_us;
    return 0;
}

static int plan_next_fire(struct batch *batch, struct schedule *schedule, bool is_new,
                          struct err *err)
{
    struct zones *zones = batch->engine->config.zones;
    struct plan plan;
    int rc = 0;

    schedule->next_fire_at_us = 0;
    schedule->error = STR_NONE;
    TRY(plan_schedule(schedule, zones, batch->wall_us, &plan, err));
    if (is_single(schedule))
        rc = plan_single(batch, schedule, &plan, is_new, err);
    else if (!plan_next(&plan, plan_goes_on_us(batch->wall_us - 1, schedule->last_fire_at_us),
                        &schedule->next_fire_at_us))
        schedule->next_fire_at_us = 0;
    if (!schedule->is_active)
        schedule->next_fire_at_us = 0;
    plan_release(&plan, zones);
    return rc;
}

static int check_schedule(struct batch *batch, const struct request *request,
                          const struct schedule *schedule, struct err *err)
{
    TRY(schedule_check(schedule, err));
    if (schedule->callback_url.data && request->caller && request->caller->principal)
        TRY(callback_check_right(batch->engine->settings, request->caller->principal, err));
    if (schedule->callback_url.data &&
        !callback_allowed(batch->engine->settings, schedule->callback_url))
        return err_set_field(err, ERR_INVALID, "callback_url", "callbacks to this address are not "
                             "allowed; add it to callbacks.allow in the configuration");
    return 0;
}

static int create_schedule(struct batch *batch, struct catalog_request *request)
{
    struct schedule *schedule = &request->item.schedule;
    struct err *err = &request->base.err;
    struct batch_job *job;

    schedule->id = uuid7_new(&batch->engine->ids, batch->now_us);
    schedule->namespace_name = catalog_namespace(&request->base);
    schedule->created_at_us = schedule->updated_at_us = batch->wall_us; /* what it is planned by */
    schedule->last_fire_at_us = 0;
    if (catalog_job(batch, &request->base, &schedule->job_id, &job, err) < 0) {
        if (err->code == ERR_NOT_FOUND)
            err_set_field(err, ERR_INVALID, "job_id", "there is no such job");
        return -(int)err->code;
    }
    TRY(check_schedule(batch, &request->base, schedule, err));
    TRY(catalog_check_work(batch, &request->base, job, err));
    TRY(namespace_admit_plan(batch, schedule->namespace_name, err));
    schedule->principal = request_maker(&request->base);
    if (schedule->ends_at_us && schedule->ends_at_us < batch->wall_us)
        return err_set_field(err, ERR_INVALID, "ends_at",
                             "\"ends_at\" lies in the past: nothing would ever fire");
    TRY(plan_next_fire(batch, schedule, true, err));
    if (schedule->is_active && schedule->next_fire_at_us == 0)
        return err_set_field(err, ERR_INVALID, schedule->ends_at_us ? "ends_at" : "starts_at",
                             "no planned time lies between now, \"starts_at\" and \"ends_at\": "
                             "nothing would ever fire");
    FAULT_POINT("catalog.put");
    return verbs_of(batch)->schedule_put(batch->store, schedule, err);
}

static int load_schedule(struct batch *batch, struct catalog_request *request,
                         struct schedule **schedule, struct batch_job **job)
{
    struct err *err = &request->base.err;

    TRY(verbs_of(batch)->schedules_load(batch->store, &request->id, 1, request->base.arena,
                                        schedule, err));
    if (!*schedule || namespace_hides(&request->base, (*schedule)->namespace_name))
        return catalog_no_such(err, "schedule", &request->id);
    TRY_MEMORY(!request->base.arena->failed);
    TRY(batch_settle(batch, err));
    if (catalog_job(batch, &request->base, &(*schedule)->job_id, job, err) == 0)
        return 0;
    return err->code == ERR_NOT_FOUND ? catalog_no_such(err, "schedule", &request->id)
                                      : -(int)err->code;
}

static int update_schedule(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct schedule *schedule;
    struct batch_job *job;
    struct schedule was;
    bool is_new, retimed;

    TRY(load_schedule(batch, request, &schedule, &job));
    was = *schedule;
    schedule_take(schedule, &request->item.schedule, request->set);
    retimed = schedule->error.data || !schedule_same_times(schedule, &was);
    is_new = schedule->type != was.type || schedule->scheduled_at_us != was.scheduled_at_us;
    if (!uuid_eq(&was.job_id, &schedule->job_id))
        return err_set_field(err, ERR_INVALID, "job_id", "a schedule stays with its job; make a "
                             "new one");
    schedule->updated_at_us = batch->wall_us;
    TRY(check_schedule(batch, &request->base, schedule, err));
    TRY(catalog_check_work(batch, &request->base, job, err));
    schedule->principal = request_maker(&request->base);
    if (retimed && request->set & SCHEDULE_FIELDS_OF_TIME)
        TRY(plan_next_fire(batch, schedule, is_new, err));
    FAULT_POINT("catalog.put");
    TRY(verbs_of(batch)->schedule_put(batch->store, schedule, err));
    request->item.schedule = *schedule;
    catalog_forget(batch->engine); /* what runs know of it */
    if (!(request->set & SCHEDULE_FIELD_OVERLAP))
        return 0;
    TRY(catalog_look(batch, err));
    return runs_release_slots(batch, job, err);
}

/* Runs it made continue, one beside the other. */
static int delete_schedule(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct schedule *schedule;
    struct batch_job *job;

    TRY(load_schedule(batch, request, &schedule, &job));
    FAULT_POINT("catalog.delete");
    TRY(verbs_of(batch)->schedule_delete(batch->store, &request->id, err));
    catalog_forget(batch->engine);
    TRY(catalog_look(batch, err));
    return runs_release_slots(batch, job, err);
}

int catalog_schedule(struct batch *batch, struct catalog_request *request)
{
    switch (request->op) {
    case CATALOG_CREATE:
        return create_schedule(batch, request);
    case CATALOG_UPDATE:
        return update_schedule(batch, request);
    case CATALOG_DELETE:
        break;
    }
    return delete_schedule(batch, request);
}

/* ---- recurring patterns ---- */

static int plan_generation(struct batch *batch, struct recurring *pattern, struct err *err)
{
    struct zones *zones = batch->engine->config.zones;
    struct plan plan;

    pattern->next_generation_us = 0;
    pattern->error = STR_NONE;
    TRY(plan_recurring(pattern, zones, batch->wall_us, &batch->arena, &plan, err));
    if (!pattern->is_active ||
        !plan_next(&plan, plan_goes_on_us(batch->wall_us - 1, pattern->last_generated_us),
                   &pattern->next_generation_us))
        pattern->next_generation_us = 0;
    plan_release(&plan, zones);
    return 0;
}

static int put_pattern(struct batch *batch, const struct request *request,
                       struct recurring *pattern, bool is_new, bool plan, struct err *err)
{
    struct batch_job *job;

    TRY(recurring_check(pattern, err));
    if (catalog_job(batch, request, &pattern->template_job_id, &job, err) < 0) {
        if (err->code == ERR_NOT_FOUND)
            err_set_field(err, ERR_INVALID, "template_job_id", "there is no such job");
        return -(int)err->code;
    }
    TRY(catalog_check_work(batch, request, job, err));
    pattern->principal = request_maker(request);
    pattern->updated_at_us = batch->wall_us;
    if (plan)
        TRY(plan_generation(batch, pattern, err));
    if (is_new && pattern->is_active && pattern->next_generation_us == 0)
        return err_set_field(err, ERR_INVALID, "pattern_config", "no time of the pattern lies in "
                             "the future: nothing would ever be made");
    FAULT_POINT("catalog.put");
    return verbs_of(batch)->recurring_put(batch->store, pattern, err);
}

static int create_pattern(struct batch *batch, struct catalog_request *request)
{
    struct recurring *pattern = &request->item.recurring;

    pattern->id = uuid7_new(&batch->engine->ids, batch->now_us);
    pattern->namespace_name = catalog_namespace(&request->base);
    pattern->created_at_us = batch->wall_us;
    pattern->last_generated_us = 0;
    TRY(namespace_admit_plan(batch, pattern->namespace_name, &request->base.err));
    return put_pattern(batch, &request->base, pattern, true, true, &request->base.err);
}

static int load_pattern(struct batch *batch, struct catalog_request *request,
                        struct recurring **pattern)
{
    struct err *err = &request->base.err;
    struct batch_job *job;

    TRY(verbs_of(batch)->recurring_load(batch->store, &request->id, 1, request->base.arena, pattern,
                                        err));
    if (!*pattern || namespace_hides(&request->base, (*pattern)->namespace_name))
        return catalog_no_such(err, "recurring pattern", &request->id);
    TRY_MEMORY(!request->base.arena->failed);
    TRY(batch_settle(batch, err));
    if (catalog_job(batch, &request->base, &(*pattern)->template_job_id, &job, err) == 0)
        return 0;
    return err->code == ERR_NOT_FOUND ? catalog_no_such(err, "recurring pattern", &request->id)
                                      : -(int)err->code;
}

static int update_pattern(struct batch *batch, struct catalog_request *request)
{
    const uint64_t times = RECURRING_FIELD_TYPE | RECURRING_FIELD_CONFIG |
                           RECURRING_FIELD_IS_ACTIVE;
    struct err *err = &request->base.err;
    struct recurring *pattern;
    struct recurring was;
    bool retimed;

    TRY(load_pattern(batch, request, &pattern));
    was = *pattern;
    recurring_take(pattern, &request->item.recurring, request->set);
    retimed = pattern->error.data || !recurring_same_times(pattern, &was);
    TRY(put_pattern(batch, &request->base, pattern, false, retimed && request->set & times, err));
    request->item.recurring = *pattern;
    return 0;
}

static int delete_pattern(struct batch *batch, struct catalog_request *request)
{
    struct recurring *pattern;

    TRY(load_pattern(batch, request, &pattern));
    FAULT_POINT("catalog.delete");
    return verbs_of(batch)->recurring_delete(batch->store, &request->id, &request->base.err);
}

int catalog_recurring(struct batch *batch, struct catalog_request *request)
{
    switch (request->op) {
    case CATALOG_CREATE:
        return create_pattern(batch, request);
    case CATALOG_UPDATE:
        return update_pattern(batch, request);
    case CATALOG_DELETE:
        break;
    }
    return delete_pattern(batch, request);
}
