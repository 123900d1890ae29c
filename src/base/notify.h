/* Messages to the service manager (sd_notify's protocol: a datagram to $NOTIFY_SOCKET). Without
 * such a socket nothing happens. Any thread; never blocks. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdint.h>

struct notify {
    int fd;              /* -1 = no manager listens */
    int64_t watchdog_us; /* a sign of life is expected this often; 0 = not */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment, so
 * that handlers do not speak for the server. Before threads are started. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* Lines such as "READY=1\nSTATUS=serving"; at most 1 KiB. */
void notify_send(const struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The configuration is being read again; READY=1 follows when that is over. */
void notify_reloading(const struct notify *notify);

#endif
