#include "worker/sources/source_local.h"

#include "base/gate.h"
#include "base/thread.h"
#include "core/queue_name.h"
#include "core/render.h"

#include <pthread.h>
#include <stdlib.h>

#define JSON_BYTES_MAX (16 * 1024 * 1024) /* payload, data, outputs and checkpoint at bounds */

struct source_local {
    struct source base;
    struct engine *engine;
    const struct caller *caller;
    pthread_mutex_t mutex; /* all below */
    char *id;
    struct claim_request *waiting;
    bool interrupted;
};

static struct source_local *local_of(struct source *source)
{
    return (struct source_local *)source;
}

/* The id may change when the worker registers again. */
static struct str current_id(struct source_local *local, struct arena *arena)
{
    LOCKED(&local->mutex);

    return arena_str(arena, str_of(local->id));
}

static int local_register(struct source *source, const struct source_worker *worker,
                          struct arena *arena, struct source_registration *registered,
                          struct err *err)
{
    struct source_local *local = local_of(source);
    struct register_request request = {.base = {.kind = REQUEST_REGISTER, .arena = arena,
                                       .caller = local->caller},
                                       .worker = {.id = worker->id,
                                                  .hostname = worker->hostname,
                                                  .version = worker->version,
                                                  .pool_size = worker->pool_size},
                                       .queues = worker->queues,
                                       .queues_count = worker->queues_count,
                                       .types = worker->types,
                                       .types_count = worker->types_count,
                                       .categories = worker->categories,
                                       .categories_count = worker->categories_count,
                                       .in_process = true};

    if (engine_call(local->engine, &request.base) < 0) {
        *err = request.base.err;
        return -(int)err->code;
    }
    pthread_mutex_lock(&local->mutex);
    free(local->id);
    local->id = strndup(request.id.data, request.id.len);
    pthread_mutex_unlock(&local->mutex);
    *registered = (struct source_registration){request.id, request.heartbeat_ms, request.lease_ms,
                                               request.unknown_categories};
    return 0;
}

static int fill_work(const struct claim_request *request, const struct claimed *claimed,
                     bool want_json, struct arena *arena, struct work *work, struct err *err)
{
    const struct task *task = claimed->task;
    struct render_extra extra = {.claimed = true,
                                 .lease_ms = request->lease_ms,
                                 .checkpoint = claimed->checkpoint,
                                 .data = claimed->data,
                                 .traceparent = claimed->traceparent};
    BUF_AUTO struct buf json = BUF_INIT(JSON_BYTES_MAX);
    struct str data = claimed->data.data ? claimed->data : task->data;

    *work = (struct work){.id = task->id,
                          .lease_token = task->lease.token,
                          .lease_ms = request->lease_ms,
                          .attempt = task->counts.attempts,
                          .crash_count = task->counts.crashes,
                          .timeout_ms = task->spec.timeout_ms,
                          .retry_delay_ms = task->spec.retry.delay_ms,
                          .type = task->spec.type,
                          .namespace_name = task->spec.namespace_name,
                          .queue = queue_name_plain(task->spec.queue),
                          .payload = task->spec.payload.data ? task->spec.payload : STR("null"),
                          .data = data.data ? data : STR("null"),
                          .metadata = task->about.metadata.data ? task->about.metadata : STR("{}"),
                          .correlation_id = task->spec.correlation_id,
                          .traceparent = claimed->traceparent,
                          .tracestate = task->spec.trace.state};
    if (claimed->checkpoint) {
        work->checkpoint_name = claimed->checkpoint->name;
        work->checkpoint_progress = claimed->checkpoint->progress;
        work->checkpoint_data = claimed->checkpoint->data;
    }
    if (!want_json)
        return 0;
    render_task(&json, task, &extra);
    work->json = json.failed ? STR_NONE : arena_str(arena, buf_view(&json));
    return work->json.data ? 0 : err_no_memory(err);
}

/* One claim under way. */
struct local_claim {
    struct claim_request request; /* first: done gets a pointer to it */
    struct source_local *local;
    struct gate done;
    bool want_json;
    bool given; /* to source.arrived: its arena may be gone since */
};

static int fill_works(struct local_claim *claim, struct work **works, struct err *err)
{
    struct claim_request *request = &claim->request;

    *works = TRY_MEMORY(arena_alloc_array(request->base.arena, request->claimed_count,
                                          sizeof **works));
    for (uint32_t i = 0; i < request->claimed_count; i++)
        TRY(fill_work(request, &request->claimed[i], claim->want_json, request->base.arena,
                      &(*works)[i], err));
    return 0;
}

/* On the thread that made the commit. Tasks that are wanted as JSON are for the claimer's. */
static void claim_done(struct request *request)
{
    struct local_claim *claim = (struct local_claim *)request;
    const struct source *source = &claim->local->base;
    struct work *works;
    struct err err;

    claim->given = request->err.code == ERR_NONE && claim->request.claimed_count > 0 &&
                   source->arrived && !claim->want_json && fill_works(claim, &works, &err) == 0;
    if (claim->given)
        source->arrived(source->arrived_ctx, works, claim->request.claimed_count);
    gate_open(&claim->done);
}

static void claim_coming(struct claim_request *request)
{
    const struct source *source = &((struct local_claim *)request)->local->base;

    if (source->coming)
        source->coming(source->arrived_ctx);
}

static int local_claim(struct source *source, const struct source_want *want,
                       struct arena *arena, struct work **works, uint32_t *count, struct err *err)
{
    struct source_local *local = local_of(source);
    struct local_claim claim = {.request = {.base = {.caller = local->caller, .kind = REQUEST_CLAIM,
                                                     .arena = arena,
                                                     .done = claim_done},
                                            .worker_id = current_id(local, arena),
                                            .types = want->types,
                                            .types_count = want->types_count,
                                            .max = want->max,
                                            .wait_ms = want->wait_ms,
                                            .coming = want->json ? NULL : claim_coming},
                                .local = local,
                                .want_json = want->json};
    bool interrupted;

    *works = NULL;
    *count = 0;
    gate_shut(&claim.done);
    pthread_mutex_lock(&local->mutex);
    interrupted = local->interrupted;
    if (!interrupted) { /* submitted under the mutex, so that an interrupt finds it */
        engine_submit(local->engine, &claim.request.base);
        local->waiting = &claim.request;
    }
    pthread_mutex_unlock(&local->mutex);
    if (interrupted)
        return err_set(err, ERR_UNAVAILABLE, "the worker is stopping");
    gate_wait(&claim.done);
    pthread_mutex_lock(&local->mutex);
    local->waiting = NULL;
    pthread_mutex_unlock(&local->mutex);
    if (claim.request.base.err.code != ERR_NONE) {
        *err = claim.request.base.err;
        return -(int)err->code;
    }
    if (!claim.given)
        TRY(fill_works(&claim, works, err));
    *count = claim.request.claimed_count;
    return 0;
}

/* The texts of functions come with the spaces they were written with. */
static bool is_null(struct str json)
{
    size_t at = 0;

    while (at < json.len && (json.data[at] == ' ' || json.data[at] == '\n' ||
                             json.data[at] == '\r' || json.data[at] == '\t'))
        at++;
    return at < json.len && json.data[at] == 'n';
}

/* A member that is null is one that is not there, as over HTTP. */
static void drop_nulls(struct report *report)
{
    struct str *values[] = {&report->data,    &report->metadata,       &report->detail,
                            &report->context, &report->database_state, &report->file_state,
                            &report->tasks,   &report->result,         &report->details};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (is_null(*values[i]))
            *values[i] = STR_NONE;
}

static int local_report(struct source *source, const struct report *reports, uint32_t count,
                        struct report_result *results, struct err *err)
{
    struct source_local *local = local_of(source);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct report *copies = arena_copy(&arena, reports, count * sizeof *reports);
    struct report_request request = {.base = {.kind = REQUEST_REPORT, .arena = &arena,
                                       .caller = local->caller},
                                     .worker_id = current_id(local, &arena),
                                     .reports = copies,
                                     .count = count,
                                     .results = results};
    int rc;

    memset(results, 0, count * sizeof *results);
    TRY_MEMORY(copies);
    for (uint32_t i = 0; i < count; i++)
        drop_nulls(&copies[i]);
    engine_prepare_reports(local->engine, copies, count, results, &arena);
    rc = engine_call(local->engine, &request.base);
    if (rc < 0)
        *err = request.base.err;
    return rc;
}

/* tokens: of which lease, one each; NULL = of any. */
static int indices(const struct uuid *ids, const int64_t *tokens, uint32_t ids_count,
                   const struct held *held, uint32_t count, struct arena *arena, uint32_t **out,
                   uint32_t *out_count, struct err *err)
{
    *out_count = 0;
    *out = TRY_MEMORY(arena_alloc_array(arena, count + 1, sizeof **out));
    for (uint32_t i = 0; i < ids_count; i++)
        for (uint32_t h = 0; h < count; h++)
            if (uuid_eq(&ids[i], &held[h].task_id) &&
                (!tokens || tokens[i] == held[h].lease_token) && *out_count < count)
                (*out)[(*out_count)++] = h;
    return 0;
}

static int local_heartbeat(struct source *source, const struct held *held, uint32_t count,
                           struct arena *arena, struct heartbeat_answer *answer, struct err *err)
{
    struct source_local *local = local_of(source);
    struct uuid *ids = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *ids));
    int64_t *tokens = TRY_MEMORY(arena_alloc_array(arena, count, sizeof *tokens));
    const struct source_holds *holds = source->holds;
    const struct source_days *days = source->days;
    struct service_hold told[SERVICE_HOLDS_MAX];
    struct agent_day spent[AGENT_DAYS_MAX];
    struct heartbeat_request request = {.base = {.kind = REQUEST_HEARTBEAT, .arena = arena,
                                       .caller = local->caller},
                                        .worker_id = current_id(local, arena),
                                        .task_ids = ids,
                                        .lease_tokens = tokens,
                                        .count = count};

    for (uint32_t i = 0; i < count; i++) {
        ids[i] = held[i].task_id;
        tokens[i] = held[i].lease_token;
    }
    if (holds) {
        request.calls_services = true;
        request.holds = told;
        request.holds_count = holds->tell(holds->ctx, told, SERVICE_HOLDS_MAX);
    }
    if (days) {
        request.process = days->process;
        request.days = spent;
        request.days_count = days->tell(days->ctx, spent, AGENT_DAYS_MAX);
    }
    if (engine_call(local->engine, &request.base) < 0) {
        *err = request.base.err;
        return -(int)err->code;
    }
    if (days)
        days->hear(days->ctx, request.others, request.days_count);
    if (holds)
        holds->hear(holds->ctx, request.held_off, request.held_off_count);
    TRY(indices(request.cancel, NULL, request.cancel_count, held, count, arena, &answer->cancel,
                &answer->cancel_count, err));
    TRY(indices(request.pause, NULL, request.pause_count, held, count, arena, &answer->pause,
                &answer->pause_count, err));
    return indices(request.lost, request.lost_tokens, request.lost_count, held, count, arena,
                   &answer->lost, &answer->lost_count, err);
}

static int local_leave(struct source *source, struct err *err)
{
    struct source_local *local = local_of(source);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct leave_request request = {.base = {.kind = REQUEST_LEAVE, .arena = &arena,
                                       .caller = local->caller},
                                    .worker_id = current_id(local, &arena)};
    int rc = engine_call(local->engine, &request.base);

    if (rc < 0)
        *err = request.base.err;
    return rc;
}

static void local_interrupt(struct source *source)
{
    struct source_local *local = local_of(source);

    LOCKED(&local->mutex);
    local->interrupted = true;
    if (local->waiting)
        engine_forget(local->engine, REQUEST_CLAIM, &local->waiting->base);
}

static void local_hasten(struct source *source)
{
    struct source_local *local = local_of(source);

    LOCKED(&local->mutex);
    if (local->waiting)
        engine_forget(local->engine, REQUEST_CLAIM, &local->waiting->base);
}

static void local_free(struct source *source)
{
    struct source_local *local = local_of(source);

    pthread_mutex_destroy(&local->mutex);
    free(local->id);
    free(local);
}

static const struct source_verbs verbs = {.register_worker = local_register,
                                          .claim = local_claim,
                                          .report = local_report,
                                          .heartbeat = local_heartbeat,
                                          .leave = local_leave,
                                          .interrupt = local_interrupt,
                                          .hasten = local_hasten,
                                          .free = local_free};

struct source *source_local_new(struct engine *engine, const struct caller *caller)
{
    struct source_local *local = calloc(1, sizeof *local);

    if (!local)
        return NULL;
    local->base.verbs = &verbs;
    local->engine = engine;
    local->caller = caller;
    pthread_mutex_init(&local->mutex, NULL);
    return &local->base;
}
