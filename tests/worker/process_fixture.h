/* Runs real commands through the process executor and keeps what came out of them. */
#ifndef TESTS_PROCESS_FIXTURE_H
#define TESTS_PROCESS_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "worker/process/output_line.h"
#include "worker/process/process.h"
#include "worker/process/process_shim.h"
#include "spawner_fixture.h"

#define DEADLINE_US (60 * CLOCK_SECOND_US)

static char *const plain_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C", NULL};

/* What came out of a run. */
struct seen {
    struct buf text[PROCESS_STREAM_COUNT]; /* lines, each with a newline */
    uint64_t lines[PROCESS_STREAM_COUNT];
    uint64_t cuts;
    uint64_t refuse; /* offers to refuse before taking one */
    bool keep;
    void (*on_line)(struct seen *seen, enum process_stream stream, struct str line);
    atomic_int stop;
    int wake_fd;
    pid_t pid; /* as told by the script */
    struct process_result result;
};

static inline bool take(void *ctx, enum process_stream stream, struct str line, bool cut)
{
    struct seen *seen = ctx;

    if (seen->refuse) {
        seen->refuse--;
        return false;
    }
    if (seen->keep) {
        buf_str(&seen->text[stream], line);
        buf_byte(&seen->text[stream], '\n');
    }
    seen->lines[stream]++;
    seen->cuts += cut;
    if (seen->on_line)
        seen->on_line(seen, stream, line);
    return true;
}

static inline void seen_init(struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        seen->text[i] = BUF_INIT(16 * 1024 * 1024);
    seen->keep = true;
    seen->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(seen->wake_fd >= 0);
}

static inline void seen_deinit(struct seen *seen)
{
    for (int i = 0; i < PROCESS_STREAM_COUNT; i++)
        buf_deinit(&seen->text[i]);
    close(seen->wake_fd);
}

static inline struct process_spec spec_of(struct seen *seen, char *const *command)
{
    return (struct process_spec){.spawner = test_spawner(),
                                 .command = command,
                                 .environment = plain_environment,
                                 .input = STR("{\"id\":1}\n"),
                                 .timeout_ms = 100000,
                                 .grace_ms = 200,
                                 .output_bytes_max = PROCESS_OUTPUT_BYTES_DEFAULT,
                                 .stop = &seen->stop,
                                 .wake_fd = seen->wake_fd,
                                 .sink = {take, seen}};
}

static inline void run_spec(struct seen *seen, const struct process_spec *spec)
{
    struct err err = {0};

    assert_int_equal(process_run(spec, &seen->result, &err), 0);
}

static inline void run_script(struct seen *seen, const char *script)
{
    char *const command[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    struct process_spec spec = spec_of(seen, command);

    run_spec(seen, &spec);
}

static inline const char *text_of(struct seen *seen, enum process_stream stream)
{
    buf_byte(&seen->text[stream], '\0');
    seen->text[stream].len--;
    return seen->text[stream].data;
}

static inline bool alive(pid_t pid)
{
    char path[64];
    char stat[256] = "";
    FILE *file;
    char *state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(stat, sizeof stat, file))
        stat[0] = '\0';
    fclose(file);
    state = strrchr(stat, ')');
    return state && state[2] != 'Z' && state[2] != 'X';
}

static inline bool gone_soon(pid_t pid)
{
    int64_t end_us = clock_boot_us() + DEADLINE_US;

    while (alive(pid)) {
        if (clock_boot_us() > end_us)
            return false;
        poll(NULL, 0, 5);
    }
    return true;
}

static inline int fds_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

#endif
