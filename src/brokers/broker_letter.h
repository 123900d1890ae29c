/* A message that this node holds: it came, becomes a task or a dead letter, and is acknowledged
 * when the broker may forget it. The consumer's thread; the engine's from submit to done. */
#ifndef BROKERS_BROKER_LETTER_H
#define BROKERS_BROKER_LETTER_H

#include "brokers/broker_link.h"
#include "engine/engine.h"

enum letter_state {
    LETTER_COMES,   /* its body is not whole yet */
    LETTER_ASKED,   /* the engine has it */
    LETTER_WAITS,   /* for its next try */
    LETTER_REFUSED, /* for the dead-letter queue; request.base.err says why */
    LETTER_SETTLED  /* the broker may forget it */
};

struct letter {
    struct letter *next;      /* by age */
    struct letter *next_done; /* of those the engine is done with */
    void *owner;
    uint64_t tag;
    enum letter_state state;
    int64_t try_at_us;        /* boot time */
    struct arena mail;        /* the message */
    struct arena work;        /* what becomes of it; of one try */
    char *body;
    size_t body_bytes, read_bytes;
    amqp_basic_properties_t properties;
    amqp_pool_t headers;
    bool has_headers;
    struct task_input input;
    struct enqueue_request request;
};

struct letter *letter_new(uint64_t tag);
void letter_free(struct letter *letter);
/* What the header frame says; the frame's memory does not last. */
int letter_take_head(struct letter *letter, const amqp_frame_t *frame, struct err *err);
/* A piece of the body; true when it is whole. */
bool letter_take_body(struct letter *letter, amqp_bytes_t piece);
/* Makes the request for the engine, or a refusal in request.base.err. */
void letter_parse(struct letter *letter, struct str broker, const struct broker_input *input,
                  const struct settings *settings);
/* What the engine's answer makes of it. */
enum letter_state letter_decide(const struct err *answer);

#endif
