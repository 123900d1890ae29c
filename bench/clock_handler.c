/* A process handler for the benchmark: looks at the clock first, then finds the time of its enqueue
 * in the task on stdin and appends the difference in nanoseconds to the file named by its argument.
 * One thread, one task. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    char task[8192];
    char line[32];
    const char *sent;
    ssize_t len;
    int fd;

    clock_gettime(CLOCK_MONOTONIC, &now);
    len = read(STDIN_FILENO, task, sizeof task - 1);
    if (argc != 2 || len <= 0)
        return 1;
    task[len] = '\0';
    sent = strstr(task, "\"ns\":");
    fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (!sent || fd < 0)
        return 1;
    len = snprintf(line, sizeof line, "%lld\n",
                   (long long)now.tv_sec * 1000000000 + now.tv_nsec - atoll(sent + 5));
    return write(fd, line, (size_t)len) == len ? 0 : 1; /* short lines: appended whole */
}
