/* The part of the seam for what makes logs tamper-evident (core/logchain.h, core/loganchor.h):
 * verbs of every store, by the same rules as those of store.h. logs_insert chains the lines and, in
 * the same transaction, notes where each chain stands; here the notes become records. */
#ifndef STORE_LOG_STORE_H
#define STORE_LOG_STORE_H

#include "core/loganchor.h"
#include "store/store.h"

/* Cuts (or blanks) that a transaction made: who sets store.cuts to one of these is told. */
struct log_cuts {
    struct arena *arena;
    struct log_part *items;
    uint32_t count, cap;
};

/* What a walk over all logs gives, in this order and of one moment. */
struct log_walk {
    void (*record)(void *ctx, const struct anchor_row *row);  /* by serial */
    void (*pending)(void *ctx, const struct log_head *head);
    void (*line)(void *ctx, const struct log_line *line, struct str chain_hash);
    void *ctx;
};

/* Lines of an execution, both ends among them. */
struct log_range {
    struct uuid execution_id;
    int64_t from_seq, to_seq;
};

/* What retention wants to know of an execution. */
struct log_run {
    struct str type;  /* of its task; absent = it is gone */
    bool under_way;
    int64_t last_seq; /* of its lines, 0 = it has none */
};

struct log_verbs {
    /* Chains that went on since their last record, each at its newest line and with the lines that
     * came, oldest execution first; they are taken from the list. */
    int (*heads_take)(struct store *store, uint32_t limit, struct arena *arena,
                      struct log_part **heads, uint32_t *count, struct err *err);
    /* The newest record (serial 0 = none). Nobody else adds one until the transaction ends. */
    int (*anchor_last)(struct store *store, struct arena *arena, struct anchor_row *row,
                       struct err *err);
    int (*anchor_insert)(struct store *store, const struct anchor_row *row, struct err *err);
    /* Records behind a serial, in order. No transaction is needed. */
    int (*anchors_read)(struct store *store, int64_t after_serial, uint32_t limit,
                        struct arena *arena, struct anchor_row **rows, uint32_t *count,
                        struct err *err);
    /* Which of these executions still have lines. */
    int (*heads_alive)(struct store *store, const struct log_part *heads, uint32_t count,
                       bool *alive, struct err *err);
    int (*anchors_trim)(struct store *store, int64_t through_serial, struct err *err);
    /* Takes what they say from the lines of a level and leaves the hash of it (logchain_content).
     * emptied: how many there were in each range. */
    int (*lines_empty)(struct store *store, enum log_severity level,
                       const struct log_range *ranges, uint32_t count, int64_t *emptied,
                       struct err *err);
    /* The executions of the ranges, in this order. */
    int (*runs_find)(struct store *store, const struct log_range *ranges, uint32_t count,
                     struct arena *arena, struct log_run *runs, struct err *err);
    /* Removes all lines up to the ends of the ranges; store.cuts is told. */
    int (*lines_cut)(struct store *store, const struct log_range *ranges, uint32_t count,
                     int64_t *removed, struct err *err);
    int (*walk)(struct store *store, const struct log_walk *walk, struct err *err);
};

/* Adds one; the lines of one execution that go together come as one cut. -ERR_MEMORY. */
int log_cuts_add(struct log_cuts *cuts, const struct uuid *execution_id, int64_t seq,
                 struct str chain_hash, int64_t lines);
/* The same for lines of a level that were emptied up to seq. */
int log_blanks_add(struct log_cuts *blanks, const struct uuid *execution_id, int64_t seq,
                   enum log_severity level, int64_t lines);

#endif
