/* A store of its own in the PostgreSQL of the tests: PERDURA_TEST_POSTGRES is its URL, or
 * PERDURA_TEST_POSTGRES_FILE the file it stands in (`make test` starts one). */
#ifndef TESTS_PG_SCHEMA_H
#define TESTS_PG_SCHEMA_H

#include "base/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests that know both kinds of store run on PostgreSQL when this is said. */
static inline bool pg_schema_wanted(void)
{
    const char *kind = getenv("PERDURA_TEST_STORE");

    return kind && strcmp(kind, "postgres") == 0;
}

static inline const char *pg_schema_server(char *url, size_t cap)
{
    const char *given = getenv("PERDURA_TEST_POSTGRES");
    const char *path = getenv("PERDURA_TEST_POSTGRES_FILE");
    FILE *file = path && !given ? fopen(path, "r") : NULL;

    if (file) {
        given = fgets(url, (int)cap, file);
        fclose(file);
    }
    if (!given)
        fail_msg("no database is named; run this by 'make test'");
    return given;
}

static inline PGresult *pg_schema_exec(const char *url, const char *text, PGconn **pg)
{
    PGresult *result;

    *pg = PQconnectdb(url);
    if (PQstatus(*pg) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(*pg));
    PQclear(PQexec(*pg, "SET client_min_messages = error"));
    result = PQexec(*pg, text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", text, PQerrorMessage(*pg));
    return result;
}

static inline void pg_schema_run(const char *url, const char *text)
{
    PGconn *pg;

    PQclear(pg_schema_exec(url, text, &pg));
    PQfinish(pg);
}

static inline int64_t pg_schema_ask(const char *url, const char *text)
{
    PGconn *pg;
    PGresult *result = pg_schema_exec(url, text, &pg);
    int64_t number = PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;

    PQclear(result);
    PQfinish(pg);
    return number;
}

/* All rows of a table as one text. */
static inline void pg_schema_dump(const char *url, const char *table, struct buf *out)
{
    PGconn *pg;
    PGresult *result;
    char text[200];

    snprintf(text, sizeof text, "SELECT string_agg(t::text, '|' ORDER BY t::text) FROM %s t",
             table);
    result = pg_schema_exec(url, text, &pg);
    buf_format(out, "%s=%s;", table, PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(pg);
}

/* A copy of the database that server.py has made with the tables of a store, or an empty schema,
 * where there is none. */
static inline void pg_schema_make(char *where, size_t cap)
{
    static unsigned count;
    char url[200], text[128];
    const char *server = pg_schema_server(url, sizeof url);
    const char *name = strrchr(server, '/');

    count++;
    if (pg_schema_ask(server, "SELECT count(*) FROM pg_database WHERE datname = "
                              "'perdura_template'")) {
        snprintf(text, sizeof text, "CREATE DATABASE t_%d_%u TEMPLATE perdura_template",
                 (int)getpid(), count);
        snprintf(where, cap, "%.*s/t_%d_%u?options=-csearch_path%%3Dperdura",
                 (int)(name - server), server, (int)getpid(), count);
    } else {
        snprintf(text, sizeof text, "CREATE SCHEMA t_%d_%u", (int)getpid(), count);
        snprintf(where, cap, "%s?options=-csearch_path%%3Dt_%d_%u", server, (int)getpid(), count);
    }
    pg_schema_run(server, text);
}

static inline void pg_schema_drop(const char *where)
{
    char url[200], text[128];
    const char *schema = strstr(where, "%3D") + 3;
    const char *database = strrchr(where, '/') + 1;

    if (strcmp(schema, "perdura") == 0)
        snprintf(text, sizeof text, "DROP DATABASE %.*s WITH (FORCE)",
                 (int)strcspn(database, "?"), database);
    else
        snprintf(text, sizeof text, "DROP SCHEMA %s CASCADE", schema);
    pg_schema_run(pg_schema_server(url, sizeof url), text);
}

#endif
