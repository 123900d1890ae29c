/* Encrypting only some members of a JSON text: those that JSON pointers name are replaced, every
 * other byte stays as it is. Pure; any thread. */
#ifndef CORE_SEAL_SEAL_MEMBERS_H
#define CORE_SEAL_SEAL_MEMBERS_H

#include "base/arena.h"
#include "base/err.h"

#define SEAL_POINTERS_MAX 32

/* Gives what stands in place of the value, in the arena. 0 or a negative error. */
typedef int seal_member(void *ctx, struct str pointer, struct str value, struct arena *arena,
                        struct str *out);

/* pointers: a JSON array of texts. A pointer that names nothing is passed by, and so is one inside
 * of what another one names. *out is the text itself where none names anything. Otherwise the first
 * error of `replace`, or -ERR_MEMORY. */
int seal_members(struct str json, struct str pointers, seal_member *replace, void *ctx,
                 struct arena *arena, struct str *out);

#endif
