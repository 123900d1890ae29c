/* libcurl behind the calls we need. The multi interface is used for one transfer at a time, because
 * it can be woken from another thread: a long-poll ends at once when the worker stops. */
#include "net/http_client_options.h"
#include "net/http_client_tls.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"

#define CONNECT_MS 5000
#define POLL_MS 1000 /* only a bound: an interrupt wakes the poll */
#define URL_BYTES_MAX 8192
#define HEADER_BYTES_MAX 16384

struct http_client {
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    struct buf url;
    size_t base_len;
    struct buf *response;
    size_t response_max;
    bool too_large;
    bool has_token;
    struct http_client_files files;
    atomic_bool interrupted;
    char message[CURL_ERROR_SIZE];
};

static void global_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
    struct http_client *client = ctx;
    size_t len = size * count;

    if (client->response->len + len > client->response_max) {
        client->too_large = true;
        return 0;
    }
    buf_append(client->response, data, len);
    return client->response->failed ? 0 : len;
}

/* ---- making one ---- */

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] == 127)
            return false;
    return true;
}

static bool add_header(struct http_client *client, const char *header)
{
    struct curl_slist *headers = curl_slist_append(client->headers, header);

    if (headers)
        client->headers = headers;
    return headers != NULL;
}

static int make_headers(struct http_client *client, struct str token, struct err *err)
{
    BUF_AUTO struct buf line = BUF_INIT(URL_BYTES_MAX);
    bool ok = add_header(client, "Content-Type: application/json") &&
              add_header(client, "Accept: application/json") &&
              add_header(client, "Expect:"); /* no round trip before a large body */

    client->has_token = token.len > 0;
    if (ok && token.len) {
        buf_text(&line, "Authorization: Bearer ");
        buf_str(&line, token);
        buf_byte(&line, '\0');
        ok = !line.failed && add_header(client, line.data);
    }
    return ok ? 0 : err_no_memory(err);
}

static void set_options(struct http_client *client)
{
    CURL *easy = client->easy;

    http_client_options(easy);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 1L); /* a new one ends the one before */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->message);
}

static int check_base(struct str base_url, struct str token, struct err *err)
{
    bool http = str_starts(base_url, STR("http://")) && base_url.len > 7;
    bool https = str_starts(base_url, STR("https://")) && base_url.len > 8;

    if ((!http && !https) || !is_printable(base_url) || base_url.len > URL_BYTES_MAX / 2)
        return err_set(err, ERR_INVALID,
                       "'%.*s' is not a server address; write it like http://127.0.0.1:7070",
                       base_url.len < 200 ? (int)base_url.len : 200,
                       base_url.data ? base_url.data : "");
    if (!is_printable(token))
        return err_set(err, ERR_INVALID,
                       "the token holds a space or a control character; set PERDURA_TOKEN to the "
                       "one the server was started with");
    return 0;
}

struct http_client *http_client_new(struct str base_url, struct str token, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* libcurl's own state, not ours */
    struct http_client *client;

    if (check_base(base_url, token, err) < 0)
        return NULL;
    pthread_once(&once, global_init);
    client = err_calloc(sizeof *client, err);
    if (!client)
        return NULL;
    client->url = BUF_INIT(URL_BYTES_MAX);
    while (base_url.len && base_url.data[base_url.len - 1] == '/')
        base_url.len--;
    buf_str(&client->url, base_url);
    client->base_len = client->url.len;
    client->easy = curl_easy_init();
    client->multi = curl_multi_init();
    if (!client->easy || !client->multi) {
        err_no_memory(err);
        http_client_free(client);
        return NULL;
    }
    if (make_headers(client, token, err) < 0) {
        http_client_free(client);
        return NULL;
    }
    set_options(client);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    if (client->easy)
        curl_easy_cleanup(client->easy);
    if (client->multi)
        curl_multi_cleanup(client->multi);
    curl_slist_free_all(client->headers);
    http_client_files_deinit(&client->files);
    buf_deinit(&client->url);
    free(client);
}

int http_client_set_tls(struct http_client *client, const struct http_client_tls *tls,
                        struct err *err)
{
    return http_client_files_init(&client->files, tls, client->easy, err);
}

int http_client_add_header(struct http_client *client, struct str name, struct str value,
                           struct err *err)
{
    BUF_AUTO struct buf line = BUF_INIT(HEADER_BYTES_MAX);
    bool ok;

    buf_str(&line, name);
    buf_text(&line, ": ");
    buf_str(&line, value);
    buf_byte(&line, '\0');
    ok = !line.failed && add_header(client, line.data);
    if (ok)
        curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, client->headers);
    return ok ? 0 : err_set(err, ERR_INVALID, "a header of a request is too long");
}

/* ---- one call ---- */

static int make_url(struct http_client *client, const char *path, struct err *err)
{
    client->url.len = client->base_len;
    client->url.failed = false;
    buf_text(&client->url, path);
    buf_byte(&client->url, '\0');
    if (client->url.failed)
        return err_set(err, ERR_INVALID, "the address of a request is longer than %d bytes",
                       URL_BYTES_MAX);
    return 0;
}

static void set_request(struct http_client *client, const char *method, struct str body,
                        int64_t timeout_ms)
{
    CURL *easy = client->easy;

    curl_easy_setopt(easy, CURLOPT_URL, client->url.data);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT,
                     (long)http_client_files_changed(&client->files));
    if (body.data) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data);
    } else {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL); /* means POST, so it comes first */
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

/* Until the transfer has ended or was interrupted. */
static CURLcode perform(struct http_client *client)
{
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    int left;
    CURLMsg *message;

    if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    while (running && !atomic_load(&client->interrupted)) {
        if (curl_multi_perform(client->multi, &running) != CURLM_OK)
            break;
        if (running)
            curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL);
    }
    while ((message = curl_multi_info_read(client->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            result = message->data.result;
    curl_multi_remove_handle(client->multi, client->easy);
    return result;
}

/* The address without a user and password in front of the host. */
static struct str shown_base(const struct http_client *client)
{
    struct str base = str_span(client->url.data, client->base_len);
    const char *host = memmem(base.data, base.len, "://", 3);
    const char *path, *at;
    size_t left;

    if (!host)
        return base;
    host += 3;
    left = base.len - (size_t)(host - base.data);
    path = memchr(host, '/', left);
    at = memrchr(host, '@', path ? (size_t)(path - host) : left);
    return at ? str_span(at + 1, left - (size_t)(at + 1 - host)) : base;
}

static int transfer_error(const struct http_client *client, CURLcode result, struct err *err)
{
    const char *why = client->message[0] ? client->message : curl_easy_strerror(result);
    struct str base = shown_base(client);

    if (client->too_large)
        return err_set(err, ERR_TOO_LARGE, "the server's answer is larger than %zu bytes",
                       client->response_max);
    if (http_client_tls_failed(&client->files, client->easy, result, why, base, err))
        return -(int)err->code;
    switch (result) {
    case CURLE_ABORTED_BY_CALLBACK:
        return err_set(err, ERR_UNAVAILABLE, "the request was interrupted");
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, ERR_REQUEST_TIMEOUT, "the server at " STR_FMT " did not answer in "
                       "time", STR_ARG(base));
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return err_set(err, ERR_UNAVAILABLE, "cannot reach the server at " STR_FMT " (%s); is it "
                       "running?", STR_ARG(base), why);
    default:
        return err_set(err, ERR_IO, "the connection to " STR_FMT " failed: %s", STR_ARG(base),
                       why);
    }
}

int http_client_call(struct http_client *client, const char *method, const char *path,
                     struct str body, int64_t timeout_ms, struct buf *response, int *status,
                     struct err *err)
{
    CURLcode result;
    long code = 0;

    *status = 0;
    buf_reset(response);
    if (make_url(client, path, err) < 0)
        return -ERR_INVALID;
    client->response = response;
    client->response_max = response->max_bytes < HTTP_CLIENT_RESPONSE_BYTES
                               ? response->max_bytes
                               : HTTP_CLIENT_RESPONSE_BYTES;
    client->too_large = false;
    client->message[0] = '\0';
    set_request(client, method, body, timeout_ms);
    result = perform(client);
    client->response = NULL;
    if (result != CURLE_OK)
        return transfer_error(client, result, err);
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &code);
    *status = (int)code;
    return 0;
}

int http_client_request(struct http_client *client, const char *method, const char *path,
                        struct str body, int64_t timeout_ms, struct buf *response, int *status,
                        struct err *err)
{
    TRY(http_client_call(client, method, path, body, timeout_ms, response, status, err));
    if (*status == 401) {
        struct err why = {0};

        http_client_error(*status, buf_view(response), &why);
        return http_client_unauthorized(client, &why, err);
    }
    if (*status >= 300)
        return http_client_error(*status, buf_view(response), err);
    return 0;
}

void http_client_interrupt(struct http_client *client)
{
    atomic_store(&client->interrupted, true);
    curl_multi_wakeup(client->multi);
}

/* ---- errors ---- */

static enum err_code code_of_status(int status)
{
    static const enum err_code codes[] = {
        ERR_UNAUTHORIZED, ERR_FORBIDDEN,   ERR_NOT_FOUND,    ERR_METHOD,
        ERR_REQUEST_TIMEOUT, ERR_CONFLICT, ERR_PRECONDITION, ERR_TOO_LARGE,
        ERR_INVALID,      ERR_RATE,        ERR_HEADERS_TOO_LARGE, ERR_UNAVAILABLE,
        ERR_STORAGE_FULL};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (err_http_status(codes[i]) == status)
            return codes[i];
    if (status == 502 || status == 504) /* of something in between */
        return ERR_UNAVAILABLE;
    return status >= 500 ? ERR_INTERNAL : ERR_MALFORMED;
}

static struct str text_member(struct str object, const char *key, struct arena *arena)
{
    struct str value = json_get(object, str_of(key));

    return value.data && json_kind(value) == JSON_STRING ? json_string(value, arena) : STR_NONE;
}

int http_client_unauthorized(const struct http_client *client, const struct err *why,
                             struct err *err)
{
    if (client->has_token)
        return err_set(err, ERR_UNAUTHORIZED, "the server refused the token; set PERDURA_TOKEN to "
                       "the one the server was started with, or to an API token (%.300s)",
                       why->text);
    return err_set(err, ERR_UNAUTHORIZED, "the server needs a token; set PERDURA_TOKEN to the one "
                   "the server was started with");
}

int http_client_error(int status, struct str body, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(1024 * 1024);
    enum err_code code = code_of_status(status);
    struct str object = STR_NONE;
    struct str message = STR_NONE;
    struct str field = STR_NONE;
    struct str word = STR_NONE;
    struct str root;
    char name[80];

    if (json_check_ours(body, &root, NULL) == 0 && json_kind(root) == JSON_OBJECT)
        object = json_get(root, STR("error"));
    if (object.data && json_kind(object) == JSON_OBJECT) {
        word = text_member(object, "code", &arena);
        message = text_member(object, "message", &arena);
        field = text_member(object, "field", &arena);
    }
    if (word.len && word.len < sizeof name) {
        snprintf(name, sizeof name, STR_FMT, STR_ARG(word));
        if (err_from_word(name) != ERR_INTERNAL)
            code = err_from_word(name);
    }
    snprintf(name, sizeof name, "%.*s", field.len < 79 ? (int)field.len : 79,
             field.data ? field.data : "");
    if (message.len)
        err_set_field(err, code, name, "%.*s", message.len < 500 ? (int)message.len : 500,
                      message.data);
    else
        err_set_field(err, code, name, "the server answered with status %d", status);
    return -(int)code;
}

void http_client_escape(struct buf *out, struct str text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte));

        if (plain) {
            buf_byte(out, (char)byte);
        } else {
            buf_byte(out, '%');
            buf_byte(out, digits[byte >> 4]);
            buf_byte(out, digits[byte & 15]);
        }
    }
}
