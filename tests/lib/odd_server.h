/* A server on 127.0.0.1 that answers every request with what was put up last, whatever it was
 * asked: for clients that must cope with answers no Perdura server gives. One thread, one
 * connection after the other, closed after each answer. Included by test programs only; all
 * functions are static. */
#ifndef TESTS_UNIT_ODD_SERVER_H
#define TESTS_UNIT_ODD_SERVER_H

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
#include <unistd.h>

#include <cmocka.h>

#define ODD_REQUEST_BYTES 65536
#define ODD_ANSWERS_MAX 4

struct odd_answer {
    int status;
    const char *body; /* NULL: the connection is closed without an answer */
};

struct odd_server {
    int listen_fd;
    int stop_pipe[2];
    char url[64];
    pthread_t thread;
    pthread_mutex_t mutex;
    struct odd_answer answers[ODD_ANSWERS_MAX]; /* in order; the last one stays */
    int answers_count;
    int at;
    int requests;
};

/* One request, head and body; the content is not looked at. */
static inline bool odd_read(int fd)
{
    static const char length_name[] = "\r\nContent-Length:";
    char *text = malloc(ODD_REQUEST_BYTES);
    size_t len = 0;
    bool whole = false;

    while (text && !whole && len < ODD_REQUEST_BYTES - 1) {
        ssize_t got = recv(fd, text + len, ODD_REQUEST_BYTES - 1 - len, 0);
        const char *end;
        const char *length;

        if (got <= 0)
            break;
        len += (size_t)got;
        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strcasestr(text, length_name);
        whole = end && len >= (size_t)(end + 4 - text) +
                                  (length ? strtoul(length + sizeof length_name - 1, NULL, 10) : 0);
    }
    free(text);
    return whole;
}

static inline void odd_answer_one(struct odd_server *server, int fd)
{
    struct odd_answer answer;
    char *body;
    char head[256];
    int len;

    if (!odd_read(fd))
        return;
    pthread_mutex_lock(&server->mutex);
    answer = server->answers[server->at];
    body = answer.body ? strdup(answer.body) : NULL;
    if (server->at + 1 < server->answers_count)
        server->at++;
    server->requests++;
    pthread_mutex_unlock(&server->mutex);
    if (!body)
        return;
    len = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %zu"
                   "\r\n\r\n", answer.status, strlen(body));
    (void)!send(fd, head, (size_t)len, MSG_NOSIGNAL);
    (void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
    free(body);
}

static inline void *odd_serve(void *ctx)
{
    struct odd_server *server = ctx;

    for (;;) {
        struct pollfd fds[2] = {{server->listen_fd, POLLIN, 0}, {server->stop_pipe[0], POLLIN, 0}};
        int fd;

        if (poll(fds, 2, -1) < 0 || fds[1].revents)
            return NULL;
        fd = accept(server->listen_fd, NULL, NULL);
        odd_answer_one(server, fd);
        close(fd);
    }
}

/* Puts up the answers to the next requests; the last one is given from then on. */
static inline void odd_put(struct odd_server *server, const struct odd_answer *answers, int count)
{
    pthread_mutex_lock(&server->mutex);
    for (int i = 0; i < ODD_ANSWERS_MAX; i++) {
        free((char *)server->answers[i].body);
        server->answers[i] = (struct odd_answer){0};
    }
    for (int i = 0; i < count; i++)
        server->answers[i] = (struct odd_answer){
            answers[i].status, answers[i].body ? strdup(answers[i].body) : NULL};
    server->answers_count = count;
    server->at = 0;
    pthread_mutex_unlock(&server->mutex);
}

static inline void odd_put_one(struct odd_server *server, int status, const char *body)
{
    struct odd_answer answer = {status, body};

    odd_put(server, &answer, 1);
}

static inline struct odd_server *odd_start(void)
{
    struct odd_server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    assert_non_null(server);
    pthread_mutex_init(&server->mutex, NULL);
    odd_put_one(server, 200, "{}");
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listen_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->listen_fd, 16), 0);
    assert_int_equal(getsockname(server->listen_fd, (struct sockaddr *)&address, &len), 0);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pipe(server->stop_pipe), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, odd_serve, server), 0);
    return server;
}

static inline void odd_stop(struct odd_server *server)
{
    assert_int_equal(write(server->stop_pipe[1], "x", 1), 1);
    pthread_join(server->thread, NULL);
    close(server->listen_fd);
    close(server->stop_pipe[0]);
    close(server->stop_pipe[1]);
    odd_put(server, NULL, 0);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

#endif
