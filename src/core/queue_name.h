/* What names a queue inside the engine and the stores. Queues of the same name in two namespaces
 * have nothing to do with each other, so the engine knows each by its full name: the plain name in
 * the namespace `default`, and NAMESPACE, the byte 0x1e, and the plain name in every other one.
 * No name has control characters, and 0x1e is not the 0x1f that stands between a queue and a type
 * or a key: no name of one namespace is the beginning of one in another. Users see and give plain
 * names; tables have namespace and plain name as two columns. Pure; any thread. */
#ifndef CORE_QUEUE_NAME_H
#define CORE_QUEUE_NAME_H

#include "base/arena.h"
#include "base/err.h"
#include "core/bounds.h"

#define NAMESPACE_BYTES_MAX 63
#define QUEUE_NAME_BYTES (NAMESPACE_BYTES_MAX + 1 + BOUND_NAME_BYTES) /* of a full name */

/* ERR_INVALID unless it is 1 to 63 letters, digits, '-', '_' and '.', the first one a letter or a
 * digit: it is part of paths, labels and keys. */
int namespace_check_name(struct str name, struct err *err);

/* The full name; the plain one itself where the namespace is `default`, else in the arena (absent =
 * out of memory). */
struct str queue_name_full(struct str namespace_name, struct str plain, struct arena *arena);
/* The same for a name that a user gave, or that is full already: ERR_INVALID for the full name of a
 * queue of another namespace. */
int queue_name_enter(struct str namespace_name, struct str *name, struct arena *arena,
                     struct err *err);
/* Both parts of a full name, which they point into. */
struct str queue_name_plain(struct str full);
struct str queue_name_namespace(struct str full);
bool queue_name_in(struct str full, struct str namespace_name);

#endif
