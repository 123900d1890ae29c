/* The bounds are a table that is searched by halves: seven steps. Ten of them in a decade are round
 * numbers, so that what Prometheus wants to see (2.5 ms, 1 s, 5 min) is among them exactly. */
#include "base/histogram.h"

#include "base/err.h"

#define DECADE(x)                                                                              \
    (x), (x) / 4 * 5, (x) / 2 * 3, (x) * 2, (x) / 2 * 5, (x) * 3, (x) * 4, (x) * 5, (x) * 6, (x) * 8

static const int64_t bounds_us[HISTOGRAM_BUCKETS - 1] = {
    1, 2, 5, 10, 20, 50,
    DECADE(INT64_C(100)),
    DECADE(INT64_C(1000)),
    DECADE(INT64_C(10000)),
    DECADE(INT64_C(100000)),
    DECADE(INT64_C(1000000)),
    DECADE(INT64_C(10000000)),
    DECADE(INT64_C(100000000)),
    DECADE(INT64_C(1000000000)),
    DECADE(INT64_C(10000000000)),
    INT64_C(100000000000)};

uint32_t histogram_bucket(int64_t us)
{
    uint32_t low = 0, high = HISTOGRAM_BUCKETS - 1;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (bounds_us[middle] < us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t histogram_bound_us(uint32_t bucket)
{
    return bucket < HISTOGRAM_BUCKETS - 1 ? bounds_us[bucket] : INT64_MAX;
}

int64_t histogram_count(const struct histogram *histogram)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        count += histogram->counts[i];
    return count;
}

int64_t histogram_within(const struct histogram *histogram, int64_t bound_us)
{
    uint32_t last = histogram_bucket(bound_us);
    int64_t count = 0;

    ASSERT(histogram_bound_us(last) == bound_us);
    for (uint32_t i = 0; i <= last; i++)
        count += histogram->counts[i];
    return count;
}

int64_t histogram_quantile_us(const struct histogram *histogram, double share)
{
    double rank = share * (double)histogram_count(histogram);
    int64_t before = 0;
    uint32_t last = HISTOGRAM_BUCKETS;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        int64_t count = histogram->counts[i];
        int64_t from_us = i ? bounds_us[i - 1] : 0;

        if (count <= 0)
            continue;
        last = i;
        if ((double)(before + count) < rank) {
            before += count;
            continue;
        }
        if (i == HISTOGRAM_BUCKETS - 1)
            return from_us; /* at least */
        return from_us + (int64_t)((double)(bounds_us[i] - from_us) *
                                   (rank - (double)before) / (double)count);
    }
    return last == HISTOGRAM_BUCKETS ? -1 : histogram_bound_us(last);
}

void histogram_add(struct histogram *to, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->counts[i] += from->counts[i];
    to->sum_us += from->sum_us;
}

void histogram_since(struct histogram *out, const struct histogram *now,
                     const struct histogram *before)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        out->counts[i] = now->counts[i] - before->counts[i];
    out->sum_us = now->sum_us - before->sum_us;
}
