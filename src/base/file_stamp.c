/* One stat() per look; the struct has no padding, so that stamps are compared as bytes. */
#include "base/file_stamp.h"

#include <string.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct file_stamp) == 7 * sizeof(int64_t), "stamps have no padding");

void file_stamp_take(struct file_stamp *stamp, const char *path)
{
    struct stat info;

    memset(stamp, 0, sizeof *stamp);
    if (!path || stat(path, &info) < 0)
        return;
    stamp->device = info.st_dev;
    stamp->inode = info.st_ino;
    stamp->bytes = info.st_size;
    stamp->changed_s = info.st_mtim.tv_sec;
    stamp->changed_ns = info.st_mtim.tv_nsec;
    stamp->moved_s = info.st_ctim.tv_sec;
    stamp->moved_ns = info.st_ctim.tv_nsec;
}

bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
