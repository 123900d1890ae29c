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

/* The lines that a transaction removed (cuts) or emptied (blanks). A caller points store.cuts at
 * one of these, and the verbs that remove lines fill it. */
struct log_cuts {
    struct arena *arena;
    struct log_part *items;
    uint32_t count, cap;
    int64_t window_ms; /* how long the lines added next had to be kept */
};

/* A chain that was computed again before its lines are removed. */
struct log_base {
    struct log_head end; /* the last line that was computed */
    int64_t base;        /* the last one that a record names */
};

/* Executions whose newest line and note were compared in this transaction with the key, and with
 * the task that is being removed. What the database then reports as removed is signed for these
 * alone, and only as far as it was computed: another client may have changed the rows meanwhile. */
struct log_checked {
    struct arena *arena;
    struct map by_id;
    struct map bases; /* struct log_base by execution */
};

/* What a walk over all logs calls, in this order; all of it shows one moment. */
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

/* What retention needs to know about an execution. */
struct log_run {
    struct str type;  /* of its task, behind its namespace (queue_name.h); absent = it is gone */
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
    /* Stores notes of lines that a record now covers. */
    int (*heads_put)(struct store *store, const struct log_note *notes, uint32_t count,
                     struct err *err);
    /* Removes the notes of these executions, each up to the line that its note names. */
    int (*heads_forget)(struct store *store, const struct log_note *notes, uint32_t count,
                        struct err *err);
    /* Is there any note of a chain that is not closed? */
    int (*heads_open)(struct store *store, bool *open, struct err *err);
    int (*any_line)(struct store *store, bool *any, struct err *err);
    /* The next executions that have lines, by id. Only the id of each range is filled. */
    int (*chains_next)(struct store *store, const struct uuid *after, uint32_t limit,
                       struct log_range *ranges, uint32_t *count, struct err *err);
    /* Per execution and level: the last line that was emptied, and how many were. */
    int (*emptied_find)(struct store *store, struct arena *arena, struct log_part **parts,
                        uint32_t *count, struct err *err);
    /* The newest line of every execution of these tasks that has lines; at: the task's index. */
    int (*lasts_find)(struct store *store, struct task *const *tasks, uint32_t tasks_count,
                      struct arena *arena, struct log_last **lasts, uint32_t **at,
                      uint32_t *count, struct err *err);
    /* The newest record (serial 0 = none). No other client can add one until the transaction
     * ends. */
    int (*anchor_last)(struct store *store, struct arena *arena, struct anchor_row *row,
                       struct err *err);
    int (*anchor_insert)(struct store *store, const struct anchor_row *row, struct err *err);
    /* Records after a serial, in order. Needs no transaction. */
    int (*anchors_read)(struct store *store, int64_t after_serial, uint32_t limit,
                        struct arena *arena, struct anchor_row **rows, uint32_t *count,
                        struct err *err);
    /* Which of these executions still have lines. */
    int (*heads_alive)(struct store *store, const struct log_part *heads, uint32_t count,
                       bool *alive, struct err *err);
    /* Which of these lines are there with their hash. NULL where no other node writes lines. */
    int (*heads_stand)(struct store *store, const struct log_part *heads, uint32_t count,
                       bool *stand, struct err *err);
    int (*anchors_trim)(struct store *store, int64_t through_serial, struct err *err);
    /* Removes the text of the lines of a level and leaves its hash (logchain_content).
     * emptied: how many lines of each range. */
    int (*lines_empty)(struct store *store, enum log_severity level,
                       const struct log_range *ranges, uint32_t count, int64_t *emptied,
                       struct err *err);
    /* The executions of the ranges, in this order. */
    int (*runs_find)(struct store *store, const struct log_range *ranges, uint32_t count,
                     struct arena *arena, struct log_run *runs, struct err *err);
    /* Removes all lines up to the ends of the ranges, and adds them to store.cuts. */
    int (*lines_cut)(struct store *store, const struct log_range *ranges, uint32_t count,
                     int64_t *removed, struct err *err);
    /* Compares what every index of the log tables answers; tell gets a line per finding. */
    int (*whole)(struct store *store, void (*tell)(void *ctx, const char *line), void *ctx,
                 struct err *err);
    int (*walk)(struct store *store, const struct log_walk *walk, struct err *err);
    /* Reads the notes of the executions of the ranges, in order; then their lines up to the ends of
     * the ranges, at most `limit` of them. No record takes these notes until the transaction ends.
     * */
    int (*chains_read)(struct store *store, const struct log_range *ranges, uint32_t count,
                       int64_t limit, const struct log_walk *walk, struct err *err);
};

/* The level and task of a line, as stored. A level is written in one way only: of another word the
 * line is of no task, and so not what was written. */
void log_line_level(struct log_line *line, struct str word);

/* Adds one. Lines of one execution that are removed together are one cut. -ERR_MEMORY. */
int log_cuts_add(struct log_cuts *cuts, const struct uuid *execution_id, int64_t seq,
                 struct str chain_hash, int64_t lines, int64_t at_us);
/* The same for lines of a level, up to seq, that were emptied. */
int log_blanks_add(struct log_cuts *blanks, const struct uuid *execution_id, int64_t seq,
                   enum log_severity level, int64_t lines, int64_t at_us);

/* Is this the newest line that this process knows of? Otherwise an attacker removed later ones. */
bool log_is_newest(const struct store *store, const struct log_last *last);
int log_written_add(struct store *store, const struct log_head *head); /* -ERR_MEMORY */
/* May this entry follow, or may the chain be removed? (log_trust.c) If not, the line or its note
 * was written by a client without the key, or the entry is of another task or type; the store's
 * doubt is then set. -ERR_MEMORY. */
int log_may_follow(struct store *store, const struct log_last *last, const struct log_entry *entry,
                   bool *may);
bool log_may_go(struct store *store, const struct log_last *last, int64_t before_us);
/* Computes chains again, each from its beginning or from where it was cut, to the end of its range,
 * and at most `limit` lines (log_chains.c). fits: is every chain as it was written? If not, the
 * store's doubt is set to `what`. Without a key all fit. */
int log_chains_fit(struct store *store, const struct log_range *ranges, uint32_t count,
                   int64_t limit, const char *what, bool *fits, struct err *err);
/* Does a note by the key say that the chain was cut at this line or a later one? */
int log_find_cut(struct store *store, const struct log_head *head, bool *cut, struct err *err);
/* The lines of this execution may be removed from now on. -ERR_MEMORY. */
int log_checked_add(struct store *store, const struct uuid *execution_id);
bool log_is_checked(const struct store *store, const struct uuid *execution_id);
/* Keeps what log_chains_fit found out about a chain that fits. -ERR_MEMORY. */
int log_checked_base(struct store *store, const struct log_head *end, int64_t base);
const struct log_base *log_base_of(const struct store *store, const struct uuid *execution_id);

/* The lines after `before`, up to head. */
struct log_part log_part_after(const struct log_head *before, const struct log_head *head);
/* Adds the lines of the next note of the execution. A note with a wrong code is ignored. After a
 * gap between notes only the lines behind the gap count. */
void log_part_add(struct store *store, struct log_part *part, const struct log_note *note);
/* The column from_hash, absent where the lines begin the chain; the text lives in hex. */
void log_note_from(struct log_note *note, struct str from_hash);
struct str log_note_from_hex(const struct log_note *note, char hex[HASH_HEX_BYTES + 1]);
/* Fills note.mac; no code where there is no key. -ERR_MEMORY. */
int log_note_seal(struct store *store, struct log_note *note);

#endif
