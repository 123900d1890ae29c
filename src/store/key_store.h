/* The part of the seam for data keys, which encrypt what is stored (store/sealed): the same for
 * every store, by the same rules as store.h. Keys are stored only as they are wrapped by a
 * key-encryption key that no store holds. Write verbs belong to the writer's thread, between begin
 * and commit; those that take `rows` read, on the writer's connection or on a reader's. */
#ifndef STORE_KEY_STORE_H
#define STORE_KEY_STORE_H

#include "store/store.h"

/* The day of a key that makes hashes of inputs: one for each namespace, for all time. */
#define DATA_KEY_HASH_DAY "hash"

struct data_key_row {
    struct uuid id;
    struct str namespace_name;
    struct str day;     /* YYYY-MM-DD; of a user's key "" */
    struct str user_id; /* "" = not of one user */
    struct str kek_id;  /* whose key wrapped it */
    struct str wrapped;
    int64_t created_at_us;
    int64_t destroyed_at_us; /* 0 = it can be used */
};

/* How many keys there are, by namespace and key-encryption key. */
struct data_key_sum {
    struct str namespace_name;
    struct str kek_id;
    int64_t keys;
    int64_t destroyed;
    int64_t newest_us;
};

/* What says whether and how a stored task is encrypted. */
struct sealed_task {
    struct str namespace_name;
    struct str user_id;
    bool encrypt;
    struct str encrypt_fields;
};

/* How far it is that all content gets new data keys. */
struct seal_rotation {
    int64_t since_us; /* data keys from before are old; 0 = there was none yet */
    int64_t task_key; /* tasks up to here were looked at in this pass, ... */
    int64_t last_key; /* ... and this is the newest one */
    int64_t texts;    /* written again in all passes */
    int64_t closed;   /* found in this pass that cannot be opened here: they stay */
    bool settled;     /* when this pass began, no node used old keys any more */
    bool changed;     /* something was found in this pass: another one follows */
    bool done;
};

int keys_put(struct store *store, const struct data_key_row *key, struct err *err);
/* Wraps it again; *changed is false where its key-encryption key is not `from` any more. */
int keys_rewrap(struct store *store, const struct data_key_row *key, struct str from,
                bool *changed, struct err *err);
/* Overwrites the keys of a namespace, or of a user (absent = of all of them). */
int keys_destroy(struct store *store, struct str namespace_name, struct str user_id,
                 int64_t now_us, int64_t *destroyed, struct err *err);
/* Those that another key-encryption key wrapped, by id, behind `after` (nil = from the first). */
int keys_page(struct store *store, struct str not_kek, const struct uuid *after, uint32_t limit,
              struct arena *arena, struct data_key_row **keys, uint32_t *count, struct err *err);

struct rows;
/* NULL = there is none. The newest one that was not destroyed. */
int keys_find(struct rows *rows, struct str namespace_name, struct str day, struct str user_id,
              struct arena *arena, struct data_key_row **key, struct err *err);
int keys_load(struct rows *rows, const struct uuid *id, struct arena *arena,
              struct data_key_row **key, struct err *err);
int keys_any(struct rows *rows, bool *any, struct err *err);
int keys_sums(struct rows *rows, struct arena *arena, struct data_key_sum **sums, uint32_t *count,
              struct err *err);
/* By the task's key; NULL = there is none. */
int keys_task(struct rows *rows, int64_t task_key, struct arena *arena, struct sealed_task **task,
              struct err *err);

#endif
