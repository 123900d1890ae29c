/* API tokens, once for every store. The first half belongs to the writer's thread, the second to
 * readers. */
#include "store/rows/rows_verbs.h"

static int token_put(struct store *store, const struct token_row *token, struct err *err)
{
    return rows_save(rows_of(store), ROWS_token_put, &token_table, token, err);
}

static int token_load(struct store *store, struct str id, struct arena *arena,
                      struct token_row **token, struct err *err)
{
    return rows_one(rows_of(store), ROWS_QUERY(ROWS_token_by_id, value_text(id)), &token_table,
                    arena, ROWS_INTO(token), err);
}

static int tokens_changed(struct store *store, int64_t generation, struct arena *arena,
                          struct token_row **tokens, uint32_t *count, struct err *err)
{
    return rows_take(rows_of(store), ROWS_QUERY(ROWS_tokens_changed, value_int(generation)),
                     &token_table, arena, ROWS_INTO(tokens), count, err);
}

static int tokens_used(struct store *store, const struct token_use *uses, uint32_t count,
                       struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_tokens_used), &token_use_table, uses,
                         count, NULL, err);
}

static int task_adopt(struct store *store, int64_t task_key, struct str principal,
                      struct err *err)
{
    return rows_run(rows_of(store),
                    ROWS_QUERY(ROWS_task_adopt, value_int(task_key), value_text(principal)),
                    NULL, err);
}

static int tokens_count(struct store *store, int64_t *count, struct err *err)
{
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_tokens_count), count, 1, err);
}

static int generation(struct store *store, int64_t *generation, struct err *err)
{
    *generation = 0;
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_token_generation), generation, 1, err);
}

static int generation_next(struct store *store, int64_t *generation, struct err *err)
{
    return rows_numbers(rows_of(store), ROWS_PLAIN(ROWS_token_generation_next), generation, 1,
                        err);
}

static int token_hold(struct store *store, struct str id, struct err *err)
{
    int rc = rows_any(rows_of(store), ROWS_QUERY(ROWS_token_hold, value_text(id)), err);

    return rc < 0 ? rc : 0;
}

static int open_tasks(struct store *store, struct str id, int64_t *tasks, struct err *err)
{
    *tasks = 0;
    return rows_numbers(rows_of(store), ROWS_QUERY(ROWS_token_open_tasks, value_text(id)), tasks, 1,
                        err);
}

static int count_tasks(struct store *store, const struct token_count *changes, uint32_t count,
                       struct err *err)
{
    return rows_save_all(rows_of(store), ROWS_PLAIN(ROWS_token_counts_add), &token_count_table,
                         changes, count, NULL, err);
}

/* ---- readers ---- */

static int read_all(struct store_reader *reader, struct arena *arena, struct token_row **tokens,
                    uint32_t *count, struct err *err)
{
    struct rows *rows = rows_of_reader(reader);

    TRY(rows_take(rows, ROWS_PLAIN(ROWS_tokens_all), &token_table, arena, ROWS_INTO(tokens), count,
                  err));
    for (uint32_t i = 0; i < *count; i++)
        if ((*tokens)[i].max_tasks)
            TRY(rows_numbers(rows, ROWS_QUERY(ROWS_token_open_tasks, value_text((*tokens)[i].id)),
                             &(*tokens)[i].open_tasks, 1, err));
    return 0;
}

const struct token_verbs rows_token_verbs = {
    .put = token_put,
    .load = token_load,
    .changed = tokens_changed,
    .used = tokens_used,
    .adopt = task_adopt,
    .count = tokens_count,
    .generation = generation,
    .generation_next = generation_next,
    .hold = token_hold,
    .open_tasks = open_tasks,
    .count_tasks = count_tasks,
    .read_all = read_all,
};
