/* Tasks that wait for a key or for a time, and limits over all nodes, on rows (rows_waiting.c). */
#ifndef STORE_ROWS_ROWS_WAITING_H
#define STORE_ROWS_ROWS_WAITING_H

#include "core/queue_name.h"
#include "store/rows/rows.h"

/* The name under which a task is parked: queue \x1f limit_key. */
#define PARKED_BYTES_MAX (QUEUE_NAME_BYTES + BOUND_KEY_BYTES + 2)
struct str parked_name(struct str queue, struct str limit_key, char out[PARKED_BYTES_MAX]);

int rows_parked_find(struct store *, struct str, struct str, uint32_t, struct arena *,
                     struct uuid **, uint32_t *, struct err *);
int rows_parked_keys(struct store *, struct str, uint32_t, struct arena *, struct str **,
                     uint32_t *, struct err *);
int rows_due_find(struct store *, int64_t, int64_t, uint32_t, struct arena *, struct uuid **,
                  uint32_t *, int64_t *, struct err *);
/* Of stores that several nodes share. */
int rows_limits_count(struct store *, struct str, struct arena *, struct held_count **, uint32_t *,
                      struct err *);
int rows_limits_lock(struct store *, struct str, struct arena *, struct held_count **, uint32_t *,
                     struct err *);
int rows_limits_hold(struct store *, const struct str *, uint32_t, struct err *);
int rows_key_held(struct store *, struct str, struct str, int64_t *, struct err *);
int rows_bucket_load(struct store *, struct str, struct str, struct bucket *, struct err *);
int rows_bucket_save(struct store *, struct str, struct str, const struct bucket *, struct err *);

/* rows_uniques.c: keys, hashes and outside ids */
const char *unique_kind_word(int kind); /* enum unique_kind, as it is stored */
int rows_uniques_look(struct store *, struct unique *, struct err *);
int rows_uniques_drop(struct store *, const struct task *, bool, struct err *);

#endif
