/* Requests about what people plan with, for all kinds of it. Reads go to a reader; writes look up a
 * name first where the path has one, then go to the queue, and are answered with what it made of
 * them. Loop thread, but for the read_ functions. */
#include "server/catalog_call.h"
#include "server/visibility.h"

#include "core/render.h"
#include "view/catalog_body.h"
#include "view/catalog_page.h"
#include "server/body.h"
#include "server/routes/api_tasks.h"

#define STATS_SINCE_US (7 * 24 * 3600 * CLOCK_SECOND_US) /* where nothing else is asked for */

struct catalog_call {
    enum catalog_kind kind;
    struct catalog_request request;
    struct catalog_page page;
    struct uuid job_id; /* the one of the path, where it is beneath a job */
    struct upcoming_wish wish;
    struct schedule schedule; /* of a preview, here and below */
    struct recurring recurring;
    struct job_run_request run;
    bool with_deleted; /* one job, also when it was deleted */
};

struct catalog_source catalog_call_source(struct api_call *call, struct store_reader *reader,
                                          struct arena *scratch)
{
    struct server *server = call->server;

    return (struct catalog_source){.store = server->store,
                                   .namespace_name = call_namespace(call),
                                   .reader = reader,
                                   .zones = server->zones,
                                   .settings = server->settings,
                                   .redacted = !call_sees_content(call),
                                   .principal = call->principal,
                                   .now_us = server->store->shared ? engine_now_us(server->engine)
                                                                   : clock_wall_us(),
                                   .arena = scratch};
}

#define BEGIN(call)                                                          \
    ({                                                                       \
        struct catalog_call *new = CALL_NEW((call), sizeof *new);            \
                                                                             \
        new->kind = new->request.kind = (enum catalog_kind)(call)->route->what; \
        new;                                                                 \
    })

/* ---- lists ---- */

static int parse_page(struct api_call *call, struct catalog_page *page)
{
    const char *const *names = call->route->parameters;

    TRY(call_list_limit(call, &page->filter.limit));
    for (int i = 0; i < ROUTE_PARAMETERS_MAX && names[i]; i++) {
        struct str value = call_parameter(call, names[i]);

        if (strcmp(names[i], "next_before") == 0)
            TRY(call_parameter_time(call, names[i], &page->filter.next_before_us));
        else if (value.data && strcmp(names[i], "limit") != 0)
            TRY(catalog_page_set(page, str_of(names[i]), value, &call->err));
    }
    return 0;
}

static int read_list(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return catalog_page_write(&ours->page, &source, &call->out, &call->err);
}

static int list_by(struct api_call *call, call_reading *read)
{
    struct catalog_call *ours = BEGIN(call);

    catalog_page_init(&ours->page, ours->kind);
    TRY(parse_page(call, &ours->page));
    return call_read(call, read);
}

int api_plan_list(struct api_call *call)
{
    return list_by(call, read_list);
}

/* ---- one ---- */

static int load(struct api_call *call, const struct catalog_source *source, enum catalog_kind kind,
                const void **item)
{
    struct uuid id;

    TRY(catalog_find(source, kind, call->name, &id, &call->err));
    return catalog_load(source, kind, &id, item, &call->err);
}

static int read_one(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;

    source.with_deleted = ours->with_deleted;
    TRY(load(call, &source, ours->kind, &item));
    return catalog_write(&source, ours->kind, item, &call->out, &call->err);
}

int api_plan_get(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    if (ours->kind == CATALOG_JOB)
        TRY(call_parameter_bool(call, "with_deleted", &ours->with_deleted));
    return call_read(call, read_one);
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

/* It is taken all the same: the service may be configured before its first run. */
static void add_warning(struct api_call *call, struct str service)
{
    struct str text = arena_format(call->arena, "Unknown target service: " STR_FMT "; until a node "
                                   "or a worker has it, runs of this job end as failed",
                                   STR_ARG(service));

    call->out.len--; /* the object is opened again */
    buf_text(&call->out, ",\"warnings\":[");
    json_write_string(&call->out, text);
    buf_text(&call->out, "]}");
}

static int read_written(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    call->status = status_of(&ours->request);
    TRY(catalog_write(&source, ours->kind, item_of(&ours->request), &call->out, &call->err));
    if (ours->request.unknown_service)
        add_warning(call, ours->request.item.job.target_service);
    return 0;
}

static void add_location(struct api_call *call, const struct catalog_request *request)
{
    static const char *const paths[] = {[CATALOG_CATEGORY] = "/v1/categories/",
                                        [CATALOG_JOB] = "/v1/jobs/",
                                        [CATALOG_SCHEDULE] = "/v1/schedules/",
                                        [CATALOG_RECURRING] = "/v1/recurring/"};

    if (request->op == CATALOG_CREATE && request->kind != CATALOG_DEPENDENCY)
        call_location(call, paths[request->kind], item_of(request)); /* its id stands first */
}

/* A job's reply also shows what others decide of it; all else is what the queue gave back. */
static int written(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    add_location(call, &ours->request);
    if (ours->kind == CATALOG_JOB)
        return call_read(call, read_written);
    TRY(read_written(call, NULL, NULL));
    return call_reply(call, call->status);
}

static int submit(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    return call_submit(call, &ours->request.base, REQUEST_CATALOG,
                       ours->request.op == CATALOG_DELETE ? call_reply_empty : written);
}

static int parse_body(struct api_call *call, const struct uuid *job_id)
{
    struct catalog_call *ours = call->ctx;
    struct str object;

    TRY(call_object(call, &object));
    return catalog_body_read(&ours->request, job_id, object, call->arena, &call->err);
}

int api_plan_create(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    ours->request.op = CATALOG_CREATE;
    TRY(parse_body(call, NULL));
    return submit(call);
}

static int read_id(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return catalog_find(&source, ours->kind, call->name, &ours->request.id, &call->err);
}

/* A name is looked up first. */
static int submit_named(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    if (uuid_parse(call->name, &ours->request.id))
        return submit(call);
    return call_look(call, read_id, submit);
}

int api_plan_update(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    ours->request.op = CATALOG_UPDATE;
    TRY(parse_body(call, NULL));
    return submit_named(call);
}

int api_plan_delete(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    ours->request.op = CATALOG_DELETE;
    return submit_named(call);
}

static int activate(struct api_call *call, bool active)
{
    struct catalog_call *ours = BEGIN(call);
    struct str object;

    TRY(call_object(call, &object));
    TRY(body_parse(object, NULL, 0, &call->err));
    ours->request.op = CATALOG_UPDATE;
    if (ours->kind == CATALOG_SCHEDULE) {
        ours->request.set = SCHEDULE_FIELD_IS_ACTIVE;
        ours->request.item.schedule.is_active = active;
    } else {
        ours->request.set = RECURRING_FIELD_IS_ACTIVE;
        ours->request.item.recurring.is_active = active;
    }
    return submit_named(call);
}

int api_plan_pause(struct api_call *call)
{
    return activate(call, false);
}

int api_plan_resume(struct api_call *call)
{
    return activate(call, true);
}

/* ---- beneath a job ---- */

static int find_job(struct api_call *call, const struct catalog_source *source)
{
    struct catalog_call *ours = call->ctx;
    const void *job;

    TRY(load(call, source, CATALOG_JOB, &job));
    ours->job_id = ((const struct job *)job)->id;
    return 0;
}

/* A list of an unknown job is 404, not empty. */
static int read_list_of_job(struct api_call *call, struct store_reader *reader,
                            struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    TRY(find_job(call, &source));
    ours->page.filter.job_id = ours->job_id;
    return catalog_page_write(&ours->page, &source, &call->out, &call->err);
}

int api_plan_list_of_job(struct api_call *call)
{
    return list_by(call, read_list_of_job);
}

static int read_job(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_source source = catalog_call_source(call, reader, scratch);

    return find_job(call, &source);
}

static int create_of_job(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    TRY(parse_body(call, &ours->job_id));
    return submit(call);
}

int api_plan_create_of_job(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    ours->request.op = CATALOG_CREATE;
    return call_look(call, read_job, create_of_job);
}

static int read_dependency(struct api_call *call, struct store_reader *reader,
                           struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    struct uuid *id = &ours->request.id;

    TRY(find_job(call, &source));
    TRY(catalog_find(&source, CATALOG_DEPENDENCY, call->second_name, id, &call->err));
    return catalog_check_dependency(&source, &ours->job_id, id, &call->err);
}

int api_dependency_delete(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    ours->request.op = CATALOG_DELETE;
    return call_look(call, read_dependency, submit);
}

/* ---- runs ---- */

static int ran(struct api_call *call)
{
    const struct job_run_request *run = &((struct catalog_call *)call->ctx)->run;
    struct render_extra extra = {.single = true, .redacted = !call_sees_content(call)};

    call_location(call, "/v1/tasks/", &run->task->id);
    call->version = run->task->version;
    render_task(&call->out, run->task, &extra);
    return call_reply(call, 201);
}

static int submit_run(struct api_call *call)
{
    struct catalog_call *ours = call->ctx;

    return call_submit(call, &ours->run.base, REQUEST_JOB_RUN, ran);
}

static int read_run(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;

    TRY(load(call, &source, ours->kind, &item));
    if (ours->kind == CATALOG_JOB)
        ours->run.job_id = ((const struct job *)item)->id;
    else if (ours->kind == CATALOG_SCHEDULE)
        ours->run.job_id = ((const struct schedule *)item)->job_id;
    else
        ours->run.job_id = ((const struct recurring *)item)->template_job_id;
    return 0;
}

int api_plan_run(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);
    struct str object;

    ours->run.actor = ACTOR_API;
    ours->run.correlation_id = call->request_id;
    api_take_trace(call, &ours->run.traceparent, &ours->run.tracestate);
    TRY(call_object(call, &object));
    TRY(catalog_body_run(object, &ours->run.payload, &call->err));
    if (ours->kind == CATALOG_JOB && uuid_parse(call->name, &ours->run.job_id))
        return submit_run(call);
    return call_look(call, read_run, submit_run);
}

/* ---- when it fires ---- */

static int parse_wish(struct api_call *call, struct upcoming_wish *wish)
{
    wish->count = UPCOMING_COUNT_DEFAULT;
    TRY(call_parameter_int(call, "count", 1, UPCOMING_COUNT_MAX, &wish->count));
    return call_parameter_time(call, "from", &wish->from_us);
}

static int read_upcoming(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    const void *item;

    TRY(load(call, &source, ours->kind, &item));
    return catalog_write_upcoming(&source, ours->kind, item, &ours->wish, &call->out, &call->err);
}

int api_plan_upcoming(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    TRY(parse_wish(call, &ours->wish));
    return call_read(call, read_upcoming);
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

    TRY(call_object(call, &object));
    if (ours->kind == CATALOG_RECURRING) {
        recurring_init(&ours->recurring);
        TRY(recurring_read(object, call->arena, &ours->recurring, &set, &call->err));
        return parse_wish(call, &ours->wish);
    }
    TRY(catalog_body_preview(object, call->arena, &ours->schedule, &wish, &call->err));
    ours->wish.count = wish.count > UPCOMING_COUNT_MAX ? UPCOMING_COUNT_MAX : wish.count;
    ours->wish.from_us = wish.from_us;
    return 0;
}

/* Nothing is read from the store, but zones are files and take their time: a reader's work. */
int api_plan_preview(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    TRY(parse_preview(call, ours));
    return call_read(call, read_preview);
}

/* ---- how the runs of a job went ---- */

/* What has not begun or not ended has no duration; of nothing there is no average. */
static void write_stats(struct buf *out, const struct job *job, const struct job_stats *stats,
                        int64_t since_us)
{
    int64_t ended = stats->completed + stats->failed + stats->timed_out;

    buf_byte(out, '{');
    render_uuid(out, "job_id", &job->id);
    render_text(out, "name", job->name);
    render_time(out, "since", since_us);
    render_int(out, "total", stats->total);
    render_int(out, "completed", stats->completed);
    render_int(out, "failed", stats->failed);
    render_int(out, "timeout", stats->timed_out);
    render_int(out, "cancelled", stats->cancelled);
    render_int(out, "open", stats->open);
    if (ended)
        buf_format(out, ",\"success_rate\":%.4f", (double)stats->completed / (double)ended);
    else
        buf_text(out, ",\"success_rate\":null");
    if (stats->duration_count)
        render_int(out, "average_duration_ms", stats->duration_ms_total / stats->duration_count);
    else
        render_json(out, "average_duration_ms", STR_NONE);
    if (stats->duration_count)
        render_int(out, "max_duration_ms", stats->duration_ms_max);
    else
        render_json(out, "max_duration_ms", STR_NONE);
    render_time(out, "last_started_at", stats->last_started_us);
    buf_byte(out, '}');
}

static int read_stats(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct catalog_call *ours = call->ctx;
    struct catalog_source source = catalog_call_source(call, reader, scratch);
    int64_t since_us = ours->wish.from_us ? ours->wish.from_us : source.now_us - STATS_SINCE_US;
    struct job_stats stats = {0};
    const void *job;
    struct uuid id;

    TRY(catalog_find(&source, CATALOG_JOB, call->name, &id, &call->err));
    source.with_deleted = ours->with_deleted;
    TRY(catalog_load(&source, CATALOG_JOB, &id, &job, &call->err));
    TRY(source.store->verbs->catalog->read_job_stats(reader, &id, since_us, &stats, &call->err));
    write_stats(&call->out, job, &stats, since_us);
    return 0;
}

int api_job_stats(struct api_call *call)
{
    struct catalog_call *ours = BEGIN(call);

    TRY(call_parameter_time(call, "since", &ours->wish.from_us));
    TRY(call_parameter_bool(call, "with_deleted", &ours->with_deleted));
    call_reads_long(call, true);
    return call_read(call, read_stats);
}
