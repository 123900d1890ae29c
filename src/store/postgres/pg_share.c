/* Row-level security for SQL from outside (migration 0025): the policies and rights of the role
 * that access.sql_role names, as far as they are missing. Only the owner of the tables can make
 * them; a node that is not leaves that to `perdura migrate up`. Runs at the open, after the schema
 * was compared: these functions run with the owner's rights. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"

#include <stdio.h>

/* Sets *lacks: what is to be made, and by us. *unfit says why the role gets nothing. */
static int look(struct pg_store *store, bool *lacks, char *unfit, size_t cap, struct err *err)
{
    PGresult *result;

    param_text(&store->conn.params, str_of(store->sql_role));
    TRY(pg_ask(store, PGSQL_share_lacks, &result, err));
    *lacks = get_bool(result, 0, 0);
    snprintf(unfit, cap, STR_FMT, STR_ARG(view_text(result, 0, 1)));
    PQclear(result);
    return 0;
}

int pg_share(struct pg_store *store, bool *shared, struct err *err)
{
    char unfit[200] = "";
    PGresult *result;
    bool lacks;

    *shared = false;
    if (!store->sql_role[0])
        return 0;
    TRY(look(store, &lacks, unfit, sizeof unfit, err));
    if (unfit[0])
        LOG(store->log, LOG_WARN, "store.sql_role_refused", KC("role", store->sql_role),
            KC("reason", unfit));
    if (!lacks || unfit[0])
        return 0;
    param_text(&store->conn.params, str_of(store->sql_role));
    TRY(pg_ask(store, PGSQL_share, &result, err));
    PQclear(result);
    LOG(store->log, LOG_INFO, "store.sql_role_shared", KC("role", store->sql_role));
    *shared = true;
    return 0;
}
