/* The address of a broker: amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps. User, password and
 * virtual host may be percent-encoded. Pure; any thread. */
#ifndef CORE_BROKER_BROKER_URL_H
#define CORE_BROKER_BROKER_URL_H

#include "base/arena.h"
#include "base/err.h"

struct broker_url {
    bool tls;
    struct str user;     /* "guest" where the URL has none, as everywhere else */
    struct str password; /* the same */
    struct str host;     /* without the brackets of an IPv6 address */
    int64_t port;
    struct str vhost;    /* "/" where the URL has no path, "" where the path is "/" */
};

/* ERR_INVALID says what is wrong, never with the password. Texts are in the arena. */
int broker_url_parse(struct str url, struct arena *arena, struct broker_url *parts,
                     struct err *err);
bool broker_url_is_loopback(const struct broker_url *parts);
/* host:port/vhost, without secrets. */
struct str broker_url_shown(const struct broker_url *parts, struct arena *arena);

#endif
