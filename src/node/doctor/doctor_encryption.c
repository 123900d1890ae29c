/* What `perdura doctor` says about encryption: whether there is a key to encrypt with, which of
 * those that wrap data keys are configured, how old the newest data key is. One thread. */
#include "node/doctor/doctor_encryption.h"

#include "base/clock.h"
#include "node/encryption_keys.h"
#include "store/key_store.h"

#define DAY_US (INT64_C(86400) * CLOCK_SECOND_US)

struct missing {
    struct arena *arena;
    struct str text; /* of the last one */
    uint32_t count;
};

static void on_missing(void *ctx, struct str id, const char *why)
{
    struct missing *missing = ctx;

    missing->count++;
    missing->text = arena_format(missing->arena, "'" STR_FMT "': %s", STR_ARG(id), why);
}

static struct doctor_check failure(struct str detail, const char *fix)
{
    return (struct doctor_check){DOCTOR_FAILURE, STR("encryption"), detail, str_of(fix), false};
}

/* A key that wraps data keys of the store, and is not here; absent = there is none. */
static struct str unknown_key(const struct keyring *keyring, const struct data_key_sum *sums,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (sums[i].keys > sums[i].destroyed &&
            !(keyring && keyring_has((struct keyring *)(uintptr_t)keyring, sums[i].kek_id)))
            return sums[i].kek_id;
    return STR_NONE;
}

/* Which handler runs as the user of the server, who can read the key files. */
static struct str reads_keys(const struct settings *settings)
{
    bool files = false;

    for (uint32_t i = 0; i < settings->encryption.keys_count; i++)
        files |= settings->encryption.keys[i].file.data != NULL;
    for (uint32_t i = 0; files && i < settings->handlers_count; i++)
        if (settings->handlers[i].command && !settings->handlers[i].user.data)
            return settings->handlers[i].type;
    return STR_NONE;
}

static struct doctor_check readable(struct str type, struct arena *arena)
{
    return (struct doctor_check){
        DOCTOR_WARNING, STR("encryption"),
        arena_format(arena, "handlers of '" STR_FMT "' run as the user of the server and can read "
                     "its key files", STR_ARG(type)),
        STR("set handlers[].user to another user"), false};
}

static struct doctor_check judge(struct keyring *keyring, const struct data_key_sum *sums,
                                 uint32_t count, const struct missing *missing,
                                 struct arena *arena)
{
    struct str unknown = unknown_key(keyring, sums, count);
    int64_t keys = 0, newest_us = 0;

    for (uint32_t i = 0; i < count; i++) {
        keys += sums[i].keys - sums[i].destroyed;
        newest_us = sums[i].newest_us > newest_us ? sums[i].newest_us : newest_us;
    }
    if (missing->count)
        return failure(missing->text,
                       "put the key there; what it encrypts stays closed until then");
    if (unknown.data)
        return failure(arena_format(arena, "the key '" STR_FMT "', which wraps data keys of the "
                                    "store, is not configured", STR_ARG(unknown)),
                       "add it to encryption.keys; what it encrypts stays closed until then");
    if (!keyring)
        return (struct doctor_check){DOCTOR_OK, STR("encryption"), STR("off"), STR_NONE, false};
    if (!keyring_ready(keyring))
        return (struct doctor_check){DOCTOR_WARNING, STR("encryption"),
                                     STR("nothing new can be encrypted"),
                                     STR("name one of the keys in encryption.current"), false};
    if (keys == 0)
        return (struct doctor_check){
            DOCTOR_OK, STR("encryption"),
            arena_format(arena, "on, %s, with the key '" STR_FMT "'; nothing is encrypted yet",
                         keyring_all(keyring) ? "for every task" : "where a task or type asks",
                         STR_ARG(keyring_current(keyring))),
            STR_NONE, false};
    return (struct doctor_check){
        DOCTOR_OK, STR("encryption"),
        arena_format(arena, "on, %s, with the key '" STR_FMT "'; %lld data keys, the newest %lld "
                     "days old", keyring_all(keyring) ? "for every task" : "where a task or type "
                     "asks", STR_ARG(keyring_current(keyring)), (long long)keys,
                     (long long)((clock_wall_us() - newest_us) / DAY_US)),
        STR_NONE, false};
}

struct doctor_check doctor_encryption(struct store *store, const struct settings *settings,
                                      struct arena *arena)
{
    struct missing missing = {.arena = arena};
    struct keyring *keyring = NULL;
    struct data_key_sum *sums;
    struct doctor_check check;
    struct err err = {0};
    uint32_t count;

    if (encryption_keys_open(settings, on_missing, &missing, &keyring, &err) < 0)
        return failure(arena_str(arena, str_of(err.text)), "correct encryption.keys");
    if (keys_sums(store->rows, arena, &sums, &count, &err) < 0)
        check = failure(arena_str(arena, str_of(err.text)), "run 'perdura verify'");
    else
        check = judge(keyring, sums, count, &missing, arena);
    if (check.verdict == DOCTOR_OK && reads_keys(settings).data)
        check = readable(reads_keys(settings), arena);
    keyring_free(keyring);
    return check;
}
