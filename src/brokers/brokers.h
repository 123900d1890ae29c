/* The brokers of a node's configuration (RabbitMQ): messages that become tasks. Without librabbitmq
 * the program is built without them, and a configuration that names one is refused. */
#ifndef BROKERS_BROKERS_H
#define BROKERS_BROKERS_H

#include "base/log.h"
#include "core/broker/broker_rules.h"
#include "engine/engine.h"

struct brokers; /* NULL = none are configured */

#define BROKER_WHY_BYTES 512

#ifdef PERDURA_RABBITMQ
/* Connects in the background: a broker that is away keeps nothing from starting. settings and log
 * live until brokers_free. */
int brokers_start(struct brokers **brokers, struct engine *engine,
                  const struct settings *settings, const struct log *log, struct err *err);
/* Before the engine is closed. */
void brokers_free(struct brokers *brokers);
/* Any thread, until brokers_free. */
const struct broker_views *brokers_views(const struct brokers *brokers);
/* Whether it can be used now; blocks for seconds at most. For `perdura doctor`. */
bool brokers_try(const struct broker_rule *rule, char why[BROKER_WHY_BYTES]);
#else
static inline int brokers_start(struct brokers **brokers, struct engine *engine,
                                const struct settings *settings, const struct log *log,
                                struct err *err)
{
    (void)engine, (void)settings, (void)log, (void)err;
    *brokers = NULL;
    return 0;
}

static inline void brokers_free(struct brokers *brokers)
{
    (void)brokers;
}

static inline const struct broker_views *brokers_views(const struct brokers *brokers)
{
    (void)brokers;
    return NULL;
}

static inline bool brokers_try(const struct broker_rule *rule, char why[BROKER_WHY_BYTES])
{
    (void)rule, (void)why;
    return true;
}
#endif

#endif
