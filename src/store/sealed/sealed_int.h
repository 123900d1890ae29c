/* Inside of the layer that encrypts: what its files share. */
#ifndef STORE_SEALED_SEALED_INT_H
#define STORE_SEALED_SEALED_INT_H

#include "base/clock.h"
#include "base/map.h"
#include "store/catalog_store.h"
#include "store/recovery_store.h"
#include "store/rows/rows.h"
#include "store/sealed/sealed.h"

/* What a task's texts are encrypted with, known for the transaction under way. */
struct sealed_ctx {
    int64_t task_key;
    bool sealed; /* all of it, or (fields) some members of payload, data and result */
    struct task_seal seal;
    struct str namespace_name;
    struct str user_id;
};

/* A data key that was made in the transaction under way: others learn of it at the commit. */
struct fresh_key {
    struct fresh_key *next;
    struct data_key_row row;
    uint8_t bytes[SEAL_KEY_BYTES];
};

#define SEALED_NONCES 256 /* with the same first part */

struct sealed {
    struct store *store;
    struct store_verbs verbs; /* the store's, with ours in place of some */
    struct recovery_verbs recovery;
    struct catalog_verbs catalog;
    const struct store_verbs *below;
    struct keyring *keyring;
    bool owns_keyring;
    bool forgets; /* keys were destroyed in the transaction under way */
    uint64_t number; /* of the transaction under way */
    struct arena tx; /* lives until the next one begins */
    struct map tasks; /* struct sealed_ctx, by the task's key */
    struct fresh_key *fresh;
    struct data_key last; /* the key that was used last, of `last_place` */
    struct str last_place[3];
    struct seal_cipher cipher; /* of the transaction under way */
    int64_t day; /* since 1970, of day_text */
    char day_text[CLOCK_TEXT_BYTES];
    uint8_t nonce[SEAL_NONCE_BYTES]; /* random, but for the last bytes, which count */
    uint32_t nonces_left;
};

static inline struct sealed *sealed_of(const struct store *store)
{
    return store->sealed;
}

static inline struct sealed *sealed_of_reader(struct store_reader *reader)
{
    return rows_of_reader(reader)->sealed;
}

/* Keys changed in this transaction: what follows in it reads them again, all others after it. */
void sealed_forget(struct sealed *sealed);

/* ---- sealing: sealed_write.c ---- */

/* The task, and whether it is encrypted; it stays known until the transaction ends. */
int sealed_note(struct sealed *sealed, const struct task *task, struct sealed_ctx **ctx,
                struct err *err);
/* The same by key; a task that is not there counts as not encrypted. */
int sealed_ctx_of(struct sealed *sealed, int64_t task_key, struct sealed_ctx **ctx,
                  struct err *err);
/* The data key to encrypt with, made where there is none; to be wiped after use. */
int sealed_key(struct sealed *sealed, struct str namespace_name, struct str day,
               struct str user_id, struct data_key *key, struct err *err);
/* Where a text belongs in a row of a table. */
struct seal_at {
    const char *table;
    struct str row;
    const char *column;
    bool json; /* the column holds JSON: the stored form is a string */
};
/* The stored form of a text of that task, in the arena of the transaction; a task that is not
 * encrypted keeps its own, unless that looks like a stored form. */
int sealed_text(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err);
/* Is it stored under the data key that a text of that task would be encrypted with now? True also
 * where nothing can be encrypted. */
int sealed_is_current(struct sealed *sealed, const struct sealed_ctx *ctx, struct str stored,
                      bool *current, struct err *err);
/* The data key of the next stored form in the text, which becomes what follows it; false: there is
 * none. */
bool seal_next_key(struct str *text, struct uuid *id);
/* The same for errors, and for JSON that tells what happened: only where it quotes a text that is
 * not the engine's own. */
int sealed_told(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err);
/* The same for payload, data and result, of which only some members may be meant. */
int sealed_body(struct sealed *sealed, const struct sealed_ctx *ctx, const struct seal_at *at,
                struct str *text, struct err *err);
/* Keys as rows of a text's place: of a task, an execution, an event. */
#define SEAL_ROW_BYTES 48
struct str seal_row_id(const struct uuid *id, char out[SEAL_ROW_BYTES]);
struct str seal_row_number(int64_t number, char out[SEAL_ROW_BYTES]);
struct str seal_row_event(int64_t task_key, int64_t seq, char out[SEAL_ROW_BYTES]);

/* ---- opening: sealed_open.c ---- */

/* One answer's texts are mostly under one key: the last one is kept until opener_end. */
struct opener {
    struct sealed *sealed;
    struct rows *rows; /* where keys are read */
    struct arena *arena;
    struct err *err;
    bool has_key;
    enum opened key_opened;
    struct data_key key;
    struct seal_cipher cipher;
};
void opener_begin(struct opener *opener, struct sealed *sealed, struct rows *rows,
                  struct arena *arena, struct err *err);
void opener_end(struct opener *opener);
/* In place; namespace absent = it is not known. What is not encrypted stays. */
int open_text(struct opener *opener, struct str namespace_name, const struct seal_at *at,
              struct str *text, enum opened *opened);
/* Of payload, data and result; whose a result is, is looked for by the task's key. */
int open_body(struct opener *opener, const struct task_seal *seal, struct str namespace_name,
              const struct seal_at *at, struct str *text, enum opened *opened);
int open_result(struct opener *opener, int64_t task_key, struct str *result);
int open_task(struct opener *opener, struct task *task);
int open_checkpoint(struct opener *opener, const struct uuid *task_id,
                    struct checkpoint *checkpoint, enum opened *opened);
int open_recovery(struct opener *opener, struct recovery_entry *entry);
extern const size_t seal_task_offsets[SEAL_TEXTS_COUNT];
static inline struct str *seal_task_text(struct task *task, enum seal_text text)
{
    return (struct str *)(void *)((char *)task + seal_task_offsets[text]);
}
extern const struct seal_at seal_task_places[SEAL_TEXTS_COUNT]; /* without their rows */

/* ---- verbs ---- */

void sealed_set_writes(struct sealed *sealed); /* sealed_write_verbs.c */
void sealed_set_loads(struct sealed *sealed);  /* sealed_load_verbs.c */
void sealed_set_reads(struct sealed *sealed);  /* sealed_read_verbs.c */

#endif
