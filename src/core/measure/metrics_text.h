/* The text format of Prometheus (0.0.4): heads, samples with labels, histograms. Names get the
 * prefix perdura_. Pure. */
#ifndef CORE_MEASURE_METRICS_TEXT_H
#define CORE_MEASURE_METRICS_TEXT_H

#include "base/buf.h"
#include "base/histogram.h"

struct metrics_label {
    const char *name;
    struct str value;
};

void metrics_head(struct buf *out, const char *name, const char *type, const char *help);
/* Head and the only sample of a metric without labels. */
void metrics_one(struct buf *out, const char *name, const char *type, const char *help,
                 int64_t value);
void metrics_one_decimal(struct buf *out, const char *name, const char *type, const char *help,
                         double value);
/* A sample; labels end with a NULL name. */
void metrics_sample(struct buf *out, const char *name, const struct metrics_label *labels,
                    int64_t value);
void metrics_sample_decimal(struct buf *out, const char *name, const struct metrics_label *labels,
                            double value);
/* Buckets, sum (seconds) and count; the head is the caller's. */
void metrics_histogram(struct buf *out, const char *name, const struct metrics_label *labels,
                       const struct histogram *histogram);

#endif
