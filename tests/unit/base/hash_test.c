/* Hashes against published vectors, hex, secrets, and the table hash against chosen collisions. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static void assert_hex(const uint8_t *hash, const char *want)
{
    char hex[HASH_HEX_BYTES + 1];

    hash_hex(hash, HASH_BYTES, hex);
    assert_string_equal(hex, want);
}

static void sha256_gives_the_published_values(void **state)
{
    static const struct {
        struct str text;
        const char *hex;
    } rows[] = {
        {{NULL, 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {{"", 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {{"abc", 3}, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56},
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct hash_state *parts = hash_sha256_begin();
        uint8_t hash[HASH_BYTES];

        hash_sha256(rows[i].text, hash);
        assert_hex(hash, rows[i].hex);
        for (size_t k = 0; k < rows[i].text.len; k++)
            hash_sha256_add(parts, str_span(rows[i].text.data + k, 1));
        hash_sha256_add(parts, STR_NONE);
        hash_sha256_end(parts, hash);
        assert_hex(hash, rows[i].hex);
    }
}

static void hmac_sha256_gives_the_values_of_RFC_4231(void **state)
{
    uint8_t hash[HASH_BYTES];
    char key[131];

    (void)state;
    memset(key, 0x0b, 20);
    hash_hmac_sha256(str_span(key, 20), STR("Hi There"), hash);
    assert_hex(hash, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    hash_hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), hash);
    assert_hex(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    hash_hmac_sha256(str_span(key, sizeof key),
                     STR("Test Using Larger Than Block-Size Key - Hash Key First"), hash);
    assert_hex(hash, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    hash_hmac_sha256(STR_NONE, STR_NONE, hash);
    assert_hex(hash, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void hex_is_read_in_both_cases_and_nothing_else(void **state)
{
    uint8_t bytes[4];

    (void)state;
    assert_true(hash_from_hex(STR("00fFaB9e"), bytes, 4));
    assert_memory_equal(bytes, "\x00\xFF\xAB\x9E", 4);
    assert_true(hash_from_hex(STR(""), bytes, 0));
    assert_false(hash_from_hex(STR("00ffab9"), bytes, 4));
    assert_false(hash_from_hex(STR("00ffab9e0"), bytes, 4));
    assert_false(hash_from_hex(STR("00ffab9g"), bytes, 4));
    assert_false(hash_from_hex(STR("0x00ffab"), bytes, 4));
    assert_false(hash_from_hex(STR_NONE, bytes, 4));
}

static void secrets_are_equal_only_byte_for_byte(void **state)
{
    (void)state;
    assert_true(hash_equal_secret(STR("token"), STR("token")));
    assert_false(hash_equal_secret(STR("token"), STR("tokeN")));
    assert_false(hash_equal_secret(STR("token"), STR("toke")));
    assert_true(hash_equal_secret(STR(""), STR_NONE));
    assert_false(hash_equal_secret(STR("a\0b"), STR("a\0c")));
}

static void randomness_fills_every_byte_and_differs(void **state)
{
    uint8_t seen[1000] = {0};
    uint64_t a, b;

    (void)state;
    hash_random(&a, sizeof a);
    hash_random(&b, sizeof b);
    assert_true(a != b);
    for (int turn = 0; turn < 8; turn++) { /* a byte stays 0 eight times once in 2^64 */
        uint8_t bytes[sizeof seen];

        hash_random(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i++)
            seen[i] |= bytes[i];
    }
    for (size_t i = 0; i < sizeof seen; i++)
        assert_int_not_equal(seen[i], 0);
    hash_random(NULL, 0);
}

static void the_table_hash_depends_on_every_byte_the_length_and_the_seed(void **state)
{
    char text[40] = {0};

    (void)state;
    for (size_t len = 0; len <= sizeof text; len++) {
        uint64_t plain = hash_bytes64(text, len, 1);

        assert_true(plain == hash_bytes64(text, len, 1));
        assert_true(plain != hash_bytes64(text, len, 2));
        assert_true(len == 0 || plain != hash_bytes64(text, len - 1, 1));
        for (size_t i = 0; i < len * 8; i++) {
            text[i / 8] = (char)(1 << i % 8);
            assert_true(plain != hash_bytes64(text, len, 1));
            text[i / 8] = 0;
        }
    }
    assert_true(hash_bytes64(NULL, 0, 5) == hash_bytes64("", 0, 5));
}

/* With a multiply-and-shift mix these two collide under every seed, and blocks of them give any
 * number of colliding keys. */
static void no_pair_of_keys_collides_under_every_seed(void **state)
{
    uint64_t a[2] = {0, 0};
    uint64_t b[2] = {UINT64_C(1) << 63, UINT64_C(1) << 63 | UINT64_C(1) << 31};
    int equal = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++)
        equal += hash_bytes64(a, 16, seed) == hash_bytes64(b, 16, seed);
    assert_int_equal(equal, 0);
}

static void the_table_hash_spreads_similar_keys_evenly(void **state)
{
    uint32_t slots[1024] = {0};

    (void)state;
    for (int i = 0; i < 102400; i++) {
        char key[16];
        int len = snprintf(key, sizeof key, "task-%d", i);

        slots[hash_bytes64(key, (size_t)len, 9) % 1024]++;
    }
    for (int i = 0; i < 1024; i++) /* 100 each on average; six standard deviations */
        assert_true(slots[i] > 40 && slots[i] < 160);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_values),
        cmocka_unit_test(hmac_sha256_gives_the_values_of_RFC_4231),
        cmocka_unit_test(hex_is_read_in_both_cases_and_nothing_else),
        cmocka_unit_test(secrets_are_equal_only_byte_for_byte),
        cmocka_unit_test(randomness_fills_every_byte_and_differs),
        cmocka_unit_test(the_table_hash_depends_on_every_byte_the_length_and_the_seed),
        cmocka_unit_test(no_pair_of_keys_collides_under_every_seed),
        cmocka_unit_test(the_table_hash_spreads_similar_keys_evenly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
