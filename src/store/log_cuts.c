/* The list of what a transaction removed of logs or emptied, for both stores. Writer's thread. */
#include "store/log_store.h"

static bool grow(struct log_cuts *cuts)
{
    uint32_t cap = cuts->cap ? 2 * cuts->cap : 32;
    struct log_part *items = arena_alloc_array(cuts->arena, cap, sizeof *items);

    if (!items)
        return false;
    if (cuts->count)
        memcpy(items, cuts->items, cuts->count * sizeof *items);
    cuts->items = items;
    cuts->cap = cap;
    return true;
}

/* Rows of one delete come in any order; the chain continues from the highest line. */
int log_cuts_add(struct log_cuts *cuts, const struct uuid *execution_id, int64_t seq,
                 struct str chain_hash, int64_t lines, int64_t at_us)
{
    struct log_part *last = cuts && cuts->count ? &cuts->items[cuts->count - 1] : NULL;

    if (!cuts)
        return 0;
    if (!last || !uuid_eq(&last->head.execution_id, execution_id)) {
        if (cuts->count == cuts->cap && !grow(cuts))
            return -ERR_MEMORY;
        last = &cuts->items[cuts->count++];
        *last = (struct log_part){.head.execution_id = *execution_id,
                                  .window_ms = cuts->window_ms};
    }
    last->lines += lines;
    if (at_us > last->at_us)
        last->at_us = at_us;
    if (seq > last->head.seq)
        logchain_resume(&last->head, execution_id, seq, chain_hash);
    return 0;
}

int log_blanks_add(struct log_cuts *blanks, const struct uuid *execution_id, int64_t seq,
                   enum log_severity level, int64_t lines, int64_t at_us)
{
    struct log_part *last = blanks->count ? &blanks->items[blanks->count - 1] : NULL;

    if (!last || last->level != level || last->window_ms != blanks->window_ms ||
        !uuid_eq(&last->head.execution_id, execution_id)) {
        if (blanks->count == blanks->cap && !grow(blanks))
            return -ERR_MEMORY;
        last = &blanks->items[blanks->count++];
        *last = (struct log_part){.head.execution_id = *execution_id, .emptied = true,
                                  .level = level, .window_ms = blanks->window_ms};
    }
    last->lines += lines;
    if (at_us > last->at_us)
        last->at_us = at_us;
    if (seq > last->head.seq)
        last->head.seq = seq;
    return 0;
}
