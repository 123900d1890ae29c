/* Dead letters: a message that cannot be a task goes to another queue of the broker, with the
 * reason in a header, before it is acknowledged. On a connection of its own, so that a broker that
 * blocks those who publish does not hold up those who consume. The consumer's thread. */
#ifndef BROKERS_BROKER_GRAVE_H
#define BROKERS_BROKER_GRAVE_H

#include "brokers/broker_link.h"

#define BROKER_REASON_HEADER "x-perdura-reason"
#define BROKER_QUEUE_HEADER "x-perdura-queue"

struct broker_grave {
    struct broker_link link;
    bool asked;     /* one is on its way */
    bool blocked;   /* by an alarm of the broker: it confirms when that is over */
    int64_t end_us; /* boot time: when it must have been confirmed */
};

struct dead_letter {
    struct str body;
    const amqp_basic_properties_t *properties; /* as they came */
    struct str reason;
};

/* One at a time: broker_grave_ask says whether it is there. After a failure the connection is
 * closed. */
int broker_grave_put(struct broker_grave *grave, const struct broker_rule *rule,
                     const struct broker_input *input, const struct dead_letter *letter,
                     struct err *err);
/* 1 = the broker has confirmed it, 0 = nothing yet. Never waits. */
int broker_grave_ask(struct broker_grave *grave, struct err *err);
void broker_grave_close(struct broker_grave *grave);
/* The queue's name. */
struct str broker_grave_queue(const struct broker_input *input, struct arena *arena);

#endif
