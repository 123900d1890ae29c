/* Messages of one queue of a broker become tasks: a connection and a thread of its own each, so
 * that a queue that is gone or a broker that hangs holds up nothing else. Many messages share a
 * commit of the engine, and the broker hears of each only after it; one that comes twice has its
 * task already. */
#ifndef BROKERS_BROKER_CONSUMER_H
#define BROKERS_BROKER_CONSUMER_H

#include "base/log.h"
#include "core/broker/broker_rules.h"
#include "engine/engine.h"

struct broker_consumer;

/* What it is given lives until broker_consumer_free. NULL with err. */
struct broker_consumer *broker_consumer_start(struct engine *engine,
                                              const struct settings *settings,
                                              const struct broker_rule *rule,
                                              const struct broker_input *input,
                                              const struct log *log, struct err *err);
/* Takes no more messages; the engine still answers what it has. */
void broker_consumer_stop(struct broker_consumer *consumer);
/* Waits for that. NULL is fine. */
void broker_consumer_free(struct broker_consumer *consumer);
/* Any thread. */
void broker_consumer_view(struct broker_consumer *consumer, struct broker_view *view);

#endif
