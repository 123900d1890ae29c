/* The place of a store on PostgreSQL: a connection URL and the schema of its tables. The schema is
 * `?schema=NAME`, or `perdura`, and becomes the search path of every connection. A search path in
 * the URL's options takes precedence. Pure. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"
#include "store/postgres/pg_store.h"

#include <stdio.h>

#define PLACE_BYTES_MAX 8192
#define DEFAULT_SCHEMA "perdura"

/* One parameter of the URL at a time; false at the end. */
static bool next_parameter(struct str *query, struct str *parameter)
{
    const char *end;

    if (query->len == 0)
        return false;
    end = memchr(query->data, '&', query->len);
    *parameter = str_span(query->data, end ? (size_t)(end - query->data) : query->len);
    *query = str_span(query->data + parameter->len + (end != NULL),
                      query->len - parameter->len - (end != NULL));
    return true;
}

static bool has_text(struct str text, const char *part)
{
    return text.data && text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static int set_schema(struct str name, char schema[PG_SCHEMA_BYTES], struct err *err)
{
    bool good = name.len > 0 && name.len < PG_SCHEMA_BYTES;

    for (size_t i = 0; good && i < name.len; i++) {
        char c = name.data[i];

        good = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (i > 0 && c >= '0' && c <= '9');
    }
    if (!good)
        return err_set(err, ERR_INVALID, "the schema '" STR_FMT "' of the store must be a name of "
                       "letters, digits and '_', at most 63", STR_ARG(name));
    snprintf(schema, PG_SCHEMA_BYTES, STR_FMT, STR_ARG(name));
    return 0;
}

static void add_parameter(struct buf *out, bool *any, struct str parameter)
{
    buf_byte(out, *any ? '&' : '?');
    buf_str(out, parameter);
    *any = true;
}

/* Behind a pooler connections are shared, so the role sets the search path. */
static int finish(struct buf *out, bool any, struct str options, bool named, bool pooler,
                  char schema[PG_SCHEMA_BYTES], struct err *err)
{
    if (pooler && named)
        return err_set(err, ERR_INVALID, "behind a pooler the schema is that of the database role; "
                       "set it with ALTER ROLE … SET search_path");
    if (pooler || (!named && has_text(options, "search_path")))
        schema[0] = '\0';
    if (!options.data && !schema[0])
        return 0;
    buf_text(out, any ? "&" : "?");
    if (options.data)
        buf_str(out, options);
    if (schema[0])
        buf_format(out, "%s-csearch_path%%3D%%22%s%%22%%2Cpg_temp",
                   options.data ? "%20" : "options=", schema);
    return 0;
}

int pg_place(struct str where, bool pooler, char **place, char schema[PG_SCHEMA_BYTES],
             struct err *err)
{
    const char *mark = memchr(where.data, '?', where.len);
    size_t len = mark ? (size_t)(mark - where.data) : where.len;
    struct str query = mark ? str_span(mark + 1, where.len - len - 1) : STR("");
    struct str parameter, options = STR_NONE;
    struct buf out = BUF_INIT(PLACE_BYTES_MAX);
    bool any = false, named = false;
    int rc = pg_url_check(where, err);

    if (rc == 0)
        rc = set_schema(STR(DEFAULT_SCHEMA), schema, err);
    buf_append(&out, where.data, len);
    while (rc == 0 && next_parameter(&query, &parameter)) {
        if (str_starts(parameter, STR("schema="))) {
            named = true;
            rc = set_schema(str_span(parameter.data + 7, parameter.len - 7), schema, err);
        } else if (str_starts(parameter, STR("options="))) {
            options = parameter;
        } else if (parameter.len > 0) {
            add_parameter(&out, &any, parameter);
        }
    }
    if (rc == 0)
        rc = finish(&out, any, options, named, pooler, schema, err);
    buf_byte(&out, '\0');
    if (rc == 0 && (out.failed || !(*place = strdup(out.data))))
        rc = err_set(err, ERR_MEMORY, "out of memory for the database's place");
    buf_deinit(&out);
    return rc;
}

int pg_place_make(struct pg_conn *conn, const char *schema, struct err *err)
{
    char text[512];

    if (!schema[0])
        return 0;
    /* A role that may not create schemas may still use an existing one. */
    snprintf(text, sizeof text, "DO $$ BEGIN IF to_regnamespace('\"%s\"') IS NULL THEN "
             "CREATE SCHEMA \"%s\"; END IF; "
             "EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL; END $$", schema,
             schema);
    return conn_text(conn, text, err);
}

int pg_place_found(struct pg_conn *conn, struct err *err)
{
    static const struct pg_statement look = {
        "schema", "SELECT to_regclass('schema_migrations') IS NULL AND "
                  "to_regclass('" DEFAULT_SCHEMA ".schema_migrations') IS NOT NULL"};
    PGresult *result = NULL;
    bool elsewhere;

    if (!conn->pooler)
        return 0;
    TRY(conn_begin(conn, err));
    TRY(conn_query(conn, &look, &result, err));
    elsewhere = get_bool(result, 0, 0);
    PQclear(result);
    TRY(conn_commit(conn, err));
    return elsewhere ? err_set(err, ERR_INVALID, "the store is in the schema '" DEFAULT_SCHEMA "', "
                               "which is not on the search path behind the pooler; ALTER ROLE … "
                               "SET search_path = " DEFAULT_SCHEMA)
                     : 0;
}
