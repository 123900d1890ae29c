/* What this node remembers of the lines it wrote and no note of this transaction names. Where the
 * store is ours alone they are gone: no other node signs or removes them. Where it is shared,
 * another node may have signed them, may be about to, or has removed them and signed that;
 * otherwise they are gone here, too. A record says which lines are gone, and verification names
 * them for ever: other lines may take their numbers after a restart, which remembers nothing
 * (F-J5). Runs on the thread that has the turn. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"
#include "store/audit_store.h"
#include "store/log_memory.h"

#define RUNS 1000
#define LOOK_ROWS 50

enum fate {
    FATE_NAMED,  /* a record names exactly these lines */
    FATE_WAITS,  /* the note of them is there */
    FATE_BEHIND, /* others follow them: a record may name them with those */
    FATE_GONE
};

static bool is_cut(const struct batch *batch, const struct log_head *head)
{
    for (int i = 0; i < CUT_REASON_COUNT; i++)
        for (uint32_t at = 0; at < batch->logs.cuts[i].count; at++) {
            const struct log_head *cut = &batch->logs.cuts[i].items[at].head;

            if (cut->seq >= head->seq && uuid_eq(&cut->execution_id, &head->execution_id))
                return true;
        }
    return false;
}

static bool is_continued(const struct batch *batch, const struct log_head *head)
{
    for (uint32_t i = 0; i < batch->logs.written.count; i++)
        if (uuid_eq(&batch->logs.written.items[i].head.execution_id, &head->execution_id))
            return true;
    return false;
}

/* This transaction removed them itself, or compared them with what is known and continued them. */
static void drop_own(const struct batch *batch, struct log_cuts *found)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < found->count; i++)
        if (!is_cut(batch, &found->items[i].head) && !is_continued(batch, &found->items[i].head))
            found->items[kept++] = found->items[i];
    found->count = kept;
}

static bool same_hash(const struct log_head *head, struct str chain_hash)
{
    char hex[HASH_HEX_BYTES + 1];

    hash_hex(head->hash, sizeof head->hash, hex);
    return str_is(chain_hash, hex);
}

/* ---- what the store says of them ---- */

static int add(struct log_cuts *list, const struct log_part *part)
{
    char hex[HASH_HEX_BYTES + 1];

    hash_hex(part->head.hash, HASH_BYTES, hex);
    TRY(log_cuts_add(list, &part->head.execution_id, part->head.seq, str_of(hex), 0, 0));
    list->items[list->count - 1].written = part->written;
    return 0;
}

static enum fate fate_of_run(const struct batch *batch, const struct log_head *head,
                             const struct log_last *last)
{
    if (last->seq > head->seq)
        return FATE_BEHIND;
    if (last->seq < head->seq || !same_hash(head, last->chain_hash) ||
        !logmac_trusts(batch->store->log_mac, last))
        return FATE_GONE;
    return last->note.part.lines > 0 ? FATE_WAITS : FATE_NAMED;
}

static int fate_of_trail(struct batch *batch, const struct log_head *head, enum fate *fate,
                         struct err *err)
{
    struct audit_entry *entries;
    struct log_head named;
    uint32_t count;

    TRY(batch->store->verbs->audit->behind(batch->store, head->seq - 1, 1, &batch->arena, &entries,
                                           &count, err));
    TRY(trail_named(batch, &named, err));
    if (count == 0 || entries[0].seq != head->seq || !same_hash(head, entries[0].chain_hash))
        *fate = FATE_GONE;
    else if (named.seq < head->seq)
        *fate = FATE_WAITS;
    else
        *fate = named.seq > head->seq ? FATE_BEHIND : FATE_NAMED;
    return 0;
}

/* An attacker may have put lines of his own behind those that he removed, or had another node put
 * others in their place. */
static int find_gone_behind(struct batch *batch, const struct log_cuts *found, enum fate *fates,
                            struct err *err)
{
    struct log_part *behind = TRY_MEMORY(arena_alloc_array(&batch->arena, found->count + 1,
                                                           sizeof *behind));
    bool *stand = TRY_MEMORY(arena_alloc_array(&batch->arena, found->count + 1, sizeof *stand));
    uint32_t count = 0, at = 0;

    for (uint32_t i = 0; i < found->count; i++)
        if (fates[i] == FATE_BEHIND && !audit_is_chain(&found->items[i].head.execution_id))
            behind[count++] = found->items[i];
    if (count == 0)
        return 0;
    TRY(batch->store->verbs->logs->heads_stand(batch->store, behind, count, stand, err));
    for (uint32_t i = 0; i < found->count; i++)
        if (fates[i] == FATE_BEHIND && !audit_is_chain(&found->items[i].head.execution_id) &&
            !stand[at++])
            fates[i] = FATE_GONE;
    return 0;
}

static int find_fates(struct batch *batch, const struct log_cuts *found, enum fate *fates,
                      struct err *err)
{
    struct log_range ranges[RUNS] = {{.to_seq = 0}};
    struct log_run *runs = TRY_MEMORY(arena_alloc_array(&batch->arena, RUNS, sizeof *runs));

    for (uint32_t from = 0; from < found->count; from += RUNS) {
        uint32_t some = found->count - from < RUNS ? found->count - from : RUNS;

        for (uint32_t i = 0; i < some; i++)
            ranges[i].execution_id = found->items[from + i].head.execution_id;
        TRY(batch->store->verbs->logs->runs_find(batch->store, ranges, some, &batch->arena, runs,
                                                 err));
        for (uint32_t i = 0; i < some; i++) {
            const struct log_head *head = &found->items[from + i].head;

            fates[from + i] = fate_of_run(batch, head, &runs[i].last);
            if (audit_is_chain(&head->execution_id))
                TRY(fate_of_trail(batch, head, &fates[from + i], err));
        }
    }
    return find_gone_behind(batch, found, fates, err);
}

/* ---- what records say of those that are gone ---- */

static void excuse(const struct anchor *anchor, const struct log_cuts *found, enum fate *fates)
{
    struct json_iter iter;
    struct log_part item;
    uint32_t count = 0;

    json_begin(anchor->items, &iter);
    while (count++ < ANCHOR_ITEMS_MAX && anchor_next_item(&iter, &item))
        for (uint32_t i = 0; i < found->count; i++)
            if (fates[i] == FATE_GONE && item.head.seq >= found->items[i].head.seq &&
                uuid_eq(&item.head.execution_id, &found->items[i].head.execution_id))
                fates[i] = FATE_NAMED;
}

/* Another node has removed them and said so, in the transaction that did it. Only records behind
 * the newest one that was there before they were written can. */
static int find_cuts(struct batch *batch, const struct log_cuts *found, enum fate *fates,
                     struct err *err)
{
    int64_t after = log_memory_found(batch->store->log_memory);
    struct anchor anchor;
    uint32_t count, gone = 0;

    for (uint32_t i = 0; i < found->count; i++)
        gone += fates[i] == FATE_GONE;
    do {
        ARENA_AUTO struct arena page = ARENA_INIT(0);
        struct anchor_row *rows;

        if (gone == 0)
            return 0;
        TRY(batch->store->verbs->logs->anchors_read(batch->store, after, LOOK_ROWS, &page, &rows,
                                                    &count, err));
        for (uint32_t i = 0; i < count; i++) {
            after = rows[i].serial;
            if (log_record_trusted(&batch->engine->heads, &rows[i], &anchor) &&
                (anchor.kind == ANCHOR_CUTS || anchor.kind == ANCHOR_REFUSED))
                excuse(&anchor, found, fates);
        }
    } while (count == LOOK_ROWS);
    return 0;
}

/* ---- all of it ---- */

static int sort_found(struct batch *batch, const struct log_cuts *found, const enum fate *fates,
                      struct err *err)
{
    for (uint32_t i = 0; i < found->count; i++) {
        struct log_part part = found->items[i];

        if (fates[i] == FATE_WAITS)
            TRY_MEMORY(add(&batch->logs.waiting, &part) == 0);
        if (fates[i] == FATE_BEHIND || fates[i] == FATE_GONE)
            TRY_MEMORY(add(&batch->logs.remembered, &part) == 0);
        part.written = false;
        if (fates[i] != FATE_GONE)
            continue;
        TRY_MEMORY(add(&batch->logs.gone, &part) == 0);
        batch->store->log_doubt = (struct log_doubt){"lines are gone that this server wrote, and "
                                                     "it signs that they were there",
                                                     part.head.execution_id};
    }
    return 0;
}

int log_recall(struct batch *batch, const struct log_part *const *named, const uint32_t *counts,
               uint32_t lists, struct err *err)
{
    struct log_cuts found = {.arena = &batch->arena};
    enum fate *fates;
    bool waits;

    if (!batch->store->log_memory)
        return 0;
    TRY(log_key_look(batch, &waits, err));
    if (waits)
        return 0;
    if (log_memory_list(batch->store->log_memory, batch->store->log_seen, batch->store->shared,
                        named, counts, lists, &found) < 0)
        return err_no_memory(err);
    drop_own(batch, &found);
    if (found.count > 0)
        TRY(log_heads_ready(batch, err));
    batch->logs.recalled = true;
    fates = TRY_MEMORY(arena_alloc_array(&batch->arena, found.count + 1, sizeof *fates));
    for (uint32_t i = 0; i < found.count; i++)
        fates[i] = FATE_GONE;
    if (batch->store->shared && batch->store->log_mac) {
        TRY(find_fates(batch, &found, fates, err));
        TRY(find_cuts(batch, &found, fates, err));
    }
    return sort_found(batch, &found, fates, err);
}
