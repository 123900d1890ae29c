/* Where the chains stood that this process has continued: it signs that although an attacker has
 * taken lines and notes out of the store since, and continues none of them from an earlier line
 * (F-J5). One for all writers of a node; any thread. A start knows nothing of the time before. */
#ifndef STORE_LOG_MEMORY_H
#define STORE_LOG_MEMORY_H

#include "core/log/logmac.h"
#include "store/log_store.h"

struct log_memory;

struct log_memory *log_memory_new(void); /* NULL: out of memory */
void log_memory_free(struct log_memory *memory);

/* A transaction that begins now sees all lines that are known by now, and no later ones. */
uint64_t log_memory_now(struct log_memory *memory);
/* After a commit: lines that were written and removed in it, and executions whose lines a record
 * refuses. What does not fit into the memory is left to the notes. */
void log_memory_commit(struct log_memory *memory, const struct log_cuts *written,
                       const struct log_cuts *refused, const struct log_cuts *cuts,
                       uint32_t cuts_count);
/* So much that a record should be made before more comes. */
bool log_memory_is_full(struct log_memory *memory);
/* Does a record say that lines of it are not signed? */
bool log_memory_refused(struct log_memory *memory, const struct uuid *execution_id);
/* Where it was known to stand at `now`; false: it is not known. */
bool log_memory_known(struct log_memory *memory, uint64_t now, const struct uuid *execution_id,
                      struct log_head *head);
/* Is the chain at least there? */
bool log_memory_fits(struct log_memory *memory, uint64_t now, const struct log_last *last);

/* The newest record that this process made or found; serial 0 = none. */
void log_memory_put_newest(struct log_memory *memory, int64_t serial,
                           const char hash[HASH_HEX_BYTES + 1]);
int64_t log_memory_newest(struct log_memory *memory, char hash[HASH_HEX_BYTES + 1]);
/* The database has another past now, which may lack the last of all this. */
void log_memory_forget(struct log_memory *memory);

/* What is known since the last record; -ERR_MEMORY. Those that the parts name are left out; where
 * other nodes write lines (shared), a part that names a later one does not count. */
int log_memory_list(struct log_memory *memory, uint64_t now, bool shared,
                    const struct log_part *const *named, const uint32_t *named_counts,
                    uint32_t lists, struct log_cuts *out);
/* Of what a transaction wrote: the records that it made itself name these. */
void log_written_drop(struct log_cuts *written, const struct log_part *const *named,
                      const uint32_t *named_counts, uint32_t lists);
/* A record names them all by now, but those that wait for one. Later lines are still compared with
 * what `listed` has: no note told of those, and their record does not say which lines come before.
 * found: the newest record there is by now; 0 = it did not look. */
void log_memory_signed(struct log_memory *memory, uint64_t now, const struct log_cuts *listed,
                       const struct log_cuts *waiting, int64_t found);
/* Have some waited three times? Then the leader does not name them. */
bool log_memory_waits(struct log_memory *memory);
/* Records about what is known and not signed come behind this one. */
int64_t log_memory_found(struct log_memory *memory);

#endif
