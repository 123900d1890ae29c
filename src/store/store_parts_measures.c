/* Measures of several stores read as one: the rows of each, one store after the other; the caller
 * adds them up. A store that has failed is left out: incomplete figures are better than none. Each
 * reader belongs to one thread. */
#include "store/measure_store.h"
#include "store/store_parts_int.h"

static int gather(void **all, uint32_t *all_count, const void *rows, uint32_t count, size_t bytes,
                  struct arena *arena, struct err *err)
{
    char *grown = arena_alloc_array(arena, *all_count + count + 1, bytes);

    if (!grown)
        return err_no_memory(err);
    if (*all_count)
        memcpy(grown, *all, *all_count * bytes);
    if (count)
        memcpy(grown + *all_count * bytes, rows, count * bytes);
    *all = grown;
    *all_count += count;
    return 0;
}

static int read_hours(struct store_reader *base, struct str namespace_name, int64_t since_us,
                      struct arena *arena,
                      struct execution_hour **hours, uint32_t *count, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    void *all = NULL;
    uint32_t all_count = 0;

    for (uint32_t i = 0; i < reader->parts->base.parts; i++) {
        const struct store_verbs *verbs = reader->parts->stores[i]->verbs;

        if (parts_check(reader->parts, i, err) == 0 &&
            verbs->measures->read_hours(reader->readers[i], namespace_name, since_us, arena,
                                        hours, count,
                                        err) == 0 &&
            gather(&all, &all_count, *hours, *count, sizeof **hours, arena, err) < 0)
            return -(int)err->code;
    }
    *hours = all;
    *count = all_count;
    return 0;
}

static int read_waits(struct store_reader *base, struct arena *arena, struct queue_wait **waits,
                      uint32_t *count, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    void *all = NULL;
    uint32_t all_count = 0;

    for (uint32_t i = 0; i < reader->parts->base.parts; i++) {
        const struct store_verbs *verbs = reader->parts->stores[i]->verbs;

        if (parts_check(reader->parts, i, err) == 0 &&
            verbs->measures->read_waits(reader->readers[i], arena, waits, count, err) == 0 &&
            gather(&all, &all_count, *waits, *count, sizeof **waits, arena, err) < 0)
            return -(int)err->code;
    }
    *waits = all;
    *count = all_count;
    return 0;
}

/* If no store can be read, nothing is known. */
static int read_counts(struct store_reader *base, struct arena *arena, struct queue_count **counts,
                       uint32_t *count, struct err *err)
{
    struct parts_reader *reader = parts_reader_of(base);
    void *all = NULL;
    uint32_t all_count = 0;

    for (uint32_t i = 0; i < reader->parts->base.parts; i++) {
        const struct store_verbs *verbs = reader->parts->stores[i]->verbs;

        if (parts_check(reader->parts, i, err) == 0 &&
            verbs->measures->read_counts(reader->readers[i], arena, counts, count, err) == 0 &&
            gather(&all, &all_count, *counts, *count, sizeof **counts, arena, err) < 0)
            return -(int)err->code;
    }
    *counts = all;
    *count = all_count;
    return all ? 0 : -(int)err->code;
}

const struct measure_verbs parts_measure_verbs = {.read_hours = read_hours,
                                                  .read_waits = read_waits,
                                                  .read_counts = read_counts};
