/* The small tables around the tasks on rows: workers, queues, outbox, the store's own facts. */
#ifndef STORE_ROWS_ROWS_REGISTRY_H
#define STORE_ROWS_ROWS_REGISTRY_H

#include "store/rows/rows.h"

/* The parts of a rule that come from the configuration alone (store, stall, dead letters) are not
 * stored; limits per type are one JSON array. */
struct stored_queue {
    struct queue_row row;
    struct str type_limits;
};

extern const struct field_table rows_worker_table; /* struct worker_row */
extern const struct field_table rows_queue_table;  /* struct stored_queue */
extern const struct field_table rows_outbox_table; /* struct outbox_message */

/* rows_registry.c; stored: false when the limits do not fit */
bool rows_queue_stored(const struct queue_row *, struct buf *limits, struct stored_queue *stored);

/* rows_outbox.c */
int rows_outbox_insert(struct store *, const struct outbox_message *, uint32_t, struct err *);

#endif
