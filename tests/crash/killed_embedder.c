/* A program that has the store in its own process (libperdura, embedded), for the kill loop:
 * enqueues, runs and awaits tasks and writes to a file what the library told it. It is killed at
 * any moment and started again on the same store.
 *     killed_embedder STORE TOLD FIRST      (FIRST: number of the first task's key) */
#include <perdura.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEASE_MS 250

/* One write, so that a line is there whole or not at all. */
static void tell(int fd, const char *what, long number, const char *id)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%s %ld %s\n", what, number, id);

    if (write(fd, line, (size_t)len) != len)
        _exit(2);
}

static int handle(struct pd_task *task, void *ctx)
{
    char result[64];

    (void)ctx;
    if (strcmp(pd_task_type(task), "parent") == 0 &&
        !strstr(pd_task_data(task), "\"children\":{")) {
        pd_task_spawn(task, "[{\"type\":\"child\",\"ref\":\"a\",\"max_crashes\":100000},"
                            "{\"type\":\"child\",\"ref\":\"b\",\"max_crashes\":100000}]");
        pd_task_wait_children(task);
        return PD_CONTINUE;
    }
    pd_task_checkpoint(task, "half", 50, "{}");
    pd_task_log(task, PD_LOG_INFO, "half done", NULL);
    snprintf(result, sizeof result, "{\"attempt\":%lld}", (long long)pd_task_attempt(task));
    pd_task_set_result(task, result);
    return PD_DONE;
}

static int start(struct pd *pd, struct pd_worker **worker)
{
    return pd_worker_new(pd, NULL, worker) < 0 ||
                   pd_worker_handle(*worker, "*", handle, NULL) < 0 ||
                   pd_worker_start(*worker) < 0
               ? -1
               : 0;
}

/* Two tasks as one unit, then the outcome of the first. */
static int go_round(struct pd *pd, int told_fd, long number)
{
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[2];
    struct pd_result result = PD_RESULT_INIT;
    char keys[2][32];
    int rc;

    for (int i = 0; i < 2; i++) {
        snprintf(keys[i], sizeof keys[i], "k%ld", number + i);
        specs[i].type = (number + i) % 5 ? "plain" : "parent";
        specs[i].idempotency_key = keys[i];
        specs[i].max_crashes = 100000;
    }
    if (pd_enqueue_batch(pd, specs, 2, enqueued) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        tell(told_fd, "enqueued", number + i, enqueued[i].id);
    rc = pd_wait(pd, enqueued[0].id, 10000, &result);
    if (rc == 0)
        tell(told_fd, result.status_word, number, enqueued[0].id);
    pd_result_free(&result);
    return rc;
}

int main(int argc, char **argv)
{
    struct pd_options options = PD_OPTIONS_INIT;
    struct pd_worker *worker = NULL;
    struct pd *pd = NULL;
    int told_fd;

    if (argc < 4)
        return 2;
    told_fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    options.lease_ms = LEASE_MS;
    if (told_fd < 0 || pd_open(argv[1], &options, &pd) < 0 || start(pd, &worker) < 0) {
        fprintf(stderr, "killed_embedder: %s\n", pd_error(pd));
        return 1;
    }
    for (long number = atol(argv[3]);; number += 2)
        if (go_round(pd, told_fd, number) < 0) {
            fprintf(stderr, "killed_embedder: %s\n", pd_error(pd));
            return 1;
        }
}
