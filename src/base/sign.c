/* Ed25519 by OpenSSL. The file of a key is its seed in hex and a newline; it is written beside its
 * name and put there by a hard link, which fails if another process was faster. Any thread. */
#include "base/sign.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES (2 * SIGN_SEED_BYTES + 1) /* with its newline */
#define PATH_BYTES 4096

struct sign_key {
    EVP_PKEY *pair;
    uint8_t public_key[SIGN_PUBLIC_BYTES];
};

struct sign_key *sign_key_new(const uint8_t seed[SIGN_SEED_BYTES])
{
    struct sign_key *key = calloc(1, sizeof *key);
    size_t len = SIGN_PUBLIC_BYTES;

    if (!key)
        return NULL;
    key->pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SIGN_SEED_BYTES);
    if (!key->pair || EVP_PKEY_get_raw_public_key(key->pair, key->public_key, &len) != 1 ||
        len != SIGN_PUBLIC_BYTES) {
        sign_key_free(key);
        return NULL;
    }
    return key;
}

void sign_key_free(struct sign_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pair);
    free(key);
}

int sign_key_derive(const struct sign_key *key, struct str purpose, uint8_t out[SIGN_SEED_BYTES])
{
    uint8_t seed[SIGN_SEED_BYTES];
    size_t len = sizeof seed;
    int rc = -ERR_MEMORY;

    if (EVP_PKEY_get_raw_private_key(key->pair, seed, &len) == 1 && len == sizeof seed)
        rc = hash_hmac_sha256(str_span((const char *)seed, sizeof seed), purpose, out);
    OPENSSL_cleanse(seed, sizeof seed);
    return rc;
}

void sign_key_public(const struct sign_key *key, uint8_t out[SIGN_PUBLIC_BYTES])
{
    memcpy(out, key->public_key, SIGN_PUBLIC_BYTES);
}

int sign_make(const struct sign_key *key, struct str data, uint8_t out[SIGN_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = SIGN_BYTES;
    int rc = -ERR_MEMORY;

    if (ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pair) == 1 &&
        EVP_DigestSign(ctx, out, &len, (const unsigned char *)data.data, data.len) == 1)
        rc = 0;
    EVP_MD_CTX_free(ctx);
    return rc;
}

bool sign_check(const uint8_t public_key[SIGN_PUBLIC_BYTES], struct str data,
                const uint8_t signature[SIGN_BYTES])
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key,
                                                SIGN_PUBLIC_BYTES);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, signature, SIGN_BYTES, (const unsigned char *)data.data,
                                 data.len) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return good;
}

int sign_key_load(const char *path, bool may_link, struct sign_key **key, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | (may_link ? 0 : O_NOFOLLOW));
    uint8_t seed[SIGN_SEED_BYTES];
    char text[FILE_BYTES + 1];
    struct stat info;
    ssize_t got = 0;
    int rc = 0;

    *key = NULL;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &info) < 0 || (got = read(fd, text, sizeof text)) < 0)
        rc = err_set(err, ERR_IO, "cannot read the key '%s': %s", path, strerror(errno));
    else if (info.st_mode & (S_IRWXG | S_IRWXO) && fchmod(fd, S_IRUSR | S_IWUSR) < 0)
        rc = err_set(err, ERR_INVALID, "others may read the key '%s'; run chmod 600 on it", path);
    else if (got < 2 * SIGN_SEED_BYTES || got > FILE_BYTES ||
             !hash_from_hex(str_span(text, 2 * SIGN_SEED_BYTES), seed, sizeof seed))
        rc = err_set(err, ERR_INVALID, "'%s' is not a key: it must hold 64 hexadecimal digits",
                     path);
    else if (!(*key = sign_key_new(seed)))
        rc = err_no_memory(err);
    if (fd >= 0)
        close(fd);
    OPENSSL_cleanse(seed, sizeof seed);
    OPENSSL_cleanse(text, sizeof text);
    return rc;
}

/* The folder's entry is made durable too: a key that is lost after a crash makes its signatures
 * worthless. */
static void sync_folder(const char *path)
{
    char folder[PATH_BYTES];
    char *slash;
    int fd;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static int write_file(const char *path, const char *text, struct err *err)
{
    char fresh[PATH_BYTES];
    int fd, rc = 0;

    snprintf(fresh, sizeof fresh, "%.4000s.new%ld", path, (long)getpid());
    unlink(fresh); /* of a process of this number that died here */
    fd = open(fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, FILE_BYTES) != FILE_BYTES || fsync(fd) < 0)
        rc = err_set(err, ERR_IO, "cannot write the key '%s': %s", path, strerror(errno));
    else if (link(fresh, path) < 0)
        rc = err_set(err, errno == EEXIST ? ERR_CONFLICT : ERR_IO,
                     "cannot make the key '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    unlink(fresh);
    if (rc == 0)
        sync_folder(path);
    return rc;
}

int sign_key_make(const char *path, struct sign_key **key, struct err *err)
{
    uint8_t seed[SIGN_SEED_BYTES];
    char text[FILE_BYTES + 1];
    int rc;

    hash_random(seed, sizeof seed);
    hash_hex(seed, sizeof seed, text);
    text[FILE_BYTES - 1] = '\n';
    text[FILE_BYTES] = '\0';
    *key = sign_key_new(seed);
    rc = *key ? write_file(path, text, err) : err_no_memory(err);
    if (rc < 0) {
        sign_key_free(*key);
        *key = NULL;
    }
    OPENSSL_cleanse(seed, sizeof seed);
    OPENSSL_cleanse(text, sizeof text);
    return rc;
}
