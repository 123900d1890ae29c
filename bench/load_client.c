/* See load_client.h. Plain sockets and epoll; every failure ends the program, since a benchmark
 * with a failed request has no figure. One thread. */
#include "load_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define READ_BYTES 65536
#define SILENCE_MS 120000 /* a server that says nothing for so long has failed */

int64_t load_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void load_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- bytes ---- */

static void reserve(struct load_bytes *bytes, size_t more)
{
    size_t cap = bytes->cap ? bytes->cap : 4096;

    if (bytes->len + more > LOAD_BYTES_MAX)
        load_die("more than %zu bytes", LOAD_BYTES_MAX);
    while (cap < bytes->len + more)
        cap *= 2;
    if (cap == bytes->cap)
        return;
    bytes->data = realloc(bytes->data, cap);
    if (!bytes->data)
        load_die("out of memory");
    bytes->cap = cap;
}

void load_bytes_add(struct load_bytes *bytes, const char *data, size_t len)
{
    reserve(bytes, len);
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

void load_bytes_text(struct load_bytes *bytes, const char *text)
{
    load_bytes_add(bytes, text, strlen(text));
}

void load_bytes_format(struct load_bytes *bytes, const char *format, ...)
{
    char text[512];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        load_die("a formatted text is too long");
    load_bytes_add(bytes, text, (size_t)len);
}

/* ---- connections ---- */

static int connect_one(const struct load *load)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)load->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 || inet_pton(AF_INET, load->host, &address.sin_addr) != 1)
        load_die("cannot make a socket for %s: %s", load->host, strerror(errno));
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        load_die("cannot connect to %s:%d: %s", load->host, load->port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* While the socket still blocks. */
static SSL *shake_hands(const struct load *load, int fd)
{
    SSL *ssl = SSL_new(load->tls);

    if (!ssl || !SSL_set_fd(ssl, fd) || !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl),
                                                                       load->host))
        load_die("cannot prepare TLS");
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_connect(ssl) != 1)
        load_die("the handshake failed: %s",
                 X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
    return ssl;
}

static void use_tls(struct load *load, const char *ca)
{
    load->tls = SSL_CTX_new(TLS_client_method());
    if (!load->tls || SSL_CTX_load_verify_file(load->tls, ca) != 1)
        load_die("cannot read the CA in %s", ca);
    SSL_CTX_set_verify(load->tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(load->tls, 1); /* one system call for a record, not two */
}

/* Both as send and recv: negative with errno. */
static ssize_t send_some(struct load_connection *connection, const char *data, size_t len)
{
    int rc;

    if (!connection->ssl)
        return send(connection->fd, data, len, MSG_NOSIGNAL);
    rc = SSL_write(connection->ssl, data, len > 1 << 20 ? 1 << 20 : (int)len);
    if (rc <= 0)
        errno = SSL_get_error(connection->ssl, rc) == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
    return rc > 0 ? rc : -1;
}

static ssize_t receive_some(struct load_connection *connection, char *data, size_t cap)
{
    int rc;

    if (!connection->ssl)
        return recv(connection->fd, data, cap, 0);
    rc = SSL_read(connection->ssl, data, cap > 1 << 20 ? 1 << 20 : (int)cap);
    if (rc <= 0)
        errno = SSL_get_error(connection->ssl, rc) == SSL_ERROR_WANT_READ ? EAGAIN : EIO;
    return rc > 0 ? rc : -1;
}

static void watch(struct load *load, struct load_connection *connection, int operation,
                  bool for_write)
{
    struct epoll_event event = {.events = EPOLLIN | (for_write ? EPOLLOUT : 0u),
                                .data.u32 = connection->index};

    if (epoll_ctl(load->epoll_fd, operation, connection->fd, &event) < 0)
        load_die("epoll_ctl: %s", strerror(errno));
    connection->wants_write = for_write;
}

void load_open(struct load *load, const char *address, const char *ca, uint32_t count)
{
    *load = (struct load){.count = count};
    if (sscanf(address, "%63[^:]:%d", load->host, &load->port) != 2)
        load_die("'%s' is not HOST:PORT", address);
    if (count == 0 || count > LOAD_CONNECTIONS_MAX)
        load_die("1 to %d connections", LOAD_CONNECTIONS_MAX);
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    load->connections = calloc(count, sizeof *load->connections);
    load->samples_us = malloc(LOAD_SAMPLES_MAX * sizeof *load->samples_us);
    if (load->epoll_fd < 0 || !load->connections || !load->samples_us)
        load_die("out of memory");
    if (ca)
        use_tls(load, ca);
    for (uint32_t i = 0; i < count; i++) {
        struct load_connection *connection = &load->connections[i];

        connection->index = i;
        connection->fd = connect_one(load);
        connection->ssl = ca ? shake_hands(load, connection->fd) : NULL;
        if (fcntl(connection->fd, F_SETFL, O_NONBLOCK) < 0)
            load_die("cannot make a socket non-blocking: %s", strerror(errno));
        watch(load, connection, EPOLL_CTL_ADD, false);
    }
}

void load_close(struct load *load)
{
    for (uint32_t i = 0; i < load->count; i++) {
        SSL_free(load->connections[i].ssl);
        close(load->connections[i].fd);
        free(load->connections[i].out.data);
        free(load->connections[i].in.data);
        free(load->connections[i].body.data);
    }
    free(load->connections);
    free(load->samples_us);
    SSL_CTX_free(load->tls);
    close(load->epoll_fd);
}

/* ---- one exchange ---- */

void load_request(struct load *load, struct load_connection *connection, const char *method,
                  const char *path, const char *body, size_t body_len)
{
    connection->out.len = 0;
    load_bytes_format(&connection->out, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n", method, path,
                      load->host, load->port);
    if (load->token)
        load_bytes_format(&connection->out, "Authorization: Bearer %s\r\n", load->token);
    if (load->namespace_name)
        load_bytes_format(&connection->out, "Perdura-Namespace: %s\r\n", load->namespace_name);
    if (body)
        load_bytes_format(&connection->out,
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_len);
    load_bytes_text(&connection->out, "\r\n");
    if (body)
        load_bytes_add(&connection->out, body, body_len);
}

static void flush_out(struct load *load, struct load_connection *connection)
{
    while (connection->sent < connection->out.len) {
        ssize_t len = send_some(connection, connection->out.data + connection->sent,
                                connection->out.len - connection->sent);

        if (len < 0 && errno == EAGAIN) {
            if (!connection->wants_write)
                watch(load, connection, EPOLL_CTL_MOD, true);
            return;
        }
        if (len < 0 && errno != EINTR)
            load_die("sending: %s", strerror(errno));
        if (len > 0)
            connection->sent += (size_t)len;
    }
    if (connection->wants_write)
        watch(load, connection, EPOLL_CTL_MOD, false);
}

static void begin(struct load *load, const struct load_job *job,
                  struct load_connection *connection)
{
    if (!job->next(job->ctx, connection))
        return;
    connection->busy = true;
    connection->sent = 0;
    connection->in.len = connection->head_len = 0;
    load->busy_count++;
    connection->sent_us = load_now_us();
    flush_out(load, connection);
}

/* The status and where the body begins, once the head is there. */
static void read_head(struct load_connection *connection)
{
    char *data = connection->in.data;
    char *end = memmem(data, connection->in.len, "\r\n\r\n", 4);
    char *length;

    if (!end)
        return;
    *end = '\0';
    length = strcasestr(data, "\r\ncontent-length:");
    if (sscanf(data, "HTTP/1.1 %d", &connection->status) != 1 || !length)
        load_die("not a reply with a length: %.80s", data);
    connection->head_len = (size_t)(end + 4 - data);
    connection->body_len = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    if (connection->body_len > LOAD_BYTES_MAX)
        load_die("a reply of %zu bytes", connection->body_len);
}

static bool reply_complete(struct load_connection *connection)
{
    if (connection->head_len == 0 && connection->in.len)
        read_head(connection);
    return connection->head_len &&
           connection->in.len >= connection->head_len + connection->body_len;
}

/* True when the whole reply is there. */
static bool receive(struct load_connection *connection)
{
    for (;;) {
        ssize_t len;

        reserve(&connection->in, READ_BYTES);
        len = receive_some(connection, connection->in.data + connection->in.len,
                           connection->in.cap - connection->in.len);
        if (len < 0 && errno == EAGAIN)
            return false;
        if (len == 0 || (len < 0 && errno != EINTR))
            load_die("the server closed a connection");
        if (len > 0)
            connection->in.len += (size_t)len;
        if (reply_complete(connection))
            return true;
    }
}

static void finish(struct load *load, const struct load_job *job,
                   struct load_connection *connection)
{
    if (load->samples_count < LOAD_SAMPLES_MAX)
        load->samples_us[load->samples_count++] = load_now_us() - connection->sent_us;
    connection->busy = false;
    load->busy_count--;
    job->answered(job->ctx, connection, connection->status,
                  connection->in.data + connection->head_len, connection->body_len);
    begin(load, job, connection);
}

int64_t load_run(struct load *load, const struct load_job *job)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t began_us = load_now_us();

    load->samples_count = 0;
    for (uint32_t i = 0; i < load->count; i++)
        begin(load, job, &load->connections[i]);
    while (load->busy_count > 0) {
        int count = epoll_wait(load->epoll_fd, events, EVENTS_MAX, SILENCE_MS);

        if (count == 0)
            load_die("the server did not answer for %d seconds", SILENCE_MS / 1000);
        for (int i = 0; i < count; i++) {
            struct load_connection *connection = &load->connections[events[i].data.u32];

            if (events[i].events & EPOLLOUT)
                flush_out(load, connection);
            if ((events[i].events & ~(uint32_t)EPOLLOUT) && receive(connection))
                finish(load, job, connection);
        }
    }
    return load_now_us() - began_us;
}

void load_send_only(struct load *load, const struct load_job *job)
{
    for (uint32_t i = 0; i < load->count; i++)
        begin(load, job, &load->connections[i]);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

struct load_latency load_latency(struct load *load)
{
    uint32_t count = load->samples_count;

    if (count == 0)
        return (struct load_latency){-1, -1};
    qsort(load->samples_us, count, sizeof *load->samples_us, compare_int64);
    return (struct load_latency){load->samples_us[count / 2],
                                 load->samples_us[(uint64_t)count * 99 / 100]};
}
