/* See the header. */
#include "worker/process/process_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PREFIX "perdura-run-"
#define NAME_BYTES 64
#define DEPTH_MAX 16 /* of folders that a handler made in its own */
#define TRIES_MAX 64
#define ROUND_MS 10
#define ROUNDS_MAX 100 /* for what was killed to be gone */
#define SWEEPS_MAX 30

/* ---- where we are ---- */

static bool read_line_of(const char *file, const char *start, char *line, size_t cap)
{
    FILE *from = fopen(file, "re");
    bool found = false;

    while (from && !found && fgets(line, (int)cap, from))
        found = strncmp(line, start, strlen(start)) == 0 && strchr(line, '\n');
    if (from)
        fclose(from);
    line[found ? strcspn(line, "\n") : 0] = '\0';
    return found;
}

/* Of the file system cgroup2: "36 25 0:31 ROOT MOUNTPOINT options... - cgroup2 ...". */
static bool find_mount(char *root, char *point)
{
    FILE *from = fopen("/proc/self/mountinfo", "re");
    char line[PATH_MAX * 2];
    bool found = false;

    while (from && !found && fgets(line, sizeof line, from))
        found = strstr(line, " - cgroup2 ") &&
                sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2;
    if (from)
        fclose(from);
    return found;
}

/* The part of our path below what is mounted. */
static const char *below(const char *path, const char *root)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/') || strstr(path, "/.."))
        return NULL;
    return path + len;
}

static int open_base(char path[PATH_MAX])
{
    char line[PATH_MAX], root[PATH_MAX], point[PATH_MAX];
    const char *inside = NULL;

    if (read_line_of("/proc/self/cgroup", "0::/", line, sizeof line) && find_mount(root, point))
        inside = below(line + strlen("0::"), root);
    if (!inside || snprintf(path, PATH_MAX, "%s%s", point, inside) >= PATH_MAX ||
        faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- one folder ---- */

static int open_locked(int base_fd, const char *name)
{
    int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool can_kill(int fd)
{
    return faccessat(fd, "cgroup.kill", W_OK, AT_EACCESS) == 0;
}

bool process_cgroup_kill(int fd)
{
    int file = fd < 0 ? -1 : openat(fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    bool killed = file >= 0 && write(file, "1", 1) == 1;

    if (file >= 0)
        close(file);
    return killed;
}

bool process_cgroup_is_empty(int fd)
{
    char text[256] = "";
    int file = fd < 0 ? -1 : openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    return got <= 0 || !strstr(text, "populated 1");
}

pid_t process_cgroup_fork(int fd)
{
    struct clone_args how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    long pid = -1;

    if (fd >= 0) {
        how.cgroup = (unsigned)fd;
        pid = syscall(SYS_clone3, &how, sizeof how);
    }
    return pid >= 0 ? (pid_t)pid : _Fork();
}

/* A handler may have made folders in its own. */
static void remove_folder(int base_fd, const char *name, int depth)
{
    int fd;
    DIR *folder;
    struct dirent *entry;

    if (unlinkat(base_fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY || depth == DEPTH_MAX)
        return;
    fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    folder = fd >= 0 ? fdopendir(fd) : NULL;
    while (folder && (entry = readdir(folder)) != NULL)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            remove_folder(fd, entry->d_name, depth + 1);
    if (folder)
        closedir(folder);
    unlinkat(base_fd, name, AT_REMOVEDIR);
}

static void end_and_remove(int base_fd, const char *name, int fd)
{
    process_cgroup_kill(fd);
    for (int round = 0; !process_cgroup_is_empty(fd) && round < ROUNDS_MAX; round++)
        poll(NULL, 0, ROUND_MS);
    remove_folder(base_fd, name, 0);
}

/* How many are locked, because who has them lives, or is just about to be gone. */
static int sweep(int base_fd)
{
    int listed = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = listed >= 0 ? fdopendir(listed) : NULL;
    struct dirent *entry;
    int locked = 0;

    while (folder && (entry = readdir(folder)) != NULL) {
        int fd;

        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        fd = open_locked(base_fd, entry->d_name);
        if (fd < 0) {
            locked++;
            continue;
        }
        end_and_remove(base_fd, entry->d_name, fd);
        close(fd);
    }
    if (folder)
        closedir(folder);
    return locked;
}

/* What was killed closes the pipe that tells of its end before its lock is free. */
void process_cgroups_sweep(void)
{
    char path[PATH_MAX];
    int base_fd = open_base(path);

    if (base_fd < 0)
        return;
    for (int round = 0; sweep(base_fd) > 0 && round < SWEEPS_MAX; round++)
        poll(NULL, 0, ROUND_MS);
    close(base_fd);
}

/* ---- those of a spawner ---- */

static void name_of(unsigned number, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, PREFIX "%d-%u", (int)getpid(), number);
}

static struct cgroup make(struct cgroups *all)
{
    struct cgroup one = {.fd = -1};
    char name[NAME_BYTES];

    for (int i = 0; i < TRIES_MAX && all->base_fd >= 0 && one.fd < 0; i++) {
        one.number = all->made++;
        name_of(one.number, name);
        if (mkdirat(all->base_fd, name, 0700) == 0)
            one.fd = open_locked(all->base_fd, name); /* not ours if it was swept just now */
        else if (errno != EEXIST)
            break;
    }
    return one;
}

void cgroups_open(struct cgroups *all)
{
    char path[PATH_MAX];
    struct cgroup first;

    *all = (struct cgroups){.base_fd = open_base(path)};
    if (all->base_fd < 0)
        return;
    sweep(all->base_fd);
    first = make(all);
    if (first.fd >= 0 && can_kill(first.fd)) {
        all->free[all->free_count++] = first;
        return;
    }
    cgroups_give(all, first, false);
    close(all->base_fd);
    all->base_fd = -1;
}

struct cgroup cgroups_take(struct cgroups *all)
{
    return all->free_count ? all->free[--all->free_count] : make(all);
}

void cgroups_give(struct cgroups *all, struct cgroup one, bool is_unused)
{
    char name[NAME_BYTES];

    if (one.fd < 0)
        return;
    if (is_unused && all->free_count < CGROUPS_FREE_MAX) {
        all->free[all->free_count++] = one;
        return;
    }
    name_of(one.number, name);
    end_and_remove(all->base_fd, name, one.fd);
    close(one.fd);
}

void cgroups_close(struct cgroups *all)
{
    int count = all->free_count;

    all->free_count = CGROUPS_FREE_MAX; /* nothing is kept */
    for (int i = 0; i < count; i++)
        cgroups_give(all, all->free[i], true);
    if (all->base_fd >= 0)
        sweep(all->base_fd); /* of a spawner that was killed before us */
}

bool process_cgroup_base(char path[PATH_MAX])
{
    struct cgroups probe = {.base_fd = open_base(path)};
    struct cgroup one = make(&probe);
    bool is_usable = one.fd >= 0 && can_kill(one.fd);

    probe.free_count = CGROUPS_FREE_MAX;
    cgroups_give(&probe, one, true);
    if (probe.base_fd >= 0)
        close(probe.base_fd);
    return is_usable;
}
