/* Log lines, oldest first, as a reader sees them: of a task or of one execution. */
#include "store/postgres/pg_read.h"

#include "base/clock.h"
#include "core/bounds.h"

#define LOGS_PER_LOOK 2000 /* lines: some hundredths of a second */

static void log_from_row(const PGresult *result, int row, struct arena *arena,
                         struct log_entry *entry)
{
    entry->id = get_uuid(result, row, 0);
    entry->execution_id = get_uuid(result, row, 1);
    entry->seq = get_int(result, row, 2, 0);
    severity_parse(view_text(result, row, 3), &entry->level);
    entry->message = get_text(result, row, 4, arena);
    entry->context = get_text(result, row, 5, arena);
    entry->logged_at_us = get_time(result, row, 6);
    entry->chain_hash = get_text(result, row, 7, arena);
    entry->attempt_number = get_int(result, row, 8, 0);
    entry->removed = get_bool(result, row, 9);
}

/* A look for lines in steps: each is a short question about the next LOGS_PER_LOOK of them, so that
 * it can give up in between. */
struct log_look {
    struct store_reader *reader;
    const struct uuid *id; /* of the task, or of the execution */
    bool of_execution;
    struct log_filter filter; /* its place moves on, its limit is what is still missing */
    struct log_stop bound;    /* early: there is more behind it */
};

static int ask(const struct log_look *look, enum pg_sql_name name, PGresult **result,
               struct err *err)
{
    return reader_query(look->reader, &look->reader->store->sql.statements[name], result, err);
}

static int find_bound(struct log_look *look, struct err *err)
{
    struct pg_params *params = &look->reader->conn.params;
    PGresult *result;
    int rc;

    if (look->of_execution) {
        param_uuid(params, look->id);
    } else {
        param_int(params, uuid7_key(look->id));
        param_int(params, uuid7_key(&look->filter.after_execution));
    }
    param_int(params, look->filter.after_seq);
    param_int(params, LOGS_PER_LOOK);
    rc = ask(look, look->of_execution ? PGSQL_execution_log_bound : PGSQL_log_bound, &result, err);
    look->bound = (struct log_stop){0};
    if (rc == 0 && PQntuples(result) > 0)
        look->bound = (struct log_stop){.early = true, .execution_id = get_uuid(result, 0, 0),
                                        .seq = get_int(result, 0, 1, 0)};
    PQclear(result);
    return rc;
}

static int ask_for_lines(struct log_look *look, int64_t room, PGresult **result, struct err *err)
{
    struct pg_params *params = &look->reader->conn.params;
    const struct log_filter *filter = &look->filter;

    param_int(params, uuid7_key(look->id));
    param_uuid(params, look->id);
    if (!look->of_execution)
        param_int(params, uuid7_key(&filter->after_execution)); /* 0 = from the first */
    param_int(params, filter->after_seq);
    param_int(params, filter->level_min);
    param_time(params, filter->after_us);
    param_time(params, filter->before_us);
    param_text(params, filter->text);
    param_int(params, filter->limit);
    param_int(params, room);
    if (!look->of_execution)
        param_int(params, look->bound.early ? uuid7_key(&look->bound.execution_id) : INT64_MAX);
    param_int(params, look->bound.early ? look->bound.seq : INT64_MAX);
    return ask(look, look->of_execution ? PGSQL_execution_logs_of : PGSQL_read_logs, result, err);
}

static int take_lines(struct log_look *look, struct arena *arena, struct log_entry *entries,
                      uint32_t *count, struct err *err)
{
    PGresult *result;
    int rc = ask_for_lines(look, reader_room(arena), &result, err);

    for (int row = 0; rc == 0 && row < PQntuples(result); row++) {
        rc = pg_reader_row_fits(result, row, arena, err);
        if (rc == 0)
            log_from_row(result, row, arena, &entries[(*count)++]);
    }
    look->filter.limit -= rc == 0 ? (uint32_t)PQntuples(result) : 0;
    PQclear(result);
    return rc;
}

static bool gives_up(const struct log_filter *filter)
{
    return (filter->cancelled && atomic_load(filter->cancelled)) ||
           (filter->look_until_us && clock_boot_us() > filter->look_until_us);
}

static int look_for_lines(struct log_look *look, struct arena *arena, struct log_entry **entries,
                          uint32_t *count, struct err *err)
{
    struct log_stop *stop = look->filter.stop;
    int rc = 0;

    *count = 0;
    if (look->filter.limit == 0 || look->filter.limit > BOUND_LIST_LIMIT)
        look->filter.limit = BOUND_LIST_LIMIT;
    *entries = arena_alloc_array(arena, look->filter.limit, sizeof **entries);
    if (!*entries)
        return err_no_memory(err);
    do {
        if (stop)
            rc = find_bound(look, err);
        if (rc == 0)
            rc = take_lines(look, arena, *entries, count, err);
        look->filter.after_execution = look->bound.execution_id;
        look->filter.after_seq = look->bound.seq;
    } while (rc == 0 && look->bound.early && look->filter.limit > 0 && !gives_up(&look->filter));
    if (rc == 0 && look->bound.early && look->filter.limit > 0)
        *stop = look->bound;
    return pg_reader_whole(arena, rc, err);
}

int pg_read_logs(struct store_reader *reader, const struct uuid *id,
                 const struct log_filter *filter, struct arena *arena, struct log_entry **entries,
                 uint32_t *count, struct err *err)
{
    struct log_look look = {.reader = reader, .id = id, .filter = *filter};

    return look_for_lines(&look, arena, entries, count, err);
}

int pg_read_execution_logs(struct store_reader *reader, const struct uuid *execution_id,
                           const struct log_filter *filter, struct arena *arena,
                           struct log_entry **entries, uint32_t *count, struct err *err)
{
    struct log_look look = {.reader = reader, .id = execution_id, .of_execution = true,
                            .filter = *filter};

    return look_for_lines(&look, arena, entries, count, err);
}
