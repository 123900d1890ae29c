/* From a message of a broker to a task: what of it is the payload, which key it has, why it is
 * refused. Pure; any thread. */
#ifndef CORE_BROKER_BROKER_MESSAGE_H
#define CORE_BROKER_BROKER_MESSAGE_H

#include "core/broker/broker_rules.h"
#include "core/spec/spec.h"

#define BROKER_BODY_BYTES_MAX ((size_t)4 * 1024 * 1024) /* of a message that becomes a task */

struct broker_message {
    struct str body;
    struct str id; /* its message_id; absent = it has none */
};

/* The key of a task is `perdura:broker:BROKER:QUEUE:KEY`, so that no request can take it and no
 * other queue either; one that would be too long is a hash. Settings may be NULL. Texts are in the
 * arena or point into the body. A refusal says why, for the dead-letter queue. */
int broker_message_parse(struct str broker, const struct broker_input *input,
                         const struct broker_message *message, const struct settings *settings,
                         struct arena *arena, struct task_input *task, struct err *err);

#endif
