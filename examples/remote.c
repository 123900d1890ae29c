/* A client and a worker of a server: enqueues a small workflow, runs it, waits for its end.
 *     perdura serve &
 *     cc remote.c -o remote $(pkg-config --cflags --libs perdura)
 *     ./remote [http://127.0.0.1:7070]          (PERDURA_TOKEN is used if it is set) */
#include <perdura.h>
#include <stdio.h>

static int load(struct pd_task *task, void *ctx)
{
    (void)ctx;
    if (pd_task_progress(task, 50, "Loading") < 0)
        return PD_CONTINUE; /* not ours any more; what we return does not count */
    pd_task_log(task, PD_LOG_INFO, "loaded three rows", "{\"rows\":3}");
    pd_task_set_result(task, "[1,2,3]");
    return PD_DONE;
}

/* pd_task_data holds {"dependencies":{"<id>":{"ref":"load","status":"completed","result":[1,2,3]}}}. */
static int report(struct pd_task *task, void *ctx)
{
    (void)ctx;
    printf("report gets %s\n", pd_task_data(task));
    pd_task_set_result(task, "{\"sum\":6}");
    return PD_DONE;
}

static int run(struct pd *pd, struct pd_worker **worker, struct pd_result *result)
{
    struct pd_task_spec specs[2] = {PD_TASK_SPEC_INIT};
    struct pd_enqueued enqueued[2];
    struct pd_dependency after = {0};
    int rc;

    after.ref = "load";
    specs[0].type = "example:load";
    specs[0].ref = "load";
    specs[1].type = "example:report";
    specs[1].payload = "{\"format\":\"pdf\"}";
    specs[1].depends_on = &after;
    specs[1].depends_on_count = 1;
    if ((rc = pd_worker_new(pd, NULL, worker)) < 0 ||
        (rc = pd_worker_handle(*worker, "example:load", load, NULL)) < 0 ||
        (rc = pd_worker_handle(*worker, "example:report", report, NULL)) < 0 ||
        (rc = pd_worker_start(*worker)) < 0 ||
        (rc = pd_enqueue_batch(pd, specs, 2, enqueued)) < 0)
        return rc;
    return pd_wait(pd, enqueued[1].id, 30000, result);
}

int main(int argc, char **argv)
{
    struct pd_worker *worker = NULL;
    struct pd_result result = PD_RESULT_INIT;
    struct pd *pd;
    int rc = pd_open(argc > 1 ? argv[1] : "http://127.0.0.1:7070", NULL, &pd);

    if (rc == 0)
        rc = run(pd, &worker, &result);
    if (rc < 0)
        fprintf(stderr, "remote: %s\n", pd_error(pd));
    else
        printf("%s %s %s\n", result.id, result.status_word, result.result ? result.result : "");
    pd_result_free(&result);
    pd_worker_free(worker);
    pd_close(pd);
    return rc < 0;
}
