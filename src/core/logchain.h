/* The chain that makes a changed log show itself (D9, F-J5): every line of an execution carries a
 * hash over itself and the hash of the line before, the first one over the execution's id. Pure;
 * stores write it together with the line, verification computes it again. */
#ifndef CORE_LOGCHAIN_H
#define CORE_LOGCHAIN_H

#include "base/hash.h"
#include "base/uuid7.h"
#include "core/report.h"

struct log_line {
    struct uuid execution_id;
    struct uuid task_id; /* that the execution is of: nobody can give it to another */
    int64_t seq;
    enum log_severity level;
    struct str message;
    struct str context; /* absent differs from empty */
    int64_t logged_at_us;
};

/* Where the chain of an execution stands. */
struct log_head {
    struct uuid execution_id;
    int64_t seq;              /* of its last line, 0 = none */
    bool hashed;              /* false: no line with a hash yet, the next one begins the chain */
    uint8_t hash[HASH_BYTES];
};

/* Lines of an execution that were written or removed together: how many, and where the chain stands
 * at the last of them. */
struct log_part {
    struct log_head head;
    int64_t lines;
};

/* Takes what is stored of the last line; a hash that is none counts as not there. */
void logchain_resume(struct log_head *head, const struct uuid *execution_id, int64_t seq,
                     struct str chain_hash);

/* SHA-256 over the hash before (or the id), both ids, seq, level, time, message and context, each
 * behind its length; the head then stands at this line. -ERR_MEMORY: no hash, and the head as it
 * was. */
int logchain_step(struct log_head *head, const struct log_line *line);

#endif
