/* See the header. Order at the end: the handler is seen dead but not yet reaped, so its number (and
 * that of its process group) cannot belong to another process while the group is killed; then
 * children are killed and reaped until there are none. Orphans become children of the shim
 * (subreaper), so 'no children' means 'no descendants'. */
#include "worker/process/process_shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/process/process_cgroup.h"

#define FD_ABOVE_ALL 16     /* descriptors are moved above this before they get their places */
#define CLOSE_FALLBACK 65536 /* where close_range is missing */
#define CHILDREN_MAX 256    /* killed per round, in rounds until none is left */
#define ROUND_MS 20         /* a child born between listing and killing is seen in the next round */

struct shim {
    struct process_plan plan;
    pid_t handler;
    int exec_fd;   /* the handler says here why it could not be started; end = it was */
    int signal_fd;
    int cgroup_fd; /* -1: none */
    bool used; /* its cgroup.kill was, by us or by another */
    bool commanded; /* the command pipe is still open */
    bool ended;
};

void process_shim_tell(int status_fd, enum shim_event event, enum shim_step step, int value)
{
    struct shim_message message = {(int32_t)event, (int32_t)step, value};
    ssize_t wrote = write(status_fd, &message, sizeof message);

    (void)wrote; /* the worker may be dead: then it is not awaited */
}

static void tell(enum shim_event event, enum shim_step step, int value)
{
    process_shim_tell(SHIM_FD_STATUS, event, step, value);
}

static void close_from(unsigned first)
{
    if (close_range(first, ~0U, 0) == 0)
        return;
    for (unsigned fd = first; fd < CLOSE_FALLBACK; fd++)
        close((int)fd);
}

/* 0 to 3 for the handler, then the shim's own; everything else is closed. */
static bool place_fds(const int given[SHIM_FD_COUNT], int *cgroup_fd)
{
    int cgroup = *cgroup_fd < 0 ? -1 : fcntl(*cgroup_fd, F_DUPFD, FD_ABOVE_ALL);
    int fds[SHIM_FD_COUNT];

    for (int i = 0; i < SHIM_FD_COUNT; i++) {
        fds[i] = fcntl(given[i], F_DUPFD, FD_ABOVE_ALL);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < SHIM_FD_COUNT; i++)
        if (dup2(fds[i], i) < 0 || (i >= SHIM_STDIO && fcntl(i, F_SETFD, FD_CLOEXEC) < 0))
            return false;
    *cgroup_fd = cgroup < 0 ? -1 : dup3(cgroup, SHIM_FD_COUNT, O_CLOEXEC);
    close_from(SHIM_FD_COUNT + (*cgroup_fd >= 0));
    return true;
}

/* Asked of the kernel itself: the C library keeps two signals to itself and would not give back
 * their default to a worker that was started with them ignored. All zeros is SIG_DFL without
 * flags; it is refused for SIGKILL and SIGSTOP, which is right. */
static void default_signals(void)
{
    static const unsigned char action[64]; /* at least as large as any kernel's struct */
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        syscall(SYS_rt_sigaction, number, action, NULL, (size_t)(NSIG - 1) / 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* When memory runs out the kernel shall take the handler, not the worker. The file is the process's
 * own only while others may look into it, as they may anyway once it has become the command. */
static void prefer_for_oom(void)
{
    int fd;

    prctl(PR_SET_DUMPABLE, 1);
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "500", 3) < 0)
        (void)0; /* only a preference */
    close(fd);
}

/* Soft and hard, so that the handler cannot raise it again; a limit that was lower stays. */
static void limit_to(__rlimit_resource_t resource, int64_t most)
{
    struct rlimit limit;

    if (most <= 0 || getrlimit(resource, &limit) < 0)
        return;
    if (limit.rlim_max > (rlim_t)most)
        limit.rlim_max = (rlim_t)most;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

static void set_limits(const struct process_limits *limits)
{
    limit_to(RLIMIT_AS, limits->memory_bytes);
    limit_to(RLIMIT_FSIZE, limits->file_bytes);
    limit_to(RLIMIT_NPROC, limits->processes);
}

/* Like a shell's search: a file that may not be run does not hide a later one that may. */
static int exec_first(const struct process_plan *plan)
{
    int result = ENOENT;

    for (char *const *path = plan->paths; *path; path++) {
        execve(*path, plan->command, plan->environment);
        if (errno == EACCES)
            result = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR)
            return errno;
    }
    return result;
}

/* For good: all three ids, the groups, and every capability. The pipes become the user's, so that
 * it may open them again by name (/dev/stdout). 0, or an error number. */
static int become(const struct process_identity *identity)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};

    if (!identity->is_set)
        return 0;
    for (int fd = 0; fd < SHIM_STDIO; fd++)
        if (fchown(fd, identity->uid, identity->gid) < 0)
            break; /* then only their names are closed to it */
    if (setgroups(identity->groups_count, identity->groups) < 0 ||
        setresgid(identity->gid, identity->gid, identity->gid) < 0 ||
        setresuid(identity->uid, identity->uid, identity->uid) < 0)
        return errno;
    if (identity->uid == 0)
        return 0;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) < 0)
        return errno;
    return setuid(0) == 0 ? EPERM : 0;
}

static _Noreturn void handler_main(const struct process_plan *plan, pid_t shim, int exec_fd)
{
    int32_t failure[2] = {SHIM_STEP_USER, 0};
    ssize_t wrote;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != shim)
        _exit(1);
    setsid();
    prefer_for_oom();
    default_signals();
    set_limits(&plan->limits);
    failure[1] = become(&plan->identity);
    if (failure[1] == 0 && plan->identity.is_set) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process loses it */
        if (getppid() != shim)
            _exit(1);
    }
    if (failure[1] == 0 && plan->directory && chdir(plan->directory) < 0) {
        failure[0] = SHIM_STEP_DIRECTORY;
        failure[1] = errno;
    } else if (failure[1] == 0) {
        failure[0] = SHIM_STEP_EXEC;
        failure[1] = exec_first(plan);
    }
    wrote = write(exec_fd, failure, sizeof failure);
    (void)wrote;
    _exit(127);
}

static bool start_handler(struct shim *shim)
{
    pid_t self = getpid();
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    shim->handler = process_cgroup_fork(shim->cgroup_fd);
    if (shim->handler < 0)
        return false;
    if (shim->handler == 0)
        handler_main(&shim->plan, self, fds[1]);
    close(fds[1]);
    shim->exec_fd = fds[0];
    for (int fd = 0; fd < SHIM_STDIO; fd++)
        close(fd); /* so that the worker sees the end of what the handler writes */
    return true;
}

static void signal_group(const struct shim *shim, int number)
{
    if (kill(-shim->handler, number) < 0)
        kill(shim->handler, number); /* it has not made its group yet */
}

static void obey(struct shim *shim)
{
    char commands[16];
    ssize_t got = read(SHIM_FD_COMMAND, commands, sizeof commands);

    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        shim->commanded = false;
        signal_group(shim, SIGKILL);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        signal_group(shim, commands[i] == SHIM_TERMINATE ? SIGTERM : SIGKILL);
        if (commands[i] == SHIM_TERMINATE)
            signal_group(shim, SIGCONT); /* a stopped handler shall hear it too */
    }
}

static void handler_ended(struct shim *shim)
{
    int32_t failure[2];
    int status = 0;

    kill(-shim->handler, SIGKILL);
    while (waitpid(shim->handler, &status, 0) < 0 && errno == EINTR)
        ;
    shim->ended = true;
    shim->used = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (read(shim->exec_fd, failure, sizeof failure) == (ssize_t)sizeof failure)
        tell(SHIM_NOT_STARTED, (enum shim_step)failure[0], failure[1]);
    else
        tell(SHIM_ENDED, SHIM_STEP_EXEC, status);
}

/* Reaps the children that have ended. False when no child is left. */
static bool reap(struct shim *shim)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
            return errno != ECHILD;
        if (info.si_pid == 0)
            return true;
        if (!shim->ended && info.si_pid == shim->handler)
            handler_ended(shim);
        else
            waitpid(info.si_pid, NULL, 0);
    }
}

static void drain_signals(struct shim *shim)
{
    struct signalfd_siginfo info;

    while (read(shim->signal_fd, &info, sizeof info) > 0)
        ;
}

static void supervise(struct shim *shim)
{
    while (!shim->ended) {
        struct pollfd fds[2] = {{shim->commanded ? SHIM_FD_COMMAND : -1, POLLIN, 0},
                                {shim->signal_fd, POLLIN, 0}};

        poll(fds, 2, -1);
        if (fds[0].revents)
            obey(shim);
        if (fds[1].revents)
            drain_signals(shim);
        reap(shim);
    }
}

static void end_descendants(struct shim *shim)
{
    pid_t pids[CHILDREN_MAX];

    while (reap(shim)) {
        struct pollfd fd = {shim->signal_fd, POLLIN, 0};
        int count = process_shim_children(pids, CHILDREN_MAX, false);

        if (count < 0)
            count = process_shim_children(pids, CHILDREN_MAX, true);
        if (process_cgroup_kill(shim->cgroup_fd)) /* also what forks faster than we list */
            shim->used = true;
        for (int i = 0; i < count; i++)
            kill(pids[i], SIGKILL); /* not reaped yet, so the number is still theirs */
        poll(&fd, 1, ROUND_MS);
        drain_signals(shim);
    }
}

_Noreturn void process_shim_main(const int fds[SHIM_FD_COUNT], int cgroup_fd)
{
    struct shim shim = {.commanded = true, .signal_fd = -1, .cgroup_fd = cgroup_fd};
    sigset_t child;

    setsid(); /* a session of its own: what is sent to the spawner's is not for us */
    if (!place_fds(fds, &shim.cgroup_fd))
        _exit(1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "perdura-shim");
    tell(SHIM_BEGUN, SHIM_STEP_FORK, getpid());
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (process_plan_read(SHIM_FD_PLAN, &shim.plan))
        shim.signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (shim.signal_fd >= 0 && start_handler(&shim))
        supervise(&shim);
    else
        tell(SHIM_NOT_STARTED, SHIM_STEP_FORK, errno);
    end_descendants(&shim);
    tell(SHIM_GONE, SHIM_STEP_EXEC, 0);
    _exit(shim.used ? SHIM_EXIT_USED : 0);
}

/* ---- listing children ---- */

static int children_from_list(pid_t *pids, int cap)
{
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[4096];
    int count = 0;
    pid_t pid = 0;
    ssize_t got;

    if (fd < 0)
        return -1;
    while (count < cap && (got = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got && count < cap; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid) {
                pids[count++] = pid;
                pid = 0;
            }
        }
    }
    close(fd);
    return count;
}

/* The parent in /proc/PID/stat: two fields behind the last ')', since a name may hold anything. */
static pid_t parent_of(int proc_fd, const char *name)
{
    char path[32];
    char stat[512];
    size_t len = 0;
    ssize_t got;
    ssize_t at;
    pid_t parent = 0;
    int fd;

    for (; name[len] && len < 16; len++)
        path[len] = name[len];
    for (size_t i = 0; i < sizeof "/stat"; i++)
        path[len + i] = "/stat"[i];
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    got = read(fd, stat, sizeof stat);
    close(fd);
    for (at = got - 1; at > 0 && stat[at] != ')'; at--)
        ;
    for (at += 4; at < got && stat[at] >= '0' && stat[at] <= '9'; at++)
        parent = parent * 10 + (stat[at] - '0');
    return parent;
}

static pid_t number_of(const char *name)
{
    pid_t number = 0;

    for (; *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (*name - '0');
    return *name ? 0 : number;
}

struct directory_entry { /* the kernel's linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static int children_by_scan(pid_t *pids, int cap)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(8) char entries[4096];
    pid_t self = getpid();
    int count = 0;
    long got;

    if (fd < 0)
        return -1;
    while ((got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < got && count < cap;) {
            const struct directory_entry *entry = (const void *)(entries + at);
            pid_t pid = number_of(entry->name);

            if (pid && parent_of(fd, entry->name) == self)
                pids[count++] = pid;
            at += entry->bytes;
        }
    }
    close(fd);
    return count;
}

int process_shim_children(pid_t *pids, int cap, bool by_scan)
{
    return by_scan ? children_by_scan(pids, cap) : children_from_list(pids, cap);
}
