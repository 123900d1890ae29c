/* Admits, or answers that it does not. A wrong token may have to wait for its answer; the calls
 * that wait are a list in the order of their time, with one timer. */
#include "server/door/door.h"

#include "server/api.h"

#include "base/clock.h"

#include <stdlib.h>
#include <strings.h>

static int64_t now(void)
{
    return clock_boot_us() + 1; /* 0 means never */
}

static void let_go(struct door *door, struct door_held *held)
{
    TAILQ_REMOVE(&door->held, held, others);
    call_fail(held->call);
}

static void plan(struct door *door)
{
    const struct door_held *first = TAILQ_FIRST(&door->held);
    int64_t wait_us = first ? first->due_us - now() : 0;

    if (first)
        loop_timer_set(door->timer, wait_us > 0 ? wait_us : 0);
}

static void on_due(void *ctx)
{
    struct door *door = ctx;
    struct door_held *first;

    while ((first = TAILQ_FIRST(&door->held)) != NULL && first->due_us <= now())
        let_go(door, first);
    plan(door);
}

static void client_left(void *ctx)
{
    struct door_held *held = ctx;

    let_go(held->call->server->door, held);
}

static void on_keys(void *ctx)
{
    struct door *door = ctx;

    door_waits_end(&door->waits, false);
}

struct door *door_open(struct server *server, struct err *err)
{
    struct door *door = calloc(1, sizeof *door);

    if (door)
        door->timer = loop_timer_new(server->loop, on_due, door);
    if (door && door->timer)
        door->refusals = refusals_open(server, err);
    else
        err_no_memory(err);
    if (door && door->refusals)
        door->refusal_timer = refusal_timer_open(server, err);
    if (!door || !door->refusal_timer) {
        door_free(door);
        return NULL;
    }
    door->server = server;
    TAILQ_INIT(&door->held);
    door_waits_init(&door->waits);
    door->jwt = door_jwt_open(server->loop, server->log, on_keys, door, err);
    if (door->jwt && tokens_init(&door->tokens, err) == 0)
        return door;
    door_free(door);
    return NULL;
}

int door_configure(struct door *door, const struct settings *settings, struct err *err)
{
    TRY(door_jwt_configure(door->jwt, &settings->access.jwt, err));
    if (door_jwt_is_on(door->jwt))
        token_watch_begin(door->watch);
    return 0;
}

int door_read_tokens(struct door *door, struct err *err)
{
    door->watch = token_watch_open(door->server, &door->tokens, err);
    return door->watch ? 0 : -(int)err->code;
}

bool door_has_tokens(const struct door *door)
{
    return door->tokens.valid > 0 ||
           settings_ask_for_credentials(&door->server->settings->access);
}

void door_stop(struct door *door)
{
    while (!TAILQ_EMPTY(&door->held))
        let_go(door, TAILQ_FIRST(&door->held));
    refusal_timer_stop(door->refusal_timer);
    door_waits_end(&door->waits, true);
    refusals_stop(door->refusals);
    token_watch_stop(door->watch);
}

void door_free(struct door *door)
{
    if (!door)
        return;
    refusals_free(door->refusals);
    refusal_timer_free(door->refusal_timer);
    loop_timer_free(door->timer);
    token_watch_free(door->watch);
    tokens_deinit(&door->tokens);
    door_jwt_free(door->jwt);
    free(door);
}

/* What a worker must be able to say while everything else waits, or its leases run out. */
static bool cannot_wait(const struct route *route)
{
    return route->handle == api_worker_heartbeat || route->handle == api_worker_report;
}

/* Forms of foreign pages can send bodies of a few kinds, or of none; they cannot send JSON. A
 * client that is not a browser may leave the kind out. */
static int check_kind_of_body(struct api_call *call)
{
    const struct http_request *request = call->request;
    struct str kind = http_header(request, "Content-Type");
    struct str json = STR("application/json");

    if (kind.len >= json.len && strncasecmp(kind.data, json.data, json.len) == 0 &&
        (kind.len == json.len || kind.data[json.len] == ';' || kind.data[json.len] == ' '))
        return 0;
    if (!kind.data && !http_header(request, "Origin").data &&
        !http_header(request, "Sec-Fetch-Site").data)
        return 0;
    return err_set(&call->err, ERR_MEDIA_TYPE, "the body must be JSON and say so: send "
                                               "'Content-Type: application/json' (curl --json)");
}

/* Which namespace a call is about. A header that is given twice is refused by the reader of
 * heads. */
static int choose_namespace(struct api_call *call)
{
    const struct principal *principal = call->principal;

    if (!principal)
        return 0;
    call->caller = (struct caller){.principal = principal,
                                   .address = http_peer_address(call->exchange)->bytes,
                                   .request_id = call->request_id};
    return principal_choose_namespace(principal, http_header(call->request, "Perdura-Namespace"),
                                      &call->caller.namespace_name, &call->err);
}

/* A right is decided here alone, for every method, HEAD and long polls too. Of what RIGHT_OWN lets
 * in, the handler shows only what the principal has made. */
static int check_right(struct api_call *call)
{
    const struct right *needs = &call->route->needs;
    const struct principal *principal = call->principal;

    if (needs->kind == RIGHT_NONE)
        return 0;
    if (!principal)
        return err_set(&call->err, ERR_UNAUTHORIZED, "the request has no credential; send one as "
                                                     "'Authorization: Bearer TOKEN'");
    if (needs->kind == RIGHT_EVERYWHERE && !principal_is_global(principal))
        return err_set(&call->err, ERR_FORBIDDEN, "this concerns the whole store and needs the "
                       "scope %s in every namespace (*); ask its administrator",
                       scope_word(needs->scope));
    if ((needs->kind == RIGHT_EVERYWHERE ||
         (needs->kind == RIGHT_SCOPE && !scope_is_of_rows(needs->scope))) &&
        principal_allows(principal, needs->scope))
        TRY(principal_check_all_users(principal, &call->err));
    if (needs->kind == RIGHT_ANYONE || principal_allows(principal, needs->scope) ||
        (needs->kind == RIGHT_OWN && principal_allows(principal, SCOPE_TASKS_ENQUEUE)))
        return 0;
    return principal_refuse(principal, needs->scope, call->caller.namespace_name, &call->err);
}

static int find_route(struct api_call *call)
{
    const struct http_request *request = call->request;
    struct str names[ROUTE_NAMES_MAX];
    char allow[ROUTER_ALLOW_BYTES];
    int rc = router_find(request->method, request->path, call->arena, &call->route, names, allow,
                         &call->err);

    call->name = names[0];
    call->second_name = names[1];
    if (rc == -ERR_METHOD)
        http_reply_header(call->exchange, "Allow", allow);
    TRY(rc);
    TRY(choose_namespace(call));
    TRY(check_right(call));
    TRY(router_query(call->route, request->query, call->arena, call->parameters, &call->err));
    if (request->method != HTTP_POST && request->method != HTTP_PATCH)
        TRY(call_no_body(call));
    if (request->body.len > 0)
        TRY(check_kind_of_body(call));
    if (http_is_crowded(call->exchange) && !cannot_wait(call->route))
        return err_set(&call->err, ERR_UNAVAILABLE, "too many connections; try again");
    return 0;
}

static bool guard_refuses_call(const struct api_call *call)
{
    const struct door *door = call->server->door;

    return guard_refuses(&door->guard, http_peer_address(call->exchange), now()) &&
           !auth_is_open(&call->server->auth, call->request);
}

/* The first request of a connection that may ask for something makes it known. */
static void know(struct api_call *call)
{
    struct server *server = call->server;

    if (auth_is_open(&server->auth, call->request))
        return;
    http_set_known(call->exchange, true);
    if (!door_is_open(&server->auth, &server->door->tokens))
        guard_right(&server->door->guard, http_peer_address(call->exchange), now());
}

static struct ways_in ways_of(struct server *server)
{
    return (struct ways_in){.auth = &server->auth, .tokens = &server->door->tokens,
                            .jwt = server->door->jwt};
}

/* A body that was not read, because who sends it was not known, is gone. */
static bool has_lost_body(const struct http_request *request)
{
    struct str length = http_header(request, "Content-Length");

    return request->body.len == 0 && ((length.data && !str_is(length, "0")) ||
                                      http_header(request, "Transfer-Encoding").data);
}

/* Who asks; its token is held until the answer (call_ended). */
static int identify(struct api_call *call, bool *waits)
{
    struct server *server = call->server;
    struct ways_in ways = ways_of(server);
    struct identity who = {0};
    int rc;

    TRY(auth_check(&server->auth, call->request, &call->err));
    rc = door_identify(&ways, call->request, token_clock_us(server), call->arena, &who,
                       &call->err);
    *waits = who.waits && !has_lost_body(call->request);
    TRY(rc);
    call->principal = who.principal;
    call->credential.token = who.token;
    refusal_timer_note(call);
    if (who.token)
        token_hold(who.token);
    return 0;
}

static int check_rate(struct api_call *call)
{
    if (!call->credential.token)
        return 0;
    return tokens_take(call->credential.token, now(), &call->credential.retry_after_s, &call->err);
}

/* 0, or call->err is set; *waits: the keys it needs are being fetched. */
static int admit(struct api_call *call, bool *waits)
{
    bool known = http_is_known(call->exchange);
    int rc;

    if (!known && guard_refuses_call(call)) {
        http_close_behind(call->exchange);
        return err_set(&call->err, ERR_RATE, "too many wrong tokens came from this address; try "
                                             "again in a few seconds");
    }
    rc = identify(call, waits);
    if (rc == 0 && !known)
        know(call);
    else if (rc == -ERR_UNAUTHORIZED)
        http_set_known(call->exchange, false); /* a proxy carries others, too */
    TRY(rc);
    TRY(check_rate(call));
    return find_route(call);
}

/* Answers what was not admitted, with call->err, now or later. */
static void refuse(struct api_call *call)
{
    struct door *door = call->server->door;
    bool guessed = call->err.code == ERR_UNAUTHORIZED &&
                   http_header(call->request, "Authorization").data;
    int64_t delay_us = guessed ? guard_wrong(&door->guard, http_peer_address(call->exchange),
                                             now(), call->server->log) : 0;
    struct door_held *held = delay_us ? arena_alloc(call->arena, sizeof *held) : NULL;

    if (guessed)
        http_close_behind(call->exchange); /* the next guess costs a connection */
    if (!held || call->server->stopping) {
        call_fail(call);
        return;
    }
    *held = (struct door_held){.call = call, .due_us = now() + delay_us};
    TAILQ_INSERT_TAIL(&door->held, held, others);
    http_on_gone(call->exchange, client_left, held);
    if (TAILQ_FIRST(&door->held) == held)
        plan(door);
}

void door_enter(struct api_call *call)
{
    bool waits = false;

    if (admit(call, &waits) == 0)
        call_run(call, call->route->handle);
    else if (!waits || !door_waits_add(&call->server->door->waits, call))
        refuse(call);
}

/* A body is read while the keys of a JWT are fetched only where it is small: it is a stranger's
 * until then. */
static bool may_wait_with_body(const struct door *door, const struct http_request *request)
{
    struct str length = http_header(request, "Content-Length");
    int64_t bytes;

    return door_waits_room(&door->waits) && length.data && str_to_int64(length, &bytes) &&
           bytes <= HTTP_ADMIT_BODY_BYTES;
}

bool door_admits_body(struct door *door, struct http_exchange *exchange)
{
    const struct http_request *request = http_request(exchange);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct server *server = door->server;
    struct ways_in ways = ways_of(server);
    struct identity who = {0};
    struct err err;

    if (auth_is_open(&server->auth, request)) /* nothing there wants one */
        return false;
    return (http_is_known(exchange) ||
            !guard_refuses(&door->guard, http_peer_address(exchange), now())) &&
           auth_check(&server->auth, request, &err) == 0 &&
           (door_identify(&ways, request, token_clock_us(server), &arena, &who, &err) == 0 ||
            (who.waits && may_wait_with_body(door, request)));
}
