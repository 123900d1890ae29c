/* Requests about what people plan with, for all kinds of it. Reads go to a reader; writes look up a
 * name first where the path has one, then go to the queue, and are answered with what it made of
 * them. Loop thread, but for the read_ functions. */
#include "server/catalog_call.h"

#include "core/bounds.h"
#include "core/render.h"
#include "view/catalog_body.h"
#include "view/catalog_page.h"
#include "server/body.h"

struct catalog_call {
    enum catalog_kind kind;
    struct catalog_request request;
    struct catalog_page page;
    struct uuid job_id; /* the one of the path, where it is beneath a job */
    struct upcoming_wish wish;
    struct schedule schedule; /* of a preview, so below */
    struct recurring recurring;
    struct job_run_request run;
    bool with_deleted; /* one job, also when it was deleted */
};

struct catalog_source catalog_call_source(struct api_call *call, struct store_reader *reader,
                                          struct arena *scratch)
{
    struct server *server = call->server;

    return (struct catalog_source){.store = server->store,
                                   .reader = reader,
                                   .zones = server->zones,
                                   .settings = server->settings,
                                   .now_us = server->store->shared ? engine_now_us(server->engine)
                                                                   : clock_wall_us(),
                                   .arena = scratch};
}

static struct catalog_call *begin(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = arena_alloc(call->arena, sizeof *ours);

    if (!ours) {
        err_set(&call->err, ERR_MEMORY, "there is not enough memory; try again");
        call_fail(call);
        return NULL;
    }
    ours->kind = ours->request.kind = kind;
    call->ctx = ours;
    return ours;
}

/* ---- lists ---- */

static int parse_page(struct api_call *call, struct catalog_page *page)
{
    const char *const *names = call->route->parameters;
    int rc = call_limit(call, BOUND_LIST_LIMIT_DEFAULT, BOUND_LIST_LIMIT, &page->filter.limit);

    for (int i = 0; rc == 0 && i < ROUTE_PARAMETERS_MAX && names[i]; i++) {
        struct str value = call_parameter(call, names[i]);

        if (strcmp(names[i], "next_before") == 0)
            rc = call_parameter_time(call, names[i], &page->filter.next_before_us);
        else if (value.data && strcmp(names[i], "limit") != 0)
            rc = catalog_page_set(page, str_of(names[i]), value, &call->err);
    }
    return rc;
}

static int read_list(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return catalog_page_write(&ours->page, &source, &call->out, &call->err);
}

static void list_by(struct api_call *call, enum catalog_kind kind,
                    int (*read)(struct api_call *call, struct store_reader *reader,
                                struct arena *scratch))
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    catalog_page_init(&ours->page, kind);
    if (parse_page(call, &ours->page) < 0)
        call_fail(call);
    else
        call_read(call, read);
}

void catalog_call_list(struct api_call *call, enum catalog_kind kind)
{
    list_by(call, kind, read_list);
}

/* ---- one ---- */

static int load(struct api_call *call, const struct catalog_source *source, enum catalog_kind kind,
                const void **item)
{
    struct uuid id;
    int rc = catalog_find(source, kind, call->name, &id, &call->err);

    return rc < 0 ? rc : catalog_load(source, kind, &id, item, &call->err);
}

int catalog_call_with_deleted(struct api_call *call, bool *with_deleted)
{
    struct str text = call_parameter(call, "with_deleted");

    *with_deleted = str_is(text, "true");
    if (!text.data || *with_deleted || str_is(text, "false"))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "with_deleted",
                         "'with_deleted' must be true or false");
}

static int read_one(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;
    int rc;

    source.with_deleted = ours->with_deleted;
    rc = load(call, &source, ours->kind, &item);
    return rc < 0 ? rc : catalog_write(&source, ours->kind, item, &call->out, &call->err);
}

void catalog_call_get(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    if (kind == CATALOG_JOB && catalog_call_with_deleted(call, &ours->with_deleted) < 0)
        call_fail(call);
    else
        call_read(call, read_one);
}

/* ---- making, changing, removing ---- */

static const void *item_of(const struct catalog_request *request)
{
    return &request->item; /* a union: every kind begins where it does */
}

static int status_of(const struct catalog_request *request)
{
    return request->op == CATALOG_CREATE ? 201 : 200;
}

static int read_written(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    call->status = status_of(&ours->request);
    return catalog_write(&source, ours->kind, item_of(&ours->request), &call->out, &call->err);
}

static void add_location(struct api_call *call, const struct catalog_request *request)
{
    static const char *const paths[] = {[CATALOG_CATEGORY] = "/v1/categories/",
                                        [CATALOG_JOB] = "/v1/jobs/",
                                        [CATALOG_SCHEDULE] = "/v1/schedules/",
                                        [CATALOG_RECURRING] = "/v1/recurring/"};
    char location[32 + UUID_TEXT_BYTES];
    char id[UUID_TEXT_BYTES];

    if (request->op != CATALOG_CREATE || request->kind == CATALOG_DEPENDENCY)
        return;
    uuid_format(item_of(request), id); /* the id stands first, catalog_page.c checks it */
    snprintf(location, sizeof location, "%s%s", paths[request->kind], id);
    http_reply_header(call->exchange, "Location", location);
}

/* A job's reply also shows what others decide of it; all else is what the queue gave back. */
static void written(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    add_location(call, &ours->request);
    if (ours->kind == CATALOG_JOB)
        call_read(call, read_written);
    else if (read_written(call, NULL, NULL) == 0)
        call_reply(call, call->status);
    else
        call_fail(call);
}

static void submit(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    call_submit(call, &ours->request.base, REQUEST_CATALOG,
                ours->request.op == CATALOG_DELETE ? call_reply_empty : written);
}

static int parse_body(struct api_call *call, const struct uuid *job_id)
{
    struct catalog_call *ours = call->ctx;
    struct str object;
    int rc = call_object(call, &object);

    return rc < 0 ? rc : catalog_body_read(&ours->request, job_id, object, call->arena, &call->err);
}

void catalog_call_create(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    ours->request.op = CATALOG_CREATE;
    if (parse_body(call, NULL) < 0)
        call_fail(call);
    else
        submit(call);
}

static int read_id(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return catalog_find(&source, ours->kind, call->name, &ours->request.id, &call->err);
}

/* A name is looked up first. */
static void submit_named(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    if (uuid_parse(call->name, &ours->request.id))
        submit(call);
    else
        call_look(call, read_id, submit);
}

void catalog_call_update(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    ours->request.op = CATALOG_UPDATE;
    if (parse_body(call, NULL) < 0)
        call_fail(call);
    else
        submit_named(call);
}

void catalog_call_delete(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    ours->request.op = CATALOG_DELETE;
    submit_named(call);
}

void catalog_call_activate(struct api_call *call, enum catalog_kind kind, bool active)
{
    struct catalog_call *ours = begin(call, kind);
    struct str object;

    if (!ours)
        return;
    if (call_object(call, &object) < 0 || body_parse(object, NULL, 0, &call->err) < 0) {
        call_fail(call);
        return;
    }
    ours->request.op = CATALOG_UPDATE;
    if (kind == CATALOG_SCHEDULE) {
        ours->request.set = SCHEDULE_FIELD_IS_ACTIVE;
        ours->request.item.schedule.is_active = active;
    } else {
        ours->request.set = RECURRING_FIELD_IS_ACTIVE;
        ours->request.item.recurring.is_active = active;
    }
    submit_named(call);
}

/* ---- beneath a job ---- */

static int find_job(struct api_call *call, const struct catalog_source *source)
{
    struct catalog_call *ours = call->ctx;
    const void *job;
    int rc = load(call, source, CATALOG_JOB, &job);

    if (rc == 0)
        ours->job_id = ((const struct job *)job)->id;
    return rc;
}

/* A list of an unknown job is 404, not empty. */
static int read_list_of_job(struct api_call *call, struct store_reader *reader,
                            struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    if (find_job(call, &source) < 0)
        return -(int)call->err.code;
    ours->page.filter.job_id = ours->job_id;
    return catalog_page_write(&ours->page, &source, &call->out, &call->err);
}

void catalog_call_list_of_job(struct api_call *call, enum catalog_kind kind)
{
    list_by(call, kind, read_list_of_job);
}

static int read_job(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return find_job(call, &source);
}

static void create_of_job(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    if (parse_body(call, &ours->job_id) < 0)
        call_fail(call);
    else
        submit(call);
}

void catalog_call_create_of_job(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    ours->request.op = CATALOG_CREATE;
    call_look(call, read_job, create_of_job);
}

static int read_dependency(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    struct uuid *id = &ours->request.id;
    int rc = find_job(call, &source);

    if (rc == 0)
        rc = catalog_find(&source, CATALOG_DEPENDENCY, call->second_name, id, &call->err);
    if (rc == 0)
        rc = catalog_check_dependency(&source, &ours->job_id, id, &call->err);
    return rc;
}

void catalog_call_delete_dependency(struct api_call *call)
{
    struct catalog_call *ours = begin(call, CATALOG_DEPENDENCY);

    if (!ours)
        return;
    ours->request.op = CATALOG_DELETE;
    call_look(call, read_dependency, submit);
}

/* ---- runs ---- */

static void ran(struct api_call *call)
{
    const struct job_run_request *run = &((struct catalog_call *)call->ctx)->run;
    struct render_extra extra = {.single = true};
    char location[16 + UUID_TEXT_BYTES] = "/v1/tasks/";

    uuid_format(&run->task->id, location + strlen(location));
    http_reply_header(call->exchange, "Location", location);
    call->version = run->task->version;
    render_task(&call->out, run->task, &extra);
    call_reply(call, 201);
}

static void submit_run(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    call_submit(call, &ours->run.base, REQUEST_JOB_RUN, ran);
}

static int read_run(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;

    if (load(call, &source, ours->kind, &item) < 0)
        return -(int)call->err.code;
    if (ours->kind == CATALOG_JOB)
        ours->run.job_id = ((const struct job *)item)->id;
    else if (ours->kind == CATALOG_SCHEDULE)
        ours->run.job_id = ((const struct schedule *)item)->job_id;
    else
        ours->run.job_id = ((const struct recurring *)item)->template_job_id;
    return 0;
}

void catalog_call_run(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);
    struct str object;

    if (!ours)
        return;
    ours->run.actor = ACTOR_API;
    ours->run.correlation_id = call->request_id;
    api_take_trace(call, &ours->run.traceparent, &ours->run.tracestate);
    if (call_object(call, &object) < 0 ||
        catalog_body_run(object, &ours->run.payload, &call->err) < 0)
        call_fail(call);
    else if (kind == CATALOG_JOB && uuid_parse(call->name, &ours->run.job_id))
        submit_run(call);
    else
        call_look(call, read_run, submit_run);
}

/* ---- when it fires ---- */

static int parse_wish(struct api_call *call, struct upcoming_wish *wish)
{
    int rc;

    wish->count = UPCOMING_COUNT_DEFAULT;
    rc = call_parameter_int(call, "count", 1, UPCOMING_COUNT_MAX, &wish->count);
    return rc < 0 ? rc : call_parameter_time(call, "from", &wish->from_us);
}

static int read_upcoming(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;
    int rc = load(call, &source, ours->kind, &item);

    if (rc < 0)
        return rc;
    return catalog_write_upcoming(&source, ours->kind, item, &ours->wish, &call->out, &call->err);
}

void catalog_call_upcoming(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    if (parse_wish(call, &ours->wish) < 0)
        call_fail(call);
    else
        call_read(call, read_upcoming);
}

static int read_preview(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    void *item = &ours->schedule;

    if (ours->kind == CATALOG_RECURRING)
        item = &ours->recurring;
    return catalog_write_preview(&source, ours->kind, item, &ours->wish, &call->out, &call->err);
}

static int parse_preview(struct api_call *call, struct catalog_call *ours)
{
    struct preview_wish wish = {.count = UPCOMING_COUNT_DEFAULT};
    struct str object;
    uint64_t set;
    int rc = call_object(call, &object);

    if (rc < 0)
        return rc;
    if (ours->kind == CATALOG_RECURRING) {
        recurring_init(&ours->recurring);
        rc = recurring_read(object, call->arena, &ours->recurring, &set, &call->err);
        return rc < 0 ? rc : parse_wish(call, &ours->wish);
    }
    rc = catalog_body_preview(object, call->arena, &ours->schedule, &wish, &call->err);
    ours->wish.count = wish.count > UPCOMING_COUNT_MAX ? UPCOMING_COUNT_MAX : wish.count;
    ours->wish.from_us = wish.from_us;
    return rc;
}

/* Nothing is read from the store, but zones are files and take their time: a reader's work. */
void catalog_call_preview(struct api_call *call, enum catalog_kind kind)
{
    struct catalog_call *ours = begin(call, kind);

    if (!ours)
        return;
    if (parse_preview(call, ours) < 0)
        call_fail(call);
    else
        call_read(call, read_preview);
}
