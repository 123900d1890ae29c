/* The side of a server: every call is a request of the HTTP API. A connection serves one thread at
 * a time; idle ones are kept for the next call. */
#include "lib/lib_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "core/queue_name.h"
#include "core/task/task_fields.h"
#include "net/http_client.h"
#include "worker/sources/source_remote.h"

#define CLIENTS_KEPT 16           /* idle ones; more are closed after use */
#define TIMEOUT_MS_DEFAULT 30000
#define BODY_BYTES_MAX ((size_t)64 << 20)
#define PATH_BYTES_MAX 2048

struct remote {
    char *url;
    char *token; /* NULL = none */
    char *ca, *cert, *key; /* files of TLS; NULL = none */
    char *namespace_name;  /* NULL = that of the token */
    int64_t timeout_ms;
    pthread_mutex_t lock; /* of what follows */
    struct http_client *clients[CLIENTS_KEPT];
    uint32_t clients_count;
};

/* ---- connections ---- */

static struct http_client_tls tls_of(const struct remote *remote)
{
    return (struct http_client_tls){str_of(remote->ca), str_of(remote->cert), str_of(remote->key)};
}

static struct http_client *make_client(const struct remote *remote, struct err *err)
{
    struct http_client *client =
        http_client_new(str_of(remote->url), str_of(remote->token), err);
    const struct http_client_tls tls = tls_of(remote);

    if (client && http_client_set_tls(client, &tls, err) < 0) {
        http_client_free(client);
        return NULL;
    }
    if (client && remote->namespace_name &&
        http_client_add_header(client, STR("Perdura-Namespace"), str_of(remote->namespace_name),
                               err) < 0) {
        http_client_free(client);
        return NULL;
    }
    return client;
}

static struct http_client *take_client(struct remote *remote, struct err *err)
{
    struct http_client *client = NULL;

    pthread_mutex_lock(&remote->lock);
    if (remote->clients_count)
        client = remote->clients[--remote->clients_count];
    pthread_mutex_unlock(&remote->lock);
    return client ? client : make_client(remote, err);
}

static void give_client(struct remote *remote, struct http_client *client)
{
    pthread_mutex_lock(&remote->lock);
    if (remote->clients_count < CLIENTS_KEPT) {
        remote->clients[remote->clients_count++] = client;
        client = NULL;
    }
    pthread_mutex_unlock(&remote->lock);
    http_client_free(client);
}

static void remote_close(struct pd *pd)
{
    struct remote *remote = pd->side;

    for (uint32_t i = 0; i < remote->clients_count; i++)
        http_client_free(remote->clients[i]);
    pthread_mutex_destroy(&remote->lock);
    free(remote->url);
    free(remote->token);
    free(remote->ca);
    free(remote->cert);
    free(remote->key);
    free(remote->namespace_name);
    free(remote);
    pd->side = NULL;
}

/* The option, else the variable, else NULL. False: no memory. */
static bool take_text(char **to, const char *given, const char *variable)
{
    const char *text = given ? given : getenv(variable);

    *to = text && *text ? strdup(text) : NULL;
    return !text || !*text || *to;
}

/* Makes a connection's object to have address and token checked; nothing is sent. */
static int remote_open(struct pd *pd, const char *where, const struct pd_options *options,
                       struct err *err)
{
    struct remote *remote = TRY_MEMORY(calloc(1, sizeof *remote));
    struct http_client *client;

    pd->side = remote;
    pthread_mutex_init(&remote->lock, NULL);
    remote->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS_DEFAULT;
    remote->url = strdup(where);
    if (!remote->url || !take_text(&remote->token, options->token, "PERDURA_TOKEN") ||
        !take_text(&remote->ca, options->tls_ca, "PERDURA_CA") ||
        !take_text(&remote->cert, options->tls_cert, "PERDURA_CERT") ||
        !take_text(&remote->key, options->tls_key, "PERDURA_KEY") ||
        !take_text(&remote->namespace_name, options->namespace_name, "PERDURA_NAMESPACE")) {
        remote_close(pd);
        return err_no_memory(err);
    }
    if (remote->namespace_name && namespace_check_name(str_of(remote->namespace_name), err) < 0) {
        remote_close(pd);
        return -(int)err->code;
    }
    client = take_client(remote, err);
    if (!client) {
        remote_close(pd);
        return -(int)err->code;
    }
    give_client(remote, client);
    return 0;
}

/* One request; *reply is the checked JSON of a success, in arena, absent when it has no body. */
static int request(struct remote *remote, const char *method, const char *path, struct str body,
                   int64_t timeout_ms, struct arena *arena, struct str *reply, struct err *err)
{
    struct http_client *client = take_client(remote, err);
    struct buf response = BUF_INIT(HTTP_CLIENT_RESPONSE_BYTES);
    int status = 0;
    int rc;

    *reply = STR_NONE;
    if (!client)
        return -(int)err->code;
    rc = http_client_request(client, method, path, body, timeout_ms, &response, &status, err);
    if (rc == 0 && response.len) {
        *reply = arena_str(arena, buf_view(&response));
        if (!reply->data)
            rc = err_no_memory(err);
        else if (json_check_ours(*reply, reply, NULL) < 0)
            rc = err_set(err, ERR_IO, "the server's answer is not JSON; is it a Perdura server?");
    }
    buf_deinit(&response);
    give_client(remote, client);
    return rc;
}

int lib_remote_request(struct pd *pd, const char *method, const char *path, struct str body,
                       struct arena *arena, struct str *reply, struct err *err)
{
    struct remote *remote = pd->side;

    return request(remote, method, path, body, remote->timeout_ms, arena, reply, err);
}

static int not_understood(struct err *err)
{
    return err_set(err, ERR_IO, "the server's answer is not understood; do library and server have "
                                "the same version?");
}

/* ---- reading values ---- */

static struct str get_kind(struct str object, const char *key, enum json_kind kind)
{
    struct str value = json_get(object, str_of(key));

    return value.data && json_kind(value) == kind ? value : STR_NONE;
}

static struct str get_text(struct str object, const char *key, struct arena *arena)
{
    struct str value = get_kind(object, key, JSON_STRING);

    return value.data ? json_string(value, arena) : STR_NONE;
}

static struct str get_json(struct str object, const char *key)
{
    struct str value = json_get(object, str_of(key));

    return value.data && json_kind(value) != JSON_NULL ? value : STR_NONE;
}

static int64_t get_int(struct str object, const char *key)
{
    struct str value = get_kind(object, key, JSON_NUMBER);
    int64_t number = 0;

    return value.data && json_int64(value, &number) ? number : 0;
}

static int64_t get_time(struct str object, const char *key, struct arena *arena)
{
    struct str text = get_text(object, key, arena);
    int64_t time_us = 0;

    return text.data && clock_parse(text, &time_us) ? time_us : 0;
}

/* The members a result has; false when it is no task. */
static bool read_task(struct str object, struct arena *arena, struct task *task)
{
    *task = (struct task){.spec = {.type = get_text(object, "type", arena),
                                   .queue = get_text(object, "queue", arena),
                                   .payload = get_json(object, "payload"),
                                   .created_at_us = get_time(object, "created_at", arena)},
                          .state = get_text(object, "state", arena),
                          .data = get_json(object, "data"),
                          .about.metadata = get_json(object, "metadata"),
                          .progress = get_int(object, "progress"),
                          .priority = get_int(object, "priority"),
                          .version = get_int(object, "version"),
                          .counts.attempts = get_int(object, "attempts"),
                          .counts.retries = get_int(object, "retry_count"),
                          .lease.started_at_us = get_time(object, "started_at", arena),
                          .completed_at_us = get_time(object, "completed_at", arena),
                          .fault.error = get_text(object, "error", arena),
                          .fault.last = get_text(object, "last_error", arena)};
    for (size_t i = 0; task_edits[i].name; i++)
        *task_edit_text(&task->about, i) = get_text(object, task_edits[i].name, arena);
    return uuid_parse(get_text(object, "id", arena), &task->id) &&
           status_parse(get_text(object, "status", arena), &task->status);
}

/* ---- verbs ---- */

static int read_enqueued(struct str object, struct arena *arena, struct pd_enqueued *enqueued)
{
    struct str id = get_text(object, "id", arena);
    struct uuid checked;

    if (!id.data || !uuid_parse(id, &checked))
        return -(int)ERR_IO;
    uuid_format(&checked, enqueued->id);
    enqueued->duplicate = get_kind(object, "duplicate", JSON_TRUE).data != NULL;
    enqueued->payload_differs = get_kind(object, "payload_differs", JSON_TRUE).data != NULL;
    return 0;
}

static int read_all_enqueued(struct str reply, uint32_t count, struct arena *arena,
                             struct pd_enqueued *enqueued, struct err *err)
{
    struct str items = reply.data ? get_kind(reply, "items", JSON_ARRAY) : STR_NONE;
    struct json_iter iter;
    struct str item;
    uint32_t at = 0;

    if (!reply.data)
        return not_understood(err);
    if (count == 1 && !items.data)
        return read_enqueued(reply, arena, enqueued) < 0 ? not_understood(err) : 0;
    if (!items.data)
        return not_understood(err);
    json_begin(items, &iter);
    while (at < count && json_next_element(&iter, &item))
        if (read_enqueued(item, arena, &enqueued[at++]) < 0)
            return not_understood(err);
    return at == count ? 0 : not_understood(err);
}

static int remote_enqueue(struct pd *pd, const struct pd_task_spec *specs, uint32_t count,
                          struct pd_enqueued *enqueued, struct err *err)
{
    struct remote *remote = pd->side;
    BUF_AUTO struct buf body = BUF_INIT(BODY_BYTES_MAX);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str reply;

    TRY(lib_write_specs(&body, specs, count, err));
    TRY(request(remote, "POST", "/v1/tasks", buf_view(&body), remote->timeout_ms, &arena, &reply,
                err));
    if (enqueued)
        TRY(read_all_enqueued(reply, count, &arena, enqueued, err));
    return 0;
}

/* One look, that waits up to wait_ms on the server's side. */
static int look(struct remote *remote, const struct uuid *id, int64_t wait_ms,
                struct pd_result *result, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    char text[UUID_TEXT_BYTES];
    char path[128];
    struct str reply;
    struct task task;

    uuid_format(id, text);
    if (wait_ms > 0)
        snprintf(path, sizeof path, "/v1/tasks/%s/wait?timeout_ms=%lld", text, (long long)wait_ms);
    else
        snprintf(path, sizeof path, "/v1/tasks/%s", text);
    TRY(request(remote, "GET", path, STR_NONE, remote->timeout_ms + wait_ms, &arena, &reply, err));
    if (!reply.data || !read_task(reply, &arena, &task))
        TRY(not_understood(err));
    return lib_fill_result(result, &task, get_json(reply, "result"), err);
}

static int remote_fetch(struct pd *pd, const struct uuid *id, int64_t wait_ms,
                        struct pd_result *result, struct err *err)
{
    int64_t began_us = clock_boot_us();
    int rc;

    for (;;) {
        int64_t passed_ms = (clock_boot_us() - began_us) / CLOCK_MS_US;
        int64_t left_ms = wait_ms < 0 ? BOUND_WAIT_MS : wait_ms - passed_ms;

        if (left_ms > BOUND_WAIT_MS)
            left_ms = BOUND_WAIT_MS;
        if (left_ms < 0)
            left_ms = 0;
        pd_result_free(result);
        rc = look(pd->side, id, left_ms, result, err);
        if (rc < 0 || result->ended || left_ms == 0)
            return rc;
    }
}

/* The body of a change: the event of it with the version that is asked for. */
static struct str change_body(const struct control_request *wish, struct arena *arena)
{
    struct str version = wish->if_version < 0
                             ? STR_NONE
                             : arena_format(arena, "{\"if_version\":%lld}",
                                            (long long)wish->if_version);

    return change_tell(version, &wish->change.about, wish->change.set, arena);
}

static int remote_control(struct pd *pd, const struct control_request *wish, struct err *err)
{
    static const char *const verbs[] = {
        [CONTROL_CANCEL] = ":cancel",         [CONTROL_RETRY] = ":retry",
        [CONTROL_PAUSE] = ":pause",           [CONTROL_RESUME] = ":resume",
        [CONTROL_PRIORITIZE] = ":prioritize", [CONTROL_RECOVER] = ":recover",
        [CONTROL_UPDATE] = "",                [CONTROL_DELETE] = ""};
    struct remote *remote = pd->side;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str body = STR("{}");
    char text[UUID_TEXT_BYTES];
    char path[128];
    struct str reply;

    uuid_format(&wish->task_id, text);
    snprintf(path, sizeof path, "/v1/tasks/%s%s", text, verbs[wish->op]);
    if (wish->op == CONTROL_PRIORITIZE)
        body = arena_format(&arena, "{\"priority\":%lld}", (long long)wish->priority);
    else if (wish->op == CONTROL_UPDATE)
        body = change_body(wish, &arena);
    else if (wish->op == CONTROL_DELETE)
        return request(remote, "DELETE", path, STR_NONE, remote->timeout_ms, &arena, &reply, err);
    return body.data ? request(remote, wish->op == CONTROL_UPDATE ? "PATCH" : "POST", path, body,
                               remote->timeout_ms, &arena, &reply, err)
                     : err_no_memory(err);
}

static struct source *remote_source(struct pd *pd, struct err *err)
{
    struct remote *remote = pd->side;
    const struct http_client_tls tls = tls_of(remote);

    return source_remote_open(str_of(remote->url), str_of(remote->token),
                              str_of(remote->namespace_name), &tls, err);
}

static size_t count_ids(struct str reply, const char *key)
{
    struct str list = get_kind(reply, key, JSON_ARRAY);

    return list.data ? json_count(list) : 0;
}

static int read_ids(struct str reply, const char *key, struct uuid *ids, uint32_t *count,
                    struct err *err)
{
    struct str list = get_kind(reply, key, JSON_ARRAY);
    struct json_iter iter;
    struct str value;

    if (!list.data)
        return 0;
    json_begin(list, &iter);
    while (json_next_element(&iter, &value))
        if (value.len < 2 || !uuid_parse(str_span(value.data + 1, value.len - 2), &ids[(*count)++]))
            return not_understood(err);
    return 0;
}

static int remote_heartbeat(struct pd *pd, struct str worker_id, struct arena *arena,
                            struct uuid **ids, uint32_t *count, struct err *err)
{
    struct remote *remote = pd->side;
    struct buf path = BUF_INIT(PATH_BYTES_MAX);
    struct str reply = STR_NONE;
    int rc;

    *count = 0;
    buf_text(&path, "/v1/workers/");
    http_client_escape(&path, worker_id);
    buf_append(&path, ":heartbeat", sizeof ":heartbeat");
    rc = path.failed ? err_set(err, ERR_INVALID, "the worker's id is too long")
                     : request(remote, "POST", path.data, STR("{}"), remote->timeout_ms, arena,
                               &reply, err);
    buf_deinit(&path);
    if (rc < 0)
        return rc;
    if (!reply.data || json_kind(reply) != JSON_OBJECT)
        return not_understood(err);
    *ids = TRY_MEMORY(arena_alloc_array(
        arena, count_ids(reply, "cancel") + count_ids(reply, "pause"), sizeof **ids));
    rc = read_ids(reply, "cancel", *ids, count, err);
    return rc < 0 ? rc : read_ids(reply, "pause", *ids, count, err);
}

static int remote_validator(struct pd *pd, const char *type, pd_validate *validate, void *ctx,
                            struct err *err)
{
    (void)pd;
    (void)type;
    (void)validate;
    (void)ctx;
    return err_set(err, ERR_INVALID, "a server asks validators of its own; name this one in its "
                   "configuration (handlers: validate)");
}

const struct side_verbs lib_remote_verbs = {.open = remote_open,
                                            .close = remote_close,
                                            .enqueue = remote_enqueue,
                                            .fetch = remote_fetch,
                                            .control = remote_control,
                                            .plan = lib_remote_plan,
                                            .validator = remote_validator,
                                            .source = remote_source,
                                            .heartbeat = remote_heartbeat};
