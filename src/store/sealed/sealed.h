/* Encryption at rest, as a layer over any store: the verbs of a store are replaced by ones that
 * encrypt texts on their way in and open them on their way out. Above it everything sees clear
 * text; the store itself, its hashes, sums and checks, copies, backups and archives see what is
 * stored. All verbs that touch no such text stay the store's own.
 *
 * A text that cannot be opened reads as {"encrypted":true}, with "destroyed" or "damaged" beside it
 * where that is why; when its task is saved it is written as it was. What must be encrypted and
 * cannot be is refused with ERR_LOCKED. */
#ifndef STORE_SEALED_SEALED_H
#define STORE_SEALED_SEALED_H

#include "store/sealed/keyring.h"

#define SEALED_TEXT "{\"encrypted\":true}"
#define SEALED_DESTROYED_TEXT "{\"encrypted\":true,\"destroyed\":true}"
#define SEALED_DAMAGED_TEXT "{\"encrypted\":true,\"damaged\":true}"

/* Puts the layer over an open store, for as long as that is open. keyring NULL: one without keys;
 * then only a store that holds encrypted rows gets the layer. The keyring outlives the store. */
int sealed_install(struct store *store, struct keyring *keyring, struct err *err);

/* Takes it off again; no reader that was opened under it is left. */
void sealed_remove(struct store *store);

/* The keyring of a store under the layer, else NULL. Any thread. */
struct keyring *sealed_keyring(const struct store *store);
/* The verbs below the layer: what is stored, as it is stored. */
const struct store_verbs *sealed_below(const struct store *store);

/* A new task, before anything of it is stored: decides whether it is encrypted (its request, its
 * type's rule, the settings) and makes its input hash a keyed one. This is the one place that says
 * which tasks are encrypted. ERR_LOCKED where that must be and cannot be. */
int sealed_admit(struct store *store, struct task *task, const struct handler_rule *rule,
                 struct arena *arena, struct err *err);

/* Crypto-shredding, in the transaction under way; the keyring forgets at its commit. */
int sealed_destroy(struct store *store, struct str namespace_name, struct str user_id,
                   int64_t now_us, int64_t *destroyed, struct err *err);

/* A secret of the store itself, as hex: it follows from a data key, so that who has the store alone
 * does not know it. `fact` keeps which key that is. Absent where there is none yet and nothing can
 * be encrypted; *locked: there is one, and its key is not here. In a transaction, of a store under
 * the layer. */
int sealed_secret(struct store *store, const char *fact, struct arena *arena, struct str *secret,
                  bool *locked, struct err *err);

/* done where there never was one. */
int seal_rotation_read(struct store *store, struct arena *arena, struct seal_rotation *state,
                       struct err *err);
/* One step of the one under way. Where none is, begins one, unless all content is from since_us
 * (0 = now) or later. In a transaction, of a store under the layer. ERR_LOCKED: no current key. */
int seal_rotation_step(struct store *store, int64_t since_us, struct arena *arena,
                       struct seal_rotation *state, struct err *err);

#endif
