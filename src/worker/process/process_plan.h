/* What a shim shall run, on its way from the worker to the shim: one file in memory, made by the
 * worker and read only by the shim, so that the spawner between them never holds one handler's data
 * while it starts the next. Needs the C library only. */
#ifndef WORKER_PROCESS_PROCESS_PLAN_H
#define WORKER_PROCESS_PROCESS_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the handler and each of its descendants may use; 0 = no limit of ours. */
struct process_limits {
    int64_t memory_bytes;
    int64_t file_bytes;
    int64_t processes; /* of its user, as the kernel counts them; none for root */
};

/* Whom the handler runs as; not set = as the worker does. */
struct process_identity {
    bool is_set;
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* all of them, and no others */
    uint32_t groups_count;
};

struct process_plan {
    char *const *paths;       /* tried in order, NULL-terminated */
    char *const *command;     /* argv */
    char *const *environment;
    const char *directory;    /* NULL = the worker's */
    struct process_limits limits;
    struct process_identity identity;
};

/* A descriptor of the plan in a file without a name, closed on exec; -1 with errno. */
int process_plan_write(const struct process_plan *plan);

/* What it points to stays until the process ends. False with errno when it cannot be read. */
bool process_plan_read(int fd, struct process_plan *plan);

#endif
