/* Runs after every reconnect: is this still the same database? A promoted standby or a restored
 * backup continues from an older state on another timeline. Then this drops what the process knows
 * from the lost future (keys, lanes, its mark) and voids leases given out in it (F-E5). Writer's
 * thread only, outside of transactions. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "store/postgres/pg_tasks.h"

#include <stdio.h>

/* The first node to see another timeline starts a new epoch; the others find it. */
static int note_timeline(struct pg_store *store, struct str timeline, struct err *err)
{
    struct pg_params *params = &store->conn.params;
    PGresult *result;

    param_text(params, timeline);
    TRY(pg_send(store, PGSQL_timeline_first, err));
    param_text(params, timeline);
    TRY(pg_query(store, PGSQL_timeline_note, &result, err));
    if (PQntuples(result) > 0)
        LOG(store->log, LOG_WARN, "store.other_timeline", KS("timeline", timeline));
    PQclear(result);
    return 0;
}

static int standby_refused(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the database is a standby and takes no writes; try again "
                   "when it was promoted");
}

/* Rewrites the mark, because the other timeline may lack the last ones or all. */
static int enter_timeline(struct pg_store *store, struct str timeline, struct err *err)
{
    bool other = store->commits.timeline[0] && !str_is(timeline, store->commits.timeline);

    if (other) {
        param_text(&store->conn.params, str_of(store->commits.writer));
        param_int(&store->conn.params, store->commits.mark);
    }
    if (other && pg_send(store, PGSQL_mark_make, err) < 0)
        return -(int)err->code;
    store->base.timelines += other;
    if (other)
        pg_held_forget(store);
    if ((store->keeper || store->first) && note_timeline(store, timeline, err) < 0)
        return -(int)err->code; /* stores opened only to read or copy note nothing */
    TRY(conn_commit(&store->conn, err));
    snprintf(store->commits.timeline, sizeof store->commits.timeline, STR_FMT, STR_ARG(timeline));
    return 0;
}

static int look(struct pg_store *store, struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct str timeline;
    PGresult *result;
    int rc = conn_begin(&store->conn, err);

    if (rc < 0 || pg_query(store, PGSQL_timeline, &result, err) < 0)
        return -(int)err->code;
    timeline = get_text(result, 0, 0, &arena);
    PQclear(result);
    rc = timeline.data ? enter_timeline(store, timeline, err) : standby_refused(err);
    arena_deinit(&arena);
    return rc;
}

int timeline_follow(struct pg_store *store, struct err *err)
{
    pg_keys_forget(store);
    store->outbox_next = store->outbox_end = 0;
    lanes_deinit(store);
    if (look(store, err) == 0)
        return 0;
    conn_rollback(&store->conn);
    if (err->code != ERR_INTERNAL && err->code != ERR_FORBIDDEN)
        return -(int)err->code;
    /* Some services hide the timeline: the store is served without this check. */
    LOG(store->log, LOG_WARN, "store.timeline_unknown", KC("reason", err->text));
    *err = (struct err){0};
    return 0;
}
