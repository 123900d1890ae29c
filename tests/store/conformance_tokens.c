/* Conformance: API tokens (D12, F-J1): rows with their hashes, the order of their changes, and when
 * they were used. */
#include "conformance.h"

#include "store/token_store.h"

static struct token_row given(const char *id)
{
    return (struct token_row){.id = str_of(id), .namespace_name = STR("tenant"), .name = STR("näme"),
                              .scopes = STR("tasks:read work"), .user_id = STR("ada"),
                              .queues = STR("[\"a\",\"b*\"]"), .types = STR("[]"),
                              .categories = STR("[\"general\"]"),
                              .rate = STR("{\"count\":5,\"per_ms\":1000}"),
                              .hash = STR("00ff"), .created_at_us = T0_US,
                              .created_by = STR("root"), .created_by_id = STR("0123456789abcdef"),
                              .expires_at_us = T0_US + SECOND_US};
}

static void put(struct conformance *c, struct token_row *token)
{
    store_begin(c);
    OK(c, c->verbs->tokens->generation_next(c->store, &token->generation, &c->err));
    OK(c, c->verbs->tokens->put(c->store, token, &c->err));
    store_commit(c);
}

static struct token_row *load(struct conformance *c, const char *id)
{
    struct token_row *token = NULL;

    OK(c, c->verbs->tokens->load(c->store, str_of(id), &c->arena, &token, &c->err));
    return token;
}

static uint32_t changed(struct conformance *c, int64_t since, struct token_row **tokens)
{
    uint32_t count = 0;

    OK(c, c->verbs->tokens->changed(c->store, since, &c->arena, tokens, &count, &c->err));
    return count;
}

static void a_token_comes_back_as_it_was_put(void **state)
{
    struct conformance *c = *state;
    struct token_row one = given("00000000000000aa"), *found;
    int64_t count = 0;

    put(c, &one);
    store_reopen(c);
    assert_null(load(c, "00000000000000ab"));
    found = load(c, "00000000000000aa");
    assert_non_null(found);
    for (uint32_t i = 0; i < token_table.count; i++) {
        const struct field *field = &token_table.fields[i];
        const char *a = (const char *)&one + field->offset;
        const char *b = (const char *)found + field->offset;

        if (field->kind == FIELD_TEXT)
            then_str(*(const struct str *)b, *(const struct str *)a);
        else
            assert_int_equal(*(const int64_t *)b, *(const int64_t *)a);
    }
    OK(c, c->verbs->tokens->count(c->store, &count, &c->err));
    assert_int_equal(count, 1);
}

static void a_change_replaces_secrets_and_ends_but_not_who_made_it(void **state)
{
    struct conformance *c = *state;
    struct token_row one = given("00000000000000aa"), *found;

    put(c, &one);
    one.former_hash = one.hash;
    one.former_until_us = T0_US + 5;
    one.hash = STR("ff00");
    one.revoked_at_us = T0_US + 7;
    one.created_by = STR("another maker");
    put(c, &one);
    found = load(c, "00000000000000aa");
    then_str(found->hash, STR("ff00"));
    then_str(found->former_hash, STR("00ff"));
    assert_int_equal(found->former_until_us, T0_US + 5);
    assert_int_equal(found->revoked_at_us, T0_US + 7);
    then_str(found->created_by, STR("root"));
}

static void changes_come_in_their_order_and_a_rollback_is_none(void **state)
{
    struct conformance *c = *state;
    struct token_row one = given("00000000000000aa"), two = given("00000000000000bb"), *rows;
    int64_t generation = -1;

    OK(c, c->verbs->tokens->generation(c->store, &generation, &c->err));
    assert_int_equal(generation, 0);
    put(c, &one);
    put(c, &two);
    put(c, &one);
    assert_int_equal(changed(c, 0, &rows), 2);
    then_str(rows[0].id, two.id);
    then_str(rows[1].id, one.id);
    assert_int_equal(changed(c, two.generation, &rows), 1);
    assert_int_equal(changed(c, one.generation, &rows), 0);
    store_begin(c);
    OK(c, c->verbs->tokens->generation_next(c->store, &generation, &c->err));
    store_rollback(c);
    OK(c, c->verbs->tokens->generation(c->store, &generation, &c->err));
    assert_int_equal(generation, one.generation);
}

static void uses_only_move_forward_and_are_no_change(void **state)
{
    struct conformance *c = *state;
    struct token_row one = given("00000000000000aa"), *rows;
    struct token_use uses[] = {{STR("00000000000000aa"), T0_US + 60}, {STR("gone"), T0_US}};

    put(c, &one);
    store_begin(c);
    OK(c, c->verbs->tokens->used(c->store, uses, 2, &c->err));
    store_commit(c);
    uses[0].at_us = T0_US;
    store_begin(c);
    OK(c, c->verbs->tokens->used(c->store, uses, 1, &c->err));
    store_commit(c);
    assert_int_equal(load(c, "00000000000000aa")->last_used_at_us, T0_US + 60);
    assert_int_equal(changed(c, one.generation, &rows), 0);
}

static void a_reader_sees_all_of_them(void **state)
{
    struct conformance *c = *state;
    struct token_row one = given("00000000000000bb"), two = given("00000000000000aa"), *rows;
    uint32_t count = 0;

    put(c, &one);
    put(c, &two);
    OK(c, c->verbs->tokens->read_all(c->reader, &c->arena, &rows, &count, &c->err));
    assert_int_equal(count, 2);
    then_str(rows[0].id, two.id);
}

const struct conformance_test conformance_tokens_tests[] = {
    CONFORMANCE_TEST(a_token_comes_back_as_it_was_put),
    CONFORMANCE_TEST(a_change_replaces_secrets_and_ends_but_not_who_made_it),
    CONFORMANCE_TEST(changes_come_in_their_order_and_a_rollback_is_none),
    CONFORMANCE_TEST(uses_only_move_forward_and_are_no_change),
    CONFORMANCE_TEST(a_reader_sees_all_of_them), CONFORMANCE_END};
