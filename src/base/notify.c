/* A connected datagram socket. A message that cannot be sent is dropped: the manager has its own
 * time-outs. Any thread. */
#include "base/notify.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX 1024

/* "/run/…" or, with '@' in front, a name that is no file. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    int fd;

    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int64_t watchdog_of_environment(void)
{
    struct str period = str_of(getenv("WATCHDOG_USEC"));
    struct str pid = str_of(getenv("WATCHDOG_PID"));
    int64_t us, number;

    if (!period.data || !str_to_int64(period, &us) || us <= 0)
        return 0;
    if (pid.data && (!str_to_int64(pid, &number) || number != (int64_t)getpid()))
        return 0; /* meant for another process */
    return us;
}

void notify_open(struct notify *notify)
{
    const char *path = getenv("NOTIFY_SOCKET");

    *notify = (struct notify){.fd = path ? connect_to(path) : -1};
    if (notify->fd >= 0)
        notify->watchdog_us = watchdog_of_environment();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

void notify_send(const struct notify *notify, const char *format, ...)
{
    char text[MESSAGE_BYTES_MAX];
    va_list args;
    int len;

    if (notify->fd < 0)
        return;
    va_start(args, format);
    len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len <= 0 || (size_t)len >= sizeof text)
        return;
    while (send(notify->fd, text, (size_t)len, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

void notify_reloading(const struct notify *notify)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now); /* the manager tells an old word from a new one by it */
    notify_send(notify, "RELOADING=1\nMONOTONIC_USEC=%lld",
                (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}
