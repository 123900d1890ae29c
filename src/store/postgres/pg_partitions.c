#include "store/postgres/pg_partitions.h"

#include "base/clock.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUND_EVERY_US (600 * CLOCK_SECOND_US)
#define ROUND_AGAIN_US (60 * CLOCK_SECOND_US) /* after one that failed */
#define OLD_MAX 48         /* partitions looked at in a round, oldest first */
#define TRIES 4
#define PAUSE_US 200000    /* after the first try: lets those who waited behind us proceed */
#define OPENINGS_STEP 2000 /* tasks looked at in one transaction, about 10 ms */
#define OPENINGS_MAX 100000 /* such steps in a round */

struct pg_months {
    pthread_t thread;
    bool begun;              /* there is a thread to join */
    atomic_bool over;        /* it has finished */
    atomic_bool failed;      /* and part of its work failed */
    atomic_bool stop;
    int64_t begun_us;        /* the last round, by CLOCK_BOOTTIME; 0 = none yet */
    struct pg_store *store;
    struct months_work work;
    pthread_mutex_t mutex;   /* of cancel */
    PGcancel *cancel;        /* while its connection is open */
};

struct round {
    struct pg_store *store;  /* for its statements and log, and to know when to stop */
    const struct months_work *work;
    struct pg_conn *conn;
    int tries; /* per month, while another session holds a lock */
    bool over; /* this node does not lead, or is to stop */
};

/* ---- one transaction ---- */

static bool is_over(const struct round *round)
{
    const struct pg_months *months = round->store->months;

    return round->over || round->conn->lost || (months && atomic_load(&months->stop));
}

static int send(struct round *round, enum pg_sql_name name, struct err *err)
{
    return conn_send(round->conn, &round->store->sql.statements[name], err);
}

static int query(struct round *round, enum pg_sql_name name, PGresult **result, struct err *err)
{
    return conn_query(round->conn, &round->store->sql.statements[name], result, err);
}

/* Commits only while this node leads, and waits only briefly for locks. */
static int begin(struct round *round, struct err *err)
{
    TRY(conn_begin(round->conn, err));
    TRY(send(round, PGSQL_months_settings, err));
    if (round->work->epoch == 0)
        return 0;
    param_int(&round->conn->params, round->work->epoch);
    param_text(&round->conn->params, str_of(round->work->node_id));
    if (send(round, PGSQL_lead_guard, err) == 0 && conn_settle(round->conn, err) == 0)
        return 0;
    round->over = true;
    return -(int)err->code;
}

/* After a failed try: was a lock of another session the reason (and not its own duration), and is
 * it time for the next try? */
static bool may_try_again(struct round *round, int tries, const struct err *err)
{
    conn_rollback(round->conn);
    if (err->code != ERR_UNAVAILABLE || round->conn->timed_out || tries >= round->tries)
        return false;
    for (int i = 0; i < 1 << (tries - 1) && !is_over(round); i++)
        usleep(PAUSE_US);
    return !is_over(round);
}

/* The rows live in `arena`; columns are texts, and the third is a boolean. */
struct month {
    struct str parent;
    struct str name; /* YYYY-MM-DD */
    bool whole;      /* all of it is older than what is kept */
};

static int take_months(const PGresult *result, struct arena *arena, struct month **months,
                       uint32_t *count, struct err *err)
{
    *count = (uint32_t)PQntuples(result);
    *months = arena_alloc_array(arena, *count + 1, sizeof **months);
    for (uint32_t i = 0; *months && i < *count; i++)
        (*months)[i] = (struct month){get_text(result, (int)i, 0, arena),
                                      get_text(result, (int)i, 1, arena),
                                      PQnfields(result) > 2 && get_bool(result, (int)i, 2)};
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for the months") : 0;
}

/* The query only reads. Its parameters come after BEGIN. */
static int list_months(struct round *round, bool old, struct arena *arena, struct month **months,
                       uint32_t *count, struct err *err)
{
    struct pg_params *params = &round->conn->params;
    PGresult *result = NULL;
    int rc = conn_begin(round->conn, err);

    if (rc == 0 && old) {
        param_time(params, round->work->events_before_us);
        param_time(params, round->work->executions_before_us);
        param_int(params, OLD_MAX);
    } else if (rc == 0) {
        param_int(params, MONTHS_AHEAD);
    }
    if (rc == 0)
        rc = query(round, old ? PGSQL_months_old : PGSQL_months_missing, &result, err);
    if (rc == 0)
        rc = take_months(result, arena, months, count, err);
    PQclear(result);
    if (rc == 0)
        rc = conn_commit(round->conn, err);
    if (rc < 0)
        conn_rollback(round->conn);
    return rc;
}

/* ---- making ---- */

static int make_once(struct round *round, const struct month *month, bool *made, struct err *err)
{
    PGresult *result;

    TRY(begin(round, err));
    param_text(&round->conn->params, month->parent);
    param_text(&round->conn->params, month->name);
    TRY(query(round, PGSQL_month_make, &result, err));
    *made = get_bool(result, 0, 0);
    PQclear(result);
    return conn_commit(round->conn, err);
}

static int make_month(struct round *round, const struct month *month, struct err *err)
{
    bool made = false;

    for (int tries = 1; make_once(round, month, &made, err) < 0; tries++)
        if (!may_try_again(round, tries, err))
            return -(int)err->code;
    if (made)
        LOG(round->store->log, LOG_INFO, "store.month_made", KS("table", month->parent),
            KS("month", month->name));
    return 0;
}

/* A month that cannot be made does not stop the others; returns the last reason. */
static int make_ahead(struct round *round, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct err failure = {0};
    struct month *months;
    uint32_t count = 0;
    int rc = list_months(round, false, &arena, &months, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count && !is_over(round); i++)
        if (make_month(round, &months[i], &failure) < 0)
            *err = failure;
    arena_deinit(&arena);
    return failure.code != ERR_NONE ? -(int)failure.code : rc;
}

/* ---- dropping ---- */

/* *reason says why it stays, and is empty when it is gone. */
static int drop_once(struct round *round, const struct month *month, char *reason, size_t cap,
                     struct err *err)
{
    struct pg_params *params = &round->conn->params;
    PGresult *result;

    TRY(begin(round, err));
    param_text(params, month->parent);
    param_text(params, month->name);
    param_bool(params, month->whole);
    TRY(query(round, PGSQL_month_drop, &result, err));
    snprintf(reason, cap, STR_FMT, STR_ARG(view_text(result, 0, 0)));
    PQclear(result);
    return conn_commit(round->conn, err);
}

static int drop_month(struct round *round, const struct month *month, char *reason, size_t cap,
                      struct err *err)
{
    for (int tries = 1; drop_once(round, month, reason, cap, err) < 0; tries++)
        if (!may_try_again(round, tries, err))
            return -(int)err->code;
    return 0;
}

static int find_tasks(struct round *round, const struct month *month, int64_t *first,
                      int64_t *last, struct err *err)
{
    PGresult *result;

    TRY(conn_begin(round->conn, err));
    param_text(&round->conn->params, month->name);
    TRY(query(round, PGSQL_month_tasks, &result, err));
    *first = get_int(result, 0, 0, 0);
    *last = get_int(result, 0, 1, -1);
    PQclear(result);
    return conn_commit(round->conn, err);
}

/* *next: after the tasks looked at; above `last` when there are no more. */
static int forget_once(struct round *round, int64_t *next, int64_t last, struct err *err)
{
    struct pg_params *params = &round->conn->params;
    PGresult *result;

    TRY(begin(round, err));
    param_int(params, *next);
    param_int(params, last);
    param_int(params, OPENINGS_STEP);
    param_time(params, round->work->events_before_us);
    TRY(query(round, PGSQL_month_openings, &result, err));
    *next = get_int(result, 0, 0, last) + 1;
    PQclear(result);
    return conn_commit(round->conn, err);
}

static int forget_some(struct round *round, int64_t *next, int64_t last, struct err *err)
{
    for (int tries = 1; forget_once(round, next, last, err) < 0; tries++)
        if (!may_try_again(round, tries, err))
            return -(int)err->code;
    return 0;
}

/* The row of most tasks stands for their first event, which is as old as what is dropped. */
static int forget_openings(struct round *round, const struct month *month, struct err *err)
{
    int64_t next = 0, last = -1;
    int rc = find_tasks(round, month, &next, &last, err);

    for (int i = 0; rc == 0 && next <= last && i < OPENINGS_MAX && !is_over(round); i++)
        rc = forget_some(round, &next, last, err);
    if (rc < 0)
        conn_rollback(round->conn);
    return rc;
}

static int drop_if_over(struct round *round, const struct month *month, struct err *err)
{
    char reason[64] = "";
    int rc = drop_month(round, month, reason, sizeof reason, err);

    if (rc == 0 && strcmp(reason, "has first events") == 0) {
        rc = forget_openings(round, month, err);
        if (rc == 0)
            rc = drop_month(round, month, reason, sizeof reason, err);
    }
    if (rc < 0)
        return rc;
    if (reason[0])
        LOG(round->store->log, LOG_DEBUG, "store.month_kept", KS("table", month->parent),
            KS("month", month->name), KC("reason", reason));
    else
        LOG(round->store->log, LOG_INFO, "store.month_dropped", KS("table", month->parent),
            KS("month", month->name));
    return 0;
}

static int drop_old(struct round *round, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct err failure = {0};
    struct month *months;
    uint32_t count = 0;
    int rc = list_months(round, true, &arena, &months, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count && !is_over(round); i++)
        if (drop_if_over(round, &months[i], &failure) < 0)
            *err = failure;
    arena_deinit(&arena);
    return failure.code != ERR_NONE ? -(int)failure.code : rc;
}

/* ---- rounds ---- */

static void show_cancel(struct pg_months *months, PGcancel *cancel)
{
    if (!months)
        return;
    pthread_mutex_lock(&months->mutex);
    PQfreeCancel(months->cancel);
    months->cancel = cancel;
    pthread_mutex_unlock(&months->mutex);
}

int months_round(struct pg_store *store, const struct months_work *work, struct err *err)
{
    struct pg_conn conn;
    struct round round = {.store = store, .work = work, .conn = &conn, .tries = TRIES};
    struct err failure = {0};
    int rc;

    TRY(conn_open(&conn, store->where, store->pooler, store->log, err));
    show_cancel(store->months, store->months ? PQgetCancel(conn.pg) : NULL);
    rc = make_ahead(&round, err);
    if (!is_over(&round) && drop_old(&round, &failure) < 0) {
        *err = failure;
        rc = -(int)failure.code;
    }
    show_cancel(store->months, NULL);
    conn_close(&conn);
    return rc;
}

static void *run_round(void *ctx)
{
    struct pg_months *months = ctx;
    struct err err = {0};
    bool failed = months_round(months->store, &months->work, &err) < 0;

    if (failed && !atomic_load(&months->stop))
        LOG(months->store->log, LOG_WARN, "store.months_not_tidied", KC("reason", err.text));
    atomic_store(&months->failed, failed);
    atomic_store(&months->over, true);
    return NULL;
}

static struct pg_months *months_of(struct pg_store *store)
{
    struct pg_months *months = store->months;

    if (months || !(months = calloc(1, sizeof *months)))
        return months;
    pthread_mutex_init(&months->mutex, NULL);
    months->store = store;
    store->months = months;
    return months;
}

void months_pass(struct pg_store *store, const struct months_work *work)
{
    struct pg_months *months = months_of(store);
    int64_t now_us = clock_boot_us();

    if (!months || (months->begun && !atomic_load(&months->over)))
        return;
    if (now_us < months->begun_us + (atomic_load(&months->failed) ? ROUND_AGAIN_US
                                                                  : ROUND_EVERY_US) &&
        months->begun_us != 0)
        return;
    if (months->begun)
        pthread_join(months->thread, NULL);
    months->work = *work;
    months->begun_us = now_us;
    atomic_store(&months->over, false);
    months->begun = thread_start(&months->thread, 0, run_round, months) == 0; /* else next time */
}

void months_stop(struct pg_store *store)
{
    struct pg_months *months = store->months;
    char ignored[256];

    if (!months)
        return;
    atomic_store(&months->stop, true);
    pthread_mutex_lock(&months->mutex);
    if (months->cancel)
        PQcancel(months->cancel, ignored, sizeof ignored);
    pthread_mutex_unlock(&months->mutex);
    if (months->begun)
        pthread_join(months->thread, NULL);
    pthread_mutex_destroy(&months->mutex);
    store->months = NULL;
    free(months);
}

int months_open(struct pg_store *store, struct err *err)
{
    static const struct months_work work = {0};
    struct round round = {.store = store, .work = &work, .conn = &store->conn,
                          .tries = 1};
    struct err failure = {0};
    int rc = make_ahead(&round, &failure);

    if (rc == 0)
        return 0;
    if (store->conn.lost) {
        *err = failure;
        return rc;
    }
    LOG(store->log, LOG_WARN, "store.months_not_made", KC("reason", failure.text));
    return 0;
}
