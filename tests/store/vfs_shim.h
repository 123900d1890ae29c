/* An SQLite VFS around the default one, for faults a real disk shows too rarely: the n-th write,
 * sync, read or truncation fails; the disk is full until the ballast is gone; the power is cut at a
 * sync, and what was not synced before is lost, in part or torn. Installed as the default VFS
 * before the store is opened. Knows nothing of the store but the names of its files. Any thread. */
#ifndef TESTS_STORE_VFS_SHIM_H
#define TESTS_STORE_VFS_SHIM_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define SHIM_PATH_BYTES 256

enum shim_op { SHIM_WRITE, SHIM_SYNC, SHIM_READ, SHIM_TRUNCATE, SHIM_OP_COUNT };

/* What happened to a file, as the watcher sees it. The offset of a truncation is the new size, of
 * a deletion not 0 when its folder was synced. */
enum shim_change { SHIM_WRITTEN, SHIM_TRUNCATED, SHIM_SYNCED, SHIM_DELETED };
typedef void shim_watch(void *ctx, enum shim_change change, const char *path, int64_t offset,
                        const void *data, int len);

struct shim_disk; /* what a file holds for certain, and what was written to it since */

struct vfs_shim {
    sqlite3_vfs vfs;
    sqlite3_vfs *below;
    pthread_mutex_t mutex;
    int64_t counts[SHIM_OP_COUNT];
    struct {
        const char *suffix; /* of the file's name; "" = of any */
        int64_t skip;       /* operations that still go well */
        int64_t times;      /* operations that fail then */
        int code;
    } faults[SHIM_OP_COUNT];
    int fault_errno;               /* what the system would have said of a fault; 0 = nothing */
    char ballast[SHIM_PATH_BYTES]; /* not "": the disk is full while this file is there */
    bool no_promises;              /* SQLite shall trust nothing about writes */
    int64_t slept_us;              /* asked of xSleep, which never sleeps */
    shim_watch *watch;             /* called under the mutex, in the order of the changes */
    void *watch_ctx;
    struct shim_disk *disks;
    bool keeps;                    /* shadow copies are kept */
    bool cut;                      /* the power is gone: nothing is written any more */
    int64_t cut_at;                /* the sync at which it goes; 0 = never */
};

void vfs_shim_install(struct vfs_shim *shim);
void vfs_shim_remove(struct vfs_shim *shim);

/* After `skip` more operations on files of that suffix, `times` of them fail with an SQLite code.
 * times 0 takes it back. */
void vfs_shim_fail(struct vfs_shim *shim, enum shim_op op, const char *suffix, int64_t skip,
                   int64_t times, int code);
int64_t vfs_shim_count(struct vfs_shim *shim, enum shim_op op);
void vfs_shim_fill_disk(struct vfs_shim *shim, const char *ballast); /* NULL = space again */

/* From now on shadow copies are kept, and the power goes at the n-th sync (0 = never). */
void vfs_shim_arm(struct vfs_shim *shim, int64_t cut_at_sync);
/* Puts on the disk what survived: all that was synced, and of the rest nothing (seed 0), all (1) or
 * a random part (others). Every file must be closed. The power is back. */
void vfs_shim_power_back(struct vfs_shim *shim, unsigned seed);

#endif
