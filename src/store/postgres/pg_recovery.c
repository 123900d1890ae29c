/* The recovery queue and discovery: rows to structs and back. The first half belongs to the
 * writer's thread, the second to readers. */
#include "store/postgres/pg_catalog.h"
#include "store/postgres/pg_read.h"
#include "store/recovery_store.h"

#include "core/bounds.h"

const char pg_recovery_columns[] =
    "r.id, r.namespace, r.task_id, r.recovery_method, r.recovery_priority::bigint AS "
    "recovery_priority, r.scheduled_for, r.processing_started, r.processing_completed, r.status, "
    "r.attempts::bigint, r.max_attempts::bigint, r.recovery_result::text, r.error_message, "
    "r.created_at";

static void entry_row(const PGresult *result, int row, int first, struct arena *arena, void *to)
{
    struct recovery_entry *entry = to;

    entry->id = get_uuid(result, row, first);
    entry->namespace_name = get_text(result, row, first + 1, arena);
    entry->task_id = get_uuid(result, row, first + 2);
    recovery_method_parse(view_text(result, row, first + 3), &entry->method);
    entry->priority = get_int(result, row, first + 4, 0);
    entry->scheduled_for_us = get_time(result, row, first + 5);
    entry->processing_started_us = get_time(result, row, first + 6);
    entry->processing_completed_us = get_time(result, row, first + 7);
    recovery_status_parse(view_text(result, row, first + 8), &entry->status);
    entry->attempts = get_int(result, row, first + 9, 0);
    entry->max_attempts = get_int(result, row, first + 10, 0);
    entry->result = get_text(result, row, first + 11, arena);
    entry->error_message = get_text(result, row, first + 12, arena);
    entry->created_at_us = get_time(result, row, first + 13);
}

static struct str namespace_of(const struct recovery_entry *entry)
{
    return entry->namespace_name.data ? entry->namespace_name : STR(TASK_DEFAULT_NAMESPACE);
}

#define PUT_ALL(oid, call)                      \
    do {                                        \
        array_begin(params, oid);               \
        for (uint32_t i = 0; i < count; i++)    \
            call;                               \
        array_end(params);                      \
    } while (0)

static int recovery_put(struct store *base, const struct recovery_entry *entries, uint32_t count,
                        struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;
    const size_t bytes = sizeof *entries;

    if (count == 0)
        return 0;
    put_uuids(params, &entries[0].id, bytes, count);
    PUT_ALL(PG_OID_TEXT, array_text(params, namespace_of(&entries[i])));
    put_uuids(params, &entries[0].task_id, bytes, count);
    PUT_ALL(PG_OID_TEXT, array_text(params, str_of(recovery_method_word(entries[i].method))));
    PUT_ALL(PG_OID_INT8, array_int(params, entries[i].priority));
    put_times(params, &entries[0].scheduled_for_us, bytes, count);
    put_times(params, &entries[0].processing_started_us, bytes, count);
    put_times(params, &entries[0].processing_completed_us, bytes, count);
    PUT_ALL(PG_OID_TEXT, array_text(params, str_of(recovery_status_word(entries[i].status))));
    PUT_ALL(PG_OID_INT8, array_int(params, entries[i].attempts));
    PUT_ALL(PG_OID_INT8, array_int(params, entries[i].max_attempts));
    PUT_ALL(PG_OID_TEXT, array_text(params, entries[i].result));
    PUT_ALL(PG_OID_TEXT, array_text(params, entries[i].error_message));
    put_times(params, &entries[0].created_at_us, bytes, count);
    return pg_send(store, PGSQL_recovery_put, err);
}

static int recovery_save(struct store *base, const struct recovery_entry *entry, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, &entry->id);
    param_time(params, entry->scheduled_for_us);
    param_time(params, entry->processing_started_us);
    param_time(params, entry->processing_completed_us);
    param_text(params, str_of(recovery_status_word(entry->status)));
    param_int(params, entry->attempts);
    param_text(params, entry->result);
    param_text(params, entry->error_message);
    return pg_send(store, PGSQL_recovery_save, err);
}

static int recovery_load(struct store *base, const struct uuid *id, struct arena *arena,
                         struct recovery_entry **entry, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(&store->conn.params, id);
    rc = pg_rows_ask(store, PGSQL_recovery_by_id, entry_row, sizeof **entry, arena, &taken, err);
    *entry = taken.count ? taken.rows : NULL;
    return rc;
}

static int next_time(struct pg_store *store, int64_t now_us, int64_t lease_us, int64_t *next_us,
                     struct err *err)
{
    PGresult *result;
    int64_t pending_us, processing_us;

    param_time(&store->conn.params, now_us);
    param_time(&store->conn.params, now_us - lease_us);
    TRY(pg_query(store, PGSQL_recovery_next, &result, err));
    pending_us = get_time(result, 0, 0);
    processing_us = get_time(result, 0, 1);
    PQclear(result);
    *next_us = pending_us ? pending_us : INT64_MAX;
    if (processing_us && processing_us + lease_us < *next_us)
        *next_us = processing_us + lease_us;
    return 0;
}

static int recovery_due(struct store *base, int64_t now_us, int64_t lease_us, uint32_t limit,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        int64_t *next_us, struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_catalog_rows taken;
    int rc;

    *next_us = INT64_MAX;
    param_time(&store->conn.params, now_us);
    param_time(&store->conn.params, now_us - lease_us);
    param_int(&store->conn.params, limit);
    rc = pg_rows_ask(store, PGSQL_recovery_due, entry_row, sizeof **entries, arena, &taken, err);
    *entries = taken.rows;
    *count = taken.count;
    return rc < 0 ? rc : next_time(store, now_us, lease_us, next_us, err);
}

static int recovery_remove(struct store *base, const struct uuid *id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, id);
    return pg_send(store, PGSQL_recovery_remove, err);
}

static int recovery_prune(struct store *base, int64_t before_us, uint32_t limit,
                          uint32_t *removed, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *removed = 0;
    param_time(&store->conn.params, before_us);
    param_int(&store->conn.params, limit);
    TRY(pg_query(store, PGSQL_recovery_prune, &result, err));
    *removed = (uint32_t)get_int(result, 0, 0, 0);
    PQclear(result);
    return 0;
}

static int checkpoint_before(struct store *base, const struct uuid *task_id, int64_t before_seq,
                             struct arena *arena, struct checkpoint **checkpoint, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, task_id);
    param_int(&store->conn.params, before_seq ? before_seq : INT64_MAX);
    return pg_checkpoint_ask(store, PGSQL_checkpoint_before, task_id, arena, checkpoint, err);
}

static int checkpoints_retire(struct store *base, const struct uuid *task_id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, task_id);
    return pg_send(store, PGSQL_checkpoints_retire, err);
}

/* ---- readers ---- */

static uint32_t bounded(uint32_t limit)
{
    limit = limit ? limit : BOUND_LIST_LIMIT_DEFAULT;
    return limit > BOUND_LIST_LIMIT ? BOUND_LIST_LIMIT : limit;
}

static int read_rows(struct store_reader *reader, enum pg_sql_name name, pg_catalog_row *row,
                     size_t bytes, struct arena *arena, struct pg_catalog_rows *taken,
                     struct err *err)
{
    PGresult *result;
    int rc = reader_query(reader, &reader->store->sql.statements[name], &result, err);
    int rows = rc == 0 ? PQntuples(result) : 0;

    *taken = (struct pg_catalog_rows){NULL, 0};
    if (rows > 0)
        taken->rows = arena_alloc_array(arena, (size_t)rows, bytes);
    if (rows > 0 && !taken->rows)
        rc = err_set(err, ERR_MEMORY, "out of memory for a list; try again");
    for (int i = 0; rc == 0 && i < rows; i++) {
        rc = pg_reader_row_fits(result, i, arena, err);
        if (rc == 0)
            row(result, i, 0, arena, (char *)taken->rows + taken->count++ * bytes);
    }
    PQclear(result);
    return pg_reader_whole(arena, rc, err);
}

static int read_entries(struct store_reader *reader, const struct recovery_filter *filter,
                        struct arena *arena, struct recovery_entry **entries, uint32_t *count,
                        struct err *err)
{
    struct pg_params *params = &reader->conn.params;
    struct pg_catalog_rows taken;
    int rc;

    param_text(params, filter->namespace_name);
    param_uuid(params, &filter->task_id);
    param_text(params, filter->status < 0 ? STR_NONE
                           : str_of(recovery_status_word((enum recovery_status)filter->status)));
    param_text(params, filter->method < 0 ? STR_NONE
                           : str_of(recovery_method_word((enum recovery_method)filter->method)));
    param_uuid(params, &filter->before_id);
    param_int(params, bounded(filter->limit));
    rc = read_rows(reader, PGSQL_list_recoveries, entry_row, sizeof **entries, arena, &taken, err);
    *entries = taken.rows;
    *count = taken.count;
    return rc;
}

static int read_entry(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                      struct recovery_entry **entry, struct err *err)
{
    struct pg_catalog_rows taken;
    int rc;

    param_uuid(&reader->conn.params, id);
    rc = read_rows(reader, PGSQL_recovery_by_id, entry_row, sizeof **entry, arena, &taken, err);
    *entry = taken.count ? taken.rows : NULL;
    return rc;
}

static void candidate_row(const PGresult *result, int row, int first, struct arena *arena,
                          void *to)
{
    struct recovery_candidate *candidate = to;
    struct task *task = arena_alloc(arena, sizeof *task);

    (void)first;
    if (!task)
        return; /* arena->failed says so */
    reader_task_from_row(result, row, arena, task);
    candidate->task = task;
    candidate->reason = recovery_candidate_reason(task);
}

static int read_candidates(struct store_reader *reader, const struct candidate_filter *filter,
                           struct arena *arena, struct recovery_candidate **candidates,
                           uint32_t *count, struct err *err)
{
    struct pg_params *params = &reader->conn.params;
    struct pg_catalog_rows taken;
    int rc;

    param_time(params, filter->now_us);
    param_int(params, filter->stall_after_ms);
    param_int(params, filter->auto_recovery);
    param_bool(params, filter->goes_on);
    param_int(params, filter->after_priority);
    param_time(params, filter->after_updated_us);
    param_uuid(params, &filter->after_id);
    param_int(params, bounded(filter->limit));
    param_text(params, filter->namespace_name);
    rc = read_rows(reader, PGSQL_list_candidates, candidate_row, sizeof **candidates, arena,
                   &taken, err);
    *candidates = taken.rows;
    *count = taken.count;
    return rc;
}

const struct recovery_verbs pg_recovery_verbs = {
    .put = recovery_put,
    .save = recovery_save,
    .load = recovery_load,
    .due = recovery_due,
    .remove = recovery_remove,
    .prune = recovery_prune,
    .checkpoint_before = checkpoint_before,
    .checkpoints_retire = checkpoints_retire,
    .read_entries = read_entries,
    .read_entry = read_entry,
    .read_candidates = read_candidates,
};
