#include "vfs_shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512 /* a torn write ends between two of these */

struct pending {
    struct pending *next;
    sqlite3_int64 offset; /* of a write; of a truncation the new size */
    int len;              /* -1 = a truncation */
    unsigned char data[];
};

struct shim_disk {
    struct shim_disk *next;
    char path[SHIM_PATH_BYTES];
    unsigned char *durable;
    sqlite3_int64 size;
    sqlite3_int64 cap;
    struct pending *first, *last; /* written, not synced */
};

struct shim_file {
    sqlite3_file base;
    struct vfs_shim *shim;
    struct shim_disk *disk;
    char path[SHIM_PATH_BYTES];
    sqlite3_file *below; /* behind this struct */
};

static struct vfs_shim *shim_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static sqlite3_file *below_of(sqlite3_file *file)
{
    return ((struct shim_file *)file)->below;
}

static bool ends_with(const char *path, const char *suffix)
{
    size_t path_len = strlen(path), len = strlen(suffix);

    return path_len >= len && strcmp(path + path_len - len, suffix) == 0;
}

/* Counts the operation and tells how it fails; SQLITE_OK = not at all. Under the mutex. */
static int judge(struct vfs_shim *shim, enum shim_op op, const char *path)
{
    shim->counts[op]++;
    if (shim->cut)
        return op == SHIM_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_IOERR_WRITE;
    if (op == SHIM_WRITE && shim->ballast[0] && access(shim->ballast, F_OK) == 0)
        return SQLITE_FULL;
    if (shim->faults[op].times == 0 || !ends_with(path, shim->faults[op].suffix))
        return SQLITE_OK;
    if (shim->faults[op].skip > 0) {
        shim->faults[op].skip--;
        return SQLITE_OK;
    }
    shim->faults[op].times--;
    return shim->faults[op].code;
}

static void tell(struct vfs_shim *shim, enum shim_change change, const char *path,
                 sqlite3_int64 offset, const void *data, int len)
{
    if (shim->watch)
        shim->watch(shim->watch_ctx, change, path, offset, data, len);
}

static void grow_to(struct shim_disk *disk, sqlite3_int64 size)
{
    if (size <= disk->size)
        return;
    if (size > disk->cap) {
        disk->cap = 2 * size;
        disk->durable = realloc(disk->durable, (size_t)disk->cap);
    }
    memset(disk->durable + disk->size, 0, (size_t)(size - disk->size));
    disk->size = size;
}

static void apply_bytes(struct shim_disk *disk, const struct pending *change, int from, int to)
{
    grow_to(disk, change->offset + to);
    memcpy(disk->durable + change->offset + from, change->data + from, (size_t)(to - from));
}

static void apply(struct shim_disk *disk, const struct pending *change)
{
    if (change->len < 0)
        disk->size = change->offset < disk->size ? change->offset : disk->size;
    else
        apply_bytes(disk, change, 0, change->len);
}

/* A write that was under way when the power went: sector by sector, each for itself. */
static void apply_torn(struct shim_disk *disk, const struct pending *change, unsigned *seed)
{
    if (rand_r(seed) % 2)
        return;
    if (change->len < 0) {
        apply(disk, change);
        return;
    }
    for (int from = 0; from < change->len;) {
        int to = from + SECTOR - (int)((change->offset + from) % SECTOR);

        to = to < change->len ? to : change->len;
        if (rand_r(seed) % 4)
            apply_bytes(disk, change, from, to);
        from = to;
    }
}

static void keep(struct shim_disk *disk, sqlite3_int64 offset, const void *data, int len)
{
    struct pending *change = malloc(sizeof *change + (size_t)(len > 0 ? len : 0));

    *change = (struct pending){NULL, offset, len};
    if (len > 0)
        memcpy(change->data, data, (size_t)len);
    if (disk->last)
        disk->last->next = change;
    else
        disk->first = change;
    disk->last = change;
}

static void drop_pending(struct shim_disk *disk)
{
    while (disk->first) {
        struct pending *change = disk->first;

        disk->first = change->next;
        free(change);
    }
    disk->last = NULL;
}

static void read_whole(struct shim_disk *disk)
{
    int fd = open(disk->path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;

    grow_to(disk, size);
    if (size > 0 && pread(fd, disk->durable, (size_t)size, 0) != size)
        abort();
    if (fd >= 0)
        close(fd);
}

static void write_whole(const struct shim_disk *disk)
{
    int fd = open(disk->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || (disk->size && pwrite(fd, disk->durable, (size_t)disk->size, 0) != disk->size))
        abort();
    close(fd);
}

static struct shim_disk *disk_of(struct vfs_shim *shim, const char *path)
{
    struct shim_disk *disk;

    for (disk = shim->disks; disk; disk = disk->next)
        if (strcmp(disk->path, path) == 0)
            return disk;
    disk = calloc(1, sizeof *disk);
    strncpy(disk->path, path, sizeof disk->path - 1);
    disk->next = shim->disks;
    shim->disks = disk;
    read_whole(disk);
    return disk;
}

static void forget_disk(struct vfs_shim *shim, const char *path)
{
    for (struct shim_disk **at = &shim->disks; *at; at = &(*at)->next) {
        struct shim_disk *disk = *at;

        if (path && strcmp(disk->path, path) != 0)
            continue;
        *at = disk->next;
        drop_pending(disk);
        free(disk->durable);
        free(disk);
        return;
    }
}

static int file_close(sqlite3_file *file)
{
    return below_of(file)->pMethods->xClose(below_of(file));
}

static int file_read(sqlite3_file *file, void *data, int len, sqlite3_int64 offset)
{
    struct shim_file *own = (struct shim_file *)file;
    int rc;

    pthread_mutex_lock(&own->shim->mutex);
    rc = own->shim->cut ? SQLITE_OK : judge(own->shim, SHIM_READ, own->path);
    pthread_mutex_unlock(&own->shim->mutex);
    return rc ? rc : own->below->pMethods->xRead(own->below, data, len, offset);
}

static int file_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 offset)
{
    struct shim_file *own = (struct shim_file *)file;
    int rc;

    pthread_mutex_lock(&own->shim->mutex);
    rc = judge(own->shim, SHIM_WRITE, own->path);
    if (rc == SQLITE_OK && own->disk)
        keep(own->disk, offset, data, len);
    if (rc == SQLITE_OK)
        tell(own->shim, SHIM_WRITTEN, own->path, offset, data, len);
    pthread_mutex_unlock(&own->shim->mutex);
    return rc ? rc : own->below->pMethods->xWrite(own->below, data, len, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct shim_file *own = (struct shim_file *)file;
    int rc;

    pthread_mutex_lock(&own->shim->mutex);
    rc = judge(own->shim, SHIM_TRUNCATE, own->path);
    if (rc == SQLITE_OK && own->disk)
        keep(own->disk, size, NULL, -1);
    if (rc == SQLITE_OK)
        tell(own->shim, SHIM_TRUNCATED, own->path, size, NULL, 0);
    pthread_mutex_unlock(&own->shim->mutex);
    return rc ? rc : own->below->pMethods->xTruncate(own->below, size);
}

/* With shadow copies the real disk need not be waited for. */
static int file_sync(sqlite3_file *file, int flags)
{
    struct shim_file *own = (struct shim_file *)file;
    struct vfs_shim *shim = own->shim;
    bool shadowed = own->disk != NULL;
    int rc;

    pthread_mutex_lock(&shim->mutex);
    if (shim->keeps && shim->cut_at > 0 && --shim->cut_at == 0)
        shim->cut = true;
    rc = judge(shim, SHIM_SYNC, own->path);
    if (rc == SQLITE_OK && shadowed) {
        for (struct pending *change = own->disk->first; change; change = change->next)
            apply(own->disk, change);
        drop_pending(own->disk);
    }
    if (rc == SQLITE_OK)
        tell(shim, SHIM_SYNCED, own->path, 0, NULL, 0);
    pthread_mutex_unlock(&shim->mutex);
    return rc || shadowed ? rc : own->below->pMethods->xSync(own->below, flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return below_of(file)->pMethods->xFileSize(below_of(file), size);
}

static int file_lock(sqlite3_file *file, int level)
{
    return below_of(file)->pMethods->xLock(below_of(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return below_of(file)->pMethods->xUnlock(below_of(file), level);
}

static int file_check_lock(sqlite3_file *file, int *held)
{
    return below_of(file)->pMethods->xCheckReservedLock(below_of(file), held);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    return below_of(file)->pMethods->xFileControl(below_of(file), op, arg);
}

static int file_sector(sqlite3_file *file)
{
    return below_of(file)->pMethods->xSectorSize(below_of(file));
}

/* Neither atomic nor sequential, nor safe to append (a power cut may do anything); bytes beside a
 * write stay as they were, as on the system's own disks, or not even that is promised. */
static int file_traits(sqlite3_file *file)
{
    return ((struct shim_file *)file)->shim->no_promises ? 0 : SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **at)
{
    return below_of(file)->pMethods->xShmMap(below_of(file), page, bytes, extend, at);
}

static int shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return below_of(file)->pMethods->xShmLock(below_of(file), offset, count, flags);
}

static void shm_barrier(sqlite3_file *file)
{
    below_of(file)->pMethods->xShmBarrier(below_of(file));
}

static int shm_unmap(sqlite3_file *file, int delete_it)
{
    return below_of(file)->pMethods->xShmUnmap(below_of(file), delete_it);
}

/* Version 2: shared memory for the WAL, but no memory maps that would pass the shim by. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct vfs_shim *shim = shim_of(vfs);
    struct shim_file *own = (struct shim_file *)file;
    int rc;

    memset(own, 0, sizeof *own);
    own->shim = shim;
    own->below = (sqlite3_file *)(own + 1);
    rc = shim->below->xOpen(shim->below, name, own->below, flags, out);
    if (!own->below->pMethods)
        return rc;
    own->base.pMethods = &methods;
    if (!name)
        return rc;
    strncpy(own->path, name, sizeof own->path - 1);
    pthread_mutex_lock(&shim->mutex);
    if (shim->keeps && !shim->cut)
        own->disk = disk_of(shim, name);
    pthread_mutex_unlock(&shim->mutex);
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct vfs_shim *shim = shim_of(vfs);
    bool cut;

    pthread_mutex_lock(&shim->mutex);
    cut = shim->cut;
    if (!cut && shim->keeps)
        forget_disk(shim, name);
    if (!cut)
        tell(shim, SHIM_DELETED, name, sync_folder, NULL, 0);
    pthread_mutex_unlock(&shim->mutex);
    return cut ? SQLITE_IOERR_DELETE : shim->below->xDelete(shim->below, name, sync_folder);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    return shim_of(vfs)->below->xAccess(shim_of(vfs)->below, name, flags, out);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int cap, char *out)
{
    return shim_of(vfs)->below->xFullPathname(shim_of(vfs)->below, name, cap, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int len, char *out)
{
    return shim_of(vfs)->below->xRandomness(shim_of(vfs)->below, len, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    struct vfs_shim *shim = shim_of(vfs);

    pthread_mutex_lock(&shim->mutex);
    shim->slept_us += microseconds;
    pthread_mutex_unlock(&shim->mutex);
    return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, double *days)
{
    return shim_of(vfs)->below->xCurrentTime(shim_of(vfs)->below, days);
}

static int vfs_last_error(sqlite3_vfs *vfs, int cap, char *out)
{
    if (cap > 0)
        out[0] = '\0';
    return shim_of(vfs)->fault_errno; /* what the shim refuses never reached the system */
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ms)
{
    return shim_of(vfs)->below->xCurrentTimeInt64(shim_of(vfs)->below, ms);
}

void vfs_shim_install(struct vfs_shim *shim)
{
    memset(shim, 0, sizeof *shim);
    pthread_mutex_init(&shim->mutex, NULL);
    shim->below = sqlite3_vfs_find(NULL);
    shim->vfs = (sqlite3_vfs){.iVersion = 2,
                              .szOsFile = (int)sizeof(struct shim_file) + shim->below->szOsFile,
                              .mxPathname = shim->below->mxPathname,
                              .zName = "perdura-shim",
                              .pAppData = shim,
                              .xOpen = vfs_open,
                              .xDelete = vfs_delete,
                              .xAccess = vfs_access,
                              .xFullPathname = vfs_full_path,
                              .xRandomness = vfs_randomness,
                              .xSleep = vfs_sleep,
                              .xCurrentTime = vfs_time,
                              .xGetLastError = vfs_last_error,
                              .xCurrentTimeInt64 = vfs_time_ms};
    sqlite3_vfs_register(&shim->vfs, 1);
}

void vfs_shim_remove(struct vfs_shim *shim)
{
    sqlite3_vfs_unregister(&shim->vfs);
    sqlite3_vfs_register(shim->below, 1);
    while (shim->disks)
        forget_disk(shim, NULL);
    pthread_mutex_destroy(&shim->mutex);
}

void vfs_shim_fail(struct vfs_shim *shim, enum shim_op op, const char *suffix, int64_t skip,
                   int64_t times, int code)
{
    pthread_mutex_lock(&shim->mutex);
    shim->faults[op].suffix = suffix;
    shim->faults[op].skip = skip;
    shim->faults[op].times = times;
    shim->faults[op].code = code;
    pthread_mutex_unlock(&shim->mutex);
}

int64_t vfs_shim_count(struct vfs_shim *shim, enum shim_op op)
{
    int64_t count;

    pthread_mutex_lock(&shim->mutex);
    count = shim->counts[op];
    pthread_mutex_unlock(&shim->mutex);
    return count;
}

void vfs_shim_fill_disk(struct vfs_shim *shim, const char *ballast)
{
    pthread_mutex_lock(&shim->mutex);
    strncpy(shim->ballast, ballast ? ballast : "", sizeof shim->ballast - 1);
    pthread_mutex_unlock(&shim->mutex);
}

void vfs_shim_arm(struct vfs_shim *shim, int64_t cut_at_sync)
{
    pthread_mutex_lock(&shim->mutex);
    shim->keeps = true;
    shim->cut = false;
    shim->cut_at = cut_at_sync;
    pthread_mutex_unlock(&shim->mutex);
}

void vfs_shim_power_back(struct vfs_shim *shim, unsigned seed)
{
    unsigned random = seed;

    while (shim->disks) {
        struct shim_disk *disk = shim->disks;
        char beside[SHIM_PATH_BYTES + 8];

        for (struct pending *change = disk->first; change; change = change->next) {
            if (seed == 1)
                apply(disk, change);
            else if (seed > 1)
                apply_torn(disk, change, &random);
        }
        write_whole(disk);
        strcpy(beside, disk->path);
        strcat(beside, "-shm"); /* shared memory does not outlive a power cut */
        unlink(beside);
        forget_disk(shim, disk->path);
    }
    shim->keeps = shim->cut = false;
    shim->cut_at = 0;
}
