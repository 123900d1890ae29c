/* Categories and jobs: made, changed, removed. Everything is checked inside the transaction, under
 * the catalog's lock, so that two edits at once cannot use up a name twice. What jobs wait for is
 * in catalog_dependencies.c, schedules and patterns are in catalog_times.c. */
#include "engine/plans/catalog_change.h"

#include "base/fault.h"
#include "calendar/zones.h"
#include "core/callback_allow.h"
#include "core/plan/catalog_fields.h"
#include "core/plan/catalog_parse.h"
#include "core/plan/job.h"
#include "core/queue_name.h"
#include "engine/access/rights.h"
#include "engine/audit/trail.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/namespaces/namespaces.h"
#include "engine/plans/categories.h"
#include "engine/tasks/claim.h"
#include "engine/plans/fire.h"
#include "engine/plans/runs.h"
#include "engine/tasks/ended.h"
#include "store/catalog_store.h"
#include "store/difference.h"

int catalog_no_such(struct err *err, const char *what, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return err_set(err, ERR_NOT_FOUND, "there is no %s %s", what, text);
}

struct str catalog_namespace(const struct request *request)
{
    struct str name = namespace_of(request);

    return name.data ? name : STR(TASK_DEFAULT_NAMESPACE);
}

int catalog_find_job(struct batch *batch, const struct request *request, const struct uuid *id,
                     struct batch_job **found, struct err *err)
{
    TRY(jobs_load(batch, id, 1, true, err));
    *found = jobs_get(batch, id);
    if (!*found || (*found)->job->deleted_at_us != 0 ||
        namespace_hides(request, (*found)->job->namespace_name) ||
        rights_hide(request, (*found)->job->created_by))
        return catalog_no_such(err, "job", id);
    return 0;
}

int catalog_job(struct batch *batch, const struct request *request, const struct uuid *id,
                struct batch_job **found, struct err *err)
{
    TRY(catalog_find_job(batch, request, id, found, err));
    return rights_change(request, (*found)->job->created_by, "this job", err);
}

static const struct catalog_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->catalog;
}

/* ---- categories ---- */

static int check_category(struct batch *batch, const struct category *category, struct err *err)
{
    struct arena *arena = &batch->arena;
    struct category_state *same;
    struct category_rules rules;
    struct window_set windows;
    const struct zone *zone;

    TRY(category_check(category, err));
    TRY(category_rules_read(category->configuration, arena, &rules, err));
    TRY(window_parse(rules.allowed_windows, &windows, err));
    TRY(categories_find(batch, category->namespace_name, category->name, &same, err));
    if (same && !uuid_eq(&same->row.id, &category->id))
        return err_set_field(err, ERR_CONFLICT, "name", "there is a category '" STR_FMT
                             "' already", STR_ARG(category->name));
    if (!rules.timezone.data)
        return 0;
    TRY(zones_get(batch->engine->config.zones, rules.timezone, batch->wall_us, &zone, err));
    zones_put(batch->engine->config.zones, zone);
    return 0;
}

static void copy_category(struct category *category, struct arena *arena)
{
    category->namespace_name = arena_str(arena, category->namespace_name);
    category->name = arena_str(arena, category->name);
    category->description = arena_str(arena, category->description);
    category->configuration = arena_str(arena, category->configuration);
}

/* A category moves work from queue to queue: who may use some only changes what leads there. */
static int check_reach(struct batch *batch, const struct request *request,
                       const struct category *category, struct err *err)
{
    struct category_rules rules;

    if (!request->caller || !request->caller->principal)
        return 0;
    TRY(category_rules_read(category->configuration, &batch->arena, &rules, err));
    return principal_check_place(request->caller->principal,
                                 rules.queue.data ? rules.queue : STR(TASK_DEFAULT_QUEUE),
                                 category->name, err);
}

static int put_category(struct batch *batch, const struct request *request,
                        struct category *category, struct err *err)
{
    TRY(check_category(batch, category, err));
    TRY(check_reach(batch, request, category, err));
    category->updated_at_us = batch->now_us;
    FAULT_POINT("catalog.put");
    return verbs_of(batch)->category_put(batch->store, category, err);
}

static int create_category(struct batch *batch, struct catalog_request *request)
{
    struct category *category = &request->item.category;

    category->id = uuid7_new(&batch->engine->ids, batch->now_us);
    category->namespace_name = catalog_namespace(&request->base);
    category->created_at_us = batch->now_us;
    return put_category(batch, &request->base, category, &request->base.err);
}

static int update_category(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct category *given = &request->item.category;
    struct category_state *state;
    struct category category;
    bool was_active;

    TRY(categories_get(batch, &request->id, &state, err));
    if (!state || namespace_hides(&request->base, state->row.namespace_name))
        return catalog_no_such(err, "category", &request->id);
    TRY(check_reach(batch, &request->base, &state->row, err));
    category = state->row;
    was_active = category.is_active;
    copy_category(&category, request->base.arena);
    category_take(&category, given, request->set);
    if (str_is(state->row.name, CATEGORY_GENERAL) && !str_eq(category.name, state->row.name))
        return err_set_field(err, ERR_CONFLICT, "name", "jobs without a category are in '"
                             CATEGORY_GENERAL "'; it keeps its name");
    TRY(put_category(batch, &request->base, &category, err));
    *given = category;
    runs_look_soon(batch); /* its windows may have let go of tasks */
    if (was_active || !category.is_active)
        return 0;
    return fire_pass(batch, NULL, &category.id, err);
}

static int delete_category(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct category_state *state;

    TRY(categories_get(batch, &request->id, &state, err));
    if (!state || namespace_hides(&request->base, state->row.namespace_name))
        return catalog_no_such(err, "category", &request->id);
    if (str_is(state->row.name, CATEGORY_GENERAL))
        return err_set(err, ERR_CONFLICT, "jobs without a category are in '" CATEGORY_GENERAL
                       "'; it stays");
    TRY(check_reach(batch, &request->base, &state->row, err));
    return verbs_of(batch)->category_delete(batch->store, &request->id, err);
}

/* ---- jobs ---- */

static int find_category(struct batch *batch, const struct catalog_request *request,
                         struct job *job, struct err *err)
{
    struct category_state *category;

    if (!(request->set & JOB_FIELD_CATEGORY) && request->op == CATALOG_UPDATE)
        return 0;
    job->category_id = (struct uuid){{0}};
    if (!request->category.data)
        return 0;
    TRY(categories_find(batch, catalog_namespace(&request->base), request->category, &category,
                        err));
    if (!category)
        return err_set_field(err, ERR_INVALID, "category", "there is no category '" STR_FMT "'",
                             STR_ARG(request->category));
    job->category_id = category->row.id;
    return 0;
}

/* As a whole, and whether its runs could be made. */
static int check_job(struct batch *batch, const struct request *request, const struct job *job,
                     struct err *err)
{
    struct task_input *input = TRY_MEMORY(arena_alloc(&batch->arena, sizeof *input));
    struct category_state *category;

    TRY(job_check(job, err));
    TRY(category_of_job(batch, job, &category, err));
    TRY(job_task_input(job, &category->row, NULL, STR_NONE, batch->engine->settings, &batch->arena,
                       input, err));
    if (!queue_lives_here(batch->engine, input->spec.queue))
        return err_set_field(err, ERR_INVALID, "queue", "the queue '" STR_FMT "' lives in another "
                             "store than the jobs; choose one of the main store",
                             STR_ARG(input->spec.queue));
    if (!request->caller || !request->caller->principal)
        return 0;
    if (input->spec.callback.url.data)
        TRY(callback_check_right(batch->engine->settings, request->caller->principal, err));
    return principal_check_work(request->caller->principal, input->spec.queue, input->spec.type,
                                category->row.name, err);
}

/* Who lets a job be fired may use what it uses. */
int catalog_check_work(struct batch *batch, const struct request *request,
                       const struct batch_job *known, struct err *err)
{
    return check_job(batch, request, known->job, err);
}

/* Runs are read by the maker of their job, who is the one that changed it last. */
static int check_take(const struct catalog_request *request, const struct job *job,
                      struct err *err)
{
    if (request->op != CATALOG_UPDATE || !request->base.caller ||
        !request->base.caller->principal ||
        request->set & JOB_FIELD_PAYLOAD) /* what it replaces it does not read */
        return 0;
    return principal_check_take(request->base.caller->principal, job->principal, "this job", err);
}

static int put_job(struct batch *batch, const struct catalog_request *request, struct job *job,
                   struct err *err)
{
    TRY(find_category(batch, request, job, err));
    TRY(check_job(batch, &request->base, job, err));
    TRY(check_take(request, job, err));
    job->principal = request_maker(&request->base);
    job->updated_at_us = batch->now_us;
    FAULT_POINT("catalog.put");
    return verbs_of(batch)->job_put(batch->store, job, err);
}

static int create_job(struct batch *batch, struct catalog_request *request)
{
    struct job *job = &request->item.job;

    job->id = uuid7_new(&batch->engine->ids, batch->now_us);
    job->namespace_name = catalog_namespace(&request->base);
    job->created_at_us = batch->now_us;
    job->deleted_at_us = 0;
    job->last_task_id = (struct uuid){{0}};
    job->last_status = STATUS_NONE;
    job->last_ended_at_us = 0;
    return put_job(batch, request, job, &request->base.err);
}

/* What others of this batch see of it from now on; its ends are another matter. */
static void renew_known(struct job *known, const struct job *job)
{
    struct job before = *known;

    *known = *job;
    known->last_task_id = before.last_task_id;
    known->last_status = before.last_status;
    known->last_ended_at_us = before.last_ended_at_us;
}

static int update_job(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct batch_job *known;
    struct job *job;
    int was_active, is_active;

    TRY(batch_settle(batch, err));
    TRY(catalog_job(batch, &request->base, &request->id, &known, err));
    TRY(jobs_flush(batch, err));
    TRY(verbs_of(batch)->jobs_load(batch->store, &request->id, 1, false, request->base.arena, &job,
                                   err));
    TRY_MEMORY(job && !request->base.arena->failed);
    was_active = job_is_active(batch, job, err);
    if (was_active < 0)
        return was_active;
    job_take(job, &request->item.job, request->set);
    if (request->set & JOB_FIELD_PAYLOAD)
        TRY(triggers_check_job(batch, job, err));
    TRY(put_job(batch, request, job, err));
    renew_known(known->job, job);
    request->item.job = *job;
    is_active = job_is_active(batch, job, err);
    if (is_active < 0 || (request->set & JOB_FIELD_MAX_CONCURRENT &&
                          runs_release_slots(batch, known, err) < 0))
        return -(int)err->code;
    return is_active && !was_active ? fire_pass(batch, &job->id, NULL, err) : 0;
}

/* Runs that have begun continue, those that still wait are cancelled; no job waits for it any
 * more. */
static int delete_job(struct batch *batch, struct catalog_request *request)
{
    struct err *err = &request->base.err;
    struct batch_job *known;

    TRY(batch_settle(batch, err));
    TRY(catalog_job(batch, &request->base, &request->id, &known, err));
    TRY(jobs_flush(batch, err));
    FAULT_POINT("catalog.delete");
    TRY(verbs_of(batch)->job_delete(batch->store, &request->id, batch->now_us, err));
    known->job->deleted_at_us = batch->now_us;
    TRY(runs_release_waits(batch, &request->id, NULL, err));
    return runs_cancel_waiting(batch, known, err);
}

/* ---- all of them ---- */

/* A job belongs to the user in created_by, what is planned for it to the user of its job, and a
 * category to no user. */
static int take_owner(struct catalog_request *request)
{
    const struct caller *caller = request->base.caller;
    struct str *owner = &request->item.job.created_by;
    struct err *err = &request->base.err;

    if (!caller || !caller->principal || !caller->principal->user_id.data)
        return 0;
    if (request->kind == CATALOG_CATEGORY)
        return principal_refuse_ownerless(caller->principal, "a category", err);
    if (request->kind != CATALOG_JOB || request->op == CATALOG_DELETE)
        return 0;
    if (request->op == CATALOG_UPDATE && (request->set & JOB_FIELD_CREATED_BY) && !owner->data)
        return err_set_field(err, ERR_FORBIDDEN, "created_by", "this credential cannot give up a "
                             "job of its user");
    TRY(principal_check_user(caller->principal, "created_by", *owner, err));
    if (request->op == CATALOG_CREATE)
        *owner = caller->principal->user_id;
    return 0;
}

static int apply(struct batch *batch, struct catalog_request *request)
{
    static int (*const acts[][3])(struct batch *, struct catalog_request *) = {
        [CATALOG_CATEGORY] = {create_category, update_category, delete_category},
        [CATALOG_JOB] = {create_job, update_job, delete_job}};

    if (request->kind == CATALOG_SCHEDULE)
        return catalog_schedule(batch, request);
    if (request->kind == CATALOG_RECURRING)
        return catalog_recurring(batch, request);
    if (request->kind == CATALOG_DEPENDENCY)
        return catalog_dependency(batch, request);
    return acts[request->kind][request->op](batch, request);
}

/* ---- the audit trail ---- */

static const struct {
    const struct field_table *table;
    const char *word;
    const char *actions[3]; /* by enum catalog_op */
} told[CATALOG_KIND_COUNT] = {
    [CATALOG_CATEGORY] = {&category_table, "category",
                          {"category.create", "category.update", "category.delete"}},
    [CATALOG_JOB] = {&job_table, "job", {"job.create", "job.update", "job.delete"}},
    [CATALOG_SCHEDULE] = {&schedule_table, "schedule",
                          {"schedule.create", "schedule.update", "schedule.delete"}},
    [CATALOG_RECURRING] = {&recurring_table, "recurring",
                           {"recurring.create", "recurring.update", "recurring.delete"}},
    [CATALOG_DEPENDENCY] = {&job_dependency_table, "dependency",
                            {"dependency.create", "dependency.update", "dependency.delete"}},
};

/* The thing as it is stored; NULL when there is none. A copy: what memory has changes with it. */
static int load_before(struct batch *batch, const struct catalog_request *request,
                       const void **before, struct err *err)
{
    struct arena *arena = &batch->arena;
    struct category_state *category;
    struct schedule *schedule;
    struct recurring *recurring;
    struct job *job;

    *before = NULL;
    switch (request->kind) {
    case CATALOG_CATEGORY:
        TRY(categories_get(batch, &request->id, &category, err));
        if (category)
            *before = &category->row;
        break;
    case CATALOG_JOB:
        TRY(verbs_of(batch)->jobs_load(batch->store, &request->id, 1, false, arena, &job, err));
        *before = job;
        break;
    case CATALOG_SCHEDULE:
        TRY(verbs_of(batch)->schedules_load(batch->store, &request->id, 1, arena, &schedule, err));
        *before = schedule;
        break;
    case CATALOG_RECURRING:
        TRY(verbs_of(batch)->recurring_load(batch->store, &request->id, 1, arena, &recurring,
                                            err));
        *before = recurring;
        break;
    default:
        *before = catalog_find_dependency(batch, request);
    }
    return 0;
}

/* Before and after are texts at once: memory and store are about to change. */
static int apply_told(struct batch *batch, struct catalog_request *request)
{
    const struct field_table *table = told[request->kind].table;
    struct err *err = &request->base.err;
    const void *before = NULL;
    struct str change = STR_NONE;
    void *copy = NULL;

    if (!request->base.caller)
        return apply(batch, request);
    TRY(take_owner(request));
    if (request->op != CATALOG_CREATE)
        TRY(load_before(batch, request, &before, err));
    if (before && request->op == CATALOG_DELETE)
        change = store_difference(table, before, NULL, &batch->arena);
    if (before && request->op == CATALOG_UPDATE) {
        copy = TRY_MEMORY(arena_alloc(&batch->arena, table->bytes));
        memcpy(copy, before, table->bytes);
        if (request->kind == CATALOG_CATEGORY) /* its texts go with what memory has of it */
            copy_category(copy, &batch->arena);
    }
    TRY(apply(batch, request));
    if (request->op != CATALOG_DELETE)
        change = store_difference(table, copy, &request->item, &batch->arena);
    return trail_note_id(batch, &request->base, told[request->kind].actions[request->op],
                         told[request->kind].word,
                         request->op == CATALOG_CREATE ? (const struct uuid *)&request->item
                                                       : &request->id,
                         change, err);
}

/* Whom its runs call, if no node and no worker has it. */
static int look_for_service(struct batch *batch, struct catalog_request *request)
{
    const struct job *job = &request->item.job;
    struct category_state *category;
    struct str service;

    request->unknown_service = STR_NONE;
    if (request->kind != CATALOG_JOB || request->op == CATALOG_DELETE ||
        (!job->target_service.data && !job->target_method.data))
        return 0;
    TRY(category_of_job(batch, job, &category, &request->base.err));
    service = job->target_service.data ? job->target_service : category->rules.service;
    if (service.data && !unknown_services_has(batch->engine, service))
        request->unknown_service = arena_str(request->base.arena, service);
    return 0;
}

/* The catalog in memory is read again after it, also within this batch. */
int catalog_apply(struct batch *batch, struct request *base)
{
    struct catalog_request *request = (struct catalog_request *)base;
    struct err *err = &request->base.err;
    int rc;

    if (!catalog_here(batch->engine))
        return err_set(err, ERR_INVALID, "nothing can be planned here");
    TRY(verbs_of(batch)->lock(batch->store, err));
    batch->wrote = true;
    catalog_forget(batch->engine);
    rc = catalog_look(batch, err);
    if (rc == 0)
        rc = apply_told(batch, request);
    catalog_forget(batch->engine);
    if (rc < 0)
        return rc;
    batch->news.catalog_changed = true;
    TRY(look_for_service(batch, request));
    if (request->kind == CATALOG_CATEGORY)
        claim_heat_categories(batch);
    chore_soon(batch->engine, CHORE_FIRE, 0); /* checked again after this batch */
    return 0;
}
