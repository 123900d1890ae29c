/* An inbox in PostgreSQL: one connection, which listens to what the trigger of the table sends. A
 * short transaction reads rows, and passes over those that another one is changing; marks are a
 * statement of their own. No lock is held while our store commits: a node that freezes keeps no row
 * from its successor. Nothing blocks for longer than its time-out, and a stop ends it at once. */
#include "node/inboxes/inbox_source.h"

#include "base/clock.h"
#include "base/json.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWER_US (40 * CLOCK_SECOND_US) /* longer than statement_timeout */
#define CONNECT_US (10 * CLOCK_SECOND_US)
#define MARKS_BYTES_MAX (4 * 1024 * 1024)
#define PARAMS_MAX 2

/* The time as RFC 3339, whatever the type of the column. */
#define CREATED "left(to_char(r.created_at::timestamptz AT TIME ZONE 'UTC', " \
                "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), " INBOX_TIME_BYTES ")"
#define WAITS "r.taken_at IS NULL AND r.error IS NULL"

/* Nested loops for look-ups by key, whatever the statistics of a table say that is often empty. */
static const char settings[] =
    "SET client_min_messages = warning; SET timezone = 'UTC'; SET jit = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;"
    "SET lock_timeout = '5s'; SET statement_timeout = '30s';"
    "SET idle_in_transaction_session_timeout = '10s'; SET standard_conforming_strings = on;"
    "LISTEN perdura_inbox";

struct postgres {
    struct inbox_source base;
    PGconn *pg;
};

static struct postgres *postgres_of(struct inbox_source *source)
{
    return (struct postgres *)(void *)source;
}

/* ---- waiting ---- */

static int fail_connection(const struct postgres *postgres, struct err *err)
{
    char text[300];
    char *end;

    snprintf(text, sizeof text, "%s", postgres->pg ? PQerrorMessage(postgres->pg) : "no memory");
    while ((end = strrchr(text, '\n')) != NULL)
        *end = end[1] ? ' ' : '\0';
    return err_set(err, ERR_UNAVAILABLE, "the database does not answer: %s; it is tried again",
                   text);
}

/* Until the connection can be read or written, the stop, or the deadline. */
static int await(struct postgres *postgres, short events, int64_t deadline_us, struct err *err)
{
    struct pollfd fds[] = {{.fd = PQsocket(postgres->pg), .events = events},
                           {.fd = postgres->base.stop, .events = POLLIN}};
    int64_t left_us = deadline_us - clock_boot_us();

    if (left_us <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the database took too long; it is tried again");
    if (poll(fds, 2, (int)(left_us / CLOCK_MS_US + 1)) < 0)
        return 0; /* the caller looks again */
    return fds[1].revents ? err_set(err, ERR_UNAVAILABLE, "the server stops") : 0;
}

static int await_answer(struct postgres *postgres, struct err *err)
{
    int64_t deadline_us = clock_boot_us() + ANSWER_US;

    while (PQflush(postgres->pg) > 0)
        TRY(await(postgres, POLLIN | POLLOUT, deadline_us, err));
    while (PQisBusy(postgres->pg)) {
        TRY(await(postgres, POLLIN, deadline_us, err));
        if (!PQconsumeInput(postgres->pg))
            return fail_connection(postgres, err);
    }
    return 0;
}

/* ---- statements ---- */

static bool state_is(const char *state, const char *other)
{
    return strcmp(state, other) == 0;
}

/* What the administrator of that database can do about it. */
static int fail(struct postgres *postgres, const PGresult *result, struct err *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *table = postgres->base.table;

    if (!state || !text || PQstatus(postgres->pg) == CONNECTION_BAD)
        return fail_connection(postgres, err);
    if (state_is(state, "42P01") || state_is(state, "3F000"))
        return err_set(err, ERR_NOT_FOUND, "there is no table %s; 'perdura inbox sql --for "
                       "postgres' prints the statements that make it", table);
    if (state_is(state, "42703"))
        return err_set(err, ERR_INVALID, "the table %s is no inbox: %s; compare it with 'perdura "
                       "inbox sql --for postgres'", table, text);
    if (state_is(state, "42501"))
        return err_set(err, ERR_FORBIDDEN, "the role may not do this: %s; GRANT SELECT, UPDATE%s "
                       "ON %s", text,
                       str_is(postgres->base.rule->after, "delete") ? ", DELETE" : "", table);
    if (state_is(state, "25006"))
        return err_set(err, ERR_FORBIDDEN, "the database is read-only (%s), so that rows cannot "
                       "be marked; name the primary", text);
    return err_set(err, ERR_UNAVAILABLE, "the database refused it: %s (%s)", text, state);
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Reads the answer to the end; *kept gets the last result, for the caller to clear. */
static int take_answer(struct postgres *postgres, PGresult **kept, struct err *err)
{
    PGresult *result;
    int rc = 0;

    *kept = NULL;
    while (rc == 0) {
        TRY(await_answer(postgres, err));
        result = PQgetResult(postgres->pg);
        if (!result)
            return *kept ? 0 : fail_connection(postgres, err);
        if (!is_good(result))
            rc = fail(postgres, result, err);
        PQclear(*kept);
        *kept = result;
    }
    PQclear(*kept);
    *kept = NULL;
    return rc;
}

static int ask(struct postgres *postgres, const char *text, int count, const char *const *values,
               PGresult **result, struct err *err)
{
    int sent = count ? PQsendQueryParams(postgres->pg, text, count, NULL, values, NULL, NULL, 0)
                     : PQsendQuery(postgres->pg, text);

    *result = NULL;
    if (!sent)
        return fail_connection(postgres, err);
    if (take_answer(postgres, result, err) < 0) {
        PQclear(*result);
        *result = NULL;
        return -(int)err->code;
    }
    return 0;
}

static int run(struct postgres *postgres, const char *text, int count, const char *const *values,
               struct err *err)
{
    PGresult *result;

    TRY(ask(postgres, text, count, values, &result, err));
    PQclear(result);
    return 0;
}

/* ---- the connection ---- */

static void pg_close(struct inbox_source *source)
{
    struct postgres *postgres = postgres_of(source);

    PQfinish(postgres->pg);
    postgres->pg = NULL;
    source->fd = -1;
}

static void notice_nothing(void *ctx, const PGresult *result)
{
    (void)ctx;
    (void)result;
}

/* What libpq says of an address it cannot read may quote a password. */
static int check_address(const char *where, struct err *err)
{
    PQconninfoOption *parts = PQconninfoParse(where, NULL);

    PQconninfoFree(parts);
    return parts ? 0 : err_set(err, ERR_INVALID, "the address of the database cannot be read; in "
                               "user and password write '@' as %%40, ':' as %%3A, '/' as %%2F");
}

static int shake_hands(struct postgres *postgres, struct err *err)
{
    int64_t deadline_us = clock_boot_us() + CONNECT_US;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (postgres->pg && status != PGRES_POLLING_OK) {
        if (status == PGRES_POLLING_FAILED || PQstatus(postgres->pg) == CONNECTION_BAD)
            return fail_connection(postgres, err);
        TRY(await(postgres, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us, err));
        status = PQconnectPoll(postgres->pg);
    }
    return postgres->pg ? 0 : fail_connection(postgres, err);
}

static int pg_connect(struct inbox_source *source, struct err *err)
{
    struct postgres *postgres = postgres_of(source);
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const char *where = TRY_MEMORY(arena_cstr(&arena, source->rule->store));
    const char *const names[] = {"tcp_user_timeout", "keepalives_idle", "keepalives_interval",
                                 "keepalives_count", "application_name", "dbname",
                                 "client_encoding", NULL};
    const char *const values[] = {"10000", "5", "2", "3", "perdura inbox", where, "UTF8", NULL};
    char text[640];

    TRY(check_address(where, err));
    postgres->pg = PQconnectStartParams(names, values, 1);
    TRY(shake_hands(postgres, err));
    PQsetNoticeReceiver(postgres->pg, notice_nothing, NULL);
    PQsetnonblocking(postgres->pg, 1);
    TRY(run(postgres, settings, 0, NULL, err));
    snprintf(text, sizeof text, "SELECT id, type, payload, options, created_at, taken_at, task_id, "
             "error FROM %s LIMIT 0", source->table);
    TRY(run(postgres, text, 0, NULL, err));
    source->fd = PQsocket(postgres->pg);
    return 0;
}

/* ---- a look ---- */

static int64_t number(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? 0
                                            : strtoll(PQgetvalue(result, row, column), NULL, 10);
}

static int pg_sizes(struct inbox_source *source, struct arena *arena, struct inbox_size **sizes,
                    uint32_t *count, struct err *err)
{
    struct postgres *postgres = postgres_of(source);
    PGresult *result;
    char text[640];

    TRY(run(postgres, "BEGIN ISOLATION LEVEL READ COMMITTED", 0, NULL, err));
    snprintf(text, sizeof text, "SELECT r.id, octet_length(r.type::text), "
             "octet_length(r.payload::text), octet_length(r.options::text) FROM %s r WHERE " WAITS
             " ORDER BY r.id LIMIT %d FOR UPDATE SKIP LOCKED", source->table, INBOX_ROWS_MAX);
    TRY(ask(postgres, text, 0, NULL, &result, err));
    *count = (uint32_t)PQntuples(result);
    *sizes = arena_alloc_array(arena, *count + 1, sizeof **sizes);
    for (int i = 0; *sizes && i < PQntuples(result); i++)
        (*sizes)[i] = (struct inbox_size){number(result, i, 0), number(result, i, 1),
                                          number(result, i, 2), number(result, i, 3)};
    PQclear(result);
    return *sizes ? 0 : err_no_memory(err);
}

static struct str cell(const PGresult *result, int row, int column, struct arena *arena)
{
    return PQgetisnull(result, row, column)
               ? STR_NONE
               : arena_str(arena, str_span(PQgetvalue(result, row, column),
                                           (size_t)PQgetlength(result, row, column)));
}

/* Both are in the order of ids. */
static int take_cells(const PGresult *result, struct arena *arena, struct inbox_row *rows,
                      uint32_t count, struct err *err)
{
    int at = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (at == PQntuples(result) || number(result, at, 0) != rows[i].id)
            return err_set(err, ERR_UNAVAILABLE, "the rows of the inbox changed while they were "
                           "locked; it is tried again");
        rows[i].created_at = cell(result, at, 1, arena);
        if (!rows[i].too_large) {
            rows[i].type = cell(result, at, 2, arena);
            rows[i].payload = cell(result, at, 3, arena);
            rows[i].options = cell(result, at, 4, arena);
        }
        at++;
    }
    return arena->failed ? err_no_memory(err) : 0;
}

static int pg_read(struct inbox_source *source, struct arena *arena, struct inbox_row *rows,
                   uint32_t count, struct err *err)
{
    struct postgres *postgres = postgres_of(source);
    BUF_AUTO struct buf ids = BUF_INIT(64 * 1024), large = BUF_INIT(64 * 1024);
    const char *values[PARAMS_MAX];
    PGresult *result;
    char text[1280];
    int rc;

    buf_byte(&ids, '{');
    buf_byte(&large, '{');
    for (uint32_t i = 0; i < count; i++) {
        buf_format(&ids, "%s%lld", i > 0 ? "," : "", (long long)rows[i].id);
        if (rows[i].too_large)
            buf_format(&large, "%s%lld", large.len > 1 ? "," : "", (long long)rows[i].id);
    }
    buf_append(&ids, "}", 2); /* with the NUL */
    buf_append(&large, "}", 2);
    TRY_MEMORY(!ids.failed && !large.failed);
    values[0] = ids.data;
    values[1] = large.data;
    snprintf(text, sizeof text, "SELECT r.id, " CREATED ", CASE WHEN l.large THEN NULL ELSE "
             "r.type::text END, CASE WHEN l.large THEN NULL ELSE r.payload::text END, "
             "CASE WHEN l.large THEN NULL ELSE r.options::text END FROM %s r "
             "CROSS JOIN LATERAL (SELECT r.id = ANY ($2::bigint[]) AS large) l "
             "WHERE r.id = ANY ($1::bigint[]) ORDER BY r.id", source->table);
    TRY(ask(postgres, text, PARAMS_MAX, values, &result, err));
    rc = take_cells(result, arena, rows, count, err);
    PQclear(result);
    return rc < 0 ? rc : run(postgres, "COMMIT", 0, NULL, err);
}

/* ---- marks ---- */

/* How many. */
static int64_t write_marks(struct buf *out, const struct inbox_row *rows, uint32_t count,
                           enum inbox_verdict verdict)
{
    char id[UUID_TEXT_BYTES];
    int64_t written = 0;

    buf_byte(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].verdict != verdict)
            continue;
        uuid_format(&rows[i].task_id, id);
        json_comma(out);
        buf_format(out, "{\"id\":%lld", (long long)rows[i].id);
        json_write_member_string(out, "created", rows[i].created_at);
        json_write_member_string(out, "task", str_of(id));
        json_write_member_string(out, "error", rows[i].error);
        buf_byte(out, '}');
        written++;
    }
    buf_append(out, "]", 2); /* with the NUL */
    return written;
}

#define MARKS                                                                                   \
    " json_to_recordset($1::json) AS v (id bigint, created text, task uuid, error text) WHERE " \
    "r.id = v.id AND r.taken_at IS NULL AND (NOT $2::boolean OR " CREATED                       \
    " IS NOT DISTINCT FROM v.created)"

/* A trigger or row security may keep marks out without an error: such rows would be read again. */
static int check_marks(struct postgres *postgres, const char *const *values, struct err *err)
{
    PGresult *result;
    int64_t left;
    char text[1280];

    snprintf(text, sizeof text, "SELECT count(*) FROM %s r," MARKS " AND r.error IS NULL",
             postgres->base.table);
    TRY(ask(postgres, text, PARAMS_MAX, values, &result, err));
    left = number(result, 0, 0);
    PQclear(result);
    return left == 0 ? 0 : err_set(err, ERR_FORBIDDEN, "rows of %s cannot be marked: a trigger or "
                                   "row security keeps them as they are", postgres->base.table);
}

/* Rows with this verdict, if there are any. */
static int mark(struct postgres *postgres, const char *statement, const struct inbox_row *rows,
                uint32_t count, enum inbox_verdict verdict, bool again, struct err *err)
{
    BUF_AUTO struct buf marks = BUF_INIT(MARKS_BYTES_MAX);
    const char *values[PARAMS_MAX] = {NULL, again ? "t" : "f"};
    int64_t wanted = write_marks(&marks, rows, count, verdict), marked;
    PGresult *result;
    char text[1280];

    TRY_MEMORY(!marks.failed);
    if (wanted == 0)
        return 0;
    values[0] = marks.data;
    snprintf(text, sizeof text, statement, postgres->base.table);
    TRY(ask(postgres, text, PARAMS_MAX, values, &result, err));
    marked = strtoll(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return marked == wanted ? 0 : check_marks(postgres, values, err);
}

static int pg_mark(struct inbox_source *source, const struct inbox_row *rows, uint32_t count,
                   bool again, struct err *err)
{
    struct postgres *postgres = postgres_of(source);
    bool deletes = str_is(source->rule->after, "delete");

    TRY(mark(postgres,
             deletes ? "DELETE FROM %s r USING" MARKS
                     : "UPDATE %s r SET taken_at = clock_timestamp(), task_id = v.task FROM" MARKS,
             rows, count, INBOX_TAKEN, again, err));
    return mark(postgres, "UPDATE %s r SET error = v.error FROM" MARKS, rows, count, INBOX_DAMAGED,
                again, err);
}

static int pg_rest(struct inbox_source *source, struct err *err)
{
    return run(postgres_of(source), "COMMIT", 0, NULL, err);
}

static int pg_changed(struct inbox_source *source, bool *changed, struct err *err)
{
    struct postgres *postgres = postgres_of(source);
    PGnotify *note;

    *changed = false;
    if (!PQconsumeInput(postgres->pg) || PQstatus(postgres->pg) == CONNECTION_BAD)
        return fail_connection(postgres, err);
    while ((note = PQnotifies(postgres->pg)) != NULL) {
        *changed = true;
        PQfreemem(note);
    }
    return 0;
}

static void pg_free(struct inbox_source *source)
{
    pg_close(source);
    free(source);
}

struct inbox_source *inbox_postgres_new(const struct inbox_rule *rule, int stop, struct err *err)
{
    static const struct inbox_source_verbs verbs = {
        .connect = pg_connect, .sizes = pg_sizes, .read = pg_read, .mark = pg_mark, .rest = pg_rest,
        .changed = pg_changed, .close = pg_close, .free = pg_free};
    struct postgres *postgres = err_calloc(sizeof *postgres, err);

    if (!postgres)
        return NULL;
    postgres->base = (struct inbox_source){.verbs = &verbs, .fd = -1, .stop = stop, .rule = rule};
    return &postgres->base;
}
