/* /v1/tasks: enqueue, list, one task, purge. Enqueue is a hot route: the body is checked and sliced
 * where it lies, the answer is written straight into the buffer that is sent. Loop thread, but for
 * the read_ functions. */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"
#include "core/task/search.h"

#define CURSOR_TASK 't'
#define CURSOR_TASK_OLDEST 'o' /* of the list with the oldest first */
#define LIST_CHUNK_FIRST 16            /* of the largest tasks: 32 MiB */
#define LIST_CHUNK_MAX 256
#define LIST_BYTES_ENOUGH (16u << 20)  /* a page ends early beyond this; the cursor continues */
#define LOOK_US INT64_C(300000)        /* a page looks for words this long; the cursor continues */
#define ARRAY_BYTES_WHOLE ((size_t)96 << 20) /* beyond this array items are shown in short */

struct enqueue {
    struct enqueue_request request;
    bool is_array;
};

static void write_short(struct buf *out, const struct task *task, bool duplicate)
{
    buf_byte(out, '{');
    render_uuid(out, "id", &task->id);
    render_text(out, "status", str_of(status_word(task->status)));
    buf_text(out, duplicate ? ",\"duplicate\":true}" : "}");
}

static int reply_array(struct api_call *call)
{
    const struct enqueue_request *request = &((struct enqueue *)call->ctx)->request;
    struct buf *out = &call->out;

    buf_text(out, "{\"items\":[");
    for (uint32_t i = 0; i < request->count; i++) {
        struct render_extra extra = {.duplicate = request->duplicate[i],
                                     .payload_differs = request->differs[i],
                                     .redacted = request->duplicate[i] &&
                                                 call_redacts(call, request->tasks[i])};

        json_comma(out);
        if (out->len < ARRAY_BYTES_WHOLE)
            render_task(out, request->tasks[i], &extra);
        else
            write_short(out, request->tasks[i], request->duplicate[i]);
    }
    buf_text(out, "]}");
    return call_reply(call, 201);
}

static int reply_new(struct api_call *call)
{
    const struct enqueue_request *request = &((struct enqueue *)call->ctx)->request;
    const struct task_input *input = &request->inputs[0];
    struct render_extra extra = {.single = true};
    struct task_dependency *dependencies = NULL;

    if (input->depends_on_count)
        dependencies = arena_alloc_array(call->arena, input->depends_on_count,
                                         sizeof *dependencies);
    for (uint32_t i = 0; dependencies && i < input->depends_on_count; i++)
        dependencies[i] = (struct task_dependency){.task_id = input->depends_on[i].task_id,
                                                   .kind = input->depends_on[i].kind};
    extra.dependencies = dependencies;
    extra.dependencies_count = dependencies ? input->depends_on_count : 0;
    render_task(&call->out, request->tasks[0], &extra);
    call_location(call, "/v1/tasks/", &request->tasks[0]->id);
    call->version = request->tasks[0]->version;
    return call_reply(call, 201);
}

static int enqueued(struct api_call *call)
{
    const struct enqueue *enqueue = call->ctx;

    if (enqueue->is_array)
        return reply_array(call);
    if (!enqueue->request.duplicate[0])
        return reply_new(call);
    call->task_id = enqueue->request.tasks[0]->id; /* it may have a result by now */
    return call_read(call, api_read_task);
}

void api_take_trace(const struct api_call *call, struct str *parent, struct str *state)
{
    struct str given = http_header(call->request, "traceparent");
    struct str given_state = given.data ? http_header(call->request, "tracestate") : STR_NONE;
    struct trace_context context;
    char text[TRACE_PARENT_BYTES + 1];

    *parent = *state = STR_NONE;
    if (!given.data || !trace_parse(given, &context))
        return;
    trace_format(&context, text);
    *parent = arena_str(call->arena, str_of(text));
    if (trace_state_valid(given_state))
        *state = arena_str(call->arena, given_state);
}

/* What headers say of all tasks of the request, where they do not say it themselves. */
static void take_context(const struct api_call *call, struct enqueue_request *request)
{
    struct str parent, state;

    api_take_trace(call, &parent, &state);
    if (!parent.data && !call->request_id.data)
        return;
    for (uint32_t i = 0; i < request->count; i++) {
        struct task_spec *spec = &request->inputs[i].spec;

        if (!spec->correlation_id.data)
            spec->correlation_id = call->request_id;
        if (spec->trace.parent.data || !parent.data)
            continue;
        spec->trace.parent = parent;
        spec->trace.state = state;
    }
}

static int prepare_enqueue(struct api_call *call, struct enqueue *enqueue)
{
    struct enqueue_request *request = &enqueue->request;
    struct str json;

    if (str_empty(call->request->body))
        return err_set(&call->err, ERR_MALFORMED, "the body must be a task or an array of tasks");
    TRY(json_check(call->request->body, &json, &call->err));
    TRY(spec_parse_all(json, call->server->settings, call->arena, &request->inputs, &request->count,
                       &enqueue->is_array, &call->err));
    request->tasks = arena_alloc_array(call->arena, request->count, sizeof *request->tasks);
    request->duplicate = arena_alloc_array(call->arena, request->count, 1);
    request->differs = arena_alloc_array(call->arena, request->count, 1);
    if (!request->tasks || !request->duplicate || !request->differs)
        return call_no_memory(call);
    request->actor = ACTOR_API;
    take_context(call, request);
    return 0;
}

int api_tasks_enqueue(struct api_call *call)
{
    struct enqueue *enqueue = CALL_NEW(call, sizeof *enqueue);

    TRY(prepare_enqueue(call, enqueue));
    return call_submit(call, &enqueue->request.base, REQUEST_ENQUEUE, enqueued);
}

/* For an enqueue that met a duplicate the flags of that go along. */
static void add_duplicate(const struct api_call *call, struct render_extra *extra)
{
    const struct enqueue *enqueue = call->ctx;

    if (call->route->handle != api_tasks_enqueue)
        return;
    extra->duplicate = enqueue->request.duplicate[0];
    extra->payload_differs = enqueue->request.differs[0];
}

int api_read_task(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct store_verbs *verbs = call->server->store->verbs;
    struct task_dependency *dependencies = NULL;
    struct render_extra extra = {.single = true};
    struct task *task = NULL;
    int64_t created_at_us = 0;

    TRY(verbs->read_task(reader, &call->task_id, scratch, &task, &call->err));
    if (task && call_hides(call, task->spec.namespace_name))
        task = NULL;
    if (!task && call->route->handle == api_tasks_enqueue) /* its key is free again */
        return err_set(&call->err, ERR_UNAVAILABLE, "the task with this key was removed just now; "
                       "try again");
    TRY(call_check_task(call, task));
    extra.redacted = call_redacts(call, task);
    TRY(verbs->read_dependencies(reader, &call->task_id, scratch, &dependencies,
                                 &extra.dependencies_count, &call->err));
    TRY(verbs->read_result(reader, &call->task_id, scratch, &extra.result, &created_at_us,
                           &call->err));
    extra.dependencies = dependencies;
    if (call->route->handle == api_task_control && call->route->what == CONTROL_RECOVER)
        extra.verdict = ((const struct control_request *)call->ctx)->verdict;
    add_duplicate(call, &extra);
    call->version = task->version;
    render_task(&call->out, task, &extra);
    return 0;
}

int api_task_get(struct api_call *call)
{
    int64_t *at_us = CALL_NEW(call, sizeof *at_us);

    TRY(call_task_id(call));
    TRY(call_parameter_time(call, "at", at_us));
    return call_read(call, call_parameter(call, "at").data ? api_read_past : api_read_task);
}

static int parse_status(struct api_call *call, enum status *status)
{
    struct str text = call_parameter(call, "status");

    if (!text.data || status_parse(text, status))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "status",
                         "'status' must be one of the statuses, such as pending or completed");
}

static int parse_ids(struct api_call *call, struct task_filter *filter)
{
    TRY(call_parameter_uuid(call, "job_id", &filter->job_id));
    TRY(call_parameter_uuid(call, "schedule_id", &filter->schedule_id));
    return call_parameter_uuid(call, "parent_id", &filter->parent_id);
}

static int parse_texts(struct api_call *call, struct task_filter *filter)
{
    const struct {
        const char *name;
        struct str *value;
    } texts[] = {{"type", &filter->type},
                 {"queue", &filter->queue},
                 {"tag", &filter->tag},
                 {"user_id", &filter->user_id},
                 {"external_id", &filter->external_id},
                 {"context_key", &filter->context_key},
                 {"workflow_id", &filter->workflow_id},
                 {"correlation_id", &filter->correlation_id}};

    filter->namespace_name = call_namespace(call);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i].value = call_parameter(call, texts[i].name);
        TRY(search_read_exact(texts[i].name, texts[i].value, &call->err));
    }
    return 0;
}

/* Only the list has one; what is done to all that fit has an order of its own. */
static int parse_order(struct api_call *call, struct task_filter *filter)
{
    struct str text = call_parameter(call, "order");

    filter->oldest_first = str_is(text, "oldest");
    if (!text.data || filter->oldest_first || str_is(text, "newest"))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "order", "'order' must be newest or oldest");
}

/* Only the list has words: nothing is done to tasks because a word occurs somewhere in them. */
static int parse_search(struct api_call *call, struct search *search)
{
    if (search_parse(search, call_parameter(call, "q")))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "q", "'q' may have at most %d words",
                         SEARCH_WORDS_MAX);
}

static char cursor_kind(const struct task_filter *filter)
{
    return filter->oldest_first ? CURSOR_TASK_OLDEST : CURSOR_TASK;
}

/* Where several stores are read as one, the cursor says for each where it continues. */
static int parse_cursor(struct api_call *call, struct task_filter *filter)
{
    uint32_t parts = call->server->store->parts;
    uint8_t bytes[STORE_PARTS_MAX * sizeof(int64_t)] = {0};
    bool given;

    if (!parts)
        return call_cursor(call, cursor_kind(filter), &filter->before_key);
    filter->before_keys = arena_alloc_array(call->arena, parts, sizeof *filter->before_keys);
    if (!filter->before_keys)
        return call_no_memory(call);
    TRY(call_cursor_bytes(call, cursor_kind(filter), bytes, parts * sizeof(int64_t), &given));
    for (size_t i = 0; i < parts * sizeof(int64_t); i++)
        filter->before_keys[i / 8] = (int64_t)((uint64_t)filter->before_keys[i / 8] << 8 |
                                               bytes[i]);
    return 0;
}

void api_tasks_write_cursor(struct api_call *call, const struct task_filter *filter, bool more)
{
    uint32_t parts = call->server->store->parts;

    if (!parts || !more) {
        call_write_cursor(&call->out, cursor_kind(filter), filter->before_key, more);
        return;
    }
    buf_format(&call->out, "\"next_cursor\":\"%c", cursor_kind(filter));
    for (uint32_t i = 0; i < parts; i++)
        buf_format(&call->out, "%016llx", (unsigned long long)filter->before_keys[i]);
    buf_byte(&call->out, '"');
}

void api_tasks_pass(struct task_filter *filter, const struct task *task)
{
    if (filter->before_keys)
        filter->before_keys[task->row.part] = task->key;
    else
        filter->before_key = task->key;
}

int api_tasks_parse_filter(struct api_call *call, struct task_filter *filter)
{
    TRY(parse_status(call, &filter->status));
    TRY(parse_texts(call, filter));
    TRY(parse_ids(call, filter));
    TRY(call_parameter_time(call, "created_after", &filter->created_after_us));
    TRY(call_parameter_time(call, "created_before", &filter->created_before_us));
    TRY(call_list_limit(call, &filter->limit));
    return parse_cursor(call, filter);
}

int api_tasks_read_chunk(struct api_call *call, struct store_reader *reader, struct arena *scratch,
                         struct task_filter *filter, struct task **tasks, uint32_t *count)
{
    int rc;

    for (;;) {
        rc = call->server->store->verbs->read_tasks(reader, filter, scratch, tasks, count,
                                                    &call->err);
        if (rc != -ERR_TOO_LARGE || filter->limit == 1)
            return rc;
        arena_reset(scratch);
        filter->limit /= 2;
    }
}

/* A list and the words its tasks are looked for by: an index finds the tasks that fit the filter,
 * the words are compared one by one. */
struct listing {
    struct task_filter filter;
    struct search search;
};

/* Those of a chunk that fit, `left` at most; the cursor passes all that were looked at. How many
 * were. */
static uint32_t write_chunk(struct api_call *call, struct task_filter *filter,
                            const struct task *tasks, uint32_t count, uint32_t *left)
{
    const struct listing *listing = call->ctx;
    struct render_extra extra = {0};
    uint32_t i;

    for (i = 0; i < count && *left > 0; i++) {
        api_tasks_pass(filter, &tasks[i]);
        if (call_hides_task(call, &tasks[i]) || !search_fits(&listing->search, &tasks[i]))
            continue;
        json_comma(&call->out);
        extra.redacted = call_redacts(call, &tasks[i]);
        render_task(&call->out, &tasks[i], &extra);
        --*left;
    }
    return i;
}

/* In chunks, so that a page of large tasks is never in memory twice as a whole. One task more than
 * asked for is looked at, to know whether there is a next page. Words, and rows of other users, end
 * a page after a while, however few were found: a search never keeps a reader from the others. */
static int read_list(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    const struct listing *listing = call->ctx;
    struct task_filter filter = listing->filter;
    bool looks = listing->search.count || call_has_user(call); /* at more than it shows */
    int64_t end_us = looks ? clock_boot_us() + LOOK_US : INT64_MAX;
    uint32_t left = filter.limit;
    uint32_t chunk = LIST_CHUNK_FIRST;
    bool more = true;

    buf_text(&call->out, "{\"items\":[");
    while (more && left > 0 && call->out.len < LIST_BYTES_ENOUGH &&
           (end_us == INT64_MAX || clock_boot_us() < end_us)) {
        struct task *tasks = NULL;
        uint32_t count = 0;

        filter.limit = left < chunk && !looks ? left + 1 : chunk;
        TRY(api_tasks_read_chunk(call, reader, scratch, &filter, &tasks, &count));
        more = count == filter.limit;
        more |= write_chunk(call, &filter, tasks, count, &left) < count;
        chunk = chunk * 4 > LIST_CHUNK_MAX ? LIST_CHUNK_MAX : chunk * 4;
        if (scratch->used_bytes > (1u << 20))
            chunk = LIST_CHUNK_FIRST;
        arena_reset(scratch);
    }
    buf_text(&call->out, "],");
    api_tasks_write_cursor(call, &filter, more);
    buf_byte(&call->out, '}');
    return 0;
}

/* Status, queue and type lead to their tasks; other filters may have to look at tasks that do not
 * match. */
static bool looks_for_few(const struct task_filter *filter)
{
    return filter->tag.data || filter->user_id.data || filter->external_id.data ||
           filter->context_key.data || filter->workflow_id.data || filter->correlation_id.data ||
           filter->created_after_us || filter->created_before_us ||
           !uuid_is_nil(&filter->job_id) || !uuid_is_nil(&filter->schedule_id) ||
           !uuid_is_nil(&filter->parent_id);
}

int api_tasks_list(struct api_call *call)
{
    struct listing *listing = CALL_NEW(call, sizeof *listing);

    TRY(parse_search(call, &listing->search));
    TRY(parse_order(call, &listing->filter));
    TRY(api_tasks_parse_filter(call, &listing->filter));
    call_reads_long(call, call_parameter(call, "q").data || looks_for_few(&listing->filter) ||
                              call_has_user(call));
    return call_read(call, read_list);
}

struct purge {
    struct purge_request request;
    int64_t removed;
};

/* A chunk per turn, so that others get between; until none is left. */
static int purged(struct api_call *call)
{
    struct purge *purge = call->ctx;

    purge->removed += purge->request.removed;
    if (purge->request.removed > 0 && !call->server->stopping) {
        purge->request.removed = 0;
        return call_submit(call, &purge->request.base, REQUEST_PURGE, purged);
    }
    buf_byte(&call->out, '{');
    render_int(&call->out, "removed", purge->removed);
    buf_byte(&call->out, '}');
    return call_reply(call, 200);
}

int api_tasks_purge(struct api_call *call)
{
    struct purge *purge = CALL_NEW(call, sizeof *purge);
    struct str *user_id = &purge->request.user_id;

    *user_id = call_parameter(call, "user_id");
    if (!user_id->data)
        return err_set_field(&call->err, ERR_INVALID, "user_id",
                             "'user_id' must say whose tasks to remove");
    TRY(search_read_exact("user_id", user_id, &call->err));
    return call_submit(call, &purge->request.base, REQUEST_PURGE, purged);
}
