/* TLS of a listener: certificate, key and, where clients have to show a certificate, the CAs that
 * sign those. The files are watched: a change is in force for the next connection, and files that
 * cannot be used leave the ones before them in force. Connections keep what they began with. One
 * connection's TLS is in tls_session.h. Loop thread. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/log.h"
#include "net/loop.h"

#include <openssl/bio.h>
#include <stdbool.h>

struct tls;

struct tls_config {
    struct str cert;        /* PEM file: the certificate, then the rest of its chain */
    struct str key;         /* PEM file, not encrypted */
    struct str client_ca;   /* PEM file: every certificate in it is a CA; absent = none is wanted */
    struct str min_version; /* "1.2" or "1.3"; absent = 1.2 */
};

/* What the files hold. */
struct tls_facts {
    int64_t from_s;    /* the certificate is valid from … */
    int64_t until_s;   /* … until, seconds since 1970 */
    uint32_t ca_count; /* certificates in client_ca */
};

#define TLS_EXPIRES_SOON_S (30 * 86400)

/* Whether a listener could use these files. -ERR_INVALID with a sentence that names the file. */
int tls_check(const struct tls_config *config, struct tls_facts *facts, struct err *err);

/* Reads the files, refuses what tls_check refuses, and watches them. log may be NULL. */
struct tls *tls_open(struct loop *loop, const struct tls_config *config, const struct log *log,
                     struct err *err);
void tls_free(struct tls *tls); /* NULL is fine; behind the last of its sessions */

/* Reads the files now, changed or not. What came of it is a line in the log. */
void tls_reload(struct tls *tls);

/* Counts a handshake that failed. A log line every few seconds says how many, and why the last. */
void tls_count_failure(struct tls *tls, const char *reason);

/* Inside of net: for new connections, valid until the next turn of the loop. */
SSL_CTX *tls_context(const struct tls *tls);
const BIO_METHOD *tls_bio(const struct tls *tls);
/* tls_session.c: how OpenSSL reaches a session's buffers. NULL without memory. */
BIO_METHOD *tls_session_bio(void);
/* tls_context.c: NULL with err; the caller frees it. */
SSL_CTX *tls_context_new(const struct tls_config *config, struct tls_facts *facts,
                         struct err *err);

#endif
