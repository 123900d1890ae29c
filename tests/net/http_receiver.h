/* A small HTTP server on 127.0.0.1 for tests of outgoing calls: one thread, one connection at a
 * time, answers by a script, remembers what it got. Included by test programs only; all functions
 * are static. */
#ifndef TESTS_HTTP_RECEIVER_H
#define TESTS_HTTP_RECEIVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define RECEIVED_MAX 512
#define RECEIVED_BYTES 8192
#define RECEIVER_DEADLINE_S 60

/* Statuses are sent as they are; these are not. */
enum { ANSWER_NEVER = -1, ANSWER_ENDLESS = -2, ANSWER_ENDLESS_HEAD = -3 };

struct received {
    char head[2048];
    char body[RECEIVED_BYTES - 2048];
};

struct receiver {
    int listen_fd;
    int stop_pipe[2];
    int port;
    pthread_t thread;
    bool runs;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const int *script; /* answers in order; the last one stays */
    size_t script_count;
    struct received *received;
    size_t count;
    size_t connections;
    size_t sent_bytes; /* of endless answers */
    size_t cuts;       /* endless answers that the client ended */
};

/* False when the receiver is to stop. */
static inline bool receiver_wait(struct receiver *receiver, int fd, short events)
{
    struct pollfd fds[2] = {{fd, events, 0}, {receiver->stop_pipe[0], POLLIN, 0}};

    return poll(fds, 2, -1) > 0 && !fds[1].revents;
}

/* Reads one request; false at the end of the connection. */
static inline bool receiver_read(struct receiver *receiver, int fd, struct received *received)
{
    char text[RECEIVED_BYTES];
    size_t len = 0;
    char *end = NULL;
    const char *at;
    size_t body_len = 0;

    for (;;) {
        ssize_t got;

        text[len] = '\0';
        if (!end && (end = strstr(text, "\r\n\r\n"))) {
            *end = '\0';
            end += 4;
            at = strcasestr(text, "\r\nContent-Length:");
            body_len = at ? strtoul(at + 17, NULL, 10) : 0;
        }
        if (end && len >= (size_t)(end - text) + body_len)
            break;
        if (len == sizeof text - 1 || !receiver_wait(receiver, fd, POLLIN))
            return false;
        got = recv(fd, text + len, sizeof text - 1 - len, 0);
        if (got <= 0)
            return false;
        len += (size_t)got;
    }
    snprintf(received->head, sizeof received->head, "%.2000s", text);
    snprintf(received->body, sizeof received->body, "%.*s", (int)body_len, end);
    return true;
}

/* As much as the client takes. */
static inline void receiver_flood(struct receiver *receiver, int fd, const char *text)
{
    ssize_t sent;

    while (receiver_wait(receiver, fd, POLLOUT)) {
        sent = send(fd, text, strlen(text), MSG_NOSIGNAL);
        pthread_mutex_lock(&receiver->mutex);
        receiver->cuts += sent <= 0;
        receiver->sent_bytes += sent > 0 ? (size_t)sent : 0;
        pthread_cond_broadcast(&receiver->changed);
        pthread_mutex_unlock(&receiver->mutex);
        if (sent <= 0)
            return;
    }
}

static inline bool receiver_answer(struct receiver *receiver, int fd, int status)
{
    char text[512];

    switch (status) {
    case ANSWER_NEVER:
        receiver_wait(receiver, fd, POLLIN); /* until the client leaves */
        return false;
    case ANSWER_ENDLESS_HEAD:
        send(fd, "HTTP/1.1 500 No\r\n", 17, MSG_NOSIGNAL);
        receiver_flood(receiver, fd, "X-Secret-Answer: again and again\r\n");
        return false;
    case ANSWER_ENDLESS:
        send(fd, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL);
        receiver_flood(receiver, fd, "a secret answer without an end, ");
        return false;
    default:
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d X\r\nLocation: http://127.0.0.1:%d/elsewhere\r\n"
                 "Content-Length: 15\r\n\r\na secret answer",
                 status, receiver->port);
        return send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
    }
}

static inline void receiver_serve(struct receiver *receiver, int fd)
{
    struct received received;
    int status;

    while (receiver_read(receiver, fd, &received)) {
        pthread_mutex_lock(&receiver->mutex);
        status = receiver->script[receiver->count < receiver->script_count
                                      ? receiver->count
                                      : receiver->script_count - 1];
        if (receiver->count < RECEIVED_MAX)
            receiver->received[receiver->count] = received;
        receiver->count++;
        pthread_cond_broadcast(&receiver->changed);
        pthread_mutex_unlock(&receiver->mutex);
        if (!receiver_answer(receiver, fd, status))
            return;
    }
}

static inline void *receiver_run(void *ctx)
{
    struct receiver *receiver = ctx;

    while (receiver_wait(receiver, receiver->listen_fd, POLLIN)) {
        int fd = accept(receiver->listen_fd, NULL, NULL);

        if (fd < 0)
            continue;
        pthread_mutex_lock(&receiver->mutex);
        receiver->connections++;
        pthread_mutex_unlock(&receiver->mutex);
        receiver_serve(receiver, fd);
        close(fd);
    }
    return NULL;
}

/* Has a port, but does not listen there: connections are refused. */
static inline void receiver_bind(struct receiver *receiver)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    pthread_condattr_t attributes;

    memset(receiver, 0, sizeof *receiver);
    receiver->received = calloc(RECEIVED_MAX, sizeof *receiver->received);
    assert_non_null(receiver->received);
    receiver->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(receiver->listen_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(receiver->listen_fd, (struct sockaddr *)&address, &len), 0);
    receiver->port = ntohs(address.sin_port);
    assert_int_equal(pipe(receiver->stop_pipe), 0);
    pthread_mutex_init(&receiver->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&receiver->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static inline void receiver_listen(struct receiver *receiver, const int *script, size_t count)
{
    receiver->script = script;
    receiver->script_count = count;
    assert_int_equal(listen(receiver->listen_fd, 16), 0);
    assert_int_equal(pthread_create(&receiver->thread, NULL, receiver_run, receiver), 0);
    receiver->runs = true;
}

/* Ends the thread; what was received can be looked at without a lock from now on. */
static inline void receiver_stop(struct receiver *receiver)
{
    if (!receiver->runs)
        return;
    assert_int_equal(write(receiver->stop_pipe[1], "x", 1), 1);
    pthread_join(receiver->thread, NULL);
    receiver->runs = false;
}

static inline void receiver_close(struct receiver *receiver)
{
    receiver_stop(receiver);
    close(receiver->stop_pipe[0]);
    close(receiver->stop_pipe[1]);
    close(receiver->listen_fd);
    pthread_cond_destroy(&receiver->changed);
    pthread_mutex_destroy(&receiver->mutex);
    free(receiver->received);
}

static inline struct timespec receiver_deadline(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += RECEIVER_DEADLINE_S;
    return at;
}

static inline void receiver_expect(struct receiver *receiver, size_t count)
{
    struct timespec at = receiver_deadline();
    int rc = 0;

    pthread_mutex_lock(&receiver->mutex);
    while (receiver->count < count && rc == 0)
        rc = pthread_cond_timedwait(&receiver->changed, &receiver->mutex, &at);
    pthread_mutex_unlock(&receiver->mutex);
    assert_int_equal(rc, 0);
}

static inline void receiver_expect_cuts(struct receiver *receiver, size_t count)
{
    struct timespec at = receiver_deadline();
    int rc = 0;

    pthread_mutex_lock(&receiver->mutex);
    while (receiver->cuts < count && rc == 0)
        rc = pthread_cond_timedwait(&receiver->changed, &receiver->mutex, &at);
    pthread_mutex_unlock(&receiver->mutex);
    assert_int_equal(rc, 0);
}

/* The value of a header of request `index`, or "". */
static inline const char *receiver_header(const struct receiver *receiver, size_t index,
                                          const char *name, char *out, size_t out_bytes)
{
    char wanted[80];
    const char *at;

    snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    at = strcasestr(receiver->received[index].head, wanted);
    snprintf(out, out_bytes, "%.*s", at ? (int)strcspn(at + strlen(wanted), "\r") : 0,
             at ? at + strlen(wanted) : "");
    return out;
}

#endif
