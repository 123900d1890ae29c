/* The part of the seam for the audit trail (core/log/audit.h): verbs of every store, by the same
 * rules as those of store.h. Write verbs belong to the writer's thread, between begin and commit;
 * reading verbs take a reader. */
#ifndef STORE_AUDIT_STORE_H
#define STORE_AUDIT_STORE_H

#include "core/log/audit.h"
#include "store/log_store.h"
#include "store/store.h"

struct audit_filter {
    struct str namespace_name; /* absent = of all, as with the others */
    struct str principal;
    struct str action;         /* the whole word, or its first part ("queue") */
    struct str object_kind;
    struct str object_id;
    struct str outcome;
    int64_t after_us;          /* 0 = any */
    int64_t before_us;
    struct uuid before_id;     /* cursor: entries below it; nil = from the newest */
    uint32_t limit;
};

struct audit_verbs {
    /* The newest entry, or NULL. With `lock` no other node adds one before the transaction ends. */
    int (*last)(struct store *store, bool lock, struct arena *arena, struct audit_entry **entry,
                struct err *err);
    int (*insert)(struct store *store, const struct audit_entry *entries, uint32_t count,
                  struct err *err);
    /* Those behind a number, in their order. */
    int (*behind)(struct store *store, int64_t seq, uint32_t limit, struct arena *arena,
                  struct audit_entry **entries, uint32_t *count, struct err *err);
    /* Another key takes over: its code for an entry. */
    int (*prove)(struct store *store, int64_t seq, struct str mac, struct err *err);
    int (*remove)(struct store *store, int64_t through_seq, int64_t *removed, struct err *err);
    int (*read)(struct store_reader *reader, const struct audit_filter *filter,
                struct arena *arena, struct audit_entry **entries, uint32_t *count,
                struct err *err); /* newest first */
};

/* For a walk over all logs: what proves the newest entry, and all of them as lines. */
int audit_walk_note(struct store *store, const struct log_walk *walk, struct err *err);
int audit_walk_lines(struct store *store, const struct log_walk *walk, struct err *err);

#endif
