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
/* After a commit: lines that were written and removed in it. What does not fit into the memory is
 * left to the notes. */
void log_memory_commit(struct log_memory *memory, const struct log_cuts *written,
                       const struct log_cuts *cuts, uint32_t cuts_count);
/* Is the chain at least where it was known to stand at `now`? */
bool log_memory_fits(struct log_memory *memory, uint64_t now, const struct log_last *last);

/* What is known since the last record; -ERR_MEMORY. Those that the parts name are left out. */
int log_memory_list(struct log_memory *memory, uint64_t now, const struct log_part *const *named,
                    const uint32_t *named_counts, uint32_t lists, struct log_cuts *out);
/* A record names them all by now. stays: later lines are still compared with what `listed` has. */
void log_memory_signed(struct log_memory *memory, uint64_t now, const struct log_cuts *listed,
                       bool stays);

#endif
