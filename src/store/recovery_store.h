/* The part of the seam for recovery (core/task/recovery.h): verbs of every store, by the same rules
 * as those of store.h. Write verbs belong to the writer's thread, between begin and commit; reading
 * verbs take a reader. What is given lives in the arena. */
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
    int64_t now_us;         /* whoever gave no sign since its stall_after before this is stalled */
    int64_t stall_after_ms; /* of tasks that say nothing */
    bool goes_on;           /* cursor: behind this one */
    int64_t after_priority;
    int64_t after_updated_us;
    struct uuid after_id;
    uint32_t limit;
};

struct recovery_verbs {
    int (*put)(struct store *store, const struct recovery_entry *entries, uint32_t count,
               struct err *err);
    /* Status, attempts, times, result and error, of one that is there. */
    int (*save)(struct store *store, const struct recovery_entry *entry, struct err *err);
    int (*load)(struct store *store, const struct uuid *id, struct arena *arena,
                struct recovery_entry **entry, struct err *err); /* NULL = there is none */
    /* Pending ones whose time has come, and those being processed for as long as a lease (whoever
     * had them is gone), by priority and then by time. *next_us: when the earliest of the others
     * may come (INT64_MAX = none). */
    int (*due)(struct store *store, int64_t now_us, int64_t lease_us, uint32_t limit,
               struct arena *arena, struct recovery_entry **entries, uint32_t *count,
               int64_t *next_us, struct err *err);
    int (*remove)(struct store *store, const struct uuid *id, struct err *err);
    /* Removes ended ones that were scheduled before then, at most limit. */
    int (*prune)(struct store *store, int64_t before_us, uint32_t limit, uint32_t *removed,
                 struct err *err);
    /* The newest one still marked valid whose seq is below this (0 = the newest), or NULL. */
    int (*checkpoint_before)(struct store *store, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint,
                             struct err *err);
    /* Nothing is resumed from what was there before a clean restart. */
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
