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
int rows_workers_load(struct store *, struct arena *, struct worker_row **, uint32_t *,
                      struct err *);
int rows_worker_put(struct store *, const struct worker_row *, struct err *);
int rows_worker_delete(struct store *, struct str, struct err *);
int rows_queues_load(struct store *, struct arena *, struct queue_row **, uint32_t *,
                     struct err *);
int rows_queue_put(struct store *, const struct queue_row *, struct err *);
int rows_queue_delete(struct store *, const struct queue_row *, struct err *);
int rows_info_get(struct store *, const char *, struct arena *, struct str *, struct err *);
int rows_info_put(struct store *, const char *, struct str, struct err *);
/* The same of stores that several nodes share. */
int rows_worker_load(struct store *, struct str, struct arena *, struct worker_row **,
                     struct err *);
int rows_worker_renew(struct store *, const struct worker_row *, struct err *);
int rows_queue_make(struct store *, const struct queue_row *, struct err *);
/* rows_outbox.c */
int rows_outbox_insert(struct store *, const struct outbox_message *, uint32_t, struct err *);
int rows_outbox_due(struct store *, int64_t, uint32_t, struct arena *, struct outbox_message **,
                    uint32_t *, int64_t *, struct err *);
int rows_outbox_count(struct store *, int64_t *, struct err *);
int rows_outbox_prune(struct store *, int64_t, uint32_t, uint32_t *, struct err *);
int rows_outbox_save(struct store *, const struct outbox_message *, bool, struct err *);

#endif
