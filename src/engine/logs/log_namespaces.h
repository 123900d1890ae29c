/* What the key proves of the rows of namespaces: their windows of retention, and that one is to be
 * deleted (log_namespaces.c). Belongs to the thread that has the turn (inbox.c). */
#ifndef ENGINE_LOGS_LOG_NAMESPACES_H
#define ENGINE_LOGS_LOG_NAMESPACES_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct err;
struct namespace_row;

/* A request has set this row. */
int log_namespace_put(struct batch *batch, const struct namespace_row *row, struct err *err);
int log_namespace_forget(struct batch *batch, struct str name, struct err *err);
int log_namespaces_adopt(struct batch *batch, struct err *err);
/* Did a request set it? Without a key every row is believed. */
int log_namespace_proven(struct batch *batch, const struct namespace_row *row, bool *proven,
                         struct err *err);
/* So long its ended tasks stay where nothing says more about their type: what the row says counts
 * only if it is proven. */
int log_namespace_windows(struct batch *batch, struct str name, int64_t *completed_ms,
                          int64_t *failed_ms, struct err *err);

#endif
