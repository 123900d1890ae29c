/* The construction of draft-irtf-cfrg-xchacha: HChaCha20 makes a key of the first 16 bytes of the
 * nonce, with which ChaCha20-Poly1305 (RFC 8439) runs on the other 8. Texts with the same 16 bytes
 * share that key. When OpenSSL has no memory, libsodium does all of it. */
#include "core/seal/seal_cipher.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <sodium.h>

#define LONG_BYTES 160 /* of texts for OpenSSL: setting it up costs more than short ones take */
#define IV_BYTES 12

_Static_assert(SEAL_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "");
_Static_assert(SEAL_NONCE_BYTES == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "");
_Static_assert(SEAL_TAG_BYTES == crypto_aead_xchacha20poly1305_ietf_ABYTES, "");

static EVP_CIPHER_CTX *new_ctx(void)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

    if (ctx && EVP_CipherInit_ex(ctx, EVP_chacha20_poly1305(), NULL, NULL, NULL, 1) == 1)
        return ctx;
    EVP_CIPHER_CTX_free(ctx);
    ERR_clear_error();
    return NULL;
}

static void drop_ctx(struct seal_cipher *cipher)
{
    EVP_CIPHER_CTX_free(cipher->ctx);
    cipher->ctx = NULL;
}

void seal_cipher_deinit(struct seal_cipher *cipher)
{
    drop_ctx(cipher);
    sodium_memzero(cipher, sizeof *cipher);
}

/* HChaCha20; once for texts with the same key and the same prefix. */
static void derive(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                   const uint8_t nonce[SEAL_NONCE_BYTES])
{
    uint8_t *prefix = cipher->from + SEAL_KEY_BYTES;

    if (cipher->derived && memcmp(prefix, nonce, SEAL_NONCE_PREFIX) == 0 &&
        memcmp(cipher->from, key, SEAL_KEY_BYTES) == 0)
        return;
    memcpy(cipher->from, key, SEAL_KEY_BYTES);
    memcpy(prefix, nonce, SEAL_NONCE_PREFIX);
    crypto_core_hchacha20(cipher->own_key, nonce, key, NULL);
    cipher->derived = true;
}

/* NULL: it is for libsodium. */
static EVP_CIPHER_CTX *begin(struct seal_cipher *cipher, const uint8_t iv[IV_BYTES],
                             struct str with, size_t len, bool seals)
{
    int done;

    if (len < LONG_BYTES || len > INT32_MAX)
        return NULL;
    if (!cipher->ctx && cipher->worth)
        cipher->ctx = new_ctx();
    cipher->worth = true;
    if (!cipher->ctx)
        return NULL;
    if (EVP_CipherInit_ex(cipher->ctx, NULL, NULL, cipher->own_key, iv, seals) != 1 ||
        EVP_CipherUpdate(cipher->ctx, NULL, &done, (const uint8_t *)with.data, (int)with.len) != 1)
        drop_ctx(cipher);
    return cipher->ctx;
}

void seal_cipher_seal(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                      const uint8_t nonce[SEAL_NONCE_BYTES], struct str with, struct str clear,
                      uint8_t *out)
{
    const uint8_t *text = (const uint8_t *)clear.data;
    uint8_t iv[IV_BYTES] = {0};
    EVP_CIPHER_CTX *ctx;
    int done;

    derive(cipher, key, nonce);
    memcpy(iv + 4, nonce + SEAL_NONCE_PREFIX, sizeof iv - 4);
    ctx = begin(cipher, iv, with, clear.len, true);
    if (ctx && EVP_CipherUpdate(ctx, out, &done, text, (int)clear.len) == 1 &&
        EVP_CipherFinal_ex(ctx, out + clear.len, &done) == 1 &&
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_BYTES, out + clear.len) == 1)
        return;
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, text, clear.len,
                                              (const uint8_t *)with.data, with.len, NULL, iv,
                                              cipher->own_key);
}

bool seal_cipher_open(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                      const uint8_t nonce[SEAL_NONCE_BYTES], struct str with, uint8_t *text,
                      size_t len)
{
    size_t clear_len = len - SEAL_TAG_BYTES;
    uint8_t iv[IV_BYTES] = {0};
    EVP_CIPHER_CTX *ctx;
    bool opened;
    int done;

    if (len < SEAL_TAG_BYTES)
        return false;
    derive(cipher, key, nonce);
    memcpy(iv + 4, nonce + SEAL_NONCE_PREFIX, sizeof iv - 4);
    ctx = begin(cipher, iv, with, clear_len, false);
    if (!ctx)
        return crypto_aead_chacha20poly1305_ietf_decrypt(text, NULL, NULL, text, len,
                                                         (const uint8_t *)with.data, with.len, iv,
                                                         cipher->own_key) == 0;
    opened = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_BYTES,
                                 text + clear_len) == 1 &&
             EVP_CipherUpdate(ctx, text, &done, text, (int)clear_len) == 1 &&
             EVP_CipherFinal_ex(ctx, text + clear_len, &done) == 1;
    if (!opened)
        ERR_clear_error();
    return opened;
}
