/* Signed records about logs: where chains stand, every few seconds while lines are written; what
 * retention, deletion and purges removed or emptied, in the same transaction. Committed records
 * are appended to the anchor file, if there is one. Where nobody logs nothing of this happens. One
 * node at a time takes the heads (the leader); the records of all follow each other. */
#include "queue/queue_int.h"

#include "base/fault.h"
#include "queue/anchor_file.h"

#include <sys/stat.h>

#define EVERY_DEFAULT_MS 10000
#define ROUNDS_MAX 16     /* records of heads in one transaction; the rest comes soon */
#define AGAIN_US (20 * CLOCK_MS_US)
#define TRIM_ROWS 50
#define TRIM_MARGIN_US (24 * 3600 * CLOCK_SECOND_US) /* runs under way, and whoever looks late */
#define EXPORT_ROWS 50
#define EXPORT_BYTES_MAX (EXPORT_ROWS * ANCHOR_LINE_BYTES_MAX)
#define PATH_BYTES 4096

static int64_t every_us(const struct queue *queue)
{
    int64_t every_ms = queue->settings->log_anchor_every_ms;

    return (every_ms > 0 ? every_ms : EVERY_DEFAULT_MS) * CLOCK_MS_US;
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for the records of logs; try again");
}

void log_heads_begin(struct batch *batch)
{
    for (int i = 0; i < CUT_REASON_COUNT; i++)
        batch->cuts[i] = (struct log_cuts){.arena = &batch->arena};
    batch->blanks = (struct log_cuts){.arena = &batch->arena};
    log_heads_reason(batch, CUT_DELETE);
}

void log_heads_reason(struct batch *batch, enum cut_reason reason)
{
    batch->store->cuts = &batch->cuts[reason];
}

void log_heads_note(struct batch *batch)
{
    struct log_heads *heads = &batch->queue->heads;

    if (heads->next_us > batch->now_us + every_us(batch->queue))
        heads->next_us = batch->now_us + every_us(batch->queue);
}

/* ---- the key ---- */

static bool key_path(const struct queue *queue, char out[PATH_BYTES])
{
    int len = 0;

    if (queue->settings->log_key.data)
        len = snprintf(out, PATH_BYTES, STR_FMT, STR_ARG(queue->settings->log_key));
    else if (queue->store->path)
        len = snprintf(out, PATH_BYTES, "%s.log-key", queue->store->path);
    return len > 0 && len < PATH_BYTES;
}

/* Once: it is tried again with every record. */
static void tell_unsigned(struct queue *queue, const char *reason)
{
    if (!queue->heads.key_missed)
        LOG(queue->log, LOG_WARN, "log.unsigned", KC("reason", reason));
    queue->heads.key_missed = true;
}

/* A new one is made only where there was none, or where the store is ours alone: of several nodes
 * one would sign what the others cannot vouch for. False: it is missed. */
static bool load_key(struct queue *queue, struct str stored, bool make)
{
    struct log_heads *heads = &queue->heads;
    char path[PATH_BYTES];
    struct err err = {0};
    struct stat info;

    if (!key_path(queue, path)) {
        if (stored.data)
            tell_unsigned(queue, "other nodes have a key and this one has none: set log_key");
        return false;
    }
    if (stat(path, &info) == 0 && info.st_mode & (S_IRWXG | S_IRWXO))
        LOG(queue->log, LOG_WARN, "log.key_exposed", KC("key", path),
            KC("meaning", "others could read it, which was taken from them now"));
    if (sign_key_load(path, &heads->key, &err) == 0 && !heads->key) {
        if (stored.data && queue->store->shared)
            err_set(&err, ERR_NOT_FOUND, "the key '%s' is not there, and other nodes have one: "
                    "copy it from them", path);
        else if (!make)
            return true;
        else if (sign_key_make(path, &heads->key, &err) == -(int)ERR_CONFLICT)
            sign_key_load(path, &heads->key, &err);
    }
    if (!heads->key)
        tell_unsigned(queue, err.text);
    return heads->key != NULL;
}

/* What the records of one transaction have in common. */
struct pen {
    const struct sign_key *key; /* NULL = they are not signed */
    bool foreign;               /* the newest record is gone or not by our key */
    struct anchor_row last;     /* the record before, */
    struct anchor before;       /* and what it says */
    struct buf text;
};

/* The newest record of a store that has our key is by it, whoever of us wrote it. Otherwise
 * somebody removed records, or made one: what we write next must not make that good. */
static void check_newest(struct queue *queue, struct pen *pen, struct str stored)
{
    const struct log_heads *heads = &queue->heads;
    uint8_t key[SIGN_PUBLIC_BYTES];

    if (pen->last.serial > 0 && strcmp(pen->last.hash, heads->newest) == 0)
        return;
    pen->foreign = !pen->before.is_signed || !hash_from_hex(stored, key, sizeof key) ||
                   memcmp(pen->before.key, key, sizeof key) != 0 ||
                   !anchor_signature_good(&pen->before, pen->last.record,
                                          str_of(pen->last.signature));
    if (!pen->foreign)
        return;
    queue->stats.log_regression = true;
    LOG(queue->log, LOG_WARN, "log.foreign_records", KI("newest", pen->last.serial),
        KC("meaning", "the newest record about logs is gone or not signed by this key: somebody "
           "changed the store"));
}

/* Nobody signs in the place of another: where the store has a key, that one is meant. *waits: it
 * has one, and we do not; what can wait for it does. One that is not there yet may be made. */
static int find_key(struct batch *batch, bool make, struct str *stored,
                    char hex[2 * SIGN_PUBLIC_BYTES + 1], bool *waits, struct err *err)
{
    struct queue *queue = batch->queue;
    uint8_t public_key[SIGN_PUBLIC_BYTES];

    if (batch->store->verbs->info_get(batch->store, "log_public_key", &batch->arena, stored,
                                      err) < 0)
        return -(int)err->code;
    *waits = !queue->heads.key && (stored->data || make) && !load_key(queue, *stored, make) &&
             stored->data;
    if (!queue->heads.key)
        return 0;
    sign_key_public(queue->heads.key, public_key);
    hash_hex(public_key, sizeof public_key, hex);
    *waits = stored->data && batch->store->shared && !str_is(*stored, hex);
    if (*waits)
        tell_unsigned(queue, "the key is another one than that of the other nodes: copy theirs");
    else
        queue->heads.key_missed = false;
    return 0;
}

/* The key to sign with; the store's public key is that one then. */
static int take_key(struct batch *batch, struct pen *pen, struct err *err)
{
    struct log_heads *heads = &batch->queue->heads;
    char hex[2 * SIGN_PUBLIC_BYTES + 1];
    struct str stored;
    bool waits;

    if (find_key(batch, true, &stored, hex, &waits, err) < 0)
        return -(int)err->code;
    if (!heads->key || waits)
        return 0;
    pen->key = heads->key;
    if (str_is(stored, hex)) {
        check_newest(batch->queue, pen, stored);
        return 0;
    }
    if (stored.data)
        LOG(batch->queue->log, LOG_WARN, "log.key_replaced", KS("before", stored),
            KC("now", hex));
    return batch->store->verbs->info_put(batch->store, "log_public_key", str_of(hex), err);
}

/* ---- records ---- */

static int write_record(struct batch *batch, struct pen *pen, struct anchor *anchor,
                        const struct log_part *items, uint32_t count, struct err *err)
{
    struct anchor_row row;

    if (anchor->serial == 0)
        anchor->serial = pen->last.serial + 1;
    anchor->at_us = batch->now_us;
    if (pen->last.serial > 0 &&
        !hash_from_hex(str_of(pen->last.hash), anchor->previous, sizeof anchor->previous))
        memset(anchor->previous, 0xff, sizeof anchor->previous); /* verify tells of it */
    anchor->lines = pen->before.lines;
    for (uint32_t i = 0; anchor->kind == ANCHOR_HEADS && i < count; i++)
        anchor->lines += items[i].lines;
    buf_reset(&pen->text);
    if (anchor_make(anchor, items, count, pen->key, &pen->text, &row) < 0)
        return no_memory(err);
    if (batch->store->verbs->logs->anchor_insert(batch->store, &row, err) < 0)
        return -(int)err->code;
    pen->last = row;
    memcpy(batch->queue->heads.newest, row.hash, sizeof row.hash);
    pen->before.lines = anchor->lines;
    batch->wrote = true;
    return 0;
}

static int pen_take(struct batch *batch, struct pen *pen, struct err *err)
{
    struct anchor foreign = {.kind = ANCHOR_SEAM, .reason = STR("foreign")};

    *pen = (struct pen){.text = BUF_INIT(ANCHOR_BYTES_MAX)};
    if (batch->store->verbs->logs->anchor_last(batch->store, &batch->arena, &pen->last, err) < 0)
        return -(int)err->code;
    if (pen->last.serial > 0 && !anchor_parse(pen->last.record, &pen->before))
        pen->before = (struct anchor){.lines = 0}; /* verify tells of it */
    if (take_key(batch, pen, err) < 0)
        return -(int)err->code;
    return pen->foreign ? write_record(batch, pen, &foreign, NULL, 0, err) : 0;
}

static int write_parts(struct batch *batch, struct pen *pen, enum anchor_kind kind,
                       struct str reason, const struct log_part *items, uint32_t count,
                       struct err *err)
{
    for (uint32_t i = 0; i < count; i += ANCHOR_ITEMS_MAX) {
        struct anchor anchor = {.kind = kind, .reason = reason};
        uint32_t some = count - i < ANCHOR_ITEMS_MAX ? count - i : ANCHOR_ITEMS_MAX;

        if (write_record(batch, pen, &anchor, items + i, some, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* The anchor file has records that this store does not: whoever reads both sees where they part. */
static int write_seam(struct batch *batch, struct pen *pen, struct err *err)
{
    const struct log_heads *heads = &batch->queue->heads;
    int64_t newest = heads->ahead.serial > pen->last.serial ? heads->ahead.serial
                                                            : pen->last.serial;
    struct anchor anchor = {.kind = ANCHOR_SEAM, .serial = newest + 1,
                            .through = heads->ahead.serial};

    memcpy(anchor.through_hash, heads->ahead.hash, sizeof anchor.through_hash);
    return write_record(batch, pen, &anchor, NULL, 0, err);
}

struct taken {
    struct log_part *heads[ROUNDS_MAX];
    uint32_t counts[ROUNDS_MAX];
    uint32_t rounds;
    bool more;
};

static int take_heads(struct batch *batch, struct taken *taken, struct err *err)
{
    do {
        uint32_t at = taken->rounds;

        if (batch->store->verbs->logs->heads_take(batch->store, ANCHOR_ITEMS_MAX, &batch->arena,
                                                  &taken->heads[at], &taken->counts[at], err) < 0)
            return -(int)err->code;
        taken->more = taken->counts[at] == ANCHOR_ITEMS_MAX;
        taken->rounds += taken->counts[at] > 0;
    } while (taken->more && taken->rounds < ROUNDS_MAX);
    return 0;
}

static int write_all(struct batch *batch, const struct taken *taken, bool seam, struct err *err)
{
    static const char *const reasons[CUT_REASON_COUNT] = {"delete", "retention", "purge"};
    struct pen pen;
    int rc = pen_take(batch, &pen, err);

    if (rc == 0 && seam)
        rc = write_seam(batch, &pen, err);
    for (int i = 0; rc == 0 && i < CUT_REASON_COUNT; i++)
        rc = write_parts(batch, &pen, ANCHOR_CUTS, str_of(reasons[i]), batch->cuts[i].items,
                         batch->cuts[i].count, err);
    if (rc == 0)
        rc = write_parts(batch, &pen, ANCHOR_BLANKS, str_of(reasons[CUT_RETENTION]),
                         batch->blanks.items, batch->blanks.count, err);
    for (uint32_t i = 0; rc == 0 && i < taken->rounds; i++)
        rc = write_parts(batch, &pen, ANCHOR_HEADS, STR_NONE, taken->heads[i], taken->counts[i],
                         err);
    batch->anchored = true;
    batch->sewn = seam;
    buf_deinit(&pen.text);
    return rc;
}

/* ---- old records ---- */

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

/* Of a record that goes: heads and blanks of executions that still have lines stay, in the record
 * that tells of the trim. False when there are too many of them for one record. */
static int keep_alive(struct batch *batch, const struct anchor *old, struct log_part *kept,
                      uint32_t *count, bool *fits, struct err *err)
{
    struct log_part *items = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *items);
    bool *alive = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *alive);
    uint32_t found = 0, kept_before = *count;
    struct json_iter iter;

    if (!items || !alive)
        return no_memory(err);
    json_begin(old->items, &iter);
    while (old->kind != ANCHOR_CUTS && found < ANCHOR_ITEMS_MAX &&
           anchor_next_item(&iter, &items[found]))
        found++;
    if (found > 0 &&
        batch->store->verbs->logs->heads_alive(batch->store, items, found, alive, err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < found; i++) {
        if (!alive[i] || replace_blank(kept, *count, &items[i]))
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
        rc = write_record(batch, &pen, &anchor, kept, count, err);
    if (rc == 0)
        rc = batch->store->verbs->logs->anchors_trim(batch->store, last_gone->serial, err);
    batch->anchored = true;
    buf_deinit(&pen.text);
    return rc;
}

/* Records live as long as the lines they tell of, and some time more. A few at a time, and only
 * whole rounds: each costs a record itself. What is no record any more stays, for verify. */
static int trim(struct batch *batch, struct err *err)
{
    struct log_part *kept = arena_alloc_array(&batch->arena, ANCHOR_ITEMS_MAX, sizeof *kept);
    struct anchor anchor, last = {.serial = 0};
    struct anchor_row *rows;
    uint32_t count, kept_count = 0;
    bool fits = true;

    if (!kept)
        return no_memory(err);
    if (batch->store->verbs->logs->anchors_read(batch->store, 0, TRIM_ROWS, &batch->arena, &rows,
                                                &count, err) < 0)
        return -(int)err->code;
    if (count < TRIM_ROWS || rows[count - 1].created_at_us >= batch->trim_before_us)
        return 0;
    for (uint32_t i = 0; i < count && anchor_parse(rows[i].record, &anchor); i++) {
        if (keep_alive(batch, &anchor, kept, &kept_count, &fits, err) < 0)
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
        batch->trim_before_us = before_us - TRIM_MARGIN_US;
}

/* ---- all of it, last in a transaction ---- */

/* Without the key they stay where they are: a record without it would be a finding for ever. */
static int take_signable(struct batch *batch, struct taken *taken, struct err *err)
{
    char hex[2 * SIGN_PUBLIC_BYTES + 1];
    struct str stored;
    bool waits;

    if (find_key(batch, false, &stored, hex, &waits, err) < 0)
        return -(int)err->code;
    if (waits) {
        batch->queue->heads.next_us = batch->now_us + every_us(batch->queue);
        return 0;
    }
    return take_heads(batch, taken, err);
}

int log_heads_write(struct batch *batch, bool timers, struct err *err)
{
    struct queue *queue = batch->queue;
    struct log_heads *heads = &queue->heads;
    bool due = timers && is_main(queue) && heads->next_us <= batch->now_us;
    bool seam = due && heads->regressed;
    struct taken taken = {.rounds = 0};
    bool cut = batch->blanks.count > 0;

    for (int i = 0; i < CUT_REASON_COUNT; i++)
        cut |= batch->cuts[i].count > 0;
    if (!batch->store->verbs->logs || (!due && !cut && !batch->trim_before_us))
        return 0;
    if (due) {
        heads->next_us = batch->store->shared ? batch->now_us + every_us(queue) : INT64_MAX;
        batch->anchored = true; /* the file may lack records of other nodes */
        if ((!batch->store->shared || queue->leads) && take_signable(batch, &taken, err) < 0)
            return -(int)err->code;
        if (taken.more)
            heads->next_us = batch->now_us + AGAIN_US;
    }
    FAULT_POINT("log.anchor");
    if ((cut || seam || taken.rounds > 0) && write_all(batch, &taken, seam, err) < 0)
        return -(int)err->code;
    return batch->trim_before_us ? trim(batch, err) : 0;
}

/* ---- the anchor file ---- */

static bool file_path(const struct queue *queue, char out[PATH_BYTES])
{
    int len = snprintf(out, PATH_BYTES, STR_FMT, STR_ARG(queue->config.anchor));

    return len > 0 && len < PATH_BYTES;
}

static int export_some(struct queue *queue, const char *path, bool *more, struct err *err)
{
    struct log_heads *heads = &queue->heads;
    struct arena arena = ARENA_INIT(0);
    struct buf lines = BUF_INIT(EXPORT_BYTES_MAX);
    struct anchor_row *rows;
    uint32_t count;
    int rc = queue->store->verbs->logs->anchors_read(queue->store, heads->file.serial, EXPORT_ROWS,
                                                     &arena, &rows, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++)
        anchor_line_write(&lines, &rows[i]);
    if (rc == 0 && lines.failed)
        rc = no_memory(err);
    if (rc == 0 && count > 0)
        rc = anchor_file_append(path, buf_view(&lines), heads->file.torn, err);
    if (rc == 0 && count > 0) {
        heads->file.serial = rows[count - 1].serial;
        heads->file.torn = false;
    }
    *more = rc == 0 && count == EXPORT_ROWS;
    buf_deinit(&lines);
    arena_deinit(&arena);
    return rc;
}

/* What cannot be written now is written with the next record. */
void log_heads_export(struct queue *queue)
{
    struct log_heads *heads = &queue->heads;
    struct err err = {0};
    char path[PATH_BYTES];
    bool more = true;
    int rc = 0;

    if (!is_main(queue) || heads->regressed || !file_path(queue, path))
        return;
    if (!heads->file_known)
        rc = anchor_file_end(path, &heads->file, &err);
    heads->file_known = rc == 0;
    while (rc == 0 && more)
        rc = export_some(queue, path, &more, &err);
    if (rc < 0) {
        heads->file_known = false;
        LOG(queue->log, LOG_WARN, "log.anchor_behind", KC("reason", err.text));
    }
}

void log_heads_committed(struct queue *queue, const struct batch *batch)
{
    if (!batch->anchored)
        return;
    if (batch->sewn)
        queue->heads.regressed = false; /* written down: the file goes on behind it */
    log_heads_export(queue);
}

int log_anchor_compare(struct store *store, const struct anchor_file_end *end, bool *ahead,
                       struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    char hex[HASH_HEX_BYTES + 1];
    uint32_t count;
    int rc;

    *ahead = false;
    if (end->serial == 0)
        return 0;
    hash_hex(end->hash, sizeof end->hash, hex);
    rc = store->verbs->logs->anchors_read(store, end->serial - 1, 1, &arena, &rows, &count, err);
    if (rc == 0)
        *ahead = count == 0 || (rows[0].serial == end->serial && strcmp(rows[0].hash, hex) != 0);
    arena_deinit(&arena);
    return rc;
}

/* It gets all records that the store has; whether there was one before nobody can know here. */
static void tell_new_file(struct queue *queue, const char *path)
{
    struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    struct err err = {0};
    uint32_t count;

    if (queue->store->verbs->logs->anchors_read(queue->store, 0, 1, &arena, &rows, &count,
                                                &err) == 0 && count > 0)
        LOG(queue->log, LOG_WARN, "log.anchor_new", KC("anchor", path),
            KC("meaning", "the store has records and the anchor file has none: it begins now, or "
               "somebody removed it"));
    arena_deinit(&arena);
}

/* F-J7: a store that was set back is served all the same, and everybody is told. */
int log_heads_open(struct queue *queue, struct err *err)
{
    struct log_heads *heads = &queue->heads;
    char path[PATH_BYTES];
    struct err why = {0};

    heads->next_us = queue->store->verbs->logs ? queue_clock_us(queue) : INT64_MAX;
    if (!queue->store->verbs->logs || !file_path(queue, path))
        return 0;
    if (anchor_file_end(path, &heads->file, &why) < 0) {
        LOG(queue->log, LOG_WARN, "log.anchor_unreadable", KC("reason", why.text));
        return 0;
    }
    heads->file_known = true;
    if (log_anchor_compare(queue->store, &heads->file, &heads->regressed, err) < 0)
        return -(int)err->code;
    if (heads->file.serial == 0)
        tell_new_file(queue, path);
    if (heads->regressed) {
        heads->ahead = heads->file;
        queue->stats.log_regression = true;
        LOG(queue->log, LOG_WARN, "log.regression", KC("anchor", path),
            KI("anchor_serial", heads->file.serial),
            KC("meaning", "the store is older than its anchor file: it was set back"));
    }
    return 0;
}

/* At a clean stop nothing waits for the next start. */
int log_heads_stop(struct queue *queue, struct err *err)
{
    struct batch *batch = &queue->batch;
    const struct store_verbs *verbs = queue->store->verbs;

    if (!verbs->logs || (!queue->store->shared && queue->heads.next_us == INT64_MAX))
        return 0;
    batch_begin(batch, queue, queue_clock_us(queue));
    queue->heads.next_us = batch->now_us;
    queue->leads = true; /* whoever goes leaves nothing behind; the records keep their order */
    if (verbs->begin(queue->store, err) < 0)
        return -(int)err->code;
    if (log_heads_write(batch, true, err) < 0 || verbs->commit(queue->store, err) < 0) {
        verbs->rollback(queue->store);
        batch_reset(batch);
        return -(int)err->code;
    }
    log_heads_committed(queue, batch);
    batch_reset(batch);
    return 0;
}

void log_heads_close(struct queue *queue)
{
    sign_key_free(queue->heads.key);
    queue->heads.key = NULL;
}
