/* URLs and JWTs of calls: what one attempt got is of no use for another, and cannot be made up (D10,
 * D13). That outsiders can check a JWT is in tests/api/test_services_async.py. */
#include "core/service/call_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/access/jwt.h"

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const struct uuid id = {.bytes = {1, 2, 3, 4, 5, 6, 0x70, 8, 0x90, 10, 11, 12, 13, 14, 15, 16}};

static void a_token_says_which_attempt_it_is_of(void **state)
{
    static const int64_t leases[] = {0, 1, 77, INT64_MAX};
    struct call_keys *keys = call_keys_new(STR(SECRET));
    char token[CALL_TOKEN_CHARS + 1], before[CALL_TOKEN_CHARS + 1] = "";
    struct uuid read;
    int64_t lease;

    (void)state;
    for (size_t i = 0; i < sizeof leases / sizeof *leases; i++) {
        assert_true(call_token_write(keys, &id, leases[i], token));
        assert_int_equal(strlen(token), CALL_TOKEN_CHARS);
        assert_true(call_token_read(keys, str_of(token), &read, &lease));
        assert_true(uuid_eq(&read, &id));
        assert_int_equal(lease, leases[i]);
        assert_string_not_equal(token, before);
        memcpy(before, token, sizeof token);
    }
    call_keys_free(keys);
}

static void a_token_with_any_character_changed_is_none(void **state)
{
    struct call_keys *keys = call_keys_new(STR(SECRET)), *others = call_keys_new(STR(OTHER));
    char token[CALL_TOKEN_CHARS + 1];
    struct uuid read;
    int64_t lease;

    (void)state;
    assert_true(call_token_write(keys, &id, 5, token));
    assert_false(call_token_read(others, str_of(token), &read, &lease));
    for (size_t i = 0; i < CALL_TOKEN_CHARS; i++) {
        char was = token[i];

        token[i] = was == 'x' ? 'y' : 'x';
        assert_false(call_token_read(keys, str_of(token), &read, &lease));
        token[i] = was;
    }
    assert_false(call_token_read(keys, str_span(token, CALL_TOKEN_CHARS - 1), &read, &lease));
    assert_false(call_token_read(keys, STR(""), &read, &lease));
    assert_false(call_token_read(keys, STR_NONE, &read, &lease));
    call_keys_free(keys);
    call_keys_free(others);
}

static void a_secret_that_is_none_makes_no_keys(void **state)
{
    (void)state;
    assert_null(call_keys_new(STR("")));
    assert_null(call_keys_new(STR("00")));
    assert_null(call_keys_new(STR("x" "0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")));
}

static void a_jwt_is_for_one_service_and_five_minutes(void **state)
{
    struct call_keys *keys = call_keys_new(STR(SECRET)), *others = call_keys_new(STR(OTHER));
    const struct call_identity identity = {STR("team"), id, 3, 42, STR("orders")};
    const struct jwt_rules rules = {STR("perdura"), STR("orders")};
    const struct jwt_rules wrong = {STR("perdura"), STR("payments")};
    const int64_t now_us = INT64_C(1800000000) * 1000000;
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct jwks *ours, *theirs;
    struct jwt jwt;
    struct err err;
    int64_t expires_us;
    struct str text = call_identity_write(keys, &identity, now_us, &arena);

    (void)state;
    assert_int_equal(jwt_read(text, &arena, &jwt, &err), 0);
    assert_int_equal(jwks_parse(call_keys_jwks(keys, &arena), &ours, &err), 0);
    assert_int_equal(jwks_parse(call_keys_jwks(others, &arena), &theirs, &err), 0);
    assert_int_equal(jwt_verify(&jwt, ours, &err), 0);
    assert_int_not_equal(jwt_verify(&jwt, theirs, &err), 0);
    assert_int_equal(jwt_check(&jwt, &rules, now_us, &arena, &expires_us, &err), 0);
    assert_int_equal(expires_us, now_us + INT64_C(300) * 1000000);
    assert_int_not_equal(jwt_check(&jwt, &wrong, now_us, &arena, &expires_us, &err), 0);
    assert_int_not_equal(jwt_check(&jwt, &rules, now_us + INT64_C(340) * 1000000, &arena,
                                   &expires_us, &err), 0);
    assert_true(str_is(jwt_claim_text(&jwt, STR("namespace"), &arena), "team"));
    jwks_free(ours);
    jwks_free(theirs);
    call_keys_free(keys);
    call_keys_free(others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_which_attempt_it_is_of),
        cmocka_unit_test(a_token_with_any_character_changed_is_none),
        cmocka_unit_test(a_secret_that_is_none_makes_no_keys),
        cmocka_unit_test(a_jwt_is_for_one_service_and_five_minutes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
