/* The HTTP/1.1 server: connections, requests, replies and streams. It knows no routes and no tasks.
 * Everything here runs on the loop thread. Requests of one connection are handled one at a time, so
 * answers leave in the order of the requests.
 *
 * A client that closes its sending side will send no further requests; the server still answers
 * what it sent before. Only an exchange that called http_on_gone (a long-poll) and a stream take it
 * as the client's leaving: waiting for a reader that has most likely left would hold work back from
 * others. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "net/loop.h"

struct http_server;
struct http_exchange;
struct http_address;

enum http_method {
    HTTP_OTHER, /* a method this server has no name for */
    HTTP_GET,
    HTTP_POST,
    HTTP_PATCH,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_HEAD,
    HTTP_OPTIONS
};

struct http_limits {
    size_t head_bytes_max;      /* request line and headers */
    uint32_t headers_max;       /* header lines */
    size_t url_bytes_max;       /* the request target */
    size_t body_bytes_max;      /* one body, decoded */
    size_t bodies_bytes_max;    /* all bodies of all connections at once */
    size_t unsent_bytes_max;    /* all answers that readers have not taken yet */
    uint32_t connections_max;
    uint32_t crowd_max;         /* more than that, only for requests that must not be put off */
    uint32_t strangers_max;     /* connections that are not known; connections_max = any number */
    uint32_t strangers_per_address_max;
    int64_t head_deadline_us;   /* from the first moment of a request to its last header byte */
    int64_t body_deadline_us;   /* for a whole body */
    int64_t grace_us;           /* before the two rates below count */
    uint32_t body_rate_min;     /* bytes per second a sender must reach */
    uint32_t write_rate_min;    /* bytes per second a reader must take while some are unsent */
    int64_t idle_deadline_us;   /* between requests */
    int64_t stranger_idle_us;   /* the same for one that is not known */
    int64_t linger_us;          /* how long a refused client may still talk into the void … */
    uint32_t linger_rate_min;   /* … and longer while it sends so many bytes per second … */
    size_t linger_bytes_max;    /* … up to that many */
    size_t pipeline_bytes_max;  /* requests sent ahead; above it the socket is not read */
    size_t stream_bytes_max;    /* unsent bytes of a stream */
};

#define HTTP_LIMITS_DEFAULT                                                                     \
    ((struct http_limits){                                                                      \
        .head_bytes_max = 16 * 1024,  /* tokens and cookies fit; 12000 of them are 192 MiB */    \
        .headers_max = 64,            /* clients and proxies together need far fewer */         \
        .url_bytes_max = 8 * 1024,    /* RFC 9112 section 3 asks for at least 8000 */           \
        .body_bytes_max = 32 * 1024 * 1024,          /* a batch of 1000 tasks of 32 KiB */      \
        .bodies_bytes_max = (size_t)512 * 1024 * 1024, /* 16 of the largest batches at once */  \
        .unsent_bytes_max = (size_t)512 * 1024 * 1024, /* twice the largest answer */           \
        .connections_max = 12000,     /* 10000 workers (F-H6) and the rest of the world */      \
        .crowd_max = 512,             /* answered and closed at once: room for every worker */  \
        .strangers_max = 4000,        /* as many as connect in a second or two */               \
        .strangers_per_address_max = 2000, /* a restart of that many workers on one machine */  \
        .head_deadline_us = 10 * INT64_C(1000000),   /* F-H5 */                                 \
        .body_deadline_us = 300 * INT64_C(1000000),  /* 32 MiB at 1 Mbit/s */                   \
        .grace_us = 10 * INT64_C(1000000),           /* a few lost packets and retries */       \
        .body_rate_min = 1024,        /* slower than any modem; a trickle is an attack */       \
        .write_rate_min = 1024,                                                                 \
        .idle_deadline_us = 75 * INT64_C(1000000),   /* longer than a long-poll of 60 s */      \
        .stranger_idle_us = 10 * INT64_C(1000000),   /* the next probe may connect again */     \
        .linger_us = 2 * INT64_C(1000000),           /* one slow round trip */                  \
        .linger_rate_min = 256 * 1024,                                                          \
        .linger_bytes_max = 64 * 1024 * 1024, /* twice the largest body: it learns why */       \
        .pipeline_bytes_max = 64 * 1024, /* one read of a fast sender */                        \
        .stream_bytes_max = 256 * 1024,  /* about 1000 events for a slow reader (F-H18) */      \
    })

struct http_request {
    enum http_method method;
    struct str path;    /* raw, undecoded, begins with '/' (or is "*" for OPTIONS) */
    struct str query;   /* raw, behind '?'; data NULL when there is none */
    struct str host;    /* of an absolute target, else the Host header; may be empty */
    struct str headers; /* the checked raw lines; use http_header */
    struct str body;
    bool keep_alive;
    bool expects_continue;
    uint8_t minor_version; /* HTTP/1.0 or HTTP/1.1 */
    bool is_secure;        /* came over TLS */
    const struct str *peer_sans; /* names of the client's certificate: "URI:…" or "DNS:…" */
    uint32_t peer_sans_count;
    const struct http_address *peer; /* of the connection, all of it, unlike http_peer_address */
};

/* The first header of that name (any case), without surrounding blanks; STR_NONE when absent. */
struct str http_header(const struct http_request *request, const char *name);

/* How often it is there, and the value of the first. */
uint32_t http_headers_count(const struct http_request *request, struct str name,
                            struct str *value);

/* Called with every complete request. It answers now or later, exactly once, by http_reply,
 * http_reply_buf or a stream; until then the exchange stays valid whatever the client does. */
typedef void http_handler(void *ctx, struct http_exchange *exchange);

/* Binds and listens at once. address: "host:port" or "[v6]:port", port 0 = any free one.
 * limits are copied; NULL = the defaults. log may be NULL. */
struct http_server *http_server_open(struct loop *loop, const char *address,
                                     const struct http_limits *limits, http_handler *handler,
                                     void *ctx, struct log *log, struct err *err);
/* Asked before any body of a stranger is read, and before one of more than HTTP_ADMIT_BODY_BYTES
 * (or of unknown length) of all others, so that a client without permission cannot fill the memory
 * for bodies. False: the handler gets the request at once, without its body, which is read and
 * dropped, and the connection closes behind the answer. Only the head can be looked at. */
#define HTTP_ADMIT_BODY_BYTES (64 * 1024)
typedef bool http_admit(void *ctx, struct http_exchange *exchange);
/* Other limits of strangers than at the opening, for connections from now on. */
void http_server_limit_strangers(struct http_server *server, uint32_t max,
                                 uint32_t per_address_max);
void http_server_set_admit(struct http_server *server, http_admit *admit);
/* From the next connection on every one has to speak TLS. tls outlives the server. */
struct tls;
void http_server_set_tls(struct http_server *server, struct tls *tls);
/* The address really bound, "127.0.0.1:8080" or "[::1]:8080". */
#define HTTP_ADDRESS_BYTES 64
void http_server_address(const struct http_server *server, char *out, size_t cap);
uint32_t http_server_connections(const struct http_server *server);
uint32_t http_server_strangers(const struct http_server *server); /* of them, not known */
/* Stops accepting, closes idle connections, lets running exchanges end (their replies say
 * "Connection: close"). After grace_us the rest is cut off, exchanges learn that their client is
 * gone. closed(ctx) is called once, later, when no socket is left open. */
void http_server_close(struct http_server *server, int64_t grace_us, void (*closed)(void *ctx),
                       void *ctx);
/* Frees everything; no exchange may be used afterwards. Not from inside a handler. */
void http_server_free(struct http_server *server);

const struct http_request *http_request(const struct http_exchange *exchange);

/* Where the connection comes from. IPv6: the network of 2^64 addresses. */
struct http_address {
    uint8_t bytes[16];
};
const struct http_address *http_peer_address(const struct http_exchange *exchange);
/* For tables. With a secret seed no client can choose addresses that share a place. */
uint32_t http_address_hash(const struct http_address *address, uint64_t seed);
bool http_address_eq(const struct http_address *a, const struct http_address *b);

/* Whether the one at the other end has shown that it may ask. Strangers are few, go first when
 * there is no room, and are not waited for long. */
void http_set_known(struct http_exchange *exchange, bool known);
/* The same for one of many owners, each a number of its own: it becomes known unless its owner has
 * `max` known connections already. */
void http_set_known_of(struct http_exchange *exchange, uint64_t owner, uint32_t max);
bool http_is_known(const struct http_exchange *exchange);
/* All places are taken by known connections, and this one is beyond them: only what must not be put
 * off is answered, and the connection closes behind it. */
bool http_is_crowded(const struct http_exchange *exchange);
struct arena *http_arena(struct http_exchange *exchange); /* lives as long as the exchange */
/* Gives the body's memory back early; long-polls call it before they wait. */
void http_release_body(struct http_exchange *exchange);

/* The connection closes behind the coming reply. */
void http_close_behind(struct http_exchange *exchange);
/* Adds a header to the coming reply. False, and nothing added, when the name is no token, the value
 * holds control characters (CR, LF), or HTTP_REPLY_HEADERS_BYTES_MAX is reached. */
#define HTTP_REPLY_HEADERS_BYTES_MAX 8192
bool http_reply_header(struct http_exchange *exchange, const char *name, const char *value);
/* Sends the answer and ends the exchange. content_type NULL = none. body is copied. */
void http_reply(struct http_exchange *exchange, int status, const char *content_type,
                struct str body);
/* The same without the copy: takes the memory out of *body and leaves it empty. */
void http_reply_buf(struct http_exchange *exchange, int status, const char *content_type,
                    struct buf *body);

/* Calls fn, once and never from inside a call of this header, when the client has left before the
 * answer. The exchange still has to be replied to (or its stream ended). */
void http_on_gone(struct http_exchange *exchange, void (*fn)(void *ctx), void *ctx);
bool http_is_gone(const struct http_exchange *exchange);

/* A reply of unknown length, such as server-sent events. Ends with http_stream_end. */
void http_stream_begin(struct http_exchange *exchange, const char *content_type);
/* False, and nothing queued, when the unsent bytes would exceed stream_bytes_max or the client is
 * gone. */
bool http_stream_send(struct http_exchange *exchange, struct str data);
size_t http_stream_backlog(const struct http_exchange *exchange); /* bytes not yet sent */
void http_stream_end(struct http_exchange *exchange);

#endif
