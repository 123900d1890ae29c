/* See the header. One thread. A request is one message with the descriptors of a shim. Shims are
 * children; what a shim leaves behind when it is killed becomes a child as well (subreaper) and is
 * killed before the worker sees the end of that run: until then we hold its status pipe too. */
#include "worker/process/process_spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/process/process_cgroup.h"
#include "worker/process/process_shim.h"

#define ORPHANS_MAX 256 /* killed per round, in rounds until none is left */
#define ROUND_MS 20
#define ROUNDS_QUIET 3  /* the list of children may miss one while another ends: look again */
#define CHILDREN_STEP 64

struct child {
    pid_t pid;
    int status_fd;
    struct cgroup cgroup;
    bool is_lost; /* it was killed: its descendants are being ended */
};

struct spawner_state {
    struct child *children;
    size_t count;
    size_t cap;
    size_t lost_count;
    int quiet_rounds;
    int signal_fd;
    bool is_asked; /* the worker is still there */
    bool is_empty; /* there is no child at all */
    struct rlimit files; /* what handlers get */
    struct cgroups cgroups;
};

/* ---- starting ---- */

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

static bool make_room(struct spawner_state *state)
{
    struct child *more;

    if (state->count < state->cap)
        return true;
    more = realloc(state->children, (state->cap + CHILDREN_STEP) * sizeof *more);
    if (!more)
        return false;
    state->children = more;
    state->cap += CHILDREN_STEP;
    return true;
}

static void start_shim(struct spawner_state *state, const int fds[SHIM_FD_COUNT])
{
    struct cgroup cgroup = cgroups_take(&state->cgroups);
    pid_t pid = make_room(state) ? fork() : -1;

    if (pid == 0) {
        setrlimit(RLIMIT_NOFILE, &state->files);
        process_shim_main(fds, cgroup.fd);
    }
    if (pid < 0) {
        cgroups_give(&state->cgroups, cgroup, true);
        process_shim_tell(fds[SHIM_FD_STATUS], SHIM_NOT_STARTED, SHIM_STEP_FORK, errno);
        process_shim_tell(fds[SHIM_FD_STATUS], SHIM_GONE, SHIM_STEP_FORK, 0);
        close_all(fds, SHIM_FD_COUNT);
        return;
    }
    state->children[state->count++] = (struct child){pid, fds[SHIM_FD_STATUS], cgroup, false};
    for (int i = 0; i < SHIM_FD_COUNT; i++)
        if (i != SHIM_FD_STATUS)
            close(fds[i]);
}

/* A message whose descriptors did not all arrive is dropped with them: its worker sees the end. */
static void take_request(struct spawner_state *state)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(SHIM_FD_COUNT * sizeof(int))];
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(SPAWNER_FD, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int fds[SHIM_FD_COUNT];
    int count;

    if (got == 0 || (got < 0 && errno == ECONNRESET))
        state->is_asked = false; /* anything else may pass */
    if (!head || head->cmsg_type != SCM_RIGHTS)
        return;
    count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(head), (size_t)count * sizeof(int));
    if (count == SHIM_FD_COUNT)
        start_shim(state, fds);
    else
        close_all(fds, count);
}

/* ---- ending ---- */

static struct child *find(struct spawner_state *state, pid_t pid)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->children[i].pid == pid && !state->children[i].is_lost)
            return &state->children[i];
    return NULL;
}

static void drop(struct spawner_state *state, struct child *child, bool is_unused)
{
    cgroups_give(&state->cgroups, child->cgroup, is_unused);
    close(child->status_fd);
    *child = state->children[--state->count];
}

static void reap(struct spawner_state *state)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        struct child *child;

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0) {
            state->is_empty = errno == ECHILD;
            return;
        }
        state->is_empty = false;
        if (info.si_pid == 0)
            return;
        child = find(state, info.si_pid);
        if (!child) {
            state->quiet_rounds = 0;
        } else if (info.si_code == CLD_EXITED &&
                   (info.si_status == 0 || info.si_status == SHIM_EXIT_USED)) {
            drop(state, child, info.si_status == 0);
        } else {
            process_cgroup_kill(child->cgroup.fd);
            child->is_lost = true;
            state->lost_count++;
            state->quiet_rounds = 0;
        }
    }
}

/* True when there was none. */
static bool kill_orphans(struct spawner_state *state)
{
    int cap = (int)state->count + ORPHANS_MAX;
    pid_t *pids = malloc((size_t)cap * sizeof *pids);
    int count = pids ? process_shim_children(pids, cap, false) : 0;
    bool none = pids != NULL;

    if (count < 0)
        count = process_shim_children(pids, cap, true);
    for (int i = 0; i < count; i++) {
        if (find(state, pids[i]))
            continue;
        none = false;
        kill(pids[i], SIGKILL); /* not reaped yet, so the number is still theirs */
    }
    free(pids);
    return none;
}

static bool lost_cgroups_are_empty(const struct spawner_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->children[i].is_lost && !process_cgroup_is_empty(state->children[i].cgroup.fd))
            return false;
    return true;
}

/* One round. When nothing is left of shims that were killed, the end of a pipe tells their
 * workers. */
static void end_orphans(struct spawner_state *state)
{
    if (state->lost_count == 0)
        return;
    state->quiet_rounds = kill_orphans(state) ? state->quiet_rounds + 1 : 0;
    if ((state->quiet_rounds < ROUNDS_QUIET && !state->is_empty) || !lost_cgroups_are_empty(state))
        return;
    for (size_t i = state->count; i > 0; i--)
        if (state->children[i - 1].is_lost)
            drop(state, &state->children[i - 1], false);
    state->lost_count = 0;
}

/* ---- the whole ---- */

static void turn(struct spawner_state *state)
{
    struct pollfd fds[2] = {{state->is_asked ? SPAWNER_FD : -1, POLLIN, 0},
                            {state->signal_fd, POLLIN, 0}};
    struct signalfd_siginfo info;

    poll(fds, 2, state->lost_count ? ROUND_MS : -1);
    if (fds[1].revents)
        while (read(state->signal_fd, &info, sizeof info) > 0)
            ;
    if (fds[0].revents)
        take_request(state);
    reap(state); /* last, so that is_empty holds when the worker is gone */
    end_orphans(state);
}

/* The worker's input and output are not ours to hold open. */
static void leave_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < SPAWNER_FD; i++)
        dup2(fd, i);
    if (fd >= SPAWNER_FD)
        close(fd);
}

static void raise_files(struct spawner_state *state)
{
    struct rlimit most;

    if (getrlimit(RLIMIT_NOFILE, &state->files) < 0)
        _exit(1);
    most = state->files;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most); /* one is held for every shim */
}

_Noreturn void process_spawner_main(void)
{
    struct spawner_state state = {.is_asked = true};
    const char hello = SPAWNER_HELLO;
    sigset_t set;

    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, SPAWNER_NAME);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would make the kernel reap before we look */
    if (close_range(SPAWNER_FD + 1, ~0U, 0) < 0)
        for (int fd = SPAWNER_FD + 1; fd < 65536; fd++)
            close(fd);
    leave_stdio();
    raise_files(&state);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    cgroups_open(&state.cgroups);
    state.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (state.signal_fd < 0 || send(SPAWNER_FD, &hello, 1, MSG_NOSIGNAL) != 1)
        _exit(1);
    while (state.is_asked || !state.is_empty)
        turn(&state);
    cgroups_close(&state.cgroups);
    _exit(0);
}
