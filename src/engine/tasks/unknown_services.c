/* Tasks whose type names a service that is not known: neither to this node's configuration nor to a
 * live worker. A worker may only be away for a moment, so they fail when that has lasted for a
 * lease. Part of the sweep, so only on the leader. */
#include "base/json.h"
#include "core/bounds.h"
#include "core/service/service_url.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/leases/workers.h"
#include "engine/tasks/claim.h"

#define LOOK_US (5 * CLOCK_SECOND_US) /* on a shared store other nodes may have enqueued */

bool unknown_services_has(struct engine *engine, struct str service)
{
    struct worker_state *worker;
    char pattern[BOUND_SERVICE_BYTES + 16];
    uint32_t cursor = 0;

    if (settings_service(engine->settings, service))
        return true;
    if (service.len > BOUND_SERVICE_BYTES)
        return false;
    snprintf(pattern, sizeof pattern, SERVICE_TYPE_PREFIX STR_FMT "/", STR_ARG(service));
    while ((worker = map_next(&engine->leases.workers, &cursor)) != NULL)
        if (worker->types && settings_types_cover(worker->types, worker->types_count,
                                                  str_of(pattern)))
            return true;
    return false;
}

static struct missing_service *find(struct leases *leases, struct str service)
{
    for (int i = 0; i < MISSING_SERVICES_MAX; i++)
        if (str_is(service, leases->missing[i].name))
            return &leases->missing[i];
    return NULL;
}

/* Since when it is missing; noted now if it was not before. */
static int64_t missing_since(struct batch *batch, struct str service)
{
    struct missing_service *missing = find(&batch->engine->leases, service);

    if (!missing) {
        missing = find(&batch->engine->leases, STR(""));
        if (!missing) /* many are: their turn comes */
            return batch->now_us;
        memcpy(missing->name, service.data, service.len);
        missing->name[service.len] = '\0';
        missing->since_us = batch->now_us;
    }
    missing->seen_us = batch->now_us;
    return missing->since_us;
}

static void forget_others(struct batch *batch)
{
    for (int i = 0; i < MISSING_SERVICES_MAX; i++) {
        struct missing_service *missing = &batch->engine->leases.missing[i];

        if (missing->seen_us != batch->now_us)
            *missing = (struct missing_service){.name = ""};
    }
}

static int fail_one(struct batch *batch, struct task *task, struct err *err)
{
    BUF_AUTO struct buf details = BUF_INIT(4096);
    struct str service, method;

    ASSERT(service_type_parse(task->spec.type, &service, &method));
    TRY(batch_adopt(batch, task, err));
    task->fault.error = batch_text(batch, "Unknown target service: " STR_FMT, STR_ARG(service));
    task->fault.last = task->fault.error;
    buf_text(&details, "{\"reason\":\"unknown_service\",\"code\":\"unknown_service\",");
    json_write_member_string(&details, "message", task->fault.error);
    buf_byte(&details, ',');
    json_write_member_string(&details, "service", service);
    buf_byte(&details, ',');
    json_write_member_string(&details, "method", method);
    buf_format(&details, ",\"attempt\":%lld,", (long long)task->counts.attempts);
    json_write_member_string(&details, "correlation_id", task->spec.correlation_id);
    buf_byte(&details, '}');
    task->fault.details = details.failed ? STR("{}")
                                         : arena_str(&batch->arena, buf_view(&details));
    return batch_move(batch, task, STATUS_FAILED, MOVE_NO_HANDLER, "Failed", ACTOR_LEADER,
                      task->fault.details, err);
}

static bool is_due(const struct batch *batch)
{
    struct leases *leases = &batch->engine->leases;

    if (batch->store->shared && batch->now_us - leases->services_looked_us >= LOOK_US)
        return true;
    return atomic_load(&batch->engine->main->leases.calls_wait);
}

int unknown_services_fail(struct batch *batch, bool *more, struct err *err)
{
    int64_t lease_us = batch->engine->settings->lease_ms * CLOCK_MS_US;
    uint32_t count, left = BOUND_CHORE_ROWS;
    struct str service, method;
    struct lane_count *lanes;
    bool any = false;

    if (!is_due(batch))
        return 0;
    batch->engine->leases.services_looked_us = batch->now_us;
    TRY(batch_flush(batch, err));
    TRY(batch->store->verbs->counts_load(batch->store, &batch->arena, &lanes, &count, err));
    for (uint32_t i = 0; i < count && left > 0; i++) {
        if (lanes[i].status != STATUS_PENDING || lanes[i].tasks == 0 ||
            !service_type_parse(lanes[i].type, &service, &method))
            continue;
        any = true;
        if (!unknown_services_has(batch->engine, service) && service.len <= BOUND_SERVICE_BYTES &&
            batch->now_us - missing_since(batch, service) >= lease_us)
            TRY(unclaimed_fail_lane(batch, &lanes[i], fail_one, &left, err));
    }
    forget_others(batch);
    atomic_store(&batch->engine->main->leases.calls_wait, any);
    *more |= left == 0;
    return batch_flush(batch, err);
}
