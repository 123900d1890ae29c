/* A small HTTP load client for the benchmark: N keep-alive connections on one epoll, one request in
 * flight on each (a closed loop). Requests and checks of replies come from a `struct load_job`;
 * this part only sends, receives and keeps the latencies. Not a general HTTP client: it speaks to
 * our own server, wants Content-Length and ends the program on anything unexpected. One thread. */
#ifndef BENCH_LOAD_CLIENT_H
#define BENCH_LOAD_CLIENT_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 4096
#define LOAD_SAMPLES_MAX 2000000
#define LOAD_BYTES_MAX ((size_t)64 << 20) /* of one request or reply */

struct load_bytes {
    char *data;
    size_t len;
    size_t cap;
};

struct load_connection {
    uint32_t index;
    int fd;
    SSL *ssl; /* NULL = clear text */
    struct load_bytes out; /* the request; a job may leave it as it was to send it again */
    size_t sent;
    struct load_bytes in;
    size_t head_len;
    size_t body_len;
    int status;
    int64_t sent_us;
    bool busy;
    bool wants_write;
    struct load_bytes body; /* scratch for the job */
    int step;               /* the job's */
};

struct load_job {
    void *ctx;
    /* Makes the connection's next request with load_request, or leaves it. False = no more. */
    bool (*next)(void *ctx, struct load_connection *connection);
    /* Checks a reply; ends the program with load_die when it is wrong. */
    void (*answered)(void *ctx, struct load_connection *connection, int status, const char *body,
                     size_t body_len);
};

struct load {
    char host[64];
    int port;
    int epoll_fd;
    SSL_CTX *tls; /* NULL = clear text */
    const char *token;          /* sent with every request; NULL = none */
    const char *namespace_name; /* likewise */
    struct load_connection *connections;
    uint32_t count;
    uint32_t busy_count;
    int64_t *samples_us;
    uint32_t samples_count;
};

struct load_latency {
    int64_t p50_us;
    int64_t p99_us;
};

int64_t load_now_us(void);
_Noreturn void load_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void load_bytes_add(struct load_bytes *bytes, const char *data, size_t len);
void load_bytes_text(struct load_bytes *bytes, const char *text);
void load_bytes_format(struct load_bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Connects `count` times to HOST:PORT; ca: a file with the CA of a server that speaks TLS, or
 * NULL. Handshakes are done when it returns. */
void load_open(struct load *load, const char *address, const char *ca, uint32_t count);
void load_close(struct load *load);
void load_request(struct load *load, struct load_connection *connection, const char *method,
                  const char *path, const char *body, size_t body_len);
/* Until `next` has nothing more for any connection and everything was answered. Returns the time it
 * took; latencies are kept until the next run. */
int64_t load_run(struct load *load, const struct load_job *job);
/* Sends one request on each connection and does not wait for the replies. */
void load_send_only(struct load *load, const struct load_job *job);
struct load_latency load_latency(struct load *load);

#endif
