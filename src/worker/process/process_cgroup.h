/* A cgroup for each run of a handler, where the kernel has cgroup v2 and the process may make
 * folders in its own (delegated by systemd, or root's): one write ends everything in it at once,
 * whatever session, parent or environment it gave itself, and however fast it forks. Everywhere
 * else there is none, and shims end runs alone (process_shim.h).
 * The spawner makes the folders and uses them again. A lock on a folder, shared by spawner and
 * shim, says that one of them lives; a process that starts ends what is in a folder without it.
 * One thread each. */
#ifndef WORKER_PROCESS_PROCESS_CGROUP_H
#define WORKER_PROCESS_PROCESS_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define CGROUPS_FREE_MAX 64

struct cgroup {
    int fd; /* its folder, locked; -1: none */
    unsigned number;
};

struct cgroups {
    int base_fd; /* our own folder; -1: there is none that we may write to */
    unsigned made;
    struct cgroup free[CGROUPS_FREE_MAX];
    int free_count;
};

/* The folder of this process if cgroups can be made in it. */
bool process_cgroup_base(char path[PATH_MAX]);

/* What has no living owner is ended and removed. */
void process_cgroups_sweep(void);

void cgroups_open(struct cgroups *all);
void cgroups_close(struct cgroups *all);
struct cgroup cgroups_take(struct cgroups *all);
/* is_unused: nothing in it was ended so, and nothing is left. What starts in a folder whose
 * cgroup.kill was ever written is killed at once (seen with Linux 6.18), so others are removed. */
void cgroups_give(struct cgroups *all, struct cgroup one, bool is_unused);

/* With fd -1 these do nothing, and fork. */
bool process_cgroup_kill(int fd);
bool process_cgroup_is_empty(int fd);
pid_t process_cgroup_fork(int fd);

#endif
