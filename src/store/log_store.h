/* The part of the seam for what makes logs tamper-evident (core/logchain.h, core/loganchor.h):
 * verbs of every store, by the same rules as those of store.h. logs_insert chains the lines and, in
 * the same transaction, notes where each chain stands; here the notes become records. */
#ifndef STORE_LOG_STORE_H
#define STORE_LOG_STORE_H

#include "core/loganchor.h"
#include "store/store.h"

/* Cuts that a transaction made: who sets store.cuts to one of these is told. */
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
    int (*walk)(struct store *store, const struct log_walk *walk, struct err *err);
};

/* Adds one; the lines of one execution that go together come as one cut. -ERR_MEMORY. */
int log_cuts_add(struct log_cuts *cuts, const struct uuid *execution_id, int64_t seq,
                 struct str chain_hash, int64_t lines);

#endif
