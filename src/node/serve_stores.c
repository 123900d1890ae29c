#include "node/serve_stores.h"

#include "outbound/callback_secret.h"
#include "store/sealed/sealed.h"
#include "store/store_parts.h"

static void on_notes(void *ctx, const struct task_note *notes, uint32_t count)
{
    const struct engine_config *config = &((struct serve_store *)ctx)->all->config;

    config->on_notes(config->ctx, notes, count);
}

static void on_spans(void *ctx, const struct span *spans, uint32_t count)
{
    const struct engine_config *config = &((struct serve_store *)ctx)->all->config;

    config->on_spans(config->ctx, spans, count);
}

static void on_fatal(void *ctx, const struct err *reason)
{
    const struct engine_config *config = &((struct serve_store *)ctx)->all->config;

    config->on_fatal(config->ctx, reason);
}

static void on_outbox(void *ctx)
{
    struct webhooks *webhooks = atomic_load(&((struct serve_store *)ctx)->webhooks);

    if (webhooks)
        webhooks_wake(webhooks);
}

static void on_recovery(void *ctx)
{
    struct validators *validators = atomic_load(&((struct serve_store *)ctx)->validators);

    if (validators)
        validators_wake(validators);
}

static bool validates(void *ctx, struct str type)
{
    const struct settings *settings = atomic_load(&((struct serve_store *)ctx)->all->settings);

    return !type.data || validators_configured(settings, type);
}

static int open_store(struct serve_stores *stores, struct str where, struct err *err)
{
    const struct settings *settings = stores->config.settings;
    struct store_options options = {.serves = true,
                                    .again = settings->again,
                                    .allow_network_fs = settings->allow_network_fs,
                                    .any_schema = settings->allow_changed_schema,
                                    .pooler = str_is(settings->pooler, "transaction"),
                                    .sql_role = settings->access.sql_role,
                                    .shares = true,
                                    .keyring = stores->keyring,
                                    .log = stores->config.log};
    struct serve_store *one = &stores->list[stores->count];
    struct err why = {0};
    char shown[128];

    if (store_open(&one->store, where, &options, &why) < 0) {
        store_shown(where, shown, sizeof shown);
        if (stores->count == 0)
            *err = why;
        else
            err_set(err, why.code, "the store '%s' that queues are routed to cannot be opened: "
                    "%.300s", shown, why.text);
        return -(int)err->code;
    }
    one->all = stores;
    one->where = where;
    stores->count++;
    return 0;
}

/* An engine in front of one engine per store, and all stores as one for readers. */
static int open_routes(struct serve_stores *stores, const struct engine_config *config,
                       struct engine **engine, struct err *err)
{
    struct route_part parts[ROUTES_MAX];
    struct store *list[ROUTES_MAX];
    struct store_parts_config shown = {.stores = list,
                                       .count = stores->count,
                                       .where = routes_where,
                                       .failed = routes_failed};

    for (uint32_t i = 0; i < stores->count; i++) {
        struct serve_store *one = &stores->list[i];

        list[i] = one->store;
        parts[i] = (struct route_part){one->where, one->store, *config};
        parts[i].config.ctx = one;
        if (i > 0) { /* planning and the file of anchors are about the main store */
            parts[i].config.zones = NULL;
            parts[i].config.anchor = STR_NONE;
        }
    }
    TRY(routes_open(engine, parts, stores->count, err));
    for (uint32_t i = 0; i < stores->count; i++)
        stores->list[i].engine = routes_part(*engine, i);
    shown.ctx = *engine;
    stores->shown = store_parts_new(&shown, err);
    return stores->shown ? 0 : -(int)err->code;
}

static int load_sealed(struct store *store, struct arena *arena, struct str *secret, bool *locked,
                       struct err *err)
{
    int rc;

    TRY(store->verbs->begin(store, err));
    rc = sealed_secret(store, "call_key", arena, secret, locked, err);
    if (rc == 0)
        rc = store->verbs->commit(store, err);
    if (rc < 0)
        store->verbs->rollback(store);
    return rc;
}

/* Who knows it can end every running task. An encrypted store does not hold it: there it follows
 * from a data key. Absent where that cannot be opened. */
static int load_call_secret(struct store *store, struct arena *arena, struct str *secret,
                            struct err *err)
{
    bool locked = false;

    *secret = STR_NONE;
    if (sealed_keyring(store))
        TRY(load_sealed(store, arena, secret, &locked, err));
    if (secret->data || locked)
        return 0;
    return store_secret_load(store, "call_secret", arena, secret, err);
}

static int load_call_keys(struct serve_stores *stores, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str secret;

    TRY(load_call_secret(stores->list[0].store, &arena, &secret, err));
    if (!secret.data) {
        LOG(stores->config.log, LOG_WARN, "services.no_proofs",
            KC("reason", "the encryption key that calls of services are proved with is not here"));
        return 0;
    }
    stores->call_keys = call_keys_new(secret);
    return stores->call_keys ? 0
                             : err_set(err, ERR_INTERNAL,
                                       "the secret of calls in the store is not one");
}

int serve_stores_open(struct serve_stores *stores, const struct engine_config *given,
                      struct engine **engine, struct err *err)
{
    struct engine_config config = *given;
    struct str wheres[ROUTES_MAX];
    uint32_t count;

    stores->config = *given;
    atomic_store(&stores->settings, given->settings);
    config.on_notes = on_notes;
    config.on_spans = given->on_spans ? on_spans : NULL;
    config.on_outbox = on_outbox;
    config.on_fatal = on_fatal;
    config.on_recovery = on_recovery;
    config.validates = validators_any(given->settings) ? validates : NULL;
    config.ctx = &stores->list[0];
    TRY(routes_stores(given->settings, wheres, &count, err));
    TRY(zones_new(getenv("PERDURA_ZONEINFO"), &stores->zones, err));
    config.zones = stores->zones;
    for (uint32_t i = 0; i < count; i++)
        TRY(open_store(stores, wheres[i], err));
    TRY(callback_secret_load(stores->list[0].store, given->settings, &stores->arena,
                             &stores->secret, err));
    TRY(load_call_keys(stores, err));
    if (count > 1)
        return open_routes(stores, &config, engine, err);
    stores->shown = stores->list[0].store;
    TRY(engine_open(engine, stores->shown, &config, err));
    stores->list[0].engine = *engine;
    return 0;
}

static int start_validators(struct serve_store *one, struct err *err)
{
    const struct engine_config *config = &one->all->config;
    struct validators *validators;

    if (!validators_any(config->settings))
        return 0;
    validators =
        validators_start(one->engine, config->settings, one->all->spawner, NULL, config->log, err);
    if (!validators)
        return -(int)err->code;
    atomic_store(&one->validators, validators);
    validators_wake(validators);
    return 0;
}

int serve_stores_start_helpers(struct serve_stores *stores, struct err *err)
{
    for (uint32_t i = 0; i < stores->count; i++) {
        struct webhooks *webhooks = webhooks_start(stores->list[i].engine, stores->config.settings,
                                                   stores->secret, NULL, stores->config.log, err);

        if (!webhooks)
            return -(int)err->code;
        atomic_store(&stores->list[i].webhooks, webhooks);
        webhooks_wake(webhooks); /* for what was committed before it existed */
        TRY(start_validators(&stores->list[i], err));
    }
    return 0;
}

void serve_stores_configure(struct serve_stores *stores, const struct settings *settings)
{
    atomic_store(&stores->settings, settings);
    for (uint32_t i = 0; i < stores->count; i++) {
        struct validators *validators = atomic_load(&stores->list[i].validators);

        webhooks_configure(atomic_load(&stores->list[i].webhooks), settings);
        if (validators)
            validators_configure(validators, settings);
    }
}

void serve_stores_halt_helpers(struct serve_stores *stores)
{
    for (uint32_t i = 0; i < stores->count; i++) {
        if (atomic_load(&stores->list[i].webhooks))
            webhooks_halt(stores->list[i].webhooks);
        if (atomic_load(&stores->list[i].validators))
            validators_halt(stores->list[i].validators);
    }
}

void serve_stores_stop_helpers(struct serve_stores *stores)
{
    for (uint32_t i = 0; i < stores->count; i++) {
        webhooks_stop(atomic_load(&stores->list[i].webhooks));
        validators_stop(atomic_load(&stores->list[i].validators));
    }
}

void serve_stores_close(struct serve_stores *stores)
{
    if (stores->count > 1 && stores->shown)
        stores->shown->verbs->close(stores->shown);
    for (uint32_t i = 0; i < stores->count; i++)
        stores->list[i].store->verbs->close(stores->list[i].store);
    if (stores->zones)
        zones_free(stores->zones);
    call_keys_free(stores->call_keys);
    arena_deinit(&stores->arena);
}
