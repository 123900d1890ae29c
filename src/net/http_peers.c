/* The lists of strangers: one of all, one per address. Most are short; a crowd is what they are
 * for, so that every step takes the same time however many there are. */
#include "net/http_peers.h"

#include "base/hash.h"
#include "net/http_connection.h"

#include <netinet/in.h>
#include <stdlib.h>

#define LOOK_AT_MAX 16 /* for one between requests, before the oldest of all goes */

void http_peers_init(struct http_peers *peers)
{
    memset(peers, 0, sizeof *peers);
    hash_random(&peers->seed, sizeof peers->seed);
    TAILQ_INIT(&peers->strangers);
}

void http_address_exact(const struct sockaddr_storage *from, struct http_address *address)
{
    memset(address, 0, sizeof *address);
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;

        address->bytes[10] = address->bytes[11] = 0xff;
        memcpy(address->bytes + 12, &v4->sin_addr, 4);
    } else if (from->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)from)->sin6_addr;

        memcpy(address->bytes, v6, sizeof address->bytes);
    }
}

/* IPv6: who has one address has the 2^64 beside it. */
void http_address_of(const struct sockaddr_storage *from, struct http_address *address)
{
    struct in6_addr v6;

    http_address_exact(from, address);
    memcpy(&v6, address->bytes, sizeof v6);
    if (!IN6_IS_ADDR_V4MAPPED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6))
        memset(address->bytes + 8, 0, 8);
}

uint32_t http_address_hash(const struct http_address *address, uint64_t seed)
{
    return (uint32_t)hash_bytes64(address->bytes, sizeof address->bytes, seed);
}

bool http_address_eq(const struct http_address *a, const struct http_address *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static struct http_peer **find(struct http_peers *peers, const struct http_address *address)
{
    uint32_t hash = http_address_hash(address, peers->seed);
    struct http_peer **at = &peers->buckets[hash % HTTP_PEER_BUCKETS];

    while (*at && !http_address_eq(&(*at)->address, address))
        at = &(*at)->next;
    return at;
}

bool http_peers_add(struct http_peers *peers, struct http_exchange *exchange)
{
    struct http_peer **at = find(peers, &exchange->address);
    struct http_peer *peer = *at;

    if (!peer) {
        peer = *at = calloc(1, sizeof *peer);
        if (!peer)
            return false;
        peer->address = exchange->address;
        TAILQ_INIT(&peer->strangers);
    }
    TAILQ_INSERT_TAIL(&peer->strangers, exchange, of_peer);
    TAILQ_INSERT_TAIL(&peers->strangers, exchange, of_all);
    peer->strangers_count++;
    peers->strangers_count++;
    exchange->peer = peer;
    return true;
}

void http_peers_remove(struct http_peers *peers, struct http_exchange *exchange)
{
    struct http_peer *peer = exchange->peer;

    if (!peer)
        return;
    exchange->peer = NULL;
    TAILQ_REMOVE(&peer->strangers, exchange, of_peer);
    TAILQ_REMOVE(&peers->strangers, exchange, of_all);
    peers->strangers_count--;
    if (--peer->strangers_count == 0) {
        *find(peers, &peer->address) = peer->next;
        free(peer);
    }
}

bool http_peers_own(struct http_peers *peers, struct http_exchange *exchange, uint64_t owner,
                    uint32_t max)
{
    uint16_t *owned = &peers->owned[hash_bytes64(&owner, sizeof owner, peers->seed) % HTTP_OWNERS];

    if (*owned >= max || *owned == UINT16_MAX)
        return false;
    http_peers_disown(exchange);
    ++*owned;
    exchange->place.owned = owned;
    return true;
}

void http_peers_disown(struct http_exchange *exchange)
{
    if (exchange->place.owned)
        --*exchange->place.owned;
    exchange->place.owned = NULL;
}

static bool is_idle(const struct http_exchange *exchange)
{
    return exchange->phase == HTTP_PHASE_IDLE || exchange->phase == HTTP_PHASE_LINGER;
}

struct http_exchange *http_peers_oldest(struct http_peers *peers)
{
    struct http_exchange *at = TAILQ_FIRST(&peers->strangers);

    for (int i = 0; at && i < LOOK_AT_MAX; i++, at = TAILQ_NEXT(at, of_all))
        if (is_idle(at))
            return at;
    return TAILQ_FIRST(&peers->strangers);
}

static struct http_exchange *oldest_of(struct http_peer *peer)
{
    struct http_exchange *at = TAILQ_FIRST(&peer->strangers);

    for (int i = 0; at && i < LOOK_AT_MAX; i++, at = TAILQ_NEXT(at, of_peer))
        if (is_idle(at))
            return at;
    return TAILQ_FIRST(&peer->strangers);
}

struct http_exchange *http_peers_surplus(struct http_peers *peers,
                                         const struct http_address *address,
                                         const struct http_limits *limits)
{
    struct http_peer *peer = *find(peers, address);

    if (peer && peer->strangers_count >= limits->strangers_per_address_max)
        return oldest_of(peer);
    return peers->strangers_count >= limits->strangers_max ? http_peers_oldest(peers) : NULL;
}
