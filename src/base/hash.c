/* Cryptographic hashes from OpenSSL, randomness from the kernel, and SipHash for hash tables
 * (a cheaper mix would allow collisions that hold for every seed).
 * A failure inside OpenSSL means that there was no memory for a few hundred bytes. Any thread. */
#include "base/hash.h"

#include "base/err.h"

#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <sys/random.h>

struct hash_state {
    EVP_MD_CTX *md;
    bool failed;
};

/* Fetching the algorithm costs more than hashing a small payload, so it is done once. NULL = no
 * memory. */
static const EVP_MD *sha256(void)
{
    static EVP_MD *fetched;
    EVP_MD *found = __atomic_load_n(&fetched, __ATOMIC_ACQUIRE);
    EVP_MD *none = NULL;

    if (found)
        return found;
    found = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!found)
        return NULL;
    if (!__atomic_compare_exchange_n(&fetched, &none, found, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        EVP_MD_free(found);
        found = none;
    }
    return found;
}

int hash_sha256(struct str data, uint8_t out[HASH_BYTES])
{
    const EVP_MD *algorithm = sha256();

    return algorithm && EVP_Digest(data.data, data.len, out, NULL, algorithm, NULL) == 1
               ? 0 : -ERR_MEMORY;
}

int hash_hmac_sha256(struct str key, struct str data, uint8_t out[HASH_BYTES])
{
    static const unsigned char nothing[1];

    ASSERT(key.len <= INT32_MAX);
    return HMAC(EVP_sha256(), key.data ? key.data : "", (int)key.len,
                data.data ? (const unsigned char *)data.data : nothing, data.len, out,
                NULL) != NULL ? 0 : -ERR_MEMORY;
}

struct hash_mac {
    EVP_MAC *algorithm;
    EVP_MAC_CTX *ctx; /* holds the key */
};

struct hash_mac *hash_mac_new(struct str key)
{
    struct hash_mac *mac = calloc(1, sizeof *mac);
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};

    if (!mac)
        return NULL;
    mac->algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    mac->ctx = mac->algorithm ? EVP_MAC_CTX_new(mac->algorithm) : NULL;
    if (!mac->ctx ||
        EVP_MAC_init(mac->ctx, (const unsigned char *)key.data, key.len, params) != 1) {
        hash_mac_free(mac);
        return NULL;
    }
    return mac;
}

void hash_mac_free(struct hash_mac *mac)
{
    if (!mac)
        return;
    EVP_MAC_CTX_free(mac->ctx);
    EVP_MAC_free(mac->algorithm);
    free(mac);
}

int hash_mac_make(struct hash_mac *mac, struct str data, uint8_t out[HASH_BYTES])
{
    size_t len = 0;

    return EVP_MAC_init(mac->ctx, NULL, 0, NULL) == 1 &&
                   EVP_MAC_update(mac->ctx, (const unsigned char *)data.data, data.len) == 1 &&
                   EVP_MAC_final(mac->ctx, out, &len, HASH_BYTES) == 1 && len == HASH_BYTES
               ? 0 : -ERR_MEMORY;
}

struct hash_state *hash_sha256_begin(void)
{
    struct hash_state *state = calloc(1, sizeof *state);
    const EVP_MD *algorithm = sha256();

    if (!state)
        return NULL;
    state->md = EVP_MD_CTX_new();
    state->failed = !state->md || !algorithm ||
                    EVP_DigestInit_ex(state->md, algorithm, NULL) != 1;
    return state;
}

void hash_sha256_add(struct hash_state *state, struct str data)
{
    if (state && !state->failed)
        state->failed = EVP_DigestUpdate(state->md, data.data, data.len) != 1;
}

int hash_sha256_end(struct hash_state *state, uint8_t out[HASH_BYTES])
{
    int rc = state && !state->failed && EVP_DigestFinal_ex(state->md, out, NULL) == 1
                 ? 0 : -ERR_MEMORY;

    if (state)
        EVP_MD_CTX_free(state->md);
    free(state);
    return rc;
}

void hash_hex(const uint8_t *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = '\0';
}

int hash_hex_digit(char c)
{
    /* its value and 1 */
    static const int8_t values[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,
        ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14,
        ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15,
        ['F'] = 16};

    return values[(uint8_t)c] - 1;
}

bool hash_from_hex(struct str hex, uint8_t *out, size_t len)
{
    int wrong = 0;

    if (hex.len != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int byte = hash_hex_digit(hex.data[2 * i]) * 16 | hash_hex_digit(hex.data[2 * i + 1]);

        wrong |= byte;
        out[i] = (uint8_t)byte;
    }
    return wrong >= 0;
}

bool hash_equal_secret(struct str a, struct str b)
{
    return a.len == b.len && CRYPTO_memcmp(a.data, b.data, a.len) == 0;
}

void hash_random(void *out, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t got = getrandom((char *)out + done, len - done, 0);

        ASSERT(got > 0 || (got < 0 && errno == EINTR));
        if (got > 0)
            done += (size_t)got;
    }
}

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = rotate(s->d, 21) ^ s->a;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline void sip_add(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

/* The key's second half is the seed turned around: 64 secret bits are plenty against flooding. */
uint64_t hash_bytes64(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t other = rotate(seed, 32) ^ 0x9E3779B97F4A7C15u;
    struct sip s = {seed ^ 0x736F6D6570736575u, other ^ 0x646F72616E646F6Du,
                    seed ^ 0x6C7967656E657261u, other ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)len << 56;
    size_t left = len;

    for (; left >= 8; left -= 8, bytes += 8) {
        uint64_t word;

        memcpy(&word, bytes, 8);
        sip_add(&s, le64toh(word));
    }
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)bytes[i] << (8 * i);
    sip_add(&s, last);
    s.c ^= 0xFF;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

int64_t hash_sum31(struct str text)
{
    return (int64_t)(hash_bytes64(text.data, text.len, 0) & INT32_MAX);
}
