/* The chain that makes a changed log show itself (D9, F-J5): every line of an execution carries a
 * hash over itself and the hash of the line before, the first one over the execution's id. Pure;
 * stores write it together with the line, verification computes it again. */
#ifndef CORE_LOG_LOGCHAIN_H
#define CORE_LOG_LOGCHAIN_H

#include "base/hash.h"
#include "base/uuid7.h"
#include "core/task/report.h"

struct log_line {
    struct uuid id;      /* counts only where it is bound */
    struct uuid execution_id;
    struct uuid task_id; /* that the execution is of: part of the hash */
    int64_t seq;
    enum log_severity level;
    struct str message;
    struct str context; /* absent differs from empty */
    int64_t logged_at_us;
    struct str removed; /* in place of message and context their hash, hex; else absent */
    bool bound;         /* its id and what is shown beside it are in its hash; older ones lack it */
    uint8_t about[HASH_BYTES]; /* of its execution: logchain_about */
};

/* Where the chain of an execution stands. */
struct log_head {
    struct uuid execution_id;
    int64_t seq;              /* of its last line, 0 = none */
    bool hashed;              /* false: no line with a hash yet, the next one begins the chain */
    uint8_t hash[HASH_BYTES];
};

/* Lines of an execution that were written, removed or emptied together: how many, and where the
 * chain stands at the last of them. */
struct log_part {
    struct log_head head;
    int64_t lines;
    bool follows;             /* written lines: `from` is the hash of the line before the first; */
    uint8_t from[HASH_BYTES]; /* zeros where that line has none. Otherwise they begin the chain, or
                                 a server of an older version wrote them */
    bool written;            /* a node that wrote them remembered this: others may name them, too */
    bool based;              /* removed lines: records name them up to `base`, as far as the */
    int64_t base;            /* server knew that removed them, and none of the later ones */
    bool emptied;            /* those of one level up to head.seq: they have lost what they said */
    enum log_severity level; /* of which one */
    bool closed;             /* its execution has ended: no line may follow */
    bool unread;             /* a record has it, but it cannot be read */
    bool refused;            /* not signed: a record of that was trimmed, and this repeats it */
    int64_t at_us;           /* removed or emptied: none of them was written later; 0 = unknown */
    int64_t window_ms;       /* retention had to keep them so long; 0 = a user removed them */
};

/* Takes what is stored of the last line; a hash that is none counts as not there. */
void logchain_resume(struct log_head *head, const struct uuid *execution_id, int64_t seq,
                     struct str chain_hash);

/* What stays of a line when its text goes: SHA-256 over message and context, each behind its
 * length. -ERR_MEMORY. */
int logchain_content(struct str message, struct str context, uint8_t out[HASH_BYTES]);

/* What readers show beside the lines of an execution: SHA-256 over which attempt it was, by which
 * worker, and the correlation id, each behind its length; an empty text counts as none.
 * -ERR_MEMORY; -ERR_INVALID for texts longer than any. */
int logchain_about(int64_t attempt_number, struct str worker_id, struct str correlation_id,
                   uint8_t out[HASH_BYTES]);

/* SHA-256 over the hash before (or the id), both ids, seq, level, time and the hash of the content,
 * where it is bound also the line's id and what it is about, each behind its length; the head then
 * stands at this line. So a line without its text is in the chain as it was with it. -ERR_INVALID:
 * line.removed is no hash. -ERR_MEMORY. The head then is as it was. */
int logchain_step(struct log_head *head, const struct log_line *line);

#endif
