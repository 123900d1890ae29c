/* Inside of the HTTP server, shared by http_server.c (listening, deadlines), http_connection.c (the
 * way of one connection) and http_reply.c (answers). Not included by other files. Loop thread only.
 *
 * A connection owns one exchange at a time, embedded in it. Memory is freed in one place,
 * http_connection_settle, which runs when no caller of ours still holds the connection. What cannot
 * be done inside a caller's http_* call (telling on_gone, starting the next request) waits in the
 * server's ready list for the next turn of the loop. */
#ifndef NET_HTTP_CONNECTION_H
#define NET_HTTP_CONNECTION_H

#include "net/http_parse.h"
#include "net/http_peers.h"
#include "net/tls_session.h"

#include <event2/bufferevent.h>
#include <event2/event.h>

enum http_phase {
    HTTP_PHASE_FRESH,   /* accepted, nothing received: the head's deadline runs */
    HTTP_PHASE_IDLE,    /* between requests */
    HTTP_PHASE_HEAD,
    HTTP_PHASE_BODY,
    HTTP_PHASE_RUNNING, /* the handler has the exchange */
    HTTP_PHASE_STREAM,  /* the handler streams its answer */
    HTTP_PHASE_CLOSING, /* the last bytes are leaving */
    HTTP_PHASE_LINGER   /* our side is shut; what still comes is dropped */
};

/* Bytes of an exchange, and our share of what all connections hold. */
struct http_flow {
    uint64_t body_bytes;       /* body bytes received, framing included */
    size_t body_counted;       /* our share of server->bodies_bytes */
    uint64_t queued_bytes;     /* ever put into the output */
    size_t unsent_counted;     /* our share of server->unsent_bytes */
    int64_t blocked_since_us;  /* 0 = nothing unsent */
    uint64_t blocked_at_bytes; /* sent bytes then */
    size_t lingered_bytes;
    bool rest_moved;           /* what is unsent has memory of its own */
};

/* Among the connections that there may be. */
struct http_place {
    bool crowded;    /* beyond connections_max */
    uint16_t *owned; /* where it is counted among those of its owner; NULL = nowhere */
};

struct http_exchange {
    struct http_server *server;
    struct http_exchange *next, **link;             /* all connections */
    struct http_exchange *ready_next, **ready_link; /* link NULL = not in the list */
    TAILQ_ENTRY(http_exchange) of_peer, of_all;     /* of a stranger */
    struct http_peer *peer;                         /* of a stranger; NULL = it is known */
    struct http_address address, exact;
    struct bufferevent *bev;                        /* NULL: cut off, only the exchange is left */
    struct tls_session *tls;                        /* between bev and us; NULL = clear text */
    enum http_phase phase;
    bool advancing;    /* inside http_connection_advance: others only leave marks */
    bool eof;          /* the client sends no more */
    bool write_failed; /* cut off in the next turn */
    bool gone;         /* the client has left the exchange */
    bool gone_told;
    bool close_after;  /* the reply said "Connection: close" */
    bool expired;      /* a deadline has passed: dealt with in the next turn */
    bool linger;       /* unread input is expected and dropped: close gently */
    struct http_place place;
    bool caching;      /* the reply's headers say whether it may be kept */
    int64_t since_us;  /* start of the phase */
    struct http_flow flow;
    void (*gone_fn)(void *ctx);
    void *gone_ctx;
    struct arena arena;
    struct buf reply_headers;
    struct http_parse parse;
};

#define HTTP_SPARE_ARENAS 16 /* as many as exchanges commonly run within one turn */

struct http_server {
    struct loop *loop;
    struct log *log;
    struct http_limits limits;
    http_handler *handler;
    http_admit *admit; /* NULL = everything */
    void *ctx;
    struct tls *tls; /* NULL = clear text */
    int fd;
    struct event *accept_event;
    struct loop_timer *accept_timer; /* back-off after EMFILE */
    struct loop_timer *ready_timer;
    struct loop_timer *sweep_timer;
    int64_t sweep_us;
    struct http_exchange *connections;
    struct http_exchange *ready;
    struct http_peers peers;
    uint32_t connections_count;
    uint32_t sockets_count;
    size_t bodies_bytes;
    size_t unsent_bytes; /* of connections whose socket is full */
    struct arena spare_arenas[HTTP_SPARE_ARENAS];
    uint32_t spare_count;
    bool closing;
    bool was_large; /* connections held much memory since it was last given back */
    bool full_logged;
    bool backoff_logged;
    int64_t close_at_us;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* http_connection.c. Takes over fd. */
void http_connection_new(struct http_server *server, int fd, const struct sockaddr_storage *peer,
                         bool crowded);
/* Handles what has arrived, as far as it goes, then flushes and settles. */
void http_connection_advance(struct http_exchange *exchange);
/* Closes, lingers or frees when the time has come; the exchange may be gone afterwards. */
void http_connection_settle(struct http_exchange *exchange);
/* Cuts the socket off; the exchange, if one runs, learns of it. Not inside a caller's call. */
void http_connection_cut(struct http_exchange *exchange);
/* Answers an error and closes. */
void http_connection_refuse(struct http_exchange *exchange, const struct err *err);
/* Drops everything without an answer or a callback. */
void http_connection_free(struct http_exchange *exchange);
void http_connection_set_phase(struct http_exchange *exchange, enum http_phase phase);
void http_connection_make_ready(struct http_exchange *exchange);
void http_connection_run_ready(struct http_exchange *exchange);
/* http_output.c. Writes what the socket takes now; the rest follows when it can. */
void http_connection_flush(struct http_exchange *exchange);
void http_connection_count_body(struct http_exchange *exchange);
size_t http_connection_unsent(const struct http_exchange *exchange);
void http_connection_count_unsent(struct http_exchange *exchange, size_t bytes);
/* What HTTP writes into, while there is a bev. */
struct evbuffer *http_connection_output(const struct http_exchange *exchange);
/* Says goodbye where everything has been sent; from then on the socket's own buffers are used. */
void http_connection_end_tls(struct http_exchange *exchange);
void http_connection_drop_tls(struct http_exchange *exchange); /* without a word */

static inline bool http_phase_is_open(enum http_phase phase)
{
    return phase == HTTP_PHASE_RUNNING || phase == HTTP_PHASE_STREAM;
}

/* Puts bytes behind the unsent ones. */
void http_connection_queue(struct http_exchange *exchange, const void *data, size_t len);
/* The answer is queued: forgets the request and continues with the connection. */
void http_connection_end_exchange(struct http_exchange *exchange);

/* http_server.c */
void http_server_recheck(struct http_server *server); /* a socket has been closed */
bool http_server_has_expired(const struct http_exchange *exchange, int64_t now_us);

/* http_reply.c: the head and body of an error that ends the connection. */
void http_reply_write_error(struct http_exchange *exchange, const struct err *err);
void http_reply_write_continue(struct http_exchange *exchange);

#endif
