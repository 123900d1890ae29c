/* Archives and removes what is too old, a small chunk per commit (retention.c). Belongs to the
 * thread that has the turn (inbox.c). */
#ifndef ENGINE_HISTORY_RETENTION_H
#define ENGINE_HISTORY_RETENTION_H

#include "core/task/status.h"

#include <stdbool.h>
#include <stdint.h>

struct request;
struct batch;
struct err;
struct store_reader;
struct task;

struct history {
    int64_t prune_cursor[STATUS_COUNT];
    int64_t rows_cursor;         /* of events, executions and logs */
    struct store_reader *reader; /* of the archive; opened when it is needed */
    bool archive_checked;        /* the archive's last file has no half-written end */
};

int control_purge(struct batch *batch, struct request *base);
int retention_run(struct batch *batch, int64_t *next_us, struct err *err);
int retention_remove(struct batch *batch, struct task **tasks, uint32_t count, struct err *err);

#endif
