/* The hash that makes a damaged checkpoint show itself (B3). Pure; whoever loads a checkpoint to
 * resume from it computes the hash again and compares. */
#ifndef CORE_CHECKPOINT_H
#define CORE_CHECKPOINT_H

#include "core/task.h"

/* SHA-256 in hex over task id, seq, name, progress, description, data, database_state and
 * file_state, each with its length before it, so that no two different checkpoints read alike.
 * -ERR_MEMORY: no hash. */
int checkpoint_hash(const struct uuid *task_id, const struct checkpoint *checkpoint, char out[65]);

/* False when the hash it carries is not the one of its content. */
bool checkpoint_intact(const struct uuid *task_id, const struct checkpoint *checkpoint);

#endif
