/* Signed records about logs: where chains stand, every few seconds while lines are written; what
 * retention, deletion and purges removed or emptied, in the same transaction. Committed records
 * are appended to the anchor file, if there is one. Without log lines none of this happens. One
 * node at a time takes the notes of all (the leader); each node signs what it remembers of its own
 * lines. The records of all nodes follow each other. */
#include "engine/logs/log_heads.h"

#include "base/fault.h"
#include "engine/batch.h"
#include "engine/engine_state.h"
#include "engine/inbox.h"
#include "engine/logs/log_heads_int.h"
#include "engine/logs/log_namespaces.h"
#include "store/log_memory.h"

#define EVERY_DEFAULT_MS 10000
#define ROUNDS_MAX 16     /* records of heads in one transaction; the rest comes soon */
#define AGAIN_US (20 * CLOCK_MS_US)

static int64_t every_us(const struct engine *engine)
{
    int64_t every_ms = engine->settings->logs.anchor_every_ms;

    return (every_ms > 0 ? every_ms : EVERY_DEFAULT_MS) * CLOCK_MS_US;
}

void log_heads_begin(struct batch *batch)
{
    for (int i = 0; i < CUT_REASON_COUNT; i++)
        batch->logs.cuts[i] = (struct log_cuts){.arena = &batch->arena};
    batch->logs.blanks = (struct log_cuts){.arena = &batch->arena};
    batch->logs.refused = (struct log_cuts){.arena = &batch->arena};
    batch->logs.written = (struct log_cuts){.arena = &batch->arena};
    batch->logs.remembered = (struct log_cuts){.arena = &batch->arena};
    batch->logs.waiting = (struct log_cuts){.arena = &batch->arena};
    batch->logs.gone = (struct log_cuts){.arena = &batch->arena};
    batch->logs.checked.arena = &batch->arena;
    batch->store->log_memory = batch->engine->main->heads.memory;
    batch->store->log_seen =
        batch->store->log_memory ? log_memory_now(batch->store->log_memory) : 0;
    batch->store->log_written = &batch->logs.written;
    batch->store->log_refused = &batch->logs.refused;
    batch->store->log_checked = &batch->logs.checked;
    log_heads_reason(batch, CUT_DELETE);
}

void log_heads_reason(struct batch *batch, enum cut_reason reason)
{
    batch->store->cuts = &batch->logs.cuts[reason];
}

void log_heads_note(struct batch *batch)
{
    struct log_heads *heads = &batch->engine->heads;

    if (heads->next_us > batch->now_us + every_us(batch->engine))
        heads->next_us = batch->now_us + every_us(batch->engine);
}

/* ---- records ---- */

int pen_write(struct batch *batch, struct pen *pen, struct anchor *anchor,
                        const struct log_part *items, uint32_t count, struct err *err)
{
    struct anchor_row row;

    if (anchor->serial == 0)
        anchor->serial = pen->last.serial + 1;
    anchor->at_us = batch->now_us;
    anchor->has_since = true;
    anchor->since_us = pen->since_us;
    anchor->begin = pen->begin;
    if (pen->last.serial > 0 &&
        !hash_from_hex(str_of(pen->last.hash), anchor->previous, sizeof anchor->previous))
        memset(anchor->previous, 0xff, sizeof anchor->previous); /* verify tells of it */
    anchor->lines = pen->before.lines;
    for (uint32_t i = 0; anchor->kind == ANCHOR_HEADS && i < count; i++)
        anchor->lines += items[i].lines;
    buf_reset(&pen->text);
    if (anchor_make(anchor, items, count, pen->key, &pen->text, &row) < 0)
        return err_no_memory(err);
    TRY(batch->store->verbs->logs->anchor_insert(batch->store, &row, err));
    pen->last = row;
    memcpy(batch->engine->heads.newest, row.hash, sizeof row.hash);
    batch->logs.newest = row.serial;
    memcpy(batch->logs.newest_hash, row.hash, sizeof row.hash);
    pen->before.lines = anchor->lines;
    batch->wrote = true;
    return 0;
}

/* Where chains stood before our key was is taken as it is and signed, here and never again: from
 * then on nothing is believed because it says that it is old. */
static int begin_records(struct batch *batch, struct pen *pen, struct err *err)
{
    struct anchor begin = {.kind = ANCHOR_BEGIN};
    struct log_part trail;
    bool any, has_trail;

    TRY(batch->store->verbs->logs->any_line(batch->store, &any, err));
    if (!pen->again)
        pen->since_us = any ? batch->now_us : 0;
    pen->begin = pen->last.serial + 1;
    TRY(pen_write(batch, pen, &begin, NULL, 0, err));
    TRY(trail_adopt(batch, &trail, &has_trail, err));
    TRY(log_namespaces_adopt(batch, err));
    if (has_trail)
        TRY(pen_write_parts(batch, pen, ANCHOR_HEADS, STR("adopted"), &trail, 1, err));
    return any ? log_adopt(batch, pen, err) : 0;
}

static int pen_prove(struct batch *batch, struct pen *pen, struct err *err)
{
    struct anchor foreign = {.kind = ANCHOR_SEAM, .reason = STR("foreign")};

    if (pen->foreign && pen_write(batch, pen, &foreign, NULL, 0, err) < 0)
        return -(int)err->code;
    if (pen->adopts && begin_records(batch, pen, err) < 0)
        return -(int)err->code;
    batch->engine->heads.begin = pen->begin;
    batch->engine->heads.since_us = pen->since_us;
    batch->store->log_since_us = pen->since_us;
    batch->logs.ready = true;
    return 0;
}

/* Is the newest record that this process made gone? Other nodes may have made later ones, also in
 * its place; it may have been trimmed since. *newest: its serial; 0 = there is none. */
static int find_newest(struct batch *batch, int64_t *newest, char hash[HASH_HEX_BYTES + 1],
                       bool *gone, struct err *err)
{
    struct log_memory *memory = batch->store->log_memory;
    char found[HASH_HEX_BYTES + 1];
    struct anchor_row *rows;
    struct anchor anchor;
    uint32_t count;

    *gone = false;
    *newest = memory ? log_memory_newest(memory, hash) : 0;
    if (*newest == 0)
        return 0;
    TRY(batch->store->verbs->logs->anchors_read(batch->store, *newest - 1, 1, &batch->arena, &rows,
                                                &count, err));
    *gone = count == 0 || !anchor_parse(rows[0].record, &anchor);
    if (*gone)
        return 0;
    hash_hex(anchor.hash, HASH_BYTES, found);
    *gone = rows[0].serial > *newest
                ? !log_record_trusted(&batch->engine->heads, &rows[0], &anchor)
                : strcmp(found, hash) != 0;
    return 0;
}

/* Behind the newest record of this process the records continue, also where an intruder removed it.
 * Only after the lock that records take turns with. */
static int pen_compare(struct batch *batch, struct pen *pen, struct err *err)
{
    char hash[HASH_HEX_BYTES + 1], found[HASH_HEX_BYTES + 1];
    int64_t newest = batch->store->log_memory ? log_memory_newest(batch->store->log_memory, hash)
                                              : 0;
    bool gone;

    hash_hex(pen->before.hash, HASH_BYTES, found);
    if (batch->logs.newest > 0 || (pen->last.serial == newest && strcmp(found, hash) == 0))
        return 0;
    TRY(find_newest(batch, &newest, hash, &gone, err));
    if (!gone)
        return 0;
    pen->foreign = true;
    log_tell_foreign(batch->engine, pen->last.serial);
    if (pen->last.serial > newest)
        return 0;
    pen->last.serial = newest;
    memcpy(pen->last.hash, hash, sizeof pen->last.hash);
    return 0;
}

int pen_take(struct batch *batch, struct pen *pen, struct err *err)
{
    *pen = (struct pen){.text = BUF_INIT(ANCHOR_BYTES_MAX)};
    TRY(batch->store->verbs->logs->anchor_last(batch->store, &batch->arena, &pen->last, err));
    batch->logs.found = pen->last.serial;
    if (pen->last.serial > 0 && !anchor_parse(pen->last.record, &pen->before))
        pen->before = (struct anchor){.lines = 0}; /* verify tells of it */
    TRY(log_key_take(batch, pen, err));
    if (pen->key && !pen->foreign)
        TRY(pen_compare(batch, pen, err));
    return pen_prove(batch, pen, err);
}

int log_heads_ready(struct batch *batch, struct err *err)
{
    struct pen pen;
    int rc;

    if (batch->engine->heads.ready || batch->logs.ready || !batch->store->verbs->logs)
        return 0;
    rc = pen_take(batch, &pen, err);
    batch->logs.anchored = true;
    buf_deinit(&pen.text);
    return rc;
}

int pen_write_parts(struct batch *batch, struct pen *pen, enum anchor_kind kind,
                    struct str reason, const struct log_part *items, uint32_t count,
                    struct err *err)
{
    for (uint32_t i = 0; i < count; i += ANCHOR_ITEMS_MAX) {
        struct anchor anchor = {.kind = kind, .reason = reason};
        uint32_t some = count - i < ANCHOR_ITEMS_MAX ? count - i : ANCHOR_ITEMS_MAX;

        TRY(pen_write(batch, pen, &anchor, items + i, some, err));
    }
    return 0;
}

/* The anchor file has records that this store does not: a reader of both sees where they part. */
static int write_seam(struct batch *batch, struct pen *pen, struct err *err)
{
    const struct log_heads *heads = &batch->engine->heads;
    int64_t newest = heads->ahead.serial > pen->last.serial ? heads->ahead.serial
                                                            : pen->last.serial;
    struct anchor anchor = {.kind = ANCHOR_SEAM, .serial = newest + 1,
                            .through = heads->ahead.serial};

    memcpy(anchor.through_hash, heads->ahead.hash, sizeof anchor.through_hash);
    return pen_write(batch, pen, &anchor, NULL, 0, err);
}

struct taken {
    struct log_taken rounds[ROUNDS_MAX];
    uint32_t rounds_count;
    bool more;
    bool trail; /* the audit trail has entries that no record names: */
    struct log_part entries;
};

static int take_heads(struct batch *batch, struct taken *taken, struct err *err)
{
    do {
        struct log_taken *round = &taken->rounds[taken->rounds_count];

        TRY(batch->store->verbs->logs->heads_take(batch->store, ANCHOR_ITEMS_MAX, &batch->arena,
                                                  &round->notes, &round->parts, &round->count,
                                                  err));
        taken->more = round->count == ANCHOR_ITEMS_MAX;
        taken->rounds_count += round->count > 0;
    } while (taken->more && taken->rounds_count < ROUNDS_MAX);
    return 0;
}

/* Looked at again under the lock that records take turns with: another node may have signed the
 * entries meanwhile, or a key that has just begun. Two records of one entry would be a finding. */
static int sign_trail(struct batch *batch, struct pen *pen, struct err *err)
{
    struct log_part entries;
    bool any;

    TRY(trail_unsigned(batch, &entries, &any, err));
    if (!any)
        return 0;
    TRY(pen_write_parts(batch, pen, entries.refused ? ANCHOR_REFUSED : ANCHOR_HEADS, STR_NONE,
                        &entries, 1, err));
    return trail_signed(batch, &entries, err);
}

static int write_all(struct batch *batch, const struct taken *taken, bool seam, struct err *err)
{
    struct pen pen;
    int rc = pen_take(batch, &pen, err);

    if (rc == 0 && seam)
        rc = write_seam(batch, &pen, err);
    if (rc == 0)
        rc = log_sign_cuts(batch, &pen, err);
    for (uint32_t i = 0; rc == 0 && i < taken->rounds_count; i++)
        rc = log_sign_heads(batch, &pen, &taken->rounds[i], err);
    if (rc == 0)
        rc = pen_write_parts(batch, &pen, ANCHOR_HEADS, STR("written"),
                             batch->logs.remembered.items, batch->logs.remembered.count, err);
    if (rc == 0)
        rc = pen_write_parts(batch, &pen, ANCHOR_REFUSED, STR(ANCHOR_GONE), batch->logs.gone.items,
                             batch->logs.gone.count, err);
    if (rc == 0 && taken->trail)
        rc = sign_trail(batch, &pen, err);
    batch->logs.anchored = true;
    batch->logs.sewn = seam;
    buf_deinit(&pen.text);
    return rc;
}

/* ---- all of it, last in a transaction ---- */

/* Without the key they stay where they are. While runs that have lines are under way their ends are
 * looked for. */
static int take_signable(struct batch *batch, struct taken *taken, struct err *err)
{
    bool waits, open;

    TRY(log_key_look(batch, &waits, err));
    if (waits) {
        batch->engine->heads.next_us = batch->now_us + every_us(batch->engine);
        return 0;
    }
    TRY(trail_unsigned(batch, &taken->entries, &taken->trail, err));
    TRY(batch->store->verbs->logs->heads_open(batch->store, &open, err));
    if (!open && !taken->trail)
        return 0;
    if (log_heads_ready(batch, err) < 0) /* what is adopted has to be noted before it is taken */
        return -(int)err->code;
    batch->engine->heads.next_us = batch->now_us + every_us(batch->engine);
    return open ? take_heads(batch, taken, err) : 0;
}

/* What this node wrote is signed also where nothing of this transaction names it. */
static int look_back(struct batch *batch, const struct taken *taken, struct err *err)
{
    const struct log_part *named[ROUNDS_MAX + 1];
    uint32_t counts[ROUNDS_MAX + 1], lists = taken->rounds_count;

    for (uint32_t i = 0; i < taken->rounds_count; i++) {
        named[i] = taken->rounds[i].parts;
        counts[i] = taken->rounds[i].count;
    }
    if (taken->trail) {
        named[lists] = &taken->entries;
        counts[lists++] = 1;
    }
    if (!taken->more)
        TRY(log_recall(batch, named, counts, lists, err));
    log_written_drop(&batch->logs.written, named, counts, lists);
    return 0;
}

int log_heads_write(struct batch *batch, bool timers, struct err *err)
{
    struct engine *engine = batch->engine;
    struct log_heads *heads = &engine->heads;
    struct log_memory *memory = engine->main->heads.memory;
    bool full = memory && log_memory_is_full(memory);
    bool due = timers && is_main(engine) && (heads->next_us <= batch->now_us || full);
    bool seam = due && heads->regressed;
    struct taken taken = {.rounds_count = 0};
    bool cut = batch->logs.blanks.count > 0 || batch->logs.refused.count > 0, gone = false;
    char newest_hash[HASH_HEX_BYTES + 1];
    int64_t newest;

    for (int i = 0; i < CUT_REASON_COUNT; i++)
        cut |= batch->logs.cuts[i].count > 0;
    if (!batch->store->verbs->logs ||
        (!due && !cut && !batch->logs.trim_before_us && !batch->store->log_doubt.what))
        return 0;
    if (due) {
        heads->next_us = batch->store->shared ? batch->now_us + every_us(engine) : INT64_MAX;
        batch->logs.anchored = true; /* the file may lack records of other nodes */
        if ((!batch->store->shared || engine->nodes.leads || full || log_memory_waits(memory)) &&
            take_signable(batch, &taken, err) < 0)
            return -(int)err->code;
        if (taken.more)
            heads->next_us = batch->now_us + AGAIN_US;
        TRY(look_back(batch, &taken, err));
        TRY(find_newest(batch, &newest, newest_hash, &gone, err)); /* the file may lack it yet */
    }
    FAULT_POINT("log.anchor");
    log_tell_doubt(batch);
    if (cut || seam || gone || taken.trail || taken.rounds_count > 0 ||
        batch->logs.remembered.count > 0)
        TRY(write_all(batch, &taken, seam, err));
    return batch->logs.trim_before_us ? log_trim(batch, err) : 0;
}

void log_heads_committed(struct engine *engine, const struct batch *batch)
{
    struct log_memory *memory = engine->main->heads.memory;
    bool begins = is_main(engine) && batch->logs.ready && !engine->heads.ready;

    engine->heads.ready |= batch->logs.ready;
    if (memory && begins && !batch->logs.recalled)
        log_memory_signed(memory, 0, &batch->logs.remembered, &batch->logs.waiting,
                          batch->logs.found);
    if (memory && batch->logs.recalled)
        log_memory_signed(memory, engine->store->log_seen, &batch->logs.remembered,
                          &batch->logs.waiting, batch->logs.found);
    if (memory)
        log_memory_commit(memory, &batch->logs.written, &batch->logs.refused, batch->logs.cuts,
                          CUT_REASON_COUNT);
    if (memory && batch->logs.newest > 0)
        log_memory_put_newest(memory, batch->logs.newest, batch->logs.newest_hash);
    if (!batch->logs.anchored)
        return;
    if (batch->logs.sewn)
        engine->heads.regressed = false; /* written down: the file continues behind it */
    anchor_export(engine, batch->now_us);
}

void log_heads_forget(struct engine *engine)
{
    if (engine->heads.memory)
        log_memory_forget(engine->heads.memory);
}

int log_heads_open(struct engine *engine, struct err *err)
{
    engine->heads.next_us = engine->store->verbs->logs ? engine_clock_us(engine) : INT64_MAX;
    engine->heads.memory = engine->store->verbs->logs ? log_memory_new() : NULL;
    if (engine->store->verbs->logs && !engine->heads.memory)
        return err_no_memory(err);
    return engine->store->verbs->logs ? anchor_export_open(engine, err) : 0;
}

static int write_last(struct engine *engine, struct err *err)
{
    struct batch *batch = &engine->batch;
    const struct store_verbs *verbs = engine->store->verbs;

    batch_begin(batch, engine, engine_clock_us(engine));
    engine->heads.next_us = batch->now_us;
    engine->nodes.leads =
        true; /* a node that stops leaves nothing behind; the records keep their order */
    TRY(verbs->begin(engine->store, err));
    if (log_heads_write(batch, true, err) < 0 || verbs->commit(engine->store, err) < 0) {
        verbs->rollback(engine->store);
        batch_reset(batch);
        return -(int)err->code;
    }
    log_heads_committed(engine, batch);
    batch_reset(batch);
    return 0;
}

/* At a clean stop nothing waits for the next start. */
int log_heads_stop(struct engine *engine, struct err *err)
{
    int rc = 0;

    if (!engine->store->verbs->logs)
        return 0;
    if (engine->store->shared || engine->heads.next_us != INT64_MAX || engine->heads.ready)
        rc = write_last(engine, err);
    anchor_export_stop(engine);
    return rc;
}

void log_heads_close(struct engine *engine)
{
    anchor_export_close(engine);
    engine->store->log_mac = NULL;
    engine->store->log_memory = NULL;
    log_memory_free(engine->heads.memory);
    engine->heads.memory = NULL;
    logmac_free(engine->heads.mac);
    sign_key_free(engine->heads.key);
    engine->heads.mac = NULL;
    engine->heads.key = NULL;
}
