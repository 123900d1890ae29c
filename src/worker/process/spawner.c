/* See the header. The program is opened once, so that one that was started again later is of the
 * same build, whatever an upgrade has put there meanwhile. Requests are one message each, which the
 * kernel keeps whole: the lock is for starting it again only. */
#include "worker/process/spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/thread.h"
#include "worker/process/process_cgroup.h"
#include "worker/process/process_spawner.h"

#define HELLO_MS 30000      /* a machine that stalls starts programs slowly */
#define SEND_SECONDS_MAX 30 /* for a spawner that was stopped */
#define CLOSE_MS 1000
#define ROUND_MS 10
#define ROUNDS_QUIET 3 /* the list of children may miss one while another ends: look again */
#define ROUNDS_MAX 500
#define SHIMS_STEP 64
#define SELF "/proc/self/exe"

struct spawner {
    pthread_mutex_t lock;
    int program_fd;
    bool owns_process;
    int socket;
    pid_t pid;
    pid_t *shims; /* that live */
    size_t shims_count;
    size_t shims_cap;
};

/* ---- the program ---- */

/* It need not be readable. */
static int open_program(void)
{
    int fd = beside_open(SPAWNER_NAME, O_PATH);
    int kept;

    if (fd < 0)
        return -1;
    kept = fcntl(fd, F_DUPFD_CLOEXEC, SPAWNER_FD + 1); /* the place of the socket stays free */
    close(fd);
    return kept;
}

/* ---- starting it ---- */

/* What the loader needs to find our libraries; no handler sees it. */
static void make_environment(char *environment[2])
{
    for (char **variable = environ; variable && *variable; variable++)
        if (strncmp(*variable, "LD_LIBRARY_PATH=", 16) == 0)
            environment[0] = *variable;
}

static int run_program(const char *path, int socket_fd, pid_t *pid)
{
    char name[] = SPAWNER_NAME;
    char *const arguments[] = {name, NULL};
    char *environment[2] = {NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    int rc;

    make_environment(environment);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, SPAWNER_FD);
    rc = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

/* Above the place the socket gets in the spawner: a descriptor that is copied onto itself would be
 * closed by the exec. */
static bool make_sockets(int sockets[2])
{
    int low;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return false;
    low = sockets[1];
    if (low <= SPAWNER_FD) {
        sockets[1] = fcntl(low, F_DUPFD_CLOEXEC, SPAWNER_FD + 1);
        close(low);
    }
    if (sockets[1] >= 0)
        return true;
    close(sockets[0]);
    return false;
}

static bool says_hello(int socket_fd)
{
    struct pollfd fd = {socket_fd, POLLIN, 0};
    char byte = 0;

    while (poll(&fd, 1, HELLO_MS) < 0)
        if (errno != EINTR)
            return false;
    return recv(socket_fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == SPAWNER_HELLO;
}

static bool start_program(struct spawner *spawner, const char *path)
{
    const struct timeval limit = {.tv_sec = SEND_SECONDS_MAX};
    int sockets[2];
    int rc;

    if (!make_sockets(sockets))
        return false;
    rc = run_program(path, sockets[1], &spawner->pid);
    close(sockets[1]);
    if (rc == 0 && says_hello(sockets[0])) {
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        spawner->socket = sockets[0];
        return true;
    }
    if (rc == 0) {
        kill(spawner->pid, SIGKILL); /* our child, not reaped yet */
        waitpid(spawner->pid, NULL, 0);
    }
    spawner->pid = 0;
    close(sockets[0]);
    errno = rc;
    return false;
}

static int start(struct spawner *spawner, struct err *err)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", spawner->program_fd);
    if (spawner->program_fd >= 0 && start_program(spawner, path))
        return 0;
    if (spawner->owns_process && start_program(spawner, SELF))
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "cannot start %s, which starts handlers: %s; it belongs "
                   "beside perdura or into ../libexec, and /proc must be mounted", SPAWNER_NAME,
                   errno ? strerror(errno) : "it did not answer");
}

struct spawner *spawner_open(bool owns_process, struct err *err)
{
    struct spawner *spawner = err_calloc(sizeof *spawner, err);

    if (!spawner)
        return NULL;
    pthread_mutex_init(&spawner->lock, NULL);
    spawner->socket = -1;
    spawner->owns_process = owns_process;
    spawner->program_fd = open_program();
    if (owns_process && getpid() != 1) /* to the first process come others' children too */
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    return spawner;
}

int spawner_ready(struct spawner *spawner, struct err *err)
{
    LOCKED(&spawner->lock);
    if (spawner->socket < 0)
        return start(spawner, err);
    return 0;
}

/* ---- what was left behind ---- */

static bool adopts(const struct spawner *spawner)
{
    int is_reaper = 0;

    return spawner->owns_process && prctl(PR_GET_CHILD_SUBREAPER, &is_reaper) == 0 && is_reaper;
}

/* Under the lock, so here and below. A shim whose spawner was killed is our child and no stray, but
 * reaped all the same. */
static void reap_strays(struct spawner *spawner)
{
    siginfo_t info = {.si_pid = 0};

    while (adopts(spawner) && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != spawner->pid) {
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
}

static bool is_known(const struct spawner *spawner, pid_t pid)
{
    for (size_t i = 0; i < spawner->shims_count; i++)
        if (spawner->shims[i] == pid)
            return true;
    return pid == spawner->pid;
}

/* The children of one of our threads; true when there was no stray among them. */
static bool kill_strays_of(struct spawner *spawner, const char *thread)
{
    char path[300];
    bool none = true;
    FILE *file;
    int pid;

    snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1) {
        if (is_known(spawner, pid))
            continue;
        none = false;
        kill(pid, SIGKILL); /* our child, not reaped yet */
    }
    if (file)
        fclose(file);
    return none;
}

static bool kill_strays(struct spawner *spawner)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    bool none = true;

    while (folder && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && !kill_strays_of(spawner, entry->d_name))
            none = false;
    if (folder)
        closedir(folder);
    return none;
}

void spawner_end_strays(struct spawner *spawner)
{
    int quiet = 0;

    LOCKED(&spawner->lock);
    process_cgroups_sweep();
    for (int round = 0; adopts(spawner) && quiet < ROUNDS_QUIET && round < ROUNDS_MAX; round++) {
        quiet = kill_strays(spawner) ? quiet + 1 : 0;
        reap_strays(spawner);
        poll(NULL, 0, ROUND_MS);
    }
}

void spawner_note_shim(struct spawner *spawner, pid_t shim, bool lives)
{
    LOCKED(&spawner->lock);

    if (lives && spawner->shims_count == spawner->shims_cap) {
        size_t cap = spawner->shims_cap + SHIMS_STEP;
        pid_t *more = realloc(spawner->shims, cap * sizeof *more);

        spawner->shims_cap = more ? cap : spawner->shims_cap;
        spawner->shims = more ? more : spawner->shims;
    }
    if (lives && spawner->shims_count < spawner->shims_cap)
        spawner->shims[spawner->shims_count++] = shim;
    for (size_t i = 0; !lives && i < spawner->shims_count; i++)
        if (spawner->shims[i] == shim)
            spawner->shims[i--] = spawner->shims[--spawner->shims_count];
}

/* ---- requests ---- */

static bool send_request(int socket_fd, const int fds[SHIM_FD_COUNT])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(SHIM_FD_COUNT * sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 'R';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    ssize_t sent;

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(SHIM_FD_COUNT * sizeof(int));
    memcpy(CMSG_DATA(head), fds, SHIM_FD_COUNT * sizeof(int));
    do
        sent = sendmsg(socket_fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1;
}

/* It was killed: what it had started keeps running without it. Under the lock. */
static int restart(struct spawner *spawner, struct err *err)
{
    if (spawner->socket >= 0)
        close(spawner->socket);
    spawner->socket = -1;
    if (spawner->pid > 0) {
        kill(spawner->pid, SIGKILL); /* our child, not reaped yet */
        waitpid(spawner->pid, NULL, 0);
    }
    spawner->pid = 0;
    return start(spawner, err);
}

int spawner_start(struct spawner *spawner, const int fds[SHIM_FD_COUNT], struct err *err)
{
    bool sent;

    LOCKED(&spawner->lock);
    reap_strays(spawner);
    sent = spawner->socket >= 0 && send_request(spawner->socket, fds);
    if (!sent && (spawner->socket < 0 || errno == EPIPE || errno == ECONNRESET)) {
        TRY(restart(spawner, err));
        sent = send_request(spawner->socket, fds);
    }
    return sent ? 0
                : err_set(err, ERR_UNAVAILABLE, "cannot start a process: %s", strerror(errno));
}

/* It ends when its last shim has. */
static void await_end(pid_t pid)
{
    for (int waited_ms = 0; waitpid(pid, NULL, WNOHANG) == 0 && waited_ms < CLOSE_MS; waited_ms++)
        poll(NULL, 0, 1);
}

void spawner_close(struct spawner *spawner)
{
    if (!spawner)
        return;
    if (spawner->socket >= 0)
        close(spawner->socket);
    if (spawner->pid > 0)
        await_end(spawner->pid);
    if (spawner->program_fd >= 0)
        close(spawner->program_fd);
    pthread_mutex_destroy(&spawner->lock);
    free(spawner->shims);
    free(spawner);
}
