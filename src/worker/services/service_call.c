/* One call as a request of libcurl: verb, URL, headers, body, limits. The service may be hostile:
 * no redirects, no proxy of the environment, limits on time and bytes. libcurl's buffers are small,
 * because thousands of calls wait at once. The loop's thread. */
#include <unistd.h>

#include "base/clock.h"
#include "core/bounds.h"
#include "net/http_client_options.h"
#include "worker/services/service_int.h"

#define CONNECT_MS 10000
#define NAME_SECONDS_KEPT 5L /* a service that moved is found again soon */
#define CONNECTION_SECONDS_MAX 300L /* then name and certificate are looked at again */
#define HEAD_BYTES_MAX ((size_t)64 * 1024)
#define READ_BYTES 1024L /* of libcurl's buffer: it is there for as long as the call waits */
#define ERROR_BODY_BYTES ((size_t)16 * 1024) /* of an answer that only has a reason */
#define HEADER_BYTES 4608 /* a name, and a value of the configuration */

/* ---- what comes ---- */

static bool is_error(const struct service_call *call)
{
    long status = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status < 200 || status > 299;
}

/* Returning less than was given ends the transfer. */
static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct service_call *call = ctx;
    size_t bytes = size * count;

    call->received_bytes += bytes;
    if (is_error(call) && call->body.len + bytes > ERROR_BODY_BYTES)
        return 0; /* the status says enough */
    buf_append(&call->body, data, bytes);
    call->too_large = call->body.failed;
    return call->too_large ? 0 : bytes;
}

static bool header_is(struct str line, struct str name, struct str *value)
{
    if (line.len <= name.len || line.data[name.len] != ':' ||
        strncasecmp(line.data, name.data, name.len) != 0)
        return false;
    *value = str_span(line.data + name.len + 1, line.len - name.len - 1);
    while (value->len && (value->data[0] == ' ' || value->data[0] == '\t'))
        *value = str_span(value->data + 1, value->len - 1);
    while (value->len && strchr(" \t\r\n", value->data[value->len - 1]))
        value->len--;
    return true;
}

static size_t on_header(char *data, size_t size, size_t count, void *ctx)
{
    struct service_call *call = ctx;
    size_t bytes = size * count;
    struct str value;

    call->received_bytes += bytes;
    if (header_is(str_span(data, bytes), STR("perdura-async"), &value))
        call->is_async = str_is(value, "1");
    return call->received_bytes - call->body.len > HEAD_BYTES_MAX ? 0 : bytes;
}

/* ---- what is sent ---- */

static bool add_header(struct service_call *call, const char *line)
{
    struct curl_slist *headers = curl_slist_append(call->headers, line);

    if (headers)
        call->headers = headers;
    return headers != NULL;
}

static bool add_pair(struct service_call *call, struct str name, struct str value)
{
    size_t len = name.len + value.len + sizeof ": ";
    char line[HEADER_BYTES];
    bool added;

    if (!value.data || len > sizeof line)
        return !value.data;
    snprintf(line, sizeof line, STR_FMT ": " STR_FMT, STR_ARG(name), STR_ARG(value));
    added = add_header(call, line);
    explicit_bzero(line, len); /* it may be a credential */
    return added;
}

static bool add_listed(void *ctx, struct str name, struct str value, bool is_secret)
{
    (void)is_secret;
    return add_pair(ctx, name, value);
}

static bool add_headers(struct service_call *call, bool has_body)
{
    return add_header(call, "Expect:") &&
           add_header(call, "Accept: application/json, */*;q=0.5") &&
           call_each_header(call, add_listed, call) &&
           (!has_body || add_header(call, "Content-Type: application/json"));
}

static void set_verb(CURL *easy, enum service_verb verb, struct str body)
{
    if (!service_verb_has_body(verb)) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data);
    }
    if (verb != SERVICE_GET && verb != SERVICE_POST)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, service_verb_word(verb));
}

static void set_limits(struct service_call *call)
{
    int64_t left_ms = (call->deadline_us - clock_boot_us() + CLOCK_MS_US - 1) / CLOCK_MS_US;
    CURL *easy = call->easy;

    if (left_ms < 1)
        left_ms = 1;
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(left_ms < CONNECT_MS ? left_ms : CONNECT_MS));
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, READ_BYTES);
}

static void set_protocols(CURL *easy)
{
    http_client_options(easy);
#if LIBCURL_VERSION_NUM >= 0x075000
    curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, CONNECTION_SECONDS_MAX);
#endif
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, NAME_SECONDS_KEPT);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
}

static void set_callbacks(struct service_call *call)
{
    CURL *easy = call->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
}

/* Another name in the certificate than in the URL: libcurl is given a URL with that name, and told
 * where it is. */
static int set_server_name(struct service_call *call, struct buf *url, struct err *err)
{
    const struct service_rule *rule = call->line->rule;
    struct str name = rule->tls.server_name, host, rest;
    BUF_AUTO struct buf named = BUF_INIT(SERVICE_URL_BYTES + 512);
    char line[1024];
    bool is_v6;
    int64_t port;

    if (!name.data)
        return 0;
    service_url_place(rule->url, &host, &port);
    is_v6 = memchr(host.data, ':', host.len) != NULL;
    snprintf(line, sizeof line, STR_FMT ":%lld:%s" STR_FMT "%s:%lld", STR_ARG(name),
             (long long)port, is_v6 ? "[" : "", STR_ARG(host), is_v6 ? "]" : "", (long long)port);
    call->connect_to = TRY_MEMORY(curl_slist_append(NULL, line));
    curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->connect_to);
    rest = str_span(url->data + 8, url->len - 8);
    while (rest.len && rest.data[0] != '/')
        rest = str_span(rest.data + 1, rest.len - 1);
    buf_format(&named, "https://" STR_FMT ":%lld" STR_FMT, STR_ARG(name), (long long)port,
               STR_ARG(rest));
    buf_reset(url);
    buf_str(url, buf_view(&named));
    snprintf(line, sizeof line, "Host: %s" STR_FMT "%s:%lld", is_v6 ? "[" : "", STR_ARG(host),
             is_v6 ? "]" : "", (long long)port);
    return add_header(call, line) ? 0 : err_no_memory(err);
}

struct str call_lookup(const struct service_call *call)
{
    const struct service_rule *rule = call->line->rule;
    struct str method = call->method.data ? call->method : STR("");

    for (uint32_t i = 0; i < rule->methods_count; i++)
        if (str_eq(rule->methods[i].name, method))
            return rule->methods[i].lookup;
    return STR_NONE;
}

/* libcurl sends a request again by itself when a connection that it used before ends without an
 * answer. Where a repeat must be asked for first, every call has a connection of its own. */
static void set_once(struct service_call *call)
{
    if (!call_lookup(call).data)
        return;
    curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
}

static int fill_url(struct service_call *call, struct str method, enum service_verb *verb,
                    struct buf *url, struct err *err)
{
    struct service_values values = {.payload = STR_NONE};
    char id[UUID_TEXT_BYTES];

    if (call->run) {
        const struct work *work = &call->run->work;

        uuid_format(&work->id, id);
        values = (struct service_values){str_of(id), work->payload, work->data, work->metadata};
    }
    TRY(service_url_write(call->line->rule->url, method, &values, verb, url, err));
    TRY(set_server_name(call, url, err));
    buf_byte(url, '\0');
    if (url->failed)
        return err_set(err, ERR_INVALID, "the URL of the call is too long");
    curl_easy_setopt(call->easy, CURLOPT_URL, url->data);
    return 0;
}

int call_prepare(struct service_call *call, struct str method, struct err *err)
{
    BUF_AUTO struct buf url = BUF_INIT(SERVICE_URL_BYTES + 512);
    struct str body = call->run ? call->run->work.payload : STR_NONE;
    enum service_verb verb;

    call_clear(call);
    call->easy = TRY_MEMORY(curl_easy_init());
    call->body = BUF_INIT(BOUND_RESULT_BYTES);
    call->received_bytes = 0;
    call->too_large = call->is_async = false;
    call->reason[0] = '\0';
    call->words = STR_NONE;
    set_protocols(call->easy);
    set_callbacks(call);
    TRY(fill_url(call, method, &verb, &url, err));
    set_verb(call->easy, verb, body);
    set_limits(call);
    set_once(call);
    /* Wait for a connection that may have room for streams; in clear text there is none. */
    curl_easy_setopt(call->easy, CURLOPT_PIPEWAIT, service_url_is_clear(call->line->rule->url) ? 0L
                                                                                              : 1L);
    TRY(call_set_tls(call, err));
    TRY_MEMORY(add_headers(call, service_verb_has_body(verb)));
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return 0;
}

void call_clear(struct service_call *call)
{
    if (call->easy)
        curl_easy_cleanup(call->easy);
    call->easy = NULL;
    grpc_stream_free(call);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->connect_to);
    call->headers = call->connect_to = NULL;
    buf_deinit(&call->body);
}
