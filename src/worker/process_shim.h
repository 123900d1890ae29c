/* The small process between the worker and a handler. It is the handler's parent and the reaper of
 * all its descendants, so that nothing a handler started outlives it, not even when the worker is
 * killed: the shim sees the end of its command pipe and ends everybody.
 * Runs in a child of a process with threads: async-signal-safe calls only, no memory, no locks. */
#ifndef WORKER_PROCESS_SHIM_H
#define WORKER_PROCESS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SHIM_STDIO 4 /* the handler's descriptors: 0, 1, 2 and the control descriptor 3 */

/* Commands, one byte each. The end of the pipe means SHIM_KILL. */
#define SHIM_TERMINATE 'T' /* SIGTERM to the handler's group */
#define SHIM_KILL 'K'      /* SIGKILL to the handler, then to everything it left */

/* What the handler and each of its descendants may use; 0 = no limit of ours. */
struct process_limits {
    int64_t memory_bytes;
    int64_t file_bytes;
    int64_t processes; /* of its user, as the kernel counts them; none for root */
};

/* Everything is made ready before the fork. */
struct shim_plan {
    char *const *paths;       /* tried in order, NULL-terminated */
    char *const *command;     /* argv */
    char *const *environment;
    const char *directory;    /* NULL = the worker's */
    struct process_limits limits;
    int stdio[SHIM_STDIO];
    int command_fd;           /* to read */
    int status_fd;            /* to write */
};

enum shim_event {
    SHIM_NOT_STARTED, /* value = errno, step says where */
    SHIM_ENDED,       /* value = wait status */
    SHIM_GONE         /* no descendant is left; the shim ends now */
};

enum shim_step { SHIM_STEP_FORK, SHIM_STEP_DIRECTORY, SHIM_STEP_EXEC };

struct shim_message {
    int32_t event;
    int32_t step;
    int32_t value;
};

/* Call with all signals blocked, directly after fork(). */
_Noreturn void process_shim_main(const struct shim_plan *plan);

/* The calling thread's children, at most cap: from the kernel's list, or (by_scan) by looking at
 * the parent of every process. -1 when that way is not there. */
int process_shim_children(pid_t *pids, int cap, bool by_scan);

#endif
