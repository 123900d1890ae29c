/* Entries get their numbers, hashes and codes at the end of the transaction, under the chain's lock
 * where nodes share a store. The newest entry is believed only with the code of the log key; behind
 * another one the chain continues all the same, because changes must not wait, but a signed record
 * says that it was refused, and verification names it for ever. */
#include "engine/audit/trail.h"

#include "base/fault.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/audit_store.h"

#define SIGNED_FACT "audit_signed" /* the number of the newest entry that a record names */
#define PRUNE_ROWS 500

static const struct audit_verbs *verbs_of(const struct batch *batch)
{
    return batch->store->verbs->audit;
}

/* ---- noting ---- */

static int add(struct batch *batch, const struct audit_entry *entry, struct err *err)
{
    if (!verbs_of(batch))
        return 0;
    TRY_MEMORY(BATCH_GROW(batch, batch->audit.entries));
    batch->audit.entries.items[batch->audit.entries.count++] = *entry;
    batch->wrote = true;
    return 0;
}

int trail_note_in(struct batch *batch, const struct request *request, struct str namespace_name,
                  const char *action, const char *object_kind, struct str object_id,
                  struct str change, struct err *err)
{
    struct audit_entry entry = {.namespace_name = arena_str(&batch->arena, namespace_name),
                                .action = str_of(action),
                                .object_kind = str_of(object_kind),
                                .object_id = arena_str(&batch->arena, object_id),
                                .change = change,
                                .outcome = STR(AUDIT_DONE)};

    if (!request->caller || request->caller->is_program)
        return 0;
    audit_by(&entry, request->caller, &batch->arena);
    return add(batch, &entry, err);
}

int trail_note(struct batch *batch, const struct request *request, const char *action,
               const char *object_kind, struct str object_id, struct str change, struct err *err)
{
    return trail_note_in(batch, request, STR_NONE, action, object_kind, object_id, change, err);
}

int trail_note_id(struct batch *batch, const struct request *request, const char *action,
                  const char *object_kind, const struct uuid *id, struct str change,
                  struct err *err)
{
    char text[UUID_TEXT_BYTES];

    uuid_format(id, text);
    return trail_note(batch, request, action, object_kind, str_of(text), change, err);
}

int trail_apply(struct batch *batch, struct request *base)
{
    struct audit_request *request = (struct audit_request *)base;

    for (uint32_t i = 0; i < request->count; i++)
        TRY(add(batch, &request->entries[i], &base->err));
    return 0;
}

/* ---- writing ---- */

static bool is_proven(const struct batch *batch, const struct audit_entry *entry,
                      struct log_note *note)
{
    audit_note(entry, note);
    return !batch->store->log_mac || logmac_good(batch->store->log_mac, note);
}

static bool same_head(const struct log_head *a, const struct log_head *b)
{
    return a->seq == b->seq && memcmp(a->hash, b->hash, sizeof a->hash) == 0;
}

/* Where the chain continues. An entry that is not proven is refused; one that this writer made and
 * that is gone leaves a hole, which verification names. */
static int find_head(struct batch *batch, struct log_head *head, struct err *err)
{
    const struct log_head *known = &batch->engine->heads.trail.head;
    struct audit_entry *entry;
    struct log_note note;

    *head = (struct log_head){.execution_id = audit_chain};
    TRY(verbs_of(batch)->last(batch->store, true, &batch->arena, &entry, err));
    if (entry && !is_proven(batch, entry, &note)) {
        batch->store->log_doubt =
            (struct log_doubt){"the newest entry of the audit trail was refused", audit_chain};
        TRY_MEMORY(log_cuts_add(&batch->logs.refused, &audit_chain, entry->seq, entry->chain_hash,
                                0, 0) == 0);
    }
    if (entry)
        *head = note.part.head;
    if (known->seq > head->seq || (!batch->store->shared && known->seq && !same_head(known, head)))
        batch->store->log_doubt =
            (struct log_doubt){"entries of the audit trail were added or removed", audit_chain};
    if (known->seq > head->seq)
        *head = *known;
    return 0;
}

static struct str hex_of(const uint8_t hash[HASH_BYTES], struct arena *arena)
{
    char text[HASH_HEX_BYTES + 1];

    hash_hex(hash, HASH_BYTES, text);
    return arena_str(arena, str_of(text));
}

static int chain(struct batch *batch, struct audit_entry *entry, struct log_head *head,
                 struct buf *text, struct err *err)
{
    struct log_line line;
    struct log_note note;

    entry->seq = head->seq + 1;
    entry->id = uuid7_new(&batch->engine->ids, batch->now_us);
    entry->at_us = batch->now_us;
    TRY_MEMORY(audit_line(entry, text, &line) == 0 && logchain_step(head, &line) == 0);
    entry->chain_hash = hex_of(head->hash, &batch->arena);
    audit_note(entry, &note);
    TRY_MEMORY(log_note_seal(batch->store, &note) == 0);
    entry->mac = arena_str(&batch->arena, str_of(note.mac));
    return 0;
}

int trail_write(struct batch *batch, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
    struct log_head head;

    if (batch->audit.entries.count == 0)
        return 0;
    TRY(log_heads_ready(batch, err));
    TRY(find_head(batch, &head, err));
    for (uint32_t i = 0; i < batch->audit.entries.count; i++)
        TRY(chain(batch, &batch->audit.entries.items[i], &head, &text, err));
    TRY_MEMORY(!batch->arena.failed);
    batch->audit.head = head;
    log_heads_note(batch);
    FAULT_POINT("audit.insert");
    return verbs_of(batch)->insert(batch->store, batch->audit.entries.items,
                                   batch->audit.entries.count, err);
}

void trail_committed(struct engine *engine, const struct batch *batch)
{
    if (batch->audit.entries.count > 0)
        engine->heads.trail.head = batch->audit.head;
}

/* ---- records ---- */

static int read_signed(struct batch *batch, int64_t *seq, struct err *err)
{
    struct str text;

    *seq = 0;
    TRY(batch->store->verbs->info_get(batch->store, SIGNED_FACT, &batch->arena, &text, err));
    if (text.data)
        str_to_int64(text, seq);
    return 0;
}

int trail_unsigned(struct batch *batch, struct log_part *head, bool *any, struct err *err)
{
    struct audit_entry *entry;
    struct log_note note;
    int64_t signed_seq;

    *any = false;
    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->last(batch->store, false, &batch->arena, &entry, err));
    if (!entry)
        return 0;
    TRY(read_signed(batch, &signed_seq, err));
    if (entry->seq == signed_seq)
        return 0;
    *head = (struct log_part){.refused = !is_proven(batch, entry, &note)};
    head->head = note.part.head;
    *any = true;
    if (head->refused)
        batch->store->log_doubt =
            (struct log_doubt){"the newest entry of the audit trail was not signed", audit_chain};
    return 0;
}

int trail_signed(struct batch *batch, const struct log_part *head, struct err *err)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)head->head.seq);
    return batch->store->verbs->info_put(batch->store, SIGNED_FACT, str_of(text), err);
}

/* ---- retention ---- */

struct cut_found {
    struct log_mac *mac;
    struct log_head head; /* seq 0 = nothing was removed yet, or the note of it is not the key's */
};

static void on_cut(void *ctx, const struct log_note *note)
{
    struct cut_found *cut = ctx;

    if (str_is(note->closed, LOG_NOTE_CUT) && (!cut->mac || logmac_good(cut->mac, note)))
        cut->head = note->part.head;
}

static void on_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    (void)ctx;
    (void)line;
    (void)chain_hash;
}

/* Where an earlier removal left the chain. */
static int find_cut(struct batch *batch, struct log_head *head, struct err *err)
{
    const struct log_range range = {.execution_id = audit_chain};
    struct cut_found cut = {.mac = batch->store->log_mac,
                            .head = {.execution_id = audit_chain}};
    const struct log_walk walk = {.note = on_cut, .line = on_line, .ctx = &cut};

    TRY(batch->store->verbs->logs->chains_read(batch->store, &range, 1, 1, &walk, err));
    *head = cut.head;
    return 0;
}

/* Entries are removed only as far as they prove to be what was written: each continues the one
 * before, and the last one carries the key's code, which covers when it was made. */
static int check_run(struct batch *batch, const struct audit_entry *entries, uint32_t count,
                     bool *fits, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
    struct log_head head;
    struct log_line line;
    struct log_note note;

    TRY(find_cut(batch, &head, err));
    *fits = is_proven(batch, &entries[count - 1], &note);
    for (uint32_t i = 0; *fits && i < count; i++)
        *fits = entries[i].seq == head.seq + 1 && audit_line(&entries[i], &text, &line) == 0 &&
                logchain_step(&head, &line) == 0 &&
                str_eq(hex_of(head.hash, &batch->arena), entries[i].chain_hash);
    return 0;
}

/* The rest begins behind it. */
static int note_cut(struct batch *batch, const struct audit_entry *entry, struct err *err)
{
    const struct log_verbs *logs = batch->store->verbs->logs;
    struct log_note note = {.closed = STR(LOG_NOTE_CUT)};

    logchain_resume(&note.part.head, &audit_chain, entry->seq, entry->chain_hash);
    TRY(logs->heads_forget(batch->store, &note, 1, err));
    return logs->heads_put(batch->store, &note, 1, err);
}

int trail_prune(struct batch *batch, int64_t before_us, int64_t window_ms, bool *more,
                struct err *err)
{
    struct log_cuts *cuts = &batch->logs.cuts[CUT_RETENTION];
    struct audit_entry *entries;
    uint32_t count, old = 0;
    int64_t removed = 0;
    bool fits;

    *more = false;
    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->first(batch->store, PRUNE_ROWS, &batch->arena, &entries, &count, err));
    while (old < count && entries[old].at_us < before_us)
        old++;
    if (old == count && old > 0)
        old--; /* the newest one stays: the chain continues from it */
    if (old == 0)
        return 0;
    TRY(log_heads_ready(batch, err));
    TRY(check_run(batch, entries, old, &fits, err));
    if (!fits) {
        batch->store->log_doubt =
            (struct log_doubt){"old entries of the audit trail were kept", audit_chain};
        return 0;
    }
    TRY(verbs_of(batch)->remove(batch->store, entries[old - 1].seq, &removed, err));
    TRY_MEMORY(log_checked_add(batch->store, &audit_chain) == 0);
    cuts->window_ms = window_ms;
    TRY_MEMORY(log_cuts_add(cuts, &audit_chain, entries[old - 1].seq, entries[old - 1].chain_hash,
                            old, entries[old - 1].at_us) == 0);
    batch->wrote = true;
    *more = old == PRUNE_ROWS;
    return note_cut(batch, &entries[old - 1], err);
}
