/* A library to be put before a server with LD_PRELOAD, for what a real machine shows too rarely:
 * an allocation that fails, a disk that errs or became read-only, a folder that lies on a network
 * file system. The environment says what fails; for calls on files, a file says it that may come
 * and go while the server runs:
 *
 *     FAIL_MALLOC=N[+]      the N-th allocation fails; with + all later ones too
 *     FAIL_MALLOC_COUNT=F   the number of allocations is written to the file F at the exit
 *     FAIL_STATFS=HEX       every folder lies on a file system of this type
 *     FAIL_CALLS=F          while F is there it says "OP ERRNO TIMES SUFFIX": so many calls of OP
 *                           (write, sync, read; "write" stands for all that change a file) on
 *                           files whose names end in SUFFIX (* = any) fail with ERRNO; TIMES 0 =
 *                           all
 * Any thread. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_BYTES 512

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static _Atomic int64_t allocations;
static int64_t fail_at;
static bool fail_all;
static const char *calls_file;
static _Atomic int64_t failed_calls;

__attribute__((constructor)) static void read_orders(void)
{
    static char calls_path[PATH_BYTES]; /* the program wipes the environment it was given */
    const char *text = getenv("FAIL_MALLOC");
    const char *calls = getenv("FAIL_CALLS");
    char *end = NULL;

    if (calls && strlen(calls) < sizeof calls_path)
        calls_file = strcpy(calls_path, calls);
    if (!text)
        return;
    fail_at = strtoll(text, &end, 10);
    fail_all = *end == '+';
    atomic_store(&allocations, 0);
}

__attribute__((destructor)) static void tell_count(void)
{
    const char *path = getenv("FAIL_MALLOC_COUNT");
    char text[32];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    int len = snprintf(text, sizeof text, "%lld\n", (long long)atomic_load(&allocations));

    if (fd >= 0 && write(fd, text, (size_t)len) == len)
        close(fd);
}

static bool allocation_fails(void)
{
    int64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;

    if (fail_at == 0 || number < fail_at || (number > fail_at && !fail_all))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return allocation_fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return allocation_fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return allocation_fails() ? NULL : __libc_realloc(memory, bytes);
}

static int number_of(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"EIO", EIO}, {"EROFS", EROFS}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].number;
    return EIO;
}

static bool name_ends(const char *path, const char *suffix)
{
    size_t path_len = strlen(path), len = strlen(suffix);

    return path_len >= len && strcmp(path + path_len - len, suffix) == 0;
}

/* By the raw call: the wrapper below would ask again. */
static int read_order(char *op, char *code, long long *times, char *suffix)
{
    char text[PATH_BYTES] = "";
    long fd = syscall(SYS_openat, AT_FDCWD, calls_file, O_RDONLY | O_CLOEXEC, 0);
    long len;

    if (fd < 0)
        return 0;
    len = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return len > 0 ? sscanf(text, "%15s %15s %lld %200s", op, code, times, suffix) : 0;
}

/* 0, or the error number this call on this file must fail with. */
static int call_fails(const char *op, const char *path)
{
    char wanted[16], code[16], suffix[201];
    long long times;
    int before = errno;

    if (!calls_file || read_order(wanted, code, &times, suffix) < 4) {
        errno = before;
        return 0;
    }
    if (strcmp(op, wanted) != 0 || (strcmp(suffix, "*") != 0 && !name_ends(path, suffix)) ||
        (times > 0 && atomic_fetch_add(&failed_calls, 1) >= times)) {
        errno = before;
        return 0;
    }
    errno = number_of(code);
    return errno;
}

static int descriptor_fails(const char *op, int fd)
{
    char link[64], path[PATH_BYTES];
    ssize_t len;

    if (!calls_file)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (len <= 0)
        return 0;
    path[len] = '\0';
    return call_fails(op, path);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset)
{
    return descriptor_fails("write", fd) ? -1 : syscall(SYS_pwrite64, fd, data, len, offset);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return pwrite64(fd, data, len, offset);
}

ssize_t pread64(int fd, void *data, size_t len, off64_t offset)
{
    return descriptor_fails("read", fd) ? -1 : syscall(SYS_pread64, fd, data, len, offset);
}

ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
    return pread64(fd, data, len, offset);
}

int fsync(int fd)
{
    return descriptor_fails("sync", fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return descriptor_fails("sync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off64_t size)
{
    return descriptor_fails("write", fd) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

int posix_fallocate64(int fd, off64_t offset, off64_t len)
{
    int number = descriptor_fails("write", fd);

    if (number)
        return number;
    return syscall(SYS_fallocate, fd, 0, offset, len) < 0 ? errno : 0;
}

int posix_fallocate(int fd, off_t offset, off_t len)
{
    return posix_fallocate64(fd, offset, len);
}

int unlink(const char *path)
{
    return call_fails("write", path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    if (flags & (O_WRONLY | O_RDWR | O_CREAT) && call_fails("write", path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return open64(path, flags, mode);
}

int statfs(const char *path, struct statfs *info)
{
    const char *type = getenv("FAIL_STATFS");
    int rc = (int)syscall(SYS_statfs, path, info);

    if (rc == 0 && type)
        info->f_type = (long)strtoul(type, NULL, 16);
    return rc;
}

int statfs64(const char *path, struct statfs64 *info)
{
    return statfs(path, (struct statfs *)info);
}
