/* What is lost when a migration is reverted. Pure. */
#ifndef NODE_MIGRATION_LOSSES_H
#define NODE_MIGRATION_LOSSES_H

#include "base/str.h"

struct migration_loss {
    struct str what; /* absent = nothing */
    bool is_data;    /* a way up again does not bring it back */
};

/* By the name of the migration. */
struct migration_loss migration_loss_of(struct str name);

#endif
