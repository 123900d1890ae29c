/* A connection to a RabbitMQ broker, by librabbitmq: opened with time-outs, closed without a word.
 * On any doubt the socket is closed, never the protocol: a broker that is gone, blocked or silent
 * would let an orderly close wait. What was not acknowledged comes again. One thread each. */
#ifndef BROKERS_BROKER_LINK_H
#define BROKERS_BROKER_LINK_H

#include "base/arena.h"
#include "base/err.h"
#include "core/broker/broker_rules.h"

#include <amqp.h>
#include <amqp_framing.h>

#define BROKER_CHANNEL 1 /* the only one of a connection */
#define BROKER_RPC_S 10  /* longest wait for an answer */

struct broker_link {
    amqp_connection_state_t state; /* NULL = closed */
    int fd;
};

/* Connects, checks the certificate, logs in, opens the channel. Errors never name the password. */
int broker_link_open(struct broker_link *link, const struct broker_rule *rule, struct err *err);
void broker_link_close(struct broker_link *link);

/* Uses the queue as it is, or makes it: durable, of this type (absent = classic). */
int broker_link_queue(struct broker_link *link, const struct broker_rule *rule, struct str queue,
                      struct str type, struct err *err);

/* Of the last call that has such a reply. */
int broker_link_check(struct broker_link *link, const char *what, struct err *err);
/* Of an AMQP_STATUS_…. */
int broker_link_failed(int status, const char *what, struct err *err);
/* Of a method that ends a channel or a connection. */
int broker_link_ended(const amqp_method_t *method, const char *what, struct err *err);
/* The next frame, if one is here within the time; 0 = none is, 1 = it is. Sends heartbeats that are
 * due. */
int broker_link_frame(struct broker_link *link, amqp_frame_t *frame, int64_t wait_us,
                      struct err *err);

static inline amqp_bytes_t broker_bytes(struct str text)
{
    return (amqp_bytes_t){.len = text.len, .bytes = (void *)(uintptr_t)text.data};
}

static inline struct str broker_str(amqp_bytes_t bytes)
{
    return str_span(bytes.bytes ? bytes.bytes : "", bytes.len);
}

#endif
