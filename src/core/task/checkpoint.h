/* The hash that reveals a damaged checkpoint (B3). Pure; code that loads a checkpoint to
 * resume from it computes the hash again and compares. */
#ifndef CORE_TASK_CHECKPOINT_H
#define CORE_TASK_CHECKPOINT_H

#include "core/task/task.h"

/* SHA-256 in hex over task id, seq, name, progress, description, data, database_state and
 * file_state, each with its length before it, so that no two different checkpoints read alike.
 * -ERR_MEMORY: no hash. */
int checkpoint_hash(const struct uuid *task_id, const struct checkpoint *checkpoint, char out[65]);

/* Which of a task's checkpoints goes when there is one too many (BOUND_CHECKPOINTS_KEPT): never the
 * first and none of the newest few; of those between, the one whose absence is felt the least, so
 * that they lie the farther apart the older they are. seqs grow; count is above 2. */
#define CHECKPOINTS_DENSE 8
uint32_t checkpoint_thin(const int64_t *seqs, uint32_t count);

/* The seqs a task has; room for more than a store ever keeps. */
#define CHECKPOINT_SEQS_MAX 64
struct checkpoint_seqs {
    int64_t seqs[CHECKPOINT_SEQS_MAX]; /* growing */
    uint32_t count;
};

/* False when the hash it carries is not the one of its content. */
bool checkpoint_intact(const struct uuid *task_id, const struct checkpoint *checkpoint);

#endif
