/* The keys of this process: key-encryption keys (KEKs) as they were configured, and the data keys
 * that were opened with them, in locked memory. All stores and threads of the process share one.
 * A data key is forgotten a few seconds after it was read, so that one that another node destroyed
 * is not used for longer. Any thread. */
#ifndef STORE_SEALED_KEYRING_H
#define STORE_SEALED_KEYRING_H

#include "base/log.h"
#include "core/seal/envelope.h"
#include "core/settings.h"
#include "store/key_store.h"

#define KEYRING_TRUST_US (5 * INT64_C(1000000)) /* so long a data key that was read is used */

struct keyring;

/* What became of an encrypted text. */
enum opened {
    OPENED_CLEAR,     /* it was not encrypted */
    OPENED_WELL,
    OPENED_LOCKED,    /* this process lacks the key-encryption key */
    OPENED_DESTROYED, /* its data key was destroyed */
    OPENED_DAMAGED,   /* it was changed, or moved from where it was written */
    OPENED_COUNT
};
const char *opened_word(enum opened opened);

/* A data key as it is handed out: a copy, to be wiped after use. */
struct data_key {
    struct uuid id;
    struct str namespace_name; /* in the caller's arena */
    uint8_t bytes[SEAL_KEY_BYTES];
};

/* Takes over the keys of the settings and wipes them there. NULL: out of memory. */
struct keyring *keyring_new(const struct encryption_settings *settings, struct err *err);
void keyring_free(struct keyring *keyring);
/* Settings that were read again: keys are added and replaced, none is removed. */
int keyring_configure(struct keyring *keyring, const struct encryption_settings *settings,
                      struct err *err);

/* Does every task have to be encrypted, and with keys of users? */
bool keyring_all(struct keyring *keyring);
bool keyring_per_user(struct keyring *keyring);
/* Can anything be encrypted here: is there a current key-encryption key? */
bool keyring_ready(struct keyring *keyring);
/* Its id; STR_NONE = there is none. Lives as long as the keyring. */
struct str keyring_current(struct keyring *keyring);
bool keyring_has(struct keyring *keyring, struct str kek_id);
uint32_t keyring_ids(struct keyring *keyring, struct str *ids, uint32_t max);

/* A data key by its id; rows: where it is read from if it is not known. Not OPENED_WELL: *key is
 * empty. A negative error when the store failed. */
int keyring_get(struct keyring *keyring, struct rows *rows, const struct uuid *id,
                struct arena *arena, struct data_key *key, enum opened *opened, struct err *err);
/* The one to encrypt with, known or read; not OPENED_WELL: there is none yet, or none that this
 * process can use. */
int keyring_find(struct keyring *keyring, struct rows *rows, struct str namespace_name,
                 struct str day, struct str user_id, struct arena *arena, struct data_key *key,
                 enum opened *opened, struct err *err);
/* A new data key, wrapped into *row (texts in the arena). It is not kept: keyring_learn does that,
 * once its row is stored. ERR_LOCKED where there is no current KEK. */
int keyring_make(struct keyring *keyring, struct str namespace_name, struct str day,
                 struct str user_id, int64_t now_us, struct arena *arena,
                 struct data_key_row *row, struct data_key *key, struct err *err);
void keyring_learn(struct keyring *keyring, const struct data_key_row *row,
                   const uint8_t bytes[SEAL_KEY_BYTES]);
/* Wraps the key of the row with the current KEK. ERR_LOCKED where one of the two is missing,
 * ERR_STORAGE_READ where the row was changed. */
int keyring_rewrap(struct keyring *keyring, struct data_key_row *row, struct arena *arena,
                   struct err *err);
/* All data keys are read again when they are next needed. */
void keyring_forget(struct keyring *keyring);

/* Texts opened since the start, by what became of them. */
void keyring_count(struct keyring *keyring, enum opened opened);
int64_t keyring_counted(const struct keyring *keyring, enum opened opened);

#endif
