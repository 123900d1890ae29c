/* Rules of the configuration over several entries and sections, behind those of each value. Pure
 * checks; the sentence names the file. */
#include "cli/config/config.h"

/* Rules over several entries: names are unique, services are known. */
static int check_names(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;

    for (uint32_t i = 0; i < settings->handlers_count; i++) {
        const struct handler_rule *rule = &settings->handlers[i];
        bool known = !rule->service.data || settings_service(settings, rule->service);

        for (uint32_t j = 0; j < i; j++)
            if (str_eq(settings->handlers[j].type, rule->type))
                return err_set(err, ERR_INVALID, "%s: two handlers have the type '" STR_FMT "'",
                               name, STR_ARG(rule->type));
        if (!known)
            return err_set(err, ERR_INVALID, "%s: handler '" STR_FMT "' names the service '" STR_FMT
                           "', which services does not list", name, STR_ARG(rule->type),
                           STR_ARG(rule->service));
    }
    for (uint32_t i = 0; i < settings->queues_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(settings->queues[j].name, settings->queues[i].name))
                return err_set(err, ERR_INVALID, "%s: two entries of queues have the name '" STR_FMT
                               "'", name, STR_ARG(settings->queues[i].name));
    return 0;
}

/* What ends earlier than all lines do cannot end later. */
static int check_retention(const struct config *config, const char *name, struct err *err)
{
    const struct settings *settings = &config->settings;
    int64_t end_ms = settings->retention.logs_ms > 0 ? settings->retention.logs_ms : INT64_MAX;

    for (int i = 0; i < SEVERITY_COUNT; i++)
        if (settings->retention.log_levels_ms[i] > end_ms)
            return err_set(err, ERR_INVALID, "%s: the time of %s in retention.log_levels is longer "
                           "than retention.logs, which ends all lines; raise that one", name,
                           severity_word((enum log_severity)i));
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].retention_logs_ms > end_ms)
            return err_set(err, ERR_INVALID, "%s: retention_logs of handler '" STR_FMT "' is "
                           "longer than retention.logs, which ends all lines; raise that one", name,
                           STR_ARG(settings->handlers[i].type));
    return 0;
}

int config_check(const struct config *config, const char *name, struct err *err)
{
    TRY(check_names(config, name, err));
    TRY(config_check_services(config, name, err));
    TRY(config_check_inboxes(config, name, err));
    TRY(config_check_brokers(config, name, err));
    TRY(config_check_agents(config, name, err));
    TRY(config_check_access(config, name, err));
    return check_retention(config, name, err);
}
