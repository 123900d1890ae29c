/* The hash of a checkpoint: its fields in a fixed order, each behind its length, an absent one
 * marked so that it differs from an empty one. Pure, any thread. */
#include "core/task/checkpoint.h"

#include "base/err.h"
#include "base/hash.h"

#define ABSENT UINT64_MAX /* no text is this long */

static void add_field(struct hash_state *state, const void *data, uint64_t len)
{
    uint8_t prefix[8];

    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(len >> (56 - 8 * i));
    hash_sha256_add(state, str_span((const char *)prefix, sizeof prefix));
    if (data && len)
        hash_sha256_add(state, str_span(data, (size_t)len));
}

static void add_text(struct hash_state *state, struct str text)
{
    add_field(state, text.data, text.data ? text.len : ABSENT);
}

static void add_number(struct hash_state *state, int64_t value)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    add_field(state, bytes, sizeof bytes);
}

int checkpoint_hash(const struct uuid *task_id, const struct checkpoint *checkpoint, char out[65])
{
    struct hash_state *state = hash_sha256_begin();
    uint8_t hash[HASH_BYTES];

    add_field(state, task_id->bytes, sizeof task_id->bytes);
    add_number(state, checkpoint->seq);
    add_text(state, checkpoint->name);
    add_number(state, checkpoint->progress);
    add_text(state, checkpoint->description);
    add_text(state, checkpoint->data);
    add_text(state, checkpoint->database_state);
    add_text(state, checkpoint->file_state);
    if (hash_sha256_end(state, hash) < 0)
        return -ERR_MEMORY;
    hash_hex(hash, sizeof hash, out);
    return 0;
}

/* The hole it would leave, measured by how long ago it was: made by cross multiplication, as seqs
 * stay far below 2^31. */
uint32_t checkpoint_thin(const int64_t *seqs, uint32_t count)
{
    uint32_t dense = count > CHECKPOINTS_DENSE + 2 ? CHECKPOINTS_DENSE : 1;
    uint32_t best = 1;

    for (uint32_t i = 2; i < count - dense; i++) {
        int64_t hole = seqs[i + 1] - seqs[i - 1];
        int64_t best_hole = seqs[best + 1] - seqs[best - 1];

        if (hole * (seqs[count - 1] - seqs[best]) < best_hole * (seqs[count - 1] - seqs[i]))
            best = i;
    }
    return best;
}

bool checkpoint_intact(const struct uuid *task_id, const struct checkpoint *checkpoint)
{
    char hash[65];

    return checkpoint_hash(task_id, checkpoint, hash) < 0 ||
           memcmp(hash, checkpoint->hash, sizeof hash) == 0;
}
