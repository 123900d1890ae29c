/* A handle on a store in a folder of its own, for the tests of the library; or, where
 * PERDURA_LIB_SERVER names the program, on a server of its own: the same calls do the same on both.
 * Included by test programs only; all functions are static. */
#ifndef TESTS_UNIT_LIB_FIXTURE_H
#define TESTS_UNIT_LIB_FIXTURE_H

#include "perdura.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 55000 /* only ever reached when a test fails */

struct fixture {
    char folder[64];
    char path[96];
    char where[128]; /* the path, or the server's address */
    pid_t server;    /* 0 = none */
    struct pd *pd;
    struct pd_worker *worker;
};

/* Fails the test with the handle's own sentence. */
#define OK(fixture, call)                                                                    \
    do {                                                                                     \
        int rc_ = (call);                                                                    \
        if (rc_ != PD_OK)                                                                    \
            fail_msg("%s: %s: %s", #call, pd_code_word(rc_), pd_error((fixture)->pd));       \
    } while (0)

static inline int open_store(struct fixture *fixture)
{
    struct pd_options options = PD_OPTIONS_INIT;

    options.allow_network_fs = 1;
    return pd_open(fixture->where, &options, &fixture->pd);
}

static inline const char *server_program(void)
{
    return getenv("PERDURA_LIB_SERVER");
}

/* Starts a server and reads its address from what it prints. */
static inline void start_server(struct fixture *fixture)
{
    char line[256];
    FILE *printed;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fixture->server = fork();
    if (fixture->server == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(server_program(), "perdura", "serve", "--listen", "127.0.0.1:0", "--allow-network-fs",
              "--log-level", "error", "--store", fixture->path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    printed = fdopen(ends[0], "r");
    assert_non_null(printed);
    assert_non_null(fgets(line, sizeof line, printed));
    assert_int_equal(sscanf(line, "listening on %127s", fixture->where), 1);
    fclose(printed);
}

static inline void stop_server(struct fixture *fixture)
{
    int status;

    if (!fixture->server)
        return;
    kill(fixture->server, SIGTERM);
    assert_int_equal(waitpid(fixture->server, &status, 0), fixture->server);
    assert_int_equal(status, 0);
}

static inline void make_place(struct fixture *fixture)
{
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/perdura-lib-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/p.db", fixture->folder);
    snprintf(fixture->where, sizeof fixture->where, "%s", fixture->path);
    if (server_program())
        start_server(fixture);
}

static inline void remove_place(struct fixture *fixture)
{
    DIR *folder;
    struct dirent *entry;
    char path[512];

    stop_server(fixture);
    folder = opendir(fixture->folder);
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof path, "%s/%s", fixture->folder, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(fixture->folder);
}

static inline int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    make_place(fixture);
    OK(fixture, open_store(fixture));
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;

    pd_worker_free(fixture->worker);
    pd_close(fixture->pd);
    remove_place(fixture);
    free(fixture);
    return 0;
}

/* A worker with one handler, running. */
static inline void start_worker(struct fixture *fixture, const char *type, pd_handler *handler,
                                void *ctx)
{
    OK(fixture, pd_worker_new(fixture->pd, NULL, &fixture->worker));
    OK(fixture, pd_worker_handle(fixture->worker, type, handler, ctx));
    OK(fixture, pd_worker_start(fixture->worker));
}

/* Enqueues a task of the type that is tried again at once. */
static inline void enqueue(struct fixture *fixture, const char *type, const char *payload,
                           char *id)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;

    spec.type = type;
    spec.payload = payload;
    spec.retry_delay_ms = PD_NONE;
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
}

static inline enum pd_status status_of(struct fixture *fixture, const char *id)
{
    struct pd_result result = PD_RESULT_INIT;
    enum pd_status status;

    OK(fixture, pd_get(fixture->pd, id, &result));
    status = result.status;
    pd_result_free(&result);
    return status;
}

/* The handler whose result is its payload. */
static inline int echo(struct pd_task *task, void *ctx)
{
    (void)ctx;
    assert_int_equal(pd_task_set_result(task, pd_task_payload(task)), PD_OK);
    return PD_DONE;
}

#endif
