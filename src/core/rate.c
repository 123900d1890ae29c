/* Strict rates remember when tokens were taken, in a few marks: when there are too many, two
 * neighbours become one at the later time, so tokens may come back late but never early. Under
 * steady demand tokens are taken in the moment they come back, so the marks stay as they are and
 * nothing of the rate is lost.
 * The token bucket gains count x 1000 / per_ms microtokens in a microsecond; the division keeps its
 * rest for the next time. Products are formed in 128 bits, as years of idleness times a
 * large count do not fit 64. Pure, any thread. */
#include "core/rate.h"

#include <stdio.h>

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
    int64_t burst = rule->burst;

    if (burst > INT64_MAX / RATE_TOKEN)
        burst = INT64_MAX / RATE_TOKEN;
    return (struct pace){
        .count = (uint64_t)(rule->count > COUNT_MAX ? COUNT_MAX : rule->count),
        .per_ms = (uint64_t)(rule->per_ms > 0 ? rule->per_ms : 1),
        .full = (uint64_t)(burst * RATE_TOKEN),
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

/* ---- strict ---- */

/* When a token that was taken then is back. */
static int64_t back_us(const struct rate_rule *rule, int64_t at_us)
{
    int64_t per_us, back;

    if (__builtin_mul_overflow(rule->per_ms > 0 ? rule->per_ms : 1, INT64_C(1000), &per_us) ||
        __builtin_add_overflow(at_us, per_us, &back))
        return INT64_MAX;
    return back;
}

static int64_t taken(const struct bucket *bucket)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < bucket->marks_count; i++)
        sum += bucket->marks[i].count;
    return sum;
}

/* Of them, those that are not back by then. */
static int64_t taken_at(const struct bucket *bucket, const struct rate_rule *rule, int64_t at_us)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < bucket->marks_count; i++)
        sum += back_us(rule, bucket->marks[i].at_us) > at_us ? bucket->marks[i].count : 0;
    return sum;
}

static void drop_mark(struct bucket *bucket, uint32_t at)
{
    bucket->marks_count--;
    memmove(&bucket->marks[at], &bucket->marks[at + 1],
            (bucket->marks_count - at) * sizeof bucket->marks[0]);
}

/* The two whose joining keeps the fewest tokens back for the shortest time. */
static void join_marks(struct bucket *bucket)
{
    struct rate_mark *marks = bucket->marks;
    uint32_t best = 0;
    wide least = ~(wide)0;

    for (uint32_t i = 0; i + 1 < bucket->marks_count; i++) {
        wide cost = (wide)(uint64_t)marks[i].count *
                    (uint64_t)(marks[i + 1].at_us - marks[i].at_us);

        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    marks[best + 1].count += marks[best].count;
    drop_mark(bucket, best);
}

static void drop_returned(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    while (bucket->marks_count > 0 && back_us(rule, bucket->marks[0].at_us) <= now_us)
        drop_mark(bucket, 0);
}

/* The mark for tokens that are taken then; a clock that went back adds to the last moment. */
static struct rate_mark *mark_at(struct bucket *bucket, int64_t at_us)
{
    struct rate_mark *last = bucket->marks_count ? &bucket->marks[bucket->marks_count - 1] : NULL;

    if (last && last->at_us >= at_us)
        return last;
    if (bucket->marks_count == RATE_MARKS)
        join_marks(bucket);
    last = &bucket->marks[bucket->marks_count++];
    *last = (struct rate_mark){.at_us = at_us};
    return last;
}

static bool strict_take(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    drop_returned(bucket, rule, now_us);
    if (taken(bucket) >= rule->count)
        return false;
    mark_at(bucket, now_us)->count++;
    bucket->updated_us = now_us > 0 ? now_us : 1;
    return true;
}

static int64_t strict_next_us(const struct bucket *bucket, const struct rate_rule *rule,
                              int64_t now_us)
{
    int64_t left = taken(bucket);
    int64_t next_us = now_us;

    for (uint32_t i = 0; i < bucket->marks_count && left >= rule->count; i++) {
        next_us = back_us(rule, bucket->marks[i].at_us);
        left -= bucket->marks[i].count;
    }
    return next_us > now_us ? next_us : now_us;
}

#define OWED_PERIODS 64 /* what is more is forgiven, so that this takes no time */

/* Each at the first moment that has one, so that none is lost and none comes back early. */
static void strict_owe(struct bucket *bucket, const struct rate_rule *rule, int64_t count,
                       int64_t since_us, int64_t now_us)
{
    drop_returned(bucket, rule, since_us);
    if (count / OWED_PERIODS >= rule->count)
        count = rule->count * OWED_PERIODS;
    while (count > 0) {
        int64_t at_us = strict_next_us(bucket, rule, since_us);
        int64_t room = rule->count - taken_at(bucket, rule, at_us);

        if (at_us == INT64_MAX || room <= 0)
            return;
        room = count < room ? count : room;
        mark_at(bucket, at_us)->count += room;
        count -= room;
    }
    bucket->updated_us = now_us > 0 ? now_us : 1;
}

struct str bucket_marks_write(const struct bucket *bucket, char out[RATE_MARKS_BYTES])
{
    size_t len = 0;

    for (uint32_t i = 0; i < bucket->marks_count; i++)
        len += (size_t)snprintf(out + len, RATE_MARKS_BYTES - len, "%s%lld %lld", i ? " " : "",
                                (long long)bucket->marks[i].at_us,
                                (long long)bucket->marks[i].count);
    return str_span(out, len);
}

static bool next_number(struct str *text, int64_t *number)
{
    const char *space = text->len ? memchr(text->data, ' ', text->len) : NULL;
    size_t len = space ? (size_t)(space - text->data) : text->len;
    bool fits = len > 0 && str_to_int64(str_span(text->data, len), number);

    *text = space ? str_span(space + 1, text->len - len - 1) : str_span(text->data, 0);
    return fits && *number >= 0;
}

void bucket_marks_read(struct bucket *bucket, struct str text)
{
    int64_t before_us = -1;

    bucket->marks_count = 0;
    while (text.len > 0 && bucket->marks_count < RATE_MARKS) {
        struct rate_mark *mark = &bucket->marks[bucket->marks_count];

        if (!next_number(&text, &mark->at_us) || !next_number(&text, &mark->count) ||
            mark->at_us <= before_us || mark->count > COUNT_MAX) {
            bucket->marks_count = 0;
            return;
        }
        before_us = mark->at_us;
        bucket->marks_count++;
    }
}

/* ---- with a burst ---- */

bool bucket_take(struct bucket *bucket, const struct rate_rule *rule, int64_t now_us)
{
    struct pace pace;

    if (rule->count <= 0)
        return true;
    if (rule->burst <= 0)
        return strict_take(bucket, rule, now_us);
    bucket->marks_count = 0;
    pace = pace_of(rule);
    *bucket = refill(*bucket, &pace, now_us);
    if (bucket->tokens < RATE_TOKEN)
        return false;
    bucket->tokens -= RATE_TOKEN;
    return true;
}

/* How long the rule takes for so many microtokens. */
static int64_t gain_us(const struct pace *pace, wide microtokens)
{
    wide us = (microtokens * pace->per_ms + pace->count * 1000 - 1) / (pace->count * 1000);

    return us > (wide)INT64_MAX ? INT64_MAX : (int64_t)us;
}

void bucket_owe(struct bucket *bucket, const struct rate_rule *rule, int64_t count,
                int64_t since_us, int64_t now_us)
{
    struct pace pace;
    wide owed;

    if (rule->count <= 0 || count <= 0)
        return;
    if (rule->burst <= 0) {
        strict_owe(bucket, rule, count, since_us, now_us);
        return;
    }
    bucket->marks_count = 0;
    pace = pace_of(rule);
    *bucket = refill(*bucket, &pace, now_us);
    owed = (wide)(uint64_t)count * (uint64_t)RATE_TOKEN;
    if (owed <= (uint64_t)bucket->tokens) {
        bucket->tokens -= (int64_t)owed;
        return;
    }
    owed -= (uint64_t)bucket->tokens;
    bucket->tokens = 0;
    if (__builtin_add_overflow(bucket->updated_us, gain_us(&pace, owed), &bucket->updated_us))
        bucket->updated_us = INT64_MAX; /* from then on it gains again */
}

void bucket_give_back(struct bucket *bucket, const struct rate_rule *rule)
{
    struct pace pace;

    if (rule->count <= 0 || bucket->updated_us == 0)
        return;
    if (rule->burst <= 0) {
        struct rate_mark *last = bucket->marks_count ? &bucket->marks[bucket->marks_count - 1]
                                                     : NULL;

        if (last && --last->count == 0)
            bucket->marks_count--;
        return;
    }
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
    if (rule->burst <= 0)
        return strict_next_us(bucket, rule, now_us);
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

int64_t bucket_full_us(const struct bucket *bucket, const struct rate_rule *rule)
{
    int64_t fill_us;

    if (rule->count <= 0 || bucket->updated_us == 0)
        return 0;
    if (rule->burst <= 0)
        return bucket->marks_count ? back_us(rule, bucket->marks[bucket->marks_count - 1].at_us)
                                   : 0;
    if (__builtin_mul_overflow((rule->burst / rule->count + 1) * 1000, rule->per_ms, &fill_us) ||
        __builtin_add_overflow(fill_us, bucket->updated_us, &fill_us))
        return INT64_MAX;
    return fill_us;
}
