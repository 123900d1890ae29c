/* What `perdura doctor` says about target services: each is tried once, as a start does. Values of
 * headers are never shown. One thread. */
#include "node/node.h"

#include "worker/services/service_pool.h"

int node_doctor_services(const struct settings *settings, struct arena *arena,
                         struct doctor_check **checks, uint32_t *count, struct err *err)
{
    char why[SERVICE_WHY_BYTES];

    *count = settings->pool.services_count;
    *checks = TRY_MEMORY(arena_alloc_array(arena, *count + 1, sizeof **checks));
    for (uint32_t i = 0; i < *count; i++) {
        const struct service_rule *rule = &settings->pool.services[i];
        struct doctor_check *check = &(*checks)[i];

        *check = (struct doctor_check){.verdict = DOCTOR_OK, .name = STR("service")};
        if (service_try(rule, why)) {
            check->detail = arena_format(arena, STR_FMT ": " STR_FMT " answers",
                                         STR_ARG(rule->name), STR_ARG(rule->url));
            continue;
        }
        check->verdict = DOCTOR_WARNING;
        check->detail = arena_format(arena, "Service " STR_FMT " is not available: %s",
                                     STR_ARG(rule->name), why);
        check->fix = STR("start it, or correct its url and tls; until then its tasks are retried "
                         "and wait");
    }
    return arena->failed ? err_no_memory(err) : 0;
}
