/* Rates. A strict rate never lets more than its count begin within any period: a token comes back
 * one period after it was taken. A rate with a burst is a token bucket. Pure: callers pass the time
 * in and own the buckets. Whole numbers only, so that nothing drifts however often it is used. */
#ifndef CORE_RATE_H
#define CORE_RATE_H

#include "core/settings.h"

#define RATE_TOKEN INT64_C(1000000) /* microtokens of one token */
#define RATE_MARKS 16 /* moments a strict rate remembers: few, and demand soon keeps to them */

/* Tokens that were taken, the last of them then. */
struct rate_mark {
    int64_t at_us;
    int64_t count;
};

/* All zeros is a bucket that has not been used yet: it is full. A bucket outlives changes of its
 * rule. */
struct bucket {
    int64_t tokens;     /* microtokens, of rules with a burst */
    int64_t rest;       /* of the last refill's division, so that no fraction is lost */
    int64_t updated_us; /* 0 = never used */
    uint32_t marks_count;
    struct rate_mark marks[RATE_MARKS]; /* of strict rules, oldest first */
};

/* Takes one token; false (and nothing taken) when there is none. With count 0 there is no limit. */
bool bucket_take(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us);

/* Takes tokens whether they are there or not: what was used elsewhere since `since_us`, as is known
 * now. What was not there is taken in advance of what comes back. */
void bucket_owe(struct bucket *bucket, const struct rate_rule *rule, int64_t count,
                int64_t since_us, int64_t now_us);

/* Puts one taken token back, for work that was not begun after all. */
void bucket_give_back(struct bucket *bucket, const struct rate_rule *rule);

/* When the next bucket_take succeeds: now_us or later. */
int64_t bucket_next_us(const struct bucket *bucket, const struct rate_rule *rule, int64_t now_us);

/* From when on it is as if it had never been used. */
int64_t bucket_full_us(const struct bucket *bucket, const struct rate_rule *rule);

/* The marks as text, "time count time count", and back. Text that is none leaves no marks. */
#define RATE_MARKS_BYTES (RATE_MARKS * 42)
struct str bucket_marks_write(const struct bucket *bucket, char out[RATE_MARKS_BYTES]);
void bucket_marks_read(struct bucket *bucket, struct str text);

#endif
