/* Who the other side of a call is: the CA and the name of its certificate, or its SPIFFE id, which
 * libcurl knows nothing of. A certificate that fails is refused before anything is sent. */
#include <openssl/ssl.h>
#include <stdlib.h>

#include "net/tls_sans.h"
#include "worker/services/service_int.h"

/* The chain counts first; then the leaf must have this very id. */
static int verify(X509_STORE_CTX *store, void *ctx)
{
    const struct service_rule *rule = ctx;
    GENERAL_NAMES *names;
    struct str *sans;
    uint32_t count = 0;
    bool found = false;

    if (X509_verify_cert(store) <= 0)
        return 0;
    names = X509_get_ext_d2i(X509_STORE_CTX_get0_cert(store), NID_subject_alt_name, NULL, NULL);
    sans = names ? tls_sans_of(names, &count) : NULL;
    for (uint32_t i = 0; i < count && !found; i++)
        found = str_starts(sans[i], STR("URI:")) &&
                str_eq(str_span(sans[i].data + 4, sans[i].len - 4), rule->tls.spiffe_id);
    free(sans);
    GENERAL_NAMES_free(names);
    if (!found)
        X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
    return found;
}

/* gRPC is spoken over HTTP/2 only, and its bytes are sent from a buffer that grows. */
static CURLcode set_context(CURL *easy, void *ssl_ctx, void *ctx)
{
    static const unsigned char h2[] = "\x02h2";
    const struct service_rule *rule = ctx;

    (void)easy;
    if (rule->tls.spiffe_id.data)
        SSL_CTX_set_cert_verify_callback(ssl_ctx, verify, ctx);
    if (!service_url_is_grpc(rule->url))
        return CURLE_OK;
    SSL_CTX_set_mode(ssl_ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return SSL_CTX_set_alpn_protos(ssl_ctx, h2, sizeof h2 - 1) == 0 ? CURLE_OK
                                                                    : CURLE_OUT_OF_MEMORY;
}

static bool set_path(CURL *easy, CURLoption option, struct str path, struct arena *arena)
{
    char *text;

    if (!path.data)
        return true;
    text = arena_cstr(arena, path);
    return text && curl_easy_setopt(easy, option, text) == CURLE_OK;
}

/* Where libcurl speaks TLS by another library there is no id to check, so no call is made. */
static int set_own(struct service_call *call, struct err *err)
{
    const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);
    const struct service_rule *rule = call->line->rule;

    if (!version->ssl_version || strncmp(version->ssl_version, "OpenSSL/", 8) != 0 ||
        curl_easy_setopt(call->easy, CURLOPT_SSL_CTX_FUNCTION, set_context) != CURLE_OK ||
        curl_easy_setopt(call->easy, CURLOPT_SSL_CTX_DATA, (void *)(uintptr_t)rule) != CURLE_OK)
        return err_set(err, ERR_UNAVAILABLE, "this libcurl can neither check a SPIFFE id nor "
                       "carry gRPC; it needs to be built with OpenSSL");
    if (rule->tls.spiffe_id.data && !rule->tls.server_name.data)
        curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    return 0;
}

int call_set_tls(struct service_call *call, struct err *err)
{
    const struct service_tls *tls = &call->line->rule->tls;
    CURL *easy = call->easy;

    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L); /* one that resumes checks nothing */
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* files may be replaced */
#endif
    if (tls->ca.data)
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (!set_path(easy, CURLOPT_CAINFO, tls->ca, &call->arena) ||
        !set_path(easy, CURLOPT_SSLCERT, tls->cert, &call->arena) ||
        !set_path(easy, CURLOPT_SSLKEY, tls->key, &call->arena))
        return err_no_memory(err);
    return tls->spiffe_id.data || service_url_is_grpc(call->line->rule->url) ? set_own(call, err)
                                                                            : 0;
}
