/* Wall times to instants. Clocks show a time again only where they were put back, and jump over one
 * only where they were put forward: between two changes of a zone the search for the next wall time
 * is the search for the next instant. Pure, any thread. */
#include "calendar/wall.h"

#include "base/enum_words.h"
#include "calendar/civil.h"

#define HORIZON_S (WALL_YEARS_MAX * INT64_C(31556952)) /* years of 365.2425 days */
#define NEAR_S (3 * CIVIL_DAY_S) /* a clock is never put back further than that */

static const char *const words[] = {
    [DST_STANDARD] = "standard", [DST_SKIP] = "skip", [DST_BOTH] = "both"};

ENUM_WORDS(dst_policy, words);

/* Each wall time once. Those up to the latest one shown so far have had their turn. */
static bool next_once(const struct wall_set *set, const struct zone *zone, bool skip,
                      int64_t after_s, int64_t *next_s)
{
    int64_t from_s = zone_latest_shown(zone, after_s) + 1;
    int64_t local_s = from_s;

    while (local_s - from_s <= HORIZON_S) {
        int64_t match_s, shown_s;

        if (!set->next(set->ctx, local_s, &match_s))
            return false;
        *next_s = zone_first_reaching(zone, match_s, &shown_s);
        if (!skip || shown_s == match_s)
            return true;
        local_s = shown_s;
    }
    return false;
}

/* Whenever the clock shows one: from span to span of the zone. With fill_gaps also at the end of a
 * gap that has one. A match found from searched_s stays the next one as long as clocks are not put
 * back before searched_s or forward over it; that can only be near the one or the other, and the
 * spans between are passed over at once. */
static bool next_shown(const struct wall_set *set, const struct zone *zone, bool fill_gaps,
                       int64_t after_s, int64_t *next_s)
{
    struct zone_span span;
    int64_t searched_s, match_s;

    /* From the span of after_s: where the next second is the end of a gap, it ends that span. */
    zone_span_at(zone, after_s, &span);
    searched_s = after_s + 1 + span.offset_s;
    if (!set->next(set->ctx, searched_s, &match_s))
        match_s = ZONE_EVER_S;
    for (;;) {
        int64_t change_s = span.until_s;
        int64_t begin_s;

        if (match_s < change_s + span.offset_s) {
            *next_s = match_s - span.offset_s;
            return match_s < ZONE_EVER_S;
        }
        if (change_s > after_s + (match_s == ZONE_EVER_S ? NEAR_S : HORIZON_S))
            return false;
        if (change_s > after_s + NEAR_S && change_s < match_s - NEAR_S && match_s < ZONE_EVER_S) {
            zone_span_at(zone, match_s - NEAR_S, &span);
            continue;
        }
        zone_span_at(zone, change_s, &span);
        begin_s = change_s + span.offset_s;
        if (match_s < begin_s && fill_gaps) {
            *next_s = change_s;
            return true;
        }
        if (begin_s >= searched_s && begin_s <= match_s)
            continue;
        searched_s = begin_s;
        if (!set->next(set->ctx, searched_s, &match_s))
            match_s = ZONE_EVER_S;
    }
}

bool wall_next(const struct wall_set *set, const struct zone *zone, enum dst_policy policy,
               int64_t after_s, int64_t *next_s)
{
    bool found;

    if (after_s < CIVIL_MIN_S)
        after_s = CIVIL_MIN_S;
    if (after_s >= CIVIL_MAX_S)
        return false;
    if (set->real_time || policy == DST_BOTH)
        found = next_shown(set, zone, !set->real_time, after_s, next_s);
    else
        found = next_once(set, zone, policy == DST_SKIP, after_s, next_s);
    return found && *next_s <= CIVIL_MAX_S;
}

/* There is one after `after_s` if there is one after anything later: so the last one is found by
 * going back in doubling steps and halving the last of them. */
bool instant_last(instant_next *next, const void *ctx, int64_t after_s, int64_t until_s,
                  int64_t *last_s)
{
    int64_t low_s, high_s, found_s;

    if (until_s > CIVIL_MAX_S)
        until_s = CIVIL_MAX_S;
    if (after_s < CIVIL_MIN_S)
        after_s = CIVIL_MIN_S;
    low_s = until_s;
    for (int64_t step_s = 1;; step_s *= 2) {
        if (low_s <= after_s)
            return false;
        high_s = low_s;
        low_s = step_s < low_s - after_s ? low_s - step_s : after_s;
        if (next(ctx, low_s, &found_s) && found_s <= until_s)
            break;
    }
    /* After low_s comes found_s, after high_s comes none. */
    *last_s = found_s;
    low_s = found_s;
    while (high_s > low_s) {
        int64_t middle_s = low_s + (high_s - low_s) / 2;

        if (next(ctx, middle_s, &found_s) && found_s <= until_s)
            low_s = *last_s = found_s;
        else
            high_s = middle_s;
    }
    return true;
}
