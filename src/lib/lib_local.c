/* The embedded side: store and queue in this process, as a server has them, without HTTP. Calls are
 * requests to the queue's thread; those of several threads share a commit. Reads go to readers of
 * their own, kept for the next call. */
#include "lib/lib_int.h"

#include <stdlib.h>

#include "base/thread.h"
#include "calendar/zones.h"
#include "core/queue_name.h"
#include "lib/lib_callbacks.h"
#include "lib/lib_keys.h"
#include "lib/lib_validators.h"
#include "worker/sources/source_local.h"

#define READERS_KEPT 8                        /* idle ones; more are closed after use */
#define SPECS_BYTES_MAX ((size_t)512 << 20)   /* of a batch that needs the parser */

struct local {
    struct settings settings;
    struct keyring *keyring; /* NULL = no keys were given */
    struct store *store;
    struct engine *engine;
    struct zones *zones;
    char namespace_name[NAMESPACE_BYTES_MAX + 1];
    struct caller caller; /* of every request */
    struct callbacks callbacks;
    struct lib_validators validators;
    pthread_mutex_t lock; /* of what follows */
    struct store_reader *readers[READERS_KEPT];
    uint32_t readers_count;
    char failure[512]; /* why the store failed, "" = it did not */
};

/* 0 of the options: the default; less: for ever, which is 0 of the settings. */
static void keep(int64_t given_ms, int64_t *kept_ms)
{
    if (given_ms)
        *kept_ms = given_ms < 0 ? 0 : given_ms;
}

static void fill_settings(struct settings *settings, const struct pd_options *options)
{
    settings_init(settings);
    if (options->lease_ms)
        settings->lease_ms = options->lease_ms;
    keep(options->keep_completed_ms, &settings->retention.completed_ms);
    keep(options->keep_completed_ms, &settings->retention.events_ms);
    keep(options->keep_completed_ms, &settings->retention.executions_ms);
    keep(options->keep_completed_ms, &settings->retention.logs_ms);
    keep(options->keep_failed_ms, &settings->retention.failed_ms);
    settings->allow_network_fs = options->allow_network_fs != 0;
}

/* On the queue's thread. Everything asked from now on is answered with this. */
static void on_fatal(void *ctx, const struct err *reason)
{
    struct local *local = ctx;

    LOCKED(&local->lock);
    snprintf(local->failure, sizeof local->failure, "%s", reason->text);
}

static void on_outbox(void *ctx)
{
    lib_callbacks_wake(&((struct local *)ctx)->callbacks);
}

static void on_recovery(void *ctx)
{
    lib_validators_wake(&((struct local *)ctx)->validators);
}

static bool validates(void *ctx, struct str type)
{
    return lib_validators_know(&((struct local *)ctx)->validators, type);
}

static void local_close(struct pd *pd)
{
    struct local *local = pd->side;

    lib_callbacks_halt(&local->callbacks);
    lib_validators_halt(&local->validators);
    if (local->engine)
        engine_close(local->engine);
    lib_callbacks_deinit(&local->callbacks);
    lib_validators_deinit(&local->validators);
    for (uint32_t i = 0; i < local->readers_count; i++)
        local->store->verbs->reader_close(local->readers[i]);
    if (local->store)
        local->store->verbs->close(local->store);
    if (local->zones)
        zones_free(local->zones);
    keyring_free(local->keyring);
    pthread_mutex_destroy(&local->lock);
    free(local);
    pd->side = NULL;
}

/* The program that opens the store may do everything in it. */
static const struct principal owner = {
    .kind = PRINCIPAL_LOCAL, .namespace_name = {ACCESS_ANY_NAMESPACE, 1},
    .scopes = SCOPE_BIT(SCOPE_ADMIN)};

static int take_namespace(struct local *local, const char *given, struct err *err)
{
    const char *name = given ? given : getenv("PERDURA_NAMESPACE");

    if (!name || !*name)
        name = TASK_DEFAULT_NAMESPACE;
    TRY(namespace_check_name(str_of(name), err));
    snprintf(local->namespace_name, sizeof local->namespace_name, "%s", name);
    local->caller = (struct caller){.principal = &owner,
                                    .is_program = true,
                                    .namespace_name = str_of(local->namespace_name)};
    return 0;
}

static int make_namespace(struct local *local, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct namespace_request request = {
        .base = {.kind = REQUEST_NAMESPACE, .arena = &arena, .caller = &local->caller},
        .row = {.name = local->caller.namespace_name}};

    if (engine_call(local->engine, &request.base) == 0)
        return 0;
    request.op = NAMESPACE_CREATE;
    if (request.base.err.code == ERR_NOT_FOUND && engine_call(local->engine, &request.base) == 0)
        return 0;
    *err = request.base.err;
    return -(int)err->code;
}

static int local_open(struct pd *pd, const char *where, const struct pd_options *options,
                      struct err *err)
{
    struct store_options store_options = {.serves = true,
                                          .allow_network_fs = options->allow_network_fs != 0,
                                          .log = pd->logger};
    struct local *local = TRY_MEMORY(calloc(1, sizeof *local));
    struct engine_config config = {.log = pd->logger,
                                   .on_outbox = on_outbox,
                                   .on_recovery = on_recovery,
                                   .validates = validates,
                                   .awaits_worker = true,
                                   .on_fatal = on_fatal,
                                   .ctx = local};

    pd->side = local;
    pthread_mutex_init(&local->lock, NULL);
    lib_validators_init(&local->validators);
    fill_settings(&local->settings, options);
    if (take_namespace(local, options->namespace_name, err) < 0)
        goto failed;
    config.settings = &local->settings;
    if (lib_keys_open(options, &local->keyring, err) < 0)
        goto failed;
    store_options.keyring = local->keyring;
    if (store_open(&local->store, str_of(where), &store_options, err) < 0) {
        local->store = NULL;
        goto failed;
    }
    if (zones_new(getenv("PERDURA_ZONEINFO"), &local->zones, err) < 0)
        goto failed;
    config.zones = local->zones;
    if (lib_callbacks_init(&local->callbacks, local->store, &local->settings, options, err) < 0)
        goto failed;
    if (engine_open(&local->engine, local->store, &config, err) < 0) {
        local->engine = NULL;
        goto failed;
    }
    if (make_namespace(local, err) < 0)
        goto failed;
    if (lib_callbacks_start(&local->callbacks, local->engine, &local->settings, pd->logger, err) ==
        0)
        return 0;
failed:
    local_close(pd);
    return -(int)err->code;
}

/* Submits and waits; *err is what the queue said, or why there is none any more. */
static int call(struct local *local, struct request *request, struct err *err)
{
    request->caller = &local->caller;
    if (engine_call(local->engine, request) == 0)
        return 0;
    *err = request->err;
    if (err->code == ERR_UNAVAILABLE) {
        pthread_mutex_lock(&local->lock);
        if (local->failure[0])
            err_set(err, ERR_STORAGE, "the store failed (%s); close the handle and open it again",
                    local->failure);
        pthread_mutex_unlock(&local->lock);
    }
    return -(int)err->code;
}

static int local_validator(struct pd *pd, const char *type, pd_validate *validate, void *ctx,
                           struct err *err)
{
    struct local *local = pd->side;

    return lib_validators_add(&local->validators, local->engine, &local->settings, pd->logger, type,
                              validate, ctx, err);
}

int lib_local_call(struct pd *pd, struct request *request, struct err *err)
{
    return call(pd->side, request, err);
}

/* ---- enqueue ---- */

/* All of them straight; *parse = one of them is for the parser. */
static int fill_straight(struct local *local, const struct pd_task_spec *specs, uint32_t count,
                         struct arena *arena, struct task_input *inputs, bool *parse,
                         struct err *err)
{
    struct err cause = {0};
    int rc = 1;

    for (uint32_t i = 0; rc == 1 && i < count; i++) {
        rc = lib_plain_input(&specs[i], &inputs[i], &cause);
        if (rc == 1 && spec_finish(&inputs[i], &local->settings, arena, &cause) < 0)
            rc = -(int)cause.code;
        if (rc < 0 && count == 1)
            *err = cause;
        else if (rc < 0)
            err_set_field(err, cause.code, cause.field, "element %u: %.400s", i, cause.text);
    }
    *parse = rc == 0;
    return rc < 0 ? rc : 0;
}

static int fill_parsed(struct local *local, const struct pd_task_spec *specs, uint32_t count,
                       struct arena *arena, struct task_input **inputs, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(SPECS_BYTES_MAX);
    bool is_array;
    struct str json;

    TRY(lib_write_specs(&text, specs, count, err));
    json = arena_str(arena, buf_view(&text));
    TRY_MEMORY(json.data);
    TRY(json_check(json, &json, err));
    return spec_parse_all(json, &local->settings, arena, inputs, &count, &is_array, err);
}

static int local_enqueue(struct pd *pd, const struct pd_task_spec *specs, uint32_t count,
                         struct pd_enqueued *enqueued, struct err *err)
{
    struct local *local = pd->side;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct enqueue_request request = {.base = {.kind = REQUEST_ENQUEUE, .arena = &arena},
                                      .count = count,
                                      .actor = ACTOR_API};
    bool parse = false;

    request.inputs = TRY_MEMORY(arena_alloc_array(&arena, count, sizeof *request.inputs));
    TRY(fill_straight(local, specs, count, &arena, request.inputs, &parse, err));
    if (parse)
        TRY(fill_parsed(local, specs, count, &arena, &request.inputs, err));
    TRY(call(local, &request.base, err));
    for (uint32_t i = 0; enqueued && i < count; i++) {
        uuid_format(&request.tasks[i]->id, enqueued[i].id);
        enqueued[i].duplicate = request.duplicate[i];
        enqueued[i].payload_differs = request.differs[i];
    }
    return 0;
}

/* ---- reading ---- */

static struct store_reader *take_reader(struct local *local, struct err *err)
{
    struct store_reader *reader = NULL;

    pthread_mutex_lock(&local->lock);
    if (local->readers_count)
        reader = local->readers[--local->readers_count];
    pthread_mutex_unlock(&local->lock);
    return reader ? reader : local->store->verbs->reader_open(local->store, err);
}

static void give_reader(struct local *local, struct store_reader *reader)
{
    pthread_mutex_lock(&local->lock);
    if (local->readers_count < READERS_KEPT) {
        local->readers[local->readers_count++] = reader;
        reader = NULL;
    }
    pthread_mutex_unlock(&local->lock);
    if (reader)
        local->store->verbs->reader_close(reader);
}

int lib_local_reader_take(struct pd *pd, struct lib_reader *reader, struct err *err)
{
    struct local *local = pd->side;

    *reader = (struct lib_reader){.store = local->store,
                                  .engine = local->engine,
                                  .zones = local->zones,
                                  .namespace_name = local->caller.namespace_name,
                                  .reader = take_reader(local, err)};
    return reader->reader ? 0 : -(int)err->code;
}

void lib_local_reader_give(struct pd *pd, struct lib_reader *reader)
{
    give_reader(pd->side, reader->reader);
    reader->reader = NULL;
}

static int read_result(struct local *local, const struct uuid *id, struct pd_result *result,
                       struct err *err)
{
    const struct store_verbs *verbs = local->store->verbs;
    struct store_reader *reader = take_reader(local, err);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct task *task = NULL;
    struct str payload = STR_NONE;
    int64_t created_at_us;
    int rc;

    if (!reader)
        return -(int)err->code;
    rc = verbs->read_task(reader, id, &arena, &task, err);
    if (rc == 0 && (!task || !str_eq(task->spec.namespace_name, local->caller.namespace_name)))
        rc = err_set(err, ERR_NOT_FOUND, "there is no task with this id");
    if (rc == 0 && status_ended(task->status))
        rc = verbs->read_result(reader, id, &arena, &payload, &created_at_us, err);
    if (rc == 0)
        rc = lib_fill_result(result, task, payload, err);
    give_reader(local, reader);
    return rc;
}

static int local_fetch(struct pd *pd, const struct uuid *id, int64_t wait_ms,
                       struct pd_result *result, struct err *err)
{
    struct local *local = pd->side;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    bool forever = wait_ms < 0 || wait_ms > BOUND_DELAY_MS;
    struct wait_request request = {.base = {.kind = REQUEST_WAIT, .arena = &arena},
                                   .task_id = *id,
                                   .timeout_ms = forever ? BOUND_DELAY_MS : wait_ms};
    int rc = wait_ms ? call(local, &request.base, err) : 0;

    return rc < 0 ? rc : read_result(local, id, result, err);
}

static int local_control(struct pd *pd, const struct control_request *wish, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct control_request request = *wish;

    request.base = (struct request){.kind = REQUEST_CONTROL, .arena = &arena};
    return call(pd->side, &request.base, err);
}

/* ---- working ---- */

static struct source *local_source(struct pd *pd, struct err *err)
{
    struct local *local = pd->side;
    struct source *source = source_local_new(local->engine, &local->caller);

    if (!source)
        err_no_memory(err);
    return source;
}

static int local_heartbeat(struct pd *pd, struct str worker_id, struct arena *arena,
                           struct uuid **ids, uint32_t *count, struct err *err)
{
    struct heartbeat_request request = {.base = {.kind = REQUEST_HEARTBEAT, .arena = arena},
                                        .worker_id = worker_id};

    TRY(call(pd->side, &request.base, err));
    *count = 0;
    *ids = TRY_MEMORY(arena_alloc_array(arena, request.cancel_count + request.pause_count,
                                        sizeof **ids));
    for (uint32_t i = 0; i < request.cancel_count; i++)
        (*ids)[(*count)++] = request.cancel[i];
    for (uint32_t i = 0; i < request.pause_count; i++)
        (*ids)[(*count)++] = request.pause[i];
    return 0;
}

const struct side_verbs lib_local_verbs = {.open = local_open,
                                           .close = local_close,
                                           .enqueue = local_enqueue,
                                           .fetch = local_fetch,
                                           .control = local_control,
                                           .plan = lib_local_plan,
                                           .validator = local_validator,
                                           .source = local_source,
                                           .heartbeat = local_heartbeat};
