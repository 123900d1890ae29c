/* The worker's routes over HTTP, blocking. Each purpose has its client and a lock, because the
 * source may be called from several threads. */
#include "worker/sources/source_remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "core/queue_name.h"
#include "core/task/task.h"
#include "core/task/worker_id.h"
#include "net/http_client.h"
#include "worker/sources/source_remote_json.h"

#define CLAIM_EXTRA_MS 10000  /* beyond the long-poll itself */
#define REPORT_MS 30000       /* a large batch on a busy server */
#define HEARTBEAT_MS 10000    /* soon enough to be sent again within a lease */
#define OTHER_MS 10000
#define BODY_BYTES_MAX (64 * 1024 * 1024)
#define PATH_BYTES_MAX 2048
#define BODY_BYTES_KEEP (1024 * 1024) /* larger buffers are given back after use */

enum purpose { FOR_CLAIM, FOR_REPORT, FOR_HEARTBEAT, FOR_OTHER, PURPOSE_COUNT };

struct line {
    pthread_mutex_t lock;
    struct http_client *client;
    struct buf body;
    struct buf response;
    struct buf path;
};

struct source_remote {
    struct source base; /* first */
    struct line lines[PURPOSE_COUNT];
    pthread_mutex_t lock; /* of what the registration gave */
    struct arena arena;
    struct str id;
    struct buf queues; /* JSON arrays */
    struct buf types;
};

static struct source_remote *remote_of(struct source *source)
{
    return (struct source_remote *)source;
}

/* ---- one call ---- */

static struct line *line_begin(struct source_remote *remote, enum purpose purpose)
{
    struct line *line = &remote->lines[purpose];

    pthread_mutex_lock(&line->lock);
    buf_reset(&line->body);
    buf_reset(&line->path);
    return line;
}

static void line_end(struct line **begun)
{
    struct line *line = *begun;

    if (line->body.cap > BODY_BYTES_KEEP)
        buf_deinit(&line->body);
    if (line->response.cap > BODY_BYTES_KEEP)
        buf_deinit(&line->response);
    pthread_mutex_unlock(&line->lock);
}

#define LINE_AUTO __attribute__((cleanup(line_end))) /* of line_begin: ended with its block */

static int worker_path(struct source_remote *remote, struct line *line, const char *verb,
                       struct err *err)
{
    pthread_mutex_lock(&remote->lock);
    buf_text(&line->path, "/v1/workers/");
    http_client_escape(&line->path, remote->id);
    buf_text(&line->path, verb);
    pthread_mutex_unlock(&remote->lock);
    buf_byte(&line->path, '\0');
    if (line->path.failed)
        return err_set(err, ERR_INVALID, "the worker's id is too long");
    return 0;
}

static int post(struct line *line, int64_t timeout_ms, struct err *err)
{
    int status;

    if (line->body.failed)
        return err_set(err, ERR_TOO_LARGE, "a request is larger than %d bytes", BODY_BYTES_MAX);
    return http_client_request(line->client, "POST", line->path.data, buf_view(&line->body),
                               timeout_ms, &line->response, &status, err);
}

/* ---- verbs ---- */

static int keep_registration(struct source_remote *remote, const struct source_worker *worker,
                             struct str id, struct err *err)
{
    bool failed;

    LOCKED(&remote->lock);
    arena_reset(&remote->arena);
    remote->id = arena_str(&remote->arena, id);
    buf_reset(&remote->queues);
    buf_reset(&remote->types);
    remote_write_strings(&remote->queues, worker->queues, worker->queues_count);
    if (worker->types_count) /* an empty list would mean: what it registered */
        remote_write_strings(&remote->types, worker->types, worker->types_count);
    failed = !remote->id.data || remote->queues.failed || remote->types.failed;
    return failed ? err_no_memory(err) : 0;
}

static int remote_register(struct source *source, const struct source_worker *worker,
                           struct arena *arena, struct source_registration *registered,
                           struct err *err)
{
    struct source_remote *remote = remote_of(source);
    LINE_AUTO struct line *line = line_begin(remote, FOR_OTHER);
    const struct str default_queue = STR(TASK_DEFAULT_QUEUE);
    struct source_worker given = *worker;
    int rc;

    if (!given.id.data) /* host-pid-random: this process, not the server's */
        given.id = remote->id.data ? arena_str(arena, remote->id)
                                   : worker_id_new(given.hostname, getpid(), arena);
    if (!given.queues_count) {
        given.queues = &default_queue;
        given.queues_count = 1;
    }
    buf_append(&line->path, "/v1/workers", sizeof "/v1/workers");
    remote_write_register(&line->body, &given);
    rc = post(line, OTHER_MS, err);
    if (rc == -ERR_NOT_FOUND) /* this route always exists: it is not our server */
        return err_set(err, ERR_IO, "there is no Perdura server at this address");
    TRY(rc);
    TRY(remote_read_register(buf_view(&line->response), arena, registered, err));
    return keep_registration(remote, &given, registered->id, err);
}

/* Work comes as JSON in any case. */
static int remote_claim(struct source *source, const struct source_want *want,
                        struct arena *arena, struct work **works, uint32_t *count,
                        struct err *err)
{
    struct source_remote *remote = remote_of(source);
    LINE_AUTO struct line *line = line_begin(remote, FOR_CLAIM);
    BUF_AUTO struct buf types = BUF_INIT(1024 * 1024);
    BUF_AUTO struct buf services = BUF_INIT(1024 * 1024);
    struct str body;

    *count = 0;
    TRY(worker_path(remote, line, ":claim", err));
    if (want->types_count)
        remote_write_strings(&types, want->types, want->types_count);
    if (want->types_count && want->services)
        remote_write_strings(&services, want->services, want->types_count);
    pthread_mutex_lock(&remote->lock);
    remote_write_claim(&line->body, buf_view(&remote->queues),
                       types.len           ? buf_view(&types)
                       : remote->types.len ? buf_view(&remote->types)
                                           : STR_NONE,
                       services.len ? buf_view(&services) : STR_NONE, want->max, want->wait_ms);
    pthread_mutex_unlock(&remote->lock);
    if (types.failed || services.failed)
        return err_no_memory(err);
    TRY(post(line, want->wait_ms + CLAIM_EXTRA_MS, err));
    body = arena_str(arena, buf_view(&line->response));
    TRY_MEMORY(body.data);
    return remote_read_claim(body, want->max, arena, works, count, err);
}

static int remote_report(struct source *source, const struct report *reports, uint32_t count,
                         struct report_result *results, struct err *err)
{
    struct source_remote *remote = remote_of(source);
    LINE_AUTO struct line *line = line_begin(remote, FOR_REPORT);

    TRY(worker_path(remote, line, ":report", err));
    remote_write_reports(&line->body, reports, count);
    TRY(post(line, REPORT_MS, err));
    return remote_read_reports(buf_view(&line->response), results, count, err);
}

static int remote_heartbeat(struct source *source, const struct held *held, uint32_t count,
                            struct arena *arena, struct heartbeat_answer *answer, struct err *err)
{
    struct source_remote *remote = remote_of(source);
    LINE_AUTO struct line *line = line_begin(remote, FOR_HEARTBEAT);

    const struct source_holds *holds = source->holds;
    struct service_hold list[SERVICE_HOLDS_MAX];
    uint32_t told = holds ? holds->tell(holds->ctx, list, SERVICE_HOLDS_MAX) : 0;
    const struct source_days *days = source->days;
    struct agent_day spent[AGENT_DAYS_MAX];
    uint32_t spent_count = days ? days->tell(days->ctx, spent, AGENT_DAYS_MAX) : 0;
    const struct source_figures *figures = source->figures;

    TRY(worker_path(remote, line, ":heartbeat", err));
    remote_write_heartbeat(&line->body, held, count, holds ? list : NULL, told,
                           days ? days->process : STR_NONE, spent, spent_count,
                           figures ? figures->tell(figures->ctx) : STR_NONE);
    TRY(post(line, HEARTBEAT_MS, err));
    if (figures)
        figures->heard(figures->ctx);
    if (days)
        days->hear(days->ctx, spent, remote_read_days(buf_view(&line->response), arena, spent));
    if (holds)
        holds->hear(holds->ctx, list, remote_read_holds(buf_view(&line->response), arena, list));
    return remote_read_heartbeat(buf_view(&line->response), held, count, arena, answer, err);
}

/* The calls since the last heartbeat. */
static void tell_last(struct source *source)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct heartbeat_answer answer;
    struct err err = {0};

    remote_heartbeat(source, NULL, 0, &arena, &answer, &err);
}

static int remote_leave(struct source *source, struct err *err)
{
    struct source_remote *remote = remote_of(source);
    LINE_AUTO struct line *line = line_begin(remote, FOR_OTHER);
    int status = 0;
    int rc;

    if (source->figures)
        tell_last(source);
    TRY(worker_path(remote, line, "", err));
    rc = http_client_request(line->client, "DELETE", line->path.data, STR_NONE, OTHER_MS,
                             &line->response, &status, err);
    return rc == -ERR_NOT_FOUND ? 0 : rc; /* forgotten already */
}

/* Only claims: reports, heartbeats and leaving are what a stopping worker still has to do. */
static void remote_interrupt(struct source *source)
{
    http_client_interrupt(remote_of(source)->lines[FOR_CLAIM].client);
}

static void remote_free(struct source *source)
{
    struct source_remote *remote = remote_of(source);

    for (int i = 0; i < PURPOSE_COUNT; i++) {
        struct line *line = &remote->lines[i];

        http_client_free(line->client);
        buf_deinit(&line->body);
        buf_deinit(&line->response);
        buf_deinit(&line->path);
        pthread_mutex_destroy(&line->lock);
    }
    buf_deinit(&remote->queues);
    buf_deinit(&remote->types);
    arena_deinit(&remote->arena);
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

static const struct source_verbs remote_verbs = {
    .register_worker = remote_register,
    .claim = remote_claim,
    .report = remote_report,
    .heartbeat = remote_heartbeat,
    .leave = remote_leave,
    .interrupt = remote_interrupt,
    .free = remote_free,
};

struct source *source_remote_open(struct str url, struct str token, struct str namespace_name,
                                  const struct http_client_tls *tls, struct err *err)
{
    struct source_remote *remote = err_calloc(sizeof *remote, err);
    bool ok = true;

    if (!remote)
        return NULL;
    if (namespace_name.len && namespace_check_name(namespace_name, err) < 0) {
        free(remote);
        return NULL;
    }
    remote->base.verbs = &remote_verbs;
    remote->queues = BUF_INIT(1024 * 1024);
    remote->types = BUF_INIT(1024 * 1024);
    pthread_mutex_init(&remote->lock, NULL);
    for (int i = 0; i < PURPOSE_COUNT; i++) {
        struct line *line = &remote->lines[i];

        pthread_mutex_init(&line->lock, NULL);
        line->body = BUF_INIT(BODY_BYTES_MAX);
        line->response = BUF_INIT(HTTP_CLIENT_RESPONSE_BYTES);
        line->path = BUF_INIT(PATH_BYTES_MAX);
        line->client = ok ? http_client_new(url, token, err) : NULL;
        ok = ok && line->client &&
             (!tls || http_client_set_tls(line->client, tls, err) == 0) &&
             (!namespace_name.len || http_client_add_header(line->client, STR("Perdura-Namespace"),
                                                            namespace_name, err) == 0);
    }
    if (ok)
        return &remote->base;
    remote_free(&remote->base);
    return NULL;
}
