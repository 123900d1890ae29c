/* Entries get their numbers, hashes and codes at the end of the transaction, under the chain's lock
 * where nodes share a store. The newest entry is believed only with the code of the log key; behind
 * another one the chain continues all the same, because changes must not wait, but a signed record
 * says that it was refused, and verification names it for ever. */
#include "engine/audit/trail.h"

#include "base/fault.h"
#include "base/json.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "store/audit_store.h"

#define PRUNE_ROWS 500
#define LOOK_ROWS 500

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

int trail_note_refused(struct batch *batch, const struct request *request, const char *action,
                       const struct uuid *task_id, const struct err *why, struct err *err)
{
    BUF_AUTO struct buf change = BUF_INIT(AUDIT_CHANGE_BYTES_MAX);
    struct audit_entry entry = {.action = str_of(action),
                                .object_kind = STR("task"),
                                .outcome = STR(AUDIT_REFUSED)};
    char id[UUID_TEXT_BYTES];

    uuid_format(task_id, id);
    buf_format(&change, "{\"code\":\"%s\"", err_word(why->code));
    json_write_member_string(&change, "reason", str_of(why->text));
    buf_byte(&change, '}');
    entry.object_id = arena_str(&batch->arena, str_of(id));
    entry.change = arena_str(&batch->arena, buf_view(&change));
    TRY_MEMORY(entry.object_id.data && entry.change.data);
    audit_by(&entry, request->caller, &batch->arena);
    return add(batch, &entry, err);
}

int trail_note_configured(struct batch *batch, const char *action, const char *object_kind,
                          struct str object_id, struct err *err)
{
    const struct audit_entry entry = {.namespace_name = STR("*"),
                                      .principal = STR("configuration"),
                                      .action = str_of(action),
                                      .object_kind = str_of(object_kind),
                                      .object_id = arena_str(&batch->arena, object_id),
                                      .outcome = STR(AUDIT_DONE)};

    return add(batch, &entry, err);
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
    TRY_MEMORY(log_written_add(batch->store, &head) == 0);
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

/* ---- what the key has noted ---- */

struct trail_notes {
    struct log_mac *mac;
    struct log_head cut;   /* the rest begins behind it; seq 0 = nothing was removed yet */
    struct log_head named; /* a record names the entries up to here; seq 0 = none does */
};

static void on_note(void *ctx, const struct log_note *note)
{
    struct trail_notes *notes = ctx;

    if (notes->mac && !logmac_good(notes->mac, note))
        return;
    if (str_is(note->closed, LOG_NOTE_CUT))
        notes->cut = note->part.head;
    if (str_is(note->closed, LOG_NOTE_NAMED))
        notes->named = note->part.head;
}

static void on_line(void *ctx, const struct log_line *line, struct str chain_hash)
{
    (void)ctx;
    (void)line;
    (void)chain_hash;
}

/* mac NULL: as they are found. */
static int find_notes(struct batch *batch, struct log_mac *mac, struct trail_notes *notes,
                      struct err *err)
{
    const struct log_range range = {.execution_id = audit_chain};
    const struct log_walk walk = {.note = on_note, .line = on_line, .ctx = notes};

    *notes = (struct trail_notes){.mac = mac,
                                  .cut = {.execution_id = audit_chain},
                                  .named = {.execution_id = audit_chain}};
    return batch->store->verbs->logs->chains_read(batch->store, &range, 1, 1, &walk, err);
}

/* In place of all notes of the trail. */
static int put_notes(struct batch *batch, const struct log_head *cut, const struct log_head *named,
                     struct err *err)
{
    const struct log_verbs *logs = batch->store->verbs->logs;
    const struct log_note all = {.part.head = {.execution_id = audit_chain, .seq = INT64_MAX}};
    struct log_note notes[2];
    uint32_t count = 0;

    if (cut->seq > 0)
        notes[count++] = (struct log_note){.part.head = *cut, .closed = STR(LOG_NOTE_CUT)};
    if (named->seq > 0)
        notes[count++] = (struct log_note){.part.head = *named, .closed = STR(LOG_NOTE_NAMED)};
    TRY(logs->heads_forget(batch->store, &all, 1, err));
    return logs->heads_put(batch->store, notes, count, err);
}

/* Do the entries continue the chain? The head then stands at the last one. */
static int follow(struct batch *batch, const struct audit_entry *entries, uint32_t count,
                  struct log_head *head, bool *fits, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(64 * 1024);
    struct log_line line;

    for (uint32_t i = 0; *fits && i < count; i++)
        *fits = entries[i].seq == head->seq + 1 && audit_line(&entries[i], &text, &line) == 0 &&
                logchain_step(head, &line) == 0 &&
                str_eq(hex_of(head->hash, &batch->arena), entries[i].chain_hash);
    TRY_MEMORY(!batch->arena.failed);
    return 0;
}

/* The chain up to `end`, computed again. */
static int follow_to(struct batch *batch, const struct log_head *end, struct log_head *head,
                     bool *fits, struct err *err)
{
    struct audit_entry *entries;
    uint32_t count = LOOK_ROWS;

    while (*fits && count == LOOK_ROWS && head->seq < end->seq) {
        TRY(verbs_of(batch)->behind(batch->store, head->seq, LOOK_ROWS, &batch->arena, &entries,
                                    &count, err));
        while (count > 0 && entries[count - 1].seq > end->seq)
            count--;
        TRY(follow(batch, entries, count, head, fits, err));
    }
    *fits &= same_head(head, end);
    return 0;
}

/* ---- records ---- */

/* Another key signs the trail as it is found. */
int trail_adopt(struct batch *batch, struct log_part *part, bool *any, struct err *err)
{
    struct trail_notes notes;
    struct audit_entry *entry;
    struct log_note note;

    *any = false;
    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->last(batch->store, true, &batch->arena, &entry, err));
    if (!entry)
        return 0;
    TRY(find_notes(batch, NULL, &notes, err));
    audit_note(entry, &note);
    TRY_MEMORY(log_note_seal(batch->store, &note) == 0);
    TRY(verbs_of(batch)->prove(batch->store, entry->seq, str_of(note.mac), err));
    *part = (struct log_part){.head = note.part.head};
    *any = true;
    return put_notes(batch, &notes.cut, &part->head, err);
}

/* All entries that no record names, computed again up to the newest one: the record says which
 * entry they follow. */
int trail_unsigned(struct batch *batch, struct log_part *part, bool *any, struct err *err)
{
    struct trail_notes notes;
    struct log_head before, head;
    struct audit_entry *entry;
    struct log_note note;
    bool fits;

    *any = false;
    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->last(batch->store, false, &batch->arena, &entry, err));
    if (!entry)
        return 0;
    TRY(log_heads_ready(batch, err));
    TRY(find_notes(batch, batch->store->log_mac, &notes, err));
    fits = is_proven(batch, entry, &note);
    if (same_head(&notes.named, &note.part.head))
        return 0;
    before = head = notes.named.seq > 0 ? notes.named : notes.cut;
    TRY(follow_to(batch, &note.part.head, &head, &fits, err));
    *part = fits ? log_part_after(&before, &head)
                 : (struct log_part){.refused = true, .head = note.part.head};
    *any = true;
    if (part->refused)
        batch->store->log_doubt =
            (struct log_doubt){"entries of the audit trail were not signed", audit_chain};
    return 0;
}

int trail_named(struct batch *batch, struct log_head *named, struct err *err)
{
    struct trail_notes notes;

    TRY(find_notes(batch, batch->store->log_mac, &notes, err));
    *named = notes.named;
    return 0;
}

int trail_signed(struct batch *batch, const struct log_part *part, struct err *err)
{
    struct trail_notes notes;

    TRY(find_notes(batch, batch->store->log_mac, &notes, err));
    return put_notes(batch, &notes.cut, &part->head, err);
}

/* ---- retention ---- */

/* Entries are removed only as far as they prove to be what was written: each continues the one
 * before, and the last one carries the key's code, which covers when it was made. What another key
 * proved is computed up to the entry that ours has named. */
static int check_run(struct batch *batch, const struct trail_notes *notes,
                     const struct audit_entry *entries, uint32_t count, struct log_head *end,
                     bool *fits, struct err *err)
{
    struct log_note note;
    struct log_head head;

    *end = notes->cut;
    *fits = true;
    TRY(follow(batch, entries, count, end, fits, err));
    if (!*fits || is_proven(batch, &entries[count - 1], &note))
        return 0;
    head = *end;
    return follow_to(batch, &notes->named, &head, fits, err);
}

/* The signed cut says that records name them all: one that names other entries in their place shows
 * that they were exchanged. */
static int sign_cut(struct batch *batch, const struct trail_notes *notes,
                    const struct log_head *end, const struct audit_entry *last, int64_t removed,
                    int64_t window_ms, struct err *err)
{
    struct log_cuts *cuts = &batch->logs.cuts[CUT_RETENTION];

    cuts->window_ms = window_ms;
    TRY_MEMORY(log_checked_add(batch->store, &audit_chain) == 0 &&
               log_checked_base(batch->store, end, end->seq) == 0 &&
               log_cuts_add(cuts, &audit_chain, end->seq, last->chain_hash, removed,
                            last->at_us) == 0);
    batch->wrote = true;
    return put_notes(batch, end, &notes->named, err);
}

/* The newest entry that a record names stays: the chain continues from it. */
int trail_prune(struct batch *batch, int64_t before_us, int64_t window_ms, bool *more,
                struct err *err)
{
    struct trail_notes notes;
    struct audit_entry *entries;
    struct log_head end;
    uint32_t count, old = 0;
    int64_t removed = 0;
    bool fits;

    *more = false;
    if (!verbs_of(batch))
        return 0;
    TRY(verbs_of(batch)->behind(batch->store, INT64_MIN, PRUNE_ROWS, &batch->arena, &entries,
                                &count, err));
    if (count == 0 || entries[0].at_us >= before_us)
        return 0;
    TRY(log_heads_ready(batch, err));
    TRY(find_notes(batch, batch->store->log_mac, &notes, err));
    while (old < count && entries[old].at_us < before_us && entries[old].seq < notes.named.seq)
        old++;
    if (old == 0)
        return 0;
    TRY(check_run(batch, &notes, entries, old, &end, &fits, err));
    if (!fits) {
        batch->store->log_doubt =
            (struct log_doubt){"old entries of the audit trail were kept", audit_chain};
        return 0;
    }
    TRY(verbs_of(batch)->remove(batch->store, end.seq, &removed, err));
    *more = old == PRUNE_ROWS;
    return sign_cut(batch, &notes, &end, &entries[old - 1], old, window_ms, err);
}
