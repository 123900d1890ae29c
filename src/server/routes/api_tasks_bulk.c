/* POST /v1/tasks:cancel and :retry: for all tasks that match the filters of the list; cancelling
 * starts with the newest, retrying with the oldest, because a task is retried after those it
 * depends on. The filters are query parameters only: a body with content is refused, because an
 * ignored filter would cancel everything. One call changes a bounded number of tasks and replies
 * with the cursor to continue from, so that the caller sees its progress and can stop; with dry_run
 * it only counts. Each task is a request of its own to the queue, which commits them together: a
 * refused task does not stop the others, and a task that has left the status meanwhile, such as a
 * pending task that was claimed, is left alone. The cursor moves in one direction, so that no task
 * comes twice whatever changes meanwhile. A temporary failure (a database that is away, a server
 * that stops) ends the call: it replies what was done so far and why it stopped, and its cursor
 * does not pass tasks that are not done yet. Loop thread, but for read_some (a reader's) and
 * one_done (the queue's). */
#include "server/routes/api_tasks.h"
#include "server/visibility.h"

#include "core/bounds.h"
#include "core/render.h"

#define CHUNK 256          /* tasks under way at once: half of what one batch of the queue takes */
#define COUNT_MAX 10000    /* counted by one dry run */
#define LOOKED_AT_MAX 10000 /* by one read for tasks that allow it, where no status is named */
#define ONE_BYTES_MAX 65536

struct bulk;

/* One task under way. */
struct bulk_one {
    struct control_request request;
    struct arena arena; /* of its own: queues of several stores answer on threads of their own */
    struct loop_item item;
    struct bulk *bulk;
};

/* A task that fits, and where it stands in the list. */
struct bulk_place {
    struct uuid id;
    int64_t key;
    uint32_t part; /* of a store of several */
    enum status status; /* that it had when it was read */
};

struct bulk {
    struct api_call *call;
    struct task_filter filter;
    enum control_op op;
    bool dry_run;
    bool more;
    uint32_t left; /* of what this call may do */
    uint32_t count;
    uint32_t open;
    uint32_t changed_before; /* of this chunk, when the refused ones were tried again */
    bool was_read;
    struct bulk_place places[CHUNK];
    struct bulk_one *ones;
    int64_t matched, changed, refused;
    struct err refusal; /* the first */
    struct err stop;    /* why it ended before its time; code ERR_NONE = it did not */
};

static int reply(struct bulk *bulk)
{
    struct api_call *call = bulk->call;
    struct buf *out = &call->out;
    bool stopped = bulk->stop.code != ERR_NONE;

    if (stopped && bulk->changed + bulk->refused == 0) {
        call->err = bulk->stop;
        return -(int)call->err.code;
    }
    call->err = (struct err){0};
    buf_byte(out, '{');
    render_bool(out, "dry_run", bulk->dry_run);
    render_int(out, "matched", bulk->matched);
    render_int(out, "changed", bulk->changed);
    render_int(out, "refused", bulk->refused);
    render_text(out, "refusal", bulk->refused ? str_of(bulk->refusal.text) : STR_NONE);
    render_text(out, "stopped", stopped ? str_of(bulk->stop.text) : STR_NONE);
    buf_byte(out, ',');
    api_tasks_write_cursor(call, &bulk->filter, bulk->more || stopped);
    buf_byte(out, '}');
    return call_reply(call, 200);
}

static bool allows(const struct bulk *bulk, enum status from)
{
    return bulk->op == CONTROL_CANCEL ? status_allows(from, STATUS_CANCELLED, MOVE_CANCEL)
                                      : status_allows(from, STATUS_PENDING, MOVE_RETRY);
}

/* Those of a chunk that allow it become bulk->places. The cursor passes by what comes before the
 * first of them. */
static void take_chunk(struct bulk *bulk, const struct task *tasks, uint32_t count)
{
    bulk->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (allows(bulk, tasks[i].status) && !call_hides_task(bulk->call, &tasks[i]))
            bulk->places[bulk->count++] =
                (struct bulk_place){tasks[i].id, tasks[i].key, tasks[i].row.part, tasks[i].status};
        if (bulk->dry_run || bulk->count == 0)
            api_tasks_pass(&bulk->filter, &tasks[i]);
    }
    bulk->matched += bulk->dry_run ? bulk->count : 0;
    bulk->left -= bulk->count;
}

/* Into bulk->places; a dry run only counts, and continues until it has counted enough. */
static int read_some(struct api_call *call, struct store_reader *reader, struct arena *scratch)
{
    struct bulk *bulk = call->ctx;
    uint32_t looked_at = 0;

    do {
        struct task *tasks = NULL;
        uint32_t count = 0;

        bulk->filter.limit = bulk->left < CHUNK ? bulk->left : CHUNK;
        TRY(api_tasks_read_chunk(call, reader, scratch, &bulk->filter, &tasks, &count));
        bulk->more = count == bulk->filter.limit; /* which a chunk of large tasks lowers */
        take_chunk(bulk, tasks, count);
        looked_at += count;
        arena_reset(scratch);
    } while ((bulk->dry_run || bulk->count == 0) && bulk->more && bulk->left &&
             looked_at < LOOKED_AT_MAX);
    bulk->was_read = true;
    return 0;
}

static int apply(struct api_call *call);

/* A later retry may succeed. A task that cannot be read is none of these: it would hold up all
 * behind it for ever. */
static bool is_passing(enum err_code code)
{
    return code == ERR_UNAVAILABLE || code == ERR_MEMORY || code == ERR_STORAGE ||
           code == ERR_STORAGE_FULL;
}

static void name_refusal(struct bulk *bulk, const struct uuid *id, const struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    err_set(&bulk->refusal, err->code, "task %s: %.400s", text, err->text);
}

/* In the order of the list: the cursor stops before the first that is still to be done. What was
 * changed behind it has left the status and is not met again; what was refused there is, and counts
 * then. */
static void settle(struct bulk *bulk)
{
    bool held[STORE_PARTS_MAX] = {false};

    for (uint32_t i = 0; i < bulk->count; i++) {
        const struct bulk_place *place = &bulk->places[i];
        const struct err *err = &bulk->ones[i].request.base.err;

        if (is_passing(err->code)) {
            if (bulk->stop.code == ERR_NONE)
                bulk->stop = *err;
            held[place->part] = true;
            continue;
        }
        if (err->code == ERR_NONE)
            bulk->changed++;
        else if (!held[place->part] && bulk->refused++ == 0)
            name_refusal(bulk, &place->id, err);
        if (!held[place->part])
            api_tasks_pass(&bulk->filter,
                           &(struct task){.key = place->key, .row.part = place->part});
    }
    bulk->matched = bulk->changed + bulk->refused;
}

/* On a queue's thread. */
static void one_done(struct request *request)
{
    struct bulk_one *one = request->ctx;

    loop_post(one->bulk->call->server->loop, &one->item);
}

static void one_back(struct loop_item *item);

static void prepare_one(struct bulk *bulk, uint32_t i)
{
    struct bulk_one *one = &bulk->ones[i];

    one->bulk = bulk;
    one->arena = ARENA_INIT(ONE_BYTES_MAX);
    one->item.run = one_back;
    one->request = (struct control_request){
        .base = {.kind = REQUEST_CONTROL, .arena = &one->arena, .done = one_done, .ctx = one,
                 .caller = &bulk->call->caller},
        .task_id = bulk->places[i].id, .op = bulk->op, .actor = ACTOR_USER, .if_version = -1,
        .if_status = bulk->places[i].status};
}

static uint32_t count_changed(const struct bulk *bulk)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < bulk->count; i++)
        count += bulk->ones[i].request.base.err.code == ERR_NONE;
    return count;
}

static bool is_refused_for_now(const struct bulk *bulk, uint32_t i)
{
    return bulk->ones[i].request.base.err.code == ERR_TRANSITION;
}

/* A task of an array may depend on one behind it: what was refused is tried again as long as others
 * of the chunk were changed meanwhile. True when some are under way again. */
static bool try_again(struct bulk *bulk)
{
    uint32_t changed = count_changed(bulk);
    uint32_t again = 0;

    if (bulk->op != CONTROL_RETRY || changed == bulk->changed_before)
        return false;
    bulk->changed_before = changed;
    for (uint32_t i = 0; i < bulk->count; i++)
        again += is_refused_for_now(bulk, i);
    bulk->open = again;
    for (uint32_t i = 0; again && i < bulk->count; i++)
        if (is_refused_for_now(bulk, i)) {
            prepare_one(bulk, i);
            again--;
            engine_submit(bulk->call->server->engine, &bulk->ones[i].request.base);
        }
    return bulk->open > 0;
}

/* All of the chunk are back: the next one, or the answer. */
static int chunk_done(struct api_call *call)
{
    struct bulk *bulk = call->ctx;
    bool more;

    settle(bulk);
    more = bulk->stop.code == ERR_NONE && bulk->more && bulk->left;
    if (more && call->server->stopping)
        err_set(&bulk->stop, ERR_UNAVAILABLE, "the server is stopping; continue in a moment");
    else if (more && !http_is_gone(call->exchange)) {
        bulk->was_read = false;
        return call_try_look(call, read_some, apply);
    }
    return reply(bulk);
}

static void one_back(struct loop_item *item)
{
    struct bulk_one *one =
        (struct bulk_one *)(void *)((char *)item - offsetof(struct bulk_one, item));
    struct bulk *bulk = one->bulk;

    arena_deinit(&one->arena);
    if (--bulk->open == 0 && !try_again(bulk))
        call_run(bulk->call, chunk_done);
}

static int apply(struct api_call *call)
{
    struct bulk *bulk = call->ctx;

    if (!bulk->was_read) {
        bulk->stop = call->err;
        if (call->err.code == ERR_NONE) /* no reader was free */
            err_set(&bulk->stop, ERR_UNAVAILABLE, "the server is busy with other reads; try again "
                    "in a moment");
    }
    if (!bulk->was_read || bulk->dry_run || bulk->count == 0)
        return reply(bulk);
    bulk->open = bulk->count;
    bulk->changed_before = 0;
    for (uint32_t i = 0; i < bulk->count; i++)
        prepare_one(bulk, i);
    for (uint32_t i = 0, count = bulk->count; i < count; i++)
        engine_submit(call->server->engine, &bulk->ones[i].request.base);
    return 0;
}

/* A status must be named: "all tasks" is hardly ever meant, and a caller who means it says so. */
static int check_status(struct api_call *call, const struct bulk *bulk)
{
    enum status from = bulk->filter.status;
    bool cancel = bulk->op == CONTROL_CANCEL;
    bool all = false;

    TRY(call_parameter_bool(call, "all", &all));
    if (from == STATUS_NONE && !all)
        return err_set_field(&call->err, ERR_INVALID, "status", "'status' must say which tasks, "
                             "such as status=%s; all=true means every status that can be %s",
                             cancel ? "pending" : "dead_letter", cancel ? "cancelled" : "retried");
    if (from == STATUS_NONE || allows(bulk, from))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "status", "tasks that are %s cannot be %s",
                         status_word(from), cancel ? "cancelled" : "retried");
}

/* An empty one is the first page of a list. Here a cursor was meant, and the first page would be
 * done a second time. */
static int check_cursor(struct api_call *call)
{
    const char *const *names = call->route->parameters;

    for (int i = 0; i < ROUTE_PARAMETERS_MAX && names[i]; i++)
        if (strcmp(names[i], "cursor") == 0 && call->parameters[i].data &&
            call->parameters[i].len == 0)
            return err_set_field(&call->err, ERR_INVALID, "cursor",
                                 "'cursor' is empty; leave it out to start with the first");
    return 0;
}

static int prepare(struct api_call *call, struct bulk *bulk)
{
    int64_t limit;

    TRY(call_no_body(call));
    TRY(check_cursor(call));
    bulk->filter.oldest_first = bulk->op == CONTROL_RETRY;
    TRY(api_tasks_parse_filter(call, &bulk->filter));
    if (call_has_user(call) && !bulk->filter.user_id.data) /* what it may change */
        bulk->filter.user_id = call->principal->user_id;
    TRY(call_parameter_bool(call, "dry_run", &bulk->dry_run));
    TRY(check_status(call, bulk));
    limit = bulk->dry_run ? COUNT_MAX : BOUND_LIST_LIMIT;
    TRY(call_parameter_int(call, "limit", 1, limit, &limit));
    bulk->left = (uint32_t)limit;
    if (!bulk->dry_run)
        bulk->ones = arena_alloc_array(call->arena, CHUNK, sizeof *bulk->ones);
    return bulk->dry_run || bulk->ones ? 0 : call_no_memory(call);
}

int api_tasks_control(struct api_call *call)
{
    struct bulk *bulk = CALL_NEW(call, sizeof *bulk);

    bulk->call = call;
    bulk->op = (enum control_op)call->route->what;
    TRY(prepare(call, bulk));
    call_reads_long(call, true);
    return call_look(call, read_some, apply);
}
