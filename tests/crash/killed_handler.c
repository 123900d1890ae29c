/* A process handler for the kill loop: does small pieces of work and writes a mark to a file before
 * and after each, so that the loop sees who ran when. Its worker is killed at any moment.
 *     killed_handler MARKS WORKER      (the task comes by standard input and environment) */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct marks {
    int fd;
    const char *worker;
    const char *task;
    const char *token;
};

/* One write, so that marks of several processes never mix. */
static void mark(const struct marks *marks, const char *what)
{
    struct timespec now;
    char line[512];
    int len;

    clock_gettime(CLOCK_MONOTONIC, &now);
    len = snprintf(line, sizeof line, "%s %s %s %s %lld %ld\n", marks->worker, marks->task,
                   marks->token, what, (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                   (long)getpid());
    if (write(marks->fd, line, (size_t)len) != len)
        _exit(2);
}

static void pause_ms(long ms)
{
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&wait, NULL);
}

/* Continues after the last checkpoint: "s2" means that two steps are done. */
static void take_steps(const struct marks *marks, int steps, long pace_ms)
{
    const char *done = getenv("PERDURA_CHECKPOINT");
    int step = done && done[0] == 's' ? atoi(done + 1) : 0;

    while (step < steps) {
        pause_ms(pace_ms);
        step++;
        mark(marks, "step");
        dprintf(3, "{\"checkpoint\":{\"name\":\"s%d\",\"progress\":%d,\"data\":{\"token\":%s}}}\n",
                step, step * 10, marks->token);
        dprintf(3, "{\"log\":{\"level\":\"INFO\",\"message\":\"token %s\"}}\n", marks->token);
        dprintf(3, "{\"progress\":%d,\"state\":\"token %s\"}\n", step * 10, marks->token);
    }
}

/* Everything it says carries its lease token, which shows whose report was accepted. */
static void spawn_children(const struct marks *marks)
{
    dprintf(3, "{\"spawn\":[");
    for (int i = 0; i < 3; i++)
        dprintf(3, "%s{\"type\":\"child\",\"queue\":\"children\",\"ref\":\"c%d\",\"max_crashes\":"
                   "100000,\"payload\":{\"token\":%s}}", i ? "," : "", i, marks->token);
    dprintf(3, "]}\n");
}

int main(int argc, char **argv)
{
    const char *type = getenv("PERDURA_TYPE");
    struct marks marks = {-1, argc > 2 ? argv[2] : "", getenv("PERDURA_TASK_ID"),
                          getenv("PERDURA_LEASE_TOKEN")};
    char line[65536];
    long pace_ms;

    if (argc < 3 || !type || !marks.task || !marks.token)
        return 2;
    marks.fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (marks.fd < 0 || !fgets(line, sizeof line, stdin))
        return 2;
    mark(&marks, "start");
    pace_ms = 2 + (long)getpid() % 25;
    if (strcmp(type, "process:parent") == 0 && !strstr(line, "\"children\":{")) {
        spawn_children(&marks);
        dprintf(3, "{\"continue\":{\"wait_children\":true}}\n");
    } else {
        if (strcmp(type, "process:steps") == 0)
            take_steps(&marks, 4, pace_ms);
        else if (strcmp(type, "process:slow") == 0)
            take_steps(&marks, 8, 30 + pace_ms);
        else
            pause_ms(pace_ms);
        if (strcmp(type, "process:stubborn") == 0)
            signal(SIGTERM, SIG_IGN);
        if (strcmp(type, "process:stubborn") == 0 || strcmp(type, "process:long") == 0)
            pause_ms(60000);
        dprintf(3, "{\"result\":{\"token\":%s}}\n", marks.token);
    }
    mark(&marks, "end");
    return 0;
}
