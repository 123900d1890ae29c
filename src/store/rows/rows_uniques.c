/* Idempotency keys, input hashes and outside ids, once for every store: finds the owner, and frees
 * those of a task. Each store reserves them itself. Writer's thread only. */
#include "store/rows/rows_verbs.h"

const char *unique_kind_word(int kind)
{
    static const char *const words[] = {[UNIQUE_KEY] = "key", [UNIQUE_HASH] = "hash",
                                        [UNIQUE_EXTERNAL] = "external"};

    return words[kind];
}

static const struct field_words kind_words = {unique_kind_word, NULL}; /* never read back */

#define UNIQUE(...) FIELD_ROW(unique, __VA_ARGS__)
static const struct field unique_fields[] = {
    UNIQUE(namespace, namespace_name, TEXT, 0), UNIQUE(kind, kind, WORD, 0, .words = &kind_words),
    UNIQUE(type, type, TEXT, 0), UNIQUE(value, value, TEXT, 0), UNIQUE(task, task_key, INT, 0)};
static const struct field_table unique_table = FIELD_TABLE(unique, "unique", "u", unique_fields);

int rows_uniques_look(struct store *store, struct unique *unique, struct err *err)
{
    unique->task_key = 0;
    return rows_numbers(rows_of(store),
                        ROWS_QUERY(ROWS_unique_task, value_text(unique->namespace_name),
                                   value_word(unique_kind_word((int)unique->kind)),
                                   value_text(unique->type), value_text(unique->value)),
                        &unique->task_key, 1, err);
}

int rows_uniques_drop(struct store *store, const struct task *task, bool external,
                      struct err *err)
{
    const struct {
        enum unique_kind kind;
        struct str type;
        struct str value;
    } all[] = {{UNIQUE_KEY, task->spec.type, task->spec.idempotency_key},
               {UNIQUE_HASH, task->spec.type, task->spec.input_hash},
               {UNIQUE_EXTERNAL, STR(""), external ? task->spec.external_id : STR_NONE}};
    struct unique uniques[3];
    uint32_t count = 0;

    ASSERT(task->has_spec);
    for (size_t i = 0; i < 3; i++)
        if (all[i].value.data)
            uniques[count++] = (struct unique){.kind = all[i].kind,
                                               .namespace_name = task->spec.namespace_name,
                                               .type = all[i].type,
                                               .value = all[i].value,
                                               .task_key = task->key};
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_uniques_delete), &unique_table, uniques,
                         count, NULL, err);
}
