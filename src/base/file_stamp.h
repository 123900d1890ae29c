/* How a file that is watched looked: a change of its place, size or times is a change of what it
 * says. Any thread. */
#ifndef BASE_FILE_STAMP_H
#define BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

/* Zero where the file is not there. */
struct file_stamp {
    uint64_t device, inode;
    int64_t bytes, changed_s, changed_ns, moved_s, moved_ns;
};

void file_stamp_take(struct file_stamp *stamp, const char *path); /* NULL = no file is wanted */
bool file_stamp_same(const struct file_stamp *a, const struct file_stamp *b);

#endif
