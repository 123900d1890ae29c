/* A durable queue inside a program: tasks survive a crash and continue where they were.
 *     cc embed.c -o embed $(pkg-config --cflags --libs perdura) && ./embed [STORE]
 * Kill it in the middle and start it again: the tasks of the run before are finished first. */
#include <perdura.h>
#include <stdio.h>
#include <stdlib.h>

static int count_up(struct pd_task *task, void *ctx)
{
    const char *done = pd_task_checkpoint_data(task); /* NULL on the first attempt */
    char text[32];
    int at = done ? atoi(done) : 0;

    (void)ctx;
    while (at < 5) {
        if (pd_task_cancelled(task))
            return PD_CONTINUE;
        snprintf(text, sizeof text, "%d", ++at);
        pd_task_checkpoint(task, "counted", at * 20, text);
    }
    pd_task_set_result(task, text);
    return PD_DONE;
}

int main(int argc, char **argv)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_result result = PD_RESULT_INIT;
    struct pd_worker *worker = NULL;
    struct pd *pd;
    char id[PD_ID_BYTES];
    int rc = 1;

    spec.type = "count";
    if (pd_open(argc > 1 ? argv[1] : "embed.db", NULL, &pd) < 0 ||
        pd_worker_new(pd, NULL, &worker) < 0 ||
        pd_worker_handle(worker, "count", count_up, NULL) < 0 || pd_worker_start(worker) < 0 ||
        pd_enqueue(pd, &spec, id) < 0 || pd_wait(pd, id, 30000, &result) < 0) {
        fprintf(stderr, "embed: %s\n", pd_error(pd));
    } else {
        printf("%s %s %s\n", id, result.status_word, result.result ? result.result : "null");
        rc = result.status != PD_STATUS_COMPLETED;
    }
    pd_result_free(&result);
    pd_worker_free(worker);
    pd_close(pd);
    return rc;
}
