/* The small process between the worker and a handler. It is the handler's parent and the reaper of
 * all its descendants, so that nothing a handler started outlives it, not even when the worker is
 * killed: the shim sees the end of its command pipe and kills all of them.
 * A child of the spawner (process_spawner.h), which has one thread and knows no secrets. */
#ifndef WORKER_PROCESS_PROCESS_SHIM_H
#define WORKER_PROCESS_PROCESS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/process/process_plan.h"

#define SHIM_STDIO 4 /* the handler's descriptors: 0, 1, 2 and the control descriptor 3 */

/* Commands, one byte each. The end of the pipe means SHIM_KILL. */
#define SHIM_TERMINATE 'T' /* SIGTERM to the handler's group */
#define SHIM_KILL 'K'      /* SIGKILL to the handler, then to everything it left */

/* The descriptors a shim is given, in this order. */
enum shim_fd {
    SHIM_FD_CONTROL = 3,
    SHIM_FD_COMMAND, /* to read */
    SHIM_FD_STATUS,  /* to write */
    SHIM_FD_PLAN,    /* what to run: see process_plan.h */
    SHIM_FD_COUNT
};

enum shim_event {
    SHIM_BEGUN,       /* value = the shim's process id */
    SHIM_NOT_STARTED, /* value = errno, step says where */
    SHIM_ENDED,       /* value = wait status */
    SHIM_GONE         /* no descendant is left; the shim ends now */
};

/* What the spawner sees of one that was not killed. */
#define SHIM_EXIT_USED 9 /* the cgroup.kill of the run may have been written */

enum shim_step { SHIM_STEP_FORK, SHIM_STEP_USER, SHIM_STEP_DIRECTORY, SHIM_STEP_EXEC };

struct shim_message {
    int32_t event;
    int32_t step;
    int32_t value;
};

/* Call with all signals blocked, directly after fork(), in a process with one thread. cgroup_fd:
 * what the handler starts in, or -1. */
_Noreturn void process_shim_main(const int fds[SHIM_FD_COUNT], int cgroup_fd);
void process_shim_tell(int status_fd, enum shim_event event, enum shim_step step, int value);

/* The calling thread's children, at most cap: from the kernel's list, or (by_scan) by looking at
 * the parent of every process. -1 when that way is not there. */
int process_shim_children(pid_t *pids, int cap, bool by_scan);

#endif
