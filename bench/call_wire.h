/* What the bare target and the bare client of bench/services.py share: a socket with or without TLS,
 * blocking, one per thread. */
#ifndef CALL_WIRE_H
#define CALL_WIRE_H

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

struct wire {
    int fd;
    SSL *ssl; /* NULL = clear text */
};

static inline ssize_t wire_read(const struct wire *wire, void *data, size_t len)
{
    return wire->ssl ? SSL_read(wire->ssl, data, (int)len) : read(wire->fd, data, len);
}

static inline void wire_write(const struct wire *wire, const void *data, size_t len)
{
    const char *at = data;

    while (len) {
        ssize_t done = wire->ssl ? SSL_write(wire->ssl, at, (int)len) : write(wire->fd, at, len);

        if (done <= 0)
            return; /* the next read notices it */
        at += done;
        len -= (size_t)done;
    }
}

static inline void wire_fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

#endif
