/* The table of API tokens and the ways in (D12, V8, F-J1): whose text it is, what a wrong one
 * learns, and when a credential is asked for. */
#include "server/door/identify.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/access/token_text.h"

#include <stdio.h>

#define NOW INT64_C(1800000000000000)

struct fixture {
    struct tokens tokens;
    struct err err;
    char text[2][TOKEN_CHARS + 1]; /* the one before, and the one now */
    char hash[2][HASH_HEX_BYTES + 1];
    struct token_row row;
};

static void make_text(struct fixture *fx, int which, uint8_t id, uint8_t secret)
{
    uint8_t ids[TOKEN_ID_BYTES] = {id}, secrets[TOKEN_SECRET_BYTES] = {secret};
    uint8_t hash[HASH_BYTES];

    token_text_write(ids, secrets, fx->text[which]);
    assert_int_equal(token_text_hash(str_of(fx->text[which]), hash), 0);
    hash_hex(hash, HASH_BYTES, fx->hash[which]);
}

static int setup(void **state)
{
    static struct fixture fx;

    fx = (struct fixture){.row = {.id = STR("0100000000000000"), .name = STR("worker"),
                                  .namespace_name = STR("default"), .scopes = STR("work"),
                                  .queues = STR("[\"media\",\"mail*\"]"), .types = STR("[]"),
                                  .categories = STR("[]"), .generation = 1}};
    make_text(&fx, 0, 1, 1);
    make_text(&fx, 1, 1, 2);
    fx.row.hash = str_of(fx.hash[1]);
    assert_int_equal(tokens_init(&fx.tokens, &fx.err), 0);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    tokens_deinit(&((struct fixture *)*state)->tokens);
    return 0;
}

static void put(struct fixture *fx)
{
    assert_int_equal(tokens_put(&fx->tokens, &fx->row, NOW, &fx->err), 0);
    fx->row.generation++;
}

static int find(struct fixture *fx, const char *text, struct token_entry **entry,
                const struct principal **principal)
{
    fx->err = (struct err){0};
    return tokens_find(&fx->tokens, str_of(text), NOW, entry, principal, &fx->err);
}

static void refused(struct fixture *fx, const char *text, const char *why)
{
    const struct principal *principal;
    struct token_entry *entry;

    assert_int_equal(find(fx, text, &entry, &principal), -ERR_UNAUTHORIZED);
    if (!strstr(fx->err.text, why))
        fail_msg("'%s' does not say '%s'", fx->err.text, why);
}

static void accepted(struct fixture *fx, const char *text)
{
    const struct principal *principal;
    struct token_entry *entry;

    assert_int_equal(find(fx, text, &entry, &principal), 0);
    assert_true(str_is(principal->key, "token:0100000000000000"));
    assert_int_equal(principal->queues.count, 2);
}

static void the_right_text_is_known_the_first_time_and_every_time(void **state)
{
    struct fixture *fx = *state;

    put(fx);
    for (int i = 0; i < 3; i++)
        accepted(fx, fx->text[1]);
    refused(fx, fx->text[0], "not valid here");
    accepted(fx, fx->text[1]);
}

/* V8: a guess learns nothing of which ids there are, nor of what became of them. */
static void a_wrong_secret_and_an_unknown_id_get_the_same_words(void **state)
{
    struct fixture *fx = *state;
    char unknown[TOKEN_CHARS + 1];
    struct err first;

    put(fx);
    refused(fx, fx->text[0], "not valid here");
    first = fx->err;
    make_text(fx, 0, 9, 1);
    snprintf(unknown, sizeof unknown, "%s", fx->text[0]);
    refused(fx, unknown, "not valid here");
    assert_memory_equal(&first, &fx->err, sizeof first);
    fx->row.revoked_at_us = NOW - 1;
    put(fx);
    make_text(fx, 0, 1, 1);
    refused(fx, fx->text[0], "not valid here");
    assert_memory_equal(&first, &fx->err, sizeof first);
}

static void with_the_right_secret_it_says_what_became_of_the_token(void **state)
{
    struct fixture *fx = *state;

    fx->row.expires_at_us = NOW;
    put(fx);
    refused(fx, fx->text[1], "has expired");
    fx->row.expires_at_us = NOW + 1;
    put(fx);
    accepted(fx, fx->text[1]);
    fx->row.revoked_at_us = NOW;
    put(fx);
    refused(fx, fx->text[1], "was revoked");
    refused(fx, "pdt_0100000000000000_short", "not a whole token");
}

static void a_rotated_token_takes_its_old_text_until_the_overlap_is_over(void **state)
{
    struct fixture *fx = *state;

    fx->row.former_hash = str_of(fx->hash[0]);
    fx->row.former_until_us = NOW + 1;
    put(fx);
    accepted(fx, fx->text[0]);
    accepted(fx, fx->text[1]);
    fx->row.former_until_us = NOW;
    put(fx);
    refused(fx, fx->text[0], "rotated");
    accepted(fx, fx->text[1]);
}

/* A stream keeps its entry while the table changes, and learns that its token has ended. */
static void what_is_under_way_learns_that_its_token_has_ended(void **state)
{
    struct fixture *fx = *state;
    const struct principal *principal;
    struct token_entry *entry;

    put(fx);
    assert_int_equal(find(fx, fx->text[1], &entry, &principal), 0);
    token_hold(entry);
    assert_null(token_ended(entry, principal, NOW));
    put(fx); /* a change of something else */
    assert_null(token_ended(entry, principal, NOW));
    fx->row.hash = str_of(fx->hash[0]);
    put(fx);
    assert_string_equal(token_ended(entry, principal, NOW), "rotated");
    fx->row.revoked_at_us = NOW;
    put(fx);
    token_let_go(entry);
    assert_int_equal(fx->tokens.valid, 0);
}

static void changes_that_come_late_change_nothing(void **state)
{
    struct fixture *fx = *state;

    fx->row.generation = 7;
    fx->row.revoked_at_us = NOW;
    put(fx);
    fx->row.generation = 6;
    fx->row.revoked_at_us = 0;
    put(fx);
    refused(fx, fx->text[1], "was revoked");
    assert_int_equal(fx->tokens.valid, 0);
}

static void a_rate_lets_as_many_through_and_says_how_long_to_wait(void **state)
{
    struct fixture *fx = *state;
    const struct principal *principal;
    struct token_entry *entry;
    int64_t wait_s = 0;

    fx->row.rate = STR("{\"count\":2,\"per_ms\":5000}");
    put(fx);
    assert_int_equal(find(fx, fx->text[1], &entry, &principal), 0);
    assert_int_equal(tokens_take(entry, NOW, &wait_s, &fx->err), 0);
    assert_int_equal(tokens_take(entry, NOW, &wait_s, &fx->err), 0);
    assert_int_equal(tokens_take(entry, NOW, &wait_s, &fx->err), -ERR_RATE);
    assert_in_range(wait_s, 1, 5);
    assert_int_equal(tokens_take(entry, NOW + 6 * CLOCK_SECOND_US, &wait_s, &fx->err), 0);
}

/* On several nodes: what was let through is counted for the others, and what all have taken
 * together counts here, also behind a change of the token. */
static void a_rate_that_all_nodes_have_used_up_refuses(void **state)
{
    struct fixture *fx = *state;
    const struct principal *principal;
    struct token_entry *entry;
    int64_t wait_s = 0;

    fx->row.rate = STR("{\"count\":2,\"per_ms\":5000}");
    put(fx);
    assert_int_equal(find(fx, fx->text[1], &entry, &principal), 0);
    assert_int_equal(tokens_take(entry, NOW, &wait_s, &fx->err), 0);
    assert_int_equal(entry->taken, 1);
    entry->shared_until_us = NOW + 3 * CLOCK_SECOND_US;
    assert_int_equal(tokens_take(entry, NOW, &wait_s, &fx->err), -ERR_RATE);
    assert_int_equal(wait_s, 3);
    put(fx);
    assert_int_equal(find(fx, fx->text[1], &entry, &principal), 0);
    assert_int_equal(tokens_take(entry, NOW + CLOCK_SECOND_US, &wait_s, &fx->err), -ERR_RATE);
    assert_int_equal(entry->taken, 1);
    assert_int_equal(tokens_take(entry, NOW + 3 * CLOCK_SECOND_US, &wait_s, &fx->err), 0);
    assert_int_equal(entry->taken, 2);
}

/* ---- the ways in ---- */

static const char *kind_of(struct fixture *fx, const char *address, const char *token,
                           bool required, const char *bearer)
{
    struct settings settings = {.access.token = token ? str_of(token) : STR_NONE,
                                .access.required = required};
    char headers[256];
    struct http_request request = {.path = STR("/v1/tasks"), .host = STR("127.0.0.1:7070")};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct identity who;
    struct auth auth;
    const struct ways_in ways = {.auth = &auth, .tokens = &fx->tokens};

    snprintf(headers, sizeof headers, "%s%s%s", bearer ? "Authorization: Bearer " : "",
             bearer ? bearer : "", bearer ? "\r\n" : "");
    request.headers = str_of(headers);
    assert_int_equal(auth_init(&auth, address, &settings, &fx->err), 0);
    if (door_identify(&ways, &request, NOW, &arena, &who, &fx->err) < 0)
        return "refused";
    return principal_kind_word(who.principal->kind);
}

static void without_a_credential_only_an_open_loopback_server_answers(void **state)
{
    struct fixture *fx = *state;

    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, false, NULL), "local");
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, true, NULL), "refused");
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", "s3cret", false, NULL), "refused");
    assert_string_equal(kind_of(fx, "0.0.0.0:7070", NULL, false, NULL), "refused");
    put(fx);
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, false, NULL), "refused");
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, false, fx->text[1]), "token");
    fx->row.expires_at_us = NOW - 1; /* its end opens nothing */
    put(fx);
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, false, NULL), "refused");
    fx->row.revoked_at_us = NOW;
    put(fx);
    assert_string_equal(kind_of(fx, "127.0.0.1:7070", NULL, false, NULL), "local");
    assert_string_equal(kind_of(fx, "0.0.0.0:7070", NULL, false, NULL), "refused");
}

static void the_servers_token_is_root_beside_api_tokens(void **state)
{
    struct fixture *fx = *state;

    put(fx);
    assert_string_equal(kind_of(fx, "0.0.0.0:7070", "s3cret", false, "s3cret"), "root");
    assert_string_equal(kind_of(fx, "0.0.0.0:7070", "s3cret", false, fx->text[1]), "token");
    assert_string_equal(kind_of(fx, "0.0.0.0:7070", "s3cret", false, "s3cre"), "refused");
    assert_non_null(strstr(fx->err.text, "pdt_"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_right_text_is_known_the_first_time_and_every_time),
        TEST(a_wrong_secret_and_an_unknown_id_get_the_same_words),
        TEST(with_the_right_secret_it_says_what_became_of_the_token),
        TEST(a_rotated_token_takes_its_old_text_until_the_overlap_is_over),
        TEST(what_is_under_way_learns_that_its_token_has_ended),
        TEST(changes_that_come_late_change_nothing),
        TEST(a_rate_lets_as_many_through_and_says_how_long_to_wait),
        TEST(a_rate_that_all_nodes_have_used_up_refuses),
        TEST(without_a_credential_only_an_open_loopback_server_answers),
        TEST(the_servers_token_is_root_beside_api_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
