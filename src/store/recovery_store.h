/* The part of the seam for recovery (core/task/recovery.h): verbs of every store. The rules of
 * store.h apply: write verbs run on the writer's thread between begin and commit; reading verbs
 * take a reader. Results live in the arena. */
#ifndef STORE_RECOVERY_STORE_H
#define STORE_RECOVERY_STORE_H

#include "core/task/recovery.h"
#include "store/store.h"

struct recovery_filter {
    struct str namespace_name;
    int status;            /* enum recovery_status, -1 = any */
    int method;            /* enum recovery_method, -1 = any */
    struct uuid task_id;   /* nil = any */
    struct uuid before_id; /* cursor: ids below this; nil = from the newest */
    uint32_t limit;
};

struct candidate_filter {
    struct str namespace_name;
    int auto_recovery;      /* -1 = any, 0, 1 */
    int64_t now_us;         /* a worker silent for stall_after before this is stalled */
    int64_t stall_after_ms; /* for tasks that set none */
    bool goes_on;           /* cursor: behind this one */
    int64_t after_priority;
    int64_t after_updated_us;
    struct uuid after_id;
    uint32_t limit;
};

struct recovery_verbs {
    int (*put)(struct store *store, const struct recovery_entry *entries, uint32_t count,
               struct err *err);
    /* Writes status, attempts, times, result and error of an existing entry. */
    int (*save)(struct store *store, const struct recovery_entry *entry, struct err *err);
    int (*load)(struct store *store, const struct uuid *id, struct arena *arena,
                struct recovery_entry **entry, struct err *err); /* NULL = there is none */
    /* Pending entries whose time has come, and entries that have been processing for longer than a
     * lease (their node is gone), by priority and then by time. *next_us: when the earliest of the
     * others may come (INT64_MAX = none). */
    int (*due)(struct store *store, int64_t now_us, int64_t lease_us, uint32_t limit,
               struct arena *arena, struct recovery_entry **entries, uint32_t *count,
               int64_t *next_us, struct err *err);
    int (*remove)(struct store *store, const struct uuid *id, struct err *err);
    /* Removes at most `limit` ended entries that were scheduled before then. */
    int (*prune)(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                 struct err *err);
    /* The newest checkpoint still marked valid with a seq below this (0 = the newest), or NULL. */
    int (*checkpoint_before)(struct store *store, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint,
                             struct err *err);
    /* Marks all checkpoints invalid: a clean restart resumes from none of them. */
    int (*checkpoints_retire)(struct store *store, const struct uuid *task_id, struct err *err);

    int (*read_entries)(struct store_reader *reader, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err); /* newest first */
    int (*read_entry)(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err); /* NULL = none */
    /* By recovery_priority descending, then the least recently updated first (B5). */
    int (*read_candidates)(struct store_reader *reader, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err);
};

#endif
