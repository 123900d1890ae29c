/* Log lines, each with its hash in the chain of its execution; the chains that wait for a record,
 * and the records. Where the chains of a batch stand is asked once, then all its lines and notes
 * are one statement. Other nodes may append to the same execution only after they took its lease;
 * whoever does all the same fails at the number of the line and is tried again. Writer's thread
 * only. */
#include "store/postgres/pg_int.h"

#include "core/bounds.h"
#include "store/log_store.h"

#include <stddef.h>
#include <stdio.h>

#define COUNT(items) (uint32_t)(sizeof(items) / sizeof(items)[0])
#define ALL_COLUMNS(columns) (((pg_mask)1 << COUNT(columns)) - 1)
#define CHUNK_ROWS 2000
#define CHUNK_BYTES (16 * 1024 * 1024)

static int no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "out of memory for the logs; try again");
}

/* ---- lines ---- */

static const char *word_of_severity(int value)
{
    return severity_word((enum log_severity)value);
}

static const struct pg_words severities = {word_of_severity, NULL};

#define LOG_COLUMN(name, kind, always, field) \
    {name, kind, always, (uint16_t)offsetof(struct log_entry, field), 0, NULL}

static const struct pg_column log_columns[] = { /* as in logs_insert */
    LOG_COLUMN("id", PG_UUID, false, id),
    LOG_COLUMN("execution_id", PG_UUID, false, execution_id),
    LOG_COLUMN("seq", PG_INT, true, seq),
    {"log_level", PG_WORD, true, (uint16_t)offsetof(struct log_entry, level), 0, &severities},
    LOG_COLUMN("message", PG_TEXT, false, message),
    LOG_COLUMN("context", PG_TEXT, false, context),
    LOG_COLUMN("logged_at", PG_TIME, true, logged_at_us),
    LOG_COLUMN("chain_hash", PG_TEXT, false, chain_hash),
};
static const struct pg_table log_table = {"execution_logs", log_columns, COUNT(log_columns), 3,
                                          NULL};

/* The chains of one batch. */
struct chains {
    struct map by_id;
    struct log_head *heads;
    int64_t *noted_seqs; /* where each stood before */
    uint32_t count;
};

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

static int list_chains(struct pg_store *store, struct chains *chains,
                       const struct log_entry *entries, uint32_t count, struct err *err)
{
    chains->heads = arena_alloc_array(&store->arena, count, sizeof *chains->heads);
    chains->noted_seqs = arena_alloc_array(&store->arena, count, sizeof *chains->noted_seqs);
    if (!chains->heads || !chains->noted_seqs)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        struct log_head *head = &chains->heads[chains->count];

        if (map_get(&chains->by_id, id_key(&entries[i].execution_id)))
            continue;
        *head = (struct log_head){.execution_id = entries[i].execution_id};
        if (map_put(&chains->by_id, id_key(&head->execution_id), head) < 0)
            return no_memory(err);
        chains->count++;
    }
    return 0;
}

static int load_chains(struct pg_store *store, struct chains *chains, struct err *err)
{
    struct pg_params *params = &store->conn.params;
    PGresult *result;

    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < chains->count; i++)
        array_uuid(params, &chains->heads[i].execution_id);
    array_end(params);
    if (pg_query(store, PGSQL_logs_last, &result, err) < 0)
        return -(int)err->code;
    for (int row = 0; row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 0);
        struct log_head *head = map_get(&chains->by_id, id_key(&id));

        if (head)
            logchain_resume(head, &id, get_int(result, row, 1, 0), view_text(result, row, 2));
    }
    PQclear(result);
    for (uint32_t i = 0; i < chains->count; i++)
        chains->noted_seqs[i] = chains->heads[i].seq;
    return 0;
}

/* The row to be stored: the line with its number and hash; for the last one an execution may have a
 * marker that says so. NULL: dropped, or no memory (then the arena has failed). */
static struct log_entry *chain_entry(struct pg_store *store, struct chains *chains,
                                     struct log_entry *entry)
{
    struct log_head *head = map_get(&chains->by_id, id_key(&entry->execution_id));
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
    line = (struct log_line){.execution_id = row->execution_id,
                             .task_id = row->task_id,
                             .seq = row->seq,
                             .level = row->level,
                             .message = row->message,
                             .context = row->context,
                             .logged_at_us = row->logged_at_us};
    if (logchain_step(head, &line) < 0) {
        store->arena.failed = true;
        return NULL;
    }
    hash_hex(head->hash, sizeof head->hash, hex);
    row->chain_hash = str_span(hex, HASH_HEX_BYTES);
    entry->seq = row->seq;
    return row;
}

static void put_notes(struct pg_params *params, const struct chains *chains)
{
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < chains->count; i++)
        if (chains->heads[i].seq > chains->noted_seqs[i])
            array_uuid(params, &chains->heads[i].execution_id);
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < chains->count; i++)
        if (chains->heads[i].seq > chains->noted_seqs[i])
            array_int(params, chains->heads[i].seq);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < chains->count; i++) {
        char hex[HASH_HEX_BYTES + 1];

        if (chains->heads[i].seq <= chains->noted_seqs[i])
            continue;
        hash_hex(chains->heads[i].hash, HASH_BYTES, hex);
        array_text(params, str_of(hex));
    }
    array_end(params);
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < chains->count; i++)
        if (chains->heads[i].seq > chains->noted_seqs[i])
            array_int(params, chains->heads[i].seq - chains->noted_seqs[i]);
    array_end(params);
}

static int insert_chained(struct pg_store *store, struct chains *chains, struct log_entry *entries,
                          uint32_t count, struct err *err)
{
    const void **rows;
    uint32_t kept = 0;

    if (list_chains(store, chains, entries, count, err) < 0 || load_chains(store, chains, err) < 0)
        return -(int)err->code;
    rows = arena_alloc_array(&store->arena, count, sizeof *rows);
    for (uint32_t i = 0; rows && i < count; i++) {
        rows[kept] = chain_entry(store, chains, &entries[i]);
        kept += rows[kept] != NULL;
    }
    if (store->arena.failed)
        return no_memory(err);
    if (kept == 0)
        return 0;
    rows_put(&store->conn.params, &log_table, ALL_COLUMNS(log_columns), rows, kept);
    put_notes(&store->conn.params, chains);
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

    if (pg_query(store, name, &result, err) < 0)
        return -(int)err->code;
    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        struct uuid id = get_uuid(result, row, 0);
        int64_t count = get_int(result, row, 3, 0);

        lines += count;
        if (log_cuts_add(store->base.cuts, &id, get_int(result, row, 1, 0),
                         view_text(result, row, 2), count) < 0)
            rc = no_memory(err);
    }
    PQclear(result);
    if (removed)
        *removed = lines;
    return rc;
}

/* ---- chains that wait for a record ---- */

static void head_from_row(const PGresult *result, int row, struct log_head *head)
{
    struct uuid id = get_uuid(result, row, 0);

    *head = (struct log_head){.seq = 0};
    logchain_resume(head, &id, get_int(result, row, 1, 0), view_text(result, row, 2));
}

static int heads_take(struct store *base, uint32_t limit, struct arena *arena,
                      struct log_part **heads, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *count = 0;
    *heads = arena_alloc_array(arena, limit, sizeof **heads);
    if (!*heads)
        return no_memory(err);
    param_int(&store->conn.params, limit);
    if (pg_query(store, PGSQL_heads_take, &result, err) < 0)
        return -(int)err->code;
    for (int row = 0; row < PQntuples(result) && *count < limit; row++) {
        (*heads)[*count].lines = get_int(result, row, 3, 0);
        head_from_row(result, row, &(*heads)[(*count)++].head);
    }
    PQclear(result);
    return 0;
}

/* ---- records ---- */

static void copy_text(const PGresult *result, int row, int column, char *out, size_t cap)
{
    struct str text = view_text(result, row, column);

    snprintf(out, cap, STR_FMT, STR_ARG(text));
}

static void anchor_from_row(const PGresult *result, int row, struct arena *arena,
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
    if (pg_query(store, PGSQL_anchor_lock, &result, err) < 0)
        return -(int)err->code;
    PQclear(result);
    if (pg_query(store, PGSQL_anchor_last, &result, err) < 0)
        return -(int)err->code;
    if (PQntuples(result) > 0)
        anchor_from_row(result, 0, arena, row);
    PQclear(result);
    return arena->failed ? no_memory(err) : 0;
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
        return no_memory(err);
    param_int(&store->conn.params, after_serial);
    param_int(&store->conn.params, limit);
    if (pg_ask(store, PGSQL_anchors_after, &result, err) < 0)
        return -(int)err->code;
    for (int row = 0; row < PQntuples(result) && *count < limit; row++)
        anchor_from_row(result, row, arena, &(*rows)[(*count)++]);
    PQclear(result);
    return arena->failed ? no_memory(err) : 0;
}

static int heads_alive(struct store *base, const struct log_part *heads, uint32_t count,
                       bool *alive, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    array_begin(&store->conn.params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(&store->conn.params, &heads[i].head.execution_id);
    array_end(&store->conn.params);
    if (pg_query(store, PGSQL_heads_alive, &result, err) < 0)
        return -(int)err->code;
    for (uint32_t i = 0; i < count; i++)
        alive[i] = (int)i >= PQntuples(result) || get_bool(result, (int)i, 0);
    PQclear(result);
    return 0;
}

static int anchors_trim(struct store *base, int64_t through_serial, struct err *err)
{
    param_int(&pg_of(base)->conn.params, through_serial);
    return pg_send(pg_of(base), PGSQL_anchors_trim, err);
}

/* ---- the walk ---- */

static int walk_records(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    int64_t after = 0;
    PGresult *result;
    int rows;

    do {
        param_int(&store->conn.params, after);
        param_int(&store->conn.params, 100);
        if (pg_query(store, PGSQL_anchors_after, &result, err) < 0)
            return -(int)err->code;
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++) {
            struct anchor_row anchor;

            anchor_from_row(result, row, NULL, &anchor);
            walk->record(walk->ctx, &anchor);
            after = anchor.serial;
        }
        PQclear(result);
    } while (rows > 0);
    return 0;
}

static int walk_heads(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    struct log_head head = {.seq = 0};
    PGresult *result;
    int rows;

    do {
        param_uuid(&store->conn.params, &head.execution_id);
        param_int(&store->conn.params, head.seq);
        param_int(&store->conn.params, CHUNK_ROWS);
        if (pg_query(store, PGSQL_walk_heads, &result, err) < 0)
            return -(int)err->code;
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++) {
            head_from_row(result, row, &head);
            walk->pending(walk->ctx, &head);
        }
        PQclear(result);
    } while (rows > 0);
    return 0;
}

static void walk_line(const PGresult *result, int row, const struct log_walk *walk,
                      struct log_line *line)
{
    *line = (struct log_line){.execution_id = get_uuid(result, row, 0),
                              .seq = get_int(result, row, 1, 0),
                              .message = view_text(result, row, 3),
                              .context = view_text(result, row, 4),
                              .logged_at_us = get_time(result, row, 5),
                              .task_id = get_uuid(result, row, 7),
                              .removed = view_text(result, row, 8)};
    severity_parse(view_text(result, row, 2), &line->level);
    walk->line(walk->ctx, line, view_text(result, row, 6));
}

static int walk_lines(struct pg_store *store, const struct log_walk *walk, struct err *err)
{
    struct log_line line = {.seq = 0};
    PGresult *result;
    int rows;

    do {
        param_uuid(&store->conn.params, &line.execution_id);
        param_int(&store->conn.params, line.seq);
        param_int(&store->conn.params, CHUNK_ROWS);
        param_int(&store->conn.params, CHUNK_BYTES);
        if (pg_query(store, PGSQL_walk_lines, &result, err) < 0)
            return -(int)err->code;
        rows = PQntuples(result);
        for (int row = 0; row < rows; row++)
            walk_line(result, row, walk, &line);
        PQclear(result);
    } while (rows > 0);
    return 0;
}

/* In one snapshot unless it is called within a transaction. */
static int walk_all(struct store *base, const struct log_walk *walk, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_conn *conn = &store->conn;
    bool own = !conn->in_tx;
    int rc = own ? pg_begin_snapshot(store, err) : 0;

    if (rc == 0)
        rc = walk_records(store, walk, err);
    if (rc == 0)
        rc = walk_heads(store, walk, err);
    if (rc == 0)
        rc = walk_lines(store, walk, err);
    if (own && rc == 0)
        rc = conn_commit(conn, err); /* nothing was written */
    if (own && rc < 0)
        conn_rollback(conn);
    return rc;
}

const struct log_verbs pg_log_verbs = {
    .heads_take = heads_take,
    .anchor_last = anchor_last,
    .anchor_insert = anchor_insert,
    .anchors_read = anchors_read,
    .heads_alive = heads_alive,
    .anchors_trim = anchors_trim,
    .lines_empty = pg_lines_empty,
    .runs_find = pg_log_runs_find,
    .lines_cut = pg_lines_cut,
    .walk = walk_all,
};
