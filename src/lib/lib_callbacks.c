/* Prepares and runs the dispatcher of callbacks for an embedded store. The opener's thread, but for
 * wake. */
#include "lib/lib_callbacks.h"

#include "outbound/callback_secret.h"
#include "outbound/webhook.h"

#define ALLOW_MAX 256

static int fill_allowed(struct callbacks *callbacks, struct settings *settings,
                        const struct pd_options *options, struct err *err)
{
    static const char *const loopback[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    bool given = options->callbacks_allow_count > 0;
    const char *const *from = given ? options->callbacks_allow : loopback;
    size_t count = given ? options->callbacks_allow_count : sizeof loopback / sizeof *loopback;

    if (count > ALLOW_MAX)
        return err_set(err, ERR_INVALID, "callbacks_allow has at most %d entries", ALLOW_MAX);
    callbacks->allow = TRY_MEMORY(arena_alloc_array(&callbacks->arena, count,
                                                    sizeof *callbacks->allow));
    for (size_t i = 0; i < count; i++) {
        callbacks->allow[i] = arena_str(&callbacks->arena, str_of(from[i] ? from[i] : ""));
        TRY_MEMORY(callbacks->allow[i].data);
    }
    settings->callbacks.allow = callbacks->allow;
    settings->callbacks.allow_count = (uint32_t)count;
    return 0;
}

int lib_callbacks_init(struct callbacks *callbacks, struct store *store, struct settings *settings,
                       const struct pd_options *options, struct err *err)
{
    TRY(fill_allowed(callbacks, settings, options, err));
    return callback_secret_load(store, settings, &callbacks->arena, &callbacks->secret, err);
}

int lib_callbacks_start(struct callbacks *callbacks, struct engine *engine,
                        const struct settings *settings, const struct log *log, struct err *err)
{
    struct webhooks *webhooks = webhooks_start(engine, settings, callbacks->secret, NULL, log, err);

    atomic_store(&callbacks->webhooks, webhooks);
    return webhooks ? 0 : -(int)err->code;
}

void lib_callbacks_wake(struct callbacks *callbacks)
{
    struct webhooks *webhooks = atomic_load(&callbacks->webhooks);

    if (webhooks)
        webhooks_wake(webhooks);
}

void lib_callbacks_halt(struct callbacks *callbacks)
{
    struct webhooks *webhooks = atomic_load(&callbacks->webhooks);

    if (webhooks)
        webhooks_halt(webhooks);
}

void lib_callbacks_deinit(struct callbacks *callbacks)
{
    webhooks_stop(atomic_load(&callbacks->webhooks));
    arena_deinit(&callbacks->arena);
}
