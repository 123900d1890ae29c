/* Log lines, each with its hash in the chain of its execution; the chains that wait for a record,
 * and the records. A run that logs nothing comes here only when its task is deleted. Writer's
 * thread. */
#include "core/bounds.h"
#include "store/log_store.h"
#include "store/sqlite/sqlite_int.h"

/* ---- lines ---- */

/* Nine columns from `from` on; texts are only good until the next step. */
void sqlite_note_from_row(sqlite3_stmt *stmt, int from, const struct uuid *id,
                          struct log_note *note)
{
    struct str mac = column_view(stmt, from + 7);

    *note = (struct log_note){.part.lines = sqlite3_column_int64(stmt, from + 2),
                              .task_id = column_uuid(stmt, from + 3),
                              .task_type = column_view(stmt, from + 4),
                              .logged_at_us = sqlite3_column_int64(stmt, from + 5),
                              .closed = column_view(stmt, from + 6)};
    note->part.closed = note->closed.len > 0;
    log_note_from(note, column_view(stmt, from + 8));
    logchain_resume(&note->part.head, id, sqlite3_column_int64(stmt, from),
                    column_view(stmt, from + 1));
    snprintf(note->mac, sizeof note->mac, STR_FMT, STR_ARG(mac));
}

static struct str keep(struct arena *arena, struct str text)
{
    return arena && text.data ? arena_str(arena, text) : text;
}

/* Texts live in the arena, or, where there is none, until the statement is reset (by the caller;
 * NULL = there is no line). */
static int last_find(struct sqlite_sql *sql, const struct uuid *id, struct arena *arena,
                     struct log_last *last, sqlite3_stmt **out, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_last, err);
    int rc;

    *last = (struct log_last){.execution_id = *id};
    *out = NULL;
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    last->seq = sqlite3_column_int64(stmt, 0);
    last->chain_hash = keep(arena, column_view(stmt, 1));
    last->logged_at_us = sqlite3_column_int64(stmt, 2);
    last->noted = sqlite3_column_type(stmt, 3) != SQLITE_NULL;
    if (last->noted)
        sqlite_note_from_row(stmt, 3, id, &last->note);
    last->note.task_type = keep(arena, last->note.task_type);
    last->note.closed = keep(arena, last->note.closed);
    *out = stmt;
    return 0;
}

int sqlite_log_last(struct sqlite_sql *sql, const struct uuid *id, struct arena *arena,
                    struct log_last *last, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc = last_find(sql, id, arena, last, &stmt, err);

    if (stmt)
        sqlite3_reset(stmt);
    return rc < 0 ? rc : arena->failed ? err_no_memory(err) : 0;
}

/* *noted: whether what comes may be noted for a record. */
static int load_head(struct sqlite_store *store, const struct log_entry *entry,
                     struct log_head *head, bool *noted, struct err *err)
{
    struct log_last last;
    sqlite3_stmt *stmt;
    int rc;

    *head = (struct log_head){.execution_id = entry->execution_id};
    TRY(last_find(&store->sql, &entry->execution_id, NULL, &last, &stmt, err));
    rc = log_may_follow(&store->base, &last, entry, noted);
    if (stmt) {
        logchain_resume(head, &entry->execution_id, last.seq, last.chain_hash);
        sqlite3_reset(stmt);
    }
    return rc < 0 ? err_no_memory(err) : 0;
}

static int put_note(struct sqlite_store *store, struct log_note *note, struct err *err)
{
    const struct log_head *head = &note->part.head;
    char hex[HASH_HEX_BYTES + 1], from[HASH_HEX_BYTES + 1];
    sqlite3_stmt *stmt;

    if (log_note_seal(&store->base, note) < 0)
        return err_no_memory(err);
    stmt = sql_get(&store->sql, SQL_head_note, err);
    if (!stmt)
        return -(int)err->code;
    hash_hex(head->hash, sizeof head->hash, hex);
    bind_uuid(stmt, 1, &head->execution_id);
    bind_int(stmt, 2, head->seq);
    sqlite3_bind_text(stmt, 3, hex, HASH_HEX_BYTES, SQLITE_STATIC);
    bind_int(stmt, 4, note->part.lines);
    bind_uuid(stmt, 5, &note->task_id);
    bind_str(stmt, 6, note->task_type);
    bind_int(stmt, 7, note->logged_at_us);
    bind_str(stmt, 8, note->closed.data ? note->closed : STR(""));
    bind_str(stmt, 9, str_of(note->mac));
    bind_str(stmt, 10, log_note_from_hex(note, from));
    return sql_run(&store->sql, stmt, NULL, err);
}

/* Notes that the chain has come this far; no record says so yet. */
static int note_head(struct sqlite_store *store, const struct log_head *head,
                     const struct log_head *before, const struct log_entry *entry,
                     struct err *err)
{
    struct log_note note = {.part = log_part_after(before, head),
                            .task_id = entry->task_id,
                            .task_type = entry->task_type,
                            .logged_at_us = entry->logged_at_us};

    if (log_written_add(&store->base, head) < 0)
        return err_no_memory(err);
    return put_note(store, &note, err);
}

static int insert_line(struct sqlite_sql *sql, const struct log_line *line, struct log_head *head,
                       struct err *err)
{
    char hex[HASH_HEX_BYTES + 1];
    sqlite3_stmt *stmt = sql_get(sql, SQL_log_insert, err);

    if (!stmt)
        return -(int)err->code;
    if (logchain_step(head, line) < 0)
        return err_no_memory(err);
    hash_hex(head->hash, sizeof head->hash, hex);
    bind_uuid(stmt, 1, &line->id);
    bind_uuid(stmt, 2, &line->execution_id);
    bind_int(stmt, 3, line->seq);
    sqlite3_bind_text(stmt, 4, severity_word(line->level), -1, SQLITE_STATIC);
    bind_str(stmt, 5, line->message);
    bind_str(stmt, 6, line->context);
    bind_int(stmt, 7, line->logged_at_us);
    sqlite3_bind_text(stmt, 8, hex, HASH_HEX_BYTES, SQLITE_STATIC);
    return sql_run(sql, stmt, NULL, err);
}

/* The last line an execution may have says that there were more, and is in the chain like any; what
 * comes then is dropped. */
static int insert_bounded(struct sqlite_sql *sql, struct log_entry *entry, struct log_head *head,
                          struct err *err)
{
    struct log_line line = {.id = entry->id,
                            .execution_id = entry->execution_id,
                            .task_id = entry->task_id,
                            .seq = head->seq + 1,
                            .level = entry->level,
                            .message = entry->message,
                            .context = entry->context,
                            .logged_at_us = entry->logged_at_us,
                            .bound = entry->bound};

    memcpy(line.about, entry->about, sizeof line.about);
    entry->seq = 0;
    if (head->seq >= BOUND_LOG_LINES_PER_EXECUTION)
        return 0;
    if (line.seq == BOUND_LOG_LINES_PER_EXECUTION) {
        line.level = SEVERITY_WARN;
        line.message = STR(BOUND_LOG_LINES_TEXT);
        line.context = STR_NONE;
    }
    entry->seq = line.seq;
    return insert_line(sql, &line, head, err);
}

/* Lines of a batch mostly belong to one execution: where its chain stands is asked and noted once
 * per run. A line that is dropped gets seq 0. */
int sqlite_logs_insert(struct store *base, struct log_entry *entries, uint32_t count,
                       struct err *err)
{
    struct sqlite_store *store = sqlite_of(base);
    const struct log_entry *newest = NULL; /* that was not dropped */
    struct log_head head = {.seq = 0}, before = {.seq = 0};
    bool noted = true;

    for (uint32_t i = 0; i < count; i++) {
        struct log_entry *entry = &entries[i];
        bool ends = i + 1 == count || !uuid_eq(&entry->execution_id, &entries[i + 1].execution_id);

        if (i == 0 || !uuid_eq(&head.execution_id, &entry->execution_id)) {
            TRY(load_head(store, entry, &head, &noted, err));
            before = head;
        }
        TRY(insert_bounded(&store->sql, entry, &head, err));
        newest = entry->seq > 0 ? entry : newest;
        if (ends && noted && head.seq > before.seq &&
            note_head(store, &head, &before, newest, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* It is in a record, or what it stands for was removed: a cut is the last word about its lines. */
static int forget_head(struct sqlite_sql *sql, enum sqlite_statement name,
                       const struct log_head *head, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, name, err);

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, &head->execution_id);
    bind_int(stmt, 2, head->seq);
    return sql_run(sql, stmt, NULL, err);
}

int sqlite_logs_delete(struct sqlite_store *store, sqlite3_stmt *stmt, int64_t *removed,
                       struct err *err)
{
    const struct log_cuts *cuts = store->base.cuts;
    uint32_t at = cuts && cuts->count ? cuts->count - 1 : 0; /* the last one may grow */
    int64_t lines = 0;
    int rc;

    while ((rc = sql_step(&store->sql, stmt, err)) > 0) {
        struct uuid id = column_uuid(stmt, 0);

        lines++;
        if (log_cuts_add(store->base.cuts, &id, sqlite3_column_int64(stmt, 1),
                         str_of((const char *)sqlite3_column_text(stmt, 2)), 1,
                         sqlite3_column_int64(stmt, 3)) < 0) {
            sqlite3_reset(stmt);
            return err_no_memory(err);
        }
    }
    for (; rc == 0 && cuts && at < cuts->count; at++)
        rc = forget_head(&store->sql, SQL_heads_forget, &cuts->items[at].head, err);
    if (removed)
        *removed = lines;
    return rc;
}

/* ---- chains that wait for a record ---- */

/* The notes of an execution come one after the other: the last one stays, the lines are added. */
static void take_row(struct store *base, sqlite3_stmt *stmt, struct arena *arena,
                     struct log_note *notes, struct log_part *parts, uint32_t *count)
{
    struct uuid id = column_uuid(stmt, 9);
    struct log_note note;
    uint32_t at;

    sqlite_note_from_row(stmt, 0, &id, &note);
    note.closed = STR("");
    if (*count == 0 || !uuid_eq(&notes[*count - 1].part.head.execution_id, &id))
        parts[(*count)++] = (struct log_part){.head.execution_id = id};
    at = *count - 1;
    log_part_add(base, &parts[at], &note);
    note.task_type = keep(arena, note.task_type);
    note.ended = keep(arena, column_view(stmt, 10));
    notes[at] = note;
}

static int heads_take(struct store *base, uint32_t limit, struct arena *arena,
                      struct log_note **notes, struct log_part **parts, uint32_t *count,
                      struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_heads_first, err);
    int rc = 0;

    *count = 0;
    *notes = arena_alloc_array(arena, limit, sizeof **notes);
    *parts = arena_alloc_array(arena, limit, sizeof **parts);
    if (!stmt)
        return -(int)err->code;
    if (!*notes || !*parts)
        return err_no_memory(err);
    bind_int(stmt, 1, limit);
    while ((rc = sql_step(sql, stmt, err)) > 0)
        take_row(base, stmt, arena, *notes, *parts, count);
    sqlite3_reset(stmt);
    for (uint32_t i = 0; rc >= 0 && i < *count; i++)
        rc = forget_head(sql, SQL_heads_taken, &(*notes)[i].part.head, err);
    if (rc >= 0 && arena->failed)
        return err_no_memory(err);
    return rc < 0 ? rc : 0;
}

static int heads_put(struct store *base, const struct log_note *notes, uint32_t count,
                     struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct log_note note = notes[i];

        TRY(put_note(sqlite_of(base), &note, err));
    }
    return 0;
}

static int heads_forget(struct store *base, const struct log_note *notes, uint32_t count,
                        struct err *err)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(forget_head(&sqlite_of(base)->sql, SQL_heads_forget, &notes[i].part.head, err));
    return 0;
}

static int ask_any(struct store *base, enum sqlite_statement name, bool *any, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, name, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    rc = sql_step(sql, stmt, err);
    *any = rc > 0;
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

static int heads_open(struct store *base, bool *open, struct err *err)
{
    return ask_any(base, SQL_heads_open, open, err);
}

static int any_line(struct store *base, bool *any, struct err *err)
{
    return ask_any(base, SQL_log_any, any, err);
}

/* ---- records ---- */

void sqlite_anchor_from_row(sqlite3_stmt *stmt, struct arena *arena, struct anchor_row *row)
{
    const char *hash = (const char *)sqlite3_column_text(stmt, 2);
    const char *signature = (const char *)sqlite3_column_text(stmt, 3);

    *row = (struct anchor_row){.serial = sqlite3_column_int64(stmt, 0),
                               .record = column_str(stmt, 1, arena),
                               .created_at_us = sqlite3_column_int64(stmt, 4)};
    snprintf(row->hash, sizeof row->hash, "%s", hash ? hash : "");
    snprintf(row->signature, sizeof row->signature, "%s", signature ? signature : "");
}

static int anchor_last(struct store *base, struct arena *arena, struct anchor_row *row,
                       struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_anchor_last, err);
    int rc;

    *row = (struct anchor_row){.serial = 0};
    if (!stmt)
        return -(int)err->code;
    rc = sql_step(sql, stmt, err);
    if (rc <= 0)
        return rc;
    sqlite_anchor_from_row(stmt, arena, row);
    sqlite3_reset(stmt);
    return arena->failed ? err_no_memory(err) : 0;
}

static int anchor_insert(struct store *base, const struct anchor_row *row, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_anchor_insert, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, row->serial);
    bind_str(stmt, 2, row->record);
    bind_str(stmt, 3, str_of(row->hash));
    bind_str(stmt, 4, str_of(row->signature));
    bind_int(stmt, 5, row->created_at_us);
    return sql_run(sql, stmt, NULL, err);
}

static int anchors_read(struct store *base, int64_t after_serial, uint32_t limit,
                        struct arena *arena, struct anchor_row **rows, uint32_t *count,
                        struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_anchors_after, err);
    int rc = 0;

    *count = 0;
    *rows = arena_alloc_array(arena, limit, sizeof **rows);
    if (!stmt)
        return -(int)err->code;
    if (!*rows)
        return err_no_memory(err);
    bind_int(stmt, 1, after_serial);
    bind_int(stmt, 2, limit);
    while (*count < limit && (rc = sql_step(sql, stmt, err)) > 0)
        sqlite_anchor_from_row(stmt, arena, &(*rows)[(*count)++]);
    sqlite3_reset(stmt);
    if (rc >= 0 && arena->failed)
        return err_no_memory(err);
    return rc < 0 ? rc : 0;
}

static int heads_alive(struct store *base, const struct log_part *heads, uint32_t count,
                       bool *alive, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;

    for (uint32_t i = 0; i < count; i++) {
        sqlite3_stmt *stmt = sql_get(sql, SQL_head_alive, err);
        int rc;

        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &heads[i].head.execution_id);
        rc = sql_step(sql, stmt, err);
        if (rc < 0)
            return rc;
        alive[i] = rc > 0;
        sqlite3_reset(stmt);
    }
    return 0;
}

static int anchors_trim(struct store *base, int64_t through_serial, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    sqlite3_stmt *stmt = sql_get(sql, SQL_anchors_trim, err);

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, through_serial);
    return sql_run(sql, stmt, NULL, err);
}

const struct log_verbs sqlite_log_verbs = {
    .heads_take = heads_take,
    .heads_put = heads_put,
    .heads_forget = heads_forget,
    .heads_open = heads_open,
    .any_line = any_line,
    .chains_next = sqlite_chains_next,
    .emptied_find = sqlite_emptied_find,
    .lasts_find = sqlite_lasts_find,
    .anchor_last = anchor_last,
    .anchor_insert = anchor_insert,
    .anchors_read = anchors_read,
    .heads_alive = heads_alive,
    .anchors_trim = anchors_trim,
    .lines_empty = sqlite_lines_empty,
    .runs_find = sqlite_log_runs_find,
    .lines_cut = sqlite_lines_cut,
    .whole = sqlite_verify_logs,
    .walk = sqlite_logs_walk,
    .chains_read = sqlite_chains_read,
};
