/* Who is at the other end: the addresses of connections, and the strangers among them. A stranger
 * is a connection that has not yet shown that it may ask for anything (http_set_known). There may
 * be few of them, per address and in all, and they go first when there is no room. Loop thread. */
#ifndef NET_HTTP_PEERS_H
#define NET_HTTP_PEERS_H

#include "net/http.h"

#include <sys/queue.h>
#include <sys/socket.h>

struct http_exchange;

TAILQ_HEAD(http_strangers, http_exchange); /* the oldest first */

/* An address with strangers. */
struct http_peer {
    struct http_peer *next; /* in its bucket */
    struct http_address address;
    uint32_t strangers_count;
    struct http_strangers strangers;
};

#define HTTP_PEER_BUCKETS 1024
#define HTTP_OWNERS 16384 /* counts of known connections; two owners rarely share one */

struct http_peers {
    uint64_t seed; /* secret, of this process */
    struct http_peer *buckets[HTTP_PEER_BUCKETS];
    struct http_strangers strangers; /* of all addresses */
    uint32_t strangers_count;
    uint16_t owned[HTTP_OWNERS];
};

void http_peers_init(struct http_peers *peers);
void http_address_of(const struct sockaddr_storage *from, struct http_address *address);
/* All of it, for IPv6 too. */
void http_address_exact(const struct sockaddr_storage *from, struct http_address *address);

/* exchange->address is set. False: no memory. */
bool http_peers_add(struct http_peers *peers, struct http_exchange *exchange);
void http_peers_remove(struct http_peers *peers, struct http_exchange *exchange);
/* Counts it as one of this owner. False: that has `max` already. */
bool http_peers_own(struct http_peers *peers, struct http_exchange *exchange, uint64_t owner,
                    uint32_t max);
void http_peers_disown(struct http_exchange *exchange);

/* The connection to close when one more stranger comes from that address; NULL when there is
 * room. */
struct http_exchange *http_peers_surplus(struct http_peers *peers,
                                         const struct http_address *address,
                                         const struct http_limits *limits);
/* The connection to close when there is no room at all: the oldest, those between requests first;
 * NULL when there is none. */
struct http_exchange *http_peers_oldest(struct http_peers *peers);

#endif
