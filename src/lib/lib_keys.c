/* Keys are taken over from the program's memory: copied to the stack, from there to the keyring,
 * which wipes what it took. Pure but for that; any thread. */
#include "lib/lib_keys.h"

#define KEYS_MAX 32
#define ID_BYTES 64

static bool is_id(const char *id)
{
    size_t len = id ? strlen(id) : 0;

    return len > 0 && len <= ID_BYTES &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

static int take_keys(const struct pd_options *options, struct encryption_key *keys,
                     uint8_t bytes[KEYS_MAX][SEAL_KEY_BYTES], struct err *err)
{
    for (size_t i = 0; i < options->encryption_keys_count; i++) {
        const struct pd_encryption_key *key = &options->encryption_keys[i];

        if (!is_id(key->id) || !key->bytes)
            return err_set(err, ERR_INVALID, "encryption key %zu needs an id of letters, digits, "
                           "'.', '_' and '-', and %d bytes", i, PD_KEY_BYTES);
        memcpy(bytes[i], key->bytes, SEAL_KEY_BYTES);
        keys[i] = (struct encryption_key){.id = str_of(key->id),
                                          .secret = str_span((const char *)bytes[i],
                                                             SEAL_KEY_BYTES)};
    }
    return 0;
}

static bool has_key(const struct pd_options *options, const char *id)
{
    for (size_t i = 0; i < options->encryption_keys_count; i++)
        if (strcmp(options->encryption_keys[i].id, id) == 0)
            return true;
    return false;
}

int lib_keys_open(const struct pd_options *options, struct keyring **keyring, struct err *err)
{
    struct encryption_key keys[KEYS_MAX];
    uint8_t bytes[KEYS_MAX][SEAL_KEY_BYTES];
    struct encryption_settings settings = {.keys = keys,
                                           .keys_count = (uint32_t)options->encryption_keys_count,
                                           .all = options->encrypt_all != 0,
                                           .per_user = options->encrypt_per_user != 0};
    int rc;

    _Static_assert(PD_KEY_BYTES == SEAL_KEY_BYTES, "as the public header says");
    *keyring = NULL;
    if (options->encryption_keys_count == 0 && !settings.all)
        return 0;
    if (options->encryption_keys_count > KEYS_MAX)
        return err_set(err, ERR_INVALID, "there are more than %d encryption keys", KEYS_MAX);
    rc = take_keys(options, keys, bytes, err);
    if (rc == 0 && options->encryption_current && !has_key(options, options->encryption_current))
        rc = err_set(err, ERR_INVALID, "encryption_current names '%.100s', which is not one of "
                     "encryption_keys", options->encryption_current);
    if (options->encryption_keys_count)
        settings.current = options->encryption_current ? str_of(options->encryption_current)
                                                       : str_of(options->encryption_keys[0].id);
    if (rc == 0)
        *keyring = keyring_new(&settings, err);
    explicit_bzero(bytes, sizeof bytes);
    return *keyring ? 0 : -(int)err->code;
}
