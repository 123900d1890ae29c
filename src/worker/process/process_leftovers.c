#include "worker/process/process_leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_BYTES_MAX (256 * 1024) /* more than ours ever are */
#define ROUNDS_MAX 20   /* each finds what the one before forked meanwhile */
#define ROUNDS_EMPTY 3  /* a process in the middle of an exec shows no environment: look again */
#define ROUND_PAUSE_US 10000

static const char *find_mark(char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment;
    return NULL;
}

/* `text` is a row of NUL-terminated strings. */
static bool has_entry(const char *text, size_t len, const char *entry)
{
    size_t entry_len = strlen(entry) + 1;

    for (size_t at = 0; at + entry_len <= len; at += strnlen(text + at, len - at) + 1)
        if (memcmp(text + at, entry, entry_len) == 0)
            return true;
    return false;
}

static bool is_marked(const char *pid, const char *task, const char *token, char *buffer)
{
    char path[300];
    size_t len = 0;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (len < ENVIRON_BYTES_MAX && (got = read(fd, buffer + len, ENVIRON_BYTES_MAX - len)) > 0)
        len += (size_t)got;
    close(fd);
    return has_entry(buffer, len, task) && has_entry(buffer, len, token);
}

/* Checked once more under its descriptor: the number may have passed to another process. */
static bool kill_marked(const char *pid, const char *task, const char *token, char *buffer)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(pid, NULL, 10), 0);
    bool killed;

    if (fd < 0)
        return false;
    killed = is_marked(pid, task, token, buffer) &&
             syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    close(fd);
    return killed;
}

uint32_t process_kill_leftovers(char *const *environment)
{
    const char *task = find_mark(environment, "PERDURA_TASK_ID");
    const char *token = find_mark(environment, "PERDURA_LEASE_TOKEN");
    char *buffer = task && token ? malloc(ENVIRON_BYTES_MAX) : NULL;
    uint32_t killed = 0, before;
    int round = 0, empty = 0;

    if (!buffer)
        return 0;
    do {
        DIR *folder = opendir("/proc");
        struct dirent *entry;

        before = killed;
        while (folder && (entry = readdir(folder)) != NULL)
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                is_marked(entry->d_name, task, token, buffer) &&
                kill_marked(entry->d_name, task, token, buffer))
                killed++;
        if (folder)
            closedir(folder);
        empty = killed == before ? empty + 1 : 0;
        usleep(ROUND_PAUSE_US);
    } while (empty < ROUNDS_EMPTY && ++round < ROUNDS_MAX);
    free(buffer);
    return killed;
}
