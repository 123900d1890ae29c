/* Log lines, each with its hash in the chain of its execution; the chains that wait for a record,
 * and the records. A batch reads the ends of its chains once, then writes all its lines and notes
 * in one statement. Another node may append to the same execution only after it took its lease. If
 * it appends without, the number of its line is taken: the statement fails and is tried again.
 * Writer's thread only. */
#include "store/postgres/pg_int.h"

#include "core/bounds.h"
#include "store/log_memory.h"
#include "store/log_store.h"

#include <stddef.h>
#include <stdio.h>

#define COUNT(items) (uint32_t)(sizeof(items) / sizeof(items)[0])
#define ALL_COLUMNS(columns) (((pg_mask)1 << COUNT(columns)) - 1)

/* ---- lines ---- */

static const char *word_of_severity(int value)
{
    return severity_word((enum log_severity)value);
}

static const struct field_words severities = {word_of_severity, NULL};

#define LOG_COLUMN(column, column_kind, column_flags, field)                                       \
    {.name = column, .kind = column_kind, .flags = column_flags,                                   \
     .offset = (uint16_t)offsetof(struct log_entry, field)}

static const struct field log_columns[] = { /* as in logs_insert */
    LOG_COLUMN("id", FIELD_UUID, 0, id),
    LOG_COLUMN("execution_id", FIELD_UUID, 0, execution_id),
    LOG_COLUMN("seq", FIELD_INT, FIELD_ALWAYS, seq),
    {.name = "log_level", .kind = FIELD_WORD, .flags = FIELD_ALWAYS,
     .offset = (uint16_t)offsetof(struct log_entry, level), .words = &severities},
    LOG_COLUMN("message", FIELD_TEXT, 0, message),
    LOG_COLUMN("context", FIELD_TEXT, 0, context),
    LOG_COLUMN("logged_at", FIELD_TIME, FIELD_ALWAYS, logged_at_us),
    LOG_COLUMN("chain_hash", FIELD_TEXT, 0, chain_hash),
};
static const struct pg_table log_table = {"execution_logs", log_columns, COUNT(log_columns), 3,
                                          NULL};

/* Nine columns from `from` on; texts are good as long as the result. */
void pg_note_from_row(const PGresult *result, int row, int from, const struct uuid *id,
                          struct log_note *note)
{
    struct str mac = view_text(result, row, from + 7);

    *note = (struct log_note){.part.lines = get_int(result, row, from + 2, 0),
                              .task_id = get_uuid(result, row, from + 3),
                              .task_type = view_text(result, row, from + 4),
                              .logged_at_us = get_time(result, row, from + 5),
                              .closed = view_text(result, row, from + 6)};
    note->part.closed = note->closed.len > 0;
    log_note_from(note, view_text(result, row, from + 8));
    logchain_resume(&note->part.head, id, get_int(result, row, from, 0),
                    view_text(result, row, from + 1));
    snprintf(note->mac, sizeof note->mac, STR_FMT, STR_ARG(mac));
}

/* The chains of one batch. */
struct chains {
    struct map by_id;
    struct chain *items;
    uint32_t count;
};

struct chain {
    struct log_head head;
    struct log_head before;         /* where it stood */
    struct log_head known;          /* where this process left it; seq 0 = that is not known */
    bool found;                     /* it has lines */
    bool proven;                    /* what comes may be noted for a record */
    const struct log_entry *newest; /* that was not dropped */
};

struct log_last pg_last_from_row(const PGresult *result, int row)
{
    struct log_last last = {.execution_id = get_uuid(result, row, 0),
                            .seq = get_int(result, row, 1, 0),
                            .chain_hash = view_text(result, row, 2),
                            .logged_at_us = get_time(result, row, 3),
                            .noted = !PQgetisnull(result, row, 4)};

    if (last.noted)
        pg_note_from_row(result, row, 4, &last.execution_id, &last.note);
    return last;
}

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

static int list_chains(struct pg_store *store, struct chains *chains,
                       const struct log_entry *entries, uint32_t count, struct err *err)
{
    chains->items = arena_alloc_array(&store->arena, count, sizeof *chains->items);
    if (!chains->items)
        return err_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct chain *chain = &chains->items[chains->count];

        if (map_get(&chains->by_id, id_key(&entries[i].execution_id)))
            continue;
        *chain = (struct chain){.head.execution_id = entries[i].execution_id,
                                .newest = &entries[i]};
        if (store->base.log_memory)
            log_memory_known(store->base.log_memory, store->base.log_seen,
                             &chain->head.execution_id, &chain->known);
        if (map_put(&chains->by_id, id_key(&chain->head.execution_id), chain) < 0)
            return err_no_memory(err);
        chains->count++;
    }
    return 0;
}

static int take_last(struct pg_store *store, struct chain *chain, const struct log_last *last)
{
    chain->found = true;
    logchain_resume(&chain->head, &last->execution_id, last->seq, last->chain_hash);
    chain->before = chain->head;
    return log_may_follow(&store->base, last, chain->newest, &chain->proven);
}

/* Another node has continued it since. chain_hash: of the line where this process had left it. */
static int find_lost(struct pg_store *store, const struct chain *chain, struct str chain_hash,
                     struct log_last *last, struct err *err)
{
    char hex[HASH_HEX_BYTES + 1];
    bool cut = false;

    if (chain->known.seq == 0 || chain->known.seq >= last->seq)
        return 0;
    hash_hex(chain->known.hash, HASH_BYTES, hex);
    if (!chain_hash.data)
        TRY(log_find_cut(&store->base, &chain->known, &cut, err));
    last->lost = !cut && !str_is(chain_hash, hex);
    return 0;
}

static int load_chains(struct pg_store *store, struct chains *chains, struct err *err)
{
    struct pg_params *params = &store->conn.params;
    PGresult *result;
    int rc = 0;

    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < chains->count; i++)
        array_uuid(params, &chains->items[i].head.execution_id);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < chains->count; i++)
        array_int(params, chains->items[i].known.seq);
    array_end(params);
    TRY(pg_query(store, PGSQL_logs_last, &result, err));
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        struct log_last last = pg_last_from_row(result, row);
        struct chain *chain = map_get(&chains->by_id, id_key(&last.execution_id));

        if (!chain)
            continue;
        rc = find_lost(store, chain, view_text(result, row, 13), &last, err);
        if (rc == 0 && take_last(store, chain, &last) < 0)
            rc = err_no_memory(err);
    }
    PQclear(result);
    for (uint32_t i = 0; rc == 0 && i < chains->count; i++) {
        const struct log_last none = {.execution_id = chains->items[i].head.execution_id};

        if (!chains->items[i].found && take_last(store, &chains->items[i], &none) < 0)
            rc = err_no_memory(err);
    }
    return rc;
}

/* The row to be stored: the line with its number and hash; for the last one an execution may have a
 * marker that says so. NULL: dropped, or no memory (then the arena has failed). */
static struct log_entry *chain_entry(struct pg_store *store, struct chains *chains,
                                     struct log_entry *entry)
{
    struct chain *chain = map_get(&chains->by_id, id_key(&entry->execution_id));
    struct log_head *head = &chain->head;
    struct log_entry *row;
    struct log_line line;
    char *hex;

    entry->seq = 0;
    if (head->seq >= BOUND_LOG_LINES_PER_EXECUTION)
        return NULL;
    row = arena_copy(&store->arena, entry, sizeof *entry);
    hex = arena_alloc(&store->arena, HASH_HEX_BYTES + 1);
    if (!row || !hex)
        return NULL;
    row->seq = head->seq + 1;
    if (row->seq == BOUND_LOG_LINES_PER_EXECUTION) {
        row->level = SEVERITY_WARN;
        row->message = STR(BOUND_LOG_LINES_TEXT);
        row->context = STR_NONE;
    }
    line = (struct log_line){.id = row->id,
                             .execution_id = row->execution_id,
                             .task_id = row->task_id,
                             .seq = row->seq,
                             .level = row->level,
                             .message = row->message,
                             .context = row->context,
                             .logged_at_us = row->logged_at_us,
                             .bound = row->bound};
    memcpy(line.about, row->about, sizeof line.about);
    if (logchain_step(head, &line) < 0) {
        store->arena.failed = true;
        return NULL;
    }
    hash_hex(head->hash, sizeof head->hash, hex);
    row->chain_hash = str_span(hex, HASH_HEX_BYTES);
    entry->seq = row->seq;
    chain->newest = entry;
    return row;
}

static void put_texts(struct pg_params *params, const struct log_note *notes, uint32_t count)
{
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, notes[i].task_type);
    array_end(params);
    array_begin(params, PG_OID_TIME);
    for (uint32_t i = 0; i < count; i++)
        array_time(params, notes[i].logged_at_us);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, notes[i].closed.data ? notes[i].closed : STR(""));
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, str_of(notes[i].mac));
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++) {
        char hex[HASH_HEX_BYTES + 1];

        array_text(params, log_note_from_hex(&notes[i], hex));
    }
    array_end(params);
}

/* Ten arrays, as in heads_put. */
static void put_notes(struct pg_params *params, const struct log_note *notes, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &notes[i].part.head.execution_id);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, notes[i].part.head.seq);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++) {
        char hex[HASH_HEX_BYTES + 1];

        hash_hex(notes[i].part.head.hash, HASH_BYTES, hex);
        array_text(params, str_of(hex));
    }
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, notes[i].part.lines);
    array_end(params);
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &notes[i].task_id);
    array_end(params);
    put_texts(params, notes, count);
}

/* Writes the notes of the chains that have new lines. */
static int note_chains(struct pg_store *store, const struct chains *chains, struct err *err)
{
    struct log_note *notes = arena_alloc_array(&store->arena, chains->count, sizeof *notes);
    uint32_t count = 0;

    for (uint32_t i = 0; notes && i < chains->count; i++) {
        const struct chain *chain = &chains->items[i];

        if (!chain->proven || chain->head.seq <= chain->before.seq)
            continue;
        notes[count] = (struct log_note){.part = log_part_after(&chain->before, &chain->head),
                                         .task_id = chain->newest->task_id,
                                         .task_type = chain->newest->task_type,
                                         .logged_at_us = chain->newest->logged_at_us};
        if (log_note_seal(&store->base, &notes[count++]) < 0 ||
            log_written_add(&store->base, &chain->head) < 0)
            return err_no_memory(err);
    }
    if (!notes)
        return err_no_memory(err);
    put_notes(&store->conn.params, notes, count);
    return 0;
}

static int insert_chained(struct pg_store *store, struct chains *chains, struct log_entry *entries,
                          uint32_t count, struct err *err)
{
    const void **rows;
    uint32_t kept = 0;

    TRY(list_chains(store, chains, entries, count, err));
    TRY(load_chains(store, chains, err));
    rows = arena_alloc_array(&store->arena, count, sizeof *rows);
    for (uint32_t i = 0; rows && i < count; i++) {
        rows[kept] = chain_entry(store, chains, &entries[i]);
        kept += rows[kept] != NULL;
    }
    if (store->arena.failed)
        return err_no_memory(err);
    if (kept == 0)
        return 0;
    rows_put(&store->conn.params, &log_table, ALL_COLUMNS(log_columns), rows, kept);
    if (note_chains(store, chains, err) < 0) {
        params_reset(&store->conn.params);
        return -(int)err->code;
    }
    return pg_send(store, PGSQL_logs_insert, err);
}

/* A line that is dropped gets seq 0. */
int pg_logs_insert(struct store *base, struct log_entry *entries, uint32_t count, struct err *err)
{
    struct chains chains = {.by_id = MAP_INIT};
    int rc = count == 0 ? 0 : insert_chained(pg_of(base), &chains, entries, count, err);

    map_deinit(&chains.by_id);
    return rc;
}

int pg_logs_delete(struct pg_store *store, enum pg_sql_name name, int64_t *removed,
                   struct err *err)
{
    int64_t lines = 0;
    PGresult *result;
    int rc = 0;

    TRY(pg_query(store, name, &result, err));
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 0);
        int64_t count = get_int(result, row, 3, 0);

        lines += count;
        if (log_cuts_add(store->base.cuts, &id, get_int(result, row, 1, 0),
                         view_text(result, row, 2), count, get_time(result, row, 4)) < 0)
            rc = err_no_memory(err);
    }
    PQclear(result);
    if (removed)
        *removed = lines;
    return rc;
}

/* ---- chains that wait for a record ---- */

/* The notes of an execution come one after the other: the last one stays, the lines are added. */
static void take_row(struct store *base, const PGresult *result, int row, struct arena *arena,
                     struct log_note *notes, struct log_part *parts, uint32_t *count)
{
    struct uuid id = get_uuid(result, row, 0);
    struct log_note note;
    uint32_t at;

    pg_note_from_row(result, row, 1, &id, &note);
    note.closed = STR("");
    if (*count == 0 || !uuid_eq(&notes[*count - 1].part.head.execution_id, &id))
        parts[(*count)++] = (struct log_part){.head.execution_id = id};
    at = *count - 1;
    log_part_add(base, &parts[at], &note);
    note.task_type = get_text(result, row, 5, arena);
    note.ended = get_text(result, row, 10, arena);
    notes[at] = note;
}

static int heads_take(struct store *base, uint32_t limit, struct arena *arena,
                      struct log_note **notes, struct log_part **parts, uint32_t *count,
                      struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *count = 0;
    *notes = arena_alloc_array(arena, limit, sizeof **notes);
    *parts = arena_alloc_array(arena, limit, sizeof **parts);
    if (!*notes || !*parts)
        return err_no_memory(err);
    param_int(&store->conn.params, limit);
    TRY(pg_query(store, PGSQL_heads_take, &result, err));
    for (int row = 0; row < PQntuples(result); row++)
        take_row(base, result, row, arena, *notes, *parts, count);
    PQclear(result);
    return arena->failed ? err_no_memory(err) : 0;
}

static int heads_put(struct store *base, const struct log_note *notes, uint32_t count,
                     struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct log_note *sealed = arena_copy(&store->arena, notes, count * sizeof *notes);

    if (!sealed)
        return err_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        if (log_note_seal(base, &sealed[i]) < 0)
            return err_no_memory(err);
    put_notes(&store->conn.params, sealed, count);
    return pg_send(store, PGSQL_heads_put, err);
}

static int ask_any(struct store *base, enum pg_sql_name name, bool *any, struct err *err)
{
    PGresult *result;

    TRY(pg_query(pg_of(base), name, &result, err));
    *any = get_bool(result, 0, 0);
    PQclear(result);
    return 0;
}

static int heads_open(struct store *base, bool *open, struct err *err)
{
    return ask_any(base, PGSQL_heads_open, open, err);
}

static int any_line(struct store *base, bool *any, struct err *err)
{
    return ask_any(base, PGSQL_logs_any, any, err);
}

/* ---- records ---- */

static void copy_text(const PGresult *result, int row, int column, char *out, size_t cap)
{
    struct str text = view_text(result, row, column);

    snprintf(out, cap, STR_FMT, STR_ARG(text));
}

void pg_anchor_from_row(const PGresult *result, int row, struct arena *arena,
                        struct anchor_row *anchor)
{
    *anchor = (struct anchor_row){.serial = get_int(result, row, 0, 0),
                                  .record = arena ? get_text(result, row, 1, arena)
                                                  : view_text(result, row, 1),
                                  .created_at_us = get_time(result, row, 4)};
    copy_text(result, row, 2, anchor->hash, sizeof anchor->hash);
    copy_text(result, row, 3, anchor->signature, sizeof anchor->signature);
}

static int anchor_last(struct store *base, struct arena *arena, struct anchor_row *row,
                       struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *row = (struct anchor_row){.serial = 0};
    TRY(pg_query(store, PGSQL_anchor_lock, &result, err));
    PQclear(result);
    TRY(pg_query(store, PGSQL_anchor_last, &result, err));
    if (PQntuples(result) > 0)
        pg_anchor_from_row(result, 0, arena, row);
    PQclear(result);
    return arena->failed ? err_no_memory(err) : 0;
}

static int anchor_insert(struct store *base, const struct anchor_row *row, struct err *err)
{
    struct pg_params *params = &pg_of(base)->conn.params;

    param_int(params, row->serial);
    param_text(params, row->record);
    param_text(params, str_of(row->hash));
    param_text(params, str_of(row->signature));
    param_time(params, row->created_at_us);
    return pg_send(pg_of(base), PGSQL_anchor_insert, err);
}

static int anchors_read(struct store *base, int64_t after_serial, uint32_t limit,
                        struct arena *arena, struct anchor_row **rows, uint32_t *count,
                        struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *count = 0;
    *rows = arena_alloc_array(arena, limit, sizeof **rows);
    if (!*rows)
        return err_no_memory(err);
    param_int(&store->conn.params, after_serial);
    param_int(&store->conn.params, limit);
    TRY(pg_ask(store, PGSQL_anchors_after, &result, err));
    for (int row = 0; row < PQntuples(result) && *count < limit; row++)
        pg_anchor_from_row(result, row, arena, &(*rows)[(*count)++]);
    PQclear(result);
    return arena->failed ? err_no_memory(err) : 0;
}

static void put_ids(struct pg_params *params, const struct log_part *heads, uint32_t count)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &heads[i].head.execution_id);
    array_end(params);
}

/* One answer for each. */
static int ask_each(struct pg_store *store, enum pg_sql_name name, uint32_t count, bool *answers,
                    struct err *err)
{
    PGresult *result;

    TRY(pg_query(store, name, &result, err));
    for (uint32_t i = 0; i < count; i++)
        answers[i] = (int)i >= PQntuples(result) || get_bool(result, (int)i, 0);
    PQclear(result);
    return 0;
}

static int heads_alive(struct store *base, const struct log_part *heads, uint32_t count,
                       bool *alive, struct err *err)
{
    put_ids(&pg_of(base)->conn.params, heads, count);
    return ask_each(pg_of(base), PGSQL_heads_alive, count, alive, err);
}

static int heads_stand(struct store *base, const struct log_part *heads, uint32_t count,
                       bool *stand, struct err *err)
{
    struct pg_params *params = &pg_of(base)->conn.params;

    put_ids(params, heads, count);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++)
        array_int(params, heads[i].head.seq);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++) {
        char hex[HASH_HEX_BYTES + 1];

        hash_hex(heads[i].head.hash, HASH_BYTES, hex);
        array_text(params, str_of(hex));
    }
    array_end(params);
    return ask_each(pg_of(base), PGSQL_heads_stand, count, stand, err);
}

static int anchors_trim(struct store *base, int64_t through_serial, struct err *err)
{
    param_int(&pg_of(base)->conn.params, through_serial);
    return pg_send(pg_of(base), PGSQL_anchors_trim, err);
}

const struct log_verbs pg_log_verbs = {
    .heads_take = heads_take,
    .heads_put = heads_put,
    .heads_forget = pg_heads_forget,
    .heads_open = heads_open,
    .any_line = any_line,
    .chains_next = pg_chains_next,
    .emptied_find = pg_emptied_find,
    .lasts_find = pg_lasts_find,
    .anchor_last = anchor_last,
    .anchor_insert = anchor_insert,
    .anchors_read = anchors_read,
    .heads_alive = heads_alive,
    .heads_stand = heads_stand,
    .anchors_trim = anchors_trim,
    .lines_empty = pg_lines_empty,
    .runs_find = pg_log_runs_find,
    .lines_cut = pg_lines_cut,
    .whole = pg_verify_logs,
    .walk = pg_logs_walk,
    .chains_read = pg_chains_read,
};
