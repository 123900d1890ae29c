/* Dependencies between tasks, the outcomes of parents and children, and the result and events of a
 * task, once for every store. The first half belongs to the writer's thread, the second to
 * readers. */
#include "store/rows/rows_verbs.h"

#include "core/bounds.h"

FIELD_WORDS(status, status, STATUS_NONE);
FIELD_WORDS(dependency, dependency, (enum dependency)0);

#define DEPENDENCY(...) FIELD_ROW(task_dependency, __VA_ARGS__)
static const struct field dependency_fields[] = {
    DEPENDENCY(task_id, task_id, UUID, 0),
    DEPENDENCY(dependency_type, kind, WORD, 0, .words = &dependency_words),
    DEPENDENCY(status, status, WORD, 0, .words = &status_words),
};
static const struct field_table dependency_table = FIELD_TABLE(task_dependency, "dependency", "d",
                                                               dependency_fields);
static const struct field_table dependency_put_table = {.name = "dependency_put", .alias = "d",
                                                        .fields = dependency_fields, .count = 2,
                                                        .bytes = sizeof(struct task_dependency)};

#define DEPENDENT(...) FIELD_ROW(dependent, __VA_ARGS__)
static const struct field dependent_fields[] = {
    DEPENDENT(task_id, task_id, UUID, 0),
    DEPENDENT(dependency_type, kind, WORD, 0, .words = &dependency_words),
    DEPENDENT(is_decided, decided, BOOL, 0),
};
static const struct field_table dependent_table = FIELD_TABLE(dependent, "dependent", "d",
                                                              dependent_fields);

#define OUTPUT(...) FIELD_ROW(output, __VA_ARGS__)
static const struct field output_fields[] = {
    OUTPUT(id, id, UUID, 0),
    OUTPUT(ref, ref, TEXT, 0),
    OUTPUT(status, status, WORD, 0, .words = &status_words),
    OUTPUT(payload, result, TEXT, FIELD_LONG),
    OUTPUT(task, key, INT, 0),
    OUTPUT(dependency_type, kind, WORD, 0, .words = &dependency_words), /* of parents */
};
static const struct field_table output_table = FIELD_TABLE(output, "output", "s", output_fields);

int rows_dependencies_insert(struct store *store, const struct uuid *task_id,
                             const struct task_dependency *dependencies, uint32_t count,
                             struct err *err)
{
    return rows_save_all(rows_of(store),
                         ROWS_QUERY(ROWS_dependencies_insert, value_uuid(task_id)),
                         &dependency_put_table, dependencies, count, NULL, err);
}

int rows_dependents_find(struct store *store, const struct uuid *parent_id,
                         const struct uuid *after, uint32_t limit, struct arena *arena,
                         struct dependent **dependents, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store),
                     ROWS_QUERY(ROWS_dependents_of, value_uuid(parent_id), value_uuid(after),
                                value_int(limit)),
                     &dependent_table, arena, ROWS_INTO(dependents), count, err);
}

int rows_dependents_decide(struct store *store, const struct uuid *parent_id,
                           const struct uuid *task_ids, uint32_t count, bool decided,
                           struct err *err)
{
    return rows_save_all(rows_of(store),
                         ROWS_QUERY(ROWS_dependents_decide, value_uuid(parent_id),
                                    value_bool(decided)),
                         &rows_id_table, task_ids, count, NULL, err);
}

int rows_dependencies_undecide(struct store *store, const struct uuid *task_id, struct err *err)
{
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_dependencies_undecide, value_uuid(task_id)),
                    NULL, err);
}

static int take_outputs(struct rows *rows, const struct uuid *task_id, bool children,
                        int64_t after_key, uint32_t limit, struct arena *arena,
                        struct output **outputs, uint32_t *count, struct err *err)
{
    return rows_take(rows,
                     ROWS_QUERY(children ? ROWS_children_of : ROWS_parents_of, value_uuid(task_id),
                                value_int(after_key), value_int(limit)),
                     &output_table, arena, ROWS_INTO(outputs), count, err);
}

int rows_outputs_find(struct store *store, const struct uuid *task_id, bool children,
                      int64_t after_key, uint32_t limit, struct arena *arena,
                      struct output **outputs, uint32_t *count, struct err *err)
{
    TRY(rows_of(store)->driver->flush(rows_of(store), ROWS_RESULTS, err));
    return take_outputs(rows_of(store), task_id, children, after_key, limit, arena, outputs, count,
                        err);
}

int rows_result_drop(struct store *store, const struct uuid *task_id, struct err *err)
{
    TRY(rows_of(store)->driver->flush(rows_of(store), ROWS_RESULTS, err));
    return rows_run(rows_of(store), ROWS_QUERY(ROWS_result_delete, value_uuid(task_id)), NULL,
                    err);
}

/* ---- readers ---- */

int rows_read_dependencies(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                           struct task_dependency **dependencies, uint32_t *count,
                           struct err *err)
{
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_read_dependencies, value_uuid(id),
                                value_int(BOUND_DEPENDS_ON)),
                     &dependency_table, arena, ROWS_INTO(dependencies), count, err);
}

int rows_read_dependents(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                         struct task_dependency **dependents, uint32_t *count, struct err *err)
{
    return rows_take(rows_of_reader(reader),
                     ROWS_QUERY(ROWS_read_dependents, value_uuid(id), value_int(BOUND_DEPENDS_ON)),
                     &dependency_table, arena, ROWS_INTO(dependents), count, err);
}

int rows_read_outputs(struct store_reader *reader, const struct uuid *task_id, bool children,
                      int64_t after_key, uint32_t limit, struct arena *arena,
                      struct output **outputs, uint32_t *count, struct err *err)
{
    return take_outputs(rows_of_reader(reader), task_id, children, after_key, rows_page(limit),
                        arena, outputs, count, err);
}

struct result {
    struct str payload;
    int64_t created_at_us;
};

static const struct field result_fields[] = {
    FIELD_ROW(result, payload, payload, TEXT, FIELD_LONG),
    FIELD_ROW(result, created_at, created_at_us, TIME, FIELD_ALWAYS)};
static const struct field_table result_table = FIELD_TABLE(result, "result", "r", result_fields);

int rows_read_result(struct store_reader *reader, const struct uuid *id, struct arena *arena,
                     struct str *payload, int64_t *created_at_us, struct err *err)
{
    struct result *found;

    *payload = STR_NONE;
    *created_at_us = 0;
    TRY(rows_one(rows_of_reader(reader), ROWS_QUERY(ROWS_read_result, value_uuid(id)),
                 &result_table, arena, ROWS_INTO(&found), err));
    if (found) {
        *payload = found->payload;
        *created_at_us = found->created_at_us;
    }
    return 0;
}

static bool actor_parse(struct str word, enum actor *actor)
{
    for (int i = ACTOR_API; i <= ACTOR_USER; i++)
        if (str_is(word, actor_word((enum actor)i))) {
            *actor = (enum actor)i;
            return true;
        }
    return false;
}

FIELD_WORDS(actor, actor, ACTOR_API);

#define EVENT(...) FIELD_ROW(task_event, __VA_ARGS__)
static const struct field event_fields[] = {
    EVENT(id, id, UUID, 0),
    EVENT(seq, seq, INT, 0),
    EVENT(status, status, WORD, 0, .words = &status_words),
    EVENT(state, state, TEXT, 0),
    EVENT(detail, detail, TEXT, FIELD_LONG),
    EVENT(actor, actor, WORD, 0, .words = &actor_words),
    EVENT(created_at, created_at_us, TIME, FIELD_ALWAYS),
    EVENT(principal, principal, TEXT, 0),
};
static const struct field_table event_table = FIELD_TABLE(task_event, "event", "v", event_fields);

int rows_read_events(struct store_reader *reader, const struct uuid *id, int64_t before_seq,
                     uint32_t limit, struct arena *arena, struct task_event **events,
                     uint32_t *count, struct err *err)
{
    TRY(rows_take(rows_of_reader(reader),
                  ROWS_QUERY(ROWS_read_events, value_int(uuid7_key(id)), value_uuid(id),
                             value_int(before_seq > 0 ? before_seq : INT64_MAX),
                             value_int(rows_page(limit))),
                  &event_table, arena, ROWS_INTO(events), count, err));
    for (uint32_t i = 0; i < *count; i++) {
        struct task_event *event = &(*events)[i];

        event->task_key = uuid7_key(id);
        if (event->actor != ACTOR_LEADER || !str_is(event->principal, EVENT_BY_ACCESS))
            continue;
        event->actor = ACTOR_ACCESS;
        event->principal = STR_NONE;
    }
    return 0;
}
