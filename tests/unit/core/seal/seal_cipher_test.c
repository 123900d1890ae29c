/* The cipher of stored texts: what OpenSSL writes and reads is what libsodium does (F-J3). */
#include "core/seal/seal_cipher.h"

#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define BYTES_MAX 3000

static const uint8_t KEY[SEAL_KEY_BYTES] = {1, 2, 3};
static const uint8_t NONCE[SEAL_NONCE_BYTES] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                                18, 19, 20, 21, 22, 23, 24, 25, 26, 27};
static const struct str WITH = {"where it belongs", 16};
static uint8_t text[BYTES_MAX];

static void fill(void)
{
    assert_true(sodium_init() >= 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 151 + i / 7);
}

/* One that has seen a long text and uses OpenSSL. */
static struct seal_cipher used_cipher(void)
{
    struct seal_cipher cipher = {0};
    uint8_t out[BYTES_MAX + SEAL_TAG_BYTES];

    for (int i = 0; i < 2; i++)
        seal_cipher_seal(&cipher, KEY, NONCE, WITH, str_span((char *)text, BYTES_MAX), out);
    assert_non_null(cipher.ctx);
    return cipher;
}

static void all_lengths_are_sealed_and_opened_as_libsodium_does(void **state)
{
    uint8_t ours[BYTES_MAX + SEAL_TAG_BYTES], theirs[BYTES_MAX + SEAL_TAG_BYTES];
    struct seal_cipher cipher;

    (void)state;
    fill();
    cipher = used_cipher();
    for (size_t len = 0; len <= BYTES_MAX; len++) {
        seal_cipher_seal(&cipher, KEY, NONCE, WITH, str_span((char *)text, len), ours);
        crypto_aead_xchacha20poly1305_ietf_encrypt(theirs, NULL, text, len,
                                                   (const uint8_t *)WITH.data, WITH.len, NULL,
                                                   NONCE, KEY);
        assert_memory_equal(ours, theirs, len + SEAL_TAG_BYTES);
        assert_true(seal_cipher_open(&cipher, KEY, NONCE, WITH, theirs, len + SEAL_TAG_BYTES));
        assert_memory_equal(theirs, text, len);
    }
    seal_cipher_deinit(&cipher);
}

/* Between the refusals a good one opens: nothing of a failure stays in the cipher. */
static void a_text_with_any_byte_changed_is_refused(void **state)
{
    static const size_t lens[] = {0, 11, 255, 256, 1024};
    struct seal_cipher cipher;

    (void)state;
    fill();
    cipher = used_cipher();
    for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
        uint8_t good[1024 + SEAL_TAG_BYTES], copy[1024 + SEAL_TAG_BYTES];
        size_t len = lens[l] + SEAL_TAG_BYTES;

        seal_cipher_seal(&cipher, KEY, NONCE, WITH, str_span((char *)text, lens[l]), good);
        for (size_t at = 0; at < len; at++) {
            memcpy(copy, good, len);
            copy[at] ^= 4;
            assert_false(seal_cipher_open(&cipher, KEY, NONCE, WITH, copy, len));
        }
        for (size_t cut = 0; cut < len; cut += 7) {
            memcpy(copy, good, len);
            assert_false(seal_cipher_open(&cipher, KEY, NONCE, WITH, copy, cut));
        }
        memcpy(copy, good, len);
        assert_false(seal_cipher_open(&cipher, KEY, NONCE, STR("elsewhere"), copy, len));
        memcpy(copy, good, len);
        assert_true(seal_cipher_open(&cipher, KEY, NONCE, WITH, copy, len));
        assert_memory_equal(copy, text, lens[l]);
    }
    seal_cipher_deinit(&cipher);
}

/* The key that HChaCha20 makes is kept from text to text. */
static void every_change_of_key_or_nonce_counts(void **state)
{
    static const size_t lens[] = {11, 1024};
    struct seal_cipher cipher;

    (void)state;
    fill();
    cipher = used_cipher();
    for (size_t turn = 0; turn < 2 * (SEAL_KEY_BYTES + SEAL_NONCE_BYTES); turn++) {
        uint8_t ours[1024 + SEAL_TAG_BYTES], theirs[1024 + SEAL_TAG_BYTES];
        uint8_t key[SEAL_KEY_BYTES], nonce[SEAL_NONCE_BYTES];
        size_t at = turn / 2, len = lens[turn % 2];

        memcpy(key, KEY, sizeof key);
        memcpy(nonce, NONCE, sizeof nonce);
        *(at < sizeof key ? &key[at] : &nonce[at - sizeof key]) ^= 1;
        crypto_aead_xchacha20poly1305_ietf_encrypt(theirs, NULL, text, len,
                                                   (const uint8_t *)WITH.data, WITH.len, NULL,
                                                   nonce, key);
        seal_cipher_seal(&cipher, key, nonce, WITH, str_span((char *)text, len), ours);
        assert_memory_equal(ours, theirs, len + SEAL_TAG_BYTES);
        assert_false(seal_cipher_open(&cipher, KEY, NONCE, WITH, theirs, len + SEAL_TAG_BYTES));
    }
    seal_cipher_deinit(&cipher);
}

static void a_cipher_can_be_used_after_it_forgot_its_key(void **state)
{
    uint8_t out[1024 + SEAL_TAG_BYTES];
    struct seal_cipher cipher;

    (void)state;
    fill();
    cipher = used_cipher();
    seal_cipher_deinit(&cipher);
    assert_null(cipher.ctx);
    for (int i = 0; i < 3; i++) {
        seal_cipher_seal(&cipher, KEY, NONCE, WITH, str_span((char *)text, 1024), out);
        assert_true(seal_cipher_open(&cipher, KEY, NONCE, WITH, out, sizeof out));
        assert_memory_equal(out, text, 1024);
    }
    seal_cipher_deinit(&cipher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lengths_are_sealed_and_opened_as_libsodium_does),
        cmocka_unit_test(a_text_with_any_byte_changed_is_refused),
        cmocka_unit_test(every_change_of_key_or_nonce_counts),
        cmocka_unit_test(a_cipher_can_be_used_after_it_forgot_its_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
