/* All logs of a store, or some chains, for those who compute them again. Writer's thread; the walk
 * also on a store that is only looked at. */
#include "store/audit_store.h"
#include "store/log_store.h"
#include "store/sqlite/sqlite_int.h"

/* ---- the walk ---- */

static int walk_records(struct sqlite_sql *sql, const struct log_walk *walk, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_anchors_after, err);
    struct arena arena = ARENA_INIT(0);
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_int(stmt, 1, 0);
    bind_int(stmt, 2, INT64_MAX);
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        struct anchor_row row;

        arena_reset(&arena);
        sqlite_anchor_from_row(stmt, &arena, &row);
        if (arena.failed) {
            rc = err_no_memory(err);
            break;
        }
        walk->record(walk->ctx, &row);
    }
    sqlite3_reset(stmt);
    arena_deinit(&arena);
    return rc;
}

static int walk_heads(struct sqlite_sql *sql, const struct log_walk *walk, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_walk_heads, err);
    int rc;

    if (!stmt)
        return -(int)err->code;
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        struct uuid id = column_uuid(stmt, 9);
        struct log_note note;

        sqlite_note_from_row(stmt, 0, &id, &note);
        walk->note(walk->ctx, &note);
    }
    sqlite3_reset(stmt);
    return rc;
}

/* The task of the execution and what lines are about. Nil where there is none: no line is of such
 * a task. Some readers show the correlation id of the task, some that of the execution: where these
 * differ lines are about nothing. */
static int load_owner(struct sqlite_sql *sql, const struct uuid *execution_id,
                      struct log_line *owner, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_walk_owner, err);
    int rc;

    *owner = (struct log_line){.execution_id = *execution_id};
    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, execution_id);
    rc = sql_step(sql, stmt, err);
    if (rc > 0) {
        owner->task_id = column_uuid(stmt, 0);
        owner->bound = sqlite3_column_int(stmt, 4) != 0 &&
                       logchain_about(sqlite3_column_int64(stmt, 1), column_view(stmt, 2),
                                      column_view(stmt, 3), owner->about) == 0;
    }
    sqlite3_reset(stmt);
    return rc < 0 ? rc : 0;
}

/* Those the statement gives, by execution. */
static int give_lines(struct sqlite_sql *sql, sqlite3_stmt *stmt, const struct log_walk *walk,
                      int64_t *count, struct err *err)
{
    struct log_line owner = {.seq = 0};
    int rc;

    while ((rc = sql_step(sql, stmt, err)) > 0) {
        struct log_line line = {.execution_id = column_uuid(stmt, 0),
                                .seq = sqlite3_column_int64(stmt, 1),
                                .message = column_view(stmt, 3),
                                .context = column_view(stmt, 4),
                                .logged_at_us = sqlite3_column_int64(stmt, 5),
                                .removed = column_view(stmt, 7),
                                .id = column_uuid(stmt, 8)};

        if (!uuid_eq(&line.execution_id, &owner.execution_id)) {
            rc = load_owner(sql, &line.execution_id, &owner, err);
            if (rc < 0)
                break;
        }
        line.task_id = owner.task_id;
        line.bound = owner.bound;
        memcpy(line.about, owner.about, sizeof line.about);
        log_line_level(&line, column_view(stmt, 2));
        walk->line(walk->ctx, &line, column_view(stmt, 6));
        ++*count;
    }
    sqlite3_reset(stmt);
    return rc;
}

static int walk_lines(struct sqlite_sql *sql, const struct log_walk *walk, struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_walk_lines, err);
    int64_t count = 0;

    return stmt ? give_lines(sql, stmt, walk, &count, err) : -(int)err->code;
}

/* In one snapshot unless it is called within a transaction. */
int sqlite_logs_walk(struct store *base, const struct log_walk *walk, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    bool own = sqlite3_get_autocommit(sql->db) != 0;
    int rc;

    if (own && sqlite3_exec(sql->db, "BEGIN", NULL, NULL, NULL))
        return sql_fail(sql->db, "BEGIN", err);
    rc = sqlite_schema_follow(sqlite_of(base), sql, err); /* it may be another one by now */
    if (rc == 0)
        rc = walk_records(sql, walk, err);
    if (rc == 0)
        rc = walk_heads(sql, walk, err);
    if (rc == 0)
        rc = audit_walk_note(base, walk, err);
    if (rc == 0)
        rc = walk_lines(sql, walk, err);
    if (rc == 0)
        rc = audit_walk_lines(base, walk, err);
    if (own)
        sqlite3_exec(sql->db, "COMMIT", NULL, NULL, NULL); /* nothing was written */
    return rc;
}

/* ---- some chains ---- */

static int give_notes(struct sqlite_sql *sql, const struct uuid *id, const struct log_walk *walk,
                      struct err *err)
{
    sqlite3_stmt *stmt = sql_get(sql, SQL_chain_notes, err);
    struct log_note note;
    int rc;

    if (!stmt)
        return -(int)err->code;
    bind_uuid(stmt, 1, id);
    while ((rc = sql_step(sql, stmt, err)) > 0) {
        sqlite_note_from_row(stmt, 0, id, &note);
        walk->note(walk->ctx, &note);
    }
    sqlite3_reset(stmt);
    return rc;
}

int sqlite_chains_read(struct store *base, const struct log_range *ranges, uint32_t count,
                       int64_t limit, const struct log_walk *walk, struct err *err)
{
    struct sqlite_sql *sql = &sqlite_of(base)->sql;
    int64_t lines = 0;

    for (uint32_t i = 0; i < count && lines < limit; i++) {
        sqlite3_stmt *stmt;

        TRY(give_notes(sql, &ranges[i].execution_id, walk, err));
        stmt = sql_get(sql, SQL_chain_lines, err);
        if (!stmt)
            return -(int)err->code;
        bind_uuid(stmt, 1, &ranges[i].execution_id);
        bind_int(stmt, 2, ranges[i].to_seq);
        bind_int(stmt, 3, limit - lines);
        TRY(give_lines(sql, stmt, walk, &lines, err));
    }
    return 0;
}
