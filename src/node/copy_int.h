/* Inside of copy: what the moving half and the comparing half share. */
#ifndef NODE_COPY_INT_H
#define NODE_COPY_INT_H

#include "node/node.h"
#include "store/store_copy.h"

struct copy {
    const struct copy_request *request;
    struct store *from;
    struct store *to;
    void (*tell)(void *ctx, const struct copy_step *step);
    void *tell_ctx;
    struct arena *results; /* of the report */
    struct copy_report *report;
    int64_t counts[COPY_TABLES_MAX]; /* rows of the source */
    int64_t total;
    struct copy_step step;
};

/* Whether both stores have this table. */
bool copy_has(const struct copy *copy, const struct copy_table *table);
void copy_tell(struct copy *copy, const struct copy_table *table, bool begins, int64_t rows);

/* Reads both stores again, sums them up and counts what differs; fills the report. */
int copy_compare(struct copy *copy, struct err *err);

#endif
