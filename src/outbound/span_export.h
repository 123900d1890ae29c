/* Sends spans to an OTLP receiver (HTTP, JSON). Adding never waits: spans that do not fit are
 * dropped and counted, as are those the receiver refuses. One thread of its own. */
#ifndef OUTBOUND_SPAN_EXPORT_H
#define OUTBOUND_SPAN_EXPORT_H

#include "base/err.h"
#include "base/log.h"
#include "core/span.h"

struct span_export;

struct span_export_counts {
    int64_t exported; /* since the start, as all below */
    int64_t dropped;  /* no room, or given up after some tries */
    int64_t failed;   /* requests that failed */
};

/* settings->tracing_otlp: a receiver's address, with or without /v1/traces at its end. node names
 * this process. Both and log live at least as long. NULL with err: ERR_INVALID, ERR_MEMORY, ERR_IO
 * (a file of headers that cannot be read). */
struct span_export *span_export_start(const struct settings *settings, const char *node,
                                      const struct log *log, struct err *err);

/* Any thread; never blocks but for other adds. */
void span_export_add(struct span_export *export, const struct span *spans, uint32_t count);

void span_export_counts(struct span_export *export, struct span_export_counts *counts);

/* Sends what there is, once and for two seconds at most; ends the thread; frees. No span may be
 * added any more. NULL is allowed. */
void span_export_stop(struct span_export *export);

#endif
