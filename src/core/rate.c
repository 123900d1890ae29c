/* The token bucket. A bucket gains count x 1000 / per_ms microtokens in a microsecond; the division
 * keeps its rest for the next time. Products are formed in 128 bits, as years of idleness times a
 * large count do not fit 64. Pure, any thread. */
#include "core/rate.h"

#include "base/fault.h"

#define COUNT_MAX INT64_C(1000000000000) /* with it 63 bits of time still fit 128 */

typedef unsigned __int128 wide;

/* A rule made safe: everything positive, the burst as microtokens. */
struct pace {
    uint64_t count;
    uint64_t per_ms;
    uint64_t full;
};

static struct pace pace_of(const struct rate_rule *rule)
{
    int64_t burst = rule->burst > 0 ? rule->burst : rule->count;

    if (burst > INT64_MAX / RATE_TOKEN)
        burst = INT64_MAX / RATE_TOKEN;
    return (struct pace){
        .count = (uint64_t)(rule->count > COUNT_MAX ? COUNT_MAX : rule->count),
        .per_ms = (uint64_t)(rule->per_ms > 0 ? rule->per_ms : 1),
        .full = (uint64_t)((burst + SEEDED_BUG("rate_one_too_many")) * RATE_TOKEN),
    };
}

/* The bucket as it is now. An earlier now_us than before adds nothing and is not remembered. */
static struct bucket refill(struct bucket bucket, const struct pace *pace, int64_t now_us)
{
    wide gained = (uint64_t)bucket.rest; /* per_ms-ths of a microtoken until the division */

    if (bucket.updated_us == 0) {
        bucket.tokens = (int64_t)pace->full;
        bucket.updated_us = now_us > 0 ? now_us : 1;
    } else if (now_us > bucket.updated_us) {
        uint64_t elapsed_us = (uint64_t)now_us - (uint64_t)bucket.updated_us;

        if (gained >= pace->per_ms) /* left by an earlier rule */
            gained = pace->per_ms - 1;
        gained += (wide)elapsed_us * pace->count * 1000;
        bucket.rest = (int64_t)(gained % pace->per_ms);
        gained = gained / pace->per_ms + (uint64_t)bucket.tokens;
        bucket.tokens = gained > pace->full ? (int64_t)pace->full : (int64_t)gained;
        bucket.updated_us = now_us;
    }
    if ((uint64_t)bucket.tokens >= pace->full) {
        bucket.tokens = (int64_t)pace->full;
        bucket.rest = 0; /* a full bucket gains nothing, not even a fraction */
    }
    return bucket;
}

bool bucket_take(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    struct pace pace;

    if (rule->count <= 0)
        return true;
    pace = pace_of(rule);
    *bucket = refill(*bucket, &pace, now_us);
    if (bucket->tokens < RATE_TOKEN)
        return false;
    bucket->tokens -= RATE_TOKEN;
    return true;
}

void bucket_give_back(struct bucket *bucket, const struct rate_rule *rule)
{
    struct pace pace;

    if (rule->count <= 0 || bucket->updated_us == 0)
        return;
    pace = pace_of(rule);
    if ((uint64_t)bucket->tokens + RATE_TOKEN <= pace.full)
        bucket->tokens += RATE_TOKEN;
    else
        bucket->tokens = (int64_t)pace.full;
}

int64_t bucket_next_us(const struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    struct bucket now;
    struct pace pace;
    wide missing, wait_us;

    if (rule->count <= 0)
        return now_us;
    pace = pace_of(rule);
    now = refill(*bucket, &pace, now_us);
    if (now.tokens >= RATE_TOKEN)
        return now_us;
    missing = (wide)(uint64_t)(RATE_TOKEN - now.tokens) * pace.per_ms;
    /* A rest can only be this large after a change of the rule. */
    missing -= (uint64_t)now.rest < pace.per_ms ? (uint64_t)now.rest : pace.per_ms - 1;
    wait_us = (missing + pace.count * 1000 - 1) / (pace.count * 1000);
    if (wait_us > (wide)(INT64_MAX - now.updated_us))
        return INT64_MAX;
    return now.updated_us + (int64_t)wait_us;
}
