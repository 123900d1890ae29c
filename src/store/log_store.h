/* The part of the seam for what makes logs tamper-evident (core/log/logchain.h,
 * core/log/loganchor.h): verbs of every store, by the same rules as those of store.h. logs_insert
 * chains the lines and, in the same transaction, notes where each chain stands; here the notes
 * become records. */
#ifndef STORE_LOG_STORE_H
#define STORE_LOG_STORE_H

#include "base/map.h"
#include "core/log/loganchor.h"
#include "core/log/logmac.h"
#include "store/store.h"

/* Cuts (or blanks) that a transaction made: who sets store.cuts to one of these is told. */
struct log_cuts {
    struct arena *arena;
    struct log_part *items;
    uint32_t count, cap;
    int64_t window_ms; /* so long what is added next had to stay */
};

/* A chain that was computed again before its lines go. */
struct log_base {
    struct log_head end; /* the last line that was computed */
    int64_t base;        /* the last one that a record names */
};

/* Executions whose newest line and note were compared with the key in this transaction, and with
 * the task that goes. What the database then says it removed is signed only of these, and as far as
 * it was computed: another client may have changed the rows meanwhile. */
struct log_checked {
    struct arena *arena;
    struct map by_id;
    struct map bases; /* struct log_base by execution */
};

/* What a walk over all logs gives, in this order and of one moment. */
struct log_walk {
    void (*record)(void *ctx, const struct anchor_row *row);  /* by serial */
    void (*note)(void *ctx, const struct log_note *note);
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
    struct uuid task_id;
    struct log_last last;
};

struct log_verbs {
    /* Chains with lines since their last record, or whose execution has ended since: the newest
     * note of each, and in parts the lines that come with its notes (log_part_add). Oldest
     * execution first. Their notes are removed. */
    int (*heads_take)(struct store *store, uint32_t limit, struct arena *arena,
                      struct log_note **notes, struct log_part **parts, uint32_t *count,
                      struct err *err);
    /* Notes of what is in a record by now. */
    int (*heads_put)(struct store *store, const struct log_note *notes, uint32_t count,
                     struct err *err);
    /* Removes the notes of these executions up to where they stand. */
    int (*heads_forget)(struct store *store, const struct log_note *notes, uint32_t count,
                        struct err *err);
    /* Is there any note of a chain that is not closed? */
    int (*heads_open)(struct store *store, bool *open, struct err *err);
    int (*any_line)(struct store *store, bool *any, struct err *err);
    /* The next executions that have lines, by id; of the ranges only that is filled. */
    int (*chains_next)(struct store *store, const struct uuid *after, uint32_t limit,
                       struct log_range *ranges, uint32_t *count, struct err *err);
    /* Up to which line of each level, and how many, were emptied, by execution. */
    int (*emptied_find)(struct store *store, struct arena *arena, struct log_part **parts,
                        uint32_t *count, struct err *err);
    /* The newest lines of all executions of these tasks that have some; at: whose. */
    int (*lasts_find)(struct store *store, struct task *const *tasks, uint32_t tasks_count,
                      struct arena *arena, struct log_last **lasts, uint32_t **at,
                      uint32_t *count, struct err *err);
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
    /* Whether what logs are read from answers the same by every index; a line per finding. */
    int (*whole)(struct store *store, void (*tell)(void *ctx, const char *line), void *ctx,
                 struct err *err);
    int (*walk)(struct store *store, const struct log_walk *walk, struct err *err);
    /* Of the executions of the ranges: their notes, in order and before their lines; then the lines
     * up to the ends of the ranges, limit of them at most. No record takes these notes until the
     * transaction ends. */
    int (*chains_read)(struct store *store, const struct log_range *ranges, uint32_t count,
                       int64_t limit, const struct log_walk *walk, struct err *err);
};

/* The level and task of a line, as stored. A level is written in one way only: of another word the
 * line is of no task, and so not what was written. */
void log_line_level(struct log_line *line, struct str word);

/* Adds one; the lines of one execution that go together come as one cut. -ERR_MEMORY. */
int log_cuts_add(struct log_cuts *cuts, const struct uuid *execution_id, int64_t seq,
                 struct str chain_hash, int64_t lines, int64_t at_us);
/* The same for lines of a level that were emptied up to seq. */
int log_blanks_add(struct log_cuts *blanks, const struct uuid *execution_id, int64_t seq,
                   enum log_severity level, int64_t lines, int64_t at_us);

/* Does this process know of no later line? Otherwise an attacker removed that. */
bool log_is_newest(const struct store *store, const struct log_last *last);
int log_written_add(struct store *store, const struct log_head *head); /* -ERR_MEMORY */
/* May this be done with a chain that stands at this line? (log_trust.c) Otherwise somebody put the
 * line or its note there without the key: the store's doubt is set. */
int log_may_follow(struct store *store, const struct log_last *last, const struct uuid *task_id,
                   bool *may); /* -ERR_MEMORY */
bool log_may_go(struct store *store, const struct log_last *last, int64_t before_us);
/* Computes chains again, each from its beginning or where it was cut, as far as its range and
 * `limit` lines go (log_chains.c). fits: whether it is as it was written; otherwise the store's
 * doubt is set to `what`. Without a key all fit. */
int log_chains_fit(struct store *store, const struct log_range *ranges, uint32_t count,
                   int64_t limit, const char *what, bool *fits, struct err *err);
/* They may go now. -ERR_MEMORY. */
int log_checked_add(struct store *store, const struct uuid *execution_id);
bool log_is_checked(const struct store *store, const struct uuid *execution_id);
/* What log_chains_fit found out of a chain that fits. -ERR_MEMORY. */
int log_checked_base(struct store *store, const struct log_head *end, int64_t base);
const struct log_base *log_base_of(const struct store *store, const struct uuid *execution_id);

/* The lines behind `before`, up to head. */
struct log_part log_part_after(const struct log_head *before, const struct log_head *head);
/* Adds the lines of the next note of the execution. Notes without the right code do not count, and
 * where some are missing in between only those of the last ones do. */
void log_part_add(struct store *store, struct log_part *part, const struct log_note *note);
/* The column from_hash, absent where the lines begin the chain; the text lives in hex. */
void log_note_from(struct log_note *note, struct str from_hash);
struct str log_note_from_hex(const struct log_note *note, char hex[HASH_HEX_BYTES + 1]);
/* Fills note.mac; no code where there is no key. -ERR_MEMORY. */
int log_note_seal(struct store *store, struct log_note *note);

#endif
