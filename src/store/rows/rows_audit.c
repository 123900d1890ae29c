/* The audit trail, once for every store. The first half belongs to the writer's thread, `read` to
 * readers; walks also run on a store that is only looked at. */
#include "store/audit_store.h"
#include "store/rows/rows_verbs.h"

#include "core/log/audit_fields.h"

#define WALK_ROWS 500

static int last(struct store *store, bool lock, struct arena *arena, struct audit_entry **entry,
                struct err *err)
{
    if (lock && store->shared)
        TRY(rows_run(rows_of(store), ROWS_PLAIN(ROWS_audit_lock), NULL, err));
    return rows_one(rows_of(store), ROWS_PLAIN(ROWS_audit_last), &audit_table, arena,
                    ROWS_INTO(entry), err);
}

static int insert(struct store *store, const struct audit_entry *entries, uint32_t count,
                  struct err *err)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(rows_save(rows_of(store), ROWS_audit_insert, &audit_table, &entries[i], err));
    return 0;
}

static int behind(struct store *store, int64_t seq, uint32_t limit, struct arena *arena,
                  struct audit_entry **entries, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_QUERY(ROWS_audit_behind, value_int(seq),
                                                value_int(limit)),
                     &audit_table, arena, ROWS_INTO(entries), count, err);
}

static int prove(struct store *store, int64_t seq, struct str mac, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_audit_prove, value_int(seq), value_text(mac)),
                    NULL, err);
}

static int remove_through(struct store *store, int64_t through_seq, int64_t *removed,
                          struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_audit_remove, value_int(through_seq)), removed,
                    err);
}

static int read_entries(struct store_reader *reader, const struct audit_filter *filter,
                        struct arena *arena, struct audit_entry **entries, uint32_t *count,
                        struct err *err)
{
    return rows_take(
        rows_of_reader(reader),
        ROWS_QUERY(ROWS_list_audit, value_text(filter->namespace_name),
                   value_text(filter->principal), value_text(filter->action),
                   value_text(filter->object_kind), value_text(filter->object_id),
                   value_text(filter->outcome), value_time(filter->after_us),
                   value_time(filter->before_us), value_uuid(&filter->before_id),
                   value_int(rows_limit(filter->limit))),
        &audit_table, arena, ROWS_INTO(entries), count, err);
}

const struct audit_verbs rows_audit_verbs = {
    .last = last,
    .insert = insert,
    .behind = behind,
    .prove = prove,
    .remove = remove_through,
    .read = read_entries,
};

int audit_walk_note(struct store *store, const struct log_walk *walk, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct audit_entry *entry;
    struct log_note note;

    TRY(last(store, false, &arena, &entry, err));
    if (!entry)
        return 0;
    audit_note(entry, &note);
    walk->note(walk->ctx, &note);
    return 0;
}

int audit_walk_lines(struct store *store, const struct log_walk *walk, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(16 * AUDIT_TEXT_BYTES_MAX * 6);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct audit_entry *entries;
    struct log_line line;
    int64_t seq = INT64_MIN;
    uint32_t count;

    do {
        arena_reset(&arena);
        TRY(behind(store, seq, WALK_ROWS, &arena, &entries, &count, err));
        for (uint32_t i = 0; i < count; i++) {
            if (audit_line(&entries[i], &text, &line) < 0)
                line.message = STR_NONE; /* longer than any: its hash differs */
            walk->line(walk->ctx, &line, entries[i].chain_hash);
            seq = entries[i].seq;
        }
    } while (count == WALK_ROWS);
    return 0;
}
