/* The line of `perdura doctor` about encryption. */
#ifndef NODE_DOCTOR_ENCRYPTION_H
#define NODE_DOCTOR_ENCRYPTION_H

#include "node/node.h"
#include "store/store.h"

struct doctor_check doctor_encryption(struct store *store, const struct settings *settings,
                                      struct arena *arena);

#endif
