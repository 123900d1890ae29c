/* The keyring: one mutex around small tables. The bytes of all keys lie in memory of libsodium,
 * which is locked where the system allows it, kept out of core dumps and wiped when it is freed. */
#include "store/sealed/keyring.h"

#include "base/clock.h"
#include "base/map.h"
#include "store/rows/rows.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define KEKS_MAX 32
#define DATA_KEYS_MAX 1024 /* opened at once: 32 KiB of locked memory */
#define ID_BYTES 72
#define PLACE_BYTES 640 /* a namespace, a day and a user, each within its bound */

struct kek {
    char id[ID_BYTES];
    uint8_t bytes[SEAL_KEY_BYTES];
};

struct held_key {
    struct uuid id;
    int64_t read_us;  /* by its id, ... */
    int64_t found_us; /* ... and as the one to encrypt with; 0 = it was not */
    size_t place_len;
    char place[PLACE_BYTES]; /* namespace, day and user, each behind a 0x1f; as a key of a map */
    size_t namespace_len;
    enum opened opened; /* OPENED_WELL or OPENED_DESTROYED */
};

/* In memory of libsodium. */
struct secrets {
    struct kek keks[KEKS_MAX];
    uint8_t keys[DATA_KEYS_MAX][SEAL_KEY_BYTES];
};

struct keyring {
    pthread_mutex_t mutex;
    struct secrets *secrets;
    uint32_t keks_count;
    const struct kek *current; /* NULL = nothing can be encrypted */
    bool all;
    bool per_user;
    struct held_key *held; /* DATA_KEYS_MAX; the bytes of each are at the same place in secrets */
    uint32_t held_count;
    struct map by_id;    /* struct held_key */
    struct map by_place; /* those to encrypt with */
    _Atomic(int64_t) counted[OPENED_COUNT];
};

const char *opened_word(enum opened opened)
{
    static const char *const words[] = {"clear", "opened", "locked", "destroyed", "damaged"};

    return words[opened];
}

/* ---- key-encryption keys ---- */

static struct kek *find_kek(const struct keyring *keyring, struct str id)
{
    for (uint32_t i = 0; i < keyring->keks_count; i++)
        if (str_is(id, keyring->secrets->keks[i].id))
            return &keyring->secrets->keks[i];
    return NULL;
}

/* A key that was read before and cannot be read again (its variable was wiped) stays. */
static int take_kek(struct keyring *keyring, const struct encryption_key *given, struct err *err)
{
    struct kek *kek = find_kek(keyring, given->id);

    if (!given->secret.data)
        return 0;
    ASSERT(given->secret.len == SEAL_KEY_BYTES && given->id.len < ID_BYTES);
    if (!kek && keyring->keks_count == KEKS_MAX)
        return err_set(err, ERR_INVALID, "there are more than %d encryption keys", KEKS_MAX);
    if (!kek)
        kek = &keyring->secrets->keks[keyring->keks_count++];
    snprintf(kek->id, sizeof kek->id, STR_FMT, STR_ARG(given->id));
    memcpy(kek->bytes, given->secret.data, sizeof kek->bytes);
    sodium_memzero((void *)(uintptr_t)given->secret.data, given->secret.len);
    return 0;
}

static void forget(struct keyring *keyring)
{
    sodium_memzero(keyring->secrets->keys, sizeof keyring->secrets->keys);
    map_deinit(&keyring->by_id);
    map_deinit(&keyring->by_place);
    keyring->held_count = 0;
}

int keyring_configure(struct keyring *keyring, const struct encryption_settings *settings,
                      struct err *err)
{
    int rc = 0;

    pthread_mutex_lock(&keyring->mutex);
    for (uint32_t i = 0; rc == 0 && i < settings->keys_count; i++)
        rc = take_kek(keyring, &settings->keys[i], err);
    keyring->current = settings->current.data ? find_kek(keyring, settings->current) : NULL;
    keyring->all = settings->all;
    keyring->per_user = settings->per_user;
    forget(keyring);
    pthread_mutex_unlock(&keyring->mutex);
    return rc;
}

struct keyring *keyring_new(const struct encryption_settings *settings, struct err *err)
{
    struct keyring *keyring = err_calloc(sizeof *keyring, err);

    if (!keyring)
        return NULL;
    seal_init();
    pthread_mutex_init(&keyring->mutex, NULL);
    keyring->secrets = sodium_malloc(sizeof *keyring->secrets);
    keyring->held = calloc(DATA_KEYS_MAX, sizeof *keyring->held);
    if (!keyring->secrets || !keyring->held) {
        keyring_free(keyring);
        err_no_memory(err);
        return NULL;
    }
    sodium_memzero(keyring->secrets, sizeof *keyring->secrets);
    if (settings && keyring_configure(keyring, settings, err) < 0) {
        keyring_free(keyring);
        return NULL;
    }
    return keyring;
}

void keyring_free(struct keyring *keyring)
{
    if (!keyring)
        return;
    map_deinit(&keyring->by_id);
    map_deinit(&keyring->by_place);
    sodium_free(keyring->secrets);
    free(keyring->held);
    pthread_mutex_destroy(&keyring->mutex);
    free(keyring);
}

bool keyring_all(struct keyring *keyring)
{
    bool all;

    pthread_mutex_lock(&keyring->mutex);
    all = keyring->all;
    pthread_mutex_unlock(&keyring->mutex);
    return all;
}

bool keyring_per_user(struct keyring *keyring)
{
    bool per_user;

    pthread_mutex_lock(&keyring->mutex);
    per_user = keyring->per_user;
    pthread_mutex_unlock(&keyring->mutex);
    return per_user;
}

struct str keyring_current(struct keyring *keyring)
{
    struct str id;

    pthread_mutex_lock(&keyring->mutex);
    id = keyring->current ? str_of(keyring->current->id) : STR_NONE;
    pthread_mutex_unlock(&keyring->mutex);
    return id;
}

bool keyring_ready(struct keyring *keyring)
{
    return keyring_current(keyring).data != NULL;
}

bool keyring_has(struct keyring *keyring, struct str kek_id)
{
    bool has;

    pthread_mutex_lock(&keyring->mutex);
    has = find_kek(keyring, kek_id) != NULL;
    pthread_mutex_unlock(&keyring->mutex);
    return has;
}

uint32_t keyring_ids(struct keyring *keyring, struct str *ids, uint32_t max)
{
    uint32_t count;

    pthread_mutex_lock(&keyring->mutex);
    count = keyring->keks_count < max ? keyring->keks_count : max;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = str_of(keyring->secrets->keks[i].id);
    pthread_mutex_unlock(&keyring->mutex);
    return count;
}

/* ---- data keys ---- */

static struct wrap_place wrap_place_of(const struct data_key_row *row)
{
    return (struct wrap_place){row->id, row->namespace_name, row->day, row->user_id, row->kek_id};
}

static size_t write_place(char *out, struct str namespace_name, struct str day, struct str user_id)
{
    size_t len = namespace_name.len + day.len + user_id.len + 2;

    ASSERT(len < PLACE_BYTES);
    snprintf(out, PLACE_BYTES, STR_FMT "\x1f" STR_FMT "\x1f" STR_FMT, STR_ARG(namespace_name),
             STR_ARG(day), STR_ARG(user_id));
    return len;
}

static struct str place_of(const struct held_key *held)
{
    return str_span(held->place, held->place_len);
}

static uint8_t *bytes_of(const struct keyring *keyring, const struct held_key *held)
{
    return keyring->secrets->keys[held - keyring->held];
}

/* Under the mutex. found: it is the one to encrypt with, not only one to open with. A table without
 * memory forgets: the key is read again then. */
static void learn(struct keyring *keyring, const struct data_key_row *row,
                  const uint8_t bytes[SEAL_KEY_BYTES], enum opened opened, bool found)
{
    struct held_key *held = map_get(&keyring->by_id, uuid_bytes(&row->id));

    if (!held) {
        if (keyring->held_count == DATA_KEYS_MAX)
            forget(keyring);
        held = &keyring->held[keyring->held_count++];
        held->id = row->id;
        held->found_us = 0;
        held->namespace_len = row->namespace_name.len;
        held->place_len = write_place(held->place, row->namespace_name, row->day, row->user_id);
        if (map_put(&keyring->by_id, uuid_bytes(&held->id), held) < 0) {
            forget(keyring);
            return;
        }
    }
    held->read_us = clock_boot_us();
    held->opened = opened;
    if (bytes)
        memcpy(bytes_of(keyring, held), bytes, SEAL_KEY_BYTES);
    else
        sodium_memzero(bytes_of(keyring, held), SEAL_KEY_BYTES);
    if (opened != OPENED_WELL && map_get(&keyring->by_place, place_of(held)) == held)
        map_remove(&keyring->by_place, place_of(held));
    if (opened != OPENED_WELL || !found)
        return;
    held->found_us = held->read_us;
    if (map_put(&keyring->by_place, place_of(held), held) < 0)
        forget(keyring);
}

void keyring_learn(struct keyring *keyring, const struct data_key_row *row,
                   const uint8_t bytes[SEAL_KEY_BYTES])
{
    pthread_mutex_lock(&keyring->mutex);
    learn(keyring, row, bytes, OPENED_WELL, true);
    pthread_mutex_unlock(&keyring->mutex);
}

/* Under the mutex. False: it is not known, or was read too long ago. */
static bool give(struct keyring *keyring, const struct held_key *held, int64_t read_us,
                 struct arena *arena, struct data_key *key, enum opened *opened)
{
    if (!held || clock_boot_us() - read_us > KEYRING_TRUST_US)
        return false;
    *opened = held->opened;
    key->id = held->id;
    key->namespace_name = arena_str(arena, str_span(held->place, held->namespace_len));
    memcpy(key->bytes, bytes_of(keyring, held), SEAL_KEY_BYTES);
    return true;
}

/* What a stored row comes to. */
static void unwrap(struct keyring *keyring, const struct data_key_row *row, struct data_key *key,
                   enum opened *opened, bool found)
{
    struct wrap_place place = wrap_place_of(row);
    const struct kek *kek;

    *key = (struct data_key){.id = row->id, .namespace_name = row->namespace_name};
    pthread_mutex_lock(&keyring->mutex);
    kek = find_kek(keyring, row->kek_id);
    if (row->destroyed_at_us)
        *opened = OPENED_DESTROYED;
    else if (!kek)
        *opened = OPENED_LOCKED;
    else
        *opened = data_key_unwrap(kek->bytes, &place, row->wrapped, key->bytes) ? OPENED_WELL
                                                                                : OPENED_DAMAGED;
    if (*opened == OPENED_WELL)
        learn(keyring, row, key->bytes, OPENED_WELL, found);
    else if (*opened == OPENED_DESTROYED)
        learn(keyring, row, NULL, OPENED_DESTROYED, found);
    pthread_mutex_unlock(&keyring->mutex);
}

int keyring_get(struct keyring *keyring, struct rows *rows, const struct uuid *id,
                struct arena *arena, struct data_key *key, enum opened *opened, struct err *err)
{
    const struct held_key *held;
    struct data_key_row *row;
    bool known;

    *key = (struct data_key){.id = *id};
    pthread_mutex_lock(&keyring->mutex);
    held = map_get(&keyring->by_id, uuid_bytes(id));
    known = give(keyring, held, held ? held->read_us : 0, arena, key, opened);
    pthread_mutex_unlock(&keyring->mutex);
    if (known)
        return 0;
    *opened = OPENED_DAMAGED; /* no such key was ever stored */
    TRY(keys_load(rows, id, arena, &row, err));
    if (row)
        unwrap(keyring, row, key, opened, false);
    return 0;
}

int keyring_find(struct keyring *keyring, struct rows *rows, struct str namespace_name,
                 struct str day, struct str user_id, struct arena *arena, struct data_key *key,
                 enum opened *opened, struct err *err)
{
    char place[PLACE_BYTES];
    size_t len = write_place(place, namespace_name, day, user_id);
    const struct held_key *held;
    struct data_key_row *row;
    bool known;

    *key = (struct data_key){.namespace_name = STR_NONE};
    pthread_mutex_lock(&keyring->mutex);
    held = map_get(&keyring->by_place, str_span(place, len));
    known = give(keyring, held, held ? held->found_us : 0, arena, key, opened);
    pthread_mutex_unlock(&keyring->mutex);
    if (known)
        return 0;
    *opened = OPENED_CLEAR;
    TRY(keys_find(rows, namespace_name, day, user_id, arena, &row, err));
    if (row)
        unwrap(keyring, row, key, opened, true);
    return 0;
}

static int no_kek(struct err *err)
{
    return err_set(err, ERR_LOCKED, "this server has no key to encrypt with; name one in "
                                    "encryption.keys and encryption.current ('perdura key add' "
                                    "makes one)");
}

int keyring_make(struct keyring *keyring, struct str namespace_name, struct str day,
                 struct str user_id, int64_t now_us, struct arena *arena,
                 struct data_key_row *row, struct data_key *key, struct err *err)
{
    char *wrapped = TRY_MEMORY(arena_alloc(arena, WRAPPED_CHARS + 1));
    struct wrap_place place;
    bool made;

    *row = (struct data_key_row){.namespace_name = arena_str(arena, namespace_name),
                                 .day = arena_str(arena, day),
                                 .user_id = arena_str(arena, user_id),
                                 .wrapped = str_span(wrapped, WRAPPED_CHARS),
                                 .created_at_us = now_us};
    randombytes_buf(row->id.bytes, sizeof row->id.bytes);
    row->id.bytes[6] = (uint8_t)((row->id.bytes[6] & 0x0f) | 0x40);
    row->id.bytes[8] = (uint8_t)((row->id.bytes[8] & 0x3f) | 0x80);
    randombytes_buf(key->bytes, sizeof key->bytes);
    key->id = row->id;
    key->namespace_name = row->namespace_name;
    pthread_mutex_lock(&keyring->mutex);
    made = keyring->current != NULL;
    if (made) {
        row->kek_id = arena_str(arena, str_of(keyring->current->id));
        place = wrap_place_of(row);
        data_key_wrap(keyring->current->bytes, &place, key->bytes, wrapped);
    }
    pthread_mutex_unlock(&keyring->mutex);
    if (!made)
        return no_kek(err);
    return arena->failed ? err_no_memory(err) : 0;
}

int keyring_rewrap(struct keyring *keyring, struct data_key_row *row, struct arena *arena,
                   struct err *err)
{
    char *wrapped = TRY_MEMORY(arena_alloc(arena, WRAPPED_CHARS + 1));
    struct wrap_place place = wrap_place_of(row);
    uint8_t bytes[SEAL_KEY_BYTES];
    const struct kek *kek;
    int rc = 0;

    pthread_mutex_lock(&keyring->mutex);
    kek = find_kek(keyring, row->kek_id);
    if (!keyring->current) {
        rc = no_kek(err);
    } else if (!kek) {
        rc = err_set(err, ERR_LOCKED, "the key '" STR_FMT "', which wraps some of the data keys, "
                     "is not configured here; add it to encryption.keys", STR_ARG(row->kek_id));
    } else if (!data_key_unwrap(kek->bytes, &place, row->wrapped, bytes)) {
        rc = err_set(err, ERR_STORAGE_READ, "a data key that '" STR_FMT "' wraps cannot be "
                     "opened: it was changed, or the key of that id is another one; run 'perdura "
                     "verify'", STR_ARG(row->kek_id));
    } else {
        row->kek_id = arena_str(arena, str_of(keyring->current->id));
        place = wrap_place_of(row);
        data_key_wrap(keyring->current->bytes, &place, bytes, wrapped);
        row->wrapped = str_span(wrapped, WRAPPED_CHARS);
    }
    pthread_mutex_unlock(&keyring->mutex);
    sodium_memzero(bytes, sizeof bytes);
    return rc == 0 && arena->failed ? err_no_memory(err) : rc;
}

void keyring_forget(struct keyring *keyring)
{
    pthread_mutex_lock(&keyring->mutex);
    forget(keyring);
    pthread_mutex_unlock(&keyring->mutex);
}

void keyring_count(struct keyring *keyring, enum opened opened)
{
    atomic_fetch_add_explicit(&keyring->counted[opened], 1, memory_order_relaxed);
}

int64_t keyring_counted(const struct keyring *keyring, enum opened opened)
{
    return atomic_load_explicit(&keyring->counted[opened], memory_order_relaxed);
}
