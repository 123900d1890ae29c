/* The recovery queues and audit trails of several stores read as one: entries are ordered by their
 * whole ids over all stores, candidates by the order of discovery. Each reader belongs to one
 * thread. */
#include "store/audit_store.h"
#include "store/recovery_store.h"
#include "store/store_parts_int.h"

#include <stdlib.h>

static int read_entry(struct store_reader *base, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    struct err first = {0};

    *entry = NULL;
    for (uint32_t i = 0; i < reader->parts->base.parts && !*entry; i++) {
        int rc = parts_check(reader->parts, i, err);

        if (rc == 0)
            rc = reader->parts->stores[i]->verbs->recovery->read_entry(reader->readers[i], id,
                                                                       arena, entry, err);
        if (rc < 0 && first.code == ERR_NONE)
            first = *err;
    }
    if (*entry || first.code == ERR_NONE)
        return 0;
    *err = first;
    return -(int)err->code;
}

static int compare_entries(const void *a, const void *b)
{
    return memcmp(((const struct recovery_entry *)b)->id.bytes,
                  ((const struct recovery_entry *)a)->id.bytes, 16);
}

static int compare_candidates(const void *a, const void *b)
{
    const struct task *one = ((const struct recovery_candidate *)a)->task;
    const struct task *other = ((const struct recovery_candidate *)b)->task;

    if (one->spec.recovery_priority != other->spec.recovery_priority)
        return one->spec.recovery_priority > other->spec.recovery_priority ? -1 : 1;
    if (one->updated_at_us != other->updated_at_us)
        return one->updated_at_us < other->updated_at_us ? -1 : 1;
    return memcmp(one->id.bytes, other->id.bytes, 16);
}

/* Sorts a whole page of each part; as many as were asked for are the first of all. */
struct gathered {
    char *items;
    size_t bytes;
    uint32_t count;
};

static int gather(struct gathered *all, const void *items, uint32_t count, struct arena *arena,
                  struct err *err)
{
    char *grown = arena_alloc_array(arena, all->count + count + 1, all->bytes);

    if (!grown)
        return err_no_memory(err);
    if (all->count)
        memcpy(grown, all->items, all->count * all->bytes);
    if (count)
        memcpy(grown + all->count * all->bytes, items, count * all->bytes);
    all->items = grown;
    all->count += count;
    return 0;
}

static uint32_t sort_first(struct gathered *all, uint32_t limit,
                           int (*compare)(const void *, const void *))
{
    qsort(all->items, all->count, all->bytes, compare);
    return all->count < limit ? all->count : limit;
}

/* The body of a verb that reads a list: `list` becomes the first rows of all parts together. */
#define MERGED(group, verb, list, compare)                                                         \
    struct parts_reader *reader = parts_reader_of(base);                                           \
    struct gathered all = {.bytes = sizeof **(list)};                                              \
                                                                                                   \
    for (uint32_t i = 0; i < reader->parts->base.parts; i++) {                                     \
        TRY(parts_check(reader->parts, i, err));                                                   \
        TRY(reader->parts->stores[i]->verbs->group->verb(reader->readers[i], filter, arena, list,  \
                                                         count, err));                             \
        TRY(gather(&all, *(list), *count, arena, err));                                            \
    }                                                                                              \
    *count = sort_first(&all, filter->limit, compare);                                             \
    *(list) = (void *)all.items;                                                                   \
    return 0

static int read_entries(struct store_reader *base, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err)
{
    MERGED(recovery, read_entries, entries, compare_entries);
}

static int read_candidates(struct store_reader *base, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err)
{
    MERGED(recovery, read_candidates, candidates, compare_candidates);
}

const struct recovery_verbs parts_recovery_verbs = {.read_entry = read_entry,
                                                           .read_entries = read_entries,
                                                           .read_candidates = read_candidates};

/* ---- audit trails ---- */

static int compare_audit(const void *a, const void *b)
{
    return memcmp(((const struct audit_entry *)b)->id.bytes,
                  ((const struct audit_entry *)a)->id.bytes, 16);
}

static int read_audit(struct store_reader *base, const struct audit_filter *filter,
                      struct arena *arena, struct audit_entry **entries, uint32_t *count,
                      struct err *err)
{
    MERGED(audit, read, entries, compare_audit);
}

const struct audit_verbs parts_audit_verbs = {.read = read_audit};
