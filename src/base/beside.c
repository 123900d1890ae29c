/* See the header. */
#include "base/beside.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define NAME_BYTES 64 /* with the folder before it */

static bool is_trusted(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 022) == 0 &&
           (info.st_uid == 0 || info.st_uid == geteuid());
}

int beside_open(const char *name, int flags)
{
    static const char *const folders[] = {"", "/../libexec"};
    char path[PATH_BYTES + NAME_BYTES];
    ssize_t len = readlink("/proc/self/exe", path, PATH_BYTES);

    while (len > 0 && path[len - 1] != '/')
        len--;
    for (size_t i = 0; len > 0 && i < sizeof folders / sizeof *folders; i++) {
        int fd;

        snprintf(path + len - 1, NAME_BYTES, "%s/%s", folders[i], name);
        fd = open(path, flags | O_CLOEXEC);
        if (fd >= 0 && is_trusted(fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}
