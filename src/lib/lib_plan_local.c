/* Planning on the embedded side: requests to the queue and looks by a reader, with the same bodies
 * and replies as the HTTP API has (scheduler/catalog_*.h). Any thread. */
#include "lib/lib_int.h"

#include "base/clock.h"
#include "core/render.h"
#include "view/catalog_body.h"
#include "view/catalog_page.h"

#define REPLY_BYTES_MAX ((size_t)64 << 20)

/* One call with what it needs from begin to end. */
struct local_plan {
    struct pd *pd;
    const struct plan_call *call;
    struct lib_reader reader;
    struct arena *arena;  /* the caller's */
    struct arena scratch; /* of the reader; a list resets it */
    struct catalog_source source;
    struct buf out;
};

static int find(struct local_plan *plan, enum catalog_kind kind, struct str text, struct uuid *id,
                struct err *err)
{
    return catalog_find(&plan->source, kind, text, id, err);
}

static int find_job(struct local_plan *plan, struct uuid *id, struct err *err)
{
    const void *job;
    int rc = find(plan, CATALOG_JOB, plan->call->job, id, err);

    return rc < 0 ? rc : catalog_load(&plan->source, CATALOG_JOB, id, &job, err);
}

static int load(struct local_plan *plan, const void **item, struct err *err)
{
    struct uuid id;
    int rc = find(plan, plan->call->kind, plan->call->id, &id, err);

    return rc < 0 ? rc : catalog_load(&plan->source, plan->call->kind, &id, item, err);
}

static int submit(struct local_plan *plan, struct catalog_request *request, struct err *err)
{
    request->base.kind = REQUEST_CATALOG;
    request->base.arena = plan->arena;
    return lib_local_call(plan->pd, &request->base, err);
}

static const void *item_of(const struct catalog_request *request)
{
    return &request->item; /* a union: every kind begins where it does */
}

static int create(struct local_plan *plan, struct err *err)
{
    struct catalog_request request = {.kind = plan->call->kind, .op = CATALOG_CREATE};
    struct uuid job_id;

    if (plan->call->job.data)
        TRY(find_job(plan, &job_id, err));
    TRY(catalog_body_read(&request, plan->call->job.data ? &job_id : NULL, plan->call->json,
                          plan->arena, err));
    TRY(submit(plan, &request, err));
    return catalog_write(&plan->source, request.kind, item_of(&request), &plan->out, err);
}

static int update(struct local_plan *plan, struct err *err)
{
    struct catalog_request request = {.kind = plan->call->kind, .op = CATALOG_UPDATE};

    TRY(find(plan, request.kind, plan->call->id, &request.id, err));
    TRY(catalog_body_read(&request, NULL, plan->call->json, plan->arena, err));
    TRY(submit(plan, &request, err));
    return catalog_write(&plan->source, request.kind, item_of(&request), &plan->out, err);
}

static int delete_one(struct local_plan *plan, struct err *err)
{
    struct catalog_request request = {.kind = plan->call->kind, .op = CATALOG_DELETE};
    struct uuid job_id;
    int rc = find(plan, request.kind, plan->call->id, &request.id, err);

    if (rc == 0 && request.kind == CATALOG_DEPENDENCY)
        rc = find_job(plan, &job_id, err);
    if (rc == 0 && request.kind == CATALOG_DEPENDENCY)
        rc = catalog_check_dependency(&plan->source, &job_id, &request.id, err);
    return rc < 0 ? rc : submit(plan, &request, err);
}

static int get(struct local_plan *plan, struct err *err)
{
    const void *item;
    int rc = load(plan, &item, err);

    return rc < 0 ? rc : catalog_write(&plan->source, plan->call->kind, item, &plan->out, err);
}

/* The filters of a list are those of the query, as members. */
static int set_filters(struct local_plan *plan, struct catalog_page *page, struct err *err)
{
    struct json_member member;
    struct json_iter iter;

    json_begin(plan->call->json, &iter);
    while (json_next_member(&iter, &member)) {
        struct str value = member.value;

        if (json_kind(value) == JSON_NULL ||
            (page->kind == CATALOG_DEPENDENCY && json_key_is(member.key, STR("job_id"))))
            continue;
        if (json_kind(value) == JSON_STRING)
            value = json_string(value, plan->arena);
        TRY_MEMORY(value.data);
        TRY(catalog_page_set(page, member.key, value, err));
    }
    return 0;
}

static int list(struct local_plan *plan, struct err *err)
{
    struct catalog_page page;

    catalog_page_init(&page, plan->call->kind);
    TRY(set_filters(plan, &page, err));
    if (page.kind == CATALOG_DEPENDENCY)
        TRY(find_job(plan, &page.filter.job_id, err));
    return catalog_page_write(&page, &plan->source, &plan->out, err);
}

static int run(struct local_plan *plan, struct err *err)
{
    struct job_run_request request = {.base = {.kind = REQUEST_JOB_RUN, .arena = plan->arena},
                                      .actor = ACTOR_API};

    TRY(find(plan, CATALOG_JOB, plan->call->id, &request.job_id, err));
    TRY(catalog_body_run(plan->call->json, &request.payload, err));
    TRY(lib_local_call(plan->pd, &request.base, err));
    render_task(&plan->out, request.task, NULL);
    return 0;
}

static int next(struct local_plan *plan, struct err *err)
{
    struct upcoming_wish wish = {.count = plan->call->count, .from_us = plan->call->from_us};
    const void *item;

    TRY(load(plan, &item, err));
    return catalog_write_upcoming(&plan->source, plan->call->kind, item, &wish, &plan->out, err);
}

static int answer(struct local_plan *plan, struct err *err)
{
    static int (*const steps[])(struct local_plan *plan, struct err *err) = {
        [PLAN_CREATE] = create, [PLAN_GET] = get, [PLAN_LIST] = list, [PLAN_UPDATE] = update,
        [PLAN_DELETE] = delete_one, [PLAN_RUN] = run, [PLAN_NEXT] = next};
    struct lib_reader *reader = &plan->reader;

    plan->source = (struct catalog_source){
        .store = reader->store,
        .reader = reader->reader,
        .namespace_name = reader->namespace_name,
        .zones = reader->zones,
        .now_us = reader->store->shared ? engine_now_us(reader->engine) : clock_wall_us(),
        .arena = &plan->scratch};
    return steps[plan->call->op](plan, err);
}

int lib_local_plan(struct pd *pd, const struct plan_call *call, struct arena *arena,
                   struct str *reply, struct err *err)
{
    struct local_plan plan = {.pd = pd,
                              .call = call,
                              .arena = arena,
                              .scratch = ARENA_INIT(REPLY_BYTES_MAX),
                              .out = BUF_INIT(REPLY_BYTES_MAX)};
    int rc;

    TRY(lib_local_reader_take(pd, &plan.reader, err));
    rc = answer(&plan, err);
    lib_local_reader_give(pd, &plan.reader);
    if (rc == 0 && plan.out.failed)
        rc = err_set(err, ERR_TOO_LARGE, "the answer is too large; ask for less at a time");
    if (rc == 0 && plan.out.len) {
        *reply = arena_str(arena, buf_view(&plan.out));
        rc = reply->data ? 0 : err_no_memory(err);
    }
    buf_deinit(&plan.out);
    arena_deinit(&plan.scratch);
    return rc;
}
