/* What is signed of chains that continued, and what is not: a note that was not made with the log
 * key was put there by an intruder. It becomes a record of its own, which verification shows for
 * ever; the lines behind it stay unsigned. The same holds for lines that were removed. Runs on the
 * thread that has the turn. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"

void log_tell_doubt(struct batch *batch)
{
    struct engine *engine = batch->engine;
    struct log_doubt *doubt = &batch->store->log_doubt;
    char id[UUID_TEXT_BYTES];

    if (!doubt->what)
        return;
    engine->figures.stats.log_regression = true;
    if (!uuid_eq(&engine->heads.doubted, &doubt->execution_id)) {
        uuid_format(&doubt->execution_id, id);
        LOG(engine->log, LOG_WARN, "log.forged", KC("execution", id), KC("then", doubt->what),
            KC("meaning", "lines of this execution, or the note of them, were not written with "
                          "the log key: an intruder changed the store; run perdura verify --logs"));
    }
    engine->heads.doubted = doubt->execution_id;
    doubt->what = NULL;
}

/* ---- chains that continued ---- */

struct sorted {
    struct log_part *heads, *refused;
    struct log_note *notes; /* to be put back */
    uint32_t heads_count, refused_count, notes_count;
};

static bool sorted_new(struct batch *batch, uint32_t count, struct sorted *sorted)
{
    *sorted = (struct sorted){
        .heads = arena_alloc_array(&batch->arena, count, sizeof *sorted->heads),
        .refused = arena_alloc_array(&batch->arena, count, sizeof *sorted->refused),
        .notes = arena_alloc_array(&batch->arena, count, sizeof *sorted->notes)};
    return sorted->heads && sorted->refused && sorted->notes;
}

/* Notes stay as long as their lines where there is a key: nothing continues from lines, or removes
 * them, without one. */
static void sort_note(struct batch *batch, const struct log_note *note,
                      const struct log_part *lines, struct sorted *sorted)
{
    struct log_mac *mac = batch->store->log_mac;
    struct log_part part = *lines;
    struct log_note kept = *note;

    part.head = note->part.head;
    part.closed = note->ended.data != NULL;
    if (mac && !logmac_good(mac, note)) { /* an intruder chose its numbers */
        part = (struct log_part){.head = note->part.head};
        part.head.seq = part.head.seq > 0 ? part.head.seq : 0;
        sorted->refused[sorted->refused_count++] = part;
        batch->store->log_doubt = (struct log_doubt){"a note of its lines was not signed",
                                                     note->part.head.execution_id};
        return;
    }
    sorted->heads[sorted->heads_count++] = part;
    if (!mac || uuid_is_nil(&note->task_id))
        return;
    kept.part = (struct log_part){.head = note->part.head};
    kept.closed = note->ended.data ? note->ended : STR("");
    sorted->notes[sorted->notes_count++] = kept;
}

int log_sign_heads(struct batch *batch, struct pen *pen, const struct log_taken *taken,
                   struct err *err)
{
    struct sorted sorted;

    if (!sorted_new(batch, taken->count, &sorted))
        return err_no_memory(err);
    for (uint32_t i = 0; i < taken->count; i++)
        sort_note(batch, &taken->notes[i], &taken->parts[i], &sorted);
    log_tell_doubt(batch);
    TRY(pen_write_parts(batch, pen, ANCHOR_HEADS, STR_NONE, sorted.heads, sorted.heads_count, err));
    TRY(pen_write_parts(batch, pen, ANCHOR_REFUSED, STR_NONE, sorted.refused, sorted.refused_count,
                        err));
    if (sorted.notes_count == 0)
        return 0;
    return batch->store->verbs->logs->heads_put(batch->store, sorted.notes, sorted.notes_count,
                                                err);
}

/* ---- lines that were removed ---- */

static bool is_refused(const struct batch *batch, const struct log_part *cut)
{
    for (uint32_t i = 0; i < batch->logs.refused.count; i++)
        if (uuid_eq(&batch->logs.refused.items[i].head.execution_id, &cut->head.execution_id))
            return true;
    return false;
}

/* Is it what was computed again in this transaction? Another client may have changed the rows
 * between that and their removal, or put them under another task. */
static bool was_checked(const struct batch *batch, const struct log_head *cut)
{
    const struct log_base *checked = log_base_of(batch->store, &cut->execution_id);

    if (!log_is_checked(batch->store, &cut->execution_id))
        return false;
    if (!batch->store->log_mac || !checked)
        return true;
    return cut->seq < checked->end.seq ||
           (cut->seq == checked->end.seq && cut->hashed == checked->end.hashed &&
            (!cut->hashed || memcmp(cut->hash, checked->end.hash, HASH_BYTES) == 0));
}

/* What the database says it removed, and the engine had not checked. */
static int refuse_unchecked(struct batch *batch, const struct log_part *cut, struct err *err)
{
    const struct log_head *head = &cut->head;
    char hex[HASH_HEX_BYTES + 1];

    hash_hex(head->hash, sizeof head->hash, hex);
    batch->store->log_doubt = (struct log_doubt){"other lines went than were checked before, and "
                                                 "that is not signed", head->execution_id};
    return log_cuts_add(&batch->logs.refused, &head->execution_id, head->seq, str_of(hex), 0, 0) < 0
               ? err_no_memory(err)
               : 0;
}

static int refuse_all_unchecked(struct batch *batch, struct err *err)
{
    for (int i = 0; i < CUT_REASON_COUNT; i++)
        for (uint32_t at = 0; at < batch->logs.cuts[i].count; at++) {
            const struct log_part *cut = &batch->logs.cuts[i].items[at];

            if (!was_checked(batch, &cut->head) &&
                refuse_unchecked(batch, cut, err) < 0)
                return -(int)err->code;
        }
    log_tell_doubt(batch);
    return 0;
}

/* Where the rest of a chain begins is noted: it is computed from there when that goes, too. */
static int note_cuts(struct batch *batch, const struct log_cuts *cuts, struct err *err)
{
    const struct log_verbs *verbs = batch->store->verbs->logs;
    bool *alive = arena_alloc_array(&batch->arena, cuts->count + 1, sizeof *alive);
    struct log_note *notes = arena_alloc_array(&batch->arena, cuts->count + 1, sizeof *notes);
    uint32_t count = 0;

    if (!batch->store->log_mac || cuts->count == 0)
        return 0;
    if (!alive || !notes)
        return err_no_memory(err);
    TRY(verbs->heads_alive(batch->store, cuts->items, cuts->count, alive, err));
    for (uint32_t i = 0; i < cuts->count; i++)
        if (alive[i])
            notes[count++] = (struct log_note){.part.head = cuts->items[i].head,
                                               .closed = STR(LOG_NOTE_CUT)};
    return count > 0 ? verbs->heads_put(batch->store, notes, count, err) : 0;
}

/* The record says how far others name the lines: one that names later ones shows that they were
 * exchanged. */
static void set_base(const struct batch *batch, struct log_part *cut)
{
    const struct log_base *checked = log_base_of(batch->store, &cut->head.execution_id);

    cut->based = batch->store->log_mac && checked;
    if (cut->based)
        cut->base = checked->base < cut->head.seq ? checked->base : cut->head.seq;
}

int log_sign_cuts(struct batch *batch, struct pen *pen, struct err *err)
{
    static const char *const reasons[CUT_REASON_COUNT] = {"delete", "retention", "purge"};

    TRY(refuse_all_unchecked(batch, err));
    for (int i = 0; i < CUT_REASON_COUNT; i++) {
        struct log_cuts *cuts = &batch->logs.cuts[i];
        uint32_t kept = 0;

        for (uint32_t at = 0; at < cuts->count; at++)
            if (!is_refused(batch, &cuts->items[at]))
                cuts->items[kept++] = cuts->items[at];
        cuts->count = kept;
        for (uint32_t at = 0; at < kept; at++)
            set_base(batch, &cuts->items[at]);
        TRY(pen_write_parts(batch, pen, ANCHOR_CUTS, str_of(reasons[i]), cuts->items, cuts->count,
                            err));
        TRY(note_cuts(batch, cuts, err));
    }
    TRY(pen_write_parts(batch, pen, ANCHOR_REFUSED, STR("cut"), batch->logs.refused.items,
                        batch->logs.refused.count, err));
    return pen_write_parts(batch, pen, ANCHOR_BLANKS, str_of(reasons[CUT_RETENTION]),
                           batch->logs.blanks.items, batch->logs.blanks.count, err);
}
