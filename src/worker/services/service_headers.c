/* What every call of an attempt says beside its payload, whatever it is sent over. The loop's
 * thread. */
#include "base/clock.h"
#include "worker/services/service_int.h"

struct visit {
    bool (*add)(void *ctx, struct str name, struct str value, bool is_secret);
    void *ctx;
};

static bool add_text(const struct visit *visit, const char *name, struct str value)
{
    return !value.data || visit->add(visit->ctx, str_of(name), value, false);
}

static bool add_number(const struct visit *visit, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    return add_text(visit, name, str_of(text));
}

/* Both are credentials. */
static bool add_proofs(const struct visit *visit, struct service_call *call)
{
    struct str identity, url;

    return call_prove(call, &identity, &url) &&
           (!identity.data || visit->add(visit->ctx, STR("Perdura-Identity"), identity, true)) &&
           (!url.data || visit->add(visit->ctx, STR("Perdura-Complete-Url"), url, true));
}

static bool add_task(const struct visit *visit, struct service_call *call)
{
    const struct work *work = &call->run->work;
    int64_t left_ms = (call->deadline_us - clock_boot_us()) / CLOCK_MS_US;
    char id[UUID_TEXT_BYTES];

    uuid_format(&work->id, id);
    return add_text(visit, "Idempotency-Key", call->key.data ? call->key : str_of(id)) &&
           add_text(visit, "Perdura-Task-Id", str_of(id)) &&
           add_number(visit, "Perdura-Attempt", work->attempt) &&
           add_number(visit, "Perdura-Deadline-Ms", left_ms > 0 ? left_ms : 0) &&
           add_text(visit, "traceparent", work->traceparent) &&
           add_text(visit, "tracestate", work->tracestate) && add_proofs(visit, call);
}

bool call_each_header(struct service_call *call,
                      bool (*add)(void *ctx, struct str name, struct str value, bool is_secret),
                      void *ctx)
{
    const struct service_rule *rule = call->line->rule;
    const struct visit visit = {add, ctx};

    for (uint32_t i = 0; i < rule->headers_count; i++) {
        const struct service_header *header = &rule->headers[i];

        if (header->value.data &&
            !add(ctx, header->name, header->value, header->env.data || header->file.data))
            return false;
    }
    return !call->run || add_task(&visit, call);
}
