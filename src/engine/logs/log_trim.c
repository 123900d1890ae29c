/* Old records about logs go a day after the lines they tell of; what they say of executions that
 * still have lines is carried on in the record that tells of the trim. Runs on the
 * thread that has the turn. */
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"

#define TRIM_ROWS 50
#define TRIM_MARGIN_US (24 * 3600 * CLOCK_SECOND_US) /* runs under way, and late readers */

/* Of what was emptied of an execution the last word is enough. */
static bool replace_blank(struct log_part *kept, uint32_t count, const struct log_part *item)
{
    for (uint32_t i = 0; item->emptied && i < count; i++)
        if (kept[i].emptied && kept[i].level == item->level &&
            uuid_eq(&kept[i].head.execution_id, &item->head.execution_id)) {
            kept[i].lines += item->lines;
            if (item->head.seq > kept[i].head.seq)
                kept[i].head.seq = item->head.seq;
            return true;
        }
    return false;
}

/* Of where the audit trail stood the last word is enough, too. */
static bool replace_trail(struct log_part *kept, uint32_t count, const struct log_part *item)
{
    if (item->refused || !audit_is_chain(&item->head.execution_id))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!kept[i].refused && audit_is_chain(&kept[i].head.execution_id)) {
            if (item->head.seq > kept[i].head.seq)
                kept[i] = *item;
            return true;
        }
    return false;
}

/* What a record that goes says; false: an item of it cannot be read, and it stays for verify. */
static bool read_items(const struct anchor *old, struct log_part *items, uint32_t *found)
{
    struct json_iter iter;
    bool unread = false;

    *found = 0;
    json_begin(old->items, &iter);
    while (old->kind != ANCHOR_CUTS && *found < ANCHOR_ITEMS_MAX &&
           anchor_next_item(&iter, &items[*found])) {
        items[*found].refused |= old->kind == ANCHOR_REFUSED;
        unread |= items[(*found)++].unread;
    }
    return !unread;
}

/* Of a record that goes: heads, blanks and refusals of executions that still have lines stay, in
 * the record that tells of the trim. fits: there is room for them, and all could be read. */
static int keep_alive(struct batch *batch, const struct anchor *old, struct log_part *kept,
                      uint32_t *count, bool *fits, struct err *err)
{
    struct log_part *items = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *items);
    bool *alive = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *alive);
    uint32_t found, kept_before = *count;

    if (!items || !alive)
        return err_no_memory(err);
    *fits = read_items(old, items, &found);
    if (!*fits)
        return 0;
    if (found > 0 &&
        batch->store->verbs->logs->heads_alive(batch->store, items, found, alive, err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < found; i++) {
        alive[i] |= audit_is_chain(&items[i].head.execution_id);
        if (!alive[i] || replace_trail(kept, *count, &items[i]) ||
            replace_blank(kept, *count, &items[i]))
            continue;
        *fits = *count < ANCHOR_ITEMS_MAX;
        if (!*fits) {
            *count = kept_before;
            return 0;
        }
        kept[(*count)++] = items[i];
    }
    return 0;
}

static int write_trim(struct batch *batch, const struct anchor *last_gone,
                      const struct log_part *kept, uint32_t count, struct err *err)
{
    struct anchor anchor = {.kind = ANCHOR_TRIM, .through = last_gone->serial};
    struct pen pen;
    int rc = pen_take(batch, &pen, err);

    memcpy(anchor.through_hash, last_gone->hash, sizeof anchor.through_hash);
    if (rc == 0)
        rc = pen_write(batch, &pen, &anchor, kept, count, err);
    if (rc == 0)
        rc = batch->store->verbs->logs->anchors_trim(batch->store, last_gone->serial, err);
    batch->logs.anchored = true;
    buf_deinit(&pen.text);
    return rc;
}

/* May it go? What records from before the key told of was signed again when that began: nothing of
 * them is carried on, and they go when that moment is as old. */
static bool may_trim(const struct batch *batch, const struct anchor_row *row,
                     struct anchor *anchor, bool *ours)
{
    const struct log_heads *heads = &batch->engine->heads;

    *ours = log_record_trusted(heads, row, anchor);
    if (*ours)
        return anchor->at_us < batch->logs.trim_before_us;
    return row->serial < heads->begin && heads->since_us < batch->logs.trim_before_us &&
           anchor_parse(row->record, anchor) && anchor->serial == row->serial;
}

/* Records live as long as the lines they tell of, and some time more. A few at a time, and only
 * whole rounds: each costs a record itself. What is no record any more stays, for verify. */
int log_trim(struct batch *batch, struct err *err)
{
    struct log_part *kept = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *kept);
    struct anchor anchor, last = {.serial = 0};
    struct anchor_row *rows;
    uint32_t count, kept_count = 0;
    bool fits = true, ours;

    if (!kept)
        return err_no_memory(err);
    TRY(batch->store->verbs->logs->anchors_read(batch->store, 0, TRIM_ROWS, &batch->arena, &rows,
                                                &count, err));
    if (count < TRIM_ROWS || rows[count - 1].created_at_us >= batch->logs.trim_before_us)
        return 0;
    TRY(log_heads_ready(batch, err));
    for (uint32_t i = 0; i < count && may_trim(batch, &rows[i], &anchor, &ours); i++) {
        if (ours && keep_alive(batch, &anchor, kept, &kept_count, &fits, err) < 0)
            return -(int)err->code;
        if (!fits)
            break;
        last = anchor;
    }
    return last.serial > 0 ? write_trim(batch, &last, kept, kept_count, err) : 0;
}

void log_heads_trim(struct batch *batch, int64_t before_us)
{
    if (before_us > TRIM_MARGIN_US)
        batch->logs.trim_before_us = before_us - TRIM_MARGIN_US;
}
