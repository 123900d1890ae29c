/* What the files of the several stores read as one share. */
#ifndef STORE_STORE_PARTS_INT_H
#define STORE_STORE_PARTS_INT_H

#include "store/catalog_store.h"
#include "store/store_parts.h"

struct parts {
    struct store base;
    struct store_parts_config config;
    struct store *stores[STORE_PARTS_MAX];
    char kind[64];
};

struct parts_reader {
    struct parts *parts;
    struct store_reader *readers[STORE_PARTS_MAX];
    struct uuid last; /* the task looked for last, and ... */
    uint32_t last_at; /* ... the part that has it */
};

static inline struct parts_reader *parts_reader_of(struct store_reader *reader)
{
    return (struct parts_reader *)(void *)reader;
}

/* -ERR_UNAVAILABLE when that part has failed. */
int parts_check(const struct parts *parts, uint32_t part, struct err *err);

extern const struct catalog_verbs parts_catalog_verbs; /* store_parts_catalog.c */
struct audit_verbs;
extern const struct audit_verbs parts_audit_verbs;    /* store_parts_recovery.c */
extern const struct recovery_verbs parts_recovery_verbs; /* store_parts_recovery.c */
extern const struct measure_verbs parts_measure_verbs; /* store_parts_measures.c */

#endif
