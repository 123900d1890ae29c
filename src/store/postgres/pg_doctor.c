/* What `perdura doctor` asks a database: its version, autovacuum, whether slow statements can be
 * seen, the role's rights, spare connections, foreign keys that block removals, and checksums. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"

struct look {
    enum pg_sql_name statement; /* gives: well or not, what was found */
    const char *name;
    const char *fix;
    bool failure; /* not well is a failure, not a warning */
};

static const struct look looks[] = {
    {PGSQL_doctor_version, "postgresql", "use PostgreSQL 13 or newer", true},
    {PGSQL_doctor_autovacuum, "autovacuum",
     "turn autovacuum and track_counts on: dead rows make every claim slower", true},
    {PGSQL_doctor_statements, "pg_stat_statements",
     "CREATE EXTENSION pg_stat_statements (and add it to shared_preload_libraries), to see what is "
     "slow", false},
    {PGSQL_doctor_rights, "rights",
     "GRANT USAGE on the schema and its sequences, SELECT, INSERT, UPDATE, DELETE on its tables, "
     "and EXECUTE on its functions", true},
    {PGSQL_doctor_connections, "connections",
     "raise max_connections or use a pooler: a node needs about six", false},
    {PGSQL_doctor_durability, "durability",
     "turn fsync, full_page_writes and synchronous_commit on: a crash may lose what was "
     "acknowledged", false},
    {PGSQL_doctor_months, "months",
     "see the server's log for store.months_not_made; rows without a month are kept, but cost more "
     "to remove", false},
    {PGSQL_doctor_references, "foreign keys", STORE_BLOCKED_FIX, false},
    {PGSQL_doctor_sql_role, "sql role",
     "take away what it must not have, then run 'perdura migrate up' as the owner of the tables",
     false},
    {PGSQL_doctor_checks, "damage",
     "run pg_checksums --enable while the database is stopped, and CREATE EXTENSION amcheck (GRANT "
     "EXECUTE on its bt_index_check), so that damage is noticed", false},
};

int pg_inspect(struct store *base, store_tell *tell, void *ctx, struct err *err)
{
    struct pg_store *store = pg_of(base);

    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        const struct look *look = &looks[i];
        PGresult *result;
        bool well;

        if (look->statement == PGSQL_doctor_sql_role)
            param_text(&store->conn.params, str_of(store->sql_role));
        TRY(pg_ask(store, look->statement, &result, err));
        well = PQntuples(result) == 1 && get_bool(result, 0, 0);
        tell(ctx, well ? STORE_WELL : look->failure ? STORE_FAILING : STORE_POOR, look->name,
             PQntuples(result) == 1 ? view_text(result, 0, 1) : STR("did not answer"),
             well ? NULL : look->fix);
        PQclear(result);
    }
    return 0;
}
