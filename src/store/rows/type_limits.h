/* The limits per type of a queue, as one JSON array in the queue's row. Pure. */
#ifndef STORE_ROWS_TYPE_LIMITS_H
#define STORE_ROWS_TYPE_LIMITS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/bounds.h"
#include "core/settings.h"

#define TYPE_LIMIT_BYTES_MAX (8 * BOUND_NAME_BYTES + 256) /* every byte of a name escaped */
#define TYPE_LIMITS_BYTES_MAX (BOUND_TYPE_LIMITS * TYPE_LIMIT_BYTES_MAX)

/* Hand-written JSON that is not a list of limits counts as none; verify reports it. */
int type_limits_parse(struct str text, struct arena *arena, struct queue_rule *rule,
                      struct err *err);
void type_limits_write(const struct queue_rule *rule, struct buf *out);

#endif
