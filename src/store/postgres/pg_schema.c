/* Checks that the schema of the store is the one our migrations make. An owner of the database
 * could add a trigger, rule or policy to our tables, or a function that shadows ours: such a store
 * is refused (F-J5). sql/schema.sql lists the parts; schema.txt has the parts of a new store
 * (tools/schema_lists.py). Foreign tables and views may live beside ours, but no function or
 * operator, and nothing attached to our tables. Checked at the open, and by every writer with each
 * new connection and every ten seconds before a transaction: foreign code that ran in a session can
 * leave something behind, such as a search path (which every transaction sets again) or a prepared
 * statement under one of our names. Writer's thread. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_check.h"

#include "base/clock.h"
#include "base/embedded.h"

#include <stdio.h>

#define LIST "store/postgres/schema.txt"
#define LOOK_US (10 * CLOCK_SECOND_US)

struct part {
    struct str kind, name, owner, made;
};

static struct str take_field(struct str *text, char end)
{
    const char *at = text->len ? memchr(text->data, end, text->len) : NULL;
    struct str field = str_span(text->data, at ? (size_t)(at - text->data) : text->len);

    *text = str_span(text->data + field.len + (at != NULL), text->len - field.len - (at != NULL));
    return field;
}

/* The next line of the list; false at the end. */
static bool next_expected(struct str *list, struct part *part)
{
    struct str line;

    if (list->len == 0)
        return false;
    line = take_field(list, '\n');
    part->kind = take_field(&line, '|');
    part->name = take_field(&line, '|');
    part->owner = take_field(&line, '|');
    part->made = line;
    return true;
}

static struct part part_found(const PGresult *result, int row)
{
    return (struct part){view_text(result, row, 0), view_text(result, row, 1),
                         view_text(result, row, 2), view_text(result, row, 3)};
}

static int order(const struct part *a, const struct part *b)
{
    int by = str_compare(a->kind, b->kind);

    if (by == 0)
        by = str_compare(a->name, b->name);
    return by != 0 ? by : str_compare(a->owner, b->owner);
}

/* Does it belong to one of our tables, or to none? */
static bool concerns_us(struct str list, const struct part *found)
{
    struct part ours;

    if (found->owner.len == 0)
        return true;
    while (next_expected(&list, &ours))
        if (str_eq(ours.owner, found->owner))
            return true;
    return false;
}

/* A view's definition is compared only where the database prints it as ours does. */
static bool differs(const struct part *ours, const struct part *found)
{
    return !str_eq(ours->made, found->made) &&
           !(str_is(found->kind, "definition") && found->made.len == 0);
}

static int refuse(const struct part *part, const char *what, const char *then, struct err *err)
{
    bool belongs = part->owner.len > 0 && !str_eq(part->owner, part->name);

    return err_set_field(err, ERR_CONFLICT, "schema", "the schema of the store is not as Perdura "
                         "made it: %.*s %.*s%s%.*s %s; %s, and look who writes to the store",
                         (int)part->kind.len, part->kind.data,
                         part->name.len > 120 ? 120 : (int)part->name.len, part->name.data,
                         belongs ? " of " : "", belongs ? (int)part->owner.len : 0,
                         belongs ? part->owner.data : "", what, then);
}

/* The policies of the role for outside SQL are there, all of them, if that role is. */
static bool is_rows_policy(const struct part *part)
{
    return str_is(part->kind, "policy") && str_is(part->name, "perdura_rows");
}

struct compared {
    struct part ours, lacks, key; /* kind absent: none */
    bool more, shares;
};

/* Our parts that come before what was found are missing. */
static int pass_missing(struct str *rest, const struct part *found, struct compared *c,
                        struct err *err)
{
    for (; c->more && (!found || order(&c->ours, found) < 0);
         c->more = next_expected(rest, &c->ours)) {
        if (!is_rows_policy(&c->ours))
            return refuse(&c->ours, "is missing", "restore it from a backup", err);
        c->lacks = c->ours;
    }
    return 0;
}

/* Names a foreign key only if there is nothing else: it may be ours, on a table that got a
 * trigger. */
static int compare(struct pg_store *store, struct str list, const PGresult *result,
                   struct err *err)
{
    struct compared c = {.lacks = {.kind = STR_NONE}, .key = {.kind = STR_NONE}};
    struct str rest = list;

    c.more = next_expected(&rest, &c.ours);
    for (int row = 0; row < PQntuples(result); row++) {
        struct part found = part_found(result, row);
        bool known;

        TRY(pass_missing(&rest, &found, &c, err));
        known = c.more && order(&c.ours, &found) == 0;
        c.shares |= known && is_rows_policy(&found);
        if (known && differs(&c.ours, &found))
            return refuse(&found, "was changed", is_rows_policy(&found)
                          ? "drop it and run 'perdura migrate up'" : "restore it from a backup",
                          err);
        if (!known && str_is(found.kind, "built-in"))
            return refuse(&found, "is not the database's own", "drop it or set it back", err);
        if (!known && str_is(found.kind, "month")) /* has data */
            return refuse(&found, "was changed", "set it back", err);
        if (!known && str_is(found.kind, "foreign key"))
            c.key = concerns_us(list, &found) && !c.key.kind.data ? found : c.key;
        else if (!known && concerns_us(list, &found))
            return refuse(&found, "was added", "drop it", err);
        if (known)
            c.more = next_expected(&rest, &c.ours);
    }
    TRY(pass_missing(&rest, NULL, &c, err));
    store->rows_policy_lacks = c.lacks.kind.data && c.shares;
    if (store->rows_policy_lacks && !store->shares)
        return refuse(&c.lacks, "is missing", "run 'perdura migrate up'", err);
    return c.key.kind.data ? refuse(&c.key, "was added", "drop it", err) : 0;
}

static int allow_plans(struct pg_store *store, const char *allow, struct err *err)
{
    param_text(&store->conn.params, str_of(allow));
    return pg_send(store, PGSQL_schema_settings, err);
}

/* Behind a pooler other clients share the session, and we prepare nothing. */
static int look_at_session(struct pg_store *store, struct err *err)
{
    struct part part = {.kind = STR("prepared statement")};
    PGresult *result;
    int rc = 0;

    if (store->conn.pooler)
        return 0;
    TRY(pg_query(store, PGSQL_schema_session, &result, err));
    if (PQntuples(result) > 0) {
        part.name = view_text(result, 0, 0);
        rc = refuse(&part, "was added to the session of this server", "start it again", err);
    }
    PQclear(result);
    return rc;
}

/* Within a transaction. */
static int look(struct pg_store *store, struct err *err)
{
    const struct embedded *list = embedded_find(LIST);
    PGresult *result;
    int rc;

    ASSERT(list);
    TRY(allow_plans(store, "on", err));
    TRY(pg_query(store, PGSQL_schema_parts, &result, err));
    if (allow_plans(store, "off", err) < 0) {
        PQclear(result);
        return -(int)err->code;
    }
    rc = compare(store, str_span(list->data, list->len), result, err);
    PQclear(result);
    return rc == 0 ? look_at_session(store, err) : rc;
}

/* This includes triggers on tables that are not ours. */
static bool is_other(struct str list, const struct part *found)
{
    return str_is(found->kind, "table") || str_is(found->kind, "view") ||
           str_is(found->kind, "function") ||
           (str_is(found->kind, "trigger") && concerns_us(list, found));
}

static struct str name_of(const struct part *found, struct arena *arena)
{
    if (str_is(found->kind, "table") || str_is(found->kind, "view"))
        return arena_str(arena, found->name);
    return arena_format(arena, STR_FMT " " STR_FMT, STR_ARG(found->kind), STR_ARG(found->name));
}

static void gather_others(struct str list, const PGresult *result, struct arena *arena,
                          struct str *names, uint32_t *count)
{
    struct str rest = list;
    struct part ours;
    bool more = next_expected(&rest, &ours);

    for (int row = 0; row < PQntuples(result); row++) {
        struct part found = part_found(result, row);

        while (more && order(&ours, &found) < 0)
            more = next_expected(&rest, &ours);
        if ((!more || order(&ours, &found) != 0) && is_other(list, &found))
            names[(*count)++] = name_of(&found, arena);
    }
}

int pg_schema_others(struct pg_store *store, struct arena *arena, struct str **names,
                     uint32_t *count, struct err *err)
{
    const struct embedded *list = embedded_find(LIST);
    PGresult *parts, *referrers;

    ASSERT(list);
    *count = 0;
    TRY(conn_begin(&store->conn, err));
    TRY(allow_plans(store, "on", err));
    TRY(pg_query(store, PGSQL_schema_parts, &parts, err));
    if (pg_query(store, PGSQL_schema_referrers, &referrers, err) < 0) {
        PQclear(parts);
        return -(int)err->code;
    }
    *names = arena_alloc_array(arena, (size_t)PQntuples(parts) + (size_t)PQntuples(referrers) + 1,
                               sizeof **names);
    if (*names) {
        gather_others(str_span(list->data, list->len), parts, arena, *names, count);
        for (int row = 0; row < PQntuples(referrers); row++)
            (*names)[(*count)++] = get_text(referrers, row, 0, arena);
    }
    PQclear(parts);
    PQclear(referrers);
    TRY(conn_commit(&store->conn, err));
    return *names && !arena->failed ? 0 : err_set(err, ERR_MEMORY, "out of memory for the schema");
}

int pg_schema_check(struct pg_store *store, struct err *err)
{
    struct err why = {0};
    int rc = conn_begin(&store->conn, err);

    if (rc < 0)
        return rc;
    rc = look(store, &why);
    if (rc < 0 && why.code != ERR_CONFLICT)
        conn_rollback(&store->conn);
    else if (conn_commit(&store->conn, err) < 0)
        return -(int)err->code;
    store->schema_at_us = clock_boot_us() + LOOK_US;
    if (rc == 0 || !store->any_schema || why.code != ERR_CONFLICT) {
        if (rc < 0)
            *err = why;
        return rc;
    }
    LOG(store->log, LOG_WARN, "store.schema_changed", KC("reason", why.text),
        KC("then", "it is let through (allow_changed_schema)"));
    return 0;
}

int pg_schema_follow(struct pg_store *store, struct err *err)
{
    int64_t now_us = clock_boot_us();

    if (store->any_schema || now_us < store->schema_at_us)
        return 0;
    if (look(store, err) == 0) {
        store->schema_at_us = now_us + LOOK_US;
        return 0;
    }
    if (err->code == ERR_CONFLICT) /* never write through a schema that is not ours */
        err_set(err, ERR_STORAGE, "the tables of the store were changed, removed or replaced while "
                "in use: %.400s", err->text);
    return -(int)err->code;
}
