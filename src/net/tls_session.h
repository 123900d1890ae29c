/* The TLS of one connection, between two pairs of buffers: what the socket has received and will
 * send, and what HTTP reads and writes. It touches no socket and never waits, so that a connection
 * with TLS goes the same way as one without. (libevent's own TLS reads and writes the socket by
 * itself: two reads for each record, two epoll_ctl for each answer, and no way to let a refused
 * client read the alert before the close.) Loop thread. */
#ifndef NET_TLS_SESSION_H
#define NET_TLS_SESSION_H

#include "base/str.h"
#include "net/tls.h"

#include <event2/buffer.h>

struct tls_session;

enum tls_result {
    TLS_GOES_ON,
    TLS_ENDED, /* the other side said that it sends no more; it may still be answered */
    TLS_CLEAR, /* the first byte is no TLS but the letter of an HTTP request */
    TLS_FAILED /* nothing can be received or sent; an alert may be in `sealed_out` */
};

/* NULL without memory. The two buffers are the socket's and outlive the session. */
struct tls_session *tls_session_new(struct tls *tls, struct evbuffer *sealed_in,
                                    struct evbuffer *sealed_out);
void tls_session_free(struct tls_session *session); /* NULL is fine */

struct evbuffer *tls_session_input(struct tls_session *session);
struct evbuffer *tls_session_output(struct tls_session *session);

/* Opens what has arrived until input holds bytes_max or a little more; does the handshake first. */
enum tls_result tls_session_open(struct tls_session *session, size_t bytes_max);
/* Seals output until sealed_out holds bytes_max or a little more. False: it failed. Before the end
 * of the handshake output just waits. */
bool tls_session_seal(struct tls_session *session, size_t bytes_max);
/* Says that we send no more, if all of output is sealed. */
void tls_session_end(struct tls_session *session);

/* The names (SAN) of the client's certificate, which a CA of ours has signed: "URI:spiffe://…" or
 * "DNS:name". None before the end of the handshake. They live as long as the session. */
const struct str *tls_session_sans(const struct tls_session *session, uint32_t *count);

#endif
