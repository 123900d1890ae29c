/* What a program did to its disk, written down once, and the disks that a power cut could have left
 * behind, made of it by the thousand: at a point of the trace all that was synced is there, and of
 * the rest nothing, all, a beginning, some writes in any order, or some sectors of some writes.
 * A deleted file may come back until its folder is synced. */
#ifndef TESTS_STORE_DISK_TRACE_H
#define TESTS_STORE_DISK_TRACE_H

#include "vfs_shim.h"

#include <stdatomic.h>

#define TRACE_FILES_MAX 4
#define TRACE_EVENTS_MAX 200000

struct trace_event {
    enum shim_change change;
    uint32_t file;
    int64_t offset;
    int len;
    unsigned char *data;
};

struct trace_file {
    char path[SHIM_PATH_BYTES];
    unsigned char *durable;
    int64_t size, cap;
    bool was_synced;        /* since it was made */
    unsigned char *ghost;   /* what it was before it was deleted; NULL = no way back */
    int64_t ghost_size;
    uint32_t *pending;      /* events since its last sync */
    uint32_t pending_count, pending_cap;
};

struct disk_trace {
    struct trace_event *events;
    _Atomic uint32_t count;
    uint32_t cap;
    struct trace_file files[TRACE_FILES_MAX];
    uint32_t files_count;
    uint32_t at; /* events replayed */
};

void disk_trace_init(struct disk_trace *trace);
void disk_trace_deinit(struct disk_trace *trace);
shim_watch disk_trace_watch; /* for vfs_shim.watch, with the trace as its ctx */

/* Replays up to the next sync, which is not yet done; false at the end. */
bool disk_trace_next(struct disk_trace *trace);
uint32_t disk_trace_pending(const struct disk_trace *trace); /* writes that are not synced */
/* Writes one of the disks that could be found now to files beside `path` (the names of the trace
 * with their folder and base replaced); the same seed gives the same disk. Its fingerprint. */
uint64_t disk_trace_image(struct disk_trace *trace, const char *path, unsigned seed);

#endif
