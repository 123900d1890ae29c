/* What `perdura doctor` says about brokers: each is tried once, as a start does. Passwords are
 * never shown. One thread. */
#include "node/node.h"

#include "brokers/brokers.h"

int node_doctor_brokers(const struct settings *settings, struct arena *arena,
                        struct doctor_check **checks, uint32_t *count, struct err *err)
{
    char why[BROKER_WHY_BYTES];

    *count = settings->pool.brokers_count;
    *checks = TRY_MEMORY(arena_alloc_array(arena, *count + 1, sizeof **checks));
    for (uint32_t i = 0; i < *count; i++) {
        const struct broker_rule *rule = &settings->pool.brokers[i];
        struct doctor_check *check = &(*checks)[i];

        *check = (struct doctor_check){.verdict = DOCTOR_OK, .name = STR("broker")};
        if (brokers_try(rule, why)) {
            check->detail = arena_format(arena, STR_FMT " answers", STR_ARG(rule->name));
            continue;
        }
        check->verdict = DOCTOR_WARNING;
        check->detail = arena_format(arena, "Broker " STR_FMT " cannot be used: %s",
                                     STR_ARG(rule->name), why);
        check->fix = STR("start it, or correct its url, password, tls and queues; until then its "
                         "messages wait there");
    }
    return arena->failed ? err_no_memory(err) : 0;
}
