/* From files to an SSL_CTX: everything that could make a handshake fail later is checked here, so
 * that a bad file is refused as a whole. Any thread. */
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATH_BYTES_MAX 4096
#define CHAIN_DEPTH_MAX 8 /* of a client's certificate */

/* Forward secrecy and authenticated encryption only; TLS 1.3 has nothing else. */
#define CIPHERS_TLS12 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define GROUPS "X25519:P-256:P-384"

static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return text ? text : "it is not PEM";
}

static int path_of(struct str file, char path[PATH_BYTES_MAX], struct err *err)
{
    if (file.len >= PATH_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the path of a TLS file is too long");
    memcpy(path, file.data, file.len);
    path[file.len] = '\0';
    return 0;
}

static int check_readable(const char *what, const char *path, struct err *err)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return err_set(err, ERR_INVALID, "cannot read %s %s: %s", what, path, strerror(errno));
    fclose(file);
    return 0;
}

/* No terminal is asked in the middle of a start. */
static int no_password(char *out, int cap, int writing, void *ctx)
{
    (void)out;
    (void)cap;
    (void)writing;
    (void)ctx;
    return -1;
}

/* A client may speak HTTP/1.1 with or without saying so. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned offered_len, void *ctx)
{
    static const unsigned char own[] = "\x08http/1.1";

    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto((unsigned char **)out, out_len, own, sizeof own - 1, offered,
                              offered_len) == OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_OK;
    return SSL_TLSEXT_ERR_NOACK;
}

static int set_rules(SSL_CTX *ctx, const struct tls_config *config, struct err *err)
{
    int version = str_is(config->min_version, "1.3") ? TLS1_3_VERSION : TLS1_2_VERSION;

    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* an idle connection holds none */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    if (!SSL_CTX_set_min_proto_version(ctx, version) ||
        !SSL_CTX_set_cipher_list(ctx, CIPHERS_TLS12) || !SSL_CTX_set1_groups_list(ctx, GROUPS) ||
        !SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"perdura", 7))
        return err_set(err, ERR_INTERNAL, "OpenSSL refuses the rules for TLS: %s", reason());
    return 0;
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts;

    return time && ASN1_TIME_to_tm(time, &parts) ? (int64_t)timegm(&parts) : 0;
}

/* Not by OpenSSL's own function: a program that is started meanwhile must not inherit the file. */
static bool use_key(SSL_CTX *ctx, const char *path)
{
    FILE *file = fopen(path, "re");
    EVP_PKEY *key = file ? PEM_read_PrivateKey(file, NULL, no_password, NULL) : NULL;
    bool ok = key && (SSL_CTX_use_PrivateKey(ctx, key) == 1 ||
                      ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH);

    EVP_PKEY_free(key);
    if (file)
        fclose(file);
    return ok;
}

static int use_certificate(SSL_CTX *ctx, const struct tls_config *config, struct tls_facts *facts,
                           struct err *err)
{
    char cert[PATH_BYTES_MAX];
    char key[PATH_BYTES_MAX];
    const X509 *leaf;

    TRY(path_of(config->cert, cert, err));
    TRY(path_of(config->key, key, err));
    TRY(check_readable("tls.cert", cert, err));
    TRY(check_readable("tls.key", key, err));
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return err_set(err, ERR_INVALID, "tls.cert %s holds no certificate chain that can be used "
                       "(%s); it must be PEM, the server's own certificate first", cert, reason());
    if (!use_key(ctx, key))
        return err_set(err, ERR_INVALID, "tls.key %s holds no private key that can be used (%s); "
                       "it must be PEM, without a pass phrase", key, reason());
    if (SSL_CTX_check_private_key(ctx) != 1)
        return err_set(err, ERR_INVALID, "tls.key %s does not belong to the certificate %s", key,
                       cert);
    leaf = SSL_CTX_get0_certificate(ctx);
    facts->from_s = seconds_of(X509_get0_notBefore(leaf));
    facts->until_s = seconds_of(X509_get0_notAfter(leaf));
    return 0;
}

/* Every certificate of the file, so that an old and a new CA can be trusted side by side. */
static int add_authorities(SSL_CTX *ctx, FILE *file, const char *path, struct tls_facts *facts,
                           struct err *err)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509 *cert;
    bool ok = true;

    ERR_clear_error();
    while (ok && (cert = PEM_read_X509(file, NULL, no_password, NULL)) != NULL) {
        ok = X509_STORE_add_cert(store, cert) == 1 && SSL_CTX_add_client_CA(ctx, cert) == 1;
        X509_free(cert);
        facts->ca_count++;
    }
    /* behind the last one it finds no further beginning; everything else is damage */
    if (!ok || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return err_set(err, ERR_INVALID, "tls.client_ca %s cannot be read behind certificate %u "
                       "(%s)", path, facts->ca_count, reason());
    if (facts->ca_count == 0)
        return err_set(err, ERR_INVALID, "tls.client_ca %s holds no certificate; it must be PEM",
                       path);
    return 0;
}

/* A resumed session would skip the certificate, so that there are none: neither tickets nor a
 * cache. */
static int ask_clients(SSL_CTX *ctx, const struct tls_config *config, struct tls_facts *facts,
                       struct err *err)
{
    char path[PATH_BYTES_MAX];
    FILE *file;
    int rc;

    if (str_empty(config->client_ca))
        return 0;
    TRY(path_of(config->client_ca, path, err));
    TRY(check_readable("tls.client_ca", path, err));
    file = fopen(path, "re");
    rc = file ? add_authorities(ctx, file, path, facts, err)
              : err_set(err, ERR_INVALID, "cannot read tls.client_ca %s", path);
    if (file)
        fclose(file);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH_MAX);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    return rc;
}

SSL_CTX *tls_context_new(const struct tls_config *config, struct tls_facts *facts, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    *facts = (struct tls_facts){0};
    ERR_clear_error();
    if (!ctx) {
        err_set(err, ERR_MEMORY, "no memory for TLS");
    } else if (set_rules(ctx, config, err) < 0 || use_certificate(ctx, config, facts, err) < 0 ||
               ask_clients(ctx, config, facts, err) < 0) {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    ERR_clear_error();
    return ctx;
}

int tls_check(const struct tls_config *config, struct tls_facts *facts, struct err *err)
{
    SSL_CTX *ctx = tls_context_new(config, facts, err);

    SSL_CTX_free(ctx);
    return ctx ? 0 : -(int)err->code;
}
