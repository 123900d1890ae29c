/* How long things took, counted in buckets whose bounds grow by a quarter to a half each: enough
 * for quantiles. Prometheus gets the round bounds among them. Pure. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 98 /* up to 1 µs, 2, 5, ... 28 hours; the last one has all above */

struct histogram {
    int64_t counts[HISTOGRAM_BUCKETS];
    int64_t sum_us;
};

/* The bucket of a time: the first whose bound is not below it. Negative ones count as 0. */
uint32_t histogram_bucket(int64_t us);
/* The largest time in the bucket; INT64_MAX of the last. */
int64_t histogram_bound_us(uint32_t bucket);

int64_t histogram_count(const struct histogram *histogram);
/* How many took no longer than this, which must be a bound. */
int64_t histogram_within(const struct histogram *histogram, int64_t bound_us);
/* The time a share of all (0 to 1) did not exceed, between the bounds in proportion; -1 when
 * nothing was counted. */
int64_t histogram_quantile_us(const struct histogram *histogram, double share);

void histogram_add(struct histogram *to, const struct histogram *from);
/* What came since: now - before. */
void histogram_since(struct histogram *out, const struct histogram *now,
                     const struct histogram *before);

#endif
