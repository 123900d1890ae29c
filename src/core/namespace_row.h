/* A namespace: what shares nothing with another one. Its bounds, how long its ended tasks are kept,
 * and whether all of it is to go. `default` is always there. The fields are listed once:
 * stores, copies and JSON are made of the list. Pure data; any thread. */
#ifndef CORE_NAMESPACE_ROW_H
#define CORE_NAMESPACE_ROW_H

#include "base/buf.h"
#include "core/field.h"
#include "core/settings.h"
#include "core/task/task.h"

#define NAMESPACE_AS_SETTINGS (-1) /* a window of retention that the namespace does not set */

struct namespace_row {
    struct str name;
    struct str description;
    int64_t waiting_limit;       /* tasks that have not begun and not ended; 0 = no bound, here and
                                  * below */
    struct rate_rule enqueue_rate;
    int64_t payload_bytes_limit; /* of one task */
    int64_t schedules_limit;     /* schedules and recurring patterns together */
    int64_t completed_ms;        /* as retention.completed of the settings; 0 = for ever */
    int64_t failed_ms;
    bool encrypt_all;            /* its tasks are stored encrypted, whatever the settings say */
    int64_t deleting_at_us;      /* everything in it has been going since then; 0 = it stays */
    int64_t removed;             /* tasks, so far */
    int64_t created_at_us;
    int64_t updated_at_us;
};

#define NAMESPACE_FIELDS(FIELD)                                                                    \
    FIELD(name, name, TEXT, 0)                                                                     \
    FIELD(description, description, TEXT, 0)                                                       \
    FIELD(waiting_limit, waiting_limit, INT, FIELD_EMPTY)                                          \
    FIELD(enqueue_rate_count, enqueue_rate.count, INT, FIELD_EMPTY)                                \
    FIELD(enqueue_rate_per_ms, enqueue_rate.per_ms, INT, FIELD_EMPTY)                              \
    FIELD(enqueue_rate_burst, enqueue_rate.burst, INT, FIELD_EMPTY)                                \
    FIELD(payload_bytes_limit, payload_bytes_limit, INT, FIELD_EMPTY)                              \
    FIELD(schedules_limit, schedules_limit, INT, FIELD_EMPTY)                                      \
    FIELD(completed_ms, completed_ms, INT, FIELD_EMPTY, .empty = NAMESPACE_AS_SETTINGS)            \
    FIELD(failed_ms, failed_ms, INT, FIELD_EMPTY, .empty = NAMESPACE_AS_SETTINGS)                  \
    FIELD(encrypt_all, encrypt_all, BOOL, 0)                                                       \
    FIELD(deleting_at, deleting_at_us, TIME, 0)                                                    \
    FIELD(removed, removed, INT, 0)                                                                \
    FIELD(created_at, created_at_us, TIME, FIELD_ALWAYS)                                           \
    FIELD(updated_at, updated_at_us, TIME, FIELD_ALWAYS)

extern const struct field_table namespace_table; /* alias n */

/* Which members a change gives. */
enum {
    NAMESPACE_SET_DESCRIPTION = 1,
    NAMESPACE_SET_WAITING = 2,
    NAMESPACE_SET_ENQUEUE_RATE = 4,
    NAMESPACE_SET_PAYLOAD_BYTES = 8,
    NAMESPACE_SET_SCHEDULES = 16,
    NAMESPACE_SET_COMPLETED = 32,
    NAMESPACE_SET_FAILED = 64,
    NAMESPACE_SET_ENCRYPTION = 128,
    NAMESPACE_SET_ALL = 255
};

/* A namespace of this name without bounds. */
void namespace_init(struct namespace_row *row, struct str name);
void namespace_take(struct namespace_row *row, const struct namespace_row *given, unsigned set);
/* `left`: tasks that are still to be removed; only shown while it is being deleted. */
void namespace_write(struct buf *out, const struct namespace_row *row, int64_t left);

#endif
