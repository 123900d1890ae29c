/* The server's life: opening, the one entry for every request (permit, find the route, check the
 * query, hand over), and draining. What a route does is in the api_ files. Loop thread.
 * Draining lets long-polls go first, so that it does not last as long as they would. */
#include "server/api.h"
#include "server/door/door.h"
#include "server/figures/consistency.h"
#include "server/figures/sampler.h"
#include "server/stream.h"

#include "base/embedded.h"
#include "core/bounds.h"

#include <limits.h>
#include <stdlib.h>

#define FORGET_AGAIN_US (50 * CLOCK_MS_US)

/* Before a body is read. */
static bool admit_body(void *ctx, struct http_exchange *exchange)
{
    const struct server *server = ctx;

    return door_admits_body(server->door, exchange);
}

/* One that could not be a correlation id is passed over: proxies make them, not people. It comes
 * back with the answer. */
static void take_request_id(struct api_call *call)
{
    struct str id = http_header(call->request, "x-request-id");
    char copy[BOUND_KEY_BYTES + 1];

    if (id.len == 0 || id.len > BOUND_KEY_BYTES || !str_is_utf8(id))
        return;
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.data[i] < ' ' || id.data[i] == 127)
            return;
    memcpy(copy, id.data, id.len);
    copy[id.len] = '\0';
    if (http_reply_header(call->exchange, "X-Request-Id", copy))
        call->request_id = arena_str(call->arena, id);
}

static void handle(void *ctx, struct http_exchange *exchange)
{
    struct server *server = ctx;
    struct api_call *call = arena_alloc(http_arena(exchange), sizeof *call);

    if (!call) {
        http_reply_header(exchange, "Retry-After", "1");
        http_reply(exchange, 503, "application/json",
                   STR("{\"error\":{\"code\":\"out_of_memory\",\"message\":\"there is not enough "
                       "memory; try again\"}}"));
        return;
    }
    server->calls_open++;
    call->server = server;
    call->exchange = exchange;
    call->request = http_request(exchange);
    call->arena = http_arena(exchange);
    call->out = BUF_INIT(CALL_REPLY_BYTES_MAX);
    take_request_id(call);
    door_enter(call);
}

static void tell_closed(struct loop_item *item)
{
    struct server *server =
        (struct server *)(void *)((char *)item - offsetof(struct server, closed_item));
    void (*closed)(void *ctx) = server->closed;

    server->closed = NULL;
    if (closed)
        closed(server->closed_ctx);
}

/* Lets claims go, and everything that waits once the server stops. Again until they are gone: a
 * request that had just arrived was not waiting yet, and the queue forgets only what waits. */
static void forget_all(void *ctx)
{
    struct server *server = ctx;
    bool any = false;

    for (struct api_call *call = server->waiting; call; call = call->next_waiting) {
        if (!server->stopping && call->submitted->kind != REQUEST_CLAIM)
            continue;
        call_forget(call);
        any = true;
    }
    if (any)
        loop_timer_set(server->stop_timer, FORGET_AGAIN_US);
}

static int open_parts(struct server *server, struct err *err)
{
    server->readers = readers_start(server->loop, server->store, CALL_READ_BYTES_MAX, err);
    if (!server->readers)
        return -(int)err->code;
    server->door = door_open(server, err);
    if (!server->door)
        return -(int)err->code;
    server->stream = stream_open(server, err);
    if (!server->stream)
        return -(int)err->code;
    server->sampler = sampler_open(server, err);
    if (!server->sampler)
        return -(int)err->code;
    server->shown.consistency = consistency_open(server, err);
    if (!server->shown.consistency)
        return -(int)err->code;
    server->stop_timer = TRY_MEMORY(loop_timer_new(server->loop, forget_all, server));
    TRY(door_read_tokens(server->door, err));
    return door_configure(server->door, server->settings, err);
}

static int open_tls(struct server *server, struct err *err)
{
    struct tls_config config = server_tls_config(server->settings);

    if (str_empty(config.cert))
        return 0;
    server->tls = tls_open(server->loop, &config, server->log, err);
    if (!server->tls)
        return -(int)err->code;
    http_server_set_tls(server->http, server->tls);
    return 0;
}

/* Without credentials every client may ask, and all come from the same address. */
static struct http_limits stranger_limits(const struct server *server)
{
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    if (str_empty(server->settings->access.token) && !door_has_tokens(server->door))
        limits.strangers_max = limits.strangers_per_address_max = limits.connections_max;
    return limits;
}

void server_limit_strangers(struct server *server)
{
    struct http_limits limits = stranger_limits(server);

    http_server_limit_strangers(server->http, limits.strangers_max,
                                limits.strangers_per_address_max);
}

static int open_listener(struct server *server, struct err *err)
{
    const struct settings *settings = server->settings;
    char listen[256];
    char backup_dir[PATH_MAX];
    struct http_limits limits = stranger_limits(server);

    TRY(auth_check_listen(settings->listen, settings->access.token, door_has_tokens(server->door),
                          err));
    TRY(auth_check_clear_text(settings->listen, settings, err));
    if (!str_empty(settings->access.token) && !door_is_own_token(settings->access.token))
        LOG(server->log, LOG_WARN, "access.token_of_a_client",
            KC("reason", "PERDURA_TOKEN or token_file has an API token or a JWT; such a token is "
                         "never the server's own"));
    if (settings->backup_dir.data)
        TRY(backup_check_folder(settings, backup_dir, err));
    snprintf(listen, sizeof listen, STR_FMT, STR_ARG(settings->listen));
    server->http = http_server_open(server->loop, listen, &limits, handle, server, server->log,
                                    err);
    if (!server->http)
        return -(int)err->code;
    TRY(open_tls(server, err));
    http_server_set_admit(server->http, admit_body);
    http_server_address(server->http, server->address, sizeof server->address);
    TRY(auth_init(&server->auth, server->address, settings, err));
    /* a name such as localhost may have meant something else */
    TRY(auth_check_listen(str_of(server->address), settings->access.token,
                          door_has_tokens(server->door), err));
    return auth_check_clear_text(str_of(server->address), settings, err);
}

struct server *server_open(struct loop *loop, struct engine *engine, struct store *store,
                           struct zones *zones, const struct settings *settings, struct log *log,
                           struct err *err)
{
    struct server *server = err_calloc(sizeof *server, err);

    if (!server)
        return NULL;
    server->loop = loop;
    server->engine = engine;
    server->store = store;
    server->zones = zones;
    server->settings = settings;
    server->log = log;
    server->started_boot_us = clock_boot_us();
    server->closed_item.run = tell_closed;
    if (open_parts(server, err) < 0 || open_listener(server, err) < 0) {
        server_free(server);
        return NULL;
    }
    return server;
}

void server_configure(struct server *server, const struct settings *settings)
{
    struct err err;

    server->settings = settings;
    server->auth.settings = settings;
    if (door_configure(server->door, settings, &err) < 0)
        LOG(server->log, LOG_ERROR, "access.not_reloaded", KC("reason", err.text),
            KC("hint", "the JWT settings before them stay in force"));
    server_limit_strangers(server);
}

int server_check_settings(const struct settings *settings, struct err *err)
{
    return jwks_source_check(&settings->access.jwt, err);
}

struct tls_config server_tls_config(const struct settings *settings)
{
    return (struct tls_config){.cert = settings->tls.cert,
                               .key = settings->tls.key,
                               .client_ca = settings->tls.client_ca,
                               .min_version = settings->tls.min_version};
}

void server_read_certificates(struct server *server)
{
    if (server->tls)
        tls_reload(server->tls);
}

void server_show_spans(struct server *server, struct span_export *spans)
{
    server->shown.spans = spans;
}

void server_show_services(struct server *server, const struct service_views *services)
{
    server->shown.services = services;
}

void server_show_inboxes(struct server *server, const struct inbox_views *inboxes)
{
    server->shown.inboxes = inboxes;
}

void server_check_calls(struct server *server, const struct call_keys *keys)
{
    server->auth.call_keys = keys;
}

void server_show_agents(struct server *server, const struct agent_views *agents)
{
    server->shown.agents = agents;
}

void server_show_brokers(struct server *server, const struct broker_views *brokers)
{
    server->shown.brokers = brokers;
}

void server_ask_validators(struct server *server,
                           bool (*ask)(void *ctx, struct recovery_question *question), void *ctx)
{
    server->ask_validator = ask;
    server->ask_ctx = ctx;
}

const char *server_address(const struct server *server)
{
    return server->address;
}

void server_notes(struct server *server, const struct task_note *notes, uint32_t count)
{
    stream_notes(server->stream, notes, count);
}

void server_work_ended(struct server *server)
{
    server->calls_open--;
    if (server->closed && server->http_closed && server->calls_open == 0)
        loop_post(server->loop, &server->closed_item);
}

static void http_is_closed(void *ctx)
{
    struct server *server = ctx;

    server->http_closed = true;
    if (server->calls_open == 0 && server->closed)
        loop_post(server->loop, &server->closed_item);
}

void server_drain(struct server *server)
{
    server->draining = true;
    forget_all(server);
}

void server_stop(struct server *server, int64_t grace_us, void (*closed)(void *ctx), void *ctx)
{
    ASSERT(!server->stopping);
    server->draining = server->stopping = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    forget_all(server);
    door_stop(server->door);
    stream_stop(server->stream);
    http_server_close(server->http, grace_us, http_is_closed, server);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    readers_stop(server->readers);
    loop_timer_free(server->stop_timer);
    door_free(server->door);
    stream_free(server->stream);
    sampler_free(server->sampler);
    consistency_free(server->shown.consistency);
    services_heard_deinit(&server->shown.heard);
    http_server_free(server->http);
    tls_free(server->tls);
    free(server);
}

/* ---- what the server says of itself ---- */

/* The process answers, whatever else is wrong. */
int api_healthz(struct api_call *call)
{
    buf_text(&call->out, "{\"status\":\"ok\"}");
    return call_reply(call, 200);
}

static int checked(struct api_call *call)
{
    const struct stats_request *request = call->ctx;
    int64_t read_errors = request->stats.totals[TOTAL_READ_ERRORS] + call->server->read_errors;

    if (request->stats.storage_full)
        return err_set(&call->err, ERR_UNAVAILABLE, "the store is full; free some space");
    buf_text(&call->out, read_errors || request->stats.stores_down ? "{\"status\":\"degraded\"}"
                                                                   : "{\"status\":\"ready\"}");
    return call_reply(call, 200);
}

/* It can take work: the engine's thread answers and the store has space. */
int api_readyz(struct api_call *call)
{
    struct stats_request *request = CALL_NEW(call, sizeof *request);

    if (call->server->draining)
        return err_set(&call->err, ERR_UNAVAILABLE, "the server is stopping");
    request->brief = true;
    return call_submit(call, &request->base, REQUEST_STATS, checked);
}

/* A file of server/assets, embedded at build; a test compares it with the table of routes. */
int api_openapi(struct api_call *call)
{
    const struct embedded *file = embedded_find("server/assets/openapi.json");

    ASSERT(file);
    return call_reply_static(call, 200, "application/json", str_span(file->data, file->len));
}
