/* What a task leaves behind: events, executions and checkpoints. Events and executions are on the
 * hot path (one of each per claim, report and outcome), so a batch of them is one statement sent
 * ahead without waiting. Checkpoints are numbered, so a transaction asks once for the numbers of a
 * task. Logs are in pg_logs.c, results in pg_results.c, retention in pg_prune.c. Writer's thread
 * only. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_history.h"

#include "base/hash.h"
#include "core/bounds.h"
#include "core/task/checkpoint.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(items) (uint32_t)(sizeof(items) / sizeof(items)[0])
#define ALL_COLUMNS(columns) (((pg_mask)1 << COUNT(columns)) - 1)

/* Pointers to rows of one array; they live as long as the transaction. */
static const void **row_list(struct pg_store *store, const void *items, uint32_t count,
                             size_t bytes)
{
    const void **rows = arena_alloc_array(&store->arena, count, sizeof *rows);

    for (uint32_t i = 0; rows && i < count; i++)
        rows[i] = (const char *)items + i * bytes;
    return rows;
}

/* ---- events ---- */

static const char *word_of_status(int value)
{
    return status_word((enum status)value);
}

static const char *word_of_actor(int value)
{
    return actor_word((enum actor)value);
}

static const struct field_words statuses = {word_of_status, NULL};
static const struct field_words actors = {word_of_actor, NULL};

#define EVENT(column, column_kind, column_flags, field)                                            \
    {.name = column, .kind = column_kind, .flags = column_flags,                                   \
     .offset = (uint16_t)offsetof(struct task_event, field)}
#define EVENT_WORD(column, field, column_words)                                                    \
    {.name = column, .kind = FIELD_WORD, .flags = FIELD_ALWAYS,                                    \
     .offset = (uint16_t)offsetof(struct task_event, field), .words = &(column_words)}

static const struct field event_columns[] = { /* as in events_insert */
    EVENT("task", FIELD_INT, FIELD_ALWAYS, task_key),
    EVENT("seq", FIELD_INT, FIELD_ALWAYS, seq),
    EVENT("id", FIELD_UUID, 0, id),
    EVENT_WORD("status", status, statuses),
    EVENT("state", FIELD_TEXT, 0, state),
    EVENT("detail", FIELD_TEXT, 0, detail),
    EVENT_WORD("actor", actor, actors),
    EVENT("created_at", FIELD_TIME, FIELD_ALWAYS, created_at_us),
    EVENT("principal", FIELD_TEXT, 0, principal),
};
static const struct pg_table event_table = {"task_event_rows", event_columns,
                                            COUNT(event_columns), 2, NULL};

int pg_events_insert(struct store *base, const struct task_event *events, uint32_t count,
                     struct err *err)
{
    struct pg_store *store = pg_of(base);
    const void **rows;

    if (count == 0)
        return 0;
    rows = row_list(store, events, count, sizeof *events);
    if (!rows)
        return err_no_memory(err);
    rows_put(&store->conn.params, &event_table, ALL_COLUMNS(event_columns), rows, count);
    return pg_send(store, PGSQL_events_insert, err);
}

/* ---- executions ---- */

int pg_executions_insert(struct store *base, const struct execution *executions, uint32_t count,
                         struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_statement statement;
    const void **rows;
    pg_mask mask;

    if (count == 0)
        return 0;
    rows = row_list(store, executions, count, sizeof *executions);
    if (!rows)
        return err_no_memory(err);
    mask = rows_used(&pg_executions, rows, count);
    TRY(texts_insert(&store->texts, &pg_executions, mask, &statement, err));
    rows_put(&store->conn.params, &pg_executions, mask, rows, count);
    return conn_send(&store->conn, &statement, err);
}

/* The parameters of executions_save, in the order of pg_executions, followed by duration_ms. */
static pg_mask saved_columns(void)
{
    static const char *const names[] = {"execution",  "id",           "status",    "start_seq",
                                        "end_seq",    "started_at",   "completed_at",
                                        "failed_at",  "result_data",  "error_data"};
    pg_mask mask = 0;
    uint32_t at = 0;

    for (uint32_t c = 0; c < pg_executions.count && at < COUNT(names); c++)
        if (strcmp(pg_executions.columns[c].name, names[at]) == 0) {
            mask |= (pg_mask)1 << c;
            at++;
        }
    ASSERT(at == COUNT(names));
    return mask;
}

/* A run under a millisecond has the duration 0, an unfinished one has none. */
static void put_durations(struct pg_params *params, const void *const *rows, uint32_t count)
{
    array_begin(params, PG_OID_INT8);
    for (uint32_t i = 0; i < count; i++) {
        const struct execution *execution = rows[i];

        if (execution->completed_at_us != 0 || execution->failed_at_us != 0)
            array_int(params, execution->duration_ms);
        else
            array_null(params);
    }
    array_end(params);
}

static int save_rows(struct pg_store *store, enum pg_sql_name name, const void *const *rows,
                     uint32_t count, struct err *err)
{
    if (count == 0)
        return 0;
    rows_put(&store->conn.params, &pg_executions, saved_columns(), rows, count);
    put_durations(&store->conn.params, rows, count);
    return pg_send(store, name, err);
}

/* Rows with a known id are found in one partition; the others come after them. */
int pg_executions_save(struct store *base, const struct execution *executions, uint32_t count,
                       struct err *err)
{
    struct pg_store *store = pg_of(base);
    uint32_t with_id = 0, without_id = count;
    const void **rows;

    if (count == 0)
        return 0;
    rows = arena_alloc_array(&store->arena, count, sizeof *rows);
    if (!rows)
        return err_no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        rows[uuid_is_nil(&executions[i].id) ? --without_id : with_id++] = &executions[i];
    TRY(save_rows(store, PGSQL_executions_save, rows, with_id, err));
    return save_rows(store, PGSQL_executions_save_keyed, rows + with_id, count - with_id, err);
}

/* ---- checkpoints ---- */

/* The numbers of the task that got the last checkpoint: a report with many usually has them of one
 * task. Dropped with the transaction, because another node may add and thin out checkpoints. */
struct numbered_checkpoints {
    uint64_t transaction;
    struct uuid task_id;
    struct checkpoint_seqs seqs;
};

static int read_seqs(struct pg_store *store, const struct uuid *task_id,
                     struct checkpoint_seqs **out, struct err *err)
{
    struct numbered_checkpoints *last = store->numbered;
    struct checkpoint_seqs *found;
    PGresult *result;
    int rows;

    if (last && last->transaction == store->transactions && uuid_eq(&last->task_id, task_id)) {
        *out = &last->seqs;
        return 0;
    }
    if (!last)
        last = store->numbered = calloc(1, sizeof *last);
    if (!last)
        return err_no_memory(err);
    last->transaction = 0;
    found = &last->seqs;
    found->count = 0;
    param_uuid(&store->conn.params, task_id);
    TRY(pg_query(store, PGSQL_checkpoint_seqs, &result, err));
    rows = PQntuples(result); /* newest first */
    while (rows > 0 && found->count < CHECKPOINT_SEQS_MAX - 1)
        found->seqs[found->count++] = get_int(result, --rows, 0, 0);
    PQclear(result);
    last->transaction = store->transactions;
    last->task_id = *task_id;
    *out = found;
    return 0;
}

/* A long run makes thousands of checkpoints; some of the older ones are enough. */
static int thin_checkpoints(struct pg_store *store, const struct uuid *task_id,
                            struct checkpoint_seqs *seqs, struct err *err)
{
    while (seqs->count > BOUND_CHECKPOINTS_KEPT) {
        uint32_t out = checkpoint_thin(seqs->seqs, seqs->count);

        param_uuid(&store->conn.params, task_id);
        param_int(&store->conn.params, seqs->seqs[out]);
        TRY(pg_send(store, PGSQL_checkpoint_thin, err));
        seqs->count--;
        memmove(seqs->seqs + out, seqs->seqs + out + 1,
                (seqs->count - out) * sizeof *seqs->seqs);
    }
    return 0;
}

/* Sets the seq, and the hash, which covers it. */
int pg_checkpoint_insert(struct store *base, const struct uuid *task_id,
                         struct checkpoint *checkpoint, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    struct checkpoint_seqs *seqs = NULL;

    TRY(read_seqs(store, task_id, &seqs, err));
    if (!checkpoint->data.data)
        checkpoint->data = STR("{}"); /* as it will be read back */
    checkpoint->task_key = uuid7_key(task_id);
    checkpoint->seq = seqs->count ? seqs->seqs[seqs->count - 1] + 1 : 1;
    seqs->seqs[seqs->count++] = checkpoint->seq;
    checkpoint->valid = true;
    if (checkpoint_hash(task_id, checkpoint, checkpoint->hash) < 0)
        return err_no_memory(err);
    param_uuid(params, &checkpoint->id);
    param_uuid(params, task_id);
    param_int(params, checkpoint->seq);
    param_text(params, checkpoint->name);
    param_int(params, checkpoint->progress);
    param_text(params, checkpoint->description);
    param_text(params, checkpoint->data);
    param_text(params, checkpoint->database_state);
    param_text(params, checkpoint->file_state);
    param_text(params, str_of(checkpoint->hash));
    param_time(params, checkpoint->created_at_us);
    TRY(pg_send(store, PGSQL_checkpoint_insert, err));
    return thin_checkpoints(store, task_id, seqs, err);
}
