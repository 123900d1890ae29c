/* The bare client beside Perdura, for bench/services.py: calls a target that does nothing, with so
 * many in flight, and nothing else. HTTP/1.1 by libcurl, gRPC by nghttp2 on one connection. It sends
 * what Perdura sends: the payload, and headers that are others for each call; they are not signed.
 *
 *   call_load URL CALLS IN-FLIGHT [CA]       http:// https:// grpc:// grpcs://
 *
 * Prints one line of JSON. One thread. */
#include "call_wire.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define READ_BYTES 65536
#define IN_FLIGHT_MAX 4096
#define KEY_BYTES 36
#define IDENTITY_BYTES 550 /* a JWT of Perdura, with its signature */
#define BODY "some text that is about as long as these are, or a bit"
#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"" BODY "\"}"

struct load {
    const char *url;
    const char *ca;
    int calls, in_flight;
    int begun, done, failed;
};

/* What differs from call to call. */
struct proof {
    char key[KEY_BYTES + 1], identity[IDENTITY_BYTES + 1];
};

static void make_proof(int call, struct proof *proof)
{
    snprintf(proof->key, sizeof proof->key, "01234567-89ab-7def-8123-%012d", call);
    for (size_t at = 0; at < IDENTITY_BYTES; at += KEY_BYTES)
        snprintf(proof->identity + at, sizeof proof->identity - at, "%s", proof->key);
}

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- HTTP ---- */

static size_t drop(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

static void add_line(struct curl_slist **headers, const char *name, const char *value)
{
    char line[1024];

    snprintf(line, sizeof line, "%s: %s", name, value);
    *headers = curl_slist_append(*headers, line);
}

/* The headers of the call before it are freed. */
static void set_headers(const struct load *load, CURL *easy)
{
    struct curl_slist *headers = NULL, *before = NULL;
    struct proof proof;

    make_proof(load->begun, &proof);
    add_line(&headers, "Content-Type", "application/json");
    add_line(&headers, "Idempotency-Key", proof.key);
    add_line(&headers, "Perdura-Task-Id", proof.key);
    add_line(&headers, "Perdura-Attempt", "1");
    add_line(&headers, "Perdura-Deadline-Ms", "300000");
    add_line(&headers, "Perdura-Identity", proof.identity);
    add_line(&headers, "Perdura-Complete-Url", proof.identity + IDENTITY_BYTES - 120);
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&before);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, headers);
    curl_slist_free_all(before);
}

static CURL *http_call(const struct load *load)
{
    CURL *easy = curl_easy_init();

    set_headers(load, easy);
    curl_easy_setopt(easy, CURLOPT_URL, load->url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, PAYLOAD);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (load->ca)
        curl_easy_setopt(easy, CURLOPT_CAINFO, load->ca);
    return easy;
}

static void http_ended(struct load *load, CURLM *multi, CURLMsg *message)
{
    CURL *easy = message->easy_handle;

    load->failed += message->data.result != CURLE_OK;
    load->done++;
    curl_multi_remove_handle(multi, easy);
    if (load->begun < load->calls) {
        load->begun++;
        set_headers(load, easy);
        curl_multi_add_handle(multi, easy);
    } else {
        struct curl_slist *headers = NULL;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&headers);
        curl_easy_cleanup(easy);
        curl_slist_free_all(headers);
    }
}

static void run_http(struct load *load)
{
    CURLM *multi = curl_multi_init();
    CURLMsg *message;
    int running, left;

    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)load->in_flight);
    for (; load->begun < load->in_flight && load->begun < load->calls; load->begun++)
        curl_multi_add_handle(multi, http_call(load));
    while (load->done < load->calls) {
        curl_multi_perform(multi, &running);
        while ((message = curl_multi_info_read(multi, &left)))
            if (message->msg == CURLMSG_DONE)
                http_ended(load, multi, message);
        if (load->done < load->calls)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    curl_multi_cleanup(multi);
}

/* ---- gRPC ---- */

#define FIELD(name, value) {(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0}

static ssize_t read_request(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
                            uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    static const char message[] = "\n\020user@example.com\022\005hello\032\066" BODY;
    const uint8_t head[] = {0, 0, 0, 0, sizeof message - 1};

    (void)session, (void)id, (void)len, (void)source, (void)ctx;
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, message, sizeof message - 1);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return sizeof head + sizeof message - 1;
}

static void begin_stream(struct load *load, nghttp2_session *session)
{
    struct proof proof;
    nghttp2_nv head[] = {
        FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":path", "/perdura.test.Peer/Do"),
        FIELD(":authority", "127.0.0.1"), FIELD("te", "trailers"),
        FIELD("content-type", "application/grpc"), FIELD("grpc-timeout", "30000m"),
        FIELD("idempotency-key", proof.key), FIELD("perdura-task-id", proof.key),
        FIELD("perdura-attempt", "1"), FIELD("perdura-deadline-ms", "30000"),
        FIELD("perdura-identity", proof.identity)};
    static const nghttp2_data_provider body = {.read_callback = read_request};

    make_proof(load->begun, &proof);
    head[sizeof head / sizeof *head - 1].flags = NGHTTP2_NV_FLAG_NO_INDEX; /* it is a credential */
    if (nghttp2_submit_request(session, NULL, head, sizeof head / sizeof *head, &body, NULL) < 0)
        wire_fail("cannot begin a stream");
    load->begun++;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct load *load = ctx;

    (void)id;
    load->failed += code != 0;
    load->done++;
    if (load->begun < load->calls)
        begin_stream(load, session);
    return 0;
}

static struct wire grpc_connect(const struct load *load)
{
    const char *port = strrchr(load->url, ':') + 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)atoi(port))};
    struct wire wire = {socket(AF_INET, SOCK_STREAM, 0), NULL};
    int one = 1;

    if (connect(wire.fd, (struct sockaddr *)&address, sizeof address) < 0)
        wire_fail("cannot connect");
    setsockopt(wire.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (load->ca) {
        SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

        SSL_CTX_load_verify_locations(tls, load->ca, NULL);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_alpn_protos(tls, (const unsigned char *)"\x02h2", 3);
        wire.ssl = SSL_new(tls);
        SSL_set_fd(wire.ssl, wire.fd);
        if (SSL_connect(wire.ssl) != 1)
            wire_fail("TLS failed");
    }
    return wire;
}

static void send_all(const struct wire *wire, nghttp2_session *session)
{
    static char out[1 << 20];
    size_t filled = 0;
    const uint8_t *data;
    ssize_t len;

    while (filled < sizeof out / 2 && (len = nghttp2_session_mem_send(session, &data)) > 0) {
        memcpy(out + filled, data, (size_t)len);
        filled += (size_t)len;
    }
    wire_write(wire, out, filled);
}

static void run_grpc(struct load *load)
{
    const struct wire wire = grpc_connect(load);
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    char data[READ_BYTES];

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&session, callbacks, load);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
    while (load->begun < load->in_flight && load->begun < load->calls)
        begin_stream(load, session);
    while (load->done < load->calls) {
        ssize_t len;

        send_all(&wire, session);
        len = wire_read(&wire, data, sizeof data);
        if (len <= 0 || nghttp2_session_mem_recv(session, (const uint8_t *)data, (size_t)len) < 0)
            wire_fail("the connection broke");
    }
    nghttp2_session_del(session);
}

int main(int argc, char **argv)
{
    struct load load;
    double begun_s;

    if (argc < 4)
        wire_fail("usage: call_load URL CALLS IN-FLIGHT [CA]");
    load = (struct load){.url = argv[1], .calls = atoi(argv[2]), .in_flight = atoi(argv[3]),
                         .ca = argc > 4 ? argv[4] : NULL};
    if (load.in_flight < 1 || load.in_flight > IN_FLIGHT_MAX)
        wire_fail("too many in flight");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    begun_s = now_s();
    if (strncmp(load.url, "grpc", 4) == 0)
        run_grpc(&load);
    else
        run_http(&load);
    if (load.failed)
        wire_fail("calls failed");
    printf("{\"calls\":%d,\"per_second\":%.1f}\n", load.calls,
           load.calls / (now_s() - begun_s));
    return 0;
}
