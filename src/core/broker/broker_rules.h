/* What the configuration says of brokers, and what is known of them while they are in use. Pure
 * data. */
#ifndef CORE_BROKER_BROKER_RULES_H
#define CORE_BROKER_BROKER_RULES_H

#include "base/str.h"

/* An entry of `brokers[].consume`: messages of a queue become tasks of a type. */
struct broker_input {
    struct str queue; /* of the broker; made where it is not there */
    struct str queue_type; /* "classic" or "quorum", where it is made */
    struct str type;
    struct str task_queue;     /* absent = `default` */
    struct str namespace_name;
    struct str dead_letters;   /* queue of refused messages; absent = QUEUE.dead */
    struct str payload;        /* JSON pointers into the body; absent = the whole body */
    struct str key;            /* absent = the message_id */
    struct str options;        /* other members of the task; absent = none */
    int64_t prefetch;
};

struct broker_tls {
    struct str ca; /* files in PEM; absent = the system's CAs, no certificate */
    struct str cert;
    struct str key;
};

/* An entry of `brokers:`. */
struct broker_rule {
    struct str name;
    struct str url;
    struct str password_file; /* in place of one in the URL; absent = none */
    struct str password;      /* what that file holds */
    struct broker_tls tls;
    struct str clear_text;    /* "loopback", "mesh", "allowed" */
    int64_t heartbeat_ms;
    const struct broker_input *inputs;
    uint32_t inputs_count;
};

#define BROKER_ERROR_BYTES 256

/* One queue that is consumed, as this node knows it. */
struct broker_view {
    struct str broker;
    struct str place; /* host, port and virtual host, without user and password */
    struct str queue;
    struct str type;
    struct str namespace_name;
    bool connected;
    int64_t messages;   /* since the start: that came, ... */
    int64_t tasks;      /* ... became a task, ... */
    int64_t duplicates; /* ... had one already, ... */
    int64_t refused;    /* ... went to the dead-letter queue, ... */
    int64_t put_off;    /* ... tries that met a bound or a store that is full or away, ... */
    int64_t failures;   /* ... and connections that failed */
    int64_t held;       /* messages here that are not acknowledged yet */
    char last_error[BROKER_ERROR_BYTES]; /* "" = there was none */
    int64_t last_error_us;               /* wall clock */
};

/* Any thread. */
struct broker_views {
    void *ctx;
    uint32_t (*count)(void *ctx);
    void (*read)(void *ctx, uint32_t index, struct broker_view *view);
};

#endif
