/* Host and Origin, before anything else is looked at, and where the server may listen. Who asks is
 * looked at next (identify.c). Pure; loop thread. */
#include "server/door/auth.h"

#include "core/service/call_keys.h"
#include "core/service/service_url.h"

#include <arpa/inet.h>
#include <strings.h>

static bool equal_any_case(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.data, b.data, a.len) == 0);
}

/* "name", "name:port", "[v6]", "[v6]:port"; a missing port is absent. */
static bool split_host(struct str text, struct str *host, struct str *port)
{
    const char *end = text.data + text.len;
    const char *colon;

    *port = STR_NONE;
    if (text.len == 0)
        return false;
    if (text.data[0] == '[') {
        const char *close = memchr(text.data, ']', text.len);

        if (!close || (close + 1 < end && close[1] != ':'))
            return false;
        *host = str_span(text.data + 1, (size_t)(close - text.data) - 1);
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        colon = memchr(text.data, ':', text.len);
        *host = str_span(text.data, colon ? (size_t)(colon - text.data) : text.len);
    }
    if (colon)
        *port = str_span(colon + 1, (size_t)(end - colon) - 1);
    return host->len > 0 && (!colon || port->len > 0);
}

static bool is_address(struct str host, struct in_addr *v4, bool *is_v4)
{
    struct in6_addr v6;
    char text[INET6_ADDRSTRLEN];

    *is_v4 = false;
    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    *is_v4 = inet_pton(AF_INET, text, v4) == 1;
    return *is_v4 || inet_pton(AF_INET6, text, &v6) == 1;
}

/* localhost, 127.0.0.0/8, ::1; no port */
static bool host_is_loopback(struct str host)
{
    struct in_addr v4;
    bool is_v4;

    if (equal_any_case(host, STR("localhost")) || str_is(host, "::1"))
        return true;
    return is_address(host, &v4, &is_v4) && is_v4 && ntohl(v4.s_addr) >> 24 == 127;
}

int auth_check_listen(struct str listen, struct str token, bool has_others, struct err *err)
{
    struct str host, port;

    if (!split_host(listen, &host, &port) || !port.data)
        return err_set(err, ERR_USAGE, "the address '" STR_FMT "' is not host:port or [v6]:port",
                       STR_ARG(listen));
    if (host_is_loopback(host) || token.len >= AUTH_TOKEN_BYTES_MIN ||
        (has_others && str_empty(token)))
        return 0;
    if (!str_empty(token))
        return err_set(err, ERR_USAGE,
                       "the token has %zu characters, and listening on " STR_FMT " needs one of at "
                       "least %d: put the output of 'openssl rand -hex 32' into PERDURA_TOKEN, or "
                       "into the file that token_file names",
                       token.len, STR_ARG(listen), AUTH_TOKEN_BYTES_MIN);
    return err_set(err, ERR_USAGE,
                   "listening on " STR_FMT " is open to the network and needs a token: set "
                   "PERDURA_TOKEN, or token_file in the configuration, or make an API token with "
                   "`perdura token create --store STORE`, or listen on 127.0.0.1",
                   STR_ARG(listen));
}

/* Passwords and tasks must not cross a network in clear text by mistake. */
int auth_check_clear_text(struct str listen, const struct settings *settings, struct err *err)
{
    const struct tls_settings *tls = &settings->tls;
    struct str host, port;

    if (str_empty(tls->cert) != str_empty(tls->key))
        return err_set(err, ERR_USAGE, "TLS needs a certificate and its key: set %s, too",
                       str_empty(tls->cert) ? "tls.cert" : "tls.key");
    if (!str_empty(tls->client_ca) && str_empty(tls->cert))
        return err_set(err, ERR_USAGE, "tls.client_ca is of no use without TLS: set tls.cert and "
                       "tls.key, too");
    if (!str_empty(tls->cert) || tls->allow_clear_text ||
        (split_host(listen, &host, &port) && host_is_loopback(host)))
        return 0;
    return err_set(err, ERR_USAGE,
                   "listening on " STR_FMT " would send the token and every task over the network "
                   "in clear text: set tls.cert and tls.key, or listen on 127.0.0.1, or set "
                   "allow_clear_text where a proxy or a mesh encrypts the connection",
                   STR_ARG(listen));
}

int auth_init(struct auth *auth, const char *address, const struct settings *settings,
              struct err *err)
{
    struct str host, port;

    *auth = (struct auth){.settings = settings};
    if (!split_host(str_of(address), &host, &port) || host.len >= sizeof auth->host ||
        port.len >= sizeof auth->port)
        return err_set(err, ERR_INTERNAL, "the address %s cannot be read", address);
    memcpy(auth->host, host.data, host.len);
    if (port.len)
        memcpy(auth->port, port.data, port.len);
    auth->any_address = str_is(host, "0.0.0.0") || str_is(host, "::");
    auth->loopback = host_is_loopback(host);
    return 0;
}

static bool port_fits(const struct auth *auth, struct str port)
{
    return !port.data || str_is(port, auth->port);
}

static bool host_is_listed(const struct auth *auth, struct str whole, struct str host)
{
    struct str public_host = STR_NONE;
    int64_t port;

    if (auth->settings->pool.public_url.data)
        service_url_place(auth->settings->pool.public_url, &public_host, &port);
    if (public_host.data && equal_any_case(public_host, host))
        return true;
    for (uint32_t i = 0; i < auth->settings->access.hosts_count; i++) {
        struct str entry = auth->settings->access.hosts[i];

        if (equal_any_case(entry, host) || equal_any_case(entry, whole))
            return true;
    }
    return false;
}

/* The owner of any domain can make a name point here; literal addresses cannot be forged so, and
 * all of them are fine where the server listens on every address. */
static bool host_allowed(const struct auth *auth, struct str whole)
{
    struct str host, port;
    struct in_addr v4;
    bool is_v4;

    if (!split_host(whole, &host, &port))
        return false;
    if (equal_any_case(host, STR("localhost")) || host_is_listed(auth, whole, host))
        return true;
    if (!port_fits(auth, port))
        return false;
    return equal_any_case(host, str_of(auth->host)) || host_is_loopback(host) ||
           (auth->any_address && is_address(host, &v4, &is_v4));
}

/* A page of this very host, whatever scheme a proxy in front speaks. */
static bool origin_allowed(struct str origin, struct str host)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (str_starts(origin, schemes[i]))
            return equal_any_case(str_span(origin.data + schemes[i].len,
                                           origin.len - schemes[i].len), host);
    return false;
}

/* Probes cannot carry secrets. Beyond loopback even readiness tells more than strangers need. The
 * dashboard's own files have to be loaded before the user can give it the token. */
static bool is_open_path(const struct auth *auth, struct str path)
{
    return str_is(path, "/healthz") || str_is(path, CALL_JWKS_PATH) ||
           (auth->loopback && str_is(path, "/readyz")) || str_is(path, "/") ||
           str_starts(path, STR("/assets/"));
}

/* Who sends a token gets the figures that it allows to see. */
static bool are_open_metrics(const struct auth *auth, const struct http_request *request)
{
    return auth->settings->access.open_metrics && str_is(request->path, "/metrics") &&
           !http_header(request, "Authorization").data;
}

bool auth_is_open(const struct auth *auth, const struct http_request *request)
{
    return is_open_path(auth, request->path) || are_open_metrics(auth, request);
}

bool auth_is_completion(const struct http_request *request)
{
    return str_starts(request->path, STR(CALL_COMPLETE_PATH));
}

bool auth_completion_good(const struct auth *auth, const struct http_request *request)
{
    size_t len = sizeof CALL_COMPLETE_PATH - 1;
    struct uuid task_id;
    int64_t lease_token;

    return auth->call_keys && auth_is_completion(request) &&
           call_token_read(auth->call_keys,
                           str_span(request->path.data + len, request->path.len - len), &task_id,
                           &lease_token);
}

int auth_check(const struct auth *auth, const struct http_request *request, struct err *err)
{
    struct str origin, site;

    if (!host_allowed(auth, request->host))
        return err_set(err, ERR_FORBIDDEN, "the host '%.*s' is not served here; use %s:%s or add "
                       "it to allowed_hosts", (int)(request->host.len < 100 ? request->host.len
                                                                            : 100),
                       request->host.data ? request->host.data : "", auth->host, auth->port);
    origin = http_header(request, "Origin");
    if (origin.data && !origin_allowed(origin, request->host))
        return err_set(err, ERR_FORBIDDEN, "requests from pages of another origin are refused");
    site = http_header(request, "Sec-Fetch-Site");
    if (site.data && !str_is(site, "same-origin") && !str_is(site, "none") &&
        !is_open_path(auth, request->path))
        return err_set(err, ERR_FORBIDDEN, "requests from pages of another site are refused");
    return 0;
}
