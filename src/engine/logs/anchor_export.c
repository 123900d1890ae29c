/* From the store into the anchor file: the thread that has the turn reads committed records here,
 * and another one writes them (anchor_writer.c), so that a file system that hangs delays no
 * request. What is not in the file yet is looked for again until it is. At the start the file is
 * compared with the store. */
#include "engine/engine_state.h"
#include "engine/logs/anchor_writer.h"
#include "engine/logs/log_heads.h"
#include "engine/logs/log_heads_int.h"
#include "store/log_memory.h"

#define EXPORT_ROWS 50
#define EXPORT_BYTES_MAX (EXPORT_ROWS * ANCHOR_LINE_BYTES_MAX)
#define LOOK_US CLOCK_SECOND_US      /* was it written? */
#define MORE_US (20 * CLOCK_MS_US)   /* there was no room for all of it */
#define STOP_US (5 * CLOCK_SECOND_US) /* so long a clean stop waits for the file */

static bool file_path(const struct engine *engine, char out[LOG_PATH_BYTES])
{
    int len = snprintf(out, LOG_PATH_BYTES, STR_FMT, STR_ARG(engine->config.anchor));

    return len > 0 && len < LOG_PATH_BYTES;
}

/* Records for the file, and where the next look begins. */
struct gift {
    struct buf lines;
    int64_t from;   /* rows behind this one are looked at */
    int64_t serial; /* of the last record in it; 0 = there is none */
    bool ends;      /* nothing more is to be had now */
};

/* Is it a record of ours, or one from before our key? Another row is kept out: nothing
 * takes it from the file again, and the place of the next record would be whatever it says.
 * *wait: it is not known yet where our records begin. */
static bool belongs(struct engine *engine, const struct anchor_row *row, bool *wait)
{
    struct log_heads *heads = &engine->heads;
    struct anchor anchor;

    if (log_record_trusted(heads, row, &anchor))
        return true;
    *wait = heads->key && !heads->ready;
    if (*wait)
        return false;
    if (row->serial < heads->begin && anchor_parse(row->record, &anchor) &&
        anchor.serial == row->serial)
        return true;
    if (heads->strange != row->serial)
        log_tell_foreign(engine, row->serial);
    heads->strange = row->serial;
    return false;
}

static int collect(struct engine *engine, struct gift *gift, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    uint32_t count = 0;
    bool wait = false;
    int rc = engine->store->verbs->logs->anchors_read(engine->store, gift->from, EXPORT_ROWS,
                                                      &arena, &rows, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count && !wait; i++) {
        gift->from = rows[i].serial;
        if (!belongs(engine, &rows[i], &wait))
            continue;
        anchor_line_write(&gift->lines, &rows[i]);
        gift->serial = rows[i].serial;
    }
    gift->ends = count < EXPORT_ROWS || wait;
    if (rc == 0 && (gift->lines.failed || arena.failed))
        rc = err_no_memory(err);
    arena_deinit(&arena);
    return rc;
}

/* The next few behind what the writer has or was given. *more: there may be others. */
static int give_some(struct engine *engine, bool *more, struct err *err)
{
    struct anchor_writer *writer = engine->heads.writer;
    struct gift gift = {.lines = BUF_INIT(EXPORT_BYTES_MAX)};
    int64_t after;
    int rc = 0;

    *more = false;
    if (anchor_writer_has_room(writer, &after)) {
        gift.from = after;
        do {
            rc = collect(engine, &gift, err);
        } while (rc == 0 && gift.serial == 0 && !gift.ends);
    }
    if (rc == 0 && gift.serial > 0) {
        anchor_writer_give(writer, after, buf_view(&gift.lines), gift.serial);
        *more = !gift.ends;
    }
    buf_deinit(&gift.lines);
    return rc;
}

void anchor_export(struct engine *engine, int64_t now_us)
{
    struct log_heads *heads = &engine->heads;
    int64_t look_us = now_us + LOOK_US, newest, after;
    char hash[HASH_HEX_BYTES + 1];
    struct err err = {0};
    bool more = true;
    int rc = 0;

    if (!is_main(engine) || heads->regressed || !heads->writer)
        return;
    newest = log_memory_newest(heads->memory, hash);
    while (rc == 0 && more && anchor_writer_has_room(heads->writer, &after))
        rc = give_some(engine, &more, &err);
    if (rc == 0 && !more && anchor_writer_has_room(heads->writer, &after) && after < newest &&
        look_us < heads->next_us)
        heads->next_us = look_us; /* the newest record is gone: the next one tells of it */
    if (rc < 0)
        LOG(engine->log, LOG_WARN, "log.anchor_behind", KC("reason", err.text));
    else if (more && anchor_writer_is_well(heads->writer))
        look_us = now_us + MORE_US;
    if ((rc < 0 || more || !anchor_writer_is_done(heads->writer)) && look_us < heads->next_us)
        heads->next_us = look_us;
}

void anchor_export_stop(struct engine *engine)
{
    struct anchor_writer *writer = engine->heads.writer;
    int64_t until_us = clock_boot_us() + STOP_US;
    struct err err = {0};
    bool more = true, in_time = true;
    int rc = 0;

    if (!is_main(engine) || engine->heads.regressed || !writer)
        return;
    while (rc == 0 && more && in_time) {
        rc = give_some(engine, &more, &err);
        in_time = anchor_writer_wait(writer, until_us);
    }
    if (rc < 0 || !in_time || !anchor_writer_is_well(writer))
        LOG(engine->log, LOG_WARN, "log.anchor_behind",
            KC("reason", rc < 0 ? err.text : "the anchor file could not be written before the end; "
                                             "the next start continues"));
}

int log_anchor_compare(struct store *store, const struct anchor_file_end *end, bool *ahead,
                       struct err *err)
{
    const struct log_verbs *verbs = store->verbs->logs;
    struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows, *first;
    uint8_t hash[HASH_BYTES];
    uint32_t count, any;
    int rc;

    *ahead = false;
    if (end->serial == 0)
        return 0;
    rc = verbs->anchors_read(store, end->serial - 1, 1, &arena, &rows, &count, err);
    if (rc == 0)
        rc = verbs->anchors_read(store, 0, 1, &arena, &first, &any, err);
    if (rc == 0 && count > 0 && hash_sha256(rows[0].record, hash) < 0)
        rc = err_no_memory(err);
    if (rc == 0) /* by its text: an attacker may have set the hash beside it */
        *ahead = count == 0 || (rows[0].serial == end->serial
                                    ? memcmp(hash, end->hash, sizeof hash) != 0
                                    : first[0].serial < end->serial); /* or it was trimmed */
    arena_deinit(&arena);
    return rc;
}

/* It gets all records that the store has; whether there was one before is not known here. */
static void tell_new_file(struct engine *engine, const char *path)
{
    struct arena arena = ARENA_INIT(0);
    struct anchor_row *rows;
    struct err err = {0};
    uint32_t count;

    if (engine->store->verbs->logs->anchors_read(engine->store, 0, 1, &arena, &rows, &count,
                                                 &err) == 0 &&
        count > 0)
        LOG(engine->log, LOG_WARN, "log.anchor_new", KC("anchor", path),
            KC("meaning", "the store has records and the anchor file has none: it begins now, or "
                          "it was removed"));
    arena_deinit(&arena);
}

/* F-J7: a store that was set back is served all the same; log, figures and alert say so. */
static int compare(struct engine *engine, const char *path, const struct anchor_file_end *end,
                   struct err *err)
{
    struct log_heads *heads = &engine->heads;

    TRY(log_anchor_compare(engine->store, end, &heads->regressed, err));
    memcpy(heads->file_key, end->key, sizeof heads->file_key);
    if (end->serial == 0)
        tell_new_file(engine, path);
    if (heads->regressed) {
        heads->ahead = *end;
        engine->figures.stats.log_regression = true;
        LOG(engine->log, LOG_WARN, "log.regression", KC("anchor", path),
            KI("anchor_serial", end->serial),
            KC("meaning", "the store is older than its anchor file: it was set back"));
    }
    return 0;
}

int anchor_export_open(struct engine *engine, struct err *err)
{
    struct anchor_file_end end;
    char path[LOG_PATH_BYTES];
    struct err why = {0};
    bool known;

    if (!file_path(engine, path))
        return 0;
    known = anchor_file_end(path, &end, &why) == 0;
    if (!known)
        LOG(engine->log, LOG_WARN, "log.anchor_unreadable", KC("reason", why.text));
    else if (compare(engine, path, &end, err) < 0)
        return -(int)err->code;
    engine->heads.writer = anchor_writer_start(path, known ? &end : NULL, engine->log, err);
    return engine->heads.writer ? 0 : -(int)err->code;
}

void anchor_export_close(struct engine *engine)
{
    anchor_writer_stop(engine->heads.writer);
    engine->heads.writer = NULL;
}
