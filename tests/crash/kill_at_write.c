/* Loaded before the C library (LD_PRELOAD): kills the process at its N-th write to one file, before
 * it, in its middle or after it. What kill -9 leaves of a checkpoint or a commit at every single
 * write (F-A16).
 *     KILL_AT_WRITE=N  KILL_FILE=end-of-path  KILL_WHEN=before|middle|after */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t pwrite_function(int fd, const void *data, size_t len, off_t at);

static int is_the_file(int fd)
{
    const char *end = getenv("KILL_FILE");
    char link[64], path[PATH_MAX];
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (!end || len < (ssize_t)strlen(end))
        return 0;
    path[len] = '\0';
    return strcmp(path + len - strlen(end), end) == 0;
}

/* Which of the writes to the file this one is, and whether it is the last. */
static int is_the_last(int fd)
{
    static atomic_long writes;
    const char *wanted = getenv("KILL_AT_WRITE");

    return wanted && is_the_file(fd) && atomic_fetch_add(&writes, 1) + 1 == atol(wanted);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t at)
{
    pwrite_function *real = (pwrite_function *)dlsym(RTLD_NEXT, "pwrite64");
    const char *when = getenv("KILL_WHEN");
    ssize_t wrote;

    if (!is_the_last(fd))
        return real(fd, data, len, at);
    if (when && strcmp(when, "before") == 0)
        raise(SIGKILL);
    wrote = real(fd, data, when && strcmp(when, "middle") == 0 ? len / 2 : len, at);
    raise(SIGKILL);
    return wrote;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    return pwrite64(fd, data, len, at);
}
