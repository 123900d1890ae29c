/* One call of a tool, on a thread of its own: a command, a method of a service, or a URL. The
 * slot's thread makes it, waits for `ended`, joins its thread and reads what came. */
#ifndef WORKER_AGENTS_TOOL_JOB_H
#define WORKER_AGENTS_TOOL_JOB_H

#include "worker/agents/agent_int.h"

#define TOOL_ERRORS_BYTES 2048 /* of what it writes to stderr, for the log */

struct tool_job {
    bool in_use; /* the slot's thread only */
    struct agent_run *run;
    const struct tool_rule *rule;
    const struct agent_tool *tool;
    uint32_t call;
    struct str arguments;
    char key[96]; /* idempotency key: the same whenever this call is repeated */
    pthread_t thread;
    atomic_int stop;
    int wake_fd;
    int done_fd;
    atomic_bool ended;
    /* Its thread's, until it has ended: */
    struct arena arena;
    struct buf output; /* stdout or body */
    uint64_t output_bytes;
    struct buf errors;
    struct buf result; /* for the model */
    bool is_error;
    bool cut_short;    /* it was stopped */
    bool unbegun;      /* before it began */
    int64_t began_us, ended_us;
    struct process_leftover leftover;
};

bool tool_job_init(struct tool_job *job, struct agent_run *run, const struct tool_rule *rule,
                   uint32_t call, struct str arguments, int done_fd);
void tool_job_deinit(struct tool_job *job);
void *tool_job_main(void *job);
void tool_job_stop(struct tool_job *job);

#endif
