/* Runs one command to its end and the end of everything it started, on the calling thread. Knows
 * nothing of tasks: lines go to a sink, the end is described in a result. */
#ifndef WORKER_PROCESS_PROCESS_H
#define WORKER_PROCESS_PROCESS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "worker/process/process_plan.h"
#include "worker/process/spawner.h"

#define PROCESS_OUTPUT_BYTES_DEFAULT (10 * 1024 * 1024)
#define PROCESS_CONTROL_LINE_BYTES (4 * 1024 * 1024) /* a checkpoint with its parts, and room */
#define PROCESS_PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin" /* where there is no PATH */
#define PROCESS_PATHS_MAX 64 /* folders of PATH that are tried */

enum process_stream { PROCESS_OUT, PROCESS_ERR, PROCESS_CONTROL, PROCESS_STREAM_COUNT };

struct process_sink {
    /* Takes one line (cut: the front part of one that was too long). False = no room now: the
     * stream is not read on and the line is offered again, so that the handler has to wait. */
    bool (*take)(void *ctx, enum process_stream stream, struct str line, bool cut);
    void *ctx;
};

struct process_spec {
    struct spawner *spawner;   /* starts it */
    char *const *command;      /* argv, NULL-terminated; no shell */
    char *const *environment;  /* complete, NULL-terminated; its PATH finds the command */
    const char *directory;     /* NULL = the caller's */
    struct str input;          /* for stdin */
    int64_t timeout_ms;        /* 0 = none */
    int64_t grace_ms;          /* between SIGTERM and SIGKILL, and again before giving up */
    int64_t output_bytes_max;  /* of stdout + stderr; what comes after is counted and dropped.
                                  Control lines are the sink's to count */
    struct process_limits limits; /* of the command and all it starts */
    struct process_identity identity; /* whom it runs as */
    const atomic_int *stop;    /* becomes non-zero when the command shall be stopped */
    const atomic_int *at_once; /* non-zero: the grace is over for all runs; may be NULL */
    int wake_fd;               /* eventfd written after stop or at_once was set */
    struct process_sink sink;
    void (*killing)(void *ctx); /* with the sink's ctx, before SIGKILL is sent; may be NULL */
};

enum process_end {
    PROCESS_EXITED,      /* exit_code */
    PROCESS_SIGNALLED,   /* signal, core_dumped */
    PROCESS_NOT_STARTED, /* exit_code 127 (not found) or 126, and error */
    PROCESS_SHIM_DIED,   /* the shim was killed; what it watched died with it */
    PROCESS_ABANDONED    /* could not be killed: see leftover */
};

/* What is left of a process that could not be killed. */
struct process_leftover {
    pid_t shim;    /* 0 = nothing is left; -1 = it has not even begun */
    int status_fd; /* reads end-of-file when it is gone at last */
};

struct process_result {
    enum process_end end;
    int exit_code;
    int signal;
    bool core_dumped;
    bool timed_out; /* it was stopped at its timeout */
    bool stopped;   /* it was stopped because spec.stop was set */
    bool words_lost; /* stop was set while control lines waited for room: the rest was not taken */
    char error[256]; /* PROCESS_NOT_STARTED: why */
    uint64_t dropped_bytes;
    struct process_leftover leftover;
};

/* 0 with *result, or a negative error when nothing was started (no memory, descriptors, processes).
 * When it returns, no descendant of the command lives, except with PROCESS_ABANDONED. */
int process_run(const struct process_spec *spec, struct process_result *result, struct err *err);

/* Waits until the leftover is gone (true) or *stop is non-zero or wake_fd is written (false). */
bool process_leftover_wait(struct process_leftover *leftover, const atomic_int *stop, int wake_fd);
void process_leftover_close(struct process_leftover *leftover);

/* "SIGSEGV"; "SIG40" where there is no name. out has 24 bytes. */
void process_signal_name(int number, char out[24]);

#endif
