/* libcurl reads the files for every connection it makes. One that is kept was made with what they
 * said then, so that a change asks for a new one. The thread of the client. */
#include "net/http_client_tls.h"

#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool copy(char **to, struct str path)
{
    *to = str_empty(path) ? NULL : strndup(path.data, path.len);
    return str_empty(path) || *to;
}

static int check_file(const char *what, const char *path, struct err *err)
{
    if (!path || access(path, R_OK) == 0)
        return 0;
    return err_set(err, ERR_INVALID, "cannot read the %s %s: %s", what, path, strerror(errno));
}

int http_client_files_init(struct http_client_files *files, const struct http_client_tls *tls,
                           CURL *easy, struct err *err)
{
    if (!copy(&files->ca, tls->ca) || !copy(&files->cert, tls->cert) ||
        !copy(&files->key, tls->key))
        return err_set(err, ERR_MEMORY, "out of memory while making an HTTP client");
    if (files->key && !files->cert)
        return err_set(err, ERR_INVALID, "a client key is of no use without its certificate; pass "
                       "--cert FILE or PERDURA_CERT, too");
    TRY(check_file("CA file", files->ca, err));
    TRY(check_file("client certificate", files->cert, err));
    TRY(check_file("client key", files->key, err));
    if (files->ca) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, files->ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* this CA and no other */
#if LIBCURL_VERSION_NUM >= 0x075700
        curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
    }
    if (files->cert) {
        curl_easy_setopt(easy, CURLOPT_SSLCERT, files->cert);
        curl_easy_setopt(easy, CURLOPT_SSLKEY, files->key ? files->key : files->cert);
    }
    http_client_files_changed(files);
    return 0;
}

void http_client_files_deinit(struct http_client_files *files)
{
    free(files->ca);
    free(files->cert);
    free(files->key);
}

bool http_client_files_changed(struct http_client_files *files)
{
    const char *const paths[HTTP_CLIENT_FILES] = {files->ca, files->cert, files->key};
    bool changed = false;

    for (int i = 0; i < HTTP_CLIENT_FILES; i++) {
        struct stat info;
        int64_t now[4] = {0};

        if (!paths[i] || stat(paths[i], &info) < 0)
            continue; /* one that is away for a moment is waited for */
        now[0] = (int64_t)info.st_ino;
        now[1] = info.st_size;
        now[2] = info.st_mtim.tv_sec;
        now[3] = info.st_mtim.tv_nsec;
        changed |= memcmp(now, files->stamps[i], sizeof now) != 0;
        memcpy(files->stamps[i], now, sizeof now);
    }
    return changed;
}

/* ---- errors ---- */

static int fail(struct err *err, struct str server, const char *what, const char *advice)
{
    return err_set_field(err, ERR_UNAVAILABLE, "tls", "the server at " STR_FMT " %s; %s",
                         STR_ARG(server), what, advice);
}

static void not_trusted(CURL *easy, struct str server, const char *message, struct err *err)
{
    long verdict = X509_V_OK;

    if (strstr(message, "subject name")) { /* libcurl compares it, so that OpenSSL has no verdict */
        fail(err, server, "shows a certificate for another name",
             "use a name that its certificate lists, or give it one for this name");
        return;
    }
    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        fail(err, server, "shows an expired certificate",
             "renew it there, or correct this machine's clock");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        fail(err, server, "shows a certificate that is not valid yet",
             "correct this machine's clock, or wait");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        fail(err, server, "shows a certificate of an unknown CA",
             "pass that CA's certificate with --ca FILE or PERDURA_CA");
        break;
    default:
        fail(err, server, "shows a certificate that cannot be verified", message);
    }
}

/* What the other side, or OpenSSL here, said when a handshake or the first read failed. */
static bool explain_alert(const struct http_client_files *files, const char *message,
                          struct str server, struct err *err)
{
    bool alert = strstr(message, "alert") != NULL;

    if (strstr(message, "certificate required") ||
        (alert && !files->cert && strstr(message, "handshake failure")))
        fail(err, server, "wants a client certificate",
             "pass one with --cert FILE and --cert-key FILE, or PERDURA_CERT and PERDURA_KEY");
    else if (alert && (strstr(message, "unknown ca") || strstr(message, "certificate") ||
                       strstr(message, "decrypt error")))
        fail(err, server, "refused the client certificate",
             "use one that is valid now and that a CA in the server's tls.client_ca has signed");
    else if (strstr(message, "wrong version number") || strstr(message, "packet length"))
        fail(err, server, "does not speak TLS", "use http:// instead of https://");
    else if (strstr(message, "protocol version") || strstr(message, "unsupported protocol"))
        fail(err, server, "and this program share no version of TLS",
             "both need TLS 1.2 or later");
    else
        return false;
    return true;
}

bool http_client_tls_failed(const struct http_client_files *files, CURL *easy, CURLcode result,
                            const char *message, struct str server, struct err *err)
{
    switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
        not_trusted(easy, server, message, err);
        return true;
    case CURLE_SSL_CACERT_BADFILE:
        err_set_field(err, ERR_UNAVAILABLE, "tls", "cannot use the CA file %s; it must hold PEM "
                      "certificates", files->ca ? files->ca : "of the system");
        return true;
    case CURLE_SSL_CERTPROBLEM:
        err_set_field(err, ERR_UNAVAILABLE, "tls", "cannot use the client certificate %s with the "
                      "key %s; both must be PEM and belong together",
                      files->cert ? files->cert : "", files->key ? files->key : "in it");
        return true;
    case CURLE_SSL_CONNECT_ERROR:
        if (!explain_alert(files, message, server, err))
            fail(err, server, "and this program cannot agree on TLS", message);
        return true;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return explain_alert(files, message, server, err);
    default:
        return false;
    }
}
