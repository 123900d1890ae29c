/* Tasks that wait for a key or for a time, and limits over all nodes, on rows (rows_waiting.c). */
#ifndef STORE_ROWS_ROWS_WAITING_H
#define STORE_ROWS_ROWS_WAITING_H

#include "core/queue_name.h"
#include "store/rows/rows.h"

/* The name under which a task is parked: queue \x1f limit_key. */
#define PARKED_BYTES_MAX (QUEUE_NAME_BYTES + BOUND_KEY_BYTES + 2)
struct str parked_name(struct str queue, struct str limit_key, char out[PARKED_BYTES_MAX]);

/* rows_uniques.c: keys, hashes and outside ids */
const char *unique_kind_word(int kind); /* enum unique_kind, as it is stored */

#endif
