/* Dependencies between tasks: who waits for whom, and what parents and children came to. */
#include "store/postgres/pg_int.h"

int pg_dependencies_insert(struct store *base, const struct uuid *task_id,
                           const struct task_dependency *dependencies, uint32_t count,
                           struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    if (count == 0)
        return 0;
    param_uuid(params, task_id);
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &dependencies[i].task_id);
    array_end(params);
    array_begin(params, PG_OID_TEXT);
    for (uint32_t i = 0; i < count; i++)
        array_text(params, str_of(dependency_word(dependencies[i].kind)));
    array_end(params);
    return pg_send(store, PGSQL_dependencies_insert, err);
}

/* A nil id is an id here: the smallest. */
static void param_uuid_always(struct pg_params *params, const struct uuid *id)
{
    param_uuid(params, id);
    if (params->lens[params->count - 1] < 0) {
        params->starts[params->count - 1] = params->bytes.len;
        buf_append(&params->bytes, id->bytes, sizeof id->bytes);
        params->lens[params->count - 1] = (int)sizeof id->bytes;
    }
}

int pg_dependents_find(struct store *base, const struct uuid *parent_id, const struct uuid *after,
                       uint32_t limit, struct arena *arena, struct dependent **dependents,
                       uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *result;

    *count = 0;
    *dependents = NULL;
    param_uuid(&store->conn.params, parent_id);
    param_uuid_always(&store->conn.params, after);
    param_int(&store->conn.params, limit);
    TRY(pg_ask(store, PGSQL_dependents_of, &result, err));
    if (PQntuples(result) > 0)
        *dependents = arena_alloc_array(arena, (size_t)PQntuples(result), sizeof **dependents);
    for (int i = 0; *dependents && i < PQntuples(result); i++) {
        struct dependent *one = &(*dependents)[(*count)++];

        one->task_id = get_uuid(result, i, 0);
        dependency_parse(view_text(result, i, 1), &one->kind);
        one->decided = get_bool(result, i, 2);
    }
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for dependents") : 0;
}

int pg_dependents_decide(struct store *base, const struct uuid *parent_id,
                         const struct uuid *task_ids, uint32_t count, bool decided,
                         struct err *err)
{
    struct pg_store *store = pg_of(base);
    struct pg_params *params = &store->conn.params;

    param_uuid(params, parent_id);
    array_begin(params, PG_OID_UUID);
    for (uint32_t i = 0; i < count; i++)
        array_uuid(params, &task_ids[i]);
    array_end(params);
    param_bool(params, decided);
    return pg_send(store, PGSQL_dependents_decide, err);
}

int pg_dependencies_undecide(struct store *base, const struct uuid *task_id, struct err *err)
{
    struct pg_store *store = pg_of(base);

    param_uuid(&store->conn.params, task_id);
    return pg_send(store, PGSQL_dependencies_undecide, err);
}

int pg_outputs_read(struct pg_conn *conn, const struct pg_sql *sql, const struct uuid *task_id,
                    bool children, int64_t after_key, uint32_t limit, struct arena *arena,
                    struct output **outputs, uint32_t *count, struct err *err)
{
    PGresult *result;

    *count = 0;
    *outputs = NULL;
    param_uuid(&conn->params, task_id);
    param_int(&conn->params, after_key);
    param_int(&conn->params, limit);
    TRY(conn_query(conn, &sql->statements[children ? PGSQL_children_of : PGSQL_parents_of], &result,
                   err));
    if (PQntuples(result) > 0)
        *outputs = arena_alloc_array(arena, (size_t)PQntuples(result), sizeof **outputs);
    for (int i = 0; *outputs && i < PQntuples(result); i++) {
        struct output *one = &(*outputs)[(*count)++];

        one->id = get_uuid(result, i, 0);
        one->ref = get_text(result, i, 1, arena);
        status_parse(view_text(result, i, 2), &one->status);
        one->result = get_text(result, i, 3, arena);
        one->key = get_int(result, i, 4, 0);
        if (!children)
            dependency_parse(view_text(result, i, 5), &one->kind);
    }
    PQclear(result);
    return arena->failed ? err_set(err, ERR_MEMORY, "out of memory for outputs") : 0;
}

int pg_outputs_find(struct store *base, const struct uuid *task_id, bool children,
                    int64_t after_key, uint32_t limit, struct arena *arena,
                    struct output **outputs, uint32_t *count, struct err *err)
{
    struct pg_store *store = pg_of(base);

    TRY(results_flush(store, err));
    return pg_outputs_read(&store->conn, &store->sql, task_id, children, after_key, limit, arena,
                           outputs, count, err);
}
