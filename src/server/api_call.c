/* One request from its arrival to its answer: what handlers read it with, how they hand it to the
 * queue or a reader, and how it is answered. Handlers decide what a request means. Loop thread, but
 * for run_read (a reader's) and request_done (the engine's). */
#include "server/door/door.h"
#include "server/server_int.h"

#include "base/hash.h"
#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"
#include "server/body.h"
#include "server/door/refusal_timer.h"
#include "server/door/tokens.h"

#include <endian.h>

#define JSON_TYPE "application/json"

/* Neither path nor query: names in them may be personal. */
static void log_answer(const struct api_call *call, int status)
{
    LOG(call->server->log, LOG_DEBUG, "http.answered",
        KC("route", call->route ? call->route->pattern : "none"), KI("status", status),
        KS("correlation_id", call->request_id));
}

void call_ended(struct api_call *call, int status)
{
    struct server *server = call->server;
    size_t row = call->route ? (size_t)(call->route - routes) : ROUTES_MAX;

    token_let_go(call->credential.token);
    call->credential.token = NULL;
    server->replies[row][(status / 100) % CALL_STATUS_CLASSES]++;
    if (server->log && server->log->level <= LOG_DEBUG)
        log_answer(call, status);
    server_work_ended(server);
}

void call_run(struct api_call *call, call_step *step)
{
    if (step(call) < 0)
        call_fail(call);
}

int call_no_memory(struct api_call *call)
{
    return err_no_memory(&call->err);
}

bool call_new(struct api_call *call, size_t bytes)
{
    call->ctx = arena_alloc(call->arena, bytes);
    if (!call->ctx)
        call_no_memory(call);
    return call->ctx;
}

int call_reply_text(struct api_call *call, int status, const char *content_type)
{
    char version[32];

    if (call->out.failed)
        return err_set(&call->err, ERR_TOO_LARGE,
                       "the answer is too large; ask for less at a time");
    if (call->version > 0) {
        snprintf(version, sizeof version, "\"%lld\"", (long long)call->version);
        http_reply_header(call->exchange, "ETag", version);
    }
    call_ended(call, status);
    http_reply_buf(call->exchange, status, content_type, &call->out);
    return 0;
}

/* Ends with a line break: people read these with curl. */
int call_reply(struct api_call *call, int status)
{
    buf_byte(&call->out, '\n');
    return call_reply_text(call, status, JSON_TYPE);
}

int call_reply_empty(struct api_call *call)
{
    buf_deinit(&call->out);
    return call_reply_static(call, 204, NULL, STR_NONE);
}

int call_reply_static(struct api_call *call, int status, const char *content_type, struct str body)
{
    call_ended(call, status);
    http_reply(call->exchange, status, content_type, body);
    return 0;
}

void call_location(struct api_call *call, const char *folder, const struct uuid *id)
{
    char location[32 + UUID_TEXT_BYTES];
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    snprintf(location, sizeof location, "%s%s", folder, text);
    http_reply_header(call->exchange, "Location", location);
}

void call_fail(struct api_call *call)
{
    int status = err_http_status(call->err.code);
    char wait[24];

    if (refusal_timer_takes(call->server->door->refusal_timer, call))
        return;
    if (status == 401 || status == 403)
        refusals_note(call->server->door->refusals, call);
    buf_deinit(&call->out);
    call->out = BUF_INIT(CALL_REPLY_BYTES_MAX);
    render_error(&call->out, &call->err);
    buf_byte(&call->out, '\n');
    if (status == 429 || status == 503) {
        snprintf(wait, sizeof wait, "%lld", (long long)call->credential.retry_after_s);
        http_reply_header(call->exchange, "Retry-After", call->credential.retry_after_s ? wait
                                                                                        : "1");
    }
    if (status == 401)
        http_reply_header(call->exchange, "WWW-Authenticate", "Bearer realm=\"perdura\"");
    call_ended(call, status);
    http_reply_buf(call->exchange, status, JSON_TYPE, &call->out);
}

/* On the queue's thread. */
static void request_done(struct request *request)
{
    struct api_call *call = request->ctx;

    loop_post(call->server->loop, &call->item);
}

static struct api_call *call_of_item(struct loop_item *item)
{
    return (struct api_call *)(void *)((char *)item - offsetof(struct api_call, item));
}

static int submit(struct api_call *call, struct request *request, enum request_kind kind,
                  void (*run)(struct loop_item *item), call_step *then)
{
    request->kind = kind;
    request->arena = call->arena;
    request->done = request_done;
    request->ctx = call;
    request->caller = call->principal && !call->everywhere ? &call->caller : NULL;
    call->submitted = request;
    call->then = then;
    call->item.run = run;
    engine_submit(call->server->engine, request);
    return 0;
}

static void go_on(struct loop_item *item)
{
    struct api_call *call = call_of_item(item);

    call_run(call, call->then);
}

static void resume(struct loop_item *item)
{
    struct api_call *call = call_of_item(item);

    call->err = call->submitted->err;
    if (call->submitted->retry_after_s)
        call->credential.retry_after_s = call->submitted->retry_after_s;
    if (call->err.code != ERR_NONE)
        call_fail(call);
    else
        go_on(item);
}

int call_submit(struct api_call *call, struct request *request, enum request_kind kind,
                call_step *then)
{
    return submit(call, request, kind, resume, then);
}

static void leave_waiting(struct api_call *call)
{
    *call->link_waiting = call->next_waiting;
    if (call->next_waiting)
        call->next_waiting->link_waiting = call->link_waiting;
    call->link_waiting = NULL;
    call->server->waiting_count--;
}

/* A request that was both done and forgotten may still be named in the queue's list of forgets, and
 * must stay in memory until that is worked off: a request behind it, on the same way, comes back
 * later than it. */
static int pass_barrier(struct api_call *call)
{
    struct workers_request *behind_claim = arena_alloc(call->arena, sizeof *behind_claim);
    struct wait_request *behind_wait = arena_alloc(call->arena, sizeof *behind_wait);

    if (!behind_claim || !behind_wait)
        return call->then(call);
    behind_claim->id = STR("-");
    if (call->submitted->kind == REQUEST_WAIT)
        return submit(call, &behind_wait->base, REQUEST_WAIT, go_on, call->then);
    return submit(call, &behind_claim->base, REQUEST_WORKERS, go_on, call->then);
}

static void resume_waiting(struct loop_item *item)
{
    struct api_call *call = call_of_item(item);

    leave_waiting(call);
    call_run(call, call->forgotten ? pass_barrier : call->then);
}

void call_forget(struct api_call *call)
{
    call->forgotten = true;
    engine_forget(call->server->engine, call->submitted->kind, call->submitted);
}

int call_check_credential(struct api_call *call)
{
    const char *ended = call->credential.token && call->credential.token->row.revoked_at_us
                            ? "revoked" : "expired";

    return call->credential.ended ? token_refuse_ended(ended, &call->err) : 0;
}

/* The call is in the list exactly as long as the queue may still hold the request. */
static void client_left(void *ctx)
{
    struct api_call *call = ctx;

    if (call->link_waiting)
        call_forget(call);
}

int call_submit_waiting(struct api_call *call, struct request *request, enum request_kind kind,
                        call_step *then)
{
    struct server *server = call->server;

    call->next_waiting = server->waiting;
    call->link_waiting = &server->waiting;
    if (server->waiting)
        server->waiting->link_waiting = &call->next_waiting;
    server->waiting = call;
    server->waiting_count++;
    http_on_gone(call->exchange, client_left, call);
    return submit(call, request, kind, resume_waiting, then);
}

static struct api_call *call_of_job(struct reader_job *job)
{
    return (struct api_call *)(void *)((char *)job - offsetof(struct api_call, job));
}

static void run_read(struct reader_job *job, struct store_reader *reader, struct arena *scratch)
{
    struct api_call *call = call_of_job(job);

    if (atomic_load(&call->cancelled))
        err_set(&call->err, ERR_UNAVAILABLE, "the client left before the answer began");
    else if (call->read(call, reader, scratch) == 0)
        call->err.code = ERR_NONE;
    else if (call->err.code == ERR_NONE)
        err_set(&call->err, ERR_INTERNAL, "the store did not answer; see the server's log");
}

/* True when it went well. What failed is counted, and logged where the store is at fault. */
static bool was_read(struct reader_job *job, enum log_level level)
{
    struct api_call *call = call_of_job(job);

    if (job->err.code != ERR_NONE) /* there was no reader for it */
        call->err = job->err;
    if (call->err.code == ERR_NONE)
        return true;
    call->server->read_errors += call->err.code == ERR_STORAGE_READ;
    if (level == LOG_WARN || err_http_status(call->err.code) == 500)
        LOG(call->server->log, level, "server.read_failed", KC("route", call->route->pattern),
            KS("correlation_id", call->request_id), KC("error", call->err.text));
    return false;
}

static int reply_read(struct api_call *call)
{
    return call_reply(call, call->status);
}

static void look_done(struct reader_job *job)
{
    struct api_call *call = call_of_job(job);

    if (was_read(job, LOG_ERROR))
        call_run(call, call->then);
    else
        call_fail(call);
}

static void try_done(struct reader_job *job)
{
    struct api_call *call = call_of_job(job);

    was_read(job, LOG_WARN);
    call_run(call, call->then);
}

static bool start_read(struct api_call *call, call_reading *read, call_step *then,
                       void (*done)(struct reader_job *job))
{
    call->then = then;
    call->read = read;
    call->job.run = run_read;
    call->job.done = done;
    return readers_submit(call->server->readers, call->lane, &call->job);
}

void call_reads_long(struct api_call *call, bool is_long)
{
    call->lane = is_long ? READERS_LONG : READERS_SHORT;
}

static void reader_left(void *ctx)
{
    struct api_call *call = ctx;

    atomic_store(&call->cancelled, true);
}

void call_cancel_when_gone(struct api_call *call)
{
    http_on_gone(call->exchange, reader_left, call);
}

int call_look(struct api_call *call, call_reading *read, call_step *then)
{
    if (start_read(call, read, then, look_done))
        return 0;
    return err_set(&call->err, ERR_UNAVAILABLE, "the server is busy with other reads; try again "
                   "in a moment");
}

int call_read(struct api_call *call, call_reading *read)
{
    call->status = 200;
    return call_look(call, read, reply_read);
}

int call_try_look(struct api_call *call, call_reading *read, call_step *then)
{
    return start_read(call, read, then, try_done) ? 0 : then(call);
}

int call_task_id(struct api_call *call)
{
    if (uuid_parse(call->name, &call->task_id))
        return 0;
    return err_set(&call->err, ERR_NOT_FOUND, "there is no such task; an id is 36 characters");
}

struct str call_namespace(const struct api_call *call)
{
    struct str name = call->caller.namespace_name;

    return name.data ? name : STR(TASK_DEFAULT_NAMESPACE);
}

bool call_hides(const struct api_call *call, struct str namespace_name)
{
    return !str_eq(call_namespace(call), namespace_name);
}

struct str call_parameter(const struct api_call *call, const char *name)
{
    const char *const *names = call->route->parameters;
    int i = 0;

    while (i < ROUTE_PARAMETERS_MAX && names[i] && strcmp(names[i], name) != 0)
        i++;
    ASSERT(i < ROUTE_PARAMETERS_MAX && names[i]);
    return str_empty(call->parameters[i]) ? STR_NONE : call->parameters[i];
}

/* Digits beyond 64 bits are just a very large number; 1e9 is one, too. */
static bool parse_number(struct str text, int64_t *number)
{
    size_t digits = 0;

    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    if (str_to_int64(text, number))
        return true;
    if (digits == text.len) {
        *number = INT64_MAX;
        return true;
    }
    return json_check(text, &text, NULL) == 0 && json_kind(text) == JSON_NUMBER &&
           json_int64(text, number);
}

int call_parameter_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                       int64_t *value)
{
    struct str text = call_parameter(call, name);
    int64_t number;

    if (!text.data)
        return 0;
    if (!parse_number(text, &number) || number < min)
        return err_set_field(&call->err, ERR_INVALID, name,
                             "'%s' must be a whole number of at least %lld", name, (long long)min);
    *value = number > max ? max : number;
    return 0;
}

int call_parameter_time(struct api_call *call, const char *name, int64_t *time_us)
{
    struct str text = call_parameter(call, name);
    char copy[64];

    if (!text.data)
        return 0;
    if (text.len < sizeof copy) {
        memcpy(copy, text.data, text.len);
        if (text.len > 6 && copy[text.len - 6] == ' ')
            copy[text.len - 6] = '+'; /* an offset whose plus was not escaped */
        if (clock_parse(str_span(copy, text.len), time_us))
            return 0;
    }
    return err_set_field(&call->err, ERR_INVALID, name,
                         "'%s' must be a time such as 2027-03-28T01:00:00Z", name);
}

int call_parameter_uuid(struct api_call *call, const char *name, struct uuid *id)
{
    struct str text = call_parameter(call, name);

    if (!text.data || uuid_parse(text, id))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, name, "'%s' must be an id of 36 characters",
                         name);
}

int call_parameter_bool(struct api_call *call, const char *name, bool *value)
{
    struct str text = call_parameter(call, name);

    if (!text.data)
        return 0;
    *value = str_is(text, "true");
    if (*value || str_is(text, "false"))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, name, "'%s' must be true or false", name);
}

int call_limit(struct api_call *call, int64_t fallback, int64_t max, uint32_t *limit)
{
    int64_t value = fallback;
    int rc = call_parameter_int(call, "limit", 1, max, &value);

    *limit = (uint32_t)value;
    return rc;
}

int call_list_limit(struct api_call *call, uint32_t *limit)
{
    return call_limit(call, BOUND_LIST_LIMIT_DEFAULT, BOUND_LIST_LIMIT, limit);
}

int call_cursor_bytes(struct api_call *call, char kind, uint8_t *bytes, size_t len, bool *given)
{
    struct str text = call_parameter(call, "cursor");

    *given = text.data != NULL;
    if (!text.data || (text.len == 1 + 2 * len && text.data[0] == kind &&
                       hash_from_hex(str_span(text.data + 1, text.len - 1), bytes, len)))
        return 0;
    return err_set_field(&call->err, ERR_INVALID, "cursor",
                         "'cursor' must be the next_cursor of the previous page");
}

int call_cursor(struct api_call *call, char kind, int64_t *key)
{
    uint8_t bytes[sizeof *key];
    uint64_t value = 0;
    bool given;

    TRY(call_cursor_bytes(call, kind, bytes, sizeof bytes, &given));
    for (size_t i = 0; given && i < sizeof bytes; i++)
        value = value << 8 | bytes[i];
    if (value > INT64_MAX)
        return err_set_field(&call->err, ERR_INVALID, "cursor",
                             "'cursor' must be the next_cursor of the previous page");
    if (given)
        *key = (int64_t)value;
    return 0;
}

void call_write_cursor_bytes(struct buf *out, char kind, const uint8_t *bytes, size_t len,
                             bool more)
{
    if (!more) {
        render_json(out, "next_cursor", STR_NONE);
        return;
    }
    json_write_key(out, "next_cursor");
    buf_format(out, "\"%c", kind);
    for (size_t i = 0; i < len; i++)
        buf_format(out, "%02x", bytes[i]);
    buf_byte(out, '"');
}

void call_write_cursor(struct buf *out, char kind, int64_t key, bool more)
{
    uint64_t bytes = htobe64((uint64_t)key);

    call_write_cursor_bytes(out, kind, (const uint8_t *)&bytes, sizeof bytes, more);
}

int call_object(struct api_call *call, struct str *object)
{
    struct str body = call->request->body;

    *object = STR("{}");
    if (str_empty(body))
        return 0;
    TRY(json_check(body, object, &call->err));
    if (json_kind(*object) != JSON_OBJECT)
        return err_set(&call->err, ERR_INVALID, "the body must be an object");
    return 0;
}

int call_no_body(struct api_call *call)
{
    struct str object;
    struct err wrong = {0};
    int rc = call_object(call, &object);

    if (rc < 0 || body_parse(object, NULL, 0, &wrong) == 0)
        return rc;
    return err_set_field(&call->err, ERR_INVALID, wrong.field, "this request takes no body; its "
                         "path and its query parameters say what it does");
}
