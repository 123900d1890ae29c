/* OpenSSL over evbuffers: a BIO takes ciphertext from one and puts it into the other. */
#include "net/tls_session.h"
#include "net/tls_sans.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES 16384 /* the most one record holds (RFC 8446 section 5.1) */

struct tls_session {
    struct tls *tls; /* told of handshakes that failed */
    SSL *ssl;
    struct evbuffer *sealed_in, *sealed_out;
    struct evbuffer *input, *output;
    struct str *sans;
    uint32_t sans_count;
    bool begun; /* the first byte was looked at */
    bool failed;
    bool ended;
};

/* ---- the BIO ---- */

static int bio_write(BIO *bio, const char *data, int len)
{
    struct tls_session *session = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    return len <= 0 || evbuffer_add(session->sealed_out, data, (size_t)len) == 0 ? len : -1;
}

static int bio_read(BIO *bio, char *data, int len)
{
    struct tls_session *session = BIO_get_data(bio);
    int got = len > 0 ? evbuffer_remove(session->sealed_in, data, (size_t)len) : 0;

    BIO_clear_retry_flags(bio);
    if (got > 0)
        return got;
    BIO_set_retry_read(bio);
    return -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_session_bio(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "evbuffers");

    if (method) {
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_ctrl(method, bio_control);
    }
    return method;
}

static BIO *new_bio(struct tls_session *session)
{
    BIO *bio = BIO_new(tls_bio(session->tls));

    if (!bio)
        return NULL;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- its life ---- */

struct tls_session *tls_session_new(struct tls *tls, struct evbuffer *sealed_in,
                                    struct evbuffer *sealed_out)
{
    struct tls_session *session = calloc(1, sizeof *session);
    BIO *bio;

    if (!session)
        return NULL;
    *session = (struct tls_session){.tls = tls, .sealed_in = sealed_in, .sealed_out = sealed_out};
    ERR_clear_error();
    session->input = evbuffer_new();
    session->output = evbuffer_new();
    session->ssl = SSL_new(tls_context(tls));
    bio = new_bio(session);
    if (!session->input || !session->output || !session->ssl || !bio) {
        BIO_free(bio);
        tls_session_free(session);
        return NULL;
    }
    SSL_set_bio(session->ssl, bio, bio);
    SSL_set_accept_state(session->ssl);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    if (session->input)
        evbuffer_free(session->input);
    if (session->output)
        evbuffer_free(session->output);
    free(session->sans);
    free(session);
}

struct evbuffer *tls_session_input(struct tls_session *session)
{
    return session->input;
}

struct evbuffer *tls_session_output(struct tls_session *session)
{
    return session->output;
}

/* ---- the names of the other side ---- */

static void take_sans(struct tls_session *session)
{
    X509 *cert = SSL_get0_peer_certificate(session->ssl);
    GENERAL_NAMES *names;

    if (!cert || SSL_get_verify_result(session->ssl) != X509_V_OK)
        return;
    names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    if (names)
        session->sans = tls_sans_of(names, &session->sans_count);
    GENERAL_NAMES_free(names);
}

const struct str *tls_session_sans(const struct tls_session *session, uint32_t *count)
{
    *count = session->sans_count;
    return session->sans;
}

/* ---- reading and writing ---- */

static enum tls_result fail(struct tls_session *session)
{
    long verdict = SSL_get_verify_result(session->ssl);
    const char *reason = verdict != X509_V_OK
                             ? X509_verify_cert_error_string(verdict)
                             : ERR_reason_error_string(ERR_peek_error());

    if (!SSL_is_init_finished(session->ssl))
        tls_count_failure(session->tls, reason ? reason : "unknown");
    session->failed = true;
    ERR_clear_error();
    return TLS_FAILED;
}

/* What a call to OpenSSL that did not succeed means. */
static enum tls_result result_of(struct tls_session *session, int rc)
{
    switch (SSL_get_error(session->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_GOES_ON;
    case SSL_ERROR_ZERO_RETURN:
        session->ended = true;
        evbuffer_drain(session->sealed_in, evbuffer_get_length(session->sealed_in));
        return TLS_ENDED;
    default:
        return fail(session);
    }
}

/* A record of TLS begins with a number below 32, a request with a capital letter. */
static bool is_clear(struct tls_session *session)
{
    char first = 0;

    if (session->begun || evbuffer_copyout(session->sealed_in, &first, 1) != 1)
        return false;
    session->begun = true;
    return first >= 'A' && first <= 'Z';
}

/* Asking OpenSSL for what is not there costs as much as opening a short record. */
static bool has_more(const struct tls_session *session)
{
    return evbuffer_get_length(session->sealed_in) || SSL_has_pending(session->ssl);
}

enum tls_result tls_session_open(struct tls_session *session, size_t bytes_max)
{
    char clear[RECORD_BYTES];
    int got;

    if (session->failed)
        return TLS_FAILED;
    if (session->ended) {
        evbuffer_drain(session->sealed_in, evbuffer_get_length(session->sealed_in));
        return TLS_ENDED;
    }
    if (!has_more(session))
        return TLS_GOES_ON;
    if (is_clear(session))
        return TLS_CLEAR;
    ERR_clear_error();
    if (!SSL_is_init_finished(session->ssl)) {
        got = SSL_do_handshake(session->ssl);
        if (got != 1)
            return result_of(session, got);
        take_sans(session);
    }
    while (has_more(session) && evbuffer_get_length(session->input) < bytes_max) {
        got = SSL_read(session->ssl, clear, sizeof clear);
        if (got <= 0)
            return result_of(session, got);
        if (evbuffer_add(session->input, clear, (size_t)got) < 0)
            return fail(session);
    }
    return TLS_GOES_ON;
}

bool tls_session_seal(struct tls_session *session, size_t bytes_max)
{
    char clear[RECORD_BYTES];

    if (session->failed)
        return false;
    if (!SSL_is_init_finished(session->ssl))
        return true;
    while (evbuffer_get_length(session->output) &&
           evbuffer_get_length(session->sealed_out) < bytes_max) {
        int len = evbuffer_remove(session->output, clear, sizeof clear);

        /* The BIO takes everything: less than all of it is a failure. */
        if (len <= 0 || SSL_write(session->ssl, clear, len) != len) {
            fail(session);
            return false;
        }
    }
    return true;
}

void tls_session_end(struct tls_session *session)
{
    if (session->failed || !SSL_is_init_finished(session->ssl) ||
        evbuffer_get_length(session->output))
        return;
    ERR_clear_error();
    SSL_shutdown(session->ssl);
    ERR_clear_error();
}
