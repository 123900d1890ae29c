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

/* ---- readers ---- */

static int read_all(struct store_reader *reader, struct arena *arena, struct token_row **tokens,
                    uint32_t *count, struct err *err)
{
    return rows_take(rows_of_reader(reader), ROWS_PLAIN(ROWS_tokens_all), &token_table, arena,
                     ROWS_INTO(tokens), count, err);
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
    .read_all = read_all,
};
