/* Which kind of table an inbox is, and the statements that make one; for the thread of the inbox,
 * the command line and the doctor. */
#include "node/inboxes/inbox_source.h"
#include "node/node.h"

#include <stdio.h>

bool inbox_is_postgres(struct str store)
{
    return str_starts(store, STR("postgres://")) || str_starts(store, STR("postgresql://"));
}

/* "schema"."table", or "table" */
static void quote(struct str table, char *out, size_t cap)
{
    const char *point = table.len ? memchr(table.data, '.', table.len) : NULL;
    size_t before = point ? (size_t)(point - table.data) : 0;

    if (point)
        snprintf(out, cap, "\"%.*s\".\"%.*s\"", (int)before, table.data,
                 (int)(table.len - before - 1), point + 1);
    else
        snprintf(out, cap, "\"" STR_FMT "\"", STR_ARG(table));
}

struct inbox_source *inbox_source_new(const struct inbox_rule *rule, int stop, struct err *err)
{
    struct inbox_source *source = inbox_is_postgres(rule->store)
                                      ? inbox_postgres_new(rule, stop, err)
                                      : inbox_sqlite_new(rule, stop, err);

    if (source)
        quote(rule->table, source->table, sizeof source->table);
    return source;
}

static const char postgres_sql[] =
    "CREATE TABLE %1$s (\n"
    "    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- rows are taken in this order\n"
    "    type text NOT NULL,\n"
    "    payload jsonb, -- text keeps it byte for byte\n"
    "    options jsonb NOT NULL DEFAULT '{}', -- any other field of a task\n"
    "    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),\n"
    "    taken_at timestamptz, -- Perdura fills in this and what follows\n"
    "    task_id uuid,\n"
    "    error text -- why the row cannot be a task; set it to NULL to try again\n"
    ");\n"
    "CREATE INDEX \"%2$s_waits\" ON %1$s (id) WHERE taken_at IS NULL AND error IS NULL;\n"
    "CREATE FUNCTION %3$s() RETURNS trigger LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "    PERFORM pg_catalog.pg_notify('perdura_inbox', '');\n"
    "    RETURN NULL;\n"
    "END $$;\n"
    "CREATE TRIGGER \"%2$s_tell\" AFTER INSERT OR UPDATE OF error ON %1$s\n"
    "    FOR EACH STATEMENT EXECUTE FUNCTION %3$s();\n"
    "-- The role in the address of the inbox: GRANT SELECT, UPDATE ON %1$s TO ...;\n"
    "-- with 'after: delete' DELETE, too. Roles that enqueue: GRANT INSERT ON %1$s TO ...;\n";

static const char sqlite_sql[] =
    "CREATE TABLE %1$s (\n"
    "    id INTEGER PRIMARY KEY AUTOINCREMENT, -- rows are taken in this order\n"
    "    type TEXT NOT NULL,\n"
    "    payload TEXT,\n"
    "    options TEXT NOT NULL DEFAULT '{}', -- any other field of a task\n"
    "    created_at TEXT NOT NULL DEFAULT (strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now')),\n"
    "    taken_at TEXT, -- Perdura fills in this and what follows\n"
    "    task_id TEXT,\n"
    "    error TEXT -- why the row cannot be a task; set it to NULL to try again\n"
    ");\n"
    "CREATE INDEX \"%2$s_waits\" ON %1$s (id) WHERE taken_at IS NULL AND error IS NULL;\n";

int node_inbox_sql(bool postgres, struct str table, struct buf *out, struct err *err)
{
    const char *point = table.len ? memrchr(table.data, '.', table.len) : NULL;
    struct str name = point ? str_span(point + 1, (size_t)(table.data + table.len - point - 1))
                            : table;
    char quoted[160], plain[64], tell[176], told[192];

    if (!inbox_table_valid(table, postgres) || name.len > 50)
        return err_set(err, ERR_USAGE, "the table must have a name of at most 50 letters, digits "
                       "and '_'%s", postgres ? ", perhaps with a schema and '.' before it" : "");
    quote(table, quoted, sizeof quoted);
    snprintf(plain, sizeof plain, STR_FMT, STR_ARG(name));
    snprintf(tell, sizeof tell, STR_FMT "_tell", STR_ARG(table));
    quote(str_of(tell), told, sizeof told);
    buf_format(out, postgres ? postgres_sql : sqlite_sql, quoted, plain, told);
    return out->failed ? err_no_memory(err) : 0;
}
