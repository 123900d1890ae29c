/* Reading key-encryption keys. Their bytes lie on the stack or in locked memory and are wiped after
 * use; a variable is taken out of the environment, so that no handler gets it. */
#include "node/encryption_keys.h"

#include "node/node.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_TEXT_BYTES_MAX 256
#define KEYS_MAX 32
#define COMMAND_SECONDS_MAX 30

struct key_text {
    char text[KEY_TEXT_BYTES_MAX + 1];
    size_t len;
};

/* ---- the text of a key ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* 64 hex digits, or base64 in either alphabet, padded or not. */
static bool decode(struct key_text *text, uint8_t out[SEAL_KEY_BYTES])
{
    uint8_t bytes[KEY_TEXT_BYTES_MAX];
    size_t len = 0;
    bool good;

    while (text->len && is_space(text->text[text->len - 1]))
        text->len--;
    if (text->len == 2 * SEAL_KEY_BYTES)
        return hash_from_hex(str_span(text->text, text->len), out, SEAL_KEY_BYTES);
    while (text->len && text->text[text->len - 1] == '=')
        text->len--;
    for (size_t i = 0; i < text->len; i++)
        text->text[i] = text->text[i] == '+' ? '-' : text->text[i] == '/' ? '_' : text->text[i];
    good = text->len == BASE64_CHARS(SEAL_KEY_BYTES) &&
           base64_read(str_span(text->text, text->len), bytes, &len) && len == SEAL_KEY_BYTES;
    if (good)
        memcpy(out, bytes, SEAL_KEY_BYTES);
    sodium_memzero(bytes, sizeof bytes);
    return good;
}

static int read_text(int fd, struct key_text *text)
{
    ssize_t got = 1;

    while (got != 0 && text->len < KEY_TEXT_BYTES_MAX) {
        got = read(fd, text->text + text->len, KEY_TEXT_BYTES_MAX - text->len);
        if (got < 0 && errno != EINTR)
            return -1;
        text->len += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* ---- where it comes from ---- */

static int check_file(int fd, const char *path, struct err *err)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return err_set(err, ERR_IO, "cannot look at the key file %s: %s", path, strerror(errno));
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "the key file %s belongs to another user (id %u); chown "
                       "it to the user of the server", path, (unsigned)info.st_uid);
    if (info.st_mode & 077)
        return err_set(err, ERR_FORBIDDEN, "other users can read the key file %s; run 'chmod 600 "
                       "%s'", path, path);
    return 0;
}

/* *why: it is not there. */
static int from_file(struct str file, struct key_text *text, char why[256], struct err *err)
{
    char path[4096];
    int fd, rc;

    snprintf(path, sizeof path, STR_FMT, STR_ARG(file));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, 256, "cannot open %.180s: %s", path, strerror(errno));
        return 0;
    }
    rc = check_file(fd, path, err);
    if (rc == 0 && read_text(fd, text) < 0)
        snprintf(why, 256, "cannot read %.180s: %s", path, strerror(errno));
    close(fd);
    return rc;
}

static void from_variable(struct str name, struct key_text *text, char why[256])
{
    char variable[256];
    char *value;

    snprintf(variable, sizeof variable, STR_FMT, STR_ARG(name));
    value = getenv(variable);
    if (!value) {
        snprintf(why, 256, "the variable %.180s is not set", variable);
        return;
    }
    text->len = strlen(value) < KEY_TEXT_BYTES_MAX ? strlen(value) : KEY_TEXT_BYTES_MAX;
    memcpy(text->text, value, text->len);
    explicit_bzero(value, strlen(value));
    unsetenv(variable);
}

/* What the command writes until it ends or its time is over. */
static int read_command(int fd, struct key_text *text)
{
    int64_t until_us = clock_boot_us() + COMMAND_SECONDS_MAX * CLOCK_SECOND_US;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ssize_t got = 1;

    while (got != 0 && text->len < KEY_TEXT_BYTES_MAX) {
        int64_t left_ms = (until_us - clock_boot_us()) / CLOCK_MS_US;

        if (left_ms <= 0 || poll(&wait, 1, (int)left_ms) == 0)
            return -1;
        got = read(fd, text->text + text->len, KEY_TEXT_BYTES_MAX - text->len);
        if (got < 0 && errno != EINTR)
            return -1;
        text->len += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static void from_command(char *const *command, struct key_text *text, char why[256])
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0, failed;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        snprintf(why, 256, "cannot make a pipe: %s", strerror(errno));
        return;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    failed = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed) {
        snprintf(why, 256, "cannot run %.180s: %s", command[0], strerror(failed));
    } else {
        bool late = read_command(ends[0], text) < 0;

        if (late)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (late || status != 0)
            snprintf(why, 256, late ? "%.180s gave no key within %d seconds"
                                    : "%.180s failed (status %d)",
                     command[0], late ? COMMAND_SECONDS_MAX : status);
    }
    close(ends[0]);
}

/* ---- all of them ---- */

/* *found: its 32 bytes are in out. */
static int read_key(const struct encryption_key *key, uint8_t out[SEAL_KEY_BYTES], bool *found,
                    char why[256], struct err *err)
{
    struct key_text text = {.len = 0};
    int rc = 0;

    why[0] = '\0';
    if (key->file.data)
        rc = from_file(key->file, &text, why, err);
    else if (key->env.data)
        from_variable(key->env, &text, why);
    else
        from_command(key->command, &text, why);
    *found = rc == 0 && !why[0];
    if (*found && !decode(&text, out)) {
        *found = false;
        rc = err_set(err, ERR_INVALID, "the encryption key '" STR_FMT "' is not 32 bytes in base64 "
                     "or hex; 'perdura key add' makes one", STR_ARG(key->id));
    }
    sodium_memzero(&text, sizeof text);
    return rc;
}

static int check_current(const struct encryption_settings *settings, struct err *err)
{
    for (uint32_t i = 0; i < settings->keys_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (str_eq(settings->keys[i].id, settings->keys[j].id))
                return err_set(err, ERR_INVALID, "encryption.keys has the id '" STR_FMT "' twice",
                               STR_ARG(settings->keys[i].id));
    for (uint32_t i = 0; i < settings->keys_count; i++)
        if (str_eq(settings->keys[i].id, settings->current))
            return 0;
    return settings->current.data
               ? err_set(err, ERR_INVALID, "encryption.current names '" STR_FMT "', which is not "
                         "one of encryption.keys", STR_ARG(settings->current))
               : 0;
}

/* Into memory that can be handed over: the keyring wipes what it took. */
static int read_keys(const struct encryption_settings *settings, struct encryption_key *keys,
                     uint8_t bytes[KEYS_MAX][SEAL_KEY_BYTES], const struct keyring *known,
                     encryption_missing *tell, void *ctx, struct err *err)
{
    TRY(check_current(settings, err));
    for (uint32_t i = 0; i < settings->keys_count; i++) {
        char why[256];
        bool found;

        keys[i] = settings->keys[i];
        TRY(read_key(&keys[i], bytes[i], &found, why, err));
        if (found)
            keys[i].secret = str_span((const char *)bytes[i], SEAL_KEY_BYTES);
        else if (!known || !keyring_has((struct keyring *)(uintptr_t)known, keys[i].id))
            tell(ctx, keys[i].id, why);
    }
    return 0;
}

int encryption_keys_reload(struct keyring *keyring, const struct settings *settings,
                           encryption_missing *tell, void *ctx, struct err *err)
{
    struct encryption_settings given = settings->encryption;
    struct encryption_key keys[KEYS_MAX];
    uint8_t bytes[KEYS_MAX][SEAL_KEY_BYTES];
    int rc;

    if (given.keys_count > KEYS_MAX)
        return err_set(err, ERR_INVALID, "encryption.keys has more than %d keys", KEYS_MAX);
    seal_init();
    rc = read_keys(&given, keys, bytes, keyring, tell, ctx, err);
    given.keys = keys;
    if (rc == 0)
        rc = keyring_configure(keyring, &given, err);
    sodium_memzero(bytes, sizeof bytes);
    return rc;
}

int encryption_keys_open(const struct settings *settings, encryption_missing *tell, void *ctx,
                         struct keyring **keyring, struct err *err)
{
    *keyring = NULL;
    if (settings->encryption.keys_count == 0 && !settings->encryption.all)
        return 0;
    *keyring = keyring_new(NULL, err);
    if (!*keyring)
        return -(int)err->code;
    if (encryption_keys_reload(*keyring, settings, tell, ctx, err) == 0)
        return 0;
    keyring_free(*keyring);
    *keyring = NULL;
    return -(int)err->code;
}

int node_key_write(const char *path, struct err *err)
{
    uint8_t bytes[SEAL_KEY_BYTES];
    char text[BASE64_CHARS(SEAL_KEY_BYTES) + 1];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool wrote;

    if (fd < 0)
        return err_set(err, errno == EEXIST ? ERR_CONFLICT : ERR_IO,
                       errno == EEXIST ? "there is a file %.300s already; a key is never written "
                                         "over (%s)"
                                       : "cannot make the key file %.300s: %s",
                       path, strerror(errno));
    seal_init();
    randombytes_buf(bytes, sizeof bytes);
    base64_write(bytes, sizeof bytes, text);
    text[sizeof text - 1] = '\n';
    wrote = write(fd, text, sizeof text) == (ssize_t)sizeof text && fsync(fd) == 0;
    close(fd);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(text, sizeof text);
    if (wrote)
        return 0;
    unlink(path);
    return err_set(err, ERR_IO, "cannot write the key file %.300s: %s", path, strerror(errno));
}
