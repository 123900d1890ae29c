/* Ed25519 by libsodium. The file of a key is its seed in hex and a newline; it is written beside
 * its name and put there by a hard link, which fails if another process was faster. Any thread. */
#include "base/sign.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES (2 * SIGN_SEED_BYTES + 1) /* with its newline */
#define PATH_BYTES 4096

struct sign_key {
    uint8_t secret[crypto_sign_SECRETKEYBYTES]; /* the seed, and behind it the public key */
};

_Static_assert(SIGN_SEED_BYTES == crypto_sign_SEEDBYTES, "of the header");
_Static_assert(SIGN_PUBLIC_BYTES == crypto_sign_PUBLICKEYBYTES, "of the header");
_Static_assert(SIGN_BYTES == crypto_sign_BYTES, "of the header");

struct sign_key *sign_key_new(const uint8_t seed[SIGN_SEED_BYTES])
{
    struct sign_key *key = calloc(1, sizeof *key);
    uint8_t public_key[SIGN_PUBLIC_BYTES];

    if (key)
        crypto_sign_seed_keypair(public_key, key->secret, seed);
    return key;
}

void sign_key_free(struct sign_key *key)
{
    if (!key)
        return;
    sodium_memzero(key, sizeof *key);
    free(key);
}

int sign_key_derive(const struct sign_key *key, struct str purpose, uint8_t out[SIGN_SEED_BYTES])
{
    return hash_hmac_sha256(str_span((const char *)key->secret, SIGN_SEED_BYTES), purpose, out);
}

void sign_key_public(const struct sign_key *key, uint8_t out[SIGN_PUBLIC_BYTES])
{
    memcpy(out, key->secret + SIGN_SEED_BYTES, SIGN_PUBLIC_BYTES);
}

void sign_make(const struct sign_key *key, struct str data, uint8_t out[SIGN_BYTES])
{
    crypto_sign_detached(out, NULL, (const unsigned char *)data.data, data.len, key->secret);
}

bool sign_check(const uint8_t public_key[SIGN_PUBLIC_BYTES], struct str data,
                const uint8_t signature[SIGN_BYTES])
{
    return crypto_sign_verify_detached(signature, (const unsigned char *)data.data, data.len,
                                       public_key) == 0;
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
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
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
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    return rc;
}
