/* A token bucket: so many per period, with a burst. Pure: the time is handed in, and where buckets
 * live is the caller's business. Whole numbers only, so that nothing drifts however often it is
 * asked. */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "core/settings.h"

#define RATE_TOKEN INT64_C(1000000) /* microtokens of one token */

/* All zeros is a bucket that nobody has used yet: it is full. A bucket outlives changes of its
 * rule. */
struct bucket {
    int64_t tokens;     /* microtokens */
    int64_t rest;       /* of the last refill's division, so that no fraction is lost */
    int64_t updated_us; /* 0 = never used */
};

/* Takes one token; false (and nothing taken) when there is none. With count 0 there is no limit. */
bool bucket_take(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us);

/* Puts one taken token back, for work that was not begun after all. */
void bucket_give_back(struct bucket *bucket, const struct rate_rule *rule);

/* When the next bucket_take succeeds: now_us or later. */
int64_t bucket_next_us(const struct bucket *bucket, const struct rate_rule *rule, int64_t now_us);

#endif
