/* The part of the seam that looks whether a store is well beside the check of the whole
 * (store_verbs.verify). NULL where several stores are read as one. */
#ifndef STORE_CHECK_STORE_H
#define STORE_CHECK_STORE_H

#include "store/store.h"

struct check_verbs {
    /* Checks what the store depends on; NULL = nothing to check. */
    int (*inspect)(struct store *store, store_tell *tell, void *ctx, struct err *err);
    /* One of the checks that `verify` makes, by its number: how many findings it has, up to a
     * bound; -1 = there is no such check. It fails where it takes longer than a reader may. */
    int (*read_check)(struct store_reader *reader, uint32_t number, int64_t *findings,
                      struct err *err);
};

#endif
