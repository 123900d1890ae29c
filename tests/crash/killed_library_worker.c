/* A worker of the C library for the kill loop: the same work as killed_handler.c, in functions.
 *     killed_library_worker URL MARKS NAME CONCURRENCY */
#include <perdura.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct marks {
    int fd;
    const char *worker;
};

/* A function does not know its lease token; attempts grow with it. One write per mark. */
static void mark(const struct marks *marks, struct pd_task *task, const char *what)
{
    struct timespec now;
    char line[512];
    int len;

    clock_gettime(CLOCK_MONOTONIC, &now);
    len = snprintf(line, sizeof line, "%s %s %lld %s %lld %ld\n", marks->worker, pd_task_id(task),
                   (long long)pd_task_attempt(task), what,
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000, (long)getpid());
    if (write(marks->fd, line, (size_t)len) != len)
        _exit(2);
}

static void pause_ms(struct pd_task *task, long ms)
{
    long step_ms = ms > 1000 ? 50 : 1;
    struct timespec wait = {0, step_ms * 1000000};

    for (; ms > 0 && !pd_task_cancelled(task); ms -= step_ms)
        nanosleep(&wait, NULL);
}

static void take_steps(const struct marks *marks, struct pd_task *task, int steps, long pace_ms)
{
    const char *done = pd_task_checkpoint_name(task);
    int step = done && done[0] == 's' ? atoi(done + 1) : 0;

    while (step < steps && !pd_task_cancelled(task)) {
        char name[16], data[64], words[64];

        pause_ms(task, pace_ms);
        step++;
        mark(marks, task, "step");
        snprintf(name, sizeof name, "s%d", step);
        snprintf(data, sizeof data, "{\"attempt\":%lld}", (long long)pd_task_attempt(task));
        snprintf(words, sizeof words, "attempt %lld", (long long)pd_task_attempt(task));
        pd_task_checkpoint(task, name, step * 10, data);
        pd_task_log(task, PD_LOG_INFO, words, NULL);
        pd_task_progress(task, step * 10, words);
    }
}

static void spawn_children(struct pd_task *task)
{
    char text[1024];
    int len = 0;

    for (int i = 0; i < 3; i++)
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "%c{\"type\":\"child\",\"queue\":\"children\",\"ref\":\"c%d\","
                        "\"max_crashes\":100000,\"payload\":{\"attempt\":%lld}}", i ? ',' : '[',
                        i, (long long)pd_task_attempt(task));
    snprintf(text + len, sizeof text - (size_t)len, "]");
    pd_task_spawn(task, text);
}

static int handle(struct pd_task *task, void *ctx)
{
    const struct marks *marks = ctx;
    const char *type = pd_task_type(task);
    char result[64];

    mark(marks, task, "start");
    if (strcmp(type, "library:parent") == 0 && !strstr(pd_task_data(task), "\"children\":{")) {
        spawn_children(task);
        pd_task_wait_children(task);
        mark(marks, task, "end");
        return PD_CONTINUE;
    }
    if (strcmp(type, "library:steps") == 0)
        take_steps(marks, task, 4, 5);
    else if (strcmp(type, "library:slow") == 0)
        take_steps(marks, task, 8, 40);
    else
        pause_ms(task, strcmp(type, "library:long") == 0 ? 60000 : 2 + (long)(rand() % 20));
    if (pd_task_cancelled(task))
        return PD_CONTINUE;
    snprintf(result, sizeof result, "{\"attempt\":%lld}", (long long)pd_task_attempt(task));
    pd_task_set_result(task, result);
    mark(marks, task, "end");
    return PD_DONE;
}

int main(int argc, char **argv)
{
    const char *queues[] = {"library"};
    struct pd_worker_options options = PD_WORKER_OPTIONS_INIT;
    struct pd_worker *worker = NULL;
    struct marks marks = {-1, argc > 3 ? argv[3] : ""};
    struct pd *pd = NULL;

    if (argc < 5)
        return 2;
    marks.fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    options.queues = queues;
    options.queues_count = 1;
    options.concurrency = (unsigned)atoi(argv[4]);
    if (marks.fd < 0 || pd_open(argv[1], NULL, &pd) < 0 ||
        pd_worker_new(pd, &options, &worker) < 0 ||
        pd_worker_handle(worker, "library:*", handle, &marks) < 0 || pd_worker_start(worker) < 0) {
        fprintf(stderr, "killed_library_worker: %s\n", pd_error(pd));
        return 1;
    }
    for (;;)
        pause(); /* until it is killed */
}
